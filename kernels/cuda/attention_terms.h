/* attention_terms.h - attention over float32 memory on tensor cores: attention_terms.cu. */
#ifndef TEC_KERNELS_CUDA_ATTENTION_TERMS_H
#define TEC_KERNELS_CUDA_ATTENTION_TERMS_H

#include "kernels/cuda/attention_plan.h"
#include "kernels/cuda/launch.h"

/* For `c` of attention_choose_f32 that has terms. */
void tec_cuda_attention_terms(const struct tec_attention_args *a, const struct attention_choice *c,
                              struct tec_cuda_launch *launch);

#endif
