/* keep_suite.c - tests of KEEP's experiments: their trace, the cells of their grid, and the figures
 * computed from samples. */
#include "tests/experiments/keep/keeping.h"
#include "tests/experiments/keep/trace_words.h"

#include "tests/tap.h"

#include <math.h>
#include <string.h>

enum { VOCAB = 4096, ROOM = 512, SEED = 1 };

static struct tec_trace trace, other;
static struct tec_keeping suite;
static int ids[ROOM];

static int tokens(const char *text)
{
    return tec_trace_tokens(text, VOCAB, ids, ROOM);
}

static uint64_t bytes_of(const struct tec_trace *t)
{
    uint64_t sum = 0;
    for (int i = 0; i < t->n; i++)
        sum = sum * 31 + tec_trace_hash(t->segments[i].text, (int)strlen(t->segments[i].text));
    return sum * 31 + tec_trace_hash(t->query, (int)strlen(t->query));
}

TEST(the_same_seed_gives_the_same_bytes)
{
    tec_trace_begin(&trace, SEED, 48, 6);
    tec_trace_begin(&other, SEED + 1, 48, 6);
    CHECK(bytes_of(&trace) != bytes_of(&other));
    CHECK_STR(trace.segments[0].text,
              "{'object': 'CounterTop', 'state': 'none', 'position': 'in the sink'}\n");
    for (int i = 0; i < 60; i++)
        tec_trace_next(&trace);
    CHECK_STR(trace.segments[48].id, "example0");
    uint64_t first = bytes_of(&trace);
    tec_trace_begin(&trace, SEED, 48, 6);
    for (int i = 0; i < 60; i++)
        tec_trace_next(&trace);
    CHECK(bytes_of(&trace) == first);
    CHECK(first == UINT64_C(0xE1CEAF46B1EB193F)); /* on every machine */
}

/* The known facts of the published trace: 124, 22 and 57 tokens; 1 to 2 changes a step. */
TEST(lengths_and_rates_are_those_of_the_published_trace)
{
    double object = 0.0, example = 0.0;
    int64_t changes = 0;
    tec_trace_begin(&trace, SEED, 48, 6);
    CHECK_INT(trace.n, ==, 54);
    for (int i = 0; i < trace.n; i++)
        *(i < trace.n_objects ? &object : &example) += tokens(trace.segments[i].text);
    CHECK(fabs(object / 48 - 22.0) < 1.5 && fabs(example / 6 - 57.0) < 8.0);
    CHECK_INT(abs(tokens(tec_trace_beginning()) - 124), <, 6);
    CHECK_INT(abs(tokens(trace.query) - 18), <, 6);
    for (int i = 0; i < 500; i++) {
        int done = (int)(trace.step % TEC_TRACE_STEPS);
        tec_trace_next(&trace);
        CHECK(trace.n_changes >= 1 && trace.n_changes <= TEC_TRACE_CHANGES);
        CHECK(done + 1 == TEC_TRACE_STEPS || tokens(trace.query) < ROOM);
        changes += trace.n_changes;
    }
    CHECK(changes > 600 && changes < 900);
    CHECK_INT(trace.changed[TEC_TRACE_EXAMPLE], ==, 0);
    double low = (double)trace.changed[TEC_TRACE_FURNITURE] / trace.members[TEC_TRACE_FURNITURE];
    double high = (double)trace.changed[TEC_TRACE_TABLEWARE] / trace.members[TEC_TRACE_TABLEWARE];
    CHECK(low * 5 < high);
}

TEST(tokens_are_equal_where_words_are)
{
    int more[ROOM];
    CHECK_INT(tokens("{'object': 'CounterTop'}\n"), ==, 7);
    int n = tokens(" find a Cup, pick up the Cup.");
    CHECK_INT(n, ==, 9);
    CHECK(ids[2] == ids[7] && ids[2] != ids[1] && ids[0] >= 0 && ids[0] < VOCAB);
    CHECK_INT(tec_trace_tokens(" find a Cup, pick up the Cup.", VOCAB, more, 3), ==, 9);
    CHECK(memcmp(ids, more, 3 * sizeof *ids) == 0);
    CHECK_INT(tokens(""), ==, 0);
}

static double cosine(const char *a, const char *b)
{
    float x[TEC_TRACE_DIM], y[TEC_TRACE_DIM];
    double xy = 0.0, xx = 0.0, yy = 0.0;
    tec_trace_embed(a, x);
    tec_trace_embed(b, y);
    for (int i = 0; i < TEC_TRACE_DIM; i++) {
        xy += (double)x[i] * (double)y[i];
        xx += (double)x[i] * (double)x[i];
        yy += (double)y[i] * (double)y[i];
    }
    return xy / sqrt(xx * yy);
}

