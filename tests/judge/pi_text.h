/* pi_text.h - what the judges of language share: one request decoded with its tokens forced, so
 * that every logit row can be compared, and free runs whose tokens must be equal. */
#ifndef TEC_TESTS_JUDGE_PI_TEXT_H
#define TEC_TESTS_JUDGE_PI_TEXT_H

#include "tests/judge/pi.h"

/* A request of a case: its prefill is done and holds `region`. */
struct tec_pi_request {
    const struct tec_pi_inputs *in;
    struct tec_plan *plan;       /* made with taps, request_slots >= 2 */
    int region, request_slot, n; /* n tokens are decoded */
    const char *name;            /* prefix of its tensors: "A.bidir." */
    float *actions;              /* [horizon, dim] of the prefill's frame */
};

/* Prefill with actions into a fresh region. Actions are kept in r->actions. */
enum tec_status tec_pi_prefill(struct tec_pi *pi, struct tec_pi_request *r, int text, int tail,
                               struct tec_error *err);

/* Decode n + 1 single steps with the expected tokens fed in; compares <name>logits, .last_hidden,
 * .k_rope and .v where the case has them. */
enum tec_status tec_pi_forced(struct tec_pi *pi, const struct tec_pi_request *r,
                              struct tec_error *err);

/* Decode n tokens freely, k at a time, with another request beside it in the same launches (NULL =
 * alone). tokens [n]. */
void tec_pi_free(struct tec_pi *pi, const struct tec_pi_request *r,
                 const struct tec_pi_request *beside, int k, int *tokens);

/* The expected ids of a tensor, or NULL; *n of them. */
const int *tec_pi_ids(struct tec_pi *pi, const char *name, size_t *n);

/* The ids of a free run, got [n], against those of the expected tensor `name`: always in f32; in
 * bf16 where the case's own bf16 run agrees (`entry` is the case's record of the request), else a
 * line says that they are not judged. */
void tec_pi_judge_ids(struct tec_pi *pi, const json_t *entry, const char *name, const int *got,
                      size_t n);

#endif
