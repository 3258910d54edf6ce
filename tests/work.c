/* work.c - what launches of a plan compute and move, against the model's sizes; rooflines of it. */
#include "graph/compile/work.h"

#include "graph/model/program.h"
#include "tests/stage_work.h"
#include "tests/tiny.h"
#include "tools/measure/modelled.h"

#include <math.h>
#include <string.h>

static struct tec_error err;
static struct tiny tiny;

static const struct tec_plan_part *part(enum tec_part_kind kind)
{
    return tec_plan_part(tiny.plan, kind, 3);
}

/* FLOP of the matrices of layers for some rows, whose feed-forward has two, or three where it is
 * gated; the last layer of a prefill has k and v alone. */
static int64_t matrices(const struct tec_stack *s, int feeding, int64_t rows, bool keys_only)
{
    int64_t q = (int64_t)s->heads * s->head_dim, kv = (int64_t)s->kv_heads * s->head_dim;
    int64_t mlp = (int64_t)s->width * s->mlp * feeding;
    int64_t layer = s->width * (q + 2 * kv) + q * s->width + mlp;
    int64_t all = layer * s->layers - (keys_only ? layer - s->width * 2 * kv : 0);
    return 2 * rows * all;
}

static int64_t attention(const struct tec_stack *s, int64_t visible, int layers)
{
    return (int64_t)4 * s->heads * s->head_dim * visible * layers;
}

static int64_t dense(const struct tec_dense *d, int64_t rows)
{
    return 2 * rows * ((d->rows + 15) / 16 * 16) * d->cols;
}

/* The sizes of an action's layers, each of which has one attention and a gated feed-forward. */
static struct tec_stack expert_of(const struct tec_model_program *p)
{
    struct tec_stack s = {0};
    for (int i = p->parts[TEC_PART_OF_ACTION]; i < p->n; i++) {
        const struct tec_model_call *c = &p->calls[i];
        if (c->word == TEC_WORD_gated)
            s.mlp = c->cols;
        if (c->word != TEC_WORD_attention)
            continue;
        s.layers++;
        s.width = p->calls[c->in[0]].cols;
        s.heads = c->attend.heads;
        s.kv_heads = c->attend.kv_heads;
        s.head_dim = c->attend.head_dim;
    }
    return s;
}

/* FLOP of the products that a step of an action makes beside its layers, whose matrices alone are
 * rounded. */
static int64_t around_layers(const struct tec_model_program *p)
{
    int64_t all = 0;
    for (int i = p->parts[TEC_PART_OF_ACTION]; i < p->n; i++) {
        const struct tec_model_call *c = &p->calls[i];
        if (c->word != TEC_WORD_linear || c->timed || c->bf16)
            continue;
        const struct tec_model_call *x = &p->calls[c->in[0]];
        bool beside = x->word == TEC_WORD_beside; /* the columns that read rows */
        const struct tec_dense d = {.rows = c->cols,
                                    .cols = beside ? p->calls[x->in[0]].cols : x->cols};
        all += dense(&d, c->rows);
    }
    return all;
}

static int64_t products(const struct stage_work *w)
{
    return w->cost.products + w->cost.products_f32;
}

static void sum(enum tec_part_kind kind, struct tec_work_size size,
                struct stage_work sums[TEC_STAGE_COUNT])
{
    REQUIRE(tec_work_check(tiny.plan, part(kind), &size, &err) == TEC_OK);
    stage_work_sum(tiny.plan, part(kind), &size, sums);
}

