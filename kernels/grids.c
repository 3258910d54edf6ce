/* grids.c - starts of kernels for recorded commands, as kernels/cuda/ makes them. */
#include "kernels/grids.h"

#include "kernels/cuda/chain_terms.h"
#include "kernels/cuda/gemm_int8_choice.h"
#include "kernels/cuda/row_grid.h"
#include "kernels/int4.h"

/* What most kernels of rows take (tests/cuda_registers.expected: 16 to 48). */
enum { SOME_REGISTERS = 40 };

struct reporter {
    const struct tec_cuda_facts *facts;
    tec_grid_fn *visit;
    void *user;
};

/* An empty grid is nothing to do. */
static void report(const struct reporter *to, const struct tec_grid *grid)
{
    if (grid->blocks[0] && grid->blocks[1] && grid->blocks[2])
        to->visit(to->user, grid);
}

static void set_blocks(struct tec_grid *g, int x, int y, int z, int threads)
{
    g->blocks[0] = x > 0 ? (unsigned)x : 0;
    g->blocks[1] = y > 0 ? (unsigned)y : 0;
    g->blocks[2] = z > 0 ? (unsigned)z : 0;
    g->threads = threads;
    g->registers = SOME_REGISTERS;
}

/* --- products -------------------------------------------------------------------------------- */

static const char *const tile_kernels[GEMM_TILES] = {
#define MMA_TILE(name, ...) [GEMM_##name] = "gemm_kernel",
#define GROUP_TILE(name, ...) [GEMM_##name] = "gemm_groups_kernel",
#define TERMS_TILE(name, ...) [GEMM_##name] = "gemm_terms_kernel",
#define INT4_TILE(name, ...) [GEMM_##name] = "gemm_int4_kernel",
#define INT4_MANY_TILE(name, ...) [GEMM_##name] = "gemm_int4_many_kernel",
#define INT8_TILE(name, ...) [GEMM_##name] = "gemm_int8_kernel",
#define DIGITS_TILE(name, ...) [GEMM_##name] = "gemm_digits_kernel",
#define BYTES_TILE(name, ...) [GEMM_##name] = "gemm_int8_groups_kernel",
#define F32_TILE(name, ...) [GEMM_##name] = "gemm_kernel",
#include "kernels/cuda/gemm_tiles.def"
};

static void set_tile(struct tec_grid *g, enum gemm_tile_id id, int rows, int places)
{
    const struct gemm_tile *t = &gemm_tiles[id];
    set_blocks(g, ceil_div(rows, t->rows), ceil_div(places, t->columns / 16), 1, t->threads);
    g->name = tile_kernels[id];
    g->what = t->name;
    g->shared = (size_t)t->shared;
    g->registers = t->registers;
    g->resident = t->resident;
    g->choice.tile = id;
    g->rows = rows;
}

/* Vectors of a norm travel with the stages: four of the step's columns, and a scale for each row.
 */
static size_t normed_shared(const struct gemm_tile *t)
{
    int vectors = 4 * t->k * 4, all = t->shared + t->stages * vectors + t->rows * 4;
    return (size_t)all;
}

/* Rows go in parts where there is no room for the terms of all. */
static void report_terms(const struct reporter *to, const struct tec_grid *plain,
                         const struct gemm_ask *ask)
{
    enum { CHUNKS = 32 * 8, THREADS_OF_TERMS = 256 };
    int part = terms_part(ask, to->facts);
    for (int base = 0; part > 0 && base < ask->rows; base += part) {
        struct tec_grid written = *plain, product = *plain;
        int count = ask->rows - base < part ? ask->rows - base : part;
        int columns = ceil_div(ask->k, TERMS_K) * TERMS_K;
        enum gemm_tile_id id = terms_choose(count, ask, &plain->choice.split, to->facts);
        set_blocks(&written, ceil_div(columns, CHUNKS), ceil_div(count, 8), 1, THREADS_OF_TERMS);
        written.name = "row_terms_kernel";
        written.what = "row_terms";
        written.writes_terms = true;
        written.rows = count;
        written.first = product.first = base;
        report(to, &written);
        set_tile(&product, id, count, ask->places);
        int slabs = gemm_tiles[id].stages * (gemm_tiles[id].rows / 8);
        product.choice.walk = id != GEMM_terms_wide;
        product.shared -= (size_t)(slabs * (2 - plain->terms)) * TERM_BYTES;
        report(to, &product);
    }
}

static bool report_bf16(const struct reporter *to, const struct gemm_ask *ask,
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
    report(to, &g);
    return true;
}

