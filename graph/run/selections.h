/* selections.h - what a selection answers while a prompt of remembered segments runs. */
#ifndef TEC_GRAPH_RUN_SELECTIONS_H
#define TEC_GRAPH_RUN_SELECTIONS_H

#include "graph/run/recall.h"

struct tec_selection_kind {
    /* r->live and r->resident of the first layer, from all false but the query's rows live. */
    enum tec_status (*start)(struct tec_recall *r, struct tec_error *err);
    /* Before a layer: whether choose will need the layer's sums; r->sums. NULL: never. */
    bool (*sums)(const struct tec_recall *r, int layer);
    /* r->go_on of the layer, which is r->live when called. NULL: all go on. */
    enum tec_status (*choose)(struct tec_recall *r, int layer, struct tec_error *err);
    /* Whether kept pieces of a segment are needed at a layer although all its rows are live. */
    bool (*compares)(const struct tec_recall *r, int layer);
};

#define SELECTION(name, text, what) extern const struct tec_selection_kind tec_selection_##name;
#include "graph/memory/selections.def"
#undef SELECTION
extern const struct tec_selection_kind *const tec_selection_kinds[TEC_SELECTIONS];

/* Tokens of segment u; n_segments: the beginning. */
struct tec_segment_range tec_recall_place(const struct tec_recall *r, int u);

#endif
