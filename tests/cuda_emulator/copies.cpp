/* cp.async: a copy lands some time between its issue and the wait that covers its group. */
#include "tests/cuda_emulator/machine.h"

#include <stdint.h>
#include <string.h>
#include <vector>

namespace cuda_emulator
{
enum { BYTES = 16 };

struct copy {
    void *to;
    const void *from; /* NULL: zeros */
    int group;
};

static struct {
    std::vector<copy> flying; /* oldest first */
    int groups;               /* closed so far */
} copies[MAX_THREADS];
static unsigned used; /* threads of this block that may have some */

static void land(const copy &c)
{
    if (c.from)
        memcpy(c.to, c.from, BYTES);
    else
        memset(c.to, 0, BYTES);
}

void copies_forget()
{
    for (unsigned t = 0; t < used; t++) {
        copies[t].flying.clear();
        copies[t].groups = 0;
    }
    used = 0;
}

void copy_issue(void *to, const void *from)
{
    check_shared(to, BYTES, BYTES, "copy16_async");
    if ((uintptr_t)from % BYTES)
        fail("copy16_async: address %p of global memory is not a multiple of 16", from);
    unsigned t = current->number;
    used = used > t ? used : t + 1;
    copy c = {to, from, copies[t].groups};
    if (from) { /* the address is bad here, not where it lands */
        (void)((const volatile uint64_t *)from)[0];
        (void)((const volatile uint64_t *)from)[1];
    }
    if (schedule_order == CUDA_EMULATOR_REVERSE ||
        (schedule_order == CUDA_EMULATOR_RANDOM && random_below(2)))
        land(c);
    else
        copies[t].flying.push_back(c);
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
} // namespace cuda_emulator
