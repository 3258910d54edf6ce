/* engine.c - the whole engine on a CUDA device that fails or hangs: at load one error and nothing
 * left, in the middle of frames a record that says so, and a robot that is handed what the pipeline
 * declares, in time. Kernel bodies are off: what they compute is not the question here. */
#include "graph/run/engine/engine.h"
#include "kernels/device_kind.h"
#include "kernels/grids.h"
#include "tectum.h"
#include "tests/cuda/model.h"

enum { PATIENCE_MS = 150, SIDE = 64, PIXELS = SIDE * SIDE * 3, ROOM = 64 * 32 };

static const struct tec_clock wall = {NULL};
static struct tec_heap heap;

static void clean(void)
{
    model_clean();
    model_without_bodies();
}

static void check_empty(void)
{
    struct cuda_emulator_counters c;
    cuda_emulator_counters(&c);
    CHECK_INT(c.device_bytes + c.pinned_bytes, ==, 0);
    CHECK_INT(c.streams + c.events + c.graphs + c.execs, ==, 0);
    CHECK_INT(c.reports, ==, 0);
}

/* --- load ------------------------------------------------------------------------------------ */

static struct tec_pipeline *load(const char *quantize)
{
    struct tec_diagnostics d;
    struct tec_pipeline *p = NULL;
    const char *const set[] = {"nodes.talk.deadline.on_miss=continue", quantize};
    const struct tec_load_options o = {.path = TECTUM_SOURCE "/pipelines/pi05_droid.lua",
                                       .root = TECTUM_SOURCE "/pipelines",
                                       .set = set,
                                       .n_set = 2};
    tec_diagnostics_init(&d, &heap);
    if (tec_pipeline_load(&p, &o, &heap, &d, &err) != TEC_OK)
        fprintf(stderr, "# %s\n", err.message);
    tec_diagnostics_finish(&d);
    REQUIRE(p);
    return p;
}

static struct tec_engine_options options_of(const struct tec_pipeline *p)
{
    return (struct tec_engine_options){
        .pipeline = p,
        .root = TECTUM_SOURCE,
        .random = true,
        .seed = 1,
        .size = "tiny",
        .dtype = "bf16",
        .device = {.kind = "cuda", .spin_us = 100, .patience_ms = PATIENCE_MS * 100},
        .saturated = true};
}

static enum tec_status open_engine(struct tec_engine **e, const struct tec_pipeline *p)
{
    const struct tec_engine_options o = options_of(p);
    *e = NULL;
    return tec_engine_open(e, &o, &heap, &err);
}

/* Call number nth of the function fails while the engine opens; true: there was such a call. */
static bool fail_at_load(const struct tec_pipeline *p, const char *function, int nth)
{
    struct tec_engine *e;
    int64_t before = heap.live;
    clean();
    cuda_emulator_fail(function, nth, cudaErrorUnknown);
    err.message[0] = '\0';
    enum tec_status status = open_engine(&e, p);
    if (status != TEC_OK && (status != TEC_DEVICE || !strstr(err.message, "cuda:0: ")))
        fprintf(stderr, "# %s %d: %d %s\n", function, nth, (int)status, err.message);
    CHECK(status == TEC_OK || (status == TEC_DEVICE && strstr(err.message, "cuda:0: ") != NULL));
    CHECK((status == TEC_OK) == (e != NULL));
    tec_engine_close(e);
    CHECK_INT(heap.live, ==, before);
    if (strcmp(function, "kernel") != 0) /* the device keeps that one, and its memory */
        check_empty();
    return status != TEC_OK;
}

TEST(a_load_that_fails_is_one_error)
{
    static const char *const functions[] = {"cudaMalloc",
                                            "cudaMemsetAsync",
                                            "cudaMemcpyAsync",
                                            "cudaStreamBeginCapture",
                                            "cudaLaunchKernelEx",
                                            "cudaGraphAddNode",
                                            "cudaGraphInstantiate",
                                            "cudaGraphLaunch",
                                            "kernel"};
    struct tec_pipeline *p = load("model.quantize=none");
    int failures = 0;
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        for (int nth = 1; fail_at_load(p, functions[i], nth); nth = nth * 6 + 1)
            failures++;
    CHECK_INT(failures, >, 20);
    printf("# %d loads failed\n", failures);
    tec_pipeline_free(p);
    CHECK_INT(heap.live, ==, 0);
}

