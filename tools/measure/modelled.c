/* modelled.c - the model of one kernel's time. */
#include "tools/measure/modelled_start.h"

#include "kernels/cuda/gemm_int4_choice.h"
#include "kernels/cuda/gemm_int8_choice.h"
#include "kernels/int4.h"

/* --- constants -------------------------------------------------------------------------------
 *
 * Times are microseconds on an H100 at CLOCK, fitted to the kernels that doc/roofline.md names; on
 * another machine what waits for instructions goes with its clock. The shares of `mma` have no
 * measurement behind them. */
static const double CLOCK = 1980; /* MHz */

static const double START = 1.1;        /* a kernel behind one alike, overlapped */
static const double BEHIND_OTHER = 2.4; /* what it takes more behind another one */
static const double LOOP_START = 1.0;   /* what it takes more where none overlap */

/* The sums of a split of a product by warp groups, with what each group of 8 rows adds. Blocks of a
 * cluster meet once, and have some splits on their way at once: an assumption, and by the code. */
static const double SPLIT = 0.19, SPLIT_ROWS = 0.063, MEET = 0.6;
enum { SPLITS_TOGETHER = 8 };

/* Of many rows: the share of the clocks that gemm_tiles.def has for a step, and what surrounds the
 * steps of a wave. */
static const double TERMS_STEP = 0.80, WIDE_STEP = 0.96, TERMS_WAVE = 7.6, TERMS_ROPE = 14.7;

/* Chains of float32 weights: the share of the multiply-adds' rate, of squares of windows too, and
 * what a step takes at least. Nobody measured these kernels. */
static const double CHAIN_SHARE = 0.4, SQUARE_SHARE = 0.2, CHAIN_STEP = 0.8;

/* Other products: what a step takes at least, and what surrounds them. */
static const double MMA_STEP = 0.3, MMA_AROUND = 1.5;

/* Products of bytes: how many times the bf16 rate, by vendors' figures; where float32 sums halve
 * that of bf16 products (capability 8.6, 8.9 and 12.0), twice as many; and not more than what a
 * multiprocessor multiplies. Of many rows: what a step takes at least for each stage that is on its
 * way. None of it was measured. */
enum { BYTE_RATE = 2, BYTE_RATE_HALVED = 4, SCHEDULERS = 4 };
static const double DIGITS_WAIT = 0.8;

/* Multiply-adds of bytes a clock that a multiprocessor has, dense, from a capability on to the next
 * line's: by vendors' figures but for 10.0 to 11.0, where 2048 is a guess: `mma` of bytes was
 * checked by nobody, and the vendor's figure is of other instructions. */
static const struct {
    int capability;
    double adds;
} byte_adds[] = {{80, 2048}, {86, 1024},  {87, 2048}, {89, 1024},
                 {90, 4096}, {100, 2048}, {120, 1024}};

/* --- a start --------------------------------------------------------------------------------- */

/* Blocks that find room on a multiprocessor at once: threads, registers, shared memory (with what
 * the system takes of it), and the kernel's own bound. */
static int resident_of(const struct tec_chip *chip, const struct tec_grid *g)
{
    enum { REGISTERS = 65536, BLOCKS = 32, RESERVED = 1024 };
    size_t shared = g->shared + g->fixed_shared + RESERVED, all = (size_t)chip->shared * 1024;
    int n = g->threads ? chip->threads / g->threads : 1;
    int by_registers = g->threads && g->registers ? REGISTERS / (g->threads * g->registers) : n;
    int by_shared = (int)(all / shared);
    n = n < BLOCKS ? n : BLOCKS;
    n = n < by_registers ? n : by_registers;
    n = n < by_shared ? n : by_shared;
    if (g->resident && n > g->resident)
        n = g->resident;
    return n < 1 ? 1 : n;
}

/* The work's bytes where what is made is left as terms of two bytes each, or digits of one. */
static struct tec_cost left_cost(const struct start *s)
{
    struct tec_cost cost = s->work->cost;
    if (s->grid->made_terms)
        cost.written = cost.written * s->grid->made_terms / 2;
    if (s->grid->made_digits)
        cost.written = cost.written * s->grid->made_digits / 4;
    return cost;
}

/* --- products -------------------------------------------------------------------------------- */

/* A tile of warp groups for few rows, whose blocks bring their rows themselves. */
static bool is_few(enum gemm_tile_id id)
{
#define GROUP_TILE(name, ...) id == GEMM_##name ||
    return
#include "kernels/cuda/gemm_tiles.def"
        false;
}

