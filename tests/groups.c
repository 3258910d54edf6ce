/* groups.c - tests of groups beyond the golden traces: a restored state continues as the one that
 * wrote it, and wrong calls change nothing.
 *
 * The traces themselves are judged by tectum verify tests/golden/keep. */
#include "graph/memory/groups.h"
#include "tests/tap.h"

#include <math.h>
#include <stdlib.h>

enum { SEGMENTS = 64, DIM = 6 };

static uint64_t state = 7;

static uint32_t below(uint32_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((state >> 33) % n);
}

static void vector(float *v)
{
    for (int i = 0; i < DIM; i++)
        v[i] = (float)below(2001) / 1000.0f - 1.0f;
    v[below(DIM)] += 3.0f; /* some are alike */
}

static struct tec_groups *create(struct tec_heap *heap)
{
    struct tec_groups *groups = NULL;
    const struct tec_groups_options options = {
        .dim = DIM, .max_segments = SEGMENTS, .threshold = 0.7, .stable_steps = 3};
    REQUIRE(tec_groups_create(&groups, &options, heap, NULL) == TEC_OK);
    return groups;
}

/* What the test knows of each segment, to save it outside the groups. */
static struct {
    float embedding[DIM];
    uint32_t tokens;
    uint64_t text;
    bool there;
} known[SEGMENTS];

static void random_change(struct tec_groups *g, int64_t *step)
{
    struct tec_groups_change change;
    uint32_t segment = below(SEGMENTS);
    if (below(3) == 0)
        REQUIRE(tec_groups_step(g, *step += below(3), &change, NULL) == TEC_OK);
    if (known[segment].there && below(4) == 0) {
        REQUIRE(tec_groups_remove(g, segment, &change, NULL) == TEC_OK);
        known[segment].there = false;
        return;
    }
    bool there = known[segment].there;
    vector(known[segment].embedding);
    known[segment].tokens = 1 + below(50);
    known[segment].text++;
    known[segment].there = true;
    const struct tec_segment_input given = {
        known[segment].embedding, known[segment].tokens, {known[segment].text, 1}};
    REQUIRE((there ? tec_groups_update : tec_groups_add)(g, segment, &given, &change, NULL) ==
            TEC_OK);
}

static struct tec_groups *restored(const struct tec_groups *from, struct tec_heap *heap)
{
    struct tec_groups *to = create(heap);
    struct tec_group_view v;
    for (bool more = tec_groups_each(from, NULL, &v); more; more = tec_groups_each(from, &v, &v)) {
        for (uint32_t u = v.first; u != TEC_NO_SEGMENT; u = tec_groups_next(from, u)) {
            const struct tec_segment_input given = {
                known[u].embedding, known[u].tokens, {known[u].text, 1}};
            REQUIRE(tec_groups_restore(to, u, &given, v.id, v.changed, NULL) == TEC_OK);
        }
        REQUIRE(tec_groups_restore_group(to, v.id, v.is_static, v.changed, v.epoch, NULL) ==
                TEC_OK);
    }
    tec_groups_restore_clock(to, tec_groups_now(from), tec_groups_next_group(from),
                             tec_groups_next_epoch(from));
    return to;
}

/* Check that two states have the same groups and the same ranking to the last bit. */
static bool same(struct tec_groups *a, struct tec_groups *b)
{
    struct tec_candidate left[SEGMENTS], right[SEGMENTS];
    struct tec_group_view va, vb;
    uint32_t n = 0, m = 0;
    float query[DIM];
    vector(query);
    bool more = tec_groups_each(a, NULL, &va), other = tec_groups_each(b, NULL, &vb);
    for (; more && other; more = tec_groups_each(a, &va, &va), other = tec_groups_each(b, &vb, &vb))
        if (va.id != vb.id || va.is_static != vb.is_static || va.changed != vb.changed ||
            va.tokens != vb.tokens || va.members != vb.members || va.first != vb.first)
            return false;
    REQUIRE(tec_groups_rank(a, query, left, &n, NULL) == TEC_OK);
    REQUIRE(tec_groups_rank(b, query, right, &m, NULL) == TEC_OK);
    for (uint32_t i = 0; i < n && n == m; i++)
        if (left[i].score != right[i].score || left[i].segment != right[i].segment)
            return false;
    return more == other && n == m;
}

