/* thread.h - threads of the engine's own: they leave it to the program's threads to be asked to
 * end, and have stack enough to run kernels. */
#ifndef TEC_BASE_THREAD_H
#define TEC_BASE_THREAD_H

#include "base/error.h"

#include <pthread.h>
#include <stdbool.h>

/* Bytes of stack that kernels take at most (of a tile unit bf16 products 1.7 MiB, 8-bit ones 0.5;
 * conv3x3 0.65, pairs of bf16 0.5, gemm_int4 and gemm_int8 0.3), and that a thread needs which runs
 * them. */
enum { TEC_KERNEL_STACK = 1760 << 10, TEC_THREAD_STACK = 2304 << 10 };

/* Start a thread with SIGINT, SIGTERM and SIGHUP blocked from its first instruction on, and with at
 * least TEC_THREAD_STACK where the system's stacks are smaller (musl: 128 KiB). false: none was
 * started.
 */
bool tec_thread_start(pthread_t *thread, void *(*run)(void *user), void *user);

/* Run what runs kernels: on this thread, if there is stack enough for them, else on one that is
 * started for it and waited for. false: none could be started. */
bool tec_thread_run(void *(*run)(void *user), void *user);

/* On a thread with TEC_THREAD_STACK: bring what kernels take of its stack into memory, so that no
 * frame waits for it. */
void tec_thread_warm_stack(void);

/* TEC_UNSUPPORTED, with the setting that would do, where this process' limit leaves its first
 * thread less than TEC_THREAD_STACK. */
enum tec_status tec_thread_check_first(struct tec_error *err);

enum { TEC_MAX_CORES = 64 };

/* How threads that must not wait for others are scheduled (sched(7)). Zeroed: as all others are. */
struct tec_scheduling {
    int priority; /* 1 .. 99: SCHED_FIFO; 0: the usual */
    int n_cores;  /* cores that they may run on; 0: all */
    int cores[TEC_MAX_CORES];
};

/* Schedule a thread; `lane` 0, 1, ...: on that one of the cores, counted around; -1: on any of
 * them. TEC_UNSUPPORTED for what this process may not ask for, with the setting that would do;
 * TEC_INVALID for a core that it has not. */
enum tec_status tec_thread_schedule(pthread_t thread, const struct tec_scheduling *how, int lane,
                                    struct tec_error *err);

/* For a thread that must come before those, and computes little: on any core. */
struct tec_scheduling tec_scheduling_above(const struct tec_scheduling *how);

/* Keep all memory of this process in memory, what it has now (read in at once) and what it takes
 * later (from its first use on). TEC_UNSUPPORTED with the limit that is in the way. */
enum tec_status tec_lock_memory(struct tec_error *err);

#endif
