/* openvla.h - what the judges of models that act by tokens share: a frame's pictures and prompt,
 * and every tensor of the case by its name. */
#ifndef TEC_TESTS_JUDGE_OPENVLA_H
#define TEC_TESTS_JUDGE_OPENVLA_H

#include "tests/judge/pi.h"
#include "tests/judge/pi_text.h"
#include "tests/judge/taps.h"

/* What one prefill and K - 1 decode steps left behind. */
struct tec_openvla_run {
    struct tec_pi *pi;
    struct tec_plan *plan;
    int rows, steps; /* rows of the prefix; decode steps, of which the first repeats the last row */
    /* [steps][taps of the decode part] first rows, in the order of its taps. */
    float ***row;
};

/* Picture `name` of the inputs as the checkpoint's processor makes it; NULL with the failure. */
const uint8_t *tec_openvla_picture(struct tec_pi *pi, const char *name, struct tec_error *err);

/* The ids of the inputs' tensor `name`, and the case's empty token where they do not end with it.
 */
const int *tec_openvla_prompt(struct tec_pi *pi, const char *name, int *n, struct tec_error *err);

/* The line of taps/openvla.def for a tensor that is no tower's. */
bool tec_openvla_tap(const char *tensor, struct tec_tap_found *found);

/* The values of a tensor of the case ("vision.dino.embed", "llm.layer0.k_rope", "logits") as it is
 * stored there; *n of them. NULL: there is no such thing. */
const float *tec_openvla_tensor(struct tec_openvla_run *run, const char *tensor, size_t *n);

/* [rows, kv heads, head_dim] to [kv heads, rows, head_dim]; NULL stays NULL. */
const float *tec_openvla_by_head(struct tec_pi *pi, const struct tec_stack *stack,
                                 const float *rows, size_t n);

#endif
