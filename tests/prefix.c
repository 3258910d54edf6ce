/* prefix.c - first actions that are given: chunks equal to those of PyTorch with a time for every
 * row, no byte moved where none are given, the same bytes under any schedule, and clear refusals.
 */
#include "base/store/safetensors.h"
#include "graph/model/timed.h"
#include "graph/run/engine/engine.h"
#include "kernels/matrix.h"
#include "policies/host/policy.h"
#include "tests/tap.h"
#include "tools/frames/inputs.h"

#include "tectum.h"
#include "tests/loop_frame.h"
#include "tests/told.h"

#include <math.h>

#define DEMO "tests/golden/demo/episodes"
#define FIXTURE "tests/fixtures/prefix/cases.safetensors"
#define PREFIX "tests/pipelines/prefix.lua"
#define NONE "tests/pipelines/prefix_none.lua"

enum { CASES = 16, ROWS = 16, DIM = 4, CHUNK = ROWS * DIM, PIXELS = 64 * 64 * 3, MOST = 8 };

static struct tec_heap heap;
static struct tec_error err;

#define CHECK_SAYS(text)                                                             \
    do {                                                                             \
        if (!tap_check(strstr(err.message, text) != NULL, text, __FILE__, __LINE__)) \
            fprintf(stderr, "#   message: %s\n", err.message);                       \
    } while (0)

/* --- the cases ------------------------------------------------------------------------------- */

static const char *const episodes[] = {"button", "faucet_open", "faucet_close"};
static const char *const prompts[] = {"press the button", "open the faucet", "close the faucet"};

static struct {
    int32_t episode, index, d;
    uint8_t image[PIXELS], wrist[PIXELS];
    float state[4], noise[CHUNK];
    double prev[MOST * DIM];
    float actions[CHUNK], robot_actions[CHUNK];
} cases[CASES];
static double bounds[2][5];

static void read(const struct tec_tensors *file, const char *name, int at, void *out, size_t bytes)
{
    const struct tec_stored *t = tec_tensors_find(file, name);
    REQUIRE(t && t->bytes >= ((size_t)at + 1) * bytes);
    REQUIRE(tec_tensors_read(file, t, (uint64_t)at * bytes, out, bytes, &err) == TEC_OK);
}

static void read_cases(void)
{
    struct tec_tensors *fixture, *inputs;
    char name[64];
    REQUIRE(tec_tensors_open(&fixture, FIXTURE, &heap, &err) == TEC_OK);
    REQUIRE(tec_tensors_open(&inputs, DEMO "/inputs.safetensors", &heap, &err) == TEC_OK);
    read(fixture, "bounds", 0, bounds, sizeof bounds);
    for (int i = 0; i < CASES; i++) {
        read(fixture, "episode", i, &cases[i].episode, 4);
        read(fixture, "index", i, &cases[i].index, 4);
        read(fixture, "d", i, &cases[i].d, 4);
#define READ(file, at, member, ...)                                    \
    do {                                                               \
        snprintf(name, sizeof name, __VA_ARGS__);                      \
        read(file, name, at, cases[i].member, sizeof cases[i].member); \
    } while (0)
        const char *episode = episodes[cases[i].episode];
        READ(fixture, 0, actions, "%d.actions", i);
        READ(fixture, 0, robot_actions, "%d.robot_actions", i);
        READ(inputs, cases[i].index, image, "%s.image", episode);
        READ(inputs, cases[i].index, wrist, "%s.wrist_image", episode);
        READ(inputs, cases[i].index, state, "%s.state", episode);
        READ(inputs, cases[i].index, noise, "%s.noise", episode);
        snprintf(name, sizeof name, "%d.prev", i);
        if (cases[i].d)
            read(fixture, name, 0, cases[i].prev, (size_t)cases[i].d * DIM * sizeof(double));
    }
    tec_tensors_close(inputs);
    tec_tensors_close(fixture);
}

