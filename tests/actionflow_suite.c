/* actionflow_suite.c - tests of ActionFlow's experiments: the cells of their grid, and the figures
 * computed from samples. */
#include "tests/experiments/actionflow/actionflow.h"

#include "tests/tap.h"

#include <math.h>

static struct tec_actionflow suite;
static int64_t frame[TEC_ACTIONFLOW_VARIANTS][4], prefill[3], decode[3], age[2];

static bool near(double a, double b)
{
    return fabs(a - b) < 1e-9 * (fabs(b) + 1.0);
}

TEST(the_grid_is_the_papers)
{
    suite = (struct tec_actionflow){.n_cells = 0};
    tec_actionflow_grid(&suite);
    CHECK_INT(suite.n_cells, ==, TEC_ACTIONFLOW_STAGES * TEC_ACTIONFLOW_TEXTS);
    CHECK_INT(suite.cells[suite.by_call].stages, ==, 7);
    CHECK_INT(suite.cells[suite.by_call].text, ==, 34);
    for (int i = 0; i < suite.n_cells; i++)
        CHECK(tec_actionflow_find(&suite, suite.cells[i].stages, suite.cells[i].text) ==
              &suite.cells[i]);
    CHECK(tec_actionflow_find(&suite, 5, 34) == NULL);
}

TEST(a_full_model_runs_the_papers_two_ends)
{
    suite = (struct tec_actionflow){.full = true};
    tec_actionflow_grid(&suite);
    CHECK_INT(suite.n_cells, ==, 2);
    CHECK(tec_actionflow_find(&suite, 7, 34) && tec_actionflow_find(&suite, 32, 34));
    suite = (struct tec_actionflow){.quick = true};
    tec_actionflow_grid(&suite);
    CHECK_INT(suite.n_cells, ==, 4);
    CHECK_INT(suite.cells[suite.by_call].stages, ==, 7);
    suite = (struct tec_actionflow){.quick = true, .full = true};
    tec_actionflow_grid(&suite);
    CHECK_INT(suite.n_cells, ==, 1);
}

static struct tec_samples samples(int64_t *ns, int n)
{
    return (struct tec_samples){.n = n, .room = n, .ns = ns};
}

/* K = 7 on a prefix of 290 with P = 40 ms and d = 10 ms gives sequential frames of 100 ms. */
static struct tec_actionflow_cell *make_cell(void)
{
    static const int64_t ms[TEC_ACTIONFLOW_VARIANTS][4] = {{101, 100, 99, 140}, {99, 98, 98, 99},
                                                           {70, 71, 72, 73},    {60, 61, 59, 62},
                                                           {52, 50, 49, 60},    {41, 44, 43, 90}};
    suite = (struct tec_actionflow){.n_cells = 1};
    struct tec_actionflow_cell *c = &suite.cells[0];
    *c =
        (struct tec_actionflow_cell){.stages = 7, .text = 34, .prefix = 290, .token_bytes = 524288};
    for (int v = 0; v < TEC_ACTIONFLOW_VARIANTS; v++) {
        for (int i = 0; i < 4; i++)
            frame[v][i] = ms[v][i] * 1000000;
        c->rows[v].frame = samples(frame[v], 4);
        c->rows[v].frames = c->rows[v].actions = 4;
        c->rows[v].launches = 4 * (v + 1);
    }
    for (int i = 0; i < 3; i++) {
        prefill[i] = (41 - i) * 1000000;
        decode[i] = (9 + i) * 1000000;
    }
    age[0] = 350000000;
    age[1] = 301000000;
    c->rows[TEC_ACTIONFLOW_SEQUENTIAL].prefill = samples(prefill, 3);
    c->rows[TEC_ACTIONFLOW_SEQUENTIAL].decode = samples(decode, 3);
    c->rows[TEC_ACTIONFLOW_ROTATE].age = samples(age, 2);
    tec_actionflow_sum(&suite);
    return c;
}

TEST(rates_ages_and_bounds_are_of_the_samples)
{
    const struct tec_actionflow_cell *c = make_cell();
    const struct tec_actionflow_row *rotate = &c->rows[TEC_ACTIONFLOW_ROTATE];
    CHECK(near(tec_actionflow_prefill_ms(c), 40.0));
    CHECK(near(tec_actionflow_decode_ms(c), 10.0));
    CHECK(near(tec_actionflow_bound(c), 2.5));
    CHECK(near(tec_actionflow_frame_ms(rotate, 0.5), 43.0));
    CHECK(near(tec_actionflow_frame_ms(rotate, 1.0), 90.0));
    CHECK(near(tec_actionflow_actions_s(rotate), 4000.0 / (41 + 44 + 43 + 90)));
    CHECK(near(tec_actionflow_age_ms(rotate, 0.5), 301.0));
    CHECK(near(tec_actionflow_age_ms(rotate, 1.0), 350.0));
    CHECK(near(tec_actionflow_ratio(c, TEC_ACTIONFLOW_SEQUENTIAL, TEC_ACTIONFLOW_ROTATE),
               100.0 / 43.0));
    CHECK(near(tec_actionflow_launches(rotate), TEC_ACTIONFLOW_ROTATE + 1.0));
    CHECK(isnan(tec_actionflow_age_ms(&c->rows[TEC_ACTIONFLOW_GATHER], 0.5)));
}