/* Products of every stage by the formulas of a transformer. */
static void check_frame(const char *arch, bool bf16)
{
    struct stage_work w[TEC_STAGE_COUNT];
    REQUIRE(tiny_open(&tiny, arch, bf16, 1, 0, &err));
    const struct tec_model *m = tiny.model;
    const struct tec_stack expert = expert_of(m->program);
    const struct tec_stack *v = &m->vision.towers[0].stack, *t = &m->text.stack, *f = &expert;
    int64_t tokens = m->vision.tokens, p = 2 * tokens, n = p + 5, s = tec_suffix_rows(m);
    int patch = m->vision.patch;
    sum(TEC_PART_FRAME, (struct tec_work_size){.pictures = 2, .text = 5}, w);
    CHECK_INT(products(&w[TEC_STAGE_PICTURES]), ==,
              matrices(v, 2, p, false) + attention(v, p * tokens, v->layers) +
                  dense(&(struct tec_dense){.rows = v->width, .cols = 3 * patch * patch}, p) +
                  dense(&(struct tec_dense){.rows = t->width, .cols = v->width}, p));
    int64_t seen = m->text.causal ? p * p + (n * (n + 1) - p * (p + 1)) / 2 : n * n;
    CHECK_INT(products(&w[TEC_STAGE_PREFIX]), ==,
              matrices(t, 3, n, true) + attention(t, seen, t->layers - 1));
    bool state = m->program->n_states > 0;
    int64_t step = matrices(f, 3, s, false) + around_layers(m->program);
    step += attention(f, s * (n + s) - (state ? s - 1 : 0), f->layers);
    CHECK_INT(products(&w[TEC_STAGE_ACTION]), ==, step * TINY_STEPS);
    CHECK_INT(w[TEC_STAGE_DECODE].calls, ==, 0);
    int64_t calls = w[TEC_STAGE_PICTURES].calls + w[TEC_STAGE_PREFIX].calls;
    CHECK_INT(calls + w[TEC_STAGE_ACTION].calls + 2, ==,
              tec_capture_commands(part(TEC_PART_FRAME)->capture));
    CHECK_INT(w[TEC_STAGE_PREFIX].cost.kv_written, ==,
              n * 2 * t->kv_heads * t->head_dim * t->layers * (bf16 ? 2 : 4));
    sum(TEC_PART_PREFIX, (struct tec_work_size){.pictures = 2, .text = 5}, w);
    CHECK_INT(calls, ==, w[TEC_STAGE_PICTURES].calls + w[TEC_STAGE_PREFIX].calls);
    CHECK_INT(w[TEC_STAGE_ACTION].calls, ==, 0);
    tiny_close(&tiny);
}

TEST(a_frame_with_a_state_row)
{
    check_frame("pi0", true);
}

TEST(a_frame_of_adaptive_norms)
{
    check_frame("pi05", true);
    check_frame("pi05", false);
}

TEST(a_frame_of_causal_text)
{
    check_frame("pi05_causal", true);
}

/* Each step sees one token more; a launch of k steps is k launches of one. */
TEST(decode_steps_see_what_was_made)
{
    struct stage_work all[TEC_STAGE_COUNT], one[TEC_STAGE_COUNT];
    REQUIRE(tiny_open(&tiny, "pi05", true, 1, 0, &err));
    struct tec_work_size size = {.pictures = 1, .text = 4, .rows = 3, .k = 3, .made = 2};
    sum(TEC_PART_DECODE, size, all);
    const struct tec_stack *t = &tiny.model->text.stack;
    int64_t prefix = tiny.model->vision.tokens + 4;
    int64_t visible = 3 * (3 * prefix + 2 + 3 + 4);
    int64_t head = 2 * 3 * (int64_t)((tiny.model->text.vocab + 15) / 16 * 16) * t->width;
    CHECK_INT(products(&all[TEC_STAGE_DECODE]), ==,
              3 * (matrices(t, 3, 3, false) + head) + attention(t, visible, t->layers));
    struct tec_cost cost = {.products = 0};
    int64_t calls = 0;
    for (size.k = 1; size.made < 5; size.made++) {
        sum(TEC_PART_DECODE, size, one);
        tec_cost_add(&cost, &one[TEC_STAGE_DECODE].cost);
        calls += one[TEC_STAGE_DECODE].calls;
    }
    CHECK(memcmp(&cost, &all[TEC_STAGE_DECODE].cost, sizeof cost) == 0);
    CHECK_INT(calls, ==, all[TEC_STAGE_DECODE].calls);
    tiny_close(&tiny);
}