TEST(a_saved_state_goes_on_as_the_one_that_wrote_it)
{
    struct tec_heap heap = {0};
    struct tec_groups *a = create(&heap);
    int64_t step = 0, step_b;
    memset(known, 0, sizeof known);
    for (int i = 0; i < 400; i++) {
        random_change(a, &step);
        if (i % 20 != 19)
            continue;
        struct tec_groups *b = restored(a, &heap);
        REQUIRE(same(a, b));
        for (int k = 0; k < 5; k++) { /* the same future for both */
            uint64_t kept = state;
            __typeof__(known) before;
            memcpy(before, known, sizeof known);
            step_b = step;
            random_change(b, &step_b);
            memcpy(known, before, sizeof known);
            state = kept;
            random_change(a, &step);
            REQUIRE(same(a, b));
        }
        tec_groups_destroy(b);
    }
    struct tec_groups_totals totals = tec_groups_totals(a);
    CHECK(totals.promotions > 5 && totals.demotions > 5);
    tec_groups_destroy(a);
    CHECK_INT(heap.live, ==, 0);
}

TEST(an_epoch_tells_each_form_of_a_group_apart)
{
    struct tec_heap heap = {0};
    struct tec_groups *g = create(&heap);
    const float v[DIM] = {1.0f};
    struct tec_segment_input given = {v, 10, {1, 1}};
    struct tec_groups_change change;
    struct tec_group_view view;
    uint64_t before;
    REQUIRE(tec_groups_add(g, 0, &given, &change, NULL) == TEC_OK);
    REQUIRE(tec_groups_add(g, 1, &given, &change, NULL) == TEC_OK);
    REQUIRE(tec_groups_of(g, 1, &view));
    before = view.epoch;
    REQUIRE(tec_groups_step(g, 3, &change, NULL) == TEC_OK);
    CHECK_INT(change.n_promoted, ==, 1);
    CHECK_INT(change.computed, ==, 20);
    REQUIRE(tec_groups_of(g, 1, &view));
    CHECK(view.is_static && view.epoch > before);
    before = view.epoch;
    REQUIRE(tec_groups_update(g, 0, &given, &change, NULL) == TEC_OK); /* the same text */
    REQUIRE(tec_groups_of(g, 1, &view));
    CHECK(view.is_static && view.epoch == before);
    REQUIRE(tec_groups_remove(g, 0, &change, NULL) == TEC_OK);
    CHECK_INT(change.invalidated, ==, 20);
    CHECK_INT(change.computed, ==, 10);
    REQUIRE(tec_groups_of(g, 1, &view));
    CHECK(!view.is_static && view.epoch > before);
    tec_groups_destroy(g);
}

TEST(wrong_calls_change_nothing)
{
    struct tec_heap heap = {0};
    struct tec_groups *g = create(&heap);
    float v[DIM] = {1.0f}, bad[DIM] = {0.0f, NAN};
    struct tec_segment_input given = {v, 10, {1, 1}}, wrong = {bad, 10, {2, 1}};
    struct tec_groups_change change;
    struct tec_error err;
    REQUIRE(tec_groups_add(g, 3, &given, &change, NULL) == TEC_OK);
    CHECK_INT(tec_groups_add(g, 3, &given, &change, &err), ==, TEC_INVALID);
    CHECK_INT(tec_groups_add(g, SEGMENTS, &given, &change, &err), ==, TEC_INVALID);
    CHECK_STR(err.message, "memory segment 64: there is room for 64");
    CHECK_INT(tec_groups_add(g, 4, &wrong, &change, &err), ==, TEC_INVALID);
    CHECK_STR(err.message, "embedding: number 1 of 6 is not finite");
    CHECK_INT(tec_groups_update(g, 4, &given, &change, &err), ==, TEC_NOT_FOUND);
    CHECK_INT(tec_groups_remove(g, 4, &change, &err), ==, TEC_NOT_FOUND);
    REQUIRE(tec_groups_step(g, 2, &change, NULL) == TEC_OK);
    CHECK_INT(tec_groups_step(g, 1, &change, &err), ==, TEC_INVALID);
    CHECK_INT(tec_groups_totals(g).computed, ==, 10);
    tec_groups_destroy(g);
}

