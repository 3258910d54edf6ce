/* recall.h - runs a prompt of remembered segments: kept keys and values are placed, the chosen rows
 * are computed, in fewer of them from layer to layer.
 *
 * The prompt is a fixed beginning, segments in order, and the query; the beginning is segment
 * n_segments. Which rows a layer computes is a selection's to say (selections.def), between the
 * pieces of the captured part: it reads what the layer's attention was on, and nothing it decides
 * needs another capture. Where kept pieces come from is a `source`'s: a stream
 * (graph/memory/prefetch.h) or plain memory. A judge may force the sets.
 *
 * Everything is taken by tec_recall_create; running takes and blocks nothing but what the source
 * does. One owner. */
#ifndef TEC_GRAPH_RUN_RECALL_RECALL_H
#define TEC_GRAPH_RUN_RECALL_RECALL_H

#include "graph/compile/plan.h"
#include "graph/memory/importance.h"
#include "graph/run/launch/launch.h"

struct tec_recall_input {
    const int *ids; /* the prompt's tokens: [n] less the rows of pictures */
    const int *pos; /* [n] positions; NULL: 0, 1, 2 ... */
    int n;          /* rows of pictures count: they stand behind the model's leading token */
    int n_pictures; /* all computed at every layer, as the beginning is where there are any */
    const uint8_t *const *picture; /* [n_pictures] u8 [size, size, 3] */
    const struct tec_segment_range
        *segments;    /* [n_segments] ascending; the beginning ends with the first */
    const int *local; /* [n_segments] position of a segment's first key as it was kept; NULL: 0 */
    int n_segments;
    /* Several memories in one prompt have a rule each, for segments behind those of the one before:
     * [n_groups] where theirs end. n_groups 0: one rule for all. */
    const int *ends;
    int n_groups;
    const bool
        *fresh; /* [n_segments + 1] nothing is kept of it: computed at every layer; NULL: none */
    int query;  /* the first token of the query */
    int region; /* of the plan's prefixes, held by the caller */
};

/* The method that selects the rows to compute. */
struct tec_recall_rule {
    enum tec_selection selection;
    /* keep */
    enum tec_scoring scoring;
    const double *ratios;        /* [layers] share of the segments */
    const unsigned char *forced; /* [layers, n_segments] for judges: the sets; NULL = chosen */
    /* with `forced`, to measure what the rows alone take: nothing is placed (the region holds it
     * already), no attention is summed up */
    bool bare;
    /* reuse: kept keys are not moved to their place, as the published code does */
    bool local;
    int reused; /* prefix: tokens whose keys and values are in the region already */
    /* cacheblend: share of the tokens, the layer that chooses, rows that see what comes after them
     * as the published code has it */
    double share;
    int check;
    bool code_mask;
    int first; /* epic: tokens of each segment */
};

/* Kept pieces. `segment` n_segments is the beginning. */
struct tec_recall_source {
    void *self;
    /* K before rotation and V of a segment at a layer, in memory that the host reads and that stays
     * as it is until the run has ended; false: gone. On a device that does not read it, memory of
     * tec_device_pin is copied from without holding up the run. */
    bool (*find)(void *self, int layer, int segment, const void **k, const void **v);
    /* All that layer needs is there, or never will be (false). NULL: it always is. */
    bool (*wait)(void *self, int layer);
    /* With `wait`: a segment's is there, which it stays; of any layer. NULL: not known. */
    bool (*came)(void *self, int layer, int segment);
    /* Bytes behind V that are the source's too, where the next piece may lie behind them. */
    size_t behind;
    /* Where on the device a piece of a layer stays, K and then V, in place of a room; *there: it is
     * there, else it is sent there. NULL, or the result: nowhere. The same until the run has
     * ended, but that what is there is asked for once. */
    void *(*stays)(void *self, int layer, int segment, bool *there);
    /* The layer that placed the piece has ended. NULL: not asked. */
    void (*placed)(void *self, int layer, int segment);
    /* Segments computed whole at a layer, [n_segments + 1]: known as soon as it is. NULL: not
     * asked. */
    void (*known)(void *self, int layer, const unsigned char *set);
    void (*started)(void *self, int layer);
    void (*ended)(void *self, int layer);
};

struct tec_recall_times {
    int64_t start, end, waited; /* ns; waited: for pieces */
    int64_t choose;             /* reading sums and choosing */
};