/* --- a ring ----------------------------------------------------------------------------------- */

enum { STAGES = 5, OTHERS = 3 };

static void open_ring(bool shifts, bool gathers, bool bf16)
{
    tiny_ring.stages = STAGES;
    tiny_ring.shifts = shifts;
    tiny_ring.gathers = gathers;
    REQUIRE(tiny_open(&tiny, "pi05_causal", bf16, 1, 0, &err));
}

static void close_ring(void)
{
    tiny_close(&tiny);
    memset(&tiny_ring, 0, sizeof tiny_ring);
}

static int64_t qkv_of(const struct tec_stack *s)
{
    return (int64_t)s->width * (s->heads + 2 * s->kv_heads) * s->head_dim;
}

static int64_t head_of(const struct tec_model *m, int64_t rows)
{
    return 2 * rows * ((m->text.vocab + 15) / 16 * 16) * m->text.stack.width;
}

/* A prefix and a row of each of three others, which see their own prefix and 1, 2, 3 tokens: all go
 * through every layer but the last, where only queries of last rows go on. */
TEST(a_packed_forward_is_a_prefill_and_a_row_of_each)
{
    struct stage_work w[TEC_STAGE_COUNT];
    const struct tec_work_size size = {.pictures = 2, .text = 5, .rows = OTHERS};
    open_ring(false, false, true);
    const struct tec_model *m = tiny.model;
    const struct tec_stack *t = &m->text.stack;
    int64_t p = 2 * m->vision.tokens, n = p + 5, all = n + OTHERS;
    int64_t seen = p * p + (n * (n + 1) - p * (p + 1)) / 2, others = 3 * n + 1 + 2 + 3;
    int64_t layer = matrices(t, 3, 1, false) / t->layers, qkv = 2 * qkv_of(t);
    sum(TEC_PART_PACKED, size, w);
    CHECK_INT(products(&w[TEC_STAGE_PREFIX]), ==,
              all * (layer * (t->layers - 1) + qkv) + attention(t, seen + others, t->layers - 1));
    CHECK_INT(products(&w[TEC_STAGE_DECODE]), ==,
              (1 + OTHERS) * (layer - qkv) + head_of(m, 1 + OTHERS) + attention(t, n + others, 1));
    CHECK_INT(w[TEC_STAGE_ACTION].calls + w[TEC_STAGE_SHIFT].calls, ==, 0);
    CHECK_INT(w[TEC_STAGE_PREFIX].cost.kv_written, ==,
              all * 2 * t->kv_heads * t->head_dim * t->layers * 2);
    sum(TEC_PART_PACKED, (struct tec_work_size){.pictures = 2, .text = 5}, w); /* nobody else */
    CHECK_INT(products(&w[TEC_STAGE_PREFIX]), ==,
              n * (layer * (t->layers - 1) + qkv) + attention(t, seen, t->layers - 1));
    sum(TEC_PART_DECODE, (struct tec_work_size){.pictures = 2, .text = 5, .rows = OTHERS, .k = 1},
        w);
    CHECK_INT(products(&w[TEC_STAGE_DECODE]), ==,
              matrices(t, 3, OTHERS, false) + head_of(m, OTHERS) + attention(t, others, t->layers));
    close_ring();
}

/* The bytes of what is gathered, and both ways of what moves on: of four of five sequences their
 * prefixes and none to three tokens, behind the attention of every layer. */
