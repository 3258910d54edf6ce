/* modelled_attention.c - the model's times of attention and of its sums (modelled.h). */
#include "tools/measure/modelled_start.h"

/* Microseconds on an H100, as in modelled.c. */

/* Attention as an H100 measured it: a block of 64 keys with one and with two thread blocks on a
 * multiprocessor, of 256 columns; what is around them; chunks into the answer, for 1024 numbers; a
 * pass over what four chunks left. Of float32 memory the share of the multiply-adds' rate; where it
 * is read as terms, which nobody measured, the operations that make them of a number. */
static const double KEYS_ALONE = 2.3, KEYS_TWO = 3.45, KEYS_AROUND = 1.5;
static const double FOLD = 1.4, COMBINE = 3.2, F32_SHARE = 0.125, SPLIT_NUMBER = 5;

/* As it is now, over bf16 memory, measured by nobody: a warp's instructions in a block of 64 keys
 * of 256 columns, of 16 rows and of 64, and what the block waits for besides, which is what is left
 * of 2.3 and 3.45 us without the 1310 that it had. Where chunks are shared: instructions around the
 * passes and in each, and what each chunk adds. Counted in the machine code for 9.0. */
static const double KEYS_SMALL = 798, KEYS_LARGE = 1770, KEYS_WAIT = 0.9;
static const double MEET = 317, MEET_CHUNK = 12, MEET_PASS = 365, MEET_PASS_CHUNK = 20;

/* Blocks of keys of a row, and chunks of them. */
static int key_blocks(const struct start *s)
{
    return (int)((s->work->keys + KEYS - 1) / KEYS);
}

static int chunks_of(const struct start *s)
{
    return ceil_div(key_blocks(s), CHUNK);
}

/* Rows of a run: neighbours of one sequence within a tile. */
static double run_rows(const struct start *s)
{
    int most = s->grid->attention.plan.rows;
    double together = larger(s->work->together, 1.0);
    return together < most ? together : most;
}

/* Numbers that a run leaves behind: its rows, with all the heads that a tile packs. */
static double packed_numbers(const struct start *s)
{
    const struct tec_attention_args *a = s->grid->args;
    return run_rows(s) * s->grid->attention.plan.heads * a->head_dim;
}

/* Float32 keys and values of a block: from the L2, and split into terms. */
static double split_us(const struct start *s, int beside)
{
    const struct tec_attention_args *a = s->grid->args;
    double numbers = 2.0 * KEYS * a->head_dim * beside;
    double moved = 4 * numbers * s->chip->processors / (s->chip->l2_rate * 1e3 * L2_SHARE);
    return larger(moved, multiply_us(s, 2 * SPLIT_NUMBER * numbers, s->peak->f32, 1.0));
}

/* One instruction of each of a block's warps, with a clock for each four of them. */
static double issue_us(const struct start *s, double instructions)
{
    enum { SCHEDULERS = 4 };
    return instructions * s->grid->threads / 32 / SCHEDULERS / s->chip->mhz;
}

/* A block of keys, but for its multiplies. Keys and values of bf16 memory come from the L2, whose
 * whole rate is shared by all multiprocessors. */
static double keys_us(const struct start *s, int beside)
{
    const struct tec_attention_args *a = s->grid->args;
    double columns = larger(a->head_dim / 256.0, 0.25);
    bool large = s->grid->attention.m > 16;
    if (s->grid->attention.terms || s->changes->as_measured)
        return (beside > 1 ? KEYS_TWO * beside / 2 : KEYS_ALONE) * columns * (large ? 2 : 1) *
               s->slower;
    double bytes = 2.0 * KEYS * a->head_dim * 2 * beside;
    double step = issue_us(s, (large ? KEYS_LARGE : KEYS_SMALL) * beside) + KEYS_WAIT * s->slower;
    return larger(step * columns, bytes * s->chip->processors / (s->chip->l2_rate * 1e3));
}

static double one_attention(const struct start *s, int beside)
{
    const struct tec_attention_args *a = s->grid->args;
    const struct attention_plan *plan = &s->grid->attention.plan;
    int chunks = chunks_of(s), mine = plan->splits > 1 ? ceil_div(chunks, plan->splits) : chunks;
    int blocks = mine * CHUNK < key_blocks(s) ? mine * CHUNK : key_blocks(s);
    double flop = 4.0 * s->grid->attention.m * KEYS * a->head_dim * beside;
    int terms = s->grid->attention.terms;
    if (!terms && s->grid->kernel == TEC_KERNEL_attention_f32)
        return KEYS_AROUND * s->slower +
               blocks * multiply_us(s, flop, s->peak->f32, F32_SHARE * (beside > 1 ? 1.5 : 1));
    double multiplies = multiply_us(s, (terms ? 3 : 2) * flop, s->peak->bf16, MMA_SHARE);
    double keys = larger(keys_us(s, beside), multiplies);
    keys += terms ? split_us(s, beside) : 0.0;
    double folds = plan->splits > 1 || plan->near ? 0.0 : FOLD * mine * packed_numbers(s) / 1024;
    return (KEYS_AROUND + folds) * s->slower + keys * blocks;
}

/* The last thread block folds what `shares` of them left: threads of a row are a power of two, each
 * with eight columns at most, and six chunks are on their way at once. It waits for its ticket, for
 * the softmaxes and for each pass. */
