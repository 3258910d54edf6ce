/* loading.h - which KV to load next while a forward of shrinking rows runs layer by layer.
 *
 * Segments of memory have KV in a slower place. Layer l computes the segments of its set S(l) anew
 * and needs the others' KV of that layer loaded before it starts. S(l + 1) is a subset of S(l) and
 * is known when importance(l) ends, which runs beside the second half (the MLP) of layer l. So a
 * load (l, u) is legal as soon as u is outside the newest known set: it will never be needed
 * otherwise.
 *
 * One link, one load at a time, never interrupted. The rules pick the lowest layer not yet started,
 * then the order of segments given; they differ in how far they look:
 *
 *   separate   nothing while a layer or its importance runs
 *   next       one layer beyond the one that runs
 *   balanced   any layer. A long load for a far layer can be on the link when the next set becomes
 *              known, and then delays what the next layer needs: it can lose to `next`
 *   bounded    any layer, but what lies beyond the next set to become known only if it ends before
 *              that. With `grain` > 0 such a load may also be split, and its rest comes later
 *
 * `bounded` starts no layer later than `next` does, whatever the tables. Proof, by induction over
 * layers: in `next` the link is free when layer i starts at n(i); it then loads A, what of layer
 * i + 1 is legal under S(i), and from n(i) + c (c until the set is known) the rest F, so layer
 * i + 1 is loaded at n(i) + max(|A|, c if F) + |F|. In `bounded`, started at s(i) <= n(i), a part
 * of A is loaded already, layer i + 1 comes first among all that is legal, and no load beyond layer
 * i + 1 is on the link at s(i) + c or later while something of layer i + 1 is missing: before that
 * moment it would have to end by then, after it layer i + 1 goes first. At s(i) itself such a load
 * can be on the link only when A was complete (layer i + 1 goes first, and A is all that is legal
 * of it until the set is known). So layer i + 1 is loaded no later than s(i) + max(|A|, c if F) +
 * |F|, and computing adds the same to both.
 * This holds for the times that are believed. Where a real link or layer is faster or slower than
 * believed, what can be lost at a layer is the time by which one load overran: that of one piece
 * where loads are split.
 *
 * The rules are one state machine for the loader thread of an engine and for the simulator below.
 * Times are any integer unit (ns in an engine). Not thread-safe: whoever calls owns it.
 */
#ifndef TEC_GRAPH_MEMORY_LOADING_H
#define TEC_GRAPH_MEMORY_LOADING_H

#include "base/arena.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

enum tec_overlap {
#define OVERLAP(name, text, what) TEC_OVERLAP_##name,
#include "graph/memory/overlaps.def"
#undef OVERLAP
    TEC_OVERLAPS
};

/* Its name, NULL out of range; and back, false when there is none. */
const char *tec_overlap_name(enum tec_overlap overlap);

enum { TEC_MAX_LOADING_LAYERS = 1024, TEC_MAX_LOADING_SEGMENTS = 4096 };

/* The predicted times of a forward. Arrays are borrowed; times 0 .. 2^40. */
struct tec_loading_table {
    int layers, segments;      /* layers >= 1, segments >= 0 */
    const int64_t *attention;  /* [layers] until the weights of its attention are known */
    const int64_t *importance; /* [layers] from then, until the next set is; the last is not used */
    const int64_t *mlp;        /* [layers] from then, until the layer ends */
    const int64_t *load;       /* [layers, segments] the whole KV of a segment at a layer */
    const int *order;          /* [segments] a permutation: which segment first; NULL: by number */
    int64_t grain;             /* `bounded`: smallest piece of a split load; 0: none is split */
};

/* A load, or a piece of one: from .. to of load[layer, segment]. */
struct tec_load {
    int layer, segment;
    int64_t from, to;
    bool last; /* with it the (layer, segment) is whole */
};

/* The state of one forward. Fields are read-only for callers. */
struct tec_loading {
    struct tec_loading_table table;
    enum tec_overlap overlap;
    unsigned char *live; /* [segments] in the newest known set */
    int64_t *left;       /* [layers, segments] still to load; -1: picked whole */
    int *missing;        /* [layers] loads not yet complete, of those that are legal */
    int n_live;
    int started;     /* the last layer that started; -1: none */
    int known;       /* the newest known set is of this layer, started or started + 1 */
    int64_t reveals; /* when importance(started) is believed to end */
    int64_t ends;    /* when the layer is */
    bool computing;  /* a layer or its importance runs: see tec_loading_rest */
};

/* Check the table and begin: nothing started, S(0) = `set` ([segments], nonzero: computed). Memory
 * from the arena. TEC_INVALID names what is out of range. */
enum tec_status tec_loading_init(struct tec_loading *loading, const struct tec_loading_table *table,
                                 enum tec_overlap overlap, const unsigned char *set,
                                 struct tec_arena *arena, struct tec_error *err);

/* The next layer's set is known: a subset of the one before, or TEC_INVALID. */
enum tec_status tec_loading_known(struct tec_loading *loading, const unsigned char *set,
                                  struct tec_error *err);

/* Whether everything that the next layer needs is loaded (its set known, no load missing). */
bool tec_loading_ready(const struct tec_loading *loading);

/* The next layer starts now. */
void tec_loading_start(struct tec_loading *loading, int64_t now);

/* The layer that runs has ended, and its importance: for `separate`, which loads only now. */
void tec_loading_rest(struct tec_loading *loading);

/* What to load now on a free link; false: nothing. What is picked counts as taken, and must be
 * loaded and told to tec_loading_done. */
bool tec_loading_pick(struct tec_loading *loading, int64_t now, struct tec_load *out);
void tec_loading_done(struct tec_loading *loading, const struct tec_load *load);

/* One load as it happened. */
struct tec_load_event {
    int64_t start, end;
    int layer, segment;
};
struct tec_layer_event {
    int64_t start, attention_end, importance_end, end;
    int64_t waited; /* for its loads, after the layer before and its importance had ended */
};
struct tec_loading_result {
    struct tec_load_event *loads; /* in order */
    size_t n_loads;
    struct tec_layer_event *layers; /* [layers] */
    int64_t finish, busy;           /* the end; time that the link was loading */
};

/* Run the rules on exact times. `sets` [layers, segments], nonzero: computed anew; each line a
 * subset of the line before. Deterministic; arrays from the arena. */
enum tec_status tec_loading_simulate(struct tec_loading_result *out,
                                     const struct tec_loading_table *table,
                                     enum tec_overlap overlap, const unsigned char *sets,
                                     struct tec_arena *arena, struct tec_error *err);

#endif