/* The request of a case: n values, the last of which gives its first d actions. */
static size_t request(int i, struct tec_value v[5])
{
    const char *text = prompts[cases[i].episode];
    v[0] = (struct tec_value){"image", TEC_VALUE_U8, 3, {64, 64, 3}, cases[i].image, PIXELS};
    v[1] = (struct tec_value){"wrist_image", TEC_VALUE_U8, 3, {64, 64, 3}, cases[i].wrist, PIXELS};
    v[2] = (struct tec_value){"state", TEC_VALUE_F32, 1, {4}, cases[i].state, 16};
    v[3] = (struct tec_value){"prompt", TEC_VALUE_TEXT, 0, {0}, text, strlen(text)};
    v[4] = (struct tec_value){
        "prev_actions",    TEC_VALUE_F64, 2,
        {cases[i].d, DIM}, cases[i].prev, (size_t)cases[i].d * DIM * sizeof(double)};
    return cases[i].d ? 5 : 4;
}

/* --- an engine ------------------------------------------------------------------------------- */

struct open {
    struct tec_pipeline *pipeline;
    struct tec_engine *engine;
    float chunk[CHUNK];
    double robot[CHUNK];
    int rows;
};

static void released(void *user, int action, const float *chunk,
                     const struct tec_frame_record *record)
{
    (void)action;
    struct open *o = user;
    (void)record;
    memcpy(o->chunk, chunk, sizeof o->chunk);
}

static struct tec_engine_options options_for(struct open *o, const char *path, const char *dtype,
                                             int threads)
{
    struct tec_diagnostics d;
    const struct tec_load_options load = {.path = path, .root = "pipelines"};
    tec_diagnostics_init(&d, &heap);
    bool loaded = tec_pipeline_load(&o->pipeline, &load, &heap, &d, &err) == TEC_OK;
    tec_diagnostics_finish(&d);
    REQUIRE(loaded);
    return (struct tec_engine_options){
        .pipeline = o->pipeline,
        .root = ".",
        .seed = 5,
        .dtype = dtype,
        .device = {.kind = tap.device, .threads = threads, .spin_us = 0, .tier = tec_tier_best()},
        .released = released,
        .user = o};
}

static void open_engine(struct open *o, const char *path, const char *dtype, int threads)
{
    *o = (struct open){.rows = 0};
    const struct tec_engine_options options = options_for(o, path, dtype, threads);
    enum tec_status status = tec_engine_open(&o->engine, &options, &heap, &err);
    if (status != TEC_OK)
        fprintf(stderr, "# %s\n", err.message);
    REQUIRE(status == TEC_OK);
}

static void close_engine(struct open *o)
{
    tec_engine_close(o->engine);
    tec_pipeline_free(o->pipeline);
    CHECK_INT(heap.live, ==, 0);
}

/* One frame of a case; with `given` false its first actions are left out. */
static void run_case(struct open *o, int i, bool given)
{
    struct tec_value v[5];
    struct tec_frame_input input;
    size_t n = request(i, v);
    REQUIRE(tec_session_observe(o->engine->session, v, given ? n : 4, cases[i].noise, i, 0, &input,
                                NULL, &err) == TEC_OK);
    CHECK_INT(input.chains[0].n_fixed[0], ==, given ? cases[i].d : 0);
    loop_frame(o->engine->loop, &input, 0, 0);
    o->rows = tec_session_act_on(o->engine->session,
                                 tec_session_observation(o->engine->session)->state_raw, o->chunk,
                                 o->robot, NULL);
}

/* --- against PyTorch ------------------------------------------------------------------------- */

struct distance {
    double max, squares;
    int n;
};

static void measure(struct distance *d, double got, double want)
{
    double x = fabs(got - want);
    d->max = x > d->max || isnan(x) ? x : d->max;
    d->squares += x * x;
    d->n++;
}

