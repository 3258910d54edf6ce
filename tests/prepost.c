/* prepost.c - golden cases of models that act by tokens: what stands around the model. */
#include "tests/tap.h"

#include "tests/judge/openvla_prepost.h"

#define FOLDER "tests/golden/openvla/"

static struct tec_heap heap;
static struct tec_error err;

/* The host's part of one case; returns how many checks there were. */
static int judge(const char *name, const char *checkpoint)
{
    struct tec_arena arena;
    struct tec_checkpoint *c = NULL;
    struct tec_tensors *inputs = NULL, *expected = NULL;
    json_error_t where;
    char dir[200], path[300];
    tec_arena_init(&arena, &heap);
    snprintf(dir, sizeof dir, FOLDER "%s", name);
    struct tec_verify v = {.dir = dir, .dtype = "f32", .heap = &heap, .arena = &arena};
    v.out = stderr;
    v.text = true;
    snprintf(path, sizeof path, "%s/case.json", dir);
    v.json = json_load_file(path, JSON_REJECT_DUPLICATES, &where);
    REQUIRE(v.json);
    snprintf(path, sizeof path, "%s/inputs.safetensors", dir);
    REQUIRE(tec_tensors_open(&inputs, path, &heap, &err) == TEC_OK);
    snprintf(path, sizeof path, "%s/expected.safetensors", dir);
    REQUIRE(tec_tensors_open(&expected, path, &heap, &err) == TEC_OK);
    snprintf(path, sizeof path, "%s/%s", dir, checkpoint);
    REQUIRE(tec_checkpoint_open(&c, path, &heap, &err) == TEC_OK);
    tec_verify_openvla_prepost(&v, c, inputs, expected);
    CHECK_INT(v.failed, ==, 0);
    tec_checkpoint_close(c);
    tec_tensors_close(inputs);
    tec_tensors_close(expected);
    json_decref(v.json);
    tec_arena_finish(&arena);
    CHECK_INT(heap.live, ==, 0);
    return v.checks;
}

TEST(golden_around_the_model)
{
    CHECK_INT(judge("tiny", "checkpoint"), >=, 3 * 5 + 3 + 1);
    CHECK_INT(judge("odd", "checkpoint"), >=, 2 * 5 + 1 + 1);
    CHECK_INT(judge("vocab32k", "checkpoint"), >=, 2 * 3 + 1);
    CHECK_INT(judge("actionflow", "../tiny/checkpoint"), >=, 6 * 5);
}

TEST(golden_pictures)
{
    struct tec_arena arena;
    tec_arena_init(&arena, &heap);
    struct tec_verify v = {.dtype = "f32", .heap = &heap, .arena = &arena};
    CHECK(tec_verify_case(&v, FOLDER "preproc", &err) == TEC_OK);
    CHECK_INT(v.failed, ==, 0);
    CHECK_INT(v.checks, ==, 38);
    tec_arena_finish(&arena);
    CHECK_INT(heap.live, ==, 0);
}

TAP_MAIN
