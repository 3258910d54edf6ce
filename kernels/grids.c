/* grids.c - starts of kernels for recorded commands, as kernels/cuda/ makes them. */
#include "kernels/grids_own.h"

#include "kernels/cuda/chain_terms.h"
#include "kernels/cuda/row_grid.h"

/* --- attention ------------------------------------------------------------------------------- */

static void of_attention(const struct tec_grids_to *to, struct tec_grid *g)
{
    const struct tec_attention_args *a = g->args;
    bool bf16 = g->kernel == TEC_KERNEL_attention_bf16;
    if (a->max_rows <= 0)
        return;
    if (attention_is_wide(a)) {
        tec_grids_blocks(g, a->max_rows, a->heads, 1, THREADS);
        g->shared = KEYS * (sizeof(size_t) + sizeof(float));
        g->name = "attention_wide_kernel";
        g->what = "wide";
        tec_grids_report(to, g);
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
    tec_grids_report(to, g);
}

/* Over bf16 memory, by terms; else, and where heads are too wide for that, by multiply-adds. */
static void of_attention_mass(const struct tec_grids_to *to, struct tec_grid *g)
{
    enum { QUERIES = 16, FIXED = 26432 };
    const struct tec_mass_args *a = g->args;
    int group = a->kv_heads > 0 ? a->heads / a->kv_heads : 1;
    int rows = QUERIES / (group < QUERIES ? group : QUERIES);
    if (g->kernel == TEC_KERNEL_attention_mass_bf16)
        g->mass = mass_choose(a, to->facts);
    tec_grids_blocks(g, g->mass.m ? g->mass.blocks : ceil_div(a->max_rows, rows), 1, 1, THREADS);
    g->shared = g->mass.shared;
    g->fixed_shared = g->mass.m ? 0 : FIXED;
    g->registers = g->mass.m == 64 ? 112 : g->mass.m ? 80 : 88;
    g->name = g->mass.m ? "attention_mass_terms_kernel" : "attention_mass_kernel";
    g->what = g->mass.m == 64 ? "64 rows" : g->mass.m ? "16 rows" : NULL;
    tec_grids_report(to, g);
}

/* --- rows and columns ------------------------------------------------------------------------ */

static void quads(const struct tec_grids_to *to, struct tec_grid *g, int rows, int cols)
{
    tec_grids_blocks(g, rows, ceil_div(cols, ROW_COLUMNS), 1, ROW_THREADS);
    tec_grids_report(to, g);
}

#define OF_QUADS(family, args_of, cols)                                        \
    static void of_##family(const struct tec_grids_to *to, struct tec_grid *g) \
    {                                                                          \
        const struct tec_##args_of##_args *a = g->args;                        \
        g->name = #family "_kernel";                                           \
        quads(to, g, a->max_rows, cols);                                       \
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
static void columns(const struct tec_grids_to *to, struct tec_grid *g, int rows, int cols)
{
    tec_grids_blocks(g, rows, ceil_div(cols, ROW_THREADS), 1, ROW_THREADS);
    tec_grids_report(to, g);
}

static void of_unfold(const struct tec_grids_to *to, struct tec_grid *g)
{
    const struct tec_window_args *a = g->args;
    g->name = "unfold_kernel";
    columns(to, g, a->max_rows, a->side * a->side * a->cols);
}

/* 16 squares of four windows by 32 channels of y a block, as kernels/cuda/conv3x3.cu has them. */
static void of_conv3x3(const struct tec_grids_to *to, struct tec_grid *g)
{
    enum { SQUARES = 16, COLUMNS = 32, THREADS_OF_CONV = 256, FIXED = 24576 };
    const struct tec_conv_args *a = g->args;
    g->name = "conv3x3_kernel";
    int squares = ceil_div(ceil_div(a->max_rows, a->out_w), 2) * ceil_div(a->out_w, 2);
    tec_grids_blocks(g, ceil_div(squares, SQUARES), ceil_div(a->n, COLUMNS), 1, THREADS_OF_CONV);
    g->fixed_shared = FIXED;
    g->registers = 152;
    tec_grids_report(to, g);
}

static void of_mean(const struct tec_grids_to *to, struct tec_grid *g)
{
    const struct tec_mean_args *a = g->args;
    g->name = "mean_rows_kernel";
    columns(to, g, a->max_rows, a->cols);
}

static void of_logits_mask(const struct tec_grids_to *to, struct tec_grid *g)
{
    const struct tec_logits_mask_args *a = g->args;
    g->name = "logits_mask_kernel";
    columns(to, g, a->max_rows, a->cols);
}

static void of_repetition_penalty(const struct tec_grids_to *to, struct tec_grid *g)
{
    const struct tec_repetition_penalty_args *a = g->args;
    g->name = "repetition_penalty_kernel";
    columns(to, g, a->max_rows, ceil_div(a->cols, 32));
}

static void of_rope(const struct tec_grids_to *to, struct tec_grid *g)
{
    const struct tec_rope_args *a = g->args;
    g->name = "rope_kernel";
    int width = a->cos_sin ? a->head_dim / 2 : a->head_dim;
    columns(to, g, a->max_rows, ((a->q_at >= 0 ? a->heads : 0) + 2 * a->kv_heads) * width);
}

static void of_norm(const struct tec_grids_to *to, struct tec_grid *g)
{
    const struct tec_norm_args *a = g->args;
    g->name = "norm_kernel";
    tec_grids_blocks(g, a->max_rows, 1, 1, norm_threads(a->cols));
    tec_grids_report(to, g);
}

static void of_head_norm(const struct tec_grids_to *to, struct tec_grid *g)
{
    const struct tec_head_norm_args *a = g->args;
    g->name = "head_norm_kernel";
    tec_grids_blocks(g, a->max_rows, 1, 1, NORM_THREADS);
    tec_grids_report(to, g);
}

static void of_patchify(const struct tec_grids_to *to, struct tec_grid *g)
{
    const struct tec_patchify_args *a = g->args;
    g->name = "patchify_kernel";
    int patches = a->width / a->patch * (a->height / a->patch);
    tec_grids_blocks(g, a->max_pictures * patches, 1, 1, ROW_THREADS);
    tec_grids_report(to, g);
}

static void of_place(const struct tec_grids_to *to, struct tec_grid *g)
{
    enum { PLACES = 64 };
    const struct tec_place_args *a = g->args;
    g->name = "place_kv_kernel";
    int cols = a->kv_heads * a->head_dim, units = a->cos_sin ? cols / 2 + cols : 2 * cols;
    int places = a->max_places < PLACES ? a->max_places : PLACES;
    tec_grids_blocks(g, a->max_tokens, ceil_div(units, ROW_THREADS), places, ROW_THREADS);
    tec_grids_report(to, g);
}

static void of_move(const struct tec_grids_to *to, struct tec_grid *g)
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
    tec_grids_blocks(g, ceil_div(pieces, ROW_THREADS * MOVE_PIECES), 1, 1, ROW_THREADS);
    tec_grids_report(to, g);
}

/* A block for each row, of 256 threads. */
static void of_sample(const struct tec_grids_to *to, struct tec_grid *g)
{
    const struct tec_sample_args *a = g->args;
    g->name = "sample_kernel";
    tec_grids_blocks(g, a->max_rows, 1, 1, 256);
    tec_grids_report(to, g);
}

static void of_log_prob(const struct tec_grids_to *to, struct tec_grid *g)
{
    const struct tec_log_prob_args *a = g->args;
    g->name = "log_prob_kernel";
    tec_grids_blocks(g, a->max_rows, 1, 1, 256);
    tec_grids_report(to, g);
}

static void of_next_token(const struct tec_grids_to *to, struct tec_grid *g)
{
    enum { SHARE = 4096, BEST = 8 }; /* columns of a block; bytes of what it leaves */
    const struct tec_next_token_args *a = g->args;
    g->name = "next_token_kernel";
    if (a->max_rows < 1)
        return;
    size_t room = to->facts->partials_size / BEST / (size_t)a->max_rows;
    int shares = ceil_div(a->cols, SHARE);
    tec_grids_blocks(g, (size_t)shares > room ? (int)room : shares, a->max_rows, 1, 256);
    tec_grids_report(to, g);
}

/* --- commands -------------------------------------------------------------------------------- */

#define of_attention_f32 of_attention
#define of_attention_bf16 of_attention
#define of_attention_mass_f32 of_attention_mass
#define of_attention_mass_bf16 of_attention_mass
#define of_gemm_bf16 tec_grids_gemm_bf16
#define of_gemm_int4 tec_grids_gemm_int4
#define of_gemm_int8 tec_grids_gemm_int8
#define of_gemm_f32 tec_grids_gemm_f32
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

static void (*const of_kernel[TEC_KERNEL_COUNT])(const struct tec_grids_to *to,
                                                 struct tec_grid *g) = {
#define KERNEL(name, args) [TEC_KERNEL_##name] = of_##name,
#include "kernels/kernels.def"
#undef KERNEL
};

void tec_grids_of(enum tec_kernel_id kernel, const void *args, const struct tec_cuda_facts *facts,
                  tec_grid_fn *visit, void *user)
{
    const struct tec_grids_to to = {facts, visit, user};
    struct tec_grid grid = {.kernel = kernel, .args = args};
    of_kernel[kernel](&to, &grid);
}

bool tec_grids_of_chain(const struct tec_cuda_chain *chain, const struct tec_cuda_facts *facts,
                        tec_grid_fn *visit, void *user)
{
    const struct tec_grids_to to = {facts, visit, user};
    struct gemm_ask ask;
    return chain_ask(chain, facts, &ask) &&
           (chain->int8 ? tec_grids_int8 : tec_grids_bf16)(&to, &ask, chain);
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
