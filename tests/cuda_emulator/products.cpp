/* Products by groups of four warps, from shared memory: each warp does its quarter, some time
 * between the issue and the wait. Until then its sums are NaN to the kernel. */
#include "tests/cuda_emulator/machine.h"

#include <emulated_groups.h>
#include <stdint.h>
#include <string.h>
#include <utility>
#include <vector>

namespace cuda_emulator
{
enum { K = 16, QUARTER = 16, GROUP_WARPS = 4, MOST = 16, LANES = WARP_LANES };

/* Sums on their way: what they will be, and where each lane has them. */
struct accumulators {
    float *at[LANES];
    int n, group; /* of the last product that adds to them */
    float sums[QUARTER][8 * MOST];
};

struct product {
    float *c; /* the first lane's, by which sums are known */
    int n, group;
    unsigned long long a, b;
};

static struct {
    std::vector<product> waiting; /* oldest first */
    std::vector<accumulators> sums;
    int groups, left;
    uint64_t trace; /* of all that was asked for */
    bool fenced, sleeping;
} warps[MAX_WARPS];
static unsigned used; /* warps of this block that may have some */
static unsigned turn; /* whose products land next */

static struct {
    decltype(warps) of;
    unsigned used, turn;
} aside[MAX_CLUSTER];

void products_swap(unsigned place)
{
    std::swap(warps, aside[place].of);
    std::swap(used, aside[place].used);
    std::swap(turn, aside[place].turn);
}

static unsigned take_part()
{
    used = used > current->warp ? used : current->warp + 1;
    return current->warp;
}

void products_forget()
{
    for (unsigned w = 0; w < used; w++)
        warps[w] = {};
    used = turn = 0;
}

unsigned long long matrix_of(const void *first, int along_k, int along_rows)
{
    check_shared(first, 128, 16, "shared_matrix");
    if (along_k % 16 || along_rows % 16 || along_k < 0 || along_rows < 0 || along_k >> 18 ||
        along_rows >> 18)
        fail("shared_matrix: %d bytes along k, %d along rows", along_k, along_rows);
    unsigned long long at = (unsigned long long)((const unsigned char *)first - shared_memory);
    return at >> 4 | (unsigned long long)(along_k >> 4) << 16 |
           (unsigned long long)(along_rows >> 4) << 32;
}

static float float_of(uint16_t half)
{
    uint32_t bits = (uint32_t)half << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* Row r of a matrix, 16 k of it. */
static void load_row(float to[K], unsigned long long matrix, int r)
{
    size_t at = (size_t)(matrix & 0x3fffU) << 4, along_k = (size_t)(matrix >> 16 & 0x3fffU) << 4;
    size_t along_rows = (size_t)(matrix >> 32 & 0x3fffU) << 4;
    for (int h = 0; h < K / 8; h++) {
        const unsigned char *block =
            shared_memory + at + (size_t)h * along_k + (size_t)(r / 8) * along_rows;
        uint16_t row[8];
        check_shared(block, 128, 16, "product_async");
        memcpy(row, block + r % 8 * 16, sizeof row);
        for (int i = 0; i < 8; i++)
            to[h * 8 + i] = float_of(row[i]);
    }
}

static void multiply(accumulators *to, const product &p, int quarter)
{
    float a[QUARTER][K], b[K][8 * MOST];
    for (int r = 0; r < QUARTER; r++)
        load_row(a[r], p.a, quarter * QUARTER + r);
    for (int n = 0; n < 8 * p.n; n++) {
        float row[K];
        load_row(row, p.b, n);
        for (int k = 0; k < K; k++)
            b[k][n] = row[k];
    }
    for (int r = 0; r < QUARTER; r++)
        for (int k = 0; k < K; k++)
            for (int n = 0; n < 8 * p.n; n++)
                to->sums[r][n] += a[r][k] * b[k][n];
}

/* Between a lane's registers and the sums of the quarter. */
static void exchange(accumulators *s, bool to_lanes)
{
    for (int lane = 0; lane < LANES; lane++)
        for (int i = 0; i < 4 * s->n; i++) {
            float *own = &s->at[lane][i];
            float *sum = &s->sums[lane / 4 + i / 2 % 2 * 8][i / 4 * 8 + lane % 4 * 2 + i % 2];
            *(to_lanes ? own : sum) = *(to_lanes ? sum : own);
        }
}

static accumulators *find(unsigned w, const float *c)
{
    for (accumulators &s : warps[w].sums)
        if (s.at[0] == c)
            return &s;
    return NULL;
}

/* The oldest product of a warp. */
static void perform(unsigned w)
{
    product p = warps[w].waiting.front();
    warps[w].waiting.erase(warps[w].waiting.begin());
    multiply(find(w, p.c), p, (int)w % GROUP_WARPS);
}

struct deposit {
    float *c;
    int n;
    unsigned long long a, b;
};

static void take_sums(unsigned w, void *const deposits[32])
{
    const deposit *first = (const deposit *)deposits[0];
    accumulators s = {};
    s.n = first->n;
    for (int lane = 0; lane < LANES; lane++)
        s.at[lane] = ((const deposit *)deposits[lane])->c;
    exchange(&s, false);
    for (int lane = 0; lane < LANES; lane++)
        memset(s.at[lane], 0xff, 4 * (size_t)s.n * sizeof(float));
    warps[w].sums.push_back(s);
}

static void complete_issue(void *const deposits[32], unsigned)
{
    unsigned w = current->warp;
    const deposit *first = (const deposit *)deposits[0];
    for (int lane = 1; lane < LANES; lane++) {
        const deposit *other = (const deposit *)deposits[lane];
        if (other->a != first->a || other->b != first->b || other->n != first->n)
            fail("product_async: lane %d has other matrices than lane 0", lane);
    }
    if (!warps[w].fenced)
        fail("product_async without products_begin");
    warps[w].trace = (warps[w].trace * 31 + first->a) * 31 + first->b + 1;
    if (!find(w, first->c))
        take_sums(w, deposits);
    find(w, first->c)->group = warps[w].groups;
    warps[w].waiting.push_back({first->c, first->n, warps[w].groups, first->a, first->b});
    while (!warps[w].waiting.empty() &&
           (schedule_order == CUDA_EMULATOR_REVERSE ||
            (schedule_order == CUDA_EMULATOR_RANDOM && random_below(3) == 0)))
        perform(w);
}

void product_issue(float *c, int n, unsigned long long a, unsigned long long b, const char *file,
                   int line)
{
    static const operation what = {"product_async", complete_issue};
    deposit d = {c, n, a, b};
    meet(&what, ~0U, &d, file, line);
}

static void complete_fence(void *const[32], unsigned)
{
    warps[take_part()].fenced = true;
}

static void complete_close(void *const[32], unsigned)
{
    warps[current->warp].groups++;
}

/* What was waited for is done: sums of which all is done go back. */
static void settle(unsigned w)
{
    int done = warps[w].groups - warps[w].left;
    while (!warps[w].waiting.empty() && warps[w].waiting.front().group < done)
        perform(w);
    size_t kept = 0;
    for (size_t i = 0; i < warps[w].sums.size(); i++) {
        accumulators &s = warps[w].sums[i];
        if (s.group >= done)
            warps[w].sums[kept++] = s;
        else
            exchange(&s, true);
    }
    warps[w].sums.resize(kept);
    warps[w].fenced = false;
}

static void complete_settle(void *const deposits[32], unsigned)
{
    unsigned w = take_part();
    warps[w].left = *(const int *)deposits[0];
    warps[w].sleeping = schedule_order == CUDA_EMULATOR_FORWARD ||
                        (schedule_order == CUDA_EMULATOR_RANDOM && random_below(2));
    if (!warps[w].sleeping)
        settle(w);
}

void products_fence(const char *file, int line)
{
    static const operation what = {"products_begin", complete_fence};
    meet(&what, ~0U, NULL, file, line);
}

void products_close(const char *file, int line)
{
    static const operation what = {"products_commit", complete_close};
    meet(&what, ~0U, NULL, file, line);
}

void products_settle(int left, const char *file, int line)
{
    static const operation what = {"products_wait", complete_settle};
    meet(&what, ~0U, &left, file, line);
    if (warps[current->warp].sleeping)
        thread_sleeps(&what, file, line);
}

bool products_land_one()
{
    for (unsigned i = 0; i < used; i++) {
        unsigned w = turn++ % used; /* warps keep pace, or the last one alone would be late */
        if (warps[w].sleeping) {
            warps[w].sleeping = false;
            settle(w);
            for (unsigned lane = 0; lane < LANES; lane++)
                thread_wakes(w * LANES + lane);
            return true;
        }
    }
    return false;
}

const char *products_wrong()
{
    for (unsigned w = 0; w < used; w++) {
        if (!warps[w].waiting.empty() || !warps[w].sums.empty())
            return "ends, while products are on their way";
        if (warps[w].trace != warps[w / GROUP_WARPS * GROUP_WARPS].trace)
            return "warps of a group have asked for different products";
    }
    return NULL;
}
} // namespace cuda_emulator