/* Instructions of a warp in a step of a product of digits; 0: it is another one. */
static int int8_many_instructions(enum gemm_tile_id id)
{
#define INT8_MANY_MMA_TILE(name, digits, across, down, n, stages, resident, registers, \
                           instructions)                                               \
    if (id == GEMM_##name)                                                             \
        return instructions;
#include "kernels/cuda/gemm_tiles.def"
    return 0;
}

double tec_chip_byte_rate(const struct tec_peak *peak, const struct tec_chip *chip)
{
    if (!chip)
        return peak->bf16 * BYTE_RATE;
    int c = chip->capability, line = 0;
    for (int i = 1; i < (int)(sizeof byte_adds / sizeof byte_adds[0]); i++)
        if (c >= byte_adds[i].capability)
            line = i;
    double most = 2 * byte_adds[line].adds * chip->processors * chip->mhz * 1e-6;
    bool halved = c == 86 || c == 89 || c == 120;
    double rate = peak->bf16 * (halved ? BYTE_RATE_HALVED : BYTE_RATE);
    return rate < most ? rate : most;
}

static double byte_rate(const struct start *s)
{
    return tec_chip_byte_rate(s->peak, s->chip);
}

/* Blocks of 16 k that a thread block takes, as steps of its tile. */
static int steps_of(const struct start *s)
{
    const struct tec_gemm_args *a = s->grid->args;
    const struct gemm_tile *t = tile_of(s);
    int blocks = ceil_div(a->k, 16);
    if (s->grid->blocks[2] > 1)
        blocks = s->grid->choice.split.each;
    return ceil_div(blocks, t->k / 16);
}

/* Times that a warp of such a tile reads the weights of a step: with registers for several blocks,
 * for each digit anew (gemm_int8_many_mma.cuh). */
