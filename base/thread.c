/* thread.c - threads of the engine's own. */
#include "base/thread.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

bool tec_thread_start(pthread_t *thread, void *(*run)(void *user), void *user)
{
    pthread_attr_t attributes;
    sigset_t others, before;
    size_t size = 0;
    sigemptyset(&others);
    sigaddset(&others, SIGINT);
    sigaddset(&others, SIGTERM);
    sigaddset(&others, SIGHUP);
    if (pthread_attr_init(&attributes) != 0)
        return false;
    pthread_attr_getstacksize(&attributes, &size);
    if (size < TEC_THREAD_STACK)
        pthread_attr_setstacksize(&attributes, TEC_THREAD_STACK);
    bool held = pthread_sigmask(SIG_BLOCK, &others, &before) == 0;
    bool started = pthread_create(thread, &attributes, run, user) == 0;
    if (held)
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return started;
}

/* Is there stack enough for kernels? The first thread's grows as far as its limit. */
static bool has_stack(void)
{
    const char *here = __builtin_frame_address(0);
    pthread_attr_t attributes;
    void *low = NULL;
    size_t size = 0;
    if (syscall(SYS_gettid) == getpid())
        return tec_thread_check_first(NULL) == TEC_OK;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return false;
    pthread_attr_getstack(&attributes, &low, &size);
    pthread_attr_destroy(&attributes);
    size_t left = (uintptr_t)here - (uintptr_t)low; /* a stack grows downward */
    return left <= size && left >= TEC_KERNEL_STACK + (64 << 10);
}

bool tec_thread_run(void *(*run)(void *user), void *user)
{
    pthread_t thread;
    if (has_stack()) {
        run(user);
        return true;
    }
    return tec_thread_start(&thread, run, user) && pthread_join(thread, NULL) == 0;
}

void __attribute__((noinline)) tec_thread_warm_stack(void)
{
    enum { PAGE = 4096 }; /* the smallest there is */
    volatile unsigned char room[TEC_KERNEL_STACK];
    for (size_t i = sizeof room; i > 0; i -= i < PAGE ? i : PAGE) /* a stack grows downward */
        room[i - 1] = 0;
}

enum tec_status tec_thread_check_first(struct tec_error *err)
{
    struct rlimit limit = {.rlim_cur = RLIM_INFINITY};
    getrlimit(RLIMIT_STACK, &limit);
    if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= TEC_THREAD_STACK)
        return TEC_OK;
    return tec_fail(err, TEC_UNSUPPORTED,
                    "the stack is limited to %llu KiB, and kernels need %d: raise the limit with "
                    "`ulimit -s 8192` (systemd: LimitSTACK=8M)",
                    (unsigned long long)limit.rlim_cur / 1024, TEC_THREAD_STACK / 1024);
}

static enum tec_status pin(pthread_t thread, const struct tec_scheduling *how, int lane,
                           struct tec_error *err)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int i = 0; i < how->n_cores; i++)
        if (lane < 0 || lane % how->n_cores == i)
            CPU_SET((size_t)how->cores[i], &set);
    int bad = pthread_setaffinity_np(thread, sizeof set, &set);
    return bad ? tec_fail(err, TEC_INVALID, "core %d: this process may not run there: %s",
                          how->cores[lane < 0 ? 0 : lane % how->n_cores], strerror(bad))
               : TEC_OK;
}

enum tec_status tec_thread_schedule(pthread_t thread, const struct tec_scheduling *how, int lane,
                                    struct tec_error *err)
{
    const struct sched_param param = {.sched_priority = how->priority};
    if (how->n_cores)
        TEC_TRY(pin(thread, how, lane, err));
    int bad = how->priority ? pthread_setschedparam(thread, SCHED_FIFO, &param) : 0;
    return bad ? tec_fail(err, TEC_UNSUPPORTED,
                          "SCHED_FIFO with priority %d: %s; it takes a limit of rtprio of %d "
                          "(systemd: LimitRTPRIO=%d) or CAP_SYS_NICE",
                          how->priority, strerror(bad), how->priority, how->priority)
               : TEC_OK;
}

struct tec_scheduling tec_scheduling_above(const struct tec_scheduling *how)
{
    return (struct tec_scheduling){.priority = how->priority ? how->priority + 1 : 0};
}

enum tec_status tec_lock_memory(struct tec_error *err)
{
    struct rlimit limit = {0};
    if (mlockall(MCL_CURRENT) == 0 && mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) == 0)
        return TEC_OK;
    int why = errno;
    getrlimit(RLIMIT_MEMLOCK, &limit);
    return tec_fail(err, TEC_UNSUPPORTED,
                    "memory cannot be locked: %s; the limit of memlock is %llu KiB (systemd: "
                    "LimitMEMLOCK=infinity)",
                    strerror(why), (unsigned long long)limit.rlim_cur / 1024);
}
