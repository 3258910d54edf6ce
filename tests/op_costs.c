/* op_costs.c - what each op says that a call computes and moves, against values worked out by hand.
 */
#include "ops/program.h"

#include "tests/tap.h"

/* What a pointer that is never read through stands for: a weight, a vector, a count. */
static int things[4];
static float some[4];
static int *const live = &things[0], *const other = &things[1];

/* 3 live rows that see 10 keys in all, of two sequences of 4 and 3 keys. */
static struct tec_cost cost_of(const struct tec_call *call)
{
    const struct tec_live items[] = {{live, 3, 10, 7}, {other, 2, 0, 0}};
    const struct tec_counts counts = {items, 2};
    return tec_ops[call->op].op->cost(call, &counts);
}

static void check(const struct tec_call *call, const struct tec_cost *want)
{
    struct tec_cost got = cost_of(call);
    CHECK_INT(got.products, ==, want->products);
    CHECK_INT(got.products_bytes, ==, want->products_bytes);
    CHECK_INT(got.products_f32, ==, want->products_f32);
    CHECK_INT(got.other, ==, want->other);
    CHECK_INT(got.weights, ==, want->weights);
    CHECK_INT(got.read, ==, want->read);
    CHECK_INT(got.written, ==, want->written);
    CHECK_INT(got.kv_read, ==, want->kv_read);
    CHECK_INT(got.kv_written, ==, want->kv_written);
}
#define IS(call, ...) check(&(call), &(struct tec_cost){__VA_ARGS__})

TEST(every_op_has_a_cost)
{
    for (int i = 0; i < TEC_OP_COUNT; i++)
        CHECK(tec_ops[i].op->cost != NULL);
}

TEST(linear)
{
    struct tec_call call = tec_call_of(TEC_OP_linear, "linear");
    struct tec_gemm_args *a = &call.args.gemm;
    *a = (struct tec_gemm_args){.rows = live, .max_rows = 8, .n = 16, .k = 5};
    /* 2 x 3 x 16 x 5; W 16 x 5 x 4; x 3 x 5 x 4; y 3 x 16 x 4 */
    IS(call, .products_f32 = 480, .weights = 320, .read = 60, .written = 192);
    call.bf16 = true; /* W 16 x 6 x 2: k is padded to pairs */
    IS(call, .products = 480, .weights = 192, .read = 60, .written = 192);
    a->bias = some; /* 48 additions, 64 bytes; the gate 48 and 64 as well; so does the sum */
    a->gate = some;
    a->add = 1;
    IS(call, .products = 480, .other = 144, .weights = 320, .read = 252, .written = 192);
    a->fixed = other; /* a second gate is read */
    IS(call, .products = 480, .other = 144, .weights = 384, .read = 252, .written = 192);
    /* A count that is not listed is at its capacity. */
    *a = (struct tec_gemm_args){.rows = &things[2], .max_rows = 8, .n = 16, .k = 2};
    IS(call, .products = 512, .weights = 64, .read = 64, .written = 512);
    a->rows = live; /* never more than there is room for */
    a->max_rows = 2;
    IS(call, .products = 128, .weights = 64, .read = 16, .written = 128);
    call.bf16 = false;
    *a = (struct tec_gemm_args){.rows = live, .max_rows = 8, .n = 16, .k = 9};
    call.windows = (struct tec_windows){.in_h = 4, .in_w = 5, .cols = 1, .side = 3};
    IS(call, .products_f32 = 864, .weights = 576, .read = 80, .written = 192); /* 20 pixels */
}

TEST(embed)
{
    struct tec_call call = tec_call_of(TEC_OP_embed, "embed");
    call.args.embed = (struct tec_embed_args){.rows = live, .max_rows = 8, .n = 100, .k = 6};
    IS(call, .other = 18, .weights = 72, .read = 12, .written = 72);
    call.bf16 = true;
    IS(call, .other = 18, .weights = 36, .read = 12, .written = 72);
}

TEST(norms)
{
    struct tec_call call = tec_call_of(TEC_OP_layer_norm, "norm");
    struct tec_norm_args *a = &call.args.norm;
    *a = (struct tec_norm_args){
        .rows = live, .max_rows = 8, .cols = 10, .weight = some, .bias = some};
    /* 30 elements of 6 + weight + bias, 3 rows of 5 */
    IS(call, .other = 255, .weights = 80, .read = 120, .written = 120);
    call.op = TEC_OP_rms_norm;
    a->bias = NULL;
    a->offset = 1.0F; /* 30 elements of 3 + weight + offset, 3 rows of 4 */
    IS(call, .other = 162, .weights = 40, .read = 120, .written = 120);
    a->bias = some;
    a->fixed = other; /* both sets of vectors are read */
    IS(call, .other = 192, .weights = 160, .read = 120, .written = 120);
}

