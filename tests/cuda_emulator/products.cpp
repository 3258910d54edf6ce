/* Products by groups of four warps: each warp does its quarter, some time between the issue and the
 * wait. Until then its sums are NaN (whole ones: -1) to the kernel, and what is in shared memory or
 * in a lane's registers when it is done is what is multiplied. */
#include "tests/cuda_emulator/machine.h"

#include <emulated_groups.h>
#include <stdint.h>
#include <string.h>
#include <utility>
#include <vector>

namespace cuda_emulator
{
enum { K = 16, K_S8 = 32, QUARTER = 16, GROUP_WARPS = 4, MOST = 16, LANES = WARP_LANES };

/* A sum, of floats or whole. */
union number {
    float f;
    int i;
};

/* Sums on their way: what they will be, and where each lane has them. */
struct accumulators {
    void *at[LANES];
    int n, group; /* of the last product that adds to them */
    number sums[QUARTER][8 * MOST];
};

/* `ask` is the first lane's, by whose c sums are known. */
struct product {
    product_ask ask;
    int group;
    const unsigned *registers[LANES]; /* of bytes: each lane's four */
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

/* The 16 bytes of row r in the first or second block of a matrix along k. */
static void load_piece(void *to, unsigned long long matrix, int r, int block)
{
    size_t at = (size_t)(matrix & 0x3fffU) << 4, along_k = (size_t)(matrix >> 16 & 0x3fffU) << 4;
    size_t along_rows = (size_t)(matrix >> 32 & 0x3fffU) << 4;
    const unsigned char *from =
        shared_memory + at + (size_t)block * along_k + (size_t)(r / 8) * along_rows;
    check_shared(from, 128, 16, "product_async");
    memcpy(to, from + r % 8 * 16, 16);
}

/* Row r of a matrix, 16 k of bf16, or 32 of bytes. */
static void load_row(float to[K], unsigned long long matrix, int r)
{
    uint16_t row[K];
    for (int block = 0; block < 2; block++)
        load_piece(row + block * (K / 2), matrix, r, block);
    for (int k = 0; k < K; k++)
        to[k] = float_of(row[k]);
}
static void load_row(int8_t to[K_S8], unsigned long long matrix, int r)
{
    for (int block = 0; block < 2; block++)
        load_piece(to + block * (K_S8 / 2), matrix, r, block);
}

static void multiply(accumulators *to, const product_ask &ask, int quarter)
{
    float a[QUARTER][K], b[K][8 * MOST];
    for (int r = 0; r < QUARTER; r++)
        load_row(a[r], ask.a, quarter * QUARTER + r);
    for (int n = 0; n < 8 * ask.n; n++) {
        float row[K];
        load_row(row, ask.b, n);
        for (int k = 0; k < K; k++)
            b[k][n] = row[k];
    }
    for (int r = 0; r < QUARTER; r++)
        for (int k = 0; k < K; k++)
            for (int n = 0; n < 8 * ask.n; n++)
                to->sums[r][n].f += a[r][k] * b[k][n];
}

/* Bytes, a in registers as of mma_s8; sums wrap, as registers do. */
static void multiply_s8(accumulators *to, const product &p)
{
    int8_t a[QUARTER][K_S8];
    for (int lane = 0; lane < LANES; lane++)
        for (int i = 0; i < 4; i++)
            memcpy(&a[lane / 4 + i % 2 * 8][lane % 4 * 4 + i / 2 * 16], &p.registers[lane][i], 4);
    for (int n = 0; n < 8 * p.ask.n; n++) {
        int8_t b[K_S8];
        load_row(b, p.ask.b, n);
        for (int r = 0; r < QUARTER; r++) {
            int sum = 0;
            for (int k = 0; k < K_S8; k++)
                sum += a[r][k] * b[k];
            int before = p.ask.fresh ? 0 : to->sums[r][n].i;
            to->sums[r][n].i = (int)((unsigned)before + (unsigned)sum);
        }
    }
}

/* Between a lane's registers and the sums of the quarter. */
static void exchange(accumulators *s, bool to_lanes)
{
    for (int lane = 0; lane < LANES; lane++)
        for (int i = 0; i < 4 * s->n; i++) {
            unsigned char *own = (unsigned char *)s->at[lane] + (size_t)i * sizeof(number);
            number *sum = &s->sums[lane / 4 + i / 2 % 2 * 8][i / 4 * 8 + lane % 4 * 2 + i % 2];
            if (to_lanes)
                memcpy(own, sum, sizeof *sum);
            else
                memcpy(sum, own, sizeof *sum);
        }
}

static accumulators *find(unsigned w, const void *c)
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
    if (p.ask.registers)
        multiply_s8(find(w, p.ask.c), p);
    else
        multiply(find(w, p.ask.c), p.ask, (int)w % GROUP_WARPS);
}

static void take_sums(unsigned w, void *const deposits[32])
{
    const product_ask *first = (const product_ask *)deposits[0];
    accumulators s = {};
    s.n = first->n;
    for (int lane = 0; lane < LANES; lane++)
        s.at[lane] = ((const product_ask *)deposits[lane])->c;
    exchange(&s, false);
    for (int lane = 0; lane < LANES; lane++)
        memset(s.at[lane], 0xff, 4 * (size_t)s.n * sizeof(number));
    warps[w].sums.push_back(s);
}

static void complete_issue(void *const deposits[32], unsigned)
{
    unsigned w = current->warp;
    const product_ask *first = (const product_ask *)deposits[0];
    product p = {*first, warps[w].groups, {}};
    for (int lane = 0; lane < LANES; lane++) {
        const product_ask *other = (const product_ask *)deposits[lane];
        if (other->a != first->a || other->b != first->b || other->n != first->n ||
            other->fresh != first->fresh)
            fail("product_async: lane %d has other matrices than lane 0", lane);
        p.registers[lane] = other->registers;
    }
    if (!warps[w].fenced)
        fail("product_async without products_begin");
    warps[w].trace = ((warps[w].trace * 31 + first->a) * 31 + first->b) * 31 + first->fresh + 1;
    if (!find(w, first->c))
        take_sums(w, deposits);
    find(w, first->c)->group = warps[w].groups;
    warps[w].waiting.push_back(p);
    while (!warps[w].waiting.empty() &&
           (schedule_order == CUDA_EMULATOR_REVERSE ||
            (schedule_order == CUDA_EMULATOR_RANDOM && random_below(3) == 0)))
        perform(w);
}

void product_issue(product_ask *ask, const char *file, int line)
{
    static const operation what = {"product_async", complete_issue};
    meet(&what, ~0U, ask, file, line);
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