static void of_gemm_bf16(const struct reporter *to, struct tec_grid *g)
{
    const struct tec_cuda_chain alone = {.gemm = g->args};
    struct gemm_ask ask = chain_plain_ask(g->args, false);
    report_bf16(to, &ask, &alone);
}

/* A start that writes the digits of rows. */
static void report_row_digits(const struct reporter *to, const struct tec_grid *plain,
                              const struct tec_cuda_digits *form, int base, int count)
{
    enum { DIGITS_REGISTERS = 72, THREADS_OF_DIGITS = 32 * DIGITS_WARPS };
    struct tec_grid written = *plain;
    set_blocks(&written, tec_cuda_digits_blocks(form), ceil_div(count, 8), 1, THREADS_OF_DIGITS);
    written.registers = DIGITS_REGISTERS;
    written.name = "row_digits_kernel";
    written.what = "row_digits";
    written.writes_terms = true;
    written.terms = form->digits;
    written.rows = count;
    written.first = base;
    report(to, &written);
}

/* Rows go in parts where there is no room for the digits of all. */
static void report_int4_many(const struct reporter *to, const struct tec_grid *plain)
{
    const struct tec_gemm_args *a = plain->args;
    struct tec_cuda_digits form = int4_form(a->k, a->group, a->digits);
    int part = int4_part_rows(&form, to->facts);
    for (int base = 0; base < a->max_rows; base += part) {
        struct tec_grid product = *plain;
        int count = a->max_rows - base < part ? a->max_rows - base : part;
        report_row_digits(to, plain, &form, base, count);
        set_tile(&product, int4_many_choose(a->n, count, &form, to->facts), count, a->n / 16);
        product.terms = form.digits;
        product.first = base;
        report(to, &product);
    }
}

static void of_gemm_int4(const struct reporter *to, struct tec_grid *g)
{
    const struct tec_gemm_args *a = g->args;
    bool orders = a->order && a->order_of;
    if (int4_is_many(a->max_rows, orders, a->k, a->group, a->digits, to->facts)) {
        report_int4_many(to, g);
        return;
    }
    enum gemm_tile_id id = int4_choose(a->n, a->max_rows, a->k, a->group, to->facts);
    set_tile(g, id, a->max_rows, a->n / 16);
    g->terms = a->digits == 2 ? 2 : TEC_INT4_DIGITS;
    report(to, g);
}

/* Rows go in parts where there is no room for the digits of all. */
static void report_digits(const struct reporter *to, const struct tec_grid *plain,
                          const struct gemm_ask *ask)
{
    const struct tec_gemm_args *a = plain->args;
    struct tec_cuda_digits form = digits_form(a->k, a->digits);
    int part = digits_part(&form, to->facts), places = ask->places;
    bool groups = to->facts->groups;
    for (int base = 0; base < ask->rows; base += part) {
        struct tec_grid product = *plain;
        int count = ask->rows - base < part ? ask->rows - base : part;
        enum gemm_tile_id id = groups ? bytes_choose(places, count, a->k, form.digits, to->facts)
                                      : digits_choose(places, count, form.digits, to->facts);
        report_row_digits(to, plain, &form, base, count);
        set_tile(&product, id, count, places);
        if (groups) {
            product.blocks[0] = (unsigned)bytes_blocks(id, places, count, to->facts->processors);
            product.blocks[1] = 1;
        }
        product.terms = form.digits;
        product.first = base;
        report(to, &product);
    }
}

static bool report_int8(const struct reporter *to, const struct gemm_ask *ask,
                        const struct tec_cuda_chain *chain)
{
    struct tec_grid g = {.kernel = TEC_KERNEL_gemm_int8,
                         .args = chain->gemm,
                         .norm = ask->norm,
                         .left = chain->left,
                         .leaves = chain->leaves,
                         .then = chain->then};
    if (!chain->leaves && chain_digits(chain, to->facts)) {
        report_digits(to, &g, ask);
        return true;
    }
    enum gemm_tile_id id = int8_choose(ask->rows, chain->gemm->digits, ask->pairs);
    set_tile(&g, id, ask->rows, ask->places);
    g.terms = gemm_tiles[id].terms;
    if (ask->norm) {
        g.name = "gemm_int8_normed_kernel";
        g.registers = gemm_tiles[id].normed;
        g.shared += (size_t)gemm_tiles[id].rows * sizeof(float);
    }
    report(to, &g);
    return true;
}

static void of_gemm_int8(const struct reporter *to, struct tec_grid *g)
{
    const struct tec_cuda_chain alone = {.gemm = g->args, .int8 = true};
    struct gemm_ask ask = chain_plain_ask(g->args, false);
    report_int8(to, &ask, &alone);
}

