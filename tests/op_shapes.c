/* op_shapes.c - what ops refuse, and where barriers stand, for ops whose rows come from elsewhere.
 */
#include "graph/compile/plan.h"

#include "tests/tap.h"

#include <string.h>

static struct tec_heap heap;
static struct tec_arena arena;
static struct tec_plan plan;
static int live = 3, many = 6, row[6];
static float cache[64];
static struct tec_move moves[2];

/* A program with x [8, 10], of which 3 rows live. */
static struct tec_program *begin(int *x)
{
    tec_arena_init(&arena, &heap);
    plan.n_parts = 1;
    tec_program_init(&plan.parts[0].program, &arena, "test");
    *x = tec_program_tensor(&plan.parts[0].program, "x", 8, 10, &live);
    return &plan.parts[0].program;
}

static void end(void)
{
    tec_arena_finish(&arena);
}

/* take_rows of x into a y of some shape; whether it is taken. */
static bool takes(int rows, int cols, struct tec_take_args args)
{
    int x;
    struct tec_program *p = begin(&x);
    struct tec_call call = tec_call_of(TEC_OP_take_rows, "take");
    call.in[0] = x;
    call.out[0] = tec_program_tensor(p, "y", rows, cols, &many);
    call.args.take = args;
    tec_program_call(p, &call);
    bool taken = p->status == TEC_OK;
    if (!taken)
        CHECK(strstr(p->err.message, "take_rows") != NULL);
    end();
    return taken;
}

TEST(rows_fill_what_they_are_taken_to)
{
    CHECK(takes(6, 10, (struct tec_take_args){.row = row, .group = 1}));
    CHECK(takes(3, 20, (struct tec_take_args){.row = row, .group = 2, .rows = &many}));
    CHECK(!takes(6, 10, (struct tec_take_args){.group = 1}));                   /* no list */
    CHECK(!takes(6, 10, (struct tec_take_args){.row = row}));                   /* no group */
    CHECK(!takes(6, 12, (struct tec_take_args){.row = row, .group = 1}));       /* columns */
    CHECK(!takes(3, 20, (struct tec_take_args){.row = row, .group = 2}));       /* no count */
    CHECK(!takes(3, 20, (struct tec_take_args){.row = row, .group = 1 << 30})); /* columns */
    const struct tec_take_args most = {.row = row, .group = 2, .rows = &many, .max_rows = 6};
    CHECK(takes(3, 20, most));
    CHECK(!takes(2, 20, most)); /* rows */
}

/* An op over windows of a picture of 2 x 4 pixels of 10 columns, into a y of some shape; whether it
 * is taken. */
static bool goes_over(enum tec_op_id op, int rows, int cols, struct tec_window_args args)
{
    int x;
    struct tec_program *p = begin(&x);
    struct tec_call call = tec_call_of(op, "windows");
    call.in[0] = x;
    call.out[0] = tec_program_tensor(p, "y", rows, cols, &many);
    call.args.window = args;
    tec_program_call(p, &call);
    bool taken = p->status == TEC_OK;
    end();
    return taken;
}

TEST(windows_cover_a_picture)
{
    struct tec_window_args a = {
        .in_h = 2, .in_w = 4, .side = 3, .stride = 2, .pad = 1, .dilation = 1};
    CHECK(goes_over(TEC_OP_unfold, 2, 90, a));
    CHECK(goes_over(TEC_OP_max_pool, 2, 10, a));
    CHECK(!goes_over(TEC_OP_unfold, 3, 90, a));   /* windows */
    CHECK(!goes_over(TEC_OP_unfold, 2, 80, a));   /* columns */
    CHECK(!goes_over(TEC_OP_max_pool, 2, 20, a)); /* columns */
    a.pad = 2;
    CHECK(!goes_over(TEC_OP_max_pool, 6, 10, a)); /* a window of nothing */
    CHECK(goes_over(TEC_OP_unfold, 6, 90, a));
    a.pad = 0;
    CHECK(!goes_over(TEC_OP_unfold, 1, 90, a)); /* no window fits */
    a.in_h = 3;
    a.pad = 1;
    CHECK(!goes_over(TEC_OP_unfold, 4, 90, a)); /* pixels */
    a.in_h = 2;
    a.stride = 0;
    CHECK(!goes_over(TEC_OP_unfold, 2, 90, a));
}

