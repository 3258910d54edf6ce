/* cost_table.h - what launches cost, as a `.costs` file says it: rows of {node, point} with their
 * quantiles in microseconds. What `tectum profile` writes, what simulations run on and what the
 * cost model starts from.
 *
 * { "schema": 1, "unit": "us", "variants": [ { "node": "talk", "point": { "batch": 2 }, "n": 1000,
 *   "min": .., "p50": .., "p99": .., "p999": .., "max": .. } ], "contention": 1.9 }
 *
 * Rows of prefill and action nodes have an empty point and are per launch; where several sessions'
 * observations are in one, its row has their number as `batch`. Rows of decode nodes are per step
 * of `batch` rows; rows of packed forwards are per launch at `decode` rows; rows of a prefill in
 * slices are per slice and say of how many: { "slices": 24 }. Rows of a memory_load node are per
 * prompt, which it runs in place of the prefill, or per slice; with "percent" at that share of the
 * segments in every layer, without as declared. Rows of a remember node are per launch of so many
 * "tokens"; for a later memory_load node of its memory they are called NODE.LOAD. A row of an
 * action node says with how many "steps". "settings" are words of the pipeline that it was measured
 * with: { "model.round": "none" }. Further fields are ignored. Read-only after reading: any
 * thread. */
#ifndef TEC_GRAPH_RUN_LOOP_COST_TABLE_H
#define TEC_GRAPH_RUN_LOOP_COST_TABLE_H

#include "base/arena.h"
#include "base/error.h"

#include <jansson.h>

enum { TEC_MAX_COST_ROWS = 4096, TEC_MAX_COST_SETTINGS = 256 };

/* A word of the pipeline that launches cost by: "model.round", "bf16". */
struct tec_cost_setting {
    const char *name, *word;
};

struct tec_cost_row {
    const char *node;
    int point; /* rows, percent or tokens; 0 = none */
    int64_t n;
    double min, p50, p99, p999, max; /* us */
    int slices;                      /* that the prefill was in; 0 = in one */
    int steps;                       /* of an action node; 0 = not said */
};

/* Rows of one node stand together, points ascending. */
struct tec_cost_table {
    int n_rows;
    struct tec_cost_row *rows;
    double contention;         /* how partitions that work at once slow each other; 0 = not said */
    double copy_bytes_per_us;  /* 0 = unknown */
    const char *pipeline;      /* that it was measured on; NULL = not said */
    const char *device, *tier; /* "cpu", "avx2": where; NULL = not said */
    int threads;               /* lanes of it; 0 = not said */
    int n_settings;            /* 0 = not said */
    struct tec_cost_setting *settings;
};

/* Read a file, or a value that a scenario carries. `where` names it in errors: TEC_MALFORMED says
 * which row and what is wrong with it. Everything is in the arena. */
enum tec_status tec_costs_table_read(struct tec_cost_table *out, const char *path,
                                     struct tec_arena *arena, struct tec_error *err);
enum tec_status tec_costs_table_take(struct tec_cost_table *out, const json_t *json,
                                     const char *where, struct tec_arena *arena,
                                     struct tec_error *err);

/* The row of a node: of the smallest point >= rows, else of the largest; NULL = unknown node. */
const struct tec_cost_row *tec_costs_table_row(const struct tec_cost_table *table, const char *node,
                                               int rows);

/* Returns the factor of a row's time for one slice of a prefill that has `slices` slices. */
double tec_costs_row_share(const struct tec_cost_row *row, int slices);

/* Microseconds of it at quantile q: p50 up to 0.5, p99 up to 0.99, p999 up to 0.999, else max. */
double tec_costs_row_us(const struct tec_cost_row *row, double q);

#endif
