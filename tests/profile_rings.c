/* profile_rings.c - what `tectum profile` lists of rings: every launch of all of them has room,
 * however many sessions and plans there are. */
#include "tests/tap.h"
#include "tools/measure/profile.h"

enum { SESSIONS = 16, STAGES = 4, PLANS = 3 };

static struct tec_heap heap;
static struct tec_error err;

static void list(struct tec_arena *arena, struct tec_pipeline *pipeline)
{
    struct tec_invocation call = {.arena = arena, .heap = &heap};
    struct tec_profile *p = TEC_NEW(arena, 1, struct tec_profile);
    const struct tec_engine_options options = {.pipeline = pipeline,
                                               .root = ".",
                                               .random = true,
                                               .size = "tiny",
                                               .device = {.kind = tap.device, .threads = 1}};
    REQUIRE(p && tec_engine_open(&p->opened.engine, &options, &heap, &err) == TEC_OK);
    p->call = &call;
    p->frames = p->rounds = 1;
    REQUIRE(tec_profile_prepare(p, 1, &err) == TEC_OK);
    const int others = SESSIONS * (STAGES - 1); /* beside new sequences, or alone */
    CHECK_INT(p->n_variants, ==, PLANS * (SESSIONS * (others + 1) + others));
    for (int i = 0; i < p->n_variants; i++)
        CHECK(p->variants[i].ring && p->variants[i].enter <= SESSIONS &&
              p->variants[i].batch <= others);
    CHECK_INT(p->frames, ==, 1);
    tec_profile_finish_memories(p);
    tec_engine_close(p->opened.engine);
}

TEST(all_launches_of_rings_of_many_sessions_are_listed)
{
    struct tec_pipeline *pipeline = NULL;
    struct tec_diagnostics d;
    struct tec_arena arena;
    const struct tec_load_options how = {.path = "tests/pipelines/rings_apart.lua",
                                         .root = "pipelines"};
    tec_diagnostics_init(&d, &heap);
    tec_arena_init(&arena, &heap);
    REQUIRE(tec_pipeline_load(&pipeline, &how, &heap, &d, &err) == TEC_OK);
    tec_diagnostics_finish(&d);
    list(&arena, pipeline);
    tec_pipeline_free(pipeline);
    tec_arena_finish(&arena);
    CHECK_INT(heap.live, ==, 0);
}

TAP_MAIN