/* A product of windows of a picture of 2 x 4 pixels of 10 columns; whether it is taken. */
static bool reads(int rows, struct tec_gemm_args args, struct tec_windows windows, bool bf16)
{
    int x;
    struct tec_program *p = begin(&x);
    struct tec_call call = tec_call_of(TEC_OP_linear, "windows");
    call.in[0] = x;
    call.out[0] = tec_program_tensor(p, "y", rows, 32, &many);
    call.args.gemm = args;
    call.windows = windows;
    call.bf16 = bf16;
    tec_program_call(p, &call);
    bool taken = p->status == TEC_OK;
    end();
    return taken;
}

TEST(products_read_windows)
{
    static const float weight[1];
    const struct tec_gemm_args a = {.w = weight, .n = 32, .k = 90};
    const struct tec_windows w = {
        .in_h = 2, .in_w = 4, .side = 3, .stride = 2, .pad = 1, .dilation = 1};
    struct tec_gemm_args product = a;
    struct tec_windows other = w;
    CHECK(reads(2, a, w, false));
    CHECK(!reads(2, a, w, true));  /* bf16 */
    CHECK(!reads(3, a, w, false)); /* windows */
    product.k = 80;
    CHECK(!reads(2, product, w, false)); /* columns of a window */
    product = a;
    product.rows = &many;
    CHECK(!reads(2, product, w, false)); /* some of them */
    other.in_h = 3;
    CHECK(!reads(2, a, other, false)); /* pixels */
    other = w;
    other.stride = 0;
    CHECK(!reads(2, a, other, false));
    other = w;
    other.side = 6; /* 360 columns: too many */
    other.pad = 3;
    product = a;
    product.k = 360;
    CHECK(!reads(6, product, other, false));
}

/* Squares of windows of a picture of 2 x 4 pixels of 10 columns; whether they are taken. */
static bool squares(int rows, int cols, struct tec_conv_args args)
{
    int x;
    struct tec_program *p = begin(&x);
    struct tec_call call = tec_call_of(TEC_OP_conv3x3, "squares");
    call.in[0] = x;
    call.out[0] = tec_program_tensor(p, "y", rows, cols, &many);
    call.args.conv = args;
    tec_program_call(p, &call);
    bool taken = p->status == TEC_OK;
    end();
    return taken;
}

TEST(squares_cover_a_picture)
{
    static const float weight[1];
    const struct tec_conv_args a = {.w = weight, .in_h = 2, .in_w = 4, .pad = 1, .n = 32, .k = 10};
    struct tec_conv_args other = a;
    CHECK(squares(8, 20, a));
    CHECK(!squares(7, 20, a)); /* windows */
    CHECK(!squares(8, 36, (struct tec_conv_args){0}));
    CHECK(!squares(8, 10, a)); /* columns */
    other.w = NULL;
    CHECK(!squares(8, 20, other));
    other = a;
    other.k = 9;
    CHECK(!squares(8, 20, other));
    other = a;
    other.in_h = 3; /* pixels */
    CHECK(!squares(12, 20, other));
    other = a;
    other.pad = -1;
    CHECK(!squares(8, 20, other));
    other.pad = 0;
    CHECK(!squares(2, 20, other)); /* no window fits */
    other.pad = 2;
    CHECK(squares(24, 20, other));
}

TEST(rows_are_not_taken_to_where_they_are)
{
    int x;
    struct tec_program *p = begin(&x);
    struct tec_call call = tec_call_of(TEC_OP_take_rows, "take");
    call.in[0] = call.out[0] = x;
    call.args.take = (struct tec_take_args){.row = row, .group = 1};
    tec_program_call(p, &call);
    CHECK(p->status == TEC_SHAPE);
    end();
}

TEST(counts_follow_from_tensors)
{
    int x;
    struct tec_program *p = begin(&x);
    struct tec_call call = tec_call_of(TEC_OP_take_rows, "take");
    call.in[0] = x;
    call.out[0] = tec_program_tensor(p, "y", 6, 10, &many);
    call.args.take = (struct tec_take_args){.row = row, .group = 1};
    tec_program_call(p, &call);
    REQUIRE(p->status == TEC_OK);
    const struct tec_take_args *a = &p->steps[0].call.args.take;
    CHECK(a->rows == &many);
    CHECK_INT(a->max_rows, ==, 6);
    CHECK_INT(a->x_rows, ==, 8);
    CHECK_INT(a->cols, ==, 10);
    CHECK_INT(a->ldx, ==, 16);
    CHECK_INT(a->ldy, ==, 16);
    end();
}

