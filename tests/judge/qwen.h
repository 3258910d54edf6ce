/* qwen.h - what the judge of text models keeps of a case. */
#ifndef TEC_TESTS_JUDGE_QWEN_H
#define TEC_TESTS_JUDGE_QWEN_H

#include "tests/judge/pi.h"
#include "tests/judge/pi_text.h"

enum { TEC_QWEN_PROMPTS = 8, TEC_QWEN_STEPS = 64, TEC_QWEN_TEXT = 256 };

/* A prompt of the case, and the ids that the case expects of it. */
struct tec_qwen_prompt {
    const char *name;    /* prefix of its tensors: "prompt0.", "" */
    const json_t *entry; /* holds greedy, greedy_penalty, generate */
    const int *tokens;   /* of the case, one a row; in.o.ids has one a picture */
    int n_tokens;
    struct tec_pi_inputs in;
    struct tec_pi_request request;
    bool counts; /* this dtype's tokens must be the expected ones */
};

struct tec_qwen {
    struct tec_pi *pi;
    struct tec_plan *plan, *penal; /* without the repetition penalty; with it, or NULL */
    bool packed;                   /* the case's weights are of 4 bits */
    int far;                       /* first position of the far pass; 0 = there is none */
    int n;
    struct tec_qwen_prompt prompts[TEC_QWEN_PROMPTS];
};

/* The ids of a list of an entry; *n of them. NULL: there is no such list. */
const int *tec_qwen_ids(const struct tec_qwen *q, const json_t *entry, const char *key, int *n);

/* The pictures of prompt `name`, and its ids with one token for each of them. */
enum tec_status tec_qwen_pictures(struct tec_qwen *q, struct tec_qwen_prompt *p,
                                  struct tec_error *err);

/* The rows of a tap [rows of the prompt, n / rows] as they stand in the sequence, in the arena:
 * those of pictures lie before the others. */
const float *tec_qwen_in_order(const struct tec_qwen *q, const struct tec_qwen_prompt *p,
                               const float *got, size_t n);

/* Compare rows of logits with the case's. No step says what follows inside a picture: those rows
 * are left out, the case's `norm` has them. */
void tec_qwen_compare_logits(struct tec_qwen *q, const struct tec_qwen_prompt *p, const char *name,
                             const float *logits);

/* Tensors of the first prompt, in one causal pass: taps, and logits of each row. */
enum tec_status tec_qwen_tensors(struct tec_qwen *q, struct tec_error *err);

/* The prompt as one pass whose positions begin at `far`; then tap `tap` of a decode step for each
 * of its rows, in the case's arena: a step repeats the row over the keys before it. */
enum tec_status tec_qwen_prefill(struct tec_qwen *q, struct tec_qwen_prompt *p, int far,
                                 struct tec_error *err);
float *tec_qwen_row_logits(struct tec_qwen *q, const struct tec_qwen_prompt *p, int far,
                           const char *tap);

/* The case's other files of configuration give the same logits. */
enum tec_status tec_qwen_variants(struct tec_qwen *q, struct tec_error *err);

/* Ids of the prompts' texts by the checkpoint's tokenizer, where the case has texts. */
enum tec_status tec_qwen_texts(struct tec_qwen *q, struct tec_error *err);

/* Tokens, and the logits that chose them. */
enum tec_status tec_qwen_tokens(struct tec_qwen *q, struct tec_error *err);

/* A row of a prompt before its first step. */
struct tec_row_state tec_qwen_row(const struct tec_qwen *q, struct tec_plan *plan,
                                  const struct tec_qwen_prompt *p, int eos);

/* Tap `name` of the single-row decode part, its first row, to `out`. */
void tec_qwen_tap(const struct tec_qwen *q, struct tec_plan *plan, const char *name, float *out);

/* The unpacked 4-bit weights of the case. */
enum tec_status tec_qwen_weights(struct tec_qwen *q, struct tec_error *err);

#endif
