/* grids_products.c - starts of kernels for products, as kernels/cuda/ makes them. */
#include "kernels/cuda/gemm_int4_choice.h"
#include "kernels/cuda/gemm_int8_choice.h"
#include "kernels/grids_own.h"

static const char *const tile_kernels[GEMM_TILES] = {
#define MMA_TILE(name, ...) [GEMM_##name] = "gemm_kernel",
#define GROUP_TILE(name, ...) [GEMM_##name] = "gemm_groups_kernel",
#define TERMS_TILE(name, ...) [GEMM_##name] = "gemm_terms_kernel",
#define INT4_FEW_MMA_TILE(name, ...) [GEMM_##name] = "gemm_int4_few_mma_kernel",
#define INT4_MANY_MMA_TILE(name, ...) [GEMM_##name] = "gemm_int4_many_mma_kernel",
#define INT8_FEW_MMA_TILE(name, ...) [GEMM_##name] = "gemm_int8_few_mma_kernel",
#define INT8_MANY_MMA_TILE(name, ...) [GEMM_##name] = "gemm_int8_many_mma_kernel",
#define INT8_MANY_GROUPS_TILE(name, ...) [GEMM_##name] = "gemm_int8_many_groups_kernel",
#define F32_TILE(name, ...) [GEMM_##name] = "gemm_kernel",
#include "kernels/cuda/gemm_tiles.def"
};

static void set_start(struct tec_grid *g, const struct gemm_start *start, int rows)
{
    const struct gemm_tile *t = &gemm_tiles[start->tile];
    tec_grids_blocks(g, start->x, start->y, 1, t->threads);
    g->name = tile_kernels[start->tile];
    g->what = t->name;
    g->shared = (size_t)t->shared;
    g->registers = t->registers;
    g->resident = t->resident;
    g->choice.tile = start->tile;
    g->rows = rows;
}

static void set_tile(struct tec_grid *g, enum gemm_tile_id id, int rows, int places)
{
    const struct gemm_start start = gemm_start_of(id, rows, places);
    set_start(g, &start, rows);
}

/* Vectors of a norm travel with the stages: four of the step's columns, and a scale for each row.
 */
static size_t normed_shared(const struct gemm_tile *t)
{
    int vectors = 4 * t->k * 4, all = t->shared + t->stages * vectors + t->rows * 4;
    return (size_t)all;
}

/* Rows go in parts where there is no room for the terms of all. */
static void report_terms(const struct tec_grids_to *to, const struct tec_grid *plain,
                         const struct gemm_ask *ask)
{
    enum { CHUNKS = 32 * 8, THREADS_OF_TERMS = 256 };
    int part = terms_part(ask, to->facts);
    for (int base = 0; part > 0 && base < ask->rows; base += part) {
        struct tec_grid written = *plain, product = *plain;
        int count = ask->rows - base < part ? ask->rows - base : part;
        int columns = ceil_div(ask->k, TERMS_K) * TERMS_K;
        enum gemm_tile_id id = terms_choose(count, ask, &plain->choice.split, to->facts);
        tec_grids_blocks(&written, ceil_div(columns, CHUNKS), ceil_div(count, 8), 1,
                         THREADS_OF_TERMS);
        written.name = "row_terms_kernel";
        written.what = "row_terms";
        written.writes_terms = true;
        written.rows = count;
        written.first = product.first = base;
        tec_grids_report(to, &written);
        set_tile(&product, id, count, ask->places);
        int slabs = gemm_tiles[id].stages * (gemm_tiles[id].rows / 8);
        product.choice.walk = id != GEMM_terms_wide;
        product.shared -= (size_t)(slabs * (2 - plain->terms)) * TERM_BYTES;
        tec_grids_report(to, &product);
    }
}

bool tec_grids_bf16(const struct tec_grids_to *to, const struct gemm_ask *ask,
                    const struct tec_cuda_chain *chain)
{
    struct tec_grid g = {.kernel = TEC_KERNEL_gemm_bf16,
                         .args = chain->gemm,
                         .norm = ask->norm,
                         .left = chain->left,
                         .leaves = chain->leaves,
                         .then = chain->then};
    g.choice = gemm_choose(ask, to->facts);
    enum gemm_tile_id id = g.choice.tile;
    if (id == GEMM_NONE)
        return false;
    const struct gemm_tile *t = &gemm_tiles[id];
    g.terms = t->terms;
    if (t->terms == 0) {
        g.terms = ask->rounded ? 1 : 2;
        report_terms(to, &g, ask);
        return true;
    }
    set_tile(&g, id, ask->rows, ask->places);
    if (!g.choice.walk)
        g.blocks[2] = (unsigned)g.choice.split.count;
    g.cluster = (unsigned)gemm_cluster(&g.choice, to->facts);
    if (ask->norm)
        g.registers = t->normed;
    if (ask->norm && !to->facts->groups) {
        g.name = "gemm_normed_kernel";
        g.shared = normed_shared(t);
    }
    tec_grids_report(to, &g);
    return true;
}

