/* cuda_tier.h - the CUDA kernels as one more tier of the harness: each call is a launch and a wait.
 *
 * Built with nvcc it needs a GPU; built with the emulator it runs here, slowly, in an order of
 * threads that cuda_tier_schedule chooses. Built without CUDA there is none. */
#ifndef TEC_TESTS_KERNELS_CUDA_TIER_H
#define TEC_TESTS_KERNELS_CUDA_TIER_H

#include "kernels/cuda/row_digits_room.h"
#include "kernels/kernels.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cuda_tier_kind { CUDA_TIER_NONE, CUDA_TIER_EMULATED, CUDA_TIER_REAL };

/* Opens the first device. When there is none, *why says so. */
enum cuda_tier_kind cuda_tier_open(const char **why);
void cuda_tier_close(void);

/* Functions that launch where part.lane is 0 and wait, and do nothing for other lanes. */
struct tec_kernels cuda_tier_table(void);

/* A product, `product`, with what is in front of it (NULL: nothing) and behind it, in one kernel;
 * false: these are not done together, and nothing ran. `left`: cuda_tier_leave has left the sums of
 * squares of the norm's x. */
bool cuda_tier_chain(enum tec_kernel_id product, const struct tec_norm_args *norm,
                     const struct tec_gemm_args *gemm, enum tec_kernel_id next, const void *args,
                     bool left);
/* A product that leaves the sums of squares of its y; all others are unset. */
void cuda_tier_leave(enum tec_kernel_id product, const struct tec_gemm_args *gemm);

/* Start the commands of a list as a capture of them would, and wait; the kernels that were started.
 */
struct tec_capture;
int cuda_tier_list(const struct tec_capture *list);

/* The digits and units of rows first .. first + count - 1 of a->x, as products of bytes read them,
 * into `to`, which says what is there before; false: there is no such device. */
bool cuda_tier_digits(const struct tec_gemm_args *a, const struct tec_cuda_digits *form,
                      const int *order, int first, int count, void *to, size_t size);

/* Whether products of many rows read x as terms that are in memory. */
bool cuda_tier_reads_terms(void);

/* The most rows with which this product would go together with the norm in front of it. */
int cuda_tier_norm_rows(enum tec_kernel_id product, const struct tec_gemm_args *gemm, bool left);
/* Whether a product goes together with this rope_bf16 behind it. */
bool cuda_tier_rope_fits(enum tec_kernel_id product, const struct tec_gemm_args *gemm,
                         const struct tec_rope_args *rope);

/* What went wrong since the last question, or NULL. */
const char *cuda_tier_trouble(void);

/* Emulated: 0, 1, 2 and a seed, as in cuda_emulator.h. */
enum { CUDA_TIER_SCHEDULES = 3 };
void cuda_tier_schedule(int order, uint64_t seed);

/* Launchers plan for a device like this one (it may not ask for more than the real one has); 0, 0:
 * as it is. Bytes must not change. */
void cuda_tier_plan_for(int capability, int processors);

/* Let launchers count with so many bytes for partial sums, and for terms, at most what there are;
 * 0: with all. */
void cuda_tier_room(size_t partials, size_t terms);

/* Blocks of split products in clusters where they find room (at the start), or never. */
void cuda_tier_clusters(bool wanted);

/* Emulated: from now on as a device of this compute capability would be used; 0: as it is. */
void cuda_tier_like(int capability);

/* Memory that host and kernels share, aligned to 64. */
void *cuda_tier_alloc(size_t size);
void cuda_tier_free(void *at);

#endif
