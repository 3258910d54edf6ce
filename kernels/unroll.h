/* unroll.h - TEC_UNROLL before a loop of constant count, so that its arrays live in registers. */
#ifndef TEC_KERNELS_UNROLL_H
#define TEC_KERNELS_UNROLL_H

#if defined(__clang__)
#define TEC_UNROLL _Pragma("clang loop unroll(full)")
#else
#define TEC_UNROLL _Pragma("GCC unroll 32")
#endif

/* For the bodies of kernels that become several functions, one for each constant argument. */
#define TEC_INLINE static inline __attribute__((always_inline))

#endif