/* tests/golden/README.md: how a bound is formed. */
static void judge(const struct distance *d, const double b[5], bool bf16, const char *what)
{
    double floor = 2e-6 * b[0], max = bf16 ? 1.5 * b[3] : 4 * b[1],
           rms = bf16 ? 1.5 * b[4] : 4 * b[2];
    double got = sqrt(d->squares / d->n);
    max = !bf16 && max < floor ? floor : max;
    printf("# %s %s: max %.3g of %.3g, rms %.3g of %.3g\n", bf16 ? "bf16" : "f32", what, d->max,
           max, got, rms);
    CHECK(d->max <= max);
    CHECK(got <= rms);
}

static void compare_all(bool bf16)
{
    static struct open o;
    struct distance model = {.n = 0}, robot = {.n = 0};
    read_cases();
    open_engine(&o, PREFIX, bf16 ? "bf16" : "f32", 1);
    for (int i = 0; i < CASES; i++) {
        run_case(&o, i, true);
        CHECK_INT(o.rows, ==, ROWS);
        for (int k = 0; k < CHUNK; k++) {
            measure(&model, (double)o.chunk[k], (double)cases[i].actions[k]);
            measure(&robot, o.robot[k], (double)cases[i].robot_actions[k]);
        }
        for (int k = 0; k < cases[i].d * DIM; k++) { /* what is given comes back */
            CHECK(fabsf(o.chunk[k] - cases[i].actions[k]) <= 2e-7F);
            CHECK(fabs(o.robot[k] - cases[i].prev[k]) <= 1e-6);
        }
    }
    judge(&model, bounds[0], bf16, "actions");
    judge(&robot, bounds[1], bf16, "robot actions");
    close_engine(&o);
}

TEST(chunks_equal_those_of_pytorch_f32)
{
    ONE_THREAD();
    compare_all(false);
}

TEST(chunks_equal_those_of_pytorch_bf16)
{
    ONE_THREAD();
    compare_all(true);
}

/* --- bytes ----------------------------------------------------------------------------------- */

static float reference[CASES][CHUNK];

static void make_reference(const char *dtype)
{
    static struct open o;
    read_cases();
    open_engine(&o, PREFIX, dtype, 1);
    for (int i = 0; i < CASES; i++) {
        run_case(&o, i, true);
        memcpy(reference[i], o.chunk, sizeof o.chunk);
    }
    close_engine(&o);
}

static void without_the_field(const char *dtype)
{
    static struct open with, without;
    read_cases();
    open_engine(&with, PREFIX, dtype, 1);
    open_engine(&without, NONE, dtype, 1);
    for (int i = 0; i < CASES; i += 3) {
        run_case(&with, i, true); /* leaves its count behind */
        run_case(&with, i, false);
        run_case(&without, i, false);
        CHECK(memcmp(with.chunk, without.chunk, sizeof with.chunk) == 0);
    }
    CHECK_INT(without.engine->plan->spec.actions[0].fixed, ==, 0);
    CHECK(without.engine->plan->timed[0]->times == without.engine->plan->timed[0]->steps);
    tec_engine_close(without.engine);
    tec_pipeline_free(without.pipeline);
    close_engine(&with);
}

TEST(nothing_given_is_as_without_the_field)
{
    ONE_THREAD();
    without_the_field("f32");
    without_the_field("bf16");
}

/* Frames of all cases in a random order, with requests of earlier frames decoded beside them. */
static void shuffled(struct open *o, const char *policy)
{
    struct tec_policy *p = NULL;
    uint64_t dice = 12345;
    int wrong = 0;
    enum tec_status status =
        tec_policy_open(&p, policy, ".", &o->engine->topology, NULL, NULL, 0, &heap, &err);
    REQUIRE(status == TEC_OK);
    struct tec_planner planner = tec_policy_planner(p);
    tec_loop_set_planner(o->engine->loop, &planner);
    for (int f = 0; f < 2 * CASES; f++) {
        dice = dice * 6364136223846793005U + 1442695040888963407U;
        int i = (int)((dice >> 33) % CASES);
        run_case(o, i, true);
        wrong += memcmp(o->chunk, reference[i], sizeof o->chunk) != 0;
    }
    CHECK_INT(wrong, ==, 0);
    tec_loop_restart(o->engine->loop);
    tec_loop_set_planner(o->engine->loop, &tec_default_planner);
    tec_policy_close(p);
}

