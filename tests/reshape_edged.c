/* reshape_edged.c - kinds of reshapes with an edge and a middle: results of others to the byte. */
#include "base/image/reshape.h"
#include "tests/tap.h"

static enum tec_status plan_of(const struct tec_reshape **plan, const struct tec_reshape_spec *spec,
                               struct tec_arena *arena, struct tec_error *err)
{
    *err = (struct tec_error){0};
    return tec_reshape_plan(plan, spec, arena, err);
}

/* FNV-1a of what becomes of a picture that is made by a rule. */
static uint64_t hash_of(const struct tec_reshape_spec *spec)
{
    struct tec_heap heap = {0};
    struct tec_arena arena;
    struct tec_error err;
    const struct tec_reshape *plan = NULL;
    size_t n = (size_t)spec->in_height * (size_t)spec->in_width * 3;
    size_t made = (size_t)spec->height * (size_t)spec->width * 3;
    uint64_t hash = 0xcbf29ce484222325U;
    tec_arena_init(&arena, &heap);
    REQUIRE(plan_of(&plan, spec, &arena, &err) == TEC_OK);
    unsigned char *in = tec_arena_push(&arena, n, 1, 64);
    unsigned char *out = tec_arena_push(&arena, made, 1, 64);
    void *scratch = tec_arena_push(&arena, tec_reshape_scratch(plan), 1, 64);
    REQUIRE(in && out && scratch);
    for (size_t k = 0; k < n; k++)
        in[k] = (unsigned char)((31 * k + k / 97) % 251);
    tec_reshape_run(plan, out, in, scratch);
    for (size_t k = 0; k < made; k++)
        hash = (hash ^ out[k]) * 0x100000001b3U;
    tec_arena_finish(&arena);
    CHECK_INT(heap.live, ==, 0);
    return hash;
}

/* The results are those of OpenCV 4.13 and Pillow 12.3: copyMakeBorder, resize with INTER_AREA, the
 * middle, resize with INTER_AREA again, Image.resize. */
TEST(squares_are_cut_by_areas)
{
    static const struct {
        int h, w, edge;
        double middle;
        int side;
        uint64_t hash;
    } cases[] = {
        {30, 47, 64, 0.95, 56, 0xfc385f7810943303U},
        {96, 128, 64, 0.95, 56, 0x21439e1b1a88698eU},
        {61, 20, 64, 0.9, 70, 0x733e7c44315f35bU},
        {128, 128, 64, 1.0, 64, 0x8168938978e7def8U},
        {480, 640, 256, 0.95, 252, 0x84d43e276b590dc4U},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        CHECK(hash_of(&(struct tec_reshape_spec){.kind = TEC_RESHAPE_AREA,
                                                 .in_height = cases[i].h,
                                                 .in_width = cases[i].w,
                                                 .height = cases[i].side,
                                                 .width = cases[i].side,
                                                 .edge = cases[i].edge,
                                                 .middle = cases[i].middle}) == cases[i].hash);
}

/* The results are those of torch 2.15, printed by tests/fixtures/make_middle.py. */
TEST(the_middle_is_that_of_torch_to_the_byte)
{
    static const struct {
        int h, w;
        bool boxed;
        int edge;
        double middle;
        int height, width;
        uint64_t hash;
    } cases[] = {
        {480, 640, false, 256, 0.8984375, 256, 256, 0xe71449fb965d5afdU},
        {37, 53, false, 40, 0.95, 64, 48, 0x13d39d91e94bba98U},
        {53, 38, true, 45, 0.9, 32, 32, 0x63e6f77a788263c1U},
        {100, 100, false, 100, 1.0, 100, 100, 0x919ea4d0b32a028fU},
        {9, 31, true, 70, 0.35, 96, 64, 0xcabec18382b46fe8U},
        {720, 1280, true, 243, 0.5, 256, 256, 0x6146e15523d6f6f5U},
        {64, 48, false, 32, 0.015, 32, 32, 0xaafcb21d67a5cb25U},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        CHECK(hash_of(&(struct tec_reshape_spec){.kind = cases[i].boxed ? TEC_RESHAPE_BOX_MIDDLE
                                                                        : TEC_RESHAPE_MIDDLE,
                                                 .in_height = cases[i].h,
                                                 .in_width = cases[i].w,
                                                 .height = cases[i].height,
                                                 .width = cases[i].width,
                                                 .edge = cases[i].edge,
                                                 .middle = cases[i].middle}) == cases[i].hash);
}

TEST(an_edge_and_a_middle_are_needed)
{
    struct tec_heap heap = {0};
    struct tec_arena arena;
    struct tec_error err;
    const struct tec_reshape *plan = NULL;
    struct tec_reshape_spec spec = {.in_height = 40, .in_width = 50, .height = 32, .width = 32};
    tec_arena_init(&arena, &heap);
    for (int i = 0; i < 2; i++) {
        spec.kind = i ? TEC_RESHAPE_BOX_MIDDLE : TEC_RESHAPE_MIDDLE;
        spec.edge = 0;
        spec.middle = 0.5;
        CHECK_INT(plan_of(&plan, &spec, &arena, &err), ==, TEC_INVALID);
        CHECK(strstr(err.message, "the middle 0.5 of an edge of 0 pixels"));
        spec.edge = 32;
        spec.middle = 1.5;
        CHECK_INT(plan_of(&plan, &spec, &arena, &err), ==, TEC_INVALID);
        CHECK(strstr(err.message, "the middle 1.5 of an edge of 32 pixels"));
        spec.middle = 1.0;
        CHECK_INT(plan_of(&plan, &spec, &arena, &err), ==, TEC_OK);
        CHECK(tec_reshape_cuts(spec.kind) && tec_reshape_edged(spec.kind));
    }
    tec_arena_finish(&arena);
    CHECK_INT(heap.live, ==, 0);
}

TAP_MAIN
