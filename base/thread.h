/* thread.h - threads of the engine's own: they leave it to the program's threads to be asked to
 * end, and have stack enough to run kernels. */
#ifndef TEC_BASE_THREAD_H
#define TEC_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>

/* Bytes of stack that a thread needs which runs kernels: gemm_int4 takes 0.3 MiB. */
enum { TEC_THREAD_STACK = 1 << 20 };

/* Start a thread with SIGINT, SIGTERM and SIGHUP blocked from its first instruction on, and with at
 * least TEC_THREAD_STACK where the system's stacks are smaller (musl: 128 KiB). false: none was
 * started.
 */
bool tec_thread_start(pthread_t *thread, void *(*run)(void *user), void *user);

#endif