TEST(bytes_do_not_depend_on_threads_or_policies)
{
    static const char *const policies[] = {"isolated", "oxygen", "batch_only"};
    static struct open o;
    for (int bf16 = THREADS_WATCHED; bf16 < 2; bf16++) {
        make_reference(bf16 ? "bf16" : "f32");
        for (int threads = 1 + THREADS_WATCHED; threads <= 3; threads++) {
            open_engine(&o, PREFIX, bf16 ? "bf16" : "f32", threads);
            shuffled(&o, policies[threads - 1]);
            close_engine(&o);
        }
    }
}

/* Noise of a row does not depend on how many actions are given. */
TEST(noise_stays_where_it_is)
{
    static struct open o;
    struct tec_frame_input input;
    struct tec_value v[5];
    float plain[CHUNK];
    read_cases();
    open_engine(&o, PREFIX, "f32", 1);
    request(0, v);
    REQUIRE(tec_session_observe(o.engine->session, v, 4, NULL, 9, 0, &input, NULL, &err) == TEC_OK);
    memcpy(plain, input.chains[0].noise[0], sizeof plain);
    for (int i = 1; i < 4; i++) {
        size_t n = request(i, v);
        int rest = cases[i].d * DIM;
        REQUIRE(tec_session_observe(o.engine->session, v, n, NULL, 9, 0, &input, NULL, &err) ==
                TEC_OK);
        CHECK(memcmp(plain, input.chains[0].noise[0], (size_t)rest * sizeof(float)) != 0);
        CHECK(memcmp(plain + rest, input.chains[0].noise[0] + rest,
                     (size_t)(CHUNK - rest) * sizeof(float)) == 0);
    }
    close_engine(&o);
}

/* A row in float32 is a row; an empty list is none. */
TEST(kinds_of_values)
{
    static struct open o;
    struct tec_frame_input input;
    struct tec_value v[5];
    float narrow[3 * DIM];
    read_cases();
    open_engine(&o, PREFIX, "f32", 1);
    request(2, v);
    REQUIRE(cases[2].d == 3);
    for (int i = 0; i < 3 * DIM; i++)
        narrow[i] = i % DIM == 3 ? 1.0F : (float)cases[2].prev[i];
    v[4].kind = TEC_VALUE_F32;
    v[4].data = narrow;
    v[4].bytes = sizeof narrow;
    REQUIRE(tec_session_observe(o.engine->session, v, 5, NULL, 9, 0, &input, NULL, &err) == TEC_OK);
    CHECK_INT(input.chains[0].n_fixed[0], ==, 3);
    for (int i = 0; i < 3 * DIM; i++)
        if (i % DIM == 3)
            CHECK(input.chains[0].noise[0][i] ==
                  -1.0F); /* its range is a point, where apply gives -1 */
        else
            CHECK(fabsf(input.chains[0].noise[0][i] - cases[2].actions[i]) < 1e-6F);
    v[4] = (struct tec_value){"prev_actions", TEC_VALUE_F64, 1, {0}, narrow, 0};
    REQUIRE(tec_session_observe(o.engine->session, v, 5, NULL, 9, 0, &input, NULL, &err) == TEC_OK);
    CHECK_INT(input.chains[0].n_fixed[0], ==, 0);
    v[4] = (struct tec_value){"prev_actions", TEC_VALUE_F64, 2, {0, DIM}, narrow, 0};
    REQUIRE(tec_session_observe(o.engine->session, v, 5, NULL, 9, 0, &input, NULL, &err) == TEC_OK);
    CHECK_INT(input.chains[0].n_fixed[0], ==, 0);
    close_engine(&o);
}