static void of_gemm_f32(const struct reporter *to, struct tec_grid *g)
{
    const struct tec_gemm_args *a = g->args;
    enum gemm_tile_id id = f32_choose(a->n, a->max_rows, to->facts);
    set_tile(g, id, a->max_rows, ceil_div(a->n, 16));
    g->terms = 1;
    report(to, g);
}

/* --- attention ------------------------------------------------------------------------------- */

static void of_attention(const struct reporter *to, struct tec_grid *g)
{
    const struct tec_attention_args *a = g->args;
    bool bf16 = g->kernel == TEC_KERNEL_attention_bf16;
    if (a->max_rows <= 0)
        return;
    if (attention_is_wide(a)) {
        set_blocks(g, a->max_rows, a->heads, 1, THREADS);
        g->shared = KEYS * (sizeof(size_t) + sizeof(float));
        g->name = "attention_wide_kernel";
        g->what = "wide";
        report(to, g);
        return;
    }
    g->attention = bf16 ? attention_choose_bf16(a, to->facts) : attention_choose_f32(a, to->facts);
    attention_blocks(a, &g->attention.plan, g->blocks);
    g->threads = THREADS;
    g->shared = g->attention.shared;
    g->terms = g->attention.terms;
    g->name = bf16 || g->terms ? "attention_mma_kernel" : "attention_f32_kernel";
    bool large = g->attention.m == 64 && (bf16 || g->terms);
    g->registers = large ? (g->terms ? 256 : a->head_dim > 64 ? 240 : 184) : g->terms ? 168 : 128;
    g->what = g->attention.m == 64   ? (g->terms ? "64 rows, terms" : "64 rows")
              : g->attention.m == 32 ? "32 rows"
              : g->terms             ? "16 rows, terms"
                                     : "16 rows";
    report(to, g);
}

/* Over bf16 memory, by terms; else, and where heads are too wide for that, by multiply-adds. */
static void of_attention_mass(const struct reporter *to, struct tec_grid *g)
{
    enum { QUERIES = 16, FIXED = 26432 };
    const struct tec_mass_args *a = g->args;
    int group = a->kv_heads > 0 ? a->heads / a->kv_heads : 1;
    int rows = QUERIES / (group < QUERIES ? group : QUERIES);
    if (g->kernel == TEC_KERNEL_attention_mass_bf16)
        g->mass = mass_choose(a, to->facts);
    set_blocks(g, g->mass.m ? g->mass.blocks : ceil_div(a->max_rows, rows), 1, 1, THREADS);
    g->shared = g->mass.shared;
    g->fixed_shared = g->mass.m ? 0 : FIXED;
    g->registers = g->mass.m == 64 ? 112 : g->mass.m ? 80 : 88;
    g->name = g->mass.m ? "attention_mass_terms_kernel" : "attention_mass_kernel";
    g->what = g->mass.m == 64 ? "64 rows" : g->mass.m ? "16 rows" : NULL;
    report(to, g);
}

/* --- rows and columns ------------------------------------------------------------------------ */

static void quads(const struct reporter *to, struct tec_grid *g, int rows, int cols)
{
    set_blocks(g, rows, ceil_div(cols, ROW_COLUMNS), 1, ROW_THREADS);
    report(to, g);
}

#define OF_QUADS(family, args_of, cols)                                    \
    static void of_##family(const struct reporter *to, struct tec_grid *g) \
    {                                                                      \
        const struct tec_##args_of##_args *a = g->args;                    \
        g->name = #family "_kernel";                                       \
        quads(to, g, a->max_rows, cols);                                   \
    }
OF_QUADS(map, map, a->cols)
OF_QUADS(soft_cap, soft_cap, a->cols)
OF_QUADS(add, add, a->cols)
OF_QUADS(gated, gated, a->cols)
OF_QUADS(embed, embed, a->k)
OF_QUADS(add_table, add_table, a->cols)
OF_QUADS(take_rows, take, a->cols)
OF_QUADS(read_kv, read_kv, a->cols)
OF_QUADS(guide, guide, a->cols)
OF_QUADS(euler, euler, a->cols)
OF_QUADS(max_pool, window, a->cols)

/* Threads of one column, or of one unit, each. */
static void columns(const struct reporter *to, struct tec_grid *g, int rows, int cols)
{
    set_blocks(g, rows, ceil_div(cols, ROW_THREADS), 1, ROW_THREADS);
    report(to, g);
}

static void of_unfold(const struct reporter *to, struct tec_grid *g)
{
    const struct tec_window_args *a = g->args;
    g->name = "unfold_kernel";
    columns(to, g, a->max_rows, a->side * a->side * a->cols);
}