TEST(copies_of_a_ring_are_counted)
{
    struct stage_work plain[TEC_STAGE_COUNT], w[TEC_STAGE_COUNT];
    struct tec_work_size size = {.pictures = 2, .text = 5, .rows = OTHERS};
    open_ring(false, false, false);
    sum(TEC_PART_PACKED, size, plain);
    close_ring();
    open_ring(true, true, false);
    const struct tec_stack *t = &tiny.model->text.stack;
    int64_t n = 2 * tiny.model->vision.tokens + 5;
    int64_t token = (int64_t)2 * t->kv_heads * t->head_dim * t->layers * 4;
    CHECK(!tec_plan_part(tiny.plan, TEC_PART_SHIFT, 0));
    sum(TEC_PART_PACKED, size, w);
    CHECK_INT(w[TEC_STAGE_SHIFT].cost.kv_read, ==, (4 * n + 0 + 1 + 2 + 3) * token);
    CHECK_INT(w[TEC_STAGE_SHIFT].cost.kv_written, ==, (4 * n + 0 + 1 + 2 + 3) * token);
    CHECK_INT(w[TEC_STAGE_SHIFT].calls, ==, 2 * t->layers);
    CHECK_INT(w[TEC_STAGE_PREFIX].cost.kv_written - plain[TEC_STAGE_PREFIX].cost.kv_written, ==,
              (4 * n + 1 + 2 + 3) * token);
    CHECK_INT(products(&w[TEC_STAGE_PREFIX]), ==, products(&plain[TEC_STAGE_PREFIX]));
    size.rows = STAGES - 1; /* the oldest one leaves */
    sum(TEC_PART_PACKED, size, w);
    CHECK_INT(w[TEC_STAGE_SHIFT].cost.kv_read, ==, (4 * n + 0 + 1 + 2 + 3) * token);
    size.k = 1;
    sum(TEC_PART_DECODE, size, w);
    CHECK_INT(w[TEC_STAGE_SHIFT].cost.kv_read, ==, (3 * n + 1 + 2 + 3) * token);
    size.rows = STAGES;
    CHECK_INT(tec_work_check(tiny.plan, part(TEC_PART_PACKED), &size, &err), ==, TEC_INVALID);
    close_ring();
}

TEST(interpreted_a_shift_is_a_launch_of_its_own)
{
    struct stage_work w[TEC_STAGE_COUNT];
    struct tec_work_size size = {.pictures = 2, .text = 5, .rows = OTHERS};
    tiny_ring.interpret = true;
    open_ring(true, false, false);
    const struct tec_stack *t = &tiny.model->text.stack;
    int64_t n = 2 * tiny.model->vision.tokens + 5;
    int64_t token = (int64_t)2 * t->kv_heads * t->head_dim * t->layers * 4;
    sum(TEC_PART_SHIFT, size, w);
    CHECK_INT(w[TEC_STAGE_SHIFT].cost.kv_read, ==, (3 * n + 0 + 1 + 2) * token);
    CHECK_INT(w[TEC_STAGE_SHIFT].calls, ==, 2 * t->layers);
    sum(TEC_PART_PACKED, size, w);
    CHECK_INT(w[TEC_STAGE_SHIFT].calls, ==, 0);
    size.rows = 0;
    CHECK_INT(tec_work_check(tiny.plan, part(TEC_PART_SHIFT), &size, &err), ==, TEC_INVALID);
    close_ring();
}

/* --- memory and drafts ------------------------------------------------------------------------ */

enum { PROMPT = 20, KEPT = 12, SEGMENTS = 3, DRAFTS = 3, LAYERS = 64 };

