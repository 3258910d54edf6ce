/* setup.h - the model, and what a cell keeps beside it: the store, blocks, links. */
#ifndef TEC_TESTS_EXPERIMENTS_KEEP_SETUP_H
#define TEC_TESTS_EXPERIMENTS_KEEP_SETUP_H

#include "graph/run/launch/launch_score.h"
#include "tests/experiments/keep/keeping.h"
#include "tests/experiments/keep/questions.h"
#include "tests/experiments/keep/skills.h"

/* One piece of text with its keys and values: [layers] of K, then V, [tokens, row] each. */
struct tec_keeping_slot {
    uint64_t hash; /* of its tokens; 0: empty */
    int tokens, room;
    int ids[TEC_KEEPING_MOST_BLOCK]; /* of a block: its tokens, as far as they are known */
    int n_ids;
    unsigned char *kv;
};

/* Tokens computed to be kept, and how long it took. */
struct tec_keeping_cost {
    int64_t tokens, ns, cpu; /* cpu: processor time of the thread */
    int64_t needed;          /* tokens but those before a block's first changed one */
};

/* Slots of the blocks of one size: by place, or by segment where each is alone. */
struct tec_keeping_shelf {
    int block;
    int64_t step; /* of the trace, when `cost` was */
    struct tec_keeping_cost cost;
    struct tec_keeping_slot slots[TEC_TRACE_SEGMENTS];
};

/* The prompt of a step. */
struct tec_keeping_prompt {
    int *ids, n, query, n_segments;
    struct tec_segment_range segments[TEC_KEEPING_SEGMENTS];
    uint32_t segment[TEC_KEEPING_SEGMENTS]; /* handle in the store, number in the trace */
};

struct tec_keeping_setup {
    struct tec_keeping *suite;
    struct tec_heap *heap;
    struct tec_arena arena; /* for as long as it is open */
    struct tec_device *device;
    struct tec_checkpoint *checkpoint; /* NULL: random weights */
    struct tec_tokenizer *tokenizer;
    struct tec_keeping_questions questions;
    struct tec_keeping_skills skills; /* of the trace; questions have none */
    struct tec_weight_source source;
    struct tec_model *model;
    struct tec_weights *weights;
    struct tec_plan *plan;
    struct tec_recall recall;
    int layers, most;          /* tokens of the longest prompt */
    size_t row;                /* bytes of K of a token at a layer */
    int region, own;           /* of the plan's prefixes: everybody's; that of prefix caching */
    int logits;                /* tensor of the decode part; -1: none */
    float *full, *made, *near; /* [vocab] of the full row, of this one, of its neighbour */
    int best;                  /* the full row's skill */
    struct tec_keeping_slot beginning;
    /* Of a cell. */
    int64_t at;                                  /* the step */
    const struct tec_keeping_question *question; /* of it; NULL: the trace */
    struct tec_store *store;
    struct tec_log_key key;
    char *path;
    bool remote; /* KV is on a server alone */
    struct tec_prefetch *prefetch;
    unsigned char *staging;
    size_t staging_room;
    int64_t step; /* of the trace, when the store's KV was made whole, at these costs */
    struct tec_keeping_cost changed, joined;
    struct tec_keeping_shelf shelves[8];
    int n_shelves;
    struct tec_keeping_prompt prompt;
    int *old_ids, n_old; /* what the prefix region holds */
    unsigned char *sets; /* [layers, segments] of the last row that was chosen */
    double ratios[TEC_KEEPING_LAYERS];
};

enum tec_status tec_keeping_open(struct tec_keeping_setup *w, struct tec_keeping *suite,
                                 struct tec_error *err);
void tec_keeping_close(struct tec_keeping_setup *w);

/* What a cell keeps: an empty store on its link's tier, no blocks. Ends what the last one kept. */
enum tec_status tec_keeping_begin_cell(struct tec_keeping_setup *w,
                                       const struct tec_keeping_cell *cell, struct tec_error *err);
void tec_keeping_end_cell(struct tec_keeping_setup *w);

/* The segments of the trace as the store has them; those that changed, or all in step 0. */
enum tec_status tec_keeping_tell(struct tec_keeping_setup *w, const struct tec_trace *trace,
                                 struct tec_keeping_cell *cell, struct tec_error *err);

/* A question as the prompt. */
enum tec_status tec_keeping_ask(struct tec_keeping_setup *w,
                                const struct tec_keeping_question *question, struct tec_error *err);

/* Ask the store and write the prompt. */
enum tec_status tec_keeping_retrieve(struct tec_keeping_setup *w, const struct tec_trace *trace,
                                     struct tec_keeping_cell *cell, int64_t *took_ns,
                                     struct tec_error *err);

/* Compute what a row lacks: what changed and, apart, groups that became static. Rows that keep the
 * same things are told the same cost: the first one of a step computes for all. */
enum tec_status tec_keeping_refresh_store(struct tec_keeping_setup *w,
                                          struct tec_keeping_cost *changed,
                                          struct tec_keeping_cost *joined, struct tec_error *err);
enum tec_status tec_keeping_refresh_blocks(struct tec_keeping_setup *w, int block,
                                           struct tec_keeping_cost *changed, struct tec_error *err);

/* The prompt in blocks of that size, and their slots. */
int tec_keeping_blocks(struct tec_keeping_setup *w, int block, struct tec_segment_range *places,
                       struct tec_keeping_slot **slots);

/* Compute one text by itself into a slot. */
enum tec_status tec_keeping_fill(struct tec_keeping_setup *w, struct tec_keeping_slot *slot,
                                 const int *ids, int n, struct tec_error *err);

/* What a row made of its prompt. */
struct tec_keeping_answer {
    int64_t ns; /* ranking all skills; of a question, the first token */
    int skill;  /* the likeliest */
    bool right; /* of a question */
};

/* The prompt that was computed last, by that method; logits of the next token into w->made. */
enum tec_status tec_keeping_reply(struct tec_keeping_setup *w, const struct tec_keeping_method *m,
                                  struct tec_keeping_answer *answer, struct tec_error *err);

/* Count whether it is what the full row made. */
void tec_keeping_compare(const struct tec_keeping_setup *w, const struct tec_keeping_answer *answer,
                         struct tec_keeping_row *row);

/* One row of a cell at this step; `counted`: into its figures. */
enum tec_status tec_keeping_step(struct tec_keeping_setup *w, struct tec_keeping_cell *cell,
                                 int row, int64_t retrieve_ns, bool counted, struct tec_error *err);

#endif