/* --- refusals -------------------------------------------------------------------------------- */

TEST(bad_values_are_refused_by_name)
{
    static const struct {
        struct tec_value value;
        const char *says;
    } bad[] = {
        {{"", TEC_VALUE_F64, 2, {9, DIM}, NULL, 9 * DIM * 8},
         "must be float[d,4] with d = 0 to 8, is f64[9,4]"},
        {{"", TEC_VALUE_F64, 2, {2, 3}, NULL, 48}, "must be float[d,4] with d = 0 to 8"},
        {{"", TEC_VALUE_F64, 1, {4}, NULL, 32}, "must be float[d,4] with d = 0 to 8"},
        {{"", TEC_VALUE_F64, 3, {1, 1, 4}, NULL, 32}, "must be float[d,4] with d = 0 to 8"},
        {{"", TEC_VALUE_F64, 2, {-1, 4}, NULL, 0}, "must be float[d,4] with d = 0 to 8"},
        {{"", TEC_VALUE_F64, 2, {INT64_MAX, 4}, NULL, 0}, "must be float[d,4] with d = 0 to 8"},
        {{"", TEC_VALUE_F64, 2, {0, 5}, NULL, 0}, "must be float[d,4] with d = 0 to 8"},
        {{"", TEC_VALUE_U8, 2, {2, 4}, NULL, 8}, "must be float[d,4] with d = 0 to 8"},
        {{"", TEC_VALUE_TEXT, 0, {0}, NULL, 8}, "must be float[d,4] with d = 0 to 8"},
        {{"", TEC_VALUE_F64, 2, {2, 4}, NULL, 63}, "63 bytes do not make f64[2,4]"},
        {{"", TEC_VALUE_F32, 2, {2, 4}, NULL, 64}, "64 bytes do not make f32[2,4]"},
    };
    static double data[9 * DIM];
    static struct open o;
    struct tec_frame_input good, input = {.chains[0].n_fixed[0] = -1};
    struct tec_value v[5];
    float noise[CHUNK];
    read_cases();
    open_engine(&o, PREFIX, "f32", 1);
    size_t n = request(3, v);
    REQUIRE(tec_session_observe(o.engine->session, v, n, NULL, 3, 0, &good, NULL, &err) == TEC_OK);
    memcpy(noise, good.chains[0].noise[0], sizeof noise);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        v[4] = bad[i].value;
        v[4].name = "prev_actions";
        v[4].data = data;
        CHECK_INT(tec_session_observe(o.engine->session, v, 5, NULL, 4, 0, &input, NULL, &err), ==,
                  TEC_SHAPE);
        CHECK_SAYS("prev_actions: ");
        CHECK_SAYS(bad[i].says);
    }
    static const struct {
        double x;
        const char *says;
    } numbers[] = {{(double)NAN, "prev_actions: row 2, column 3 is NaN"},
                   {-(double)INFINITY, "prev_actions: row 2, column 3 is infinite"},
                   {1e300, "prev_actions: row 2 is out of range: column 3 is not finite"}};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        v[4] = (struct tec_value){"prev_actions", TEC_VALUE_F64, 2, {2, 4}, data, 64};
        data[6] = numbers[i].x;
        CHECK_INT(tec_session_observe(o.engine->session, v, 5, NULL, 4, 0, &input, NULL, &err), ==,
                  TEC_INVALID);
        CHECK_SAYS(numbers[i].says);
    }
    CHECK_INT(input.chains[0].n_fixed[0], ==, -1); /* nothing was written */
    CHECK(memcmp(noise, good.chains[0].noise[0], sizeof noise) == 0);
    CHECK_INT(good.chains[0].n_fixed[0], ==, cases[3].d);
    close_engine(&o);
}

