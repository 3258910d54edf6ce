/* unroll.h - TEC_UNROLL before a loop of constant count, so that its arrays live in registers. */
#ifndef TEC_KERNELS_UNROLL_H
#define TEC_KERNELS_UNROLL_H

/* TEC_RELOAD: what was loaded before is loaded again when it is needed; clang would keep it in
 * registers and spill sums instead. */
#if defined(__clang__)
#define TEC_UNROLL _Pragma("clang loop unroll(full)")
#define TEC_RELOAD() __asm__ volatile("" ::: "memory")
#else
#define TEC_UNROLL _Pragma("GCC unroll 32")
#define TEC_RELOAD() ((void)0)
#endif

#endif