/* 16 squares of four windows by 32 channels of y a block, as kernels/cuda/conv3x3.cu has them. */
static void of_conv3x3(const struct reporter *to, struct tec_grid *g)
{
    enum { SQUARES = 16, COLUMNS = 32, THREADS_OF_CONV = 256, FIXED = 24576 };
    const struct tec_conv_args *a = g->args;
    g->name = "conv3x3_kernel";
    int squares = ceil_div(ceil_div(a->max_rows, a->out_w), 2) * ceil_div(a->out_w, 2);
    set_blocks(g, ceil_div(squares, SQUARES), ceil_div(a->n, COLUMNS), 1, THREADS_OF_CONV);
    g->fixed_shared = FIXED;
    g->registers = 152;
    report(to, g);
}

static void of_mean(const struct reporter *to, struct tec_grid *g)
{
    const struct tec_mean_args *a = g->args;
    g->name = "mean_rows_kernel";
    columns(to, g, a->max_rows, a->cols);
}

static void of_logits_mask(const struct reporter *to, struct tec_grid *g)
{
    const struct tec_logits_mask_args *a = g->args;
    g->name = "logits_mask_kernel";
    columns(to, g, a->max_rows, a->cols);
}

static void of_repetition_penalty(const struct reporter *to, struct tec_grid *g)
{
    const struct tec_repetition_penalty_args *a = g->args;
    g->name = "repetition_penalty_kernel";
    columns(to, g, a->max_rows, ceil_div(a->cols, 32));
}

static void of_rope(const struct reporter *to, struct tec_grid *g)
{
    const struct tec_rope_args *a = g->args;
    g->name = "rope_kernel";
    int width = a->cos_sin ? a->head_dim / 2 : a->head_dim;
    columns(to, g, a->max_rows, ((a->q_at >= 0 ? a->heads : 0) + 2 * a->kv_heads) * width);
}

static void of_norm(const struct reporter *to, struct tec_grid *g)
{
    const struct tec_norm_args *a = g->args;
    g->name = "norm_kernel";
    set_blocks(g, a->max_rows, 1, 1, norm_threads(a->cols));
    report(to, g);
}

static void of_head_norm(const struct reporter *to, struct tec_grid *g)
{
    const struct tec_head_norm_args *a = g->args;
    g->name = "head_norm_kernel";
    set_blocks(g, a->max_rows, 1, 1, NORM_THREADS);
    report(to, g);
}

static void of_patchify(const struct reporter *to, struct tec_grid *g)
{
    const struct tec_patchify_args *a = g->args;
    g->name = "patchify_kernel";
    int patches = a->width / a->patch * (a->height / a->patch);
    set_blocks(g, a->max_pictures * patches, 1, 1, ROW_THREADS);
    report(to, g);
}

static void of_place(const struct reporter *to, struct tec_grid *g)
{
    enum { PLACES = 64 };
    const struct tec_place_args *a = g->args;
    g->name = "place_kv_kernel";
    int cols = a->kv_heads * a->head_dim, units = a->cos_sin ? cols / 2 + cols : 2 * cols;
    int places = a->max_places < PLACES ? a->max_places : PLACES;
    set_blocks(g, a->max_tokens, ceil_div(units, ROW_THREADS), places, ROW_THREADS);
    report(to, g);
}

static void of_move(const struct reporter *to, struct tec_grid *g)
{
    enum { MOVE_PIECES = 4, WORDS = 3 };
    static const size_t words[WORDS] = {16, 4, 2};
    const struct tec_move_args *a = g->args;
    g->name = "move_kv_kernel";
    size_t row = (size_t)a->row, word = words[WORDS - 1];
    for (int i = WORDS; i-- > 0;)
        if (rows_aligned(a->from, row, words[i]) && rows_aligned(a->to, row, words[i]))
            word = words[i];
    int pieces = (int)((size_t)a->max_tokens * (row / word));
    set_blocks(g, ceil_div(pieces, ROW_THREADS * MOVE_PIECES), 1, 1, ROW_THREADS);
    report(to, g);
}

/* A block for each row, of 256 threads. */
static void of_sample(const struct reporter *to, struct tec_grid *g)
{
    const struct tec_sample_args *a = g->args;
    g->name = "sample_kernel";
    set_blocks(g, a->max_rows, 1, 1, 256);
    report(to, g);
}

static void of_log_prob(const struct reporter *to, struct tec_grid *g)
{
    const struct tec_log_prob_args *a = g->args;
    g->name = "log_prob_kernel";
    set_blocks(g, a->max_rows, 1, 1, 256);
    report(to, g);
}

