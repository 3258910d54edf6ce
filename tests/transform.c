/* transform.c - tests of the observer and the processors against the golden cases of openpi and
 * LeRobot. */
#include "tests/tap.h"

#include "tests/judge/pi_lerobot.h"
#include "tests/judge/verify.h"

static struct tec_heap heap;
static struct tec_error err;

TEST(golden_prepost)
{
    struct tec_arena arena;
    tec_arena_init(&arena, &heap);
    struct tec_verify v = {.dtype = "f32", .heap = &heap, .arena = &arena};
    CHECK(tec_verify_case(&v, "tests/golden/pi/prepost", &err) == TEC_OK);
    CHECK_INT(v.failed, ==, 0);
    CHECK_INT(v.checks, >=, 170);
    tec_arena_finish(&arena);
    CHECK_INT(heap.live, ==, 0);
}

/* Both LeRobot cases: sizes, states and actions to the bit. */
TEST(golden_lerobot_processing)
{
    static const char *const cases[] = {"tests/golden/pi/pi05_odd_lerobot",
                                        "tests/golden/pi/pi0_tiny_lerobot"};
    for (size_t i = 0; i < 2; i++) {
        struct tec_arena arena;
        json_error_t where;
        char path[200];
        tec_arena_init(&arena, &heap);
        snprintf(path, sizeof path, "%s/case.json", cases[i]);
        struct tec_verify v = {.dir = cases[i], .dtype = "f32", .heap = &heap, .arena = &arena};
        v.json = json_load_file(path, JSON_REJECT_DUPLICATES, &where);
        REQUIRE(v.json);
        tec_verify_lerobot_processing(&v);
        CHECK_INT(v.failed, ==, 0);
        CHECK_INT(v.checks, >=, 3);
        json_decref(v.json);
        tec_arena_finish(&arena);
        CHECK_INT(heap.live, ==, 0);
    }
}

TAP_MAIN