/* Without the field the name is none that the robot knows, and is not looked at. */
TEST(without_the_field_the_name_means_nothing)
{
    static struct open o;
    struct tec_frame_input input;
    struct tec_value v[5];
    read_cases();
    open_engine(&o, NONE, "f32", 1);
    size_t n = request(3, v);
    REQUIRE(tec_session_observe(o.engine->session, v, n, NULL, 3, 0, &input, NULL, &err) == TEC_OK);
    CHECK_INT(input.chains[0].n_fixed[0], ==, 0);
    close_engine(&o);
}

/* Measuring and opening PREFIX with one thing changed both end in this. */
static void refused(const char *const *set, int n_set, bool random, const char *says)
{
    struct tec_pipeline *p = NULL;
    struct tec_diagnostics d;
    struct tec_arena arena;
    struct tec_measured m;
    struct tec_engine *e = NULL;
    const struct tec_load_options load = {
        .path = PREFIX, .root = "pipelines", .set = set, .n_set = n_set};
    tec_diagnostics_init(&d, &heap);
    bool loaded = tec_pipeline_load(&p, &load, &heap, &d, &err) == TEC_OK;
    tec_diagnostics_finish(&d);
    if (!loaded)
        fprintf(stderr, "# %s\n", err.message);
    REQUIRE(loaded);
    const struct tec_engine_options o = {
        .pipeline = p,
        .root = ".",
        .random = random,
        .size = "tiny",
        .device = {.kind = tap.device, .threads = 1, .tier = tec_tier_best()}};
    tec_arena_init(&arena, &heap);
    err.message[0] = '\0';
    CHECK(tec_engine_measure(&m, &o, &heap, &arena, &err) != TEC_OK);
    CHECK_SAYS(says);
    err.message[0] = '\0';
    CHECK(tec_engine_open(&e, &o, &heap, &err) != TEC_OK);
    CHECK_SAYS(says);
    tec_engine_close(e);
    tec_arena_finish(&arena);
    tec_pipeline_free(p);
    CHECK_INT(heap.live, ==, 0);
}

TEST(what_does_not_fit_is_refused_before_weights)
{
    const char *const columns[] = {"inputs.prev_actions.shape=[8,3]"};
    refused(columns, 1, false,
            "prefix.lua:3: 'prev_actions' has 3 columns, an action of robot sawyer has 4");
    const char *const model[] = {"model.arch=pi0", "resources.chunk.shape=[16,32]"};
    refused(model, 2, true, "its action expert has no adaptive norms; leave prefix out");
}

/* --- memory, and the ways in ----------------------------------------------------------------- */

TEST(memory_is_what_measuring_says)
{
    static struct open o;
    struct tec_arena arena;
    struct tec_measured m, none;
    tec_arena_init(&arena, &heap);
    struct tec_engine_options options = options_for(&o, NONE, "bf16", 2);
    REQUIRE(went_well(tec_engine_measure(&none, &options, &heap, &arena, &err), &err));
    tec_pipeline_free(o.pipeline);
    options = options_for(&o, PREFIX, "bf16", 2);
    REQUIRE(went_well(tec_engine_measure(&m, &options, &heap, &arena, &err), &err));
    REQUIRE(went_well(tec_engine_open(&o.engine, &options, &heap, &err), &err));
    CHECK_INT(m.bytes.total, ==, o.engine->plan->bytes.total);
    CHECK_INT(tec_device_peak(o.engine->device), ==, o.engine->plan->bytes.total);
    CHECK_INT(m.spec.actions[0].fixed, ==, 8);
    /* One more time in the tables, and one count. */
    const struct tec_model_program *p = o.engine->model->program;
    int64_t rows = 0;
    for (int i = 0; i < p->n; i++)
        rows += p->calls[i].word == TEC_WORD_columns ? tec_padded(p->calls[i].cols) : 0;
    CHECK_INT(m.bytes.tables - none.bytes.tables, ==, rows * 4);
    CHECK_INT(m.bytes.frames - none.bytes.frames, ==, 64);
    CHECK_INT(m.bytes.total - m.bytes.tables - m.bytes.frames, ==,
              none.bytes.total - none.bytes.tables - none.bytes.frames);
    tec_arena_finish(&arena);
    close_engine(&o);
}

