/* loading.c - tests of the loading rules on random tables: what each rule promises, and what
 * `bounded` promises against the others. */
#include "graph/memory/loading.h"
#include "tests/tap.h"

#include <stdlib.h>

enum { MOST_LAYERS = 12, MOST_SEGMENTS = 9, TABLES = 6000 };

/* One random table, in which the times of a column are all small, all large or mixed. */
struct table {
    struct tec_loading_table is;
    int64_t attention[MOST_LAYERS], importance[MOST_LAYERS], mlp[MOST_LAYERS];
    int64_t load[MOST_LAYERS * MOST_SEGMENTS];
    int order[MOST_SEGMENTS];
    unsigned char sets[MOST_LAYERS * MOST_SEGMENTS];
};

static uint64_t state = 1;

static int64_t below(int64_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((state >> 33) % (uint64_t)n);
}

static int64_t some(int64_t scale)
{
    return below(4) == 0 ? below(10 * scale + 1) : below(scale + 1);
}

static void fill(int64_t *to, size_t n, int64_t scale)
{
    for (size_t i = 0; i < n; i++)
        to[i] = some(scale);
}

static void draw(struct table *t)
{
    int layers = 1 + (int)below(MOST_LAYERS), segments = (int)below(MOST_SEGMENTS + 1);
    t->is = (struct tec_loading_table){.layers = layers,
                                       .segments = segments,
                                       .attention = t->attention,
                                       .importance = t->importance,
                                       .mlp = t->mlp,
                                       .load = t->load,
                                       .order = below(2) ? t->order : NULL};
    size_t n = (size_t)layers, m = (size_t)segments;
    fill(t->attention, n, below(40));
    fill(t->importance, n, below(3) ? below(8) : below(60));
    fill(t->mlp, n, below(60));
    fill(t->load, n * m, below(30));
    for (int i = 0; i < segments; i++)
        t->order[i] = i;
    for (int i = segments - 1; i > 0; i--) {
        int j = (int)below(i + 1), kept = t->order[i];
        t->order[i] = t->order[j];
        t->order[j] = kept;
    }
    int64_t keep = 1 + below(9);
    for (size_t i = 0; i < n * m; i++)
        t->sets[i] = i < m ? below(6) != 0 : t->sets[i - m] && below(keep + 1) != 0;
}

static struct tec_loading_result simulate(const struct table *t, enum tec_overlap overlap,
                                          struct tec_arena *arena)
{
    struct tec_loading_result result;
    struct tec_error err;
    REQUIRE(tec_loading_simulate(&result, &t->is, overlap, t->sets, arena, &err) == TEC_OK);
    return result;
}

/* The time at which S(layer) became known. */
static int64_t known_at(const struct tec_loading_result *r, int layer)
{
    return layer == 0 ? 0 : r->layers[layer - 1].importance_end;
}

/* Check that every load happens once and whole, is legal, is in time for its layer, and overlaps no
 * other. */
static bool legal(const struct table *t, const struct tec_loading_result *r)
{
    int64_t done[MOST_LAYERS * MOST_SEGMENTS] = {0}, last = 0, busy = 0;
    int events[MOST_LAYERS * MOST_SEGMENTS] = {0};
    int segments = t->is.segments;
    for (size_t i = 0; i < r->n_loads; i++) {
        const struct tec_load_event *e = &r->loads[i];
        int at = e->layer * segments + e->segment, newest = 0;
        while (newest + 1 < t->is.layers && known_at(r, newest + 1) <= e->start)
            newest++;
        if (newest > e->layer)
            newest = e->layer;
        if (e->start < last || t->sets[newest * segments + e->segment] ||
            e->end > r->layers[e->layer].start)
            return false;
        last = e->end;
        busy += e->end - e->start;
        done[at] += e->end - e->start;
        events[at]++;
    }
    for (int i = 0; i < t->is.layers * segments; i++)
        if (t->sets[i] ? events[i] != 0 : (events[i] == 0 || done[i] != t->load[i]))
            return false;
    return busy == r->busy;
}

static bool no_layer_later(const struct table *t, const struct tec_loading_result *a,
                           const struct tec_loading_result *b)
{
    for (int l = 0; l < t->is.layers; l++)
        if (a->layers[l].start > b->layers[l].start)
            return false;
    return a->finish <= b->finish;
}

TEST(every_rule_loads_all_once_and_legally)
{
    struct tec_heap heap = {0};
    struct tec_arena arena;
    struct table t;
    tec_arena_init(&arena, &heap);
    state = 1;
    for (int i = 0; i < TABLES; i++) {
        draw(&t);
        t.is.grain = below(4);
        for (int rule = 0; rule < TEC_OVERLAPS; rule++) {
            struct tec_loading_result r = simulate(&t, (enum tec_overlap)rule, &arena);
            REQUIRE(legal(&t, &r));
        }
        tec_arena_finish(&arena);
    }
    CHECK_INT(heap.live, ==, 0);
}