/* What `check` says of the device's workspace is what an engine takes: with weights of 8 bits, and
 * on 9.0 always, memory for rows of products. */
TEST(a_workspace_is_what_was_measured)
{
    for (int i = 0; i < 4; i++) {
        struct tec_pipeline *p = load(i % 2 ? "model.quantize=int8" : "model.quantize=none");
        struct tec_engine_options o = options_of(p);
        struct tec_arena arena;
        struct tec_measured m;
        struct tec_engine *e;
        clean();
        cuda_emulator_device(i / 2 ? 87 : 90, 16, (size_t)2 << 30);
        tec_arena_init(&arena, &heap);
        REQUIRE(tec_engine_measure(&m, &o, &heap, &arena, &err) == TEC_OK);
        REQUIRE(open_engine(&e, p) == TEC_OK);
        int64_t rest = TEC_CUDA_PARTIALS + TEC_CUDA_SQUARES + 4 * TEC_CUDA_TICKETS + 4;
        CHECK_INT(m.bytes.workspace, ==, rest + (i == 2 ? 0 : TEC_CUDA_TERMS));
        CHECK_INT(tec_device_workspace(e->device), ==, m.bytes.workspace);
        tec_engine_close(e);
        tec_arena_finish(&arena);
        tec_pipeline_free(p);
        check_empty();
    }
    clean();
    CHECK_INT(heap.live, ==, 0);
}

/* --- the graph ------------------------------------------------------------------------------- */

struct told {
    int kernels, loops;
};

static void count_start(void *user, const struct tec_grid *grid)
{
    struct told *told = user;
    (void)grid;
    told->kernels++;
}

/* What the commands, which `graph --compiled` lists, start by kernels/grids.h; a mark is a kernel,
 * a loop one in front and one in its body, and one is at the end. */
static struct told told_of(const struct tec_capture *c)
{
    const struct tec_cuda_facts facts = {
        90, 132, true, TEC_CUDA_PARTIALS, TEC_CUDA_TERMS, TEC_CUDA_SQUARES, TEC_CUDA_CLUSTERS};
    struct told told = {1, 0};
    for (int i = 0; i < c->n;) {
        told.kernels += c->commands[i].kind != TEC_RUN;
        told.loops += c->commands[i].kind == TEC_REPEAT;
        i += tec_grids_at(c, i, &facts, count_start, &told);
    }
    return told;
}

static void check_graph(const char *part, const struct tec_capture *c)
{
    struct told told = told_of(c);
    if (tec_capture_kernels(c) != told.kernels)
        fprintf(stderr, "# %s: %d kernels, %d are told\n", part, tec_capture_kernels(c),
                told.kernels);
    CHECK_INT(tec_capture_kernels(c), ==, told.kernels);
    CHECK_INT(tec_capture_nodes(c), ==, told.kernels + told.loops);
}

TEST(each_part_is_the_graph_that_is_told)
{
    static const char *const archs[] = {"pi05", "pi0", "pi05_causal"};
    int parts = 0;
    for (int i = 0; i < 12; i++) {
        clean();
        model_open(archs[i / 4], i % 2, i / 2 % 2 ? 40 : 0);
        for (int p = 0; p < t.plan->n_parts; p++) {
            const struct tec_plan_part *part = &t.plan->parts[p];
            parts += part->capture != NULL;
            if (part->capture) {
                CHECK_INT(tec_capture_commands(part->capture), ==, part->program.n_steps);
                check_graph(part->name, part->capture);
            }
            for (int s = 0; s < part->n_slices; s++)
                check_graph(part->name, part->slices[s]);
        }
        model_close();
    }
    printf("# %d parts\n", parts);
    CHECK_INT(parts, >, 60);
}

/* --- frames ---------------------------------------------------------------------------------- */

static int n_released;

static void released(void *user, int action, const float *chunk,
                     const struct tec_frame_record *record)
{
    (void)action;
    (void)user, (void)chunk;
    CHECK(!record->failed);
    n_released++;
}