/* A text model whose prompts have segments, and whose requests have a draft. */
static void open_planner(void)
{
    const struct tec_device_options d = {.kind = tap.device, .threads = 1, .tier = tec_tier_best()};
    const struct tec_model_choice choice = {
        .root = "pipelines/models", .arch = "qwen2", .size = "tiny"};
    const struct tec_weight_source source = {.seed = 5};
    tiny = (struct tiny){.plan = NULL};
    REQUIRE(tec_device_open(&tiny.device, &d, &tiny_heap, &err) == TEC_OK);
    REQUIRE(tec_model_open(&tiny.model, &choice, &tiny_heap, &err) == TEC_OK);
    const struct tec_weights_options w = {.model = tiny.model,
                                          .source = source,
                                          .device = tiny.device,
                                          .bf16 = true,
                                          .language = true};
    REQUIRE(tec_weights_load(&tiny.weights, &w, &tiny_heap, &err) == TEC_OK);
    const struct tec_plan_spec spec = {.frame_tokens = PROMPT + 5,
                                       .text_tokens = PROMPT + 5,
                                       .request_slots = 2,
                                       .new_tokens = 8,
                                       .n_batches = 2,
                                       .batches = {1, 2},
                                       .max_k = 8,
                                       .draft_tokens = DRAFTS,
                                       .segments = SEGMENTS + 1,
                                       .branches = true,
                                       .segment_tokens = KEPT + 4};
    const struct tec_plan_inputs in = {.spec = &spec,
                                       .model = tiny.model,
                                       .weights = tiny.weights,
                                       .source = source,
                                       .device = tiny.device};
    REQUIRE(tec_plan_create(&tiny.plan, &in, &tiny_heap, &err) == TEC_OK);
    REQUIRE(tiny.model->text.stack.layers > 3 && tiny.model->text.stack.layers <= LAYERS);
}

/* Two requests with four rows each, which see 23, 24, 25 and 26 keys: 196 pairs of rows and keys,
 * and of each sequence 26 keys are read. */
TEST(a_look_at_a_draft_is_a_row_for_each_of_its_tokens)
{
    struct stage_work w[TEC_STAGE_COUNT];
    struct tec_work_size size = {.text = PROMPT, .rows = 2, .made = 3};
    open_planner();
    const struct tec_model *m = tiny.model;
    const struct tec_stack *t = &m->text.stack;
    sum(TEC_PART_VERIFY, size, w);
    CHECK_INT(products(&w[TEC_STAGE_DECODE]), ==,
              matrices(t, 3, 8, false) + head_of(m, 8) + attention(t, 196, t->layers));
    CHECK_INT(w[TEC_STAGE_DECODE].cost.kv_read, ==,
              (int64_t)2 * 26 * 2 * t->kv_heads * t->head_dim * t->layers * 2);
    CHECK_INT(w[TEC_STAGE_PREFIX].calls, ==, 0);
    size.rows = 3;
    CHECK_INT(tec_work_check(tiny.plan, part(TEC_PART_VERIFY), &size, &err), ==, TEC_INVALID);
    tiny_close(&tiny);
}

/* Of 20 tokens 12 are segments', of which layers compute 12, 8, 4, 4, ...: 20, 16, 12 rows. All see
 * 20 x 21 / 2 = 210 keys; those of segments 78, two thirds of it 52, a third 26. Attention is
 * summed up where the next layer computes fewer: in the first and in the second one. */
