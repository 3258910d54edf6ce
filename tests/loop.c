/* loop.c - proves that from tick to frame end nothing allocates, locks or blocks, counted over many
 * frames; to wait for lanes that compute is all that may.
 *
 * Every allocation and lock of the process is seen, and every system call but a few is forbidden.
 */
#include "base/clock.h"
#include "kernels/device_kind.h"
#include "policies/host/policy.h"
#include "tests/allocations.h"
#include "tests/loop_frame.h"
#include "tests/tiny.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static struct tec_error err;

/* --- every allocation and lock of the process ------------------------------------------------ */

static long allocated_or_freed(void)
{
    return allocations->calls + allocations->frees;
}

static bool unwatched(void)
{
    if (!ALLOCATIONS_SEEN)
        tap.skip = "a sanitizer has taken the allocator over";
    return !ALLOCATIONS_SEEN;
}

TEST(the_watch_sees_allocations)
{
    if (unwatched())
        return;
    long before = allocated_or_freed();
    void *volatile p = malloc(32);
    free(p);
    CHECK_INT(allocated_or_freed() - before, ==, 2);
}

/* How many frames: under a sanitizer, which sees nothing new in the same frame again, a fiftieth.
 */
static int frames_of(int n)
{
    return ALLOCATIONS_SEEN ? n : n / 50;
}

/* --- frames ---------------------------------------------------------------------------------- */

static struct tiny tiny;
static struct tiny_observation observations[3];

static void open_tiny(int threads, int spin_us)
{
    REQUIRE(tiny_open(&tiny, "pi05", false, threads, spin_us, &err));
    for (int i = 0; i < 3; i++)
        tiny_observe(&observations[i], tiny.model, (uint64_t)i + 40);
}

struct sums {
    int64_t tokens, missed, refused, released;
};

static void count_release(void *user, int action, const float *chunk,
                          const struct tec_frame_record *record)
{
    (void)action;
    struct sums *s = user;
    (void)chunk, (void)record;
    s->released++;
}

static void run_frames(struct tec_loop *loop, int first, int n, int64_t *fake_ns, struct sums *s)
{
    for (int f = first; f < first + n; f++) {
        if (fake_ns)
            *fake_ns = (int64_t)f * 50000000;
        const struct tec_frame_record *r =
            loop_frame(loop, f % 5 == 4 ? NULL : &observations[f % 3].input, fake_ns ? *fake_ns : 0,
                       f % 7 == 0 ? 3U : 1U);
        s->tokens += r->tokens;
        s->missed += r->missed;
        s->refused += r->refused;
    }
}

static void frames_are_quiet(const char *name, bool virtual, int warm, int frames)
{
    static const struct tec_policy_limits patient = {.soft_us = 100000, .hard_us = 200000};
    int64_t now = 0;
    struct sums sums = {.tokens = 0};
    struct tec_policy *policy;
    struct tec_virtual costs = {.clock_ns = &now,
                                .plan = tiny.plan,
                                .prefill_ns = 9000000,
                                .action_ns = 21000000,
                                .step_ns = 1500000};
    struct tec_loop_options o = tiny_loop(&tiny);
    struct tec_loop *loop;
    REQUIRE(tec_policy_open(&policy, name, ".", &tiny.topology, &patient, NULL, 0, &tiny_heap,
                            &err) == TEC_OK);
    o.chains[0].executor = virtual ? tec_executor_virtual(&costs) : tec_executor_real(tiny.plan);
    o.planner = tec_policy_planner(policy);
    o.period_ns = virtual ? 50000000 : 0;
    o.actions[0].deadline_ns = virtual ? 45000000 : 0;
    o.released = count_release;
    o.user = &sums;
    REQUIRE(tec_loop_create(&loop, &o, &tiny_heap, &err) == TEC_OK);
    run_frames(loop, 0, warm, virtual ? &now : NULL, &sums);
    long before = allocated_or_freed(), locked = allocations->locks;
    int64_t asked = tiny_heap.calls, by_script = tec_policy_allocations(policy);
    run_frames(loop, warm, frames, virtual ? &now : NULL, &sums);
    CHECK_INT(allocated_or_freed() - before, ==, 0);
    CHECK_INT(allocations->locks - locked, ==, 0);
    CHECK_INT(tiny_heap.calls - asked, ==, 0);
    CHECK_INT(tec_policy_allocations(policy) - by_script, ==, 0);
    CHECK_INT(tec_policy_report(policy)->failures, ==, 0);
    CHECK_INT(sums.released, >=, frames * 4 / 5);
    CHECK_INT(sums.tokens, >, frames);
    tec_loop_destroy(loop);
    tec_policy_close(policy);
}