TEST(norms_of_heads_caps_and_sums)
{
    struct tec_call call = tec_call_of(TEC_OP_head_norm, "head_norm");
    call.args.head_norm = (struct tec_head_norm_args){
        .rows = live, .max_rows = 8, .heads = 4, .head_dim = 8, .weight = some};
    /* 3 rows of 4 heads: 8 elements of 3 + weight, and 4 for the head */
    IS(call, .other = 432, .weights = 32, .read = 384, .written = 384);
    call = tec_call_of(TEC_OP_soft_cap, "cap");
    call.args.soft_cap = (struct tec_soft_cap_args){.rows = live, .max_rows = 8, .cols = 10};
    IS(call, .other = 90, .read = 120, .written = 120);
    call = tec_call_of(TEC_OP_add, "add");
    call.args.add = (struct tec_add_args){.rows = live, .max_rows = 8, .cols = 10};
    IS(call, .other = 30, .read = 240, .written = 120);
}

TEST(rope_store)
{
    struct tec_call call = tec_call_of(TEC_OP_rope_store, "rope");
    struct tec_rope_args *a = &call.args.rope;
    *a = (struct tec_rope_args){
        .rows = live, .max_rows = 8, .heads = 4, .kv_heads = 1, .head_dim = 8, .cos_sin = some};
    /* q 32, k and v 8 each, and two integers; 3 x (32 + 8) x 3 FLOP; 4 pairs of cos and sin a row
     */
    IS(call, .other = 360, .weights = 96, .read = 600, .written = 384, .kv_written = 192);
    call.bf16 = true;
    a->q_at = -1; /* keys and values alone */
    IS(call, .other = 72, .weights = 96, .read = 216, .kv_written = 96);
    a->cos_sin = NULL;
    IS(call, .read = 204, .kv_written = 96);
}

TEST(attention)
{
    struct tec_call call = tec_call_of(TEC_OP_attention, "attention");
    struct tec_attention_args *a = &call.args.attention;
    *a = (struct tec_attention_args){
        .rows = live, .max_rows = 8, .heads = 4, .kv_heads = 2, .head_dim = 8};
    /* 4 x 4 x 8 x 10; besides 5 x 4 x 10 + 3 x 32; keys 7 x 2 x 2 x 8 x 4 */
    IS(call, .products_f32 = 1280, .other = 296, .read = 408, .written = 384, .kv_read = 896);
    call.bf16 = true;
    IS(call, .products = 1280, .other = 296, .read = 408, .written = 384, .kv_read = 448);
    a->rows = &things[2]; /* not listed: 8 rows that see each other */
    IS(call, .products = 8192, .other = 1536, .read = 1088, .written = 1024, .kv_read = 512);
    a->rows = live; /* one addition more a score; a position a row; a table of 4 x 7 */
    a->bias = some;
    a->reach = 3;
    IS(call, .products = 1280, .other = 336, .weights = 112, .read = 420, .written = 384,
       .kv_read = 448);
}

TEST(attention_mass)
{
    struct tec_call call = tec_call_of(TEC_OP_attention_mass, "mass");
    struct tec_mass_args *a = &call.args.mass;
    *a = (struct tec_mass_args){.rows = live,
                                .max_rows = 8,
                                .heads = 4,
                                .kv_heads = 2,
                                .head_dim = 8,
                                .n_ranges = other,
                                .max_ranges = 5};
    /* 2 x 4 x 8 x 10; besides 6 x 4 x 10 + 3 x 2 x 8; 3 x 34 x 4 + 2 x 4; keys 7 x 2 x 8 x 4 */
    IS(call, .products_f32 = 640, .other = 288, .read = 416, .written = 24, .kv_read = 448);
    call.bf16 = true;
    a->n_ranges = &things[2]; /* not listed: 5 ranges */
    IS(call, .products = 640, .other = 360, .read = 428, .written = 60, .kv_read = 224);
}

