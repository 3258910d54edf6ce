/* thread.c - threads of the engine's own: the stack that kernels have there. */
#include "base/thread.h"

#include "kernels/team.h"
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

static void on_lane(void *faults, int lane)
{
    if (lane > 0)
        *(long *)faults = faults_of_a_kernel();
}

TEST(so_does_one_on_a_lane)
{
    enum { PAGES = TEC_KERNEL_STACK / 4096 };
    long faults = PAGES;
    struct tec_heap heap = {0};
    struct tec_team *team;
    struct tec_error err;
    if (THREADS_WATCHED)
        SKIP("the sanitizer has pages of its own for each page");
    REQUIRE(tec_team_create(&team, 2, 0, &heap, &err) == TEC_OK);
    tec_team_run(team, on_lane, &faults);
    tec_team_destroy(team);
    CHECK_INT(faults, <, PAGES / 8);
}

/* Touch all that a kernel may, and say where. */
static void *work(void *at)
{
    faults_of_a_kernel();
    *(pthread_t *)at = pthread_self();
    return NULL;
}

static void *run_work(void *elsewhere)
{
    pthread_t at = pthread_self();
    bool ran = tec_thread_run(work, &at);
    *(bool *)elsewhere = ran && !pthread_equal(at, pthread_self());
    return NULL;
}

TEST(little_stack_means_another_thread)
{
    bool elsewhere = true;
    pthread_attr_t little;
    pthread_t thread;
    run_work(&elsewhere); /* the first thread has enough */
    CHECK(!elsewhere);
    elsewhere = true;
    REQUIRE(tec_thread_start(&thread, run_work, &elsewhere));
    pthread_join(thread, NULL);
    CHECK(!elsewhere);
    REQUIRE(pthread_attr_init(&little) == 0);
    REQUIRE(pthread_attr_setstacksize(&little, 128 << 10) == 0);
    REQUIRE(pthread_create(&thread, &little, run_work, &elsewhere) == 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&little);
    CHECK(elsewhere);
}

TEST(the_first_threads_limit_is_checked)
{
    struct rlimit before, less;
    struct tec_error err;
    REQUIRE(getrlimit(RLIMIT_STACK, &before) == 0);
    less = before;
    less.rlim_cur = TEC_THREAD_STACK - 1;
    REQUIRE(setrlimit(RLIMIT_STACK, &less) == 0);
    CHECK_INT(tec_thread_check_first(&err), ==, TEC_UNSUPPORTED);
    CHECK(strstr(err.message, "ulimit -s") && strstr(err.message, "LimitSTACK"));
    less.rlim_cur = TEC_THREAD_STACK;
    REQUIRE(setrlimit(RLIMIT_STACK, &less) == 0);
    CHECK_INT(tec_thread_check_first(&err), ==, TEC_OK);
    setrlimit(RLIMIT_STACK, &before);
}

TAP_MAIN