TEST(texts_of_a_kind_are_near)
{
    double sum[2] = {0.0, 0.0};
    int n[2] = {0, 0};
    tec_trace_begin(&trace, SEED, 48, 6);
    for (int i = 0; i < trace.n; i++)
        for (int k = 0; k < i; k++) {
            bool same = trace.segments[i].kind == trace.segments[k].kind;
            sum[same] += cosine(trace.segments[i].text, trace.segments[k].text);
            n[same]++;
        }
    CHECK(sum[1] / n[1] > 0.35 && sum[0] / n[0] < 0.1);
    CHECK(cosine("Cup Cup Cup Mug", "Cup Mug") > 0.999);
}

TEST(the_grid_is_the_papers)
{
    suite = (struct tec_keeping){.n_cells = 0};
    tec_keeping_grid(&suite);
    CHECK_INT(suite.n_cells, ==, 1 + 5 + 1 + 1 + 3);
    for (int i = 0; i < suite.n_cells; i++) {
        const struct tec_keeping_cell *c = &suite.cells[i];
        CHECK(c->rows[0].method.selection == TEC_SELECTION_full);
        CHECK(c->n_rows > 4 && c->n_rows <= TEC_KEEPING_ROWS && c->segments <= 40);
        for (int k = 1; k < c->n_rows; k++)
            CHECK(!c->rows[k].method.bare ||
                  (c->rows[k - 1].method.selection == TEC_SELECTION_keep &&
                   !c->rows[k - 1].method.bare));
    }
    suite = (struct tec_keeping){.remote = "redis://localhost", .only = "links"};
    tec_keeping_grid(&suite);
    CHECK_INT(suite.n_cells, ==, 4);
}

TEST(curves_have_the_mean_that_is_asked_for)
{
    double r[48], sum = 0.0;
    tec_keeping_curve(0.38, 48, r);
    for (int l = 0; l < 48; l++) {
        sum += r[l];
        CHECK(l == 0 ? r[l] == 1.0 : r[l] <= r[l - 1]);
    }
    CHECK(fabs(sum / 48 - 0.38) < 1e-6);
    CHECK(fabs(r[1] - 0.95) < 0.01); /* the published decay */
    tec_keeping_curve(1.0, 4, r);
    CHECK(r[0] == 1.0 && r[3] == 1.0);
    tec_keeping_curve(0.0, 4, r);
    CHECK(r[0] == 0.0 && r[3] == 0.0);
}

TEST(what_samples_come_to)
{
    static int64_t full[] = {90000000, 100000000, 110000000}, keep[] = {50000000},
                   bare[] = {40000000};
    struct tec_keeping_cell c = {.n_rows = 3, .ran = true};
    c.rows[0] = (struct tec_keeping_row){.method.name = "full", .prefill = {3, 3, full}};
    c.rows[1] = (struct tec_keeping_row){.method.name = "keep",
                                         .steps = 2,
                                         .agree = 1,
                                         .kl = 0.5,
                                         .rows = 45,
                                         .all_rows = 100,
                                         .prefill = {1, 1, keep}};
    c.rows[2] =
        (struct tec_keeping_row){.method = {.name = "bare", .bare = true}, .prefill = {1, 1, bare}};
    const struct tec_keeping_row *r = tec_keeping_find(&c, "keep");
    REQUIRE(r == &c.rows[1]);
    CHECK(fabs(tec_keeping_speedup(&c, r, false) - 2.0) < 1e-9);
    CHECK(fabs(tec_keeping_of_bound(&c, r, false) - 0.9) < 1e-9); /* bound 45 ms, took 50 */
    CHECK(fabs(tec_keeping_over_bare(&c, r, false) - 1.25) < 1e-9);
    CHECK(isnan(tec_keeping_of_bound(&c, r, true)));
    CHECK(tec_keeping_agree(r) == 0.5 && tec_keeping_kl(r) == 0.25);
    CHECK(isnan(tec_keeping_over_bare(&c, &c.rows[0], false)) &&
          isnan(tec_keeping_over_bare(&c, &c.rows[2], false)));
    CHECK(isnan(tec_keeping_ms(&c.rows[1].score, 0.5)) && isnan(tec_keeping_share(&c.rows[0])));
    CHECK(tec_keeping_find(&c, "none") == NULL);
}

TAP_MAIN