TEST(virtual_frames_allocate_nothing)
{
    open_tiny(1, 0);
    frames_are_quiet("oxygen", true, 200, frames_of(100000));
    frames_are_quiet("isolated", true, 200, 2000);
    tiny_close(&tiny);
}

TEST(real_frames_allocate_nothing)
{
    open_tiny(2, 200);
    frames_are_quiet("oxygen", false, 20, frames_of(1000));
    tiny_close(&tiny);
    CHECK_INT(tiny_heap.live, ==, 0);
}

/* --- system calls ---------------------------------------------------------------------------- */

#if defined(__x86_64__)
#define THIS_MACHINE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define THIS_MACHINE AUDIT_ARCH_AARCH64
#endif

#if defined(THIS_MACHINE) && ALLOCATIONS_SEEN
#define ALLOW(call)                                        \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##call, 0, 1), \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

/* From here on the calling thread may wake others, offer its time slice, ask which processor it is
 * on (a system call where the C library does not know) and for its processor time (after a policy's
 * call that took long: was it the policy, or was the thread interrupted?) and end; any other system
 * call kills the process, a wait on a futex too. None of these can block. One thing may: to sleep
 * on a word of the team, for lanes that are in the middle of their parts. */
static bool forbid_calls(const struct tec_team *team)
{
    enum { WORDS_OF_A_TEAM = 4096 };
    uint64_t first = (uint64_t)(uintptr_t)team;
    uint32_t high = (uint32_t)(first >> 32), low = (uint32_t)first;
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, THIS_MACHINE, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(sched_yield),
        ALLOW(getcpu),
        ALLOW(clock_gettime),
        ALLOW(exit_group),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_futex, 0, 7),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FUTEX_WAKE_PRIVATE, 8, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FUTEX_WAIT_BITSET_PRIVATE, 0, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0]) + 4),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, high, 0, 2),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, low, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, low + WORDS_OF_A_TEAM, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const struct sock_fprog program = {sizeof code / sizeof code[0], code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

enum { QUIET = 0, NO_FILTER = 77, NOT_OPENED = 78, WRONG = 79 };

/* Run in a process of its own, with worker lanes that park at once, so that waking them is seen. */
static int frames_under_filter(int frames, const char *policy_name, bool then_write)
{
    struct sums sums = {.tokens = 0};
    struct tec_loop *loop;
    struct tec_policy *policy;
    int beside = strcmp(policy_name, "parallel") == 0;
    if (!tiny_open_split(&tiny, "pi05", false, 2, beside, 0, &err) ||
        tec_policy_open(&policy, policy_name, ".", &tiny.topology, &(struct tec_policy_limits){0},
                        NULL, 0, &tiny_heap, &err) != TEC_OK)
        return NOT_OPENED;
    for (int i = 0; i < 3; i++)
        tiny_observe(&observations[i], tiny.model, (uint64_t)i + 40);
    struct tec_loop_options o = tiny_loop(&tiny);
    o.chains[0].executor = tiny_executor(&tiny);
    o.planner = tec_policy_planner(policy);
    o.released = count_release;
    o.user = &sums;
    if (tec_loop_create(&loop, &o, &tiny_heap, &err) != TEC_OK)
        return NOT_OPENED;
    run_frames(loop, 0, 10, NULL, &sums);
    if (!forbid_calls(tiny.device->team))
        return NO_FILTER;
    run_frames(loop, 10, frames, NULL, &sums);
    if (then_write)
        (void)!write(STDERR_FILENO, "#\n", 2);
    return sums.tokens > frames ? QUIET : WRONG;
}

static int child_status(int frames, const char *policy, bool then_write)
{
    int status = 0;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        _exit(frames_under_filter(frames, policy, then_write));
    REQUIRE(child > 0 && waitpid(child, &status, 0) == child);
    return status;
}

static void frames_make_no_call(const char *policy)
{
    int status = child_status(300, policy, false);
    if (WIFEXITED(status) && WEXITSTATUS(status) == NO_FILTER) {
        tap.skip = "this kernel has no seccomp filters";
        return;
    }
    CHECK(WIFEXITED(status));
    CHECK_INT(WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), ==, QUIET);
    status = child_status(10, policy, true); /* the filter bites */
    CHECK(WIFSIGNALED(status));
}

TEST(a_frame_makes_no_system_call_but_waking)
{
    frames_make_no_call("oxygen");
}

TEST(nor_does_a_frame_of_two_partitions)
{
    frames_make_no_call("parallel");
}
#endif

TAP_MAIN
