/* Barriers in shared memory and bulk copies that count at them. A copy lands between its issue and
 * the moment at which nobody can go on without it. */
#include "tests/cuda_emulator/machine.h"

#include <emulated_groups.h>
#include <stdint.h>
#include <string.h>
#include <utility>
#include <vector>

namespace cuda_emulator
{
enum { ALIGN = 16, MOST_BYTES = (1 << 20) - 1 };

struct sleeper {
    unsigned thread;
    int parity;
};

struct state_of_barrier {
    const barrier *at;
    int arrivals, left; /* of the running phase */
    long bytes;         /* still to land in it */
    int parity;
    std::vector<sleeper> sleepers;
};

struct bulk {
    void *to;
    const void *from;
    int bytes;
    barrier *at;
};

static std::vector<state_of_barrier> barriers;
static std::vector<bulk> flying; /* oldest first */

static struct {
    std::vector<state_of_barrier> barriers;
    std::vector<bulk> flying;
} aside[MAX_CLUSTER];

void barriers_swap(unsigned place)
{
    std::swap(barriers, aside[place].barriers);
    std::swap(flying, aside[place].flying);
}

void barriers_forget()
{
    barriers.clear();
    flying.clear();
}

static state_of_barrier *find(const barrier *b)
{
    for (state_of_barrier &s : barriers)
        if (s.at == b)
            return &s;
    fail("a barrier that nobody has made");
}

void barrier_make(barrier *b, int arrivals)
{
    check_shared(b, sizeof *b, sizeof *b, "barrier_init");
    if (arrivals < 1 || arrivals > MOST_BYTES)
        fail("barrier_init: %d arrivals", arrivals);
    barriers.push_back({b, arrivals, arrivals, 0, 0, {}});
}

static void end_phase(state_of_barrier *s)
{
    if (s->left > 0 || s->bytes != 0)
        return;
    size_t kept = 0;
    for (const sleeper &one : s->sleepers)
        if (one.parity == s->parity)
            thread_wakes(one.thread);
        else
            s->sleepers[kept++] = one;
    s->sleepers.resize(kept);
    s->parity ^= 1;
    s->left = s->arrivals;
}

void barrier_come(barrier *b, int bytes)
{
    state_of_barrier *s = find(b);
    if (bytes < 0 || bytes > MOST_BYTES)
        fail("barrier_expect: %d bytes", bytes);
    s->bytes += bytes;
    s->left--;
    end_phase(s);
}

void barrier_sleep(barrier *b, int parity, const char *file, int line)
{
    static const operation what = {"barrier_wait", NULL};
    state_of_barrier *s = find(b);
    if (parity != 0 && parity != 1)
        fail("barrier_wait: parity %d", parity);
    if (s->parity != parity)
        return;
    s->sleepers.push_back({current->number, parity});
    thread_sleeps(&what, file, line);
}

static void land(size_t i)
{
    bulk c = flying[i];
    flying.erase(flying.begin() + (ptrdiff_t)i);
    memcpy(c.to, c.from, (size_t)c.bytes);
    state_of_barrier *s = find(c.at);
    s->bytes -= c.bytes;
    end_phase(s);
}

void bulk_issue(void *to, const void *from, int bytes, barrier *b)
{
    if (bytes < ALIGN || bytes % ALIGN)
        fail("copy_bulk: %d bytes; they come in pieces of 16", bytes);
    check_shared(to, (size_t)bytes, ALIGN, "copy_bulk");
    if ((uintptr_t)from % ALIGN)
        fail("copy_bulk: address %p of global memory is not a multiple of 16", from);
    (void)find(b);
    (void)((const volatile unsigned char *)from)[0]; /* the address is bad here, not later */
    (void)((const volatile unsigned char *)from)[bytes - 1];
    flying.push_back({to, from, bytes, b});
    if (schedule_order == CUDA_EMULATOR_FORWARD ||
        (schedule_order == CUDA_EMULATOR_RANDOM && random_below(3) == 0))
        land(random_below((unsigned)flying.size()));
}

bool bulk_flies()
{
    return !flying.empty();
}

bool bulk_land_one()
{
    if (flying.empty())
        return false;
    land(random_below((unsigned)flying.size()));
    return true;
}
} // namespace cuda_emulator