TEST(named_inputs_take_it_as_optional)
{
    static struct open o;
    struct tec_inputs *in = NULL;
    struct tec_inputs_frame frame;
    const char *words[] = {"image=@" DEMO "/inputs.safetensors#button.image[0]",
                           "wrist_image=@" DEMO "/inputs.safetensors#button.wrist_image[0]",
                           "state=[0, 0.6, 0.2, 1]", "prompt=press the button",
                           "prev_actions=[[0.1, 0.2, 0.3, 1], [0, 0, 0, 1]]"};
    read_cases();
    open_engine(&o, PREFIX, "f32", 1);
    for (int n = 4; n <= 5; n++) {
        const struct tec_words w = {.n = n, .item = words};
        struct tec_frame_input input;
        enum tec_status status =
            tec_inputs_open(&in, o.engine->session, o.pipeline, &w, NULL, &heap, &err);
        if (status != TEC_OK)
            fprintf(stderr, "# %s\n", err.message);
        REQUIRE(status == TEC_OK);
        REQUIRE(tec_inputs_next(in, &frame, &err) == TEC_OK);
        CHECK_INT(frame.n, ==, n);
        REQUIRE(tec_session_observe(o.engine->session, frame.values, frame.n, NULL, 0, 0, &input,
                                    NULL, &err) == TEC_OK);
        CHECK_INT(input.chains[0].n_fixed[0], ==, n == 5 ? 2 : 0);
        tec_inputs_close(in);
    }
    close_engine(&o);
}

TEST(the_library_takes_it_too)
{
    static struct open o;
    struct tectum_options options = {.pipeline = PREFIX,
                                     .root = ".",
                                     .device = tap.device,
                                     .threads = 1,
                                     .seed = 5,
                                     .dtype = "f32"};
    struct tectum *t = NULL;
    struct tectum_error mine;
    struct tectum_chunk info;
    double got[CHUNK];
    read_cases();
    open_engine(&o, PREFIX, "f32", 1);
    REQUIRE(tectum_open(&t, &options, &mine) == TECTUM_OK);
    for (int i = 0; i < 4; i++) {
        struct tec_value v[5];
        struct tectum_value out[5];
        struct tec_frame_input input;
        size_t n = request(i, v);
        for (size_t k = 0; k < n; k++) {
            out[k] = (struct tectum_value){.name = v[k].name,
                                           .type = (enum tectum_type)v[k].kind,
                                           .rank = v[k].rank,
                                           .data = v[k].data,
                                           .bytes = v[k].bytes};
            memcpy(out[k].shape, v[k].shape, sizeof v[k].shape);
        }
        REQUIRE(tec_session_observe(o.engine->session, v, n, NULL, i, 0, &input, NULL, &err) ==
                TEC_OK);
        loop_frame(o.engine->loop, &input, 0, 0);
        tec_session_act_on(o.engine->session, tec_session_observation(o.engine->session)->state_raw,
                           o.chunk, o.robot, NULL);
        REQUIRE(tectum_submit(t, out, n, 0, NULL, &mine) == TECTUM_OK);
        REQUIRE(tectum_wait(t, i, -1, got, CHUNK, &info, &mine) == TECTUM_OK);
        CHECK(memcmp(got, o.robot, sizeof got) == 0);
    }
    tectum_close(&t);
    close_engine(&o);
}

TAP_MAIN