TEST(a_recall_computes_fewer_rows_from_layer_to_layer)
{
    struct stage_work w[TEC_STAGE_COUNT], query[TEC_STAGE_COUNT];
    int anew[LAYERS] = {12, 8};
    unsigned char sums[LAYERS] = {TEC_SUMS_OF_ALL, TEC_SUMS_OF_ALL};
    for (int i = 2; i < LAYERS; i++)
        anew[i] = 4;
    struct tec_work_size size = {
        .text = PROMPT, .segments = {.n = SEGMENTS, .tokens = KEPT, .anew = anew, .sums = sums}};
    open_planner();
    const struct tec_stack *t = &tiny.model->text.stack;
    int64_t n = t->layers, q = (int64_t)t->heads * t->head_dim;
    int64_t kv = (int64_t)2 * t->kv_heads * t->head_dim, mlp = (int64_t)3 * t->width * t->mlp;
    int64_t rows = 20 + 16 + 12 * (n - 3), on = 16 + 12 * (n - 2), seen = 184 + 158 * (n - 2);
    sum(TEC_PART_RECALL, size, w);
    const struct tec_cost *c = &w[TEC_STAGE_PREFIX].cost;
    CHECK_INT(products(&w[TEC_STAGE_PREFIX]), ==,
              2 * rows * t->width * (q + kv) + 2 * 12 * t->width * kv + 4 * q * seen +
                  2 * on * (q * t->width + mlp) + 2 * q * (210 + 184));
    /* Keys and values, of two bytes: made for the rows, and placed for the others. */
    int64_t placed = 4 + 8 * (n - 2);
    CHECK_INT(c->kv_written, ==, (rows + 12 + placed) * kv * 2);
    CHECK_INT(c->kv_read, ==, placed * kv * 2 + 20 * kv * 2 * (n - 1) + 2 * 20 * kv);
    CHECK_INT(w[TEC_STAGE_DECODE].calls + w[TEC_STAGE_ACTION].calls, ==, 0);
    sums[0] = sums[1] = TEC_SUMS_OF_QUERY; /* sums of the eight other rows, which see 132 keys */
    sum(TEC_PART_RECALL, size, query);
    CHECK_INT(products(&w[TEC_STAGE_PREFIX]) - products(&query[TEC_STAGE_PREFIX]), ==,
              2 * q * (210 + 184 - 132 - 132));
    anew[3] = 5;
    CHECK_INT(tec_work_check(tiny.plan, part(TEC_PART_RECALL), &size, &err), ==, TEC_INVALID);
    size.segments.anew = NULL;
    size.segments.tokens = PROMPT;
    CHECK_INT(tec_work_check(tiny.plan, part(TEC_PART_RECALL), &size, &err), ==, TEC_INVALID);
    tiny_close(&tiny);
}

/* A branch takes no time of its own beside calls that take longer, and no less than all of it
 * together takes: nothing is gained where all is bound by memory, as on an H200 here. On the other
 * machine products are slow: the sums, which move more for a product, are hidden in part. */
static void check_branch_times(const struct tec_work_size *size)
{
    static const struct tec_pipeline none;
    struct tec_roofline r = {.pipeline = &none, .plan = tiny.plan, .size = *size};
    struct tec_heap heap = {0};
    struct tec_arena arena;
    int rows = 0, shorter = 0;
    tec_arena_init(&arena, &heap);
    const struct tec_peak slow = {
        .name = "slow", .bf16 = 0.008, .f32 = 1, .memory = 1, .boundary = 1};
    REQUIRE(tec_roofline_choose(&r, "h200", &arena, &heap, &err) == TEC_OK);
    r.peaks[r.n_peaks++] = &slow;
    REQUIRE(tec_roofline_make(&r, &arena, &err) == TEC_OK);
    for (int i = 0; i < r.n_rows; i++) {
        const struct tec_roofline_row *row = &r.rows[i];
        if (row->part->kind != TEC_PART_RECALL_BRANCH)
            continue;
        rows++;
        CHECK_INT(row->sum.beside, ==, tiny.model->text.stack.layers - 1);
        for (int b = 0; b < 2 * TEC_BOUNDS; b++) {
            double all = 0, hidden = 0, us = row->sum.us[b / TEC_BOUNDS][b % TEC_BOUNDS];
            for (int k = 0; k < row->n_ops; k++) {
                double op = row->ops[k].us[b / TEC_BOUNDS][b % TEC_BOUNDS];
                all += op;
                hidden += strcmp(row->ops[k].name, "importance") == 0 ? op : 0.0;
            }
            CHECK(hidden > 0 && us < 1.000001 * all && us > 0.999999 * (all - hidden));
            shorter += us < 0.999 * all;
            CHECK(b >= TEC_BOUNDS || us > 0.999999 * all);
        }
    }
    CHECK_INT(rows, ==, 1);
    CHECK_INT(shorter, >, 0);
    tec_arena_finish(&arena);
}

/* The same prompt with its sums in branches: all rows of a layer go through all of it, so those
 * that are dropped have the second half of one layer more. */