/* What was sent to a device that does not read the host's memory. */
struct tec_recall_moves {
    int64_t bytes, copies;
    int layers, ahead; /* layers that kept pieces came to; of these, layers for which all was sent
                        * before the layer in front of them had ended */
};

/* State of a run, and what the last one was: read-only for callers. */
struct tec_recall {
    struct tec_plan *plan;
    struct tec_plan_part *part;
    const struct tec_plan_part *branch; /* the same with a layer's choice beside it; NULL: none */
    bool branches;                      /* this run is that one's */
    int choosing;                       /* its layer that runs */
    enum tec_status chosen;             /* of the choice in that layer */
    struct tec_error *why;              /* borrowed */
    int layers, max_segments;
    struct tec_recall_input in;
    int n_groups, ends[TEC_MAX_MEMORIES];
    struct tec_recall_rule rules[TEC_MAX_MEMORIES]; /* [n_groups] */
    struct tec_recall_source source;
    bool *live, *go_on;  /* [tokens] rows of this layer; those behind its keys */
    bool *resident;      /* [tokens] keys and values that are in the region already */
    unsigned char *sets; /* [layers, max_segments + 1] segments computed whole */
    int *counts, *rows;  /* [n_groups, layers] segments that keep computes; [layers] rows */
    bool *alive;         /* [max_segments] segments that are computed now */
    bool sums;           /* this layer's attention is summed up */
    int ahead;           /* rows before the query's, in this layer's table */
    int *token[2];       /* [tokens] of each row */
    int n_rows[2];
    int *at;                          /* [tokens] row of a token */
    struct tec_importance importance; /* of the choice before */
    double *scores;                   /* [max_segments] as last chosen by */
    bool *scored;                     /* [max_segments] there was a choice */
    float *mass;                      /* host: the last layer's sums */
    double *worst;                    /* [tokens] cacheblend: how far values are from kept ones */
    float *line;                      /* room for a row of values */
    bool *lacks;                      /* [max_segments + 1] kept pieces are placed, from now on */
    unsigned char *rooms; /* device: pieces of n_rooms layers; NULL: it reads the host's */
    size_t room, *offset; /* bytes of each; [max_segments + 1] of a piece in it */
    int n_rooms;
    unsigned char **on; /* [n_rooms, max_segments + 1] where on the device a piece is, or is on its
                         * way to; NULL: nowhere */
    struct tec_recall_moves moves;
    struct tec_recall_times times;
    /* For judges: a layer's keys are there; segments were chosen by r->importance. NULL = none. */
    void (*watch)(void *user, const struct tec_recall *r, int layer, bool chosen);
    void *user;
};

enum tec_status tec_recall_create(struct tec_recall *out, struct tec_plan *plan,
                                  struct tec_arena *arena, struct tec_error *err);
void tec_recall_finish(struct tec_recall *recall);

/* Keys and values of the whole prompt into the region, by one rule or that of each group.
 * TEC_INVALID: it does not fit the plan; TEC_NOT_FOUND: a kept piece is gone, the region holds no
 * prompt. */
enum tec_status tec_recall_run(struct tec_recall *recall, const struct tec_recall_input *input,
                               const struct tec_recall_rule *rules,
                               const struct tec_recall_source *source, struct tec_error *err);

/* The same in steps, other launches between them: start, then every layer in order. What the input
 * points to is borrowed until the last. */
enum tec_status tec_recall_start(struct tec_recall *recall, const struct tec_recall_input *input,
                                 const struct tec_recall_rule *rules,
                                 const struct tec_recall_source *source, struct tec_error *err);
enum tec_status tec_recall_layer(struct tec_recall *recall, int layer, struct tec_error *err);

/* Sequences computed by themselves, each seeing only itself: segments, or the segments of a static
 * group joined. Their tokens together fit the plan's segment_tokens. */
struct tec_remember_text {
    const int *ids;
    int n;
};
enum tec_status tec_remember_run(struct tec_plan *plan, const struct tec_remember_text *texts,
                                 int n_texts, struct tec_error *err);

/* K before rotation and V of `tokens` tokens from the first of all texts' on, one layer, to host
 * memory: each [tokens, kv_heads, head_dim] of the plan's dtype. */
void tec_remember_read(struct tec_plan *plan, int first, int tokens, int layer, void *k, void *v);

#endif