static void of_next_token(const struct reporter *to, struct tec_grid *g)
{
    enum { SHARE = 4096, BEST = 8 }; /* columns of a block; bytes of what it leaves */
    const struct tec_next_token_args *a = g->args;
    g->name = "next_token_kernel";
    if (a->max_rows < 1)
        return;
    size_t room = to->facts->partials_size / BEST / (size_t)a->max_rows;
    int shares = ceil_div(a->cols, SHARE);
    set_blocks(g, (size_t)shares > room ? (int)room : shares, a->max_rows, 1, 256);
    report(to, g);
}

/* --- commands -------------------------------------------------------------------------------- */

#define of_attention_f32 of_attention
#define of_attention_bf16 of_attention
#define of_attention_mass_f32 of_attention_mass
#define of_attention_mass_bf16 of_attention_mass
#define of_embed_f32 of_embed
#define of_embed_bf16 of_embed
#define of_layernorm of_norm
#define of_rmsnorm of_norm
#define of_rope_f32 of_rope
#define of_rope_bf16 of_rope
#define of_gelu of_map
#define of_gelu_erf of_map
#define of_silu of_map
#define of_relu of_map
#define of_copy_rows of_map
#define of_gelu_mul of_gated
#define of_silu_mul of_gated
#define of_mean_rows of_mean
#define of_read_kv_f32 of_read_kv
#define of_read_kv_bf16 of_read_kv
#define of_move_kv of_move
#define of_place_kv_f32 of_place
#define of_place_kv_bf16 of_place

static void (*const of_kernel[TEC_KERNEL_COUNT])(const struct reporter *to, struct tec_grid *g) = {
#define KERNEL(name, args) [TEC_KERNEL_##name] = of_##name,
#include "kernels/kernels.def"
#undef KERNEL
};

void tec_grids_of(enum tec_kernel_id kernel, const void *args, const struct tec_cuda_facts *facts,
                  tec_grid_fn *visit, void *user)
{
    const struct reporter to = {facts, visit, user};
    struct tec_grid grid = {.kernel = kernel, .args = args};
    of_kernel[kernel](&to, &grid);
}

bool tec_grids_of_chain(const struct tec_cuda_chain *chain, const struct tec_cuda_facts *facts,
                        tec_grid_fn *visit, void *user)
{
    const struct reporter to = {facts, visit, user};
    struct gemm_ask ask;
    return chain_ask(chain, facts, &ask) &&
           (chain->int8 ? report_int8 : report_bf16)(&to, &ask, chain);
}

/* --- commands of a list ---------------------------------------------------------------------- */

/* A command with its place, and what of terms goes to and from it: whether x is there, and those,
 * or the digits, that each number it makes is left as. */
struct listed {
    const struct tec_capture *capture;
    int at;
    const struct tec_cuda_facts *facts;
    tec_grid_fn *visit;
    void *user;
    bool ready;
    int made_terms, made_digits;
};

/* A start, with its terms: nobody writes them where they are. */
static void report_listed(void *user, const struct tec_grid *grid)
{
    const struct listed *l = user;
    struct tec_grid g = *grid;
    if (l->ready && g.writes_terms)
        return;
    g.made_terms = l->made_terms;
    g.made_digits = l->made_digits;
    if (l->made_terms && !g.what)
        g.what = "terms";
    if (l->made_digits && !g.what)
        g.what = "digits";
    l->visit(l->user, &g);
}

static void set_made(struct listed *l, int next)
{
    struct chain_handed made = chain_handed_to(l->capture, next, l->facts);
    l->made_terms = made.terms;
    l->made_digits = made.digits;
}

static bool take_chain(const struct tec_cuda_chain *chain, void *user)
{
    struct listed *l = user;
    set_made(l, l->at + chain_length(chain));
    return tec_grids_of_chain(chain, l->facts, report_listed, l);
}

int tec_grids_at(const struct tec_capture *capture, int at, const struct tec_cuda_facts *facts,
                 tec_grid_fn *visit, void *user)
{
    const struct tec_capture_step *c = &capture->commands[at];
    struct listed l = {capture, at, facts, visit, user, false, 0, 0};
    if (c->kind != TEC_RUN)
        return 1;
    l.ready = chain_handed_to(capture, at, facts).x != NULL;
    int n = chain_at(capture, at, facts, take_chain, &l);
    if (n > 0)
        return n;
    set_made(&l, at + 1);
    tec_grids_of(c->kernel, c->args, facts, report_listed, &l);
    return 1;
}