/* mean_rows of x into a y of some columns, or into x itself. */
static bool means(int cols, const struct tec_span *span, bool itself)
{
    int x;
    struct tec_program *p = begin(&x);
    struct tec_call call = tec_call_of(TEC_OP_mean_rows, "mean");
    call.in[0] = x;
    call.out[0] = itself ? x : tec_program_tensor(p, "y", 6, cols, &many);
    call.args.mean.span = span;
    tec_program_call(p, &call);
    bool taken = p->status == TEC_OK;
    const struct tec_mean_args *a = &p->steps[0].call.args.mean;
    CHECK(!taken || (a->rows == &many && a->max_rows == 6 && a->x_rows == 8 && a->cols == 10));
    end();
    return taken;
}

TEST(means_are_of_listed_rows)
{
    static const struct tec_span span[6];
    CHECK(means(10, span, false));
    CHECK(!means(12, span, false));
    CHECK(!means(10, NULL, false));
    CHECK(!means(10, span, true));
}

/* place_kv into the cache, or into a planned tensor. */
static bool places_tokens(bool fixed, struct tec_place_args args)
{
    int x;
    struct tec_program *p = begin(&x);
    struct tec_call call = tec_call_of(TEC_OP_place_kv, "place");
    int kv = tec_program_fixed(p, "k", cache, sizeof cache, 8, 8, 8, NULL);
    call.out[0] = kv;
    call.out[1] = fixed ? kv : x;
    call.args.place = args;
    tec_program_call(p, &call);
    bool taken = p->status == TEC_OK;
    end();
    return taken;
}

TEST(kept_tokens_go_into_what_is_there)
{
    static const struct tec_place places[2];
    static const float table[64];
    const struct tec_place_args good = {.places = places,
                                        .count = &live,
                                        .max_places = 2,
                                        .max_tokens = 8,
                                        .kv_heads = 1,
                                        .head_dim = 8,
                                        .cos_sin = table};
    CHECK(places_tokens(true, good));
    CHECK(!places_tokens(false, good));
    struct tec_place_args a = good;
    a.places = NULL;
    CHECK(!places_tokens(true, a));
    a = good;
    a.count = NULL;
    CHECK(!places_tokens(true, a));
    a = good;
    a.max_places = 0;
    CHECK(!places_tokens(true, a));
    a = good;
    a.max_places = 1 << 30; /* tokens in all leave an int */
    CHECK(!places_tokens(true, a));
    a = good;
    a.kv_heads = 0;
    CHECK(!places_tokens(true, a));
    a = good;
    a.head_dim = 7;
    CHECK(!places_tokens(true, a));
    a.cos_sin = NULL;
    CHECK(places_tokens(true, a));
    a = good;
    a.max_tokens = 9; /* the cache has 8 slots */
    CHECK(!places_tokens(true, a));
}

/* attention_mass of x, 2 heads of 5, into `ranges` columns. */
static bool weighs_ranges(int rows, int ranges, struct tec_mass_args args)
{
    int x;
    struct tec_program *p = begin(&x);
    struct tec_call call = tec_call_of(TEC_OP_attention_mass, "mass");
    call.in[0] = x;
    call.in[1] = tec_program_fixed(p, "k", cache, sizeof cache, 8, 8, 8, NULL);
    call.out[0] = tec_program_tensor(p, "mass", rows, ranges, &live);
    call.args.mass = args;
    tec_program_call(p, &call);
    const struct tec_mass_args *a = &p->steps[0].call.args.mass;
    bool taken = p->status == TEC_OK;
    if (taken)
        CHECK(a->max_rows == 8 && a->max_ranges == ranges && a->ldo >= ranges && a->ldq == 16);
    end();
    return taken;
}