TEST(what_was_not_measured_is_not_a_number)
{
    const struct tec_actionflow_cell none = {.stages = 7, .prefix = 290};
    const struct tec_actionflow_row *row = &none.rows[TEC_ACTIONFLOW_COPY];
    CHECK(isnan(tec_actionflow_bound(&none)));
    CHECK(isnan(tec_actionflow_frame_ms(row, 0.5)));
    CHECK(isnan(tec_actionflow_actions_s(row)));
    CHECK(isnan(tec_actionflow_copied(row)));
    CHECK(isnan(tec_actionflow_launches(row)));
    CHECK(isnan(tec_actionflow_ratio(&none, TEC_ACTIONFLOW_COPY, TEC_ACTIONFLOW_ROTATE)));
}

/* The paper's ring at K = 7 holds 7 x 290 + 21 tokens of 512 KiB. */
TEST(bytes_are_those_of_the_tables)
{
    const struct tec_actionflow_cell *c = make_cell();
    CHECK(tec_actionflow_moved(c, TEC_ACTIONFLOW_GATHER) == INT64_C(2051) * 524288);
    CHECK(tec_actionflow_moved(c, TEC_ACTIONFLOW_NAIVE) == INT64_C(2051) * 524288);
    CHECK(tec_actionflow_moved(c, TEC_ACTIONFLOW_UNPACKED) == 0);
    CHECK(tec_actionflow_moved(c, TEC_ACTIONFLOW_COPY) == INT64_C(1755) * 524288);
    CHECK(tec_actionflow_moved(c, TEC_ACTIONFLOW_ROTATE) == 0);
    CHECK(tec_actionflow_moved(c, TEC_ACTIONFLOW_SEQUENTIAL) == 0);
    struct tec_actionflow_cell one = *c;
    one.stages = 1;
    CHECK(tec_actionflow_moved(&one, TEC_ACTIONFLOW_COPY) == 0);
    CHECK(tec_actionflow_moved(&one, TEC_ACTIONFLOW_GATHER) == INT64_C(290) * 524288);
}

static void add_op(struct tec_actionflow_forward *f, enum tec_stage stage, const char *label,
                   double ns)
{
    f->known = true;
    struct tec_op_time *op = &f->times.items[f->times.n++];
    *op = (struct tec_op_time){.stage = stage, .calls = 1, .ns = ns};
    snprintf(op->label, sizeof op->label, "%s", label);
}

TEST(a_frame_is_made_of_its_forwards_pieces)
{
    make_cell();
    struct tec_actionflow_forward *f = suite.forwards;
    add_op(&f[TEC_ACTIONFLOW_ALONE], TEC_STAGE_PICTURES, "qkv", 5e6);
    add_op(&f[TEC_ACTIONFLOW_ALONE], TEC_STAGE_PREFIX, "qkv", 20e6);
    add_op(&f[TEC_ACTIONFLOW_ALONE], TEC_STAGE_PREFIX, "head", 1e6);
    add_op(&f[TEC_ACTIONFLOW_ONE], TEC_STAGE_DECODE, "qkv", 7e6);
    add_op(&f[TEC_ACTIONFLOW_ONE], TEC_STAGE_DECODE, "next_token", 1e6);
    add_op(&f[TEC_ACTIONFLOW_FULL], TEC_STAGE_PREFIX, "qkv", 21e6);
    add_op(&f[TEC_ACTIONFLOW_MOVED], TEC_STAGE_PREFIX, "qkv", 21e6);
    add_op(&f[TEC_ACTIONFLOW_MOVED], TEC_STAGE_SHIFT, "shift", 2e6);
    CHECK(near(tec_actionflow_piece_ms(&suite, TEC_ACTIONFLOW_SEQUENTIAL, TEC_ACTIONFLOW_PICTURES),
               5.0));
    CHECK(near(tec_actionflow_piece_ms(&suite, TEC_ACTIONFLOW_SEQUENTIAL, TEC_ACTIONFLOW_PREFIX),
               20.0));
    CHECK(near(tec_actionflow_piece_ms(&suite, TEC_ACTIONFLOW_SEQUENTIAL, TEC_ACTIONFLOW_DECODE),
               42.0));
    CHECK(
        near(tec_actionflow_piece_ms(&suite, TEC_ACTIONFLOW_SEQUENTIAL, TEC_ACTIONFLOW_HEAD), 7.0));
    CHECK(near(tec_actionflow_piece_ms(&suite, TEC_ACTIONFLOW_COPY, TEC_ACTIONFLOW_MOVES), 2.0));
    CHECK(
        near(tec_actionflow_piece_ms(&suite, TEC_ACTIONFLOW_ROTATE, TEC_ACTIONFLOW_PREFIX), 21.0));
    CHECK(isnan(tec_actionflow_piece_ms(&suite, TEC_ACTIONFLOW_GATHER, TEC_ACTIONFLOW_PREFIX)));
    CHECK(isnan(tec_actionflow_piece_ms(&suite, TEC_ACTIONFLOW_NAIVE, TEC_ACTIONFLOW_PREFIX)));
}

TEST(the_roof_is_the_slower_of_two)
{
    const struct tec_cost flop = {.products = 2000, .weights = 100};
    const struct tec_cost bytes = {.products = 200, .weights = 1000};
    suite.flop_s = 1e9;
    suite.read_s = 2e8;
    CHECK(near(tec_actionflow_roof_ns(&suite, &flop), 2000.0));
    CHECK(near(tec_actionflow_roof_ns(&suite, &bytes), 5000.0));
    suite.read_s = (double)NAN;
    CHECK(isnan(tec_actionflow_roof_ns(&suite, &flop)));
}

TAP_MAIN
