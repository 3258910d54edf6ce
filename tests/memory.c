/* memory.c - tests of allocated memory: an engine holds what its plan says, and a heap that refuses
 * any allocation loses nothing. */
#include "graph/run/engine/engine.h"
#include "tests/tap.h"
#include "tests/told.h"

/* Whether kernels are emulated, and therefore slow. */
static bool emulated(void)
{
    return strcmp(tap.device, "cpu") != 0;
}

static struct tec_engine_options options_for(const struct tec_pipeline *p)
{
    return (struct tec_engine_options){
        .pipeline = p,
        .root = TECTUM_SOURCE,
        .random = true,
        .seed = 1,
        .size = emulated() ? "tiny" : "small",
        .dtype = "f32",
        .device = {.kind = tap.device, .threads = 1, .spin_us = 0, .tier = tec_tier_best()}};
}

static struct tec_pipeline *load(struct tec_heap *heap)
{
    struct tec_diagnostics d;
    struct tec_error err;
    struct tec_pipeline *p = NULL;
    tec_diagnostics_init(&d, heap);
    const struct tec_load_options o = {.path = TECTUM_SOURCE "/pipelines/pi05_droid.lua",
                                       .root = TECTUM_SOURCE "/pipelines"};
    if (tec_pipeline_load(&p, &o, heap, &d, &err) != TEC_OK)
        fprintf(stderr, "# %s\n", err.message);
    tec_diagnostics_finish(&d);
    return p;
}

TEST(peak_is_within_a_tenth_of_the_plan)
{
    struct tec_heap heap = {0}, pipelines = {0};
    struct tec_error err = {.message = ""};
    struct tec_engine *e = NULL;
    struct tec_pipeline *p = load(&pipelines);
    REQUIRE(p);
    const struct tec_engine_options o = options_for(p);
    if (tec_engine_open(&e, &o, &heap, &err) != TEC_OK)
        fprintf(stderr, "# %s\n", err.message);
    REQUIRE(e);
    int64_t peak = tec_device_peak(e->device) + heap.peak;
    CHECK_INT(tec_device_peak(e->device), ==, e->plan->bytes.total);
    if (!emulated()) /* a tiny model is smaller than its description */
        CHECK_INT(peak * 100, <=, e->plan->bytes.total * 110);
    tec_engine_close(e);
    CHECK_INT(heap.live, ==, 0);
    tec_pipeline_free(p);
    CHECK_INT(pipelines.live, ==, 0);
}

TEST(measuring_tells_the_same_bytes)
{
    struct tec_heap heap = {0};
    struct tec_arena arena;
    struct tec_error err;
    struct tec_measured m;
    struct tec_engine *e = NULL;
    struct tec_pipeline *p = load(&heap);
    REQUIRE(p);
    tec_arena_init(&arena, &heap);
    struct tec_engine_options o = options_for(p);
    o.device.threads = 3; /* each lane has scratch of its own */
    REQUIRE(went_well(tec_engine_measure(&m, &o, &heap, &arena, &err), &err));
    REQUIRE(went_well(tec_engine_open(&e, &o, &heap, &err), &err));
    CHECK_INT(m.bytes.total, ==, e->plan->bytes.total);
    CHECK_INT(m.captures, ==, e->plan->n_parts);
    tec_engine_close(e);
    tec_pipeline_free(p);
    tec_arena_finish(&arena);
    CHECK_INT(heap.live, ==, 0);
}

/* Fail the n-th allocation, for growing n, until opening succeeds: each failure gives one status
 * and keeps nothing. */
TEST(every_refused_allocation_is_survived)
{
    struct tec_heap pipelines = {0};
    struct tec_pipeline *p = load(&pipelines);
    REQUIRE(p);
    struct tec_engine_options o = options_for(p);
    o.size = "tiny";
    bool opened = false;
    int refused = 0;
    for (int64_t n = 1; !opened && n < 20000; n = n < 200 ? n + 1 : n + n / 16) {
        struct tec_heap heap = {0};
        struct tec_error err = {.message = ""};
        struct tec_engine *e = NULL;
        heap.fail_at = n;
        enum tec_status status = tec_engine_open(&e, &o, &heap, &err);
        opened = status == TEC_OK;
        if (!opened) {
            CHECK_INT(status, ==, TEC_NO_MEMORY);
            CHECK(err.message[0] != '\0');
            refused++;
        }
        tec_engine_close(e);
        CHECK_INT(heap.live, ==, 0);
    }
    CHECK(opened);
    CHECK_INT(refused, >, 20);
    tec_pipeline_free(p);
}

TAP_MAIN