TEST(a_branch_hides_sums_and_drops_half_a_layer_later)
{
    struct stage_work w[TEC_STAGE_COUNT];
    int anew[LAYERS] = {12, 8};
    unsigned char sums[LAYERS] = {TEC_SUMS_OF_ALL, TEC_SUMS_OF_ALL};
    for (int i = 2; i < LAYERS; i++)
        anew[i] = 4;
    const struct tec_work_size size = {
        .text = PROMPT, .segments = {.n = SEGMENTS, .tokens = KEPT, .anew = anew, .sums = sums}};
    open_planner();
    const struct tec_stack *t = &tiny.model->text.stack;
    int64_t n = t->layers, q = (int64_t)t->heads * t->head_dim;
    int64_t kv = (int64_t)2 * t->kv_heads * t->head_dim, mlp = (int64_t)3 * t->width * t->mlp;
    int64_t rows = 20 + 16 + 12 * (n - 3), seen = 210 + 184 + 158 * (n - 3);
    sum(TEC_PART_RECALL_BRANCH, size, w);
    CHECK_INT(products(&w[TEC_STAGE_PREFIX]), ==,
              2 * rows * (t->width * (q + kv) + q * t->width + mlp) + 2 * 12 * t->width * kv +
                  4 * q * seen + 2 * q * (210 + 184));
    check_branch_times(&size);
    tiny_close(&tiny);
}

/* Where all is computed anew, a recall has a prefill's products. */
TEST(a_recall_of_all_is_a_prefill)
{
    struct stage_work w[TEC_STAGE_COUNT], whole[TEC_STAGE_COUNT];
    const struct tec_work_size size = {.text = PROMPT, .segments = {.n = SEGMENTS, .tokens = KEPT}};
    open_planner();
    sum(TEC_PART_RECALL, size, w);
    sum(TEC_PART_FRAME, size, whole);
    CHECK_INT(products(&w[TEC_STAGE_PREFIX]), ==, products(&whole[TEC_STAGE_PREFIX]));
    CHECK_INT(w[TEC_STAGE_PREFIX].cost.kv_written, ==, whole[TEC_STAGE_PREFIX].cost.kv_written);
    tiny_close(&tiny);
}

/* Three segments of four tokens, each of which sees 1 + 2 + 3 + 4 keys; keys are written twice. */
TEST(segments_that_are_kept_see_themselves)
{
    struct stage_work w[TEC_STAGE_COUNT];
    struct tec_work_size size = {.text = PROMPT, .segments = {.n = SEGMENTS, .tokens = KEPT}};
    open_planner();
    const struct tec_stack *t = &tiny.model->text.stack;
    sum(TEC_PART_REMEMBER, size, w);
    CHECK_INT(products(&w[TEC_STAGE_PREFIX]), ==,
              matrices(t, 3, KEPT, true) + attention(t, 30, t->layers - 1));
    CHECK_INT(w[TEC_STAGE_PREFIX].cost.kv_written, ==,
              (int64_t)2 * KEPT * 2 * t->kv_heads * t->head_dim * t->layers * 2);
    size.segments = (struct tec_work_segments){.n = 0};
    CHECK_INT(tec_work_check(tiny.plan, part(TEC_PART_REMEMBER), &size, &err), ==, TEC_INVALID);
    tiny_close(&tiny);
}