static double meet_us(const struct start *s, int shares)
{
    enum { COLUMNS = 8, AHEAD = 6 };
    const struct tec_attention_args *a = s->grid->args;
    int chunks = chunks_of(s), threads = 1;
    if (s->changes->as_measured)
        return COMBINE * larger(packed_numbers(s) / 1024, 1) * ceil_div(shares, 4) * s->slower;
    while (threads * COLUMNS < a->head_dim)
        threads *= 2;
    double rows = packed_numbers(s) / a->head_dim;
    int passes = (int)((rows * threads + s->grid->threads - 1) / s->grid->threads);
    double instructions =
        MEET + MEET_CHUNK * chunks + passes * (MEET_PASS + MEET_PASS_CHUNK * chunks);
    double waits = ROW_WAIT * (2 + passes * ceil_div(chunks, AHEAD)) * s->slower;
    double read = 4 * packed_numbers(s) * chunks * s->chip->processors / (s->chip->l2_rate * 1e3);
    return issue_us(s, instructions) + waits + read;
}

double tec_start_attention_us(struct start *s)
{
    const struct tec_attention_args *a = s->grid->args;
    const struct attention_plan *plan = &s->grid->attention.plan;
    double most = 0.0;
    int shares = plan->splits < chunks_of(s) ? plan->splits : chunks_of(s);
    double per = plan->splits > 1 ? run_rows(s) : plan->rows;
    int64_t tiles = (int64_t)((double)s->work->rows / per + 0.999);
    s->time.busy = tiles * a->kv_heads * plan->head_tiles * (shares > 1 ? shares : 1);
    double blocks = tec_start_waves(s, one_attention), sums = shares > 1 ? meet_us(s, shares) : 0.0;
    bool adds = s->grid->kernel == TEC_KERNEL_attention_f32 && !s->grid->attention.terms;
    tec_start_part(s, blocks, adds ? "multiply" : "wait", &most);
    tec_start_part(s, sums, "sums", &most);
    return blocks + sums;
}

/* Of the kernel for wide heads nothing was measured: a block is taken for as slow as another's. */
static double one_wide(const struct start *s, int beside)
{
    return (KEYS_AROUND + KEYS_ALONE * beside * key_blocks(s)) * s->slower;
}

double tec_start_wide_us(struct start *s)
{
    double most = 0.0;
    s->time.busy = s->work->rows * s->grid->blocks[1];
    return tec_start_part(s, tec_start_waves(s, one_wide), "wait", &most);
}

/* Sums of weights, of which nothing was measured. Over float32 memory: a block has 16 queries,
 * walks over the keys of all heads twice, and multiplies by multiply-adds as attention there does.
 */
enum { QUERIES = 16, WALKS = 2 };

static double one_sum(const struct start *s, int beside)
{
    const struct tec_mass_args *a = s->grid->args;
    int group = a->kv_heads > 0 ? a->heads / a->kv_heads : 1;
    double tiles = (double)a->kv_heads * ceil_div(group, QUERIES) * WALKS * key_blocks(s);
    double flop = 2.0 * QUERIES * KEYS * a->head_dim * beside;
    return KEYS_AROUND * s->slower +
           tiles * multiply_us(s, flop, s->peak->f32, F32_SHARE * (beside > 1 ? 1.5 : 1));
}

/* The same over bf16 memory: one walk, on tensor cores. Nothing of it was measured either: a block
 * of keys is taken for as slow as attention's. That one multiplies two terms of queries and two of
 * weights, this one three terms of queries, and it adds ranges up where that one reads values. */
static double one_mass(const struct start *s, int beside)
{
    const struct tec_mass_args *a = s->grid->args;
    const struct mass_choice *c = &s->grid->mass;
    double columns = larger(a->head_dim / 256.0, 0.25) * (c->m > MASS_HEADS ? 2 : 1);
    double keys = (beside > 1 ? KEYS_TWO * beside / 2 : KEYS_ALONE) * columns;
    double flop = 2.0 * MASS_TERMS * c->m * KEYS * a->head_dim * beside;
    int walks = a->kv_heads * ceil_div(a->heads / a->kv_heads, MASS_HEADS);
    keys = larger(keys * s->slower, multiply_us(s, flop, s->peak->bf16, MMA_SHARE));
    return (KEYS_AROUND * s->slower + keys * key_blocks(s)) * walks;
}

/* Tiles, of which a block takes several where there is room for the sums of no more; those sums
 * are written once and read once. */
static double mass_terms_us(struct start *s)
{
    const struct tec_mass_args *a = s->grid->args;
    int64_t tiles = (s->work->rows + s->grid->mass.rows - 1) / s->grid->mass.rows;
    int64_t held = s->grid->mass.blocks, turns = (tiles + held - 1) / held;
    double most = 0.0, sums = 8.0 * (double)s->work->rows * a->heads * a->max_ranges;
    struct tec_cost moved = {.read = (int64_t)sums};
    s->time.busy = turns > 1 ? held : tiles;
    double blocks = tec_start_part(s, tec_start_waves(s, one_mass) * (double)turns, "wait", &most);
    return larger(blocks, tec_start_part(s, tec_start_memory_us(s, &moved), "memory", &most));
}

double tec_start_mass_us(struct start *s)
{
    const struct tec_mass_args *a = s->grid->args;
    int group = a->kv_heads > 0 ? a->heads / a->kv_heads : 1;
    int rows = QUERIES / (group < QUERIES ? group : QUERIES);
    double most = 0.0;
    if (s->grid->mass.m)
        return mass_terms_us(s);
    s->time.busy = (s->work->rows + rows - 1) / rows;
    return tec_start_part(s, tec_start_waves(s, one_sum), "multiply", &most);
}
