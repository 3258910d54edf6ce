/* launch_score.h - one replay of a tree of texts behind a prefix; and the lists that requests
 * choose from. */
#ifndef TEC_GRAPH_RUN_LAUNCH_LAUNCH_SCORE_H
#define TEC_GRAPH_RUN_LAUNCH_LAUNCH_SCORE_H

#include "graph/nodes/tree.h"
#include "graph/run/launch/launch.h"

/* A tree behind the prefix of a request that has not made a token: its region, prefix and token are
 * read. likely [tree->n_entries] gets the log-probability of each entry. The tree fits the plan's
 * spec.trees. */
struct tec_score_launch {
    const struct tec_token_tree *tree;
    const struct tec_row_state *row;
    float *likely;
};

void tec_launch_score(struct tec_plan *plan, struct tec_plan_part *part,
                      const struct tec_score_launch *launch, struct tec_replay *replay);

/* Let requests choose from n trees, in order: they have the plan's spec.trie_nodes places in
 * all. root[i] gets where requests of tree i begin. Once, before the first launch. */
enum tec_status tec_planner_choose(struct tec_plan *plan, const struct tec_token_tree *const *trees,
                                   int n, int *root, struct tec_arena *scratch,
                                   struct tec_error *err);

#endif