TEST(maps)
{
    struct tec_call call = tec_call_of(TEC_OP_gelu, "map");
    call.args.map = (struct tec_map_args){.rows = live, .max_rows = 8, .cols = 10};
    IS(call, .other = 270, .read = 120, .written = 120);
    call.op = TEC_OP_gelu_erf;
    IS(call, .other = 150, .read = 120, .written = 120);
    call.op = TEC_OP_relu;
    IS(call, .other = 30, .read = 120, .written = 120);
    call.op = TEC_OP_silu;
    IS(call, .other = 90, .read = 120, .written = 120);
    call.op = TEC_OP_copy;
    IS(call, .read = 120, .written = 120);
    call = tec_call_of(TEC_OP_gelu_mul, "act");
    call.args.gated = (struct tec_gated_args){.rows = live, .max_rows = 8, .cols = 10};
    IS(call, .other = 300, .read = 240, .written = 120);
    call.op = TEC_OP_silu_mul;
    IS(call, .other = 120, .read = 240, .written = 120);
    call = tec_call_of(TEC_OP_guide, "guide");
    call.args.guide = (struct tec_guide_args){.rows = live, .max_rows = 8, .cols = 10};
    IS(call, .other = 153, .read = 372, .written = 120);
    call = tec_call_of(TEC_OP_euler, "euler");
    call.args.euler = (struct tec_euler_args){.rows = live, .max_rows = 8, .cols = 10};
    IS(call, .other = 60, .read = 240, .written = 120);
}

TEST(four_bit_weights_and_penalties)
{
    struct tec_call call = tec_call_of(TEC_OP_linear, "product");
    call.args.gemm =
        (struct tec_gemm_args){.rows = live, .max_rows = 8, .n = 32, .k = 40, .group = 32};
    /* two panels of 2 + 5 lines; besides nothing */
    IS(call, .products = 3 * 32 * 40 * 2, .products_bytes = 3 * 32 * 40 * 2, .weights = 2 * 7 * 64,
       .read = 480, .written = 384);
    static int order[40];
    call.args.gemm.order = order;
    IS(call, .products = 3 * 32 * 40 * 2, .products_bytes = 3 * 32 * 40 * 2,
       .weights = 2 * 7 * 64 + 160, .read = 480, .written = 384);
    call = tec_call_of(TEC_OP_repetition_penalty, "repetition_penalty");
    call.args.repetition_penalty =
        (struct tec_repetition_penalty_args){.rows = live, .max_rows = 8, .words = 4};
    IS(call, .read = 60, .written = 12);
    call = tec_call_of(TEC_OP_sample, "sample");
    call.args.sample = (struct tec_sample_args){.rows = live, .max_rows = 8, .cols = 10};
    IS(call, .other = 2700, .read = 1512, .written = 240);
}

TEST(trees)
{
    struct tec_call call = tec_call_of(TEC_OP_logits_mask, "logits_mask");
    call.args.logits_mask = (struct tec_logits_mask_args){.rows = live, .max_rows = 8, .cols = 10};
    IS(call, .other = 30, .read = 12, .written = 120);
    call = tec_call_of(TEC_OP_log_prob, "log_prob");
    call.args.log_prob = (struct tec_log_prob_args){.rows = live, .max_rows = 8, .cols = 10};
    IS(call, .other = 120, .read = 240);
}

TEST(tables)
{
    struct tec_call call = tec_call_of(TEC_OP_add_table, "position");
    struct tec_add_table_args *a = &call.args.add_table;
    *a = (struct tec_add_table_args){.rows = live, .max_rows = 8, .cols = 10, .period = 2};
    IS(call, .other = 30, .weights = 80, .read = 120, .written = 120);
    a->period = 5;
    IS(call, .other = 30, .weights = 120, .read = 120, .written = 120);
    a->row = things; /* 3 indices */
    IS(call, .other = 30, .weights = 120, .read = 132, .written = 120);
    call = tec_call_of(TEC_OP_patchify, "patchify");
    call.args.patchify = (struct tec_patchify_args){
        .count = other, .max_pictures = 3, .height = 4, .width = 6, .patch = 2};
    IS(call, .weights = 3072, .read = 144, .written = 576);
    call = tec_call_of(TEC_OP_unfold, "unfold");
    call.args.window = (struct tec_window_args){
        .rows = live, .max_rows = 8, .cols = 10, .in_h = 4, .in_w = 5, .side = 3};
    IS(call, .read = 800, .written = 1080); /* 20 pixels of 10; 3 windows of 9 */
    call = tec_call_of(TEC_OP_max_pool, "pool");
    call.args.window = (struct tec_window_args){
        .rows = live, .max_rows = 8, .cols = 10, .in_h = 4, .in_w = 5, .side = 3};
    IS(call, .other = 270, .read = 800, .written = 120);
    call = tec_call_of(TEC_OP_read_kv, "tap");
    call.args.read_kv = (struct tec_read_kv_args){.rows = live, .max_rows = 8, .cols = 10};
    IS(call, .read = 12, .written = 120, .kv_read = 120);
    call.bf16 = true;
    IS(call, .read = 12, .written = 120, .kv_read = 60);
}

