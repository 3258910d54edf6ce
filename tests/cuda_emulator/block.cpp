/* One block: each thread runs on a fiber until it must wait, then another one is chosen.
 *
 * Fibers change directly from one to the next. A thread gets a fiber when it first runs, and a
 * fiber whose thread has ended runs the next fresh thread without any change: a kernel whose
 * threads never meet is a loop over them. */
#include "tests/cuda_emulator/machine.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <utility>

namespace cuda_emulator
{
struct warp {
    unsigned exists, ready, waiting, exited; /* masks of lanes */
    const thread *first;                     /* of those that wait */
    bool mixed;                              /* they wait for different things */
    void *deposit[WARP_LANES];
};

thread *current;
dim3 block_size;

static thread threads[MAX_THREADS];
static warp warps[MAX_WARPS];
static const std::function<void()> *kernel;

struct meeting {
    const char *name;
    unsigned arrived; /* from: */
    const char *file;
    int line;
};

struct block_state {
    unsigned threads, exited;
    unsigned runnable; /* mask of warps with ready lanes */
    unsigned warp;     /* the one that runs */
    unsigned patience; /* RANDOM: turns before another warp runs */
    bool released;     /* release_next() was called */
    meeting threads_meet, cluster_meets;
    votes cast, result;
};
static block_state block;

static fiber fibers[MAX_THREADS];
static fiber *idle[MAX_THREADS]; /* begun, without a thread */
static unsigned begun, n_idle;

/* The blocks of a cluster that do not run, by their place in it. */
static struct {
    thread threads[MAX_THREADS];
    warp warps[MAX_WARPS];
    block_state block;
    fiber fibers[MAX_THREADS];
    fiber *idle[MAX_THREADS];
    unsigned begun, n_idle;
} aside[MAX_CLUSTER];

void fail(const char *format, ...)
{
    char what[400], line[800];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    snprintf(line, sizeof line, "cuda emulator: %s: block (%u,%u,%u) thread (%u,%u,%u): %s",
             kernel_name(), block_index.x, block_index.y, block_index.z, current->index.x,
             current->index.y, current->index.z, what);
    report(line);
    dropped = true;
    begun = n_idle = 0; /* their frames are dropped too */
    fiber_abandon(current->fiber, &host);
}

const char *base(const char *file)
{
    const char *last = file;
    for (const char *c = file; *c; c++)
        if (*c == '/')
            last = c + 1;
    return last;
}

static unsigned choose_warp(unsigned runnable)
{
    if (schedule_order == CUDA_EMULATOR_FORWARD)
        return (unsigned)__builtin_ctz(runnable);
    if (schedule_order == CUDA_EMULATOR_REVERSE)
        return 31U - (unsigned)__builtin_clz(runnable);
    unsigned skip = random_below((unsigned)__builtin_popcount(runnable));
    while (skip--)
        runnable &= runnable - 1;
    return (unsigned)__builtin_ctz(runnable);
}

static unsigned choose_lane(unsigned ready)
{
    if (schedule_order == CUDA_EMULATOR_FORWARD)
        return (unsigned)__builtin_ctz(ready);
    if (schedule_order == CUDA_EMULATOR_REVERSE)
        return 31U - (unsigned)__builtin_clz(ready);
    unsigned turn = random_below(WARP_LANES);
    unsigned turned = turn ? ready >> turn | ready << (WARP_LANES - turn) : ready;
    return ((unsigned)__builtin_ctz(turned) + turn) % WARP_LANES;
}

/* Who runs next, NULL when nobody can. A warp runs until it is stuck, at RANDOM not so long. */
static thread *choose()
{
    while (!block.runnable && block.exited < block.threads)
        if (!bulk_land_one() && !copies_land_told() && !products_land_one())
            return NULL;
    if (!block.runnable)
        return NULL;
    if (schedule_order == CUDA_EMULATOR_RANDOM && bulk_flies() && random_below(64) == 0)
        bulk_land_one();
    bool stay = block.runnable >> block.warp & 1U;
    if (schedule_order == CUDA_EMULATOR_RANDOM && block.patience-- == 0)
        stay = false;
    if (!stay) {
        block.warp = choose_warp(block.runnable);
        block.patience = random_below(8 * WARP_LANES);
    }
    return &threads[block.warp * WARP_LANES + choose_lane(warps[block.warp].ready)];
}

static void set_ready(unsigned w, unsigned lanes)
{
    warps[w].ready |= lanes;
    block.runnable |= 1U << w;
}

static void not_ready(const thread *t)
{
    warps[t->warp].ready &= ~(1U << t->lane);
    if (!warps[t->warp].ready)
        block.runnable &= ~(1U << t->warp);
}

/* Nobody can run, and not all have ended. */
[[noreturn]] static void stuck()
{
    for (unsigned w = 0; w < MAX_WARPS; w++)
        if (warps[w].waiting) {
            unsigned lane = (unsigned)__builtin_ctz(warps[w].waiting);
            current = &threads[w * WARP_LANES + lane];
            const call *at = &current->at;
            fail("%s at %s:%d waits for lanes %08x; %08x have not come", at->what->name,
                 base(at->file), at->line, at->lanes, at->lanes & ~warps[w].waiting);
        }
    for (unsigned i = 0; i < block.threads; i++)
        if (threads[i].asleep) {
            current = &threads[i];
            fail("%s at %s:%d: what it waits for does not come", current->at.what->name,
                 base(current->at.file), current->at.line);
        }
    fail("nobody can run");
}

static void thread_ends();
static void run_threads();

static fiber *take_fiber()
{
    if (n_idle)
        return idle[--n_idle];
    fiber *f = &fibers[begun];
    if (!f->stack)
        fiber_create(f, begun);
    fiber_begin(f, begun, run_threads);
    begun++;
    return f;
}

static void change_to(thread *next, fiber *from)
{
    if (!next->fiber)
        next->fiber = take_fiber();
    current = next;
    work.switches++;
    fiber_change(from, next->fiber);
}

/* What a fiber does: threads, one after the other; in between it may lie idle. */
static void run_threads()
{
    for (;;) {
        (*kernel)();
        thread_ends();
        fiber *own = current->fiber;
        thread *next = choose();
        if (next && !next->fiber) {
            next->fiber = own;
            current = next;
            continue;
        }
        idle[n_idle++] = own;
        if (next)
            change_to(next, own);
        else if (block.exited == block.threads)
            fiber_change(own, &host);
        else
            stuck();
    }
}

/* The running thread waits: others run, or other blocks of the cluster. */
static void wait()
{
    thread *self = current, *next = choose();
    if (!next && block.cluster_meets.arrived == block.threads) {
        fiber_change(self->fiber, &host);
        return;
    }
    if (!next)
        stuck();
    if (next != self)
        change_to(next, self->fiber);
}

/* Not all of the block come to where the others wait for one another. */
static void check_meeting(const meeting &m)
{
    if (m.arrived)
        fail("ends, while %u threads wait in %s at %s:%d", m.arrived, m.name, base(m.file), m.line);
}

static void thread_ends()
{
    thread *t = current;
    warp *w = &warps[t->warp];
    unsigned bit = 1U << t->lane;
    not_ready(t);
    w->exited |= bit;
    block.exited++;
    for (unsigned left = w->waiting; left; left &= left - 1) {
        const call *at = &threads[t->warp * WARP_LANES + (unsigned)__builtin_ctz(left)].at;
        if (at->lanes & bit)
            fail("ends, while %s at %s:%d waits for it", at->what->name, base(at->file), at->line);
    }
    check_meeting(block.threads_meet);
    check_meeting(block.cluster_meets);
    if (!t->waited)
        fail("ends without wait_previous()");
    copies_end();
    if (block.exited == block.threads && bulk_flies())
        fail("ends, while bulk copies are on their way");
    const char *wrong = block.exited == block.threads ? products_wrong() : NULL;
    if (wrong)
        fail("%s", wrong);
    if (block.exited == block.threads && !block.released)
        fail("no thread of the block called release_next()");
}

void thread_sleeps(const operation *what, const char *file, int line)
{
    current->at = {what, 0, file, line};
    current->asleep = true;
    not_ready(current);
    wait();
}

void thread_wakes(unsigned number)
{
    threads[number].asleep = false;
    set_ready(threads[number].warp, 1U << threads[number].lane);
}

static bool same(const call *a, const call *b)
{
    return a->lanes == b->lanes && a->what == b->what && a->line == b->line;
}

/* Lanes that wait for this one must wait in the same call. */
static void check_others(const warp *w, const thread *t)
{
    for (unsigned left = w->waiting & t->at.lanes; left; left &= left - 1) {
        unsigned lane = (unsigned)__builtin_ctz(left);
        const call *other = &threads[t->warp * WARP_LANES + lane].at;
        if (!same(other, &t->at) && other->lanes >> t->lane & 1U)
            fail("%s at %s:%d (lanes %08x) meets lane %u in %s at %s:%d (lanes %08x)",
                 t->at.what->name, base(t->at.file), t->at.line, t->at.lanes, lane,
                 other->what->name, base(other->file), other->line, other->lanes);
    }
}

static bool all_here(const warp *w, const thread *t)
{
    if ((w->waiting & t->at.lanes) != t->at.lanes)
        return false;
    for (unsigned left = w->mixed ? t->at.lanes : 0; left; left &= left - 1)
        if (!same(&threads[t->warp * WARP_LANES + (unsigned)__builtin_ctz(left)].at, &t->at))
            return false;
    return true;
}

/* Those that have met go on. */
static void part(warp *w, const thread *t)
{
    w->waiting &= ~t->at.lanes;
    set_ready(t->warp, t->at.lanes);
    w->mixed = w->waiting != 0;
    if (w->waiting)
        w->first = &threads[t->warp * WARP_LANES + (unsigned)__builtin_ctz(w->waiting)];
}

void meet(const operation *what, unsigned lanes, void *deposit, const char *file, int line)
{
    thread *t = current;
    warp *w = &warps[t->warp];
    unsigned bit = 1U << t->lane;
    t->at = {what, lanes, file, line};
    w->deposit[t->lane] = deposit;
    if (!(lanes & bit))
        fail("%s at %s:%d is for lanes %08x, without this one", what->name, base(file), line,
             lanes);
    if (lanes & (~w->exists | w->exited))
        fail("%s at %s:%d is for lanes %08x, of which %08x have ended or never were", what->name,
             base(file), line, lanes, lanes & (~w->exists | w->exited));
    if (!w->waiting)
        w->first = t;
    else if (w->mixed || !same(&w->first->at, &t->at)) {
        check_others(w, t);
        w->mixed = true;
    }
    w->waiting |= bit;
    not_ready(t);
    if (all_here(w, t)) {
        what->complete(w->deposit, lanes);
        part(w, t);
    }
    wait();
}

/* The running thread comes to a meeting; true: it is the last one. */
static bool arrive(meeting &m, const char *name, const char *file, int line)
{
    if (block.exited)
        fail("%s at %s:%d, after %u threads of the block have ended", name, base(file), line,
             block.exited);
    if (!m.arrived)
        m = {name, 0, file, line};
    else if (m.line != line)
        fail("%s at %s:%d meets %s at %s:%d", name, base(file), line, name, base(m.file), m.line);
    not_ready(current);
    return ++m.arrived == block.threads;
}

static void all_go_on(meeting &m)
{
    m.arrived = 0;
    for (unsigned w = 0; w * WARP_LANES < block.threads; w++)
        set_ready(w, warps[w].exists);
}

votes meet_block(int vote, const char *file, int line)
{
    if (!block.threads_meet.arrived)
        block.cast = {0, 1, 0};
    bool last = arrive(block.threads_meet, "__syncthreads", file, line);
    block.cast.count += vote != 0;
    block.cast.all &= vote != 0;
    block.cast.any |= vote != 0;
    if (last) {
        block.result = block.cast;
        all_go_on(block.threads_meet);
    }
    wait();
    return block.result;
}

void meet_cluster(const char *file, int line)
{
    arrive(block.cluster_meets, "meet_cluster", file, line);
    wait();
}

void previous_awaited()
{
    current->waited = true;
}

void next_released()
{
    block.released = true;
}

void block_shape(dim3 size)
{
    block_size = size;
    block.threads = size.x * size.y * size.z;
    for (unsigned i = 0; i < block.threads; i++) {
        thread *t = &threads[i];
        t->index = {i % size.x, i / size.x % size.y, i / (size.x * size.y)};
        t->number = i;
        t->lane = i % WARP_LANES;
        t->warp = i / WARP_LANES;
    }
    for (unsigned w = 0; w < MAX_WARPS; w++) {
        unsigned from = w * WARP_LANES;
        unsigned lanes = block.threads > from ? block.threads - from : 0;
        warps[w].exists = lanes >= WARP_LANES ? ~0U : (1U << lanes) - 1U;
    }
}

bool block_run(const std::function<void()> &body)
{
    kernel = &body;
    block.exited = block.runnable = 0;
    block.threads_meet.arrived = block.cluster_meets.arrived = 0;
    block.released = false;
    block.warp = block.patience = 0;
    for (unsigned i = 0; i < block.threads; i++) {
        threads[i].waited = threads[i].asleep = false;
        threads[i].fiber = NULL;
    }
    for (unsigned w = 0; w < MAX_WARPS; w++) {
        warps[w].ready = warps[w].waiting = warps[w].exited = 0;
        warps[w].mixed = false;
        if (warps[w].exists)
            set_ready(w, warps[w].exists);
    }
    block.warp = choose_warp(block.runnable);
    work.threads += block.threads;
    change_to(choose(), &host);
    return block.cluster_meets.arrived > 0;
}

bool block_go_on()
{
    all_go_on(block.cluster_meets);
    block.warp = choose_warp(block.runnable);
    change_to(choose(), &host);
    return block.cluster_meets.arrived > 0;
}

void block_swap(unsigned place)
{
    auto &other = aside[place];
    std::swap(threads, other.threads);
    std::swap(warps, other.warps);
    std::swap(block, other.block);
    std::swap(fibers, other.fibers);
    std::swap(idle, other.idle);
    std::swap(begun, other.begun);
    std::swap(n_idle, other.n_idle);
}

void blocks_drop()
{
    for (auto &other : aside)
        other.begun = other.n_idle = 0;
}
} // namespace cuda_emulator
