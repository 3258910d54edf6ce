/* thread.c - threads of the engine's own: the stack that kernels have there. */
#include "base/thread.h"
#include "tests/tap.h"

#include <sys/resource.h>

/* What a kernel does that takes all of it. */
static long __attribute__((noinline)) faults_of_a_kernel(void)
{
    volatile unsigned char room[TEC_KERNEL_STACK - 4096];
    struct rusage before = {0}, after = {0};
    getrusage(RUSAGE_THREAD, &before);
    for (size_t i = 0; i < sizeof room; i += 4096)
        room[i] = 1;
    getrusage(RUSAGE_THREAD, &after);
    return after.ru_minflt - before.ru_minflt;
}

static void *kernel(void *faults)
{
    tec_thread_warm_stack();
    *(long *)faults = faults_of_a_kernel();
    return NULL;
}

TEST(a_kernel_finds_its_stack_in_memory)
{
    enum { PAGES = TEC_KERNEL_STACK / 4096 };
    long faults = PAGES;
    pthread_t thread;
    if (THREADS_WATCHED)
        SKIP("the sanitizer has pages of its own for each page");
    REQUIRE(tec_thread_start(&thread, kernel, &faults));
    pthread_join(thread, NULL);
    CHECK_INT(faults, <, PAGES / 8);
}

TAP_MAIN
