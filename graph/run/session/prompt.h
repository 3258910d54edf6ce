/* prompt.h - what a chain's prompt is made of and how: texts of an observation through a template
 * and a tokenizer, ids that stand for them, or segments of a memory and what stands behind them.
 * The same for prefills in frames and for those that requests wait for. */
#ifndef TEC_GRAPH_RUN_SESSION_PROMPT_H
#define TEC_GRAPH_RUN_SESSION_PROMPT_H

#include "graph/run/session/session_texts.h"

/* What it is made of; everything is borrowed but what the last two groups hold. */
struct tec_chain_prompt {
    const struct tec_model *model;
    const struct tec_tokenizer *tokenizer; /* NULL: ids stand for texts */
    const struct tec_template *template;
    const struct tec_session_streams *streams;
    struct tec_session_texts texts;
    struct tec_chain_memory *memory; /* NULL: it has none */
    int session;                     /* whose memory it is */
    size_t longest;                  /* bytes of its texts together */
    int most;                        /* tokens, without segments of a memory */
    const char *allows;              /* "robot" or "pipeline": who says so */
    int frame;                       /* tokens that the plan allows, with them */
    int room;                        /* ids before it is cut to its last ones; else `most` */
    bool leads;                      /* a begin token stands before ids that are made up */
    bool always;         /* a stream that has said nothing leaves a prompt all the same */
    int waits;           /* tokens of the text that it waits for; 0 = for none */
    bool cut, keep_last; /* what a robot says of a prompt that is too long */

    int64_t applied;  /* the session's observation that its memory was last changed by */
    const char *name; /* of its only text, else of its prefill: what errors call it */
    struct tec_memory_prompt *remembered; /* [TEC_SESSION_SETS] with a memory, else NULL */

    char *said; /* the last texts that were encoded, one behind the other, and their ids [n] */
    size_t bytes[TEC_MAX_TEXTS], kept[TEC_MAX_TEXTS]; /* of each, before and behind a cut */
    int *ids, n;                                      /* n -1: none yet */
};

/* What it is of, in one observation. */
struct tec_chain_prompt_parts {
    const struct tec_value *values; /* [n_values] */
    size_t n_values;
    struct tec_template_values said; /* texts, and bins of the state */
    bool whole;                      /* no text is missing */
    int pictures;
    int turn;                 /* the set of buffers */
    int stood[TEC_MAX_TEXTS]; /* out, without a tokenizer: ids that stand for each text */
};

/* Room in the arena for a prompt whose first group is there. TEC_MALFORMED, TEC_INVALID for a
 * template that a memory cannot have. */
enum tec_status tec_session_prompt_init(struct tec_chain_prompt *prompt, struct tec_arena *arena,
                                        struct tec_error *err);
void tec_session_prompt_drop(
    struct tec_chain_prompt *prompt); /* what its segments hold is given back */

/* Room that ids of a prompt take, of whatever kind. */
int tec_session_prompt_room(const struct tec_chain_prompt *prompt);

/* Make it: changes of its memory are done, then ids[tec_session_prompt_room] and *n are written; 0
 * where a text is missing. `parts->said` becomes what is left of it where texts are cut.
 * TEC_INVALID for a prompt without tokens, too long, or outside the vocabulary; the name stands
 * before it. */
enum tec_status tec_session_prompt_make(struct tec_chain_prompt *prompt,
                                        struct tec_chain_prompt_parts *parts, int *ids, int *n,
                                        struct tec_arena *scratch, struct tec_error *err);

/* Only encode texts, cut until they fit: values become what is left, *n may be 0. For any thread.
 */
enum tec_status tec_session_prompt_encode(const struct tec_chain_prompt *prompt,
                                          struct tec_template_values *values, int *ids, int *n,
                                          struct tec_arena *scratch, struct tec_error *err);

#endif