TEST(a_zero_vector_is_like_nothing)
{
    struct tec_heap heap = {0};
    struct tec_groups *g = create(&heap);
    static const float zero[DIM], one[DIM] = {1.0f};
    struct tec_segment_input nothing = {zero, 1, {1, 1}}, something = {one, 1, {2, 1}};
    struct tec_groups_change change;
    struct tec_candidate ranked[SEGMENTS];
    uint32_t n = 0;
    REQUIRE(tec_groups_add(g, 0, &nothing, &change, NULL) == TEC_OK);
    REQUIRE(tec_groups_add(g, 1, &nothing, &change, NULL) == TEC_OK);
    REQUIRE(tec_groups_add(g, 2, &something, &change, NULL) == TEC_OK);
    CHECK_INT(change.group, ==, 2);
    REQUIRE(tec_groups_rank(g, one, ranked, &n, NULL) == TEC_OK);
    CHECK_INT(n, ==, 3);
    CHECK_INT(ranked[0].segment, ==, 2);
    CHECK(ranked[1].score == 0.0 && ranked[1].segment == 0); /* ties: the older group */
    tec_groups_destroy(g);
}

/* Make vectors that are all different: `bit` and sign choose two places. */
static void apart(uint32_t i, float *v, int dim)
{
    memset(v, 0, (size_t)dim * sizeof *v);
    v[i % (uint32_t)dim] = 1.0F;
    v[i / (uint32_t)dim % (uint32_t)dim] += 2.0F;
}

/* The cost of a new segment must not grow with the number of groups; comparisons are counted, not
 * timed. */
TEST(a_new_segment_is_compared_with_the_newest_groups_alone)
{
    enum { WIDE = 64, MANY = 3000 };
    struct tec_heap heap = {0};
    struct tec_groups *g = NULL;
    struct tec_groups_change change;
    const struct tec_groups_options options = {
        .dim = WIDE, .max_segments = MANY, .threshold = 0.999, .stable_steps = 3};
    float v[WIDE];
    int64_t before = 0;
    REQUIRE(tec_groups_create(&g, &options, &heap, NULL) == TEC_OK);
    for (uint32_t i = 0; i + 2 < MANY; i++) {
        apart(i, v, WIDE);
        const struct tec_segment_input given = {v, 1, {i, 1}};
        REQUIRE(tec_groups_add(g, i, &given, &change, NULL) == TEC_OK);
        CHECK_INT(change.group, ==, i);
        int64_t now = tec_groups_totals(g).compared;
        CHECK_INT(now - before, ==, i < TEC_NEAR_GROUPS ? i : TEC_NEAR_GROUPS);
        before = now;
    }
    for (uint32_t i = 0; i < 2; i++) { /* like one of the newest, and like the first */
        apart(i == 0 ? MANY - 2 - TEC_NEAR_GROUPS : 0, v, WIDE);
        const struct tec_segment_input given = {v, 1, {i, 2}};
        REQUIRE(tec_groups_add(g, MANY - 2 + i, &given, &change, NULL) == TEC_OK);
        CHECK_INT(change.group, ==, i == 0 ? MANY - 2 - TEC_NEAR_GROUPS : MANY - 2);
    }
    tec_groups_destroy(g);
    CHECK_INT(heap.live, ==, 0);
}

TEST(a_heap_that_refuses_is_reported_and_nothing_is_kept)
{
    for (int64_t n = 1; n <= 9; n++) {
        struct tec_heap heap = {.fail_at = n};
        struct tec_groups *groups = NULL;
        const struct tec_groups_options options = {
            .dim = DIM, .max_segments = SEGMENTS, .threshold = 0.7, .stable_steps = 3};
        enum tec_status status = tec_groups_create(&groups, &options, &heap, NULL);
        CHECK(status == TEC_NO_MEMORY || (n == 9 && status == TEC_OK));
        tec_groups_destroy(groups);
        CHECK_INT(heap.live, ==, 0);
    }
}

TAP_MAIN