static void check_frame(const struct tec_frame_record *r, bool failed_before, int which, int before)
{
    bool acted = n_released > before;
    CHECK(r->failed || !failed_before); /* for good */
    CHECK_INT(r->failed, ==, tec_device_failure(t.device, NULL) != TEC_OK);
    CHECK_INT(acted, ==, r->actions[0].release_ns >= 0);
    CHECK(!acted || !failed_before);
    if (!r->failed) {
        CHECK_INT(acted, ==, which >= 0);
        return;
    }
    CHECK_INT(r->cause, ==, TEC_CAUSE_GPU);
    CHECK(acted || r->missed);
    if (failed_before)
        CHECK_INT(r->n_launches + r->tokens, ==, 0);
}

static void fail_in_frames(const char *function, int nth, cudaError_t error, int beside)
{
    uint64_t dice = 31 + (uint64_t)nth;
    int which, n_failed = 0;
    clean();
    model_open("pi05", true, beside);
    const struct tec_planner planner = model_dice(&dice);
    struct tec_loop *loop = model_loop(&planner, released);
    for (int f = 0; f < 24; f++) {
        if (f == 6)
            cuda_emulator_fail(function, nth, error);
        int before = n_released;
        const struct tec_frame_record *r = model_frame(loop, &dice, &which);
        check_frame(r, n_failed > 0, which, before);
        n_failed += r->failed;
        CHECK(tec_loop_live(loop) <= TINY_SLOTS);
        CHECK_INT(t.plan->prefixes.in_use, <=, tec_loop_live(loop));
    }
    CHECK_INT(n_failed, >, 3);
    CHECK(tec_device_failure(t.device, &err) == TEC_DEVICE);
    CHECK(strncmp(err.message, "cuda:0: ", 8) == 0);
    tec_loop_restart(loop);
    CHECK_INT(tec_loop_live(loop), ==, 0);
    CHECK_INT(t.plan->prefixes.in_use, ==, 0);
    tec_loop_destroy(loop);
    tiny_close(&t);
    CHECK_INT(tiny_heap.live, ==, 0);
    if (error == cudaErrorUnknown)
        check_empty();
}

TEST(a_failure_amid_frames_is_told_and_stays)
{
    for (int beside = 0; beside < 2; beside++)
        for (int nth = 1; nth <= 8; nth += nth < 4 ? 1 : 4) {
            fail_in_frames("cudaGraphLaunch", nth, cudaErrorUnknown, beside);
            fail_in_frames("cudaMemcpyAsync", nth, cudaErrorUnknown, beside);
            fail_in_frames("cudaStreamQuery", nth, cudaErrorLaunchFailure, beside);
            fail_in_frames("kernel", nth * 40, cudaErrorIllegalAddress, beside);
        }
}

/* --- hanging --------------------------------------------------------------------------------- */

static void hang_in_frames(int nth, int beside)
{
    uint64_t dice = 5;
    int which, n_failed = 0;
    clean();
    model_open("pi05", true, beside);
    const struct tec_planner planner = model_dice(&dice);
    struct tec_loop *loop = model_loop(&planner, released);
    for (int f = 0; f < 4; f++)
        CHECK(!model_frame(loop, &dice, &which)->failed);
    cuda_emulator_hang(nth);
    for (int f = 0; f < 12; f++) {
        int64_t start = tec_clock_now(&wall);
        int before = n_released;
        const struct tec_frame_record *r = model_frame(loop, &dice, &which);
        int64_t took = tec_clock_now(&wall) - start;
        check_frame(r, n_failed > 0, which, before);
        CHECK_INT(took, <, (PATIENCE_MS + (n_failed ? 0 : 2000)) * INT64_C(1000000));
        n_failed += r->failed;
    }
    CHECK_INT(n_failed, >, 3);
    tec_loop_destroy(loop);
    int64_t start = tec_clock_now(&wall);
    tiny_close(&t);
    CHECK_INT(tec_clock_now(&wall) - start, <, 2000000000);
    CHECK_INT(tiny_heap.live, ==, 0);
}

TEST(a_hanging_launch_is_given_up)
{
    tiny_patience_ms = PATIENCE_MS;
    for (int beside = 0; beside < 2; beside++)
        for (int nth = 1; nth <= 3; nth++)
            hang_in_frames(nth, beside);
    tiny_patience_ms = 0;
    clean();
}

/* --- the robot ------------------------------------------------------------------------------- */

static uint8_t picture[PIXELS];
static float state[4];
static struct tectum_error why;

