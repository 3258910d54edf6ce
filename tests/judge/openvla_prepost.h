/* openvla_prepost.h - what stands around a model that acts by tokens: prompts, pictures, actions.
 */
#ifndef TEC_TESTS_JUDGE_OPENVLA_PREPOST_H
#define TEC_TESTS_JUDGE_OPENVLA_PREPOST_H

#include "base/store/checkpoint.h"
#include "tests/judge/verify.h"

/* Judges, for the frames of the case v->json, what needs no model: the prompt's ids by template and
 * tokenizer (where the checkpoint has one: by each of its files), the picture of a session against
 * the processor's words, actions from the token ids to the last bit, what is said of ids outside
 * the range and of a text that ends inside an action; and every line of detokenise.json, where the
 * case's folder has it. Actions are those of case.json, and of the tensor `frameN.action` of
 * `expected` where it has one. Reports each; a failure to do so is reported as well. */
void tec_verify_openvla_prepost(struct tec_verify *v, const struct tec_checkpoint *checkpoint,
                                const struct tec_tensors *inputs,
                                const struct tec_tensors *expected);

#endif