TEST(bounded_starts_no_layer_later_than_next_and_separate)
{
    struct tec_heap heap = {0};
    struct tec_arena arena;
    struct table t;
    int64_t sums[TEC_OVERLAPS] = {0}, split = 0, paper_loses = 0, paper_wins = 0, best = 0;
    tec_arena_init(&arena, &heap);
    state = 2;
    for (int i = 0; i < TABLES; i++) {
        struct tec_loading_result r[TEC_OVERLAPS];
        draw(&t);
        for (int rule = 0; rule < TEC_OVERLAPS; rule++) {
            r[rule] = simulate(&t, (enum tec_overlap)rule, &arena);
            sums[rule] += r[rule].finish;
        }
        paper_loses += r[TEC_OVERLAP_BALANCED].finish > r[TEC_OVERLAP_NEXT].finish;
        paper_wins += r[TEC_OVERLAP_BALANCED].finish < r[TEC_OVERLAP_BOUNDED].finish;
        REQUIRE(no_layer_later(&t, &r[TEC_OVERLAP_BOUNDED], &r[TEC_OVERLAP_NEXT]));
        REQUIRE(no_layer_later(&t, &r[TEC_OVERLAP_BOUNDED], &r[TEC_OVERLAP_SEPARATE]));
        t.is.grain = 1;
        struct tec_loading_result pieces = simulate(&t, TEC_OVERLAP_BOUNDED, &arena);
        REQUIRE(no_layer_later(&t, &pieces, &r[TEC_OVERLAP_NEXT]));
        split += pieces.finish;
        best += r[TEC_OVERLAP_BALANCED].finish < pieces.finish;
        tec_arena_finish(&arena);
    }
    printf(
        "# %d random tables, mean finish: separate %.1f, next %.1f, balanced %.1f, bounded %.1f, "
        "in pieces %.1f\n",
        TABLES, (double)sums[0] / TABLES, (double)sums[1] / TABLES, (double)sums[2] / TABLES,
        (double)sums[3] / TABLES, (double)split / TABLES);
    printf("# balanced ends after next in %d, before bounded in %d, before pieces in %d\n",
           (int)paper_loses, (int)paper_wins, (int)best);
    CHECK(paper_loses > 0); /* the tables are hard enough to tell the rules apart */
    CHECK(sums[TEC_OVERLAP_BOUNDED] < sums[TEC_OVERLAP_NEXT]);
    CHECK(split <= sums[TEC_OVERLAP_BOUNDED]);
}

static size_t position(const struct tec_loading_result *r, int layer, int segment)
{
    size_t i = 0;
    while (i < r->n_loads && (r->loads[i].layer != layer || r->loads[i].segment != segment))
        i++;
    return i;
}

/* A far load takes 60 while the link must be free again after 7: as a whole it waits, in pieces it
 * fits. */
TEST(a_long_preload_waits_or_is_split)
{
    static const int64_t ten[] = {10, 10, 10, 10}, two[] = {2, 2, 2, 2};
    static const int64_t load[] = {5, 5, 5, 5, 5, 5, 60, 5, 5, 5, 5, 5};
    static const unsigned char sets[] = {0, 1, 1, 0, 1, 0, 0, 1, 0, 0, 0, 0};
    struct tec_heap heap = {0};
    struct tec_arena arena;
    struct table t = {.is = {.layers = 4,
                             .segments = 3,
                             .attention = ten,
                             .importance = two,
                             .mlp = ten,
                             .load = load}};
    memcpy(t.sets, sets, sizeof sets);
    tec_arena_init(&arena, &heap);
    CHECK_INT(simulate(&t, TEC_OVERLAP_NEXT, &arena).finish, ==, 130);
    CHECK_INT(simulate(&t, TEC_OVERLAP_BALANCED, &arena).finish, ==, 135);
    struct tec_loading_result whole = simulate(&t, TEC_OVERLAP_BOUNDED, &arena);
    CHECK_INT(position(&whole, 2, 0), >, position(&whole, 1, 2));
    CHECK(whole.finish < 130);
    t.is.grain = 1;
    CHECK(simulate(&t, TEC_OVERLAP_BOUNDED, &arena).finish <= whole.finish);
    tec_arena_finish(&arena);
}

TEST(bad_tables_are_refused)
{
    static const int64_t fine[] = {1, 1}, below_zero[] = {1, -1}, huge[] = {1, INT64_MAX};
    static const unsigned char sets[] = {0, 0, 1, 0};
    static const int twice[] = {1, 1};
    const struct tec_loading_table good = {.layers = 1,
                                           .segments = 2,
                                           .attention = fine,
                                           .importance = fine,
                                           .mlp = fine,
                                           .load = fine};
    struct tec_heap heap = {0};
    struct tec_arena arena;
    struct tec_loading_result r;
    struct tec_error err;
    tec_arena_init(&arena, &heap);
    struct tec_loading_table bad[5] = {good, good, good, good, good};
    bad[0].layers = 0;
    bad[1].load = below_zero;
    bad[2].load = huge;
    bad[3].order = twice;
    bad[4].segments = TEC_MAX_LOADING_SEGMENTS + 1;
    for (int i = 0; i < 5; i++)
        CHECK_INT(tec_loading_simulate(&r, &bad[i], TEC_OVERLAP_NEXT, sets, &arena, &err), ==,
                  TEC_INVALID);
    bad[0].layers = 2; /* a segment that comes back */
    bad[0].segments = 1;
    CHECK_INT(tec_loading_simulate(&r, &bad[0], TEC_OVERLAP_NEXT, sets + 1, &arena, &err), ==,
              TEC_INVALID);
    CHECK(strstr(err.message, "segment 0 comes back at layer 1") != NULL);
    CHECK_INT(tec_loading_simulate(&r, &good, TEC_OVERLAPS, sets, &arena, &err), ==, TEC_INVALID);
    tec_arena_finish(&arena);
}

TEST(rules_have_names)
{
    CHECK_STR(tec_overlap_name(TEC_OVERLAP_BALANCED), "balanced");
    CHECK_STR(tec_overlap_name(TEC_OVERLAP_BOUNDED), "bounded");
    CHECK(tec_overlap_name(TEC_OVERLAPS) == NULL);
}

TAP_MAIN