static enum tectum_status submit(struct tectum *robot, int64_t *number)
{
    const struct tectum_value v[] = {
        {"observation/image", TECTUM_TYPE_U8, 3, {SIDE, SIDE, 3}, picture, PIXELS},
        {"observation/wrist_image", TECTUM_TYPE_U8, 3, {SIDE, SIDE, 3}, picture, PIXELS},
        {"observation/state", TECTUM_TYPE_F32, 1, {4}, state, sizeof state},
        {"prompt", TECTUM_TYPE_TEXT, 0, {0}, "press", 5}};
    return tectum_submit(robot, v, 4, 0, number, &why);
}

static struct tectum *open_robot(void)
{
    const char *const set[] = {"nodes.act.deadline.limit=1000"}; /* a hang outlasts the file's 3 */
    const struct tectum_options o = {.pipeline = "pipelines/demo_metaworld.lua",
                                     .root = ".",
                                     .seed = 5,
                                     .actions = 2,
                                     .device = "cuda",
                                     .set = set,
                                     .n_set = 1};
    struct tectum *robot = NULL;
    clean();
    if (tectum_open(&robot, &o, &why) != TECTUM_OK)
        fprintf(stderr, "# %s\n", why.message);
    REQUIRE(robot);
    return robot;
}

static double actions[ROOM], last[8];

/* A tick whose actions come, however long the machine takes. */
static void tick_fresh(struct tectum *robot)
{
    struct tectum_handed handed;
    int64_t number = -1;
    REQUIRE(submit(robot, &number) == TECTUM_OK);
    REQUIRE(tectum_handout(robot, number, tectum_now() + 60000000000, actions, ROOM, &handed,
                           &why) == TECTUM_OK);
    CHECK_INT(handed.source, ==, TECTUM_SOURCE_FRESH);
    CHECK_INT(handed.rows, ==, 2);
    REQUIRE(handed.columns <= 8);
    memcpy(last, actions + handed.columns, sizeof(double) * (size_t)handed.columns);
}

/* A tick whose actions do not come: the last command again, at the deadline. */
static int64_t tick_held(struct tectum *robot, int64_t number)
{
    struct tectum_handed handed;
    int64_t deadline = tectum_now() + 50000000;
    REQUIRE(tectum_handout(robot, number, deadline, actions, ROOM, &handed, &why) == TECTUM_OK);
    CHECK_INT(handed.source, ==, TECTUM_SOURCE_HELD);
    CHECK_INT(handed.rows, ==, 2);
    for (int r = 0; r < handed.rows; r++)
        CHECK(memcmp(actions + r * handed.columns, last, sizeof(double) * (size_t)handed.columns) ==
              0);
    return handed.handed_ns - deadline;
}

TEST(the_watchdog_hands_out_the_held_action_while_the_device_hangs)
{
    struct tectum *robot = open_robot();
    int64_t worst = 0, number = -1;
    tick_fresh(robot);
    cuda_emulator_hang(1);
    for (int i = 0; i < 10; i++) {
        REQUIRE(submit(robot, &number) == TECTUM_OK);
        int64_t late = tick_held(robot, number);
        worst = late > worst ? late : worst;
    }
    printf("# while the device hung, actions left at most %.2f ms after the deadline\n",
           (double)worst / 1e6);
    CHECK_INT(worst, <, 1000000000); /* of a machine that is shared */
    cuda_emulator_hang(0);           /* it comes back */
    tick_fresh(robot);
    tectum_close(&robot);
    check_empty();
}

TEST(a_device_that_has_failed_is_bridged_for_good)
{
    struct tectum *robot = open_robot();
    int64_t number = -1;
    tick_fresh(robot);
    cuda_emulator_fail("kernel", 30, cudaErrorIllegalAddress);
    REQUIRE(submit(robot, &number) == TECTUM_OK);
    tick_held(robot, number);
    int64_t until = tectum_now() + 60000000000;
    enum tectum_status status = TECTUM_OK;
    while (status == TECTUM_OK && tectum_now() < until)
        status = submit(robot, &number);
    CHECK_INT(status, ==, TECTUM_DEVICE);
    CHECK(strncmp(why.message, "cuda:0: ", 8) == 0);
    CHECK_INT(tectum_wait(robot, number + 1, -1, actions, ROOM, NULL, &why), ==, TECTUM_DEVICE);
    for (int i = 0; i < 3; i++)
        tick_held(robot, -1);
    tectum_close(&robot);
    clean();
}

TAP_MAIN