TEST(ranges_of_keys_are_weighed)
{
    static const int ends[3], seq[6];
    static const struct tec_seq seqs[1];
    static const struct tec_span spans[1];
    static float scratch[1];
    const struct tec_mass_args good = {.scratch = scratch,
                                       .row_seq = seq,
                                       .visible = seq,
                                       .seqs = seqs,
                                       .spans = spans,
                                       .ends = ends,
                                       .n_ranges = &live,
                                       .heads = 2,
                                       .kv_heads = 1,
                                       .head_dim = 5};
    CHECK(weighs_ranges(8, 3, good));
    CHECK(weighs_ranges(8, 2048, good));
    CHECK(!weighs_ranges(8, 2049, good)); /* more than the scratch of 16 columns holds */
    CHECK(!weighs_ranges(7, 3, good));    /* fewer rows than x */
    struct tec_mass_args a = good;
    a.heads = 3;
    CHECK(!weighs_ranges(8, 3, a));
    a = good;
    a.kv_heads = 0;
    CHECK(!weighs_ranges(8, 3, a));
    a = good;
    a.scratch = NULL;
    CHECK(!weighs_ranges(8, 3, a));
    a = good;
    a.ends = NULL;
    CHECK(!weighs_ranges(8, 3, a));
    a = good;
    a.n_ranges = NULL;
    CHECK(!weighs_ranges(8, 3, a));
}

/* move_kv within the cache, or into a planned tensor. */
static bool moves_slots(bool fixed, struct tec_move_args args)
{
    int x;
    struct tec_program *p = begin(&x);
    struct tec_call call = tec_call_of(TEC_OP_move_kv, "move");
    int kv = tec_program_fixed(p, "k", cache, sizeof cache, 8, 8, 8, NULL);
    call.in[0] = kv;
    call.out[0] = fixed ? kv : x;
    call.args.move = args;
    tec_program_call(p, &call);
    bool taken = p->status == TEC_OK;
    end();
    return taken;
}

TEST(slots_move_within_what_is_there)
{
    const struct tec_move_args good = {
        .moves = moves, .count = &live, .max_moves = 2, .max_tokens = 4, .row = 32};
    CHECK(moves_slots(true, good));
    CHECK(!moves_slots(false, good));
    struct tec_move_args a = good;
    a.moves = NULL;
    CHECK(!moves_slots(true, a));
    a = good;
    a.count = NULL;
    CHECK(!moves_slots(true, a));
    a = good;
    a.max_moves = 0;
    CHECK(!moves_slots(true, a));
    a = good;
    a.row = 31;
    CHECK(!moves_slots(true, a));
    a = good;
    a.max_tokens = 9; /* the cache has 8 slots */
    CHECK(!moves_slots(true, a));
    a.max_tokens = INT32_MAX;
    CHECK(!moves_slots(true, a));
}

/* Rows of x are made by their lanes, then taken by others; slots are moved, then moved again. */
TEST(lanes_wait_for_rows_of_others)
{
    int x;
    struct tec_program *p = begin(&x);
    struct tec_error err;
    static float memory[512];
    struct tec_call map = tec_call_of(TEC_OP_relu, "map");
    map.in[0] = map.out[0] = x;
    struct tec_call take = tec_call_of(TEC_OP_take_rows, "take");
    take.in[0] = x;
    take.out[0] = tec_program_tensor(p, "y", 6, 10, &live);
    take.args.take = (struct tec_take_args){.row = row, .group = 1};
    struct tec_call move = tec_call_of(TEC_OP_move_kv, "move");
    move.in[0] = move.out[0] = tec_program_fixed(p, "k", cache, sizeof cache, 8, 8, 8, NULL);
    move.args.move = (struct tec_move_args){
        .moves = moves, .count = &live, .max_moves = 2, .max_tokens = 4, .row = 32};
    tec_program_call(p, &map);
    tec_program_call(p, &map);
    tec_program_call(p, &take);
    tec_program_call(p, &move);
    tec_program_call(p, &move);
    struct tec_call place = tec_call_of(TEC_OP_place_kv, "place");
    static const struct tec_place places[2];
    place.out[0] = place.out[1] = move.out[0];
    place.args.place = (struct tec_place_args){.places = places,
                                               .count = &live,
                                               .max_places = 2,
                                               .max_tokens = 8,
                                               .kv_heads = 1,
                                               .head_dim = 8};
    tec_program_call(p, &place);
    tec_program_call(p, &move);
    REQUIRE(p->status == TEC_OK);
    p->tensors[x].at = (unsigned char *)memory;
    p->tensors[take.out[0]].at = (unsigned char *)memory + p->tensors[x].size;
    REQUIRE(tec_pass_fuse(&plan, &err) == TEC_OK);
    static const bool barriers[] = {false, false, true, false, true, true, true};
    for (int i = 0; i < 7; i++)
        CHECK_INT(p->steps[i].call.barrier, ==, barriers[i]);
    end();
}

TAP_MAIN
