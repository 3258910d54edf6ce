/* costs_file.h - the file of --costs: read, and held against the pipeline that it is given to. */
#ifndef TEC_TOOLS_MEASURE_COSTS_FILE_H
#define TEC_TOOLS_MEASURE_COSTS_FILE_H

#include "graph/load/pipeline.h"
#include "graph/run/loop/cost_table.h"
#include "tools/cli/command.h"

/* The table of --costs in the call's arena; NULL when the option was not given. TEC_MALFORMED when
 * the file is, or when no row of it is of a node of this pipeline. A file that was measured on
 * another pipeline, rows of unknown nodes and nodes without a row are told on stderr. */
enum tec_status tec_profile_costs_open(const struct tec_cost_table **out,
                                       struct tec_invocation *call,
                                       const struct tec_pipeline *pipeline, struct tec_error *err);

/* Read any cost file into the call's arena. Where --device, --tier or --threads name something else
 * than it was measured on, stderr is told. Errors are those of tec_costs_table_read, and of the
 * options. */
enum tec_status tec_profile_costs_read(struct tec_cost_table *out,
                                       const struct tec_invocation *call, const char *path,
                                       struct tec_error *err);

/* Say on stderr which action nodes were measured with other steps than this pipeline's file has;
 * `path` names the table. */
void tec_profile_costs_steps(const struct tec_invocation *call, const struct tec_cost_table *table,
                             const struct tec_pipeline *pipeline, const char *path);

/* E031 for each hard deadline that the path to its node does not meet at p99: what a frame runs
 * before it, and the node itself. W118 for each text that is begun anew before it has time for its
 * tokens at the median. Nodes without a row count as 0. W119 for each action whose row is of
 * another number of steps than `steps` [n_nodes] says (tec_measure_steps; 0: it is not known); an
 * E031 on it says so, too. */
void tec_profile_costs_check(struct tec_diagnostics *d, const struct tec_cost_table *table,
                             const struct tec_pipeline *pipeline, const int *steps,
                             const char *path);

/* What a frame runs up to the end of a hard node, in words: "see 100 + talk 600 + act 100". */
enum { TEC_CHAIN_TEXT = 1024 };
struct tec_costs_chain {
    double ms, due_ms; /* at p99; the node's deadline */
    char text[TEC_CHAIN_TEXT];
};

/* The chain with the least time left, or the most that there is too little: of actions and hard
 * texts, not of rings. False: no node has a hard deadline. */
bool tec_profile_costs_longest(const struct tec_cost_table *table, const struct tec_pipeline *p,
                               struct tec_costs_chain *out);

#endif