static int int8_many_reads(enum gemm_tile_id id)
{
#define INT8_MANY_MMA_TILE(name, digits, across, down, n, stages, resident, ...) \
    if (id == GEMM_##name)                                                       \
        return (resident) > 1 ? (digits) : 1;
#include "kernels/cuda/gemm_tiles.def"
    return 0;
}

static double one_few(const struct start *s, int beside)
{
    return tec_few_us(s, beside, steps_of(s));
}

static double one_terms(const struct start *s, int beside)
{
    const struct gemm_tile *t = tile_of(s);
    double share = s->grid->choice.tile == GEMM_terms_wide ? WIDE_STEP : TERMS_STEP;
    double step = share * t->clocks / s->chip->mhz * s->grid->terms / 2;
    double rope = s->grid->then == TEC_CUDA_THEN_rope_bf16 ? TERMS_ROPE : 0.0;
    (void)beside;
    return (TERMS_WAVE + rope) * s->slower + step * steps_of(s);
}

/* A step is as long as its multiplies, as its instructions, one a clock of each of four schedulers,
 * or as what goes through shared memory, 128 bytes a clock: what comes, weights for both warps
 * along rows, some for each digit, digits for each warp across panels. */
static double one_int8_many(const struct start *s, int beside)
{
    enum { ACROSS = 32, DOWN = 2, BANKS = 128 };
    const struct gemm_tile *t = tile_of(s);
    double flop = 2.0 * t->columns * t->rows * t->k * s->grid->terms * beside;
    double weights = t->columns * t->k, digits = (double)t->rows * t->k * s->grid->terms;
    int reads = DOWN * int8_many_reads(s->grid->choice.tile);
    int across = t->columns / ACROSS, warps = t->threads / 32;
    double shared = weights * (1 + reads) + digits * (1 + across);
    double issued = (double)int8_many_instructions(s->grid->choice.tile) * warps / SCHEDULERS;
    double clocks = larger(issued, shared / BANKS) * beside;
    double bytes = (weights + digits) * beside;
    double step = multiply_us(s, flop, byte_rate(s), MMA_SHARE);
    step = larger(larger(step, clocks / s->chip->mhz), DIGITS_WAIT * s->slower / (t->stages - 1));
    step = larger(step, bytes * s->chip->processors / (s->chip->l2_rate * 1e3));
    return MMA_AROUND * s->slower + step * steps_of(s);
}

/* Instructions of a warp in a step of a product with 8-bit weights whose blocks make the digits of
 * their rows, of 8 each: counted in the machine code for 8.7. */
static double int8_instructions(const struct start *s)
{
    int eights = tile_of(s)->rows / 8;
    return s->grid->terms == 1 ? 1130 + 20 * eights : 1250 + 30 * eights;
}

/* 8-bit weights and digits are bytes. */
static double one_mma(const struct start *s, int beside)
{
    const struct gemm_tile *t = tile_of(s);
    bool whole = s->grid->kernel == TEC_KERNEL_gemm_int8;
    double rate = whole ? byte_rate(s) : s->peak->bf16, weight = whole ? 1.0 : 2.0;
    double flop = 2.0 * t->columns * t->rows * t->k * s->grid->terms * beside;
    double bytes = (t->columns * t->k * weight + t->rows * t->k * 4.0) * beside;
    double step = larger(multiply_us(s, flop, rate, MMA_SHARE), MMA_STEP * s->slower);
    step = larger(step, bytes * s->chip->processors / (s->chip->l2_rate * 1e3));
    int warps = t->threads / 32;
    double issued = whole ? int8_instructions(s) * warps / SCHEDULERS * beside : 0.0;
    return MMA_AROUND * s->slower + larger(step, issued / s->chip->mhz) * steps_of(s);
}

/* Live rows in a full tile. */
static double live_rows(const struct start *s)
{
    return (double)(s->work->rows < tile_of(s)->rows ? s->work->rows : tile_of(s)->rows);
}

/* Instructions of a warp for so many k of 4-bit weights, counted in the machine code for 9.0. Of
 * many rows: stages of up to INT4_SHORT k for each digit, which is joined with those before it,
 * then the floats of the group. Of few: a turn, with each live row of up to four, or each 8 live
 * rows. */
static double int4_instructions(const struct start *s, int group)
{
    enum { STEP_K = 32 };
    int steps = ceil_div(group, STEP_K), stages = ceil_div(group, INT4_SHORT);
    const struct gemm_tile *t = tile_of(s);
    int across = t->columns / 16;
    double digits = s->grid->terms, panels = across, rows = live_rows(s);
    if (s->grid->choice.tile == GEMM_int4_many_mma_128)
        return digits * (130 * stages + 78 * steps) + 65 + 285;
    if (s->grid->choice.tile == GEMM_int4_many_mma_64)
        return digits * (125 * stages + 66 * steps) + 33 + 155;
    if (s->grid->choice.tile == GEMM_int4_many_mma_64_floats)
        return digits * (125 * stages + 66 * steps + 100) + 155;
    double x = t->rows == 4 ? 55 * rows + 4 * steps : (60 + 45 * steps) * row_groups(s);
    return 145 + 15 * panels + x + row_groups(s) * panels * (22 + 18 * steps);
}

static bool is_int4_many(enum gemm_tile_id id)
{
#define INT4_MANY_MMA_TILE(name, ...) id == GEMM_##name ||
    return
#include "kernels/cuda/gemm_tiles.def"
        false;
}

/* 4-bit weights are multiplied as bytes: a step is a turn of the block's warps, a group each, or a
 * group of all of them. It is as long as its multiplies, as its instructions, one a clock of each
 * of four schedulers, or as what comes from the L2: weights with a line of scales for each panel
 * and INT4_SHORT k, of many rows for each digit anew; rows that live as float32 or as digits. */
static double one_int4(const struct start *s, int beside)
{
    enum { LEAST_ROWS = 8 };
    const struct gemm_tile *t = tile_of(s);
    const struct tec_gemm_args *a = s->grid->args;
    int group = a->group < a->k ? a->group : a->k, deep = t->k / INT4_SHORT;
    bool many = is_int4_many(s->grid->choice.tile);
    double k = (double)deep * group, x = many ? s->grid->terms : 4.0;
    double rows = larger(t->rows, LEAST_ROWS);
    double flop = 2.0 * t->columns * rows * k * s->grid->terms * beside;
    int panels = t->columns / 16, warps = t->threads / 32;
    double scales = (double)panels * TEC_INT4_LINE * deep * ceil_div(group, INT4_SHORT);
    double weights = (t->columns * k / 2 + scales) * (many ? s->grid->terms : 1);
    double bytes = (weights + live_rows(s) * k * x) * beside;
    double issued = int4_instructions(s, group) * warps * beside;
    double step = multiply_us(s, flop, byte_rate(s), MMA_SHARE);
    step = larger(larger(step, MMA_STEP * s->slower), issued / SCHEDULERS / s->chip->mhz);
    step = larger(step, bytes * s->chip->processors / (s->chip->l2_rate * 1e3));
    return MMA_AROUND * s->slower + step * ceil_div(ceil_div(a->k, group), deep);
}

static double one_chains(const struct start *s, int beside)
{
    const struct gemm_tile *t = tile_of(s);
    double flop = 2.0 * t->columns * t->rows * t->k * beside;
    double step = larger(multiply_us(s, flop, s->peak->f32, CHAIN_SHARE), CHAIN_STEP * s->slower);
    return MMA_AROUND * s->slower + step * steps_of(s);
}

static bool is_int8_groups(enum gemm_tile_id id)
{
#define INT8_MANY_GROUPS_TILE(name, ...) id == GEMM_##name ||
    return
#include "kernels/cuda/gemm_tiles.def"
        false;
}

/* Bytes by warp groups: tiles of a multiprocessor follow one another, or share it, where one that
 * is alone takes as long as those that share (as int8_many_groups_cost counts). What surrounds them
 * is that of terms; between two of them the sums of one are stored. A rotation behind them takes as
 * long each time as one behind terms does in a wave: an assumption, as if nothing were multiplied
 * meanwhile.
 */
static double int8_groups_us(struct start *s)
{
    const struct gemm_tile *t = tile_of(s);
    const struct tec_gemm_args *a = s->grid->args;
    int64_t processors = s->chip->processors, held = processors * s->time.resident;
    s->time.busy = gemm_tile_count(s->grid->choice.tile, (int)s->work->rows, a->n / 16);
    int64_t each = (s->time.busy + processors - 1) / processors;
    double step = (double)t->clocks / s->chip->mhz;
    double stored = (double)t->rows * INT8_MANY_GROUPS_FINISH / s->chip->mhz;
    s->time.waves = (int)((s->time.busy + held - 1) / held);
    double rope = s->grid->then == TEC_CUDA_THEN_rope_bf16 ? TERMS_ROPE * s->time.waves : 0.0;
    return (TERMS_WAVE + rope) * s->slower + s->time.waves * step * steps_of(s) +
           (double)(each - 1) * stored;
}

/* What a norm in front reads before anything is multiplied: in each busy block the rows of its
 * tile, or the sums of their panels of 16 columns. It does so while the first weights and rows are
 * on their way, so what surrounds the steps hides as much: with 10 rows that leaves nothing, and an
 * H100 showed nothing. */
static double front_us(const struct start *s)
{
    const struct tec_grid *g = s->grid;
    const struct tec_gemm_args *a = g->args;
    int64_t rows = s->work->rows < tile_of(s)->rows ? s->work->rows : tile_of(s)->rows;
    double numbers = (double)(rows * s->time.busy) * a->k / (g->left ? 16 : 1);
    double read = 4 * numbers / (s->chip->l2_rate * 1e3 * L2_SHARE);
    double hidden = (is_few(g->choice.tile) ? FEW_AROUND : MMA_AROUND) * s->slower;
    return g->norm ? larger(read - hidden, 0.0) : 0.0;
}

/* A block that leaves sums waits once for the rows that it has stored. */
static double leaves_us(const struct start *s)
{
    return s->grid->leaves ? ROW_WAIT * s->slower : 0.0;
}

/* The sums of splits, added by the last block of a tile, or by a cluster: each of its blocks has
 * every so-manyth group of 8 rows, one after the other. Where they are rotated, each group waits
 * for its positions and then for its angles. */
static double sums_us(const struct start *s)
{
    int splits = (int)s->grid->blocks[2], groups = (int)row_groups(s);
    if (splits < 2)
        return 0.0;
    if (s->grid->cluster < 2)
        return (SPLIT + SPLIT_ROWS * groups) * splits * s->slower;
    bool rotates = s->grid->then == TEC_CUDA_THEN_rope_bf16;
    double each = SPLIT * ceil_div(splits, rotates ? SPLITS_TOGETHER / 2 : SPLITS_TOGETHER) +
                  SPLIT_ROWS * splits + (rotates ? 2 * ROW_WAIT : 0.0);
    return (MEET + each * ceil_div(groups, splits)) * s->slower;
}

static double product_us(struct start *s)
{
    const struct tec_grid *g = s->grid;
    const struct gemm_tile *t = tile_of(s);
    double most = 0.0;
    bool f32 = g->kernel == TEC_KERNEL_gemm_f32;
    s->time.busy = (s->work->rows + t->rows - 1) / t->rows * g->blocks[1] * g->blocks[2];
    double (*one)(const struct start *, int) = f32 ? one_chains : one_mma;
    if (g->kernel == TEC_KERNEL_gemm_int4)
        one = one_int4;
    else if (is_few(g->choice.tile))
        one = one_few;
    else if (int8_many_instructions(g->choice.tile))
        one = one_int8_many;
    else if (t->clocks)
        one = one_terms;
    struct tec_cost moved = left_cost(s);
    double blocks = is_int8_groups(g->choice.tile) ? int8_groups_us(s) : tec_start_waves(s, one),
           memory = tec_start_memory_us(s, &moved), sums = sums_us(s);
    blocks += front_us(s) + leaves_us(s);
    memory += one == one_few ? tec_few_behind_us(s) : 0.0;
    tec_start_part(s, blocks, one == one_few || (f32 && t->rows < 64) ? "wait" : "multiply", &most);
    tec_start_part(s, memory, "memory", &most);
    tec_start_part(s, sums, "sums", &most);
    return larger(blocks, memory) + sums;
}

/* A block has 16 squares, 32 channels and 16 points, and takes 8 channels of x a step. */
static double one_square(const struct start *s, int beside)
{
    enum { POINTS = 16, SQUARES = 16, COLUMNS = 32, DEPTH = 8 };
    const struct tec_conv_args *a = s->grid->args;
    double flop = 2.0 * POINTS * SQUARES * COLUMNS * DEPTH * beside;
    double step = larger(multiply_us(s, flop, s->peak->f32, SQUARE_SHARE), CHAIN_STEP * s->slower);
    return step * ceil_div(a->k, DEPTH);
}

static double squares_us(struct start *s)
{
    double most = 0.0;
    s->time.busy = (int64_t)s->grid->blocks[0] * s->grid->blocks[1];
    double blocks = tec_start_waves(s, one_square), memory = tec_start_memory_us(s, &s->work->cost);
    tec_start_part(s, blocks, "multiply", &most);
    tec_start_part(s, memory, "memory", &most);
    return larger(blocks, memory);
}

/* x is read as float32, and written as terms of two bytes, or as digits of one. */
static double terms_us(struct start *s)
{
    const struct tec_gemm_args *a = s->grid->args;
    double most = 0.0, values = (double)s->work->rows * a->k;
    double each = s->grid->kernel == TEC_KERNEL_gemm_bf16 ? 2 : 1;
    struct tec_cost moved = {.read = (int64_t)(values * 4),
                             .written = (int64_t)(values * each * s->grid->terms)};
    s->time.busy = (int64_t)s->grid->blocks[0] * ((s->work->rows + 7) / 8);
    s->time.waves = 1;
    return tec_start_part(s, tec_start_memory_us(s, &moved), "memory", &most);
}

/* --- all kernels ----------------------------------------------------------------------------- */

/* How often a row's bytes are waited for: sums over it, or an angle that is found by its position.
 */
static const double waits[TEC_KERNEL_COUNT] = {
    [TEC_KERNEL_rmsnorm] = 1,  [TEC_KERNEL_head_norm] = 1, [TEC_KERNEL_layernorm] = 4,
    [TEC_KERNEL_rope_f32] = 1, [TEC_KERNEL_rope_bf16] = 1,
};

/* A norm's row is written as terms or digits in pieces of 16 bytes, each of which takes 32 of the
 * L2's. */
static double rows_us(struct start *s)
{
    struct tec_cost moved = left_cost(s);
    if (s->grid->made_terms || s->grid->made_digits)
        moved.written *= 2;
    double most = 0.0, memory = tec_start_memory_us(s, &moved);
    double wait = waits[s->grid->kernel] * ROW_WAIT * s->slower;
    const unsigned *blocks = s->grid->blocks;
    int64_t held = (int64_t)s->time.resident * s->chip->processors;
    s->time.busy = (int64_t)blocks[0] * blocks[1] * blocks[2];
    s->time.waves = (int)((s->time.busy + held - 1) / held);
    tec_start_part(s, memory, "memory", &most);
    tec_start_part(s, wait, "wait", &most);
    return memory + wait;
}

struct tec_grid_time tec_grid_time_of(const struct tec_peak *peak, const struct tec_chip *chip,
                                      const struct tec_grid *grid, const struct tec_grid_work *work,
                                      const struct tec_changes *changes)
{
    struct start s = {peak, chip, grid, work, changes, CLOCK / chip->mhz, {.bound = "launch"}};
    bool overlaps = chip->capability >= 90 && (!work->in_loop || changes->loop_overlap);
    double us, start = START + (work->alone ? 0.0 : BEHIND_OTHER) + (overlaps ? 0.0 : LOOP_START);
    s.time.resident = resident_of(chip, grid);
    if (grid->writes_terms)
        us = terms_us(&s);
    else if (grid->choice.tile != GEMM_NONE)
        us = product_us(&s);
    else if (grid->kernel == TEC_KERNEL_conv3x3)
        us = squares_us(&s);
    else if (tec_grid_attends(grid))
        us = grid->attention.m ? tec_start_attention_us(&s) : tec_start_wide_us(&s);
    else if (tec_grid_sums(grid))
        us = tec_start_mass_us(&s);
    else
        us = rows_us(&s);
    if (us < start)
        s.time.bound = "launch";
    s.time.us = us + start;
    return s.time;
}
