/* ensemble.c - temporal ensembling against its formula: every chunk that covers an action, weighted
 * from the oldest on; frames without a chunk, a new episode, and what an action output gives. */
#include "graph/live/ensemble.h"
#include "graph/live/action_output.h"
#include "tests/tap.h"

#include <math.h>

enum { ROWS = 5, WIDTH = 2, FRAMES = 23 };

static struct tec_heap heap;
static struct tec_error err;
static double chunks[FRAMES][ROWS][WIDTH];
static int rows[FRAMES]; /* of a frame's chunk; 0 = it has none */

static void make_chunks(void)
{
    uint32_t seed = 7;
    for (int f = 0; f < FRAMES; f++) {
        rows[f] = f % 7 == 3 ? 0 : f % 11 == 9 ? 2 : ROWS;
        for (int i = 0; i < ROWS * WIDTH; i++) {
            seed = seed * 1664525U + 1013904223U;
            chunks[f][i / WIDTH][i % WIDTH] = (double)(seed >> 8) / (1 << 23) - 1.0;
        }
    }
}

/* The mean for frame f + ahead of the chunks of frames first .. f. */
static double formula(double m, int first, int f, int ahead, int column)
{
    double sum = 0.0, weights = 0.0;
    int i = 0, at = f + ahead;
    for (int j = first; j <= f; j++) {
        if (j < 0 || at - j >= rows[j])
            continue;
        double w = exp(-m * i++);
        sum += w * chunks[j][at - j][column];
        weights += w;
    }
    return sum / weights;
}

TEST(means_are_those_of_the_formula)
{
    struct tec_arena arena;
    struct tec_ensemble e;
    int first = 0;
    tec_arena_init(&arena, &heap);
    make_chunks();
    for (int k = 0; k < 3; k++) {
        const double m = (const double[]){0.01, 0.0, -0.5}[k];
        REQUIRE(tec_ensemble_init(&e, m, ROWS, WIDTH, &arena, &err) == TEC_OK);
        first = 0;
        for (int f = 0; f < FRAMES; f++) {
            if (f == 15) {
                tec_ensemble_forget(&e);
                first = f;
            }
            if (!rows[f])
                continue;
            tec_ensemble_add(&e, f, chunks[f][0], rows[f]);
            for (int i = 0; i < rows[f] * WIDTH; i++)
                CHECK(fabs(e.mean[i] - formula(m, first, f, i / WIDTH, i % WIDTH)) < 1e-12);
        }
    }
    tec_arena_finish(&arena);
}

TEST(an_action_output_gives_means)
{
    struct tec_arena arena;
    struct tec_action_output *h = NULL;
    struct tec_action_output_options o = {.on_miss = TEC_MISS_LAST_CHUNK,
                                          .actions = 1,
                                          .rows = ROWS,
                                          .width = WIDTH,
                                          .ensembles = true,
                                          .ensemble = 0.01};
    tec_arena_init(&arena, &heap);
    make_chunks();
    REQUIRE(tec_action_output_create(&h, &o, &arena, &err) == TEC_OK);
    for (int f = 0; f < 8; f++) {
        const struct tec_action_output_chunk chunk = {.frame = f, .actions = chunks[f][0]};
        bool has = f % 7 != 3;
        rows[f] = has ? ROWS : 0;
        struct tec_handed a =
            has ? tec_action_output_fresh(h, &chunk) : tec_action_output_missed(h, f);
        int at = has ? f : f - 1; /* a frame without a chunk: what the one before it said of this */
        CHECK_INT(a.n, ==, 1);
        CHECK(a.source == (has ? TEC_SOURCE_FRESH : TEC_SOURCE_STALE));
        CHECK(fabs(a.actions[1] - formula(0.01, 0, at, f - at, 1)) < 1e-12);
        CHECK(!has || fabs(a.chunk[3] - formula(0.01, 0, f, 1, 1)) < 1e-12);
    }
    tec_action_output_forget(h); /* an episode that begins knows nothing of the one before */
    const struct tec_action_output_chunk chunk = {.frame = 8, .actions = chunks[8][0]};
    CHECK(tec_action_output_fresh(h, &chunk).actions[0] == chunks[8][0][0]);
    o.actions = 2;
    CHECK(tec_action_output_create(&h, &o, &arena, &err) == TEC_INVALID);
    tec_arena_finish(&arena);
}

TAP_MAIN
