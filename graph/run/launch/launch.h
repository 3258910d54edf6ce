/* launch.h - one replay of a part: fill its frame table, copy it, run. The frame loop, the judges
 * and the measurements all go through here. Nothing here allocates or blocks. */
#ifndef TEC_GRAPH_RUN_LAUNCH_LAUNCH_H
#define TEC_GRAPH_RUN_LAUNCH_LAUNCH_H

#include "graph/compile/plan.h"

/* The inputs of a prefill, ready for the device. Pictures are those of valid cameras only, in the
 * model's slot order; ids are the prompt without padding. */
struct tec_prefix_input {
    int n_pictures;
    const uint8_t *picture[TEC_MAX_CAMERAS]; /* u8 [size, size, 3], or f32 in its bytes */
    int n_text;
    const int *ids;
    /* Of a model with tokens around pictures: bit i is the i-th pair of them, 1 = a picture is
     * between them, the next of `picture`; n_around 0 = a pair a picture. */
    int n_around;
    unsigned around;
    const float *state; /* [tec_model_state] of a model whose prefix has it; NULL = zeros */
};

/* A prompt, and the region that its keys go to. */
struct tec_prefix_place {
    int region;
    const struct tec_prefix_input *input;
    bool known; /* the rows of its pictures are those that a plan of its model kept last; where one
                 * prompt of a plan that shares them is launched */
};

/* The prompt's first id; 0 where there is none, as in a model that reads no text. */
static inline int tec_prefix_first(const struct tec_prefix_input *o)
{
    return o->n_text > 0 ? o->ids[0] : 0;
}

/* Rows of the prefix that the observation fills. */
int tec_prefix_rows(const struct tec_plan *plan, const struct tec_prefix_input *o);

/* TEC_INVALID, in words, when it does not fit the plan or an id is outside the vocabulary. */
enum tec_status tec_prefix_check(const struct tec_plan *plan, const struct tec_prefix_input *o,
                                 struct tec_error *err);

/* Of a model whose prompt has a token for each picture: are they as many, and is there a picture
 * and a text where layers read the two apart? TEC_INVALID, in words. Part of tec_prefix_check. */
enum tec_status tec_prefix_check_marks(const struct tec_model *model,
                                       const struct tec_prefix_input *o, struct tec_error *err);

/* Makes n ids a prompt for so many pictures: the first ones become their tokens, where the model
 * has one, and no other is. n > pictures. */
void tec_prefix_mark(const struct tec_model *model, int *ids, int n, int pictures);

/* The start values of a frame's actions. */
struct tec_action_inputs {
    const float *noise; /* [horizon, dim]; its first n_fixed rows are given actions */
    int n_fixed;        /* 0 .. the spec's fixed */
    const float
        *previous;      /* [n_previous, dim] of an earlier chunk, for a spec with guidance; and */
    const float *pulls; /* [horizon] how much each row of this one is pulled to it, 0 .. 1 */
    int n_previous;     /* rows beyond them are pulled to 0; 0 = no guidance */
    const float *state; /* [tec_model_state], normalised and padded; NULL = zeros */
    int text, tail; /* decoded tokens that the actions also see, and their first slot; 0 = none */
};

/* Run FRAME or PREFIX into a prefix region that the caller holds. `actions` is ignored by PREFIX.
 */
void tec_launch_prefix(struct tec_plan *plan, struct tec_plan_part *part, int region,
                       const struct tec_prefix_input *o, const struct tec_action_inputs *actions,
                       struct tec_replay *replay);

/* Run FRAME for n observations, each into a region of its own: [n] each, at most part->batch. */
void tec_launch_prefixes(struct tec_plan *plan, struct tec_plan_part *part,
                         const struct tec_prefix_place *places,
                         const struct tec_action_inputs *actions, int n, struct tec_replay *replay);

/* Run ACTION over `rows` of a prefix that are complete in a region. */
void tec_launch_action(struct tec_plan *plan, struct tec_plan_part *part, int region, int rows,
                       const struct tec_action_inputs *actions, struct tec_replay *replay);

/* Run slice `at` of a PREFIX that is in slices, or all of one that is not: the first takes the
 * observation, the others go on with what the one before left. Slices of a part run in order, from
 * the first to the last or to another first. mark_ns[TEC_MARK_PREFILL] is the end of the slice. */
void tec_launch_slice(struct tec_plan *plan, struct tec_plan_part *part, int at,
                      const struct tec_prefix_place *place, struct tec_replay *replay);
int tec_part_slices(const struct tec_plan_part *part); /* at least 1 */

/* Copy the chunk that the last launch of FRAME or ACTION made: [horizon, dim]. And that of one of
 * several observations. */
void tec_launch_actions(struct tec_plan *plan, const struct tec_plan_part *part, float *chunk);
void tec_launch_actions_of(struct tec_plan *plan, const struct tec_plan_part *part, int at,
                           float *chunk);

/* How a request's tokens are chosen: temperature 0, the likeliest. */
struct tec_sampling {
    float temperature, top_p; /* top_p 1: all */
    int top_k;                /* 0: all */
    uint64_t seed;
};

/* A request as the device advances it. */
struct tec_row_state {
    int token; /* next input */
    int pos, slot, visible;
    int region, prefix; /* prefix region and its tokens */
    int tail;           /* first private slot */
    int left, done;     /* tokens it may still make; 1 when finished */
    int eos;            /* end token, -1 = none */
    int64_t request;    /* whose it is; for the caller */
    int produced;       /* tokens made so far; kept by a virtual device */
    const int *prompt;  /* the rest of a prompt of its own: [waiting], borrowed */
    int waiting;
    int prompt_tokens; /* of that prompt, in all */
    int steps;         /* that it took part in, in its last launch */
    struct tec_sampling sampling;
    int place;      /* in the plan's trie; -1 = any text */
    unsigned *used; /* the plan's, of its request slot: tokens that it has read or made; or NULL */
};

/* A request at its start: its first step repeats the last token of the prompt. */
void tec_row_start(struct tec_row_state *row, const struct tec_plan *plan, int region, int prefix,
                   int last_token, int request_slot, int max_tokens, int eos);

/* Tokens that it has read: its prompt. The plan must have a penalty for this to matter. */
void tec_row_saw(struct tec_row_state *row, const struct tec_plan *plan, const int *ids, int n);

/* Before its first step: it reads a prompt of its own behind the prefix first, n tokens, 0 to the
 * plan's spec.prompt_tokens, borrowed until they are read. The plan's text is causal. */
void tec_row_prompt(struct tec_row_state *row, const int *ids, int n);

/* Advance n requests by k steps in one launch of the smallest captured batch that holds them; rows
 * are updated. tokens[i * k ..] gets what row i made, made[i] how many. n <= the part's batch. */
void tec_launch_decode(struct tec_plan *plan, struct tec_plan_part *part,
                       struct tec_row_state *const *rows, int n, int k, int *tokens, int *made,
                       struct tec_replay *replay);

#endif