TEST(sizes_without_room_are_refused)
{
    REQUIRE(tiny_open(&tiny, "pi05", true, 1, 0, &err));
    const struct tec_plan_part *decode = part(TEC_PART_DECODE);
    const struct tec_work_size bad[] = {
        {.pictures = TINY_CAMERAS + 1, .text = 1, .rows = 1, .k = 1},
        {.pictures = -1, .text = 1, .rows = 1, .k = 1},
        {.text = TINY_TEXT + 1, .rows = 1, .k = 1},
        {.rows = 1, .k = 1},
        {.text = 1, .rows = 4, .k = 1},
        {.text = 1, .k = 1},
        {.text = 1, .rows = 1},
        {.text = 1, .rows = 1, .k = 9},
        {.text = 1, .rows = 1, .k = 1, .made = TINY_NEW + 1},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK_INT(tec_work_check(tiny.plan, decode, &bad[i], &err), ==, TEC_INVALID);
    const struct tec_work_size good = {.text = 1, .rows = 3, .k = 8};
    CHECK_INT(tec_work_check(tiny.plan, decode, &good, &err), ==, TEC_OK);
    tiny_close(&tiny);
}

static bool near(double got, double want)
{
    return fabs(got - want) < 1e-9;
}

/* 10 TFLOP/s of bf16, 1 of float32, 100 GB/s: 1e7 FLOP, 1e6 FLOP, 1e5 bytes a microsecond. */
TEST(a_call_takes_the_longest_of_its_bounds)
{
    const struct tec_peak peak = {
        .name = "none", .bf16 = 10, .f32 = 1, .memory = 100, .boundary = 2};
    struct tec_cost c = {.products = 30000000, .other = 4000000, .weights = 200000, .read = 400000};
    CHECK(near(tec_roofline_us(&peak, &c, TEC_BOUND_PRODUCTS), 3));
    CHECK(near(tec_roofline_us(&peak, &c, TEC_BOUND_ONE_TERM), 6)); /* bytes */
    c.read = 0;
    CHECK(near(tec_roofline_us(&peak, &c, TEC_BOUND_ONE_TERM), 4)); /* float32 */
    CHECK(near(tec_roofline_us(&peak, &c, TEC_BOUND_TWO_TERM), 6)); /* products, twice */
    c.products = 0;
    CHECK(near(tec_roofline_us(&peak, &c, TEC_BOUND_PRODUCTS), 0));
    CHECK(near(tec_roofline_bounded_us(&peak, 5, 3), 11));
}

/* Of 30 MFLOP 20 are of bytes: twice as fast as bf16 where nothing is known of a chip, four times
 * on one that halves bf16, and no faster than its multiprocessors: 2 * 1024 * 10 * 100 MHz
 * are 2.048 TOP/s. */
TEST(products_of_bytes_go_at_their_rate)
{
    struct tec_chip chip = {.capability = 89, .processors = 1000, .mhz = 1000};
    struct tec_peak peak = {.name = "none", .bf16 = 10, .f32 = 1, .memory = 100};
    const struct tec_cost c = {.products = 30000000, .products_bytes = 20000000};
    CHECK(near(tec_roofline_us(&peak, &c, TEC_BOUND_PRODUCTS), 2));
    CHECK(near(tec_roofline_us(&peak, &c, TEC_BOUND_ONE_TERM), 2));
    CHECK(near(tec_roofline_us(&peak, &c, TEC_BOUND_TWO_TERM), 4));
    peak.chip = &chip;
    CHECK(near(tec_roofline_us(&peak, &c, TEC_BOUND_ONE_TERM), 1.5));
    chip.processors = 10;
    chip.mhz = 100;
    CHECK(near(tec_roofline_us(&peak, &c, TEC_BOUND_ONE_TERM), 1 + 20 / 2.048));
}

TEST(machines_by_name)
{
    struct tec_roofline r = {.n_peaks = 0};
    struct tec_heap heap = {0};
    struct tec_arena arena;
    tec_arena_init(&arena, &heap);
    CHECK_INT(tec_roofline_choose(&r, "orin,h200", &arena, &heap, &err), ==, TEC_OK);
    CHECK_INT(r.n_peaks, ==, 2);
    CHECK_STR(r.peaks[0]->name, "orin");
    CHECK_STR(r.peaks[1]->name, "h200");
    const char *const bad[] = {"", "h", "h2000", "h200,", ",h200", "h200,,orin", "h200,h200"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK_INT(tec_roofline_choose(&r, bad[i], &arena, &heap, &err), ==, TEC_INVALID);
    tec_arena_finish(&arena);
}

TAP_MAIN
