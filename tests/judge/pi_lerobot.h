/* pi_lerobot.h - judges what a LeRobot checkpoint's own processors do to raw data. */
#ifndef TEC_TESTS_JUDGE_PI_LEROBOT_H
#define TEC_TESTS_JUDGE_PI_LEROBOT_H

#include "tests/judge/verify.h"

/* The "processing" part of a case, when it has one: prompt text, token ids by the saved tokenizer,
 * normalised state, robot actions; read from case.json, inputs.safetensors, expected.safetensors
 * and the checkpoint that the case names. Reports each comparison, also what could not be compared.
 */
void tec_verify_lerobot_processing(struct tec_verify *v);

#endif
