/* cp.async: a copy lands some time between its issue and the wait that covers its group, or the
 * moment at which nobody can go on without the barrier that is told of it. */
#include "tests/cuda_emulator/machine.h"

#include <algorithm>
#include <emulated_groups.h>
#include <stdint.h>
#include <string.h>
#include <vector>

namespace cuda_emulator
{
enum { BYTES = 16 };

struct copy {
    void *to;
    const void *from;
    int bytes; /* of 16; zeros behind them */
    int group;
    barrier *told; /* NULL: a copy; else what arrives when those before have landed */
    bool landed;   /* before anything has waited for it */
    const char *file;
    int line;
};

static struct {
    std::vector<copy> flying; /* not waited for, oldest first */
    int groups;               /* closed so far */
} copies[MAX_THREADS];
static unsigned used; /* threads of this block that may have some */

static struct {
    decltype(copies) of;
    unsigned used;
} aside[MAX_CLUSTER];

void copies_swap(unsigned place)
{
    unsigned most = used > aside[place].used ? used : aside[place].used;
    std::swap_ranges(copies, copies + most, aside[place].of);
    std::swap(used, aside[place].used);
}

static void land(copy &c)
{
    if (c.landed)
        return;
    c.landed = true;
    if (c.told) {
        barrier_come(c.told, 0);
        return;
    }
    memset(c.to, 0, BYTES);
    if (c.bytes > 0)
        memcpy(c.to, c.from, (size_t)c.bytes);
}

void copies_forget()
{
    for (unsigned t = 0; t < used; t++) {
        copies[t].flying.clear();
        copies[t].groups = 0;
    }
    used = 0;
}

static bool all_landed(const std::vector<copy> &flying)
{
    return std::all_of(flying.begin(), flying.end(), [](const copy &c) { return c.landed; });
}

/* This one is the latest of the running thread; it may land at once if all before it have. A
 * barrier that is told waits for them in the thread's place. */
static void begin(copy c)
{
    unsigned t = current->number;
    std::vector<copy> &flying = copies[t].flying;
    used = used > t ? used : t + 1;
    bool last = !c.told || all_landed(flying);
    if (last && (schedule_order == CUDA_EMULATOR_REVERSE ||
                 (schedule_order == CUDA_EMULATOR_RANDOM && random_below(2))))
        land(c);
    if (c.told && c.landed)
        flying.clear();
    else
        flying.push_back(c);
}

void copy_issue(void *to, const void *from, int bytes, const char *file, int line)
{
    check_shared(to, BYTES, BYTES, "copy16_async");
    if (bytes < 0 || bytes > BYTES)
        fail("copy16_async: %d bytes", bytes);
    if (bytes > 0 && (uintptr_t)from % BYTES)
        fail("copy16_async: address %p of global memory is not a multiple of 16", from);
    if (bytes > 0) { /* the address is bad here, not where it lands */
        (void)((const volatile unsigned char *)from)[0];
        (void)((const volatile unsigned char *)from)[bytes - 1];
    }
    begin({to, from, bytes, copies[current->number].groups, nullptr, false, file, line});
}

void copies_arrive(barrier *b)
{
    begin({nullptr, nullptr, 0, copies[current->number].groups, b, false, nullptr, 0});
}

bool copies_land_told()
{
    for (unsigned t = 0; t < used; t++) {
        std::vector<copy> &flying = copies[t].flying;
        for (size_t i = 0; i < flying.size(); i++)
            if (flying[i].told) {
                std::vector<copy> landing(flying.begin(), flying.begin() + (ptrdiff_t)i + 1);
                flying.erase(flying.begin(), flying.begin() + (ptrdiff_t)i + 1);
                for (copy &c : landing)
                    land(c);
                return true;
            }
    }
    return false;
}

void copy_close_group()
{
    unsigned t = current->number;
    used = used > t ? used : t + 1;
    copies[t].groups++;
}

void copy_settle(int left)
{
    std::vector<copy> &flying = copies[current->number].flying;
    size_t done = 0;
    while (done < flying.size() && flying[done].group < copies[current->number].groups - left)
        land(flying[done++]);
    flying.erase(flying.begin(), flying.begin() + (ptrdiff_t)done);
}

/* A copy that has landed here may be on its way on a device. */
void copies_end()
{
    const std::vector<copy> &flying = copies[current->number].flying;
    size_t from = flying.size();
    while (from > 0 && !flying[from - 1].told)
        from--;
    if (from < flying.size())
        fail("ends without waiting for its copy at %s:%d (%zu in all)", base(flying[from].file),
             flying[from].line, flying.size() - from);
}
} // namespace cuda_emulator