TEST(squares_of_windows)
{
    struct tec_call call = tec_call_of(TEC_OP_conv3x3, "conv");
    struct tec_conv_args *a = &call.args.conv;
    *a = (struct tec_conv_args){
        .rows = live, .max_rows = 25, .in_h = 5, .in_w = 5, .out_w = 5, .n = 16, .k = 10};
    /* 3 windows lie in 1 line of 3 squares: 3 x 16 x 2 x 160; 3 x (320 + 384); 16 x 640; 25 x 40 */
    IS(call, .products_f32 = 15360, .other = 2112, .weights = 10240, .read = 1000, .written = 192);
    a->bias = some; /* 48 additions and 64 bytes; the sum 48, and y is read */
    a->add = 1;
    IS(call, .products_f32 = 15360, .other = 2208, .weights = 10304, .read = 1192, .written = 192);
    a->rows = &things[2]; /* all 25: 3 lines of 3 squares */
    a->bias = NULL;
    a->add = 0;
    IS(call, .products_f32 = 46080, .other = 6336, .weights = 10240, .read = 1000, .written = 1600);
}

TEST(rows_and_slots_from_elsewhere)
{
    struct tec_call call = tec_call_of(TEC_OP_take_rows, "last rows");
    call.args.take = (struct tec_take_args){.rows = live, .max_rows = 8, .cols = 10, .group = 2};
    IS(call, .read = 132, .written = 120); /* 3 rows of 10, and 3 indices */
    call = tec_call_of(TEC_OP_mean_rows, "mean");
    call.args.mean = (struct tec_mean_args){.rows = live, .max_rows = 8, .x_rows = 9, .cols = 10};
    IS(call, .other = 120, .read = 384, .written = 120); /* 9 rows of 10, 3 divided; 3 spans */
    call = tec_call_of(TEC_OP_move_kv, "shift");
    call.args.move =
        (struct tec_move_args){.count = live, .max_moves = 8, .max_tokens = 5, .row = 64};
    IS(call, .read = 36, .kv_read = 448, .kv_written = 448); /* 7 slots in all */
    call.args.move.count = other;                            /* not said: 2 moves of 5 */
    IS(call, .read = 24, .kv_read = 640, .kv_written = 640);
    call.args.move.count = &things[2]; /* not listed: all 8 */
    IS(call, .read = 96, .kv_read = 2560, .kv_written = 2560);
}

TEST(kept_keys_and_values)
{
    struct tec_call call = tec_call_of(TEC_OP_place_kv, "place");
    struct tec_place_args *a = &call.args.place;
    static const float cos_sin[8];
    *a = (struct tec_place_args){.count = live,
                                 .max_places = 8,
                                 .max_tokens = 5,
                                 .kv_heads = 2,
                                 .head_dim = 8,
                                 .cos_sin = cos_sin};
    /* 7 tokens in 3 places: 7 x 16 x 3 FLOP; 4 pairs a token; 7 x 2 x 16 x 4 bytes */
    IS(call, .other = 336, .weights = 224, .read = 96, .kv_read = 896, .kv_written = 896);
    call.bf16 = true;
    a->cos_sin = NULL;
    IS(call, .read = 96, .kv_read = 448, .kv_written = 448);
    a->count = other; /* not said: 2 places of 5 */
    IS(call, .read = 64, .kv_read = 640, .kv_written = 640);
}

TEST(next_token)
{
    struct tec_call call = tec_call_of(TEC_OP_next_token, "next");
    call.args.next_token = (struct tec_next_token_args){.rows = live, .max_rows = 8, .cols = 100};
    IS(call, .other = 300, .read = 1296, .written = 96);
}

TEST(sums_stay_in_range)
{
    CHECK_INT(tec_cost_times(INT64_MAX / 2, 3), ==, INT64_MAX);
    CHECK_INT(tec_cost_plus(INT64_MAX, 1), ==, INT64_MAX);
    struct tec_cost sum = {.products = 1, .kv_read = INT64_MAX};
    const struct tec_cost more = {.products = 2, .products_f32 = 3, .other = 4, .kv_read = 5};
    tec_cost_add(&sum, &more);
    CHECK_INT(sum.products, ==, 3);
    CHECK_INT(sum.kv_read, ==, INT64_MAX);
    CHECK_INT(tec_cost_bytes(&sum), ==, INT64_MAX);
    CHECK_INT(tec_cost_flops(&sum), ==, 10);
}

TAP_MAIN