void tec_grids_gemm_bf16(const struct tec_grids_to *to, struct tec_grid *g)
{
    const struct tec_cuda_chain alone = {.gemm = g->args};
    struct gemm_ask ask = chain_plain_ask(g->args, false);
    tec_grids_bf16(to, &ask, &alone);
}

/* A start that writes the digits of rows. */
static void report_row_digits(const struct tec_grids_to *to, const struct tec_grid *plain,
                              const struct tec_cuda_digits *form, int base, int count)
{
    enum { DIGITS_REGISTERS = 72, THREADS_OF_DIGITS = 32 * DIGITS_WARPS };
    struct tec_grid written = *plain;
    tec_grids_blocks(&written, tec_cuda_digits_blocks(form), ceil_div(count, 8), 1,
                     THREADS_OF_DIGITS);
    written.registers = DIGITS_REGISTERS;
    written.name = "row_digits_kernel";
    written.what = "row_digits";
    written.writes_terms = true;
    written.terms = form->digits;
    written.rows = count;
    written.first = base;
    tec_grids_report(to, &written);
}

/* Of a product whose digits are written first: a part of its rows. */
typedef struct gemm_start many_start_fn(const struct digits_choice *choice, int rows, int places,
                                        const struct tec_cuda_facts *facts);

/* Rows go in parts where there is no room for the digits of all. */
static void report_many(const struct tec_grids_to *to, const struct tec_grid *plain, int places,
                        const struct digits_choice *choice, many_start_fn *start_of)
{
    const struct tec_gemm_args *a = plain->args;
    for (int base = 0; base < a->max_rows; base += choice->part) {
        struct tec_grid product = *plain;
        int count = a->max_rows - base < choice->part ? a->max_rows - base : choice->part;
        struct gemm_start start = start_of(choice, count, places, to->facts);
        report_row_digits(to, plain, &choice->form, base, count);
        set_start(&product, &start, count);
        product.terms = choice->form.digits;
        product.first = base;
        tec_grids_report(to, &product);
    }
}

void tec_grids_gemm_int4(const struct tec_grids_to *to, struct tec_grid *g)
{
    const struct tec_gemm_args *a = g->args;
    struct digits_choice choice = int4_choose(a, to->facts);
    if (choice.part > 0) {
        report_many(to, g, a->n / 16, &choice, int4_many_start);
        return;
    }
    struct gemm_start start = int4_few_start(&choice, a->max_rows, a->n / 16, to->facts);
    set_start(g, &start, a->max_rows);
    g->terms = choice.form.digits;
    tec_grids_report(to, g);
}

bool tec_grids_int8(const struct tec_grids_to *to, const struct gemm_ask *ask,
                    const struct tec_cuda_chain *chain)
{
    struct tec_grid g = {.kernel = TEC_KERNEL_gemm_int8,
                         .args = chain->gemm,
                         .norm = ask->norm,
                         .left = chain->left,
                         .leaves = chain->leaves,
                         .then = chain->then};
    struct digits_choice choice = int8_choose(chain->gemm, to->facts);
    if (!chain->leaves && choice.part > 0) {
        report_many(to, &g, ask->places, &choice, int8_many_start);
        return true;
    }
    struct gemm_start start = int8_few_start(&choice, ask->rows, ask->places, ask->pairs);
    set_start(&g, &start, ask->rows);
    g.terms = choice.form.digits;
    if (ask->norm) {
        g.name = "gemm_int8_few_mma_normed_kernel";
        g.registers = gemm_tiles[start.tile].normed;
        g.shared += (size_t)gemm_tiles[start.tile].rows * sizeof(float);
    }
    tec_grids_report(to, &g);
    return true;
}

void tec_grids_gemm_int8(const struct tec_grids_to *to, struct tec_grid *g)
{
    const struct tec_cuda_chain alone = {.gemm = g->args, .int8 = true};
    struct gemm_ask ask = chain_plain_ask(g->args, false);
    tec_grids_int8(to, &ask, &alone);
}

void tec_grids_gemm_f32(const struct tec_grids_to *to, struct tec_grid *g)
{
    const struct tec_gemm_args *a = g->args;
    enum gemm_tile_id id = f32_choose(a->n, a->max_rows, to->facts);
    set_tile(g, id, a->max_rows, ceil_div(a->n, 16));
    g->terms = 1;
    tec_grids_report(to, g);
}
