/* selections.h - what a selection answers while a prompt of remembered segments runs: of a group of
 * segments, to which the fixed beginning belongs where it is the first. */
#ifndef TEC_GRAPH_RUN_RECALL_SELECTIONS_H
#define TEC_GRAPH_RUN_RECALL_SELECTIONS_H

#include "graph/run/recall/recall.h"

struct tec_selection_kind {
    /* r->live and r->resident of the first layer, from all false but the query's rows live. */
    enum tec_status (*start)(struct tec_recall *r, int group, struct tec_error *err);
    /* Before a layer: whether choose will need the layer's sums; r->sums. NULL: never. */
    bool (*sums)(const struct tec_recall *r, int group, int layer);
    /* The group's tokens of r->go_on of the layer, from all false. NULL: all of r->live go on. */
    enum tec_status (*choose)(struct tec_recall *r, int group, int layer, struct tec_error *err);
    /* Whether kept pieces of a segment are needed at a layer although all its rows are live. */
    bool (*compares)(const struct tec_recall *r, int group, int layer);
};

#define SELECTION(name, text, what) extern const struct tec_selection_kind tec_selection_##name;
#include "graph/memory/selections.def"
#undef SELECTION
extern const struct tec_selection_kind *const tec_selection_kinds[TEC_SELECTIONS];

/* Tokens of segment u; n_segments: the beginning. */
struct tec_segment_range tec_recall_place(const struct tec_recall *r, int u);
/* The group of segment u; all tokens of a group. */
int tec_recall_group(const struct tec_recall *r, int u);
struct tec_segment_range tec_recall_tokens(const struct tec_recall *r, int group);

#endif
