/* norm.c - normalisation statistics: numbers of the references, lengths, broken files. */
#include "base/store/checkpoint.h"
#include "tests/box.h"

#include <math.h>

#define PI "tests/golden/pi/"

static float *load_f32(const struct tec_tensors *t, const char *name, struct tec_arena *arena,
                       size_t *n)
{
    const struct tec_stored *s = tec_tensors_find(t, name);
    REQUIRE(s);
    *n = (size_t)tec_stored_count(s);
    float *x = TEC_NEW(arena, *n, float);
    REQUIRE(tec_tensors_read_f32(t, s, 0, x, *n, NULL) == TEC_OK);
    return x;
}

static double *load_f64(const struct tec_tensors *t, const char *name, struct tec_arena *arena,
                        size_t *n)
{
    const struct tec_stored *s = tec_tensors_find(t, name);
    REQUIRE(s && s->dtype == TEC_F64);
    *n = (size_t)tec_stored_count(s);
    double *x = TEC_NEW(arena, *n, double);
    REQUIRE(tec_tensors_read(t, s, 0, x, *n * sizeof *x, NULL) == TEC_OK);
    return x;
}

/* The state in and the actions out, bit for bit as float32. */
static void check_lerobot(const char *dir, enum tec_norm_mode mode)
{
    char path[200];
    struct tec_heap heap = {0};
    struct tec_arena arena;
    struct tec_error err;
    struct tec_checkpoint *c;
    struct tec_tensors *in, *out;
    struct tec_norm state, action;
    size_t n_state, n_model, n;
    tec_arena_init(&arena, &heap);
    snprintf(path, sizeof path, "%s/checkpoint", dir);
    REQUIRE(tec_checkpoint_open(&c, path, &heap, &err) == TEC_OK);
    snprintf(path, sizeof path, "%s/inputs.safetensors", dir);
    REQUIRE(tec_tensors_open(&in, path, &heap, &err) == TEC_OK);
    snprintf(path, sizeof path, "%s/expected.safetensors", dir);
    REQUIRE(tec_tensors_open(&out, path, &heap, &err) == TEC_OK);
    REQUIRE(tec_checkpoint_norm_lerobot(c, &state, "observation.state", &arena, &err) == TEC_OK);
    REQUIRE(tec_checkpoint_norm_lerobot(c, &action, "action", &arena, &err) == TEC_OK);
    CHECK(state.mode == mode && action.mode == mode && state.convention == TEC_NORM_LEROBOT);
    CHECK(state.eps == 1e-8);
    const float *raw = load_f32(in, "raw.state", &arena, &n_state);
    const float *model = load_f32(in, "model.actions", &arena, &n_model);
    const float *want_state = load_f32(out, "normalised.state", &arena, &n);
    CHECK_INT(n, ==, n_state);
    const float *want_action = load_f32(out, "robot.actions", &arena, &n);
    CHECK_INT(n, ==, n_model);
    CHECK_INT(state.n, ==, n_state);
    CHECK_INT(n_model % action.n, ==, 0);
    double y[64];
    for (size_t i = 0; i < n_state; i++)
        y[i] = (double)raw[i];
    tec_norm_apply(&state, y, n_state, y);
    for (size_t i = 0; i < n_state; i++)
        CHECK((float)y[i] == want_state[i] && (double)(float)y[i] == y[i]);
    for (size_t i = 0; i < n_model; i++) {
        tec_norm_undo_f32(&action, model + i - i % action.n, action.n, y);
        CHECK((float)y[i % action.n] == want_action[i]);
    }
    tec_tensors_close(in);
    tec_tensors_close(out);
    tec_checkpoint_close(c);
    tec_arena_finish(&arena);
    CHECK_INT(heap.live, ==, 0);
}

TEST(lerobot_numbers_are_the_reference)
{
    check_lerobot(PI "pi05_odd_lerobot", TEC_NORM_QUANTILE);
    check_lerobot(PI "pi0_tiny_lerobot", TEC_NORM_MEAN_STD);
}

/* One openpi case whose robot needs no adapter, bit for bit as float64. The z-score config adds the
 * state, normalised and back, to the first six actions. */
static void check_openpi(const json_t *entry, const struct tec_tensors *in,
                         const struct tec_tensors *out, struct tec_arena *arena)
{
    struct tec_error err;
    struct tec_norm state, action;
    char name[100];
    size_t n = 0, n_model, n_want, n_state;
    double x[32] = {0}, back[32];
    const char *key = json_string_value(json_object_get(entry, "key"));
    const json_t *stats = json_object_get(entry, "norm_stats");
    enum tec_norm_mode mode = json_is_true(json_object_get(entry, "quantile_norm"))
                                  ? TEC_NORM_QUANTILE
                                  : TEC_NORM_MEAN_STD;
    REQUIRE(tec_norm_from_json(&state, json_object_get(stats, "state"), mode, "s", arena, &err) ==
            TEC_OK);
    REQUIRE(tec_norm_from_json(&action, json_object_get(stats, "actions"), mode, "a", arena,
                               &err) == TEC_OK);
    snprintf(name, sizeof name, "%s.state", key);
    const struct tec_stored *s = tec_tensors_find(in, name);
    REQUIRE(s);
    const double *raw = s->dtype == TEC_F64 ? load_f64(in, name, arena, &n_state) : NULL;
    const float *raw32 = raw ? NULL : load_f32(in, name, arena, &n_state);
    REQUIRE(n_state <= 32);
    for (size_t i = 0; i < n_state; i++)
        x[i] = raw ? raw[i] : (double)raw32[i];
    tec_norm_apply(&state, x, n_state, x);
    snprintf(name, sizeof name, "%s.state_normalised_padded", key);
    const double *want = load_f64(out, name, arena, &n);
    REQUIRE(n == 32);
    CHECK(memcmp(x, want, sizeof x) == 0);
    tec_norm_undo(&state, x, n_state, back);
    snprintf(name, sizeof name, "%s.model_actions", key);
    const float *model = load_f32(in, name, arena, &n_model);
    snprintf(name, sizeof name, "%s.robot_actions", key);
    want = load_f64(out, name, arena, &n_want);
    for (size_t row = 0; row < n_want / 7; row++) {
        tec_norm_undo_f32(&action, model + 32 * row, 32, x);
        for (int i = 0; mode == TEC_NORM_MEAN_STD && i < 6; i++)
            x[i] += back[i];
        CHECK(memcmp(x, want + 7 * row, 7 * sizeof *x) == 0);
    }
}

TEST(openpi_numbers_are_the_reference)
{
    struct tec_heap heap = {0};
    struct tec_arena arena;
    struct tec_error err;
    struct tec_tensors *in, *out;
    json_error_t where;
    int judged = 0;
    tec_arena_init(&arena, &heap);
    json_t *json = json_load_file(PI "prepost/case.json", 0, &where);
    REQUIRE(json);
    REQUIRE(tec_tensors_open(&in, PI "prepost/inputs.safetensors", &heap, &err) == TEC_OK);
    REQUIRE(tec_tensors_open(&out, PI "prepost/expected.safetensors", &heap, &err) == TEC_OK);
    const json_t *cases = json_object_get(json, "cases");
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *entry = json_array_get(cases, i);
        if (strcmp(json_string_value(json_object_get(entry, "robot")), "libero") != 0)
            continue;
        check_openpi(entry, in, out, &arena);
        judged++;
    }
    CHECK_INT(judged, >=, 4);
    json_decref(json);
    tec_tensors_close(in);
    tec_tensors_close(out);
    tec_arena_finish(&arena);
}

TEST(norm_lengths_and_identity)
{
    const double mean[2] = {1, 2}, std[2] = {2, 4}, q01[2] = {0, 0}, q99[2] = {2, 4};
    struct tec_norm z = {.mode = TEC_NORM_MEAN_STD, .eps = 1e-6, .n = 2, .mean = mean, .std = std};
    struct tec_norm q = {.mode = TEC_NORM_QUANTILE, .eps = 1e-6, .n = 2, .q01 = q01, .q99 = q99};
    struct tec_norm none = {0}, m = {.mode = TEC_NORM_MIN_MAX, .convention = TEC_NORM_LEROBOT};
    double x[3] = {3, 2, 5}, y[3] = {0, 0, 9};
    tec_norm_apply(&z, x, 1, y); /* longer than the vector: cut */
    CHECK(y[0] == 2.0 / (2.0 + 1e-6) && y[1] == 0.0);
    tec_norm_apply(&z, x, 3, y); /* shorter: mean 0, std 1 */
    CHECK(y[2] == 5.0 / (1.0 + 1e-6));
    tec_norm_undo(&q, x, 3, y); /* shorter: copied */
    CHECK(y[0] == 2.0 * (2.0 + 1e-6) && y[2] == 5.0);
    tec_norm_apply(&none, x, 3, y);
    CHECK(memcmp(x, y, sizeof x) == 0);
    m.n = 2, m.eps = 1e-8, m.min = q01, m.max = q99;
    tec_norm_apply(&m, x, 3, y);
    CHECK(y[0] == 2.0 && y[1] == 0.0 && y[2] == 5.0);
    tec_norm_undo(&m, y, 3, y);
    CHECK(y[0] == 3.0 && y[1] == 2.0 && y[2] == 5.0);
}

TEST(dataset_formulas)
{
    const double q01[3] = {-1, 0.3, 2}, q99[3] = {3, 0.3, 4};
    const bool mask[3] = {true, true, false};
    struct tec_norm n = {.mode = TEC_NORM_QUANTILE, .convention = TEC_NORM_DATASET, .n = 3};
    const double x[4] = {0.5, 0.25, 0.7, 9};
    const float f[4] = {0.1F, 0.25F, 0.7F, 9};
    double y[4];
    n.q01 = q01, n.q99 = q99, n.mask = mask;
    tec_norm_undo(&n, x, 4, y);
    CHECK(y[0] == 0.5 * (0.5 + 1) * (3.0 - -1.0) + -1.0);
    CHECK(y[1] == 0.3); /* no width */
    CHECK_INT(tec_norm_flat(&n, 3), ==, 1);
    CHECK_INT(tec_norm_flat(&n, 1), ==, -1);
    CHECK(y[2] == 0.7 && y[3] == 9.0);
    tec_norm_undo_f32(&n, f, 4, y);
    float half = 0.5F * (0.1F + 1.0F);
    CHECK(y[0] == (double)half * 4.0 - 1.0);
    CHECK(y[2] == (double)0.7F);
    n.eps = 1e-8;
    CHECK_INT(tec_norm_flat(&n, 3), ==, -1);
    tec_norm_undo(&n, x, 4, y);
    CHECK(y[0] == 0.75 * (4.0 + 1e-8) - 1.0);
    n.mask = NULL;
    tec_norm_undo(&n, x, 4, y);
    CHECK(y[2] == 0.5 * 1.7 * (2.0 + 1e-8) + 2.0);
    const double raw[4] = {-0.5, 0.3, 3.5, -7};
    n.mask = mask;
    tec_norm_apply(&n, raw, 4, y);
    CHECK(y[0] == 2.0 * 0.5 / (4.0 + 1e-8) - 1.0);
    CHECK(y[1] == -1.0);
    CHECK(y[2] == 1.0 && y[3] == -1.0); /* held to [-1, 1] where nothing is normalised, too */
}

/* The proprioception of the parallel-decoding case, as its own code normalised it. */
TEST(dataset_proprio_is_the_reference)
{
    struct tec_heap heap = {0};
    struct tec_arena arena;
    struct tec_error err;
    struct tec_checkpoint *c;
    struct tec_norm norm;
    json_error_t where;
    double x[8], y[8];
    tec_arena_init(&arena, &heap);
    json_t *json = json_load_file("tests/golden/openvla/oft/case.json", 0, &where);
    REQUIRE(json);
    const json_t *raw = json_object_get(json, "proprio_raw");
    const json_t *want = json_object_get(json, "proprio_normalised");
    REQUIRE(tec_checkpoint_open(&c, "tests/golden/openvla/tiny/checkpoint", &heap, &err) == TEC_OK);
    REQUIRE(tec_checkpoint_norm_dataset(c, &norm, "bridge_orig", "proprio", TEC_NORM_QUANTILE, 1e-8,
                                        &arena, &err) == TEC_OK);
    REQUIRE(norm.n == 8 && json_array_size(raw) == 8 && json_array_size(want) == 8);
    for (size_t i = 0; i < 8; i++)
        x[i] = json_number_value(json_array_get(raw, i));
    tec_norm_apply(&norm, x, 8, y);
    for (size_t i = 0; i < 8; i++)
        CHECK(y[i] == json_number_value(json_array_get(want, i)));
    tec_checkpoint_close(c);
    json_decref(json);
    tec_arena_finish(&arena);
    CHECK_INT(heap.live, ==, 0);
}

static const struct {
    const char *stats, *message;
} broken_stats[] = {
    {"[1]", "is not an object"},
    {"{\"mean\": [1], \"std\": [1, 2]}", "std has 2 values, the ones before it 1"},
    {"{\"mean\": [], \"std\": []}", "mean is empty"},
    {"{\"mean\": [null], \"std\": [1]}", "mean[0] is not a number"},
    {"{\"mean\": [1, \"2\"], \"std\": [1, 1]}", "mean[1] is not a number"},
    {"{\"mean\": [1], \"std\": null}", "mean_std normalisation needs mean and std"},
    {"{\"mean\": [1], \"std\": [-1]}", "std[0] is -1, below 0"},
    {"{\"mean\": [1], \"std\": 1}", "std is not a list"},
    {"{\"mean\": [1], \"std\": [1], \"q01\": [2], \"q99\": [1]}", "value 0 are 2 and 1"},
    {"{\"mean\": [NaN], \"std\": [1]}", "line 1, column"},
    {"{\"mean\": [Infinity], \"std\": [1]}", "not a JSON number"},
    {"{\"mean\": [1], \"std\": [1], \"q01\": [0], \"q99\": [1e300]}",
     "state: q99[0] is 1e+300; statistics are within +-1e+06"},
    {"{\"mean\": [0, -2e6], \"std\": [1, 1]}", "mean[1] is -2e+06"},
    {"{\"mean\": [1e999], \"std\": [1]}", "line 1, column"},
};

TEST(broken_statistics_are_located)
{
    struct box b;
    struct tec_heap heap = {0};
    struct tec_arena arena;
    tec_arena_init(&arena, &heap);
    box_make(&b);
    for (size_t i = 0; i < sizeof broken_stats / sizeof broken_stats[0]; i++) {
        char text[300];
        struct tec_norm norm = {0};
        struct tec_error err = {0};
        snprintf(text, sizeof text, "{\"norm_stats\": {\"state\": %s}}", broken_stats[i].stats);
        box_put(&b, "norm_stats.json", text);
        enum tec_status status =
            tec_norm_load_openpi(&norm, b.path, "state", TEC_NORM_MEAN_STD, &arena, &err);
        CHECK_INT(status, ==, TEC_MALFORMED);
        if (!strstr(err.message, broken_stats[i].message))
            CHECK_STR(err.message, broken_stats[i].message);
        CHECK(strstr(err.message, "norm_stats"));
        CHECK(norm.n == 0);
    }
    tec_arena_finish(&arena);
    box_remove(&b);
}

/* A LeRobot step with a state file of our own: statistics of "action". */
static enum tec_status load_step(struct box *b, const char *config,
                                 const struct tec_tensor_entry *stats, size_t n,
                                 struct tec_norm *norm, struct tec_error *err)
{
    struct tec_heap heap = {0};
    struct tec_arena arena;
    struct tec_tensors *state;
    tec_arena_init(&arena, &heap);
    json_t *step = json_pack("{s:o}", "config", json_loads(config, 0, NULL));
    box_path(b, "state.safetensors");
    REQUIRE(step && tec_tensors_write(b->path, stats, n, &heap, err) == TEC_OK);
    REQUIRE(tec_tensors_open(&state, b->path, &heap, err) == TEC_OK);
    enum tec_status status = tec_norm_load_lerobot(norm, step, state, "action", &arena, err);
    tec_tensors_close(state);
    json_decref(step);
    tec_arena_finish(&arena); /* only mode and n are looked at afterwards */
    return status;
}

#define STEP(mode) "{\"features\":{\"action\":{\"type\":\"A\"}},\"norm_map\":{\"A\":\"" mode "\"}}"

TEST(lerobot_steps_decide_the_mode)
{
    struct box b;
    struct tec_error err;
    struct tec_norm norm;
    const float low[2] = {0, 1}, high[2] = {1, 2};
    struct tec_tensor_entry stats[2] = {{"action.q01", TEC_F32, 1, {2}, low},
                                        {"action.q99", TEC_F32, 1, {2}, high}};
    box_make(&b);
    CHECK_INT(load_step(&b, STEP("QUANTILES"), stats, 2, &norm, &err), ==, TEC_OK);
    CHECK(norm.mode == TEC_NORM_QUANTILE && norm.n == 2 && norm.eps == 1e-8);
    CHECK_INT(load_step(&b, STEP("IDENTITY"), stats, 2, &norm, &err), ==, TEC_OK);
    CHECK(norm.mode == TEC_NORM_NONE);
    CHECK_INT(load_step(&b, STEP("QUANTILES"), stats, 0, &norm, &err), ==, TEC_OK);
    CHECK(norm.mode == TEC_NORM_NONE && norm.n == 0);
    CHECK_INT(load_step(&b, "{}", stats, 2, &norm, &err), ==, TEC_OK);
    CHECK(norm.mode == TEC_NORM_NONE);
    CHECK_INT(load_step(&b, STEP("MEAN_STD"), stats, 2, &norm, &err), ==, TEC_MALFORMED);
    CHECK_INT(load_step(&b, STEP("QUANTILE10"), stats, 2, &norm, &err), ==, TEC_MALFORMED);
    CHECK(strstr(err.message, "quantile10 normalisation needs q10 and q90"));
    CHECK_INT(load_step(&b, STEP("QUANTILE11"), stats, 2, &norm, &err), ==, TEC_UNSUPPORTED);
    CHECK_INT(load_step(&b, STEP("QUANTILES"), stats, 1, &norm, &err), ==, TEC_MALFORMED);
    CHECK_INT(load_step(&b, "{\"norm_map\":{\"ACTION\":\"QUANTILES\"}}", stats, 2, &norm, &err), ==,
              TEC_OK);
    CHECK(norm.mode == TEC_NORM_QUANTILE && norm.wanted);
    stats[0].dtype = TEC_I32;
    CHECK_INT(load_step(&b, STEP("QUANTILES"), stats, 2, &norm, &err), ==, TEC_SHAPE);
    CHECK(strstr(err.message, "action.q01"));
    stats[0].dtype = TEC_F32, stats[0].shape[0] = 1;
    CHECK_INT(load_step(&b, STEP("QUANTILES"), stats, 2, &norm, &err), ==, TEC_MALFORMED);
    box_remove(&b);
}

/* Mode QUANTILE10: as QUANTILES, with other arrays; a range of no width is eps wide. */
TEST(lerobot_quantile10)
{
    struct box b;
    struct tec_error err;
    struct tec_heap heap = {0};
    struct tec_arena arena;
    struct tec_norm norm;
    const double q10[2] = {-1, 3}, q90[2] = {3, 3}, x[2] = {2, 3};
    double y[2];
    const float low[2] = {-1, 3}, high[2] = {3, 3};
    struct tec_tensor_entry stats[2] = {{"action.q10", TEC_F32, 1, {2}, low},
                                        {"action.q90", TEC_F32, 1, {2}, high}};
    box_make(&b);
    CHECK_INT(load_step(&b, STEP("QUANTILE10"), stats, 2, &norm, &err), ==, TEC_OK);
    CHECK(norm.mode == TEC_NORM_QUANTILE10 && norm.wanted && norm.n == 2);
    box_remove(&b);
    tec_arena_init(&arena, &heap);
    norm.q10 = q10, norm.q90 = q90;
    tec_norm_apply(&norm, x, 2, y);
    CHECK(y[0] == 0.5 && y[1] == -1.0);
    tec_norm_undo(&norm, y, 2, y);
    CHECK(y[0] == 2.0 && y[1] == 3.0);
    tec_arena_finish(&arena);
}

#define KEYS(keys)                                                                        \
    "{\"features\":{\"observation.state\":{\"type\":\"STATE\"}},\"norm_map\":{\"STATE\":" \
    "\"MEAN_STD\"},\"normalize_observation_keys\":[" keys "]}"

TEST(a_vector_of_two_parts_has_the_statistics_of_both)
{
    const double low[] = {1.0, 2.0}, high[] = {3.0, 2.0}, mean[] = {5.0}, std[] = {0.5};
    const struct tec_norm then = {.mode = TEC_NORM_MEAN_STD,
                                  .convention = TEC_NORM_LEROBOT,
                                  .n = 1,
                                  .mean = mean,
                                  .std = std};
    const struct tec_norm norm = {.mode = TEC_NORM_MIN_MAX,
                                  .convention = TEC_NORM_LEROBOT,
                                  .eps = 1e-8,
                                  .n = 2,
                                  .min = low,
                                  .max = high,
                                  .then = &then,
                                  .from = 2};
    const double x[] = {2.5, 2.0, 6.0};
    double y[3], middle, width;
    tec_norm_apply(&norm, x, 3, y);
    CHECK(y[0] == 0.5 && y[1] == -1.0 && y[2] == 2.0);
    tec_norm_undo(&norm, y, 3, y);
    CHECK(y[0] == 2.5 && y[1] == 2.0 && y[2] == 6.0);
    tec_norm_apply(&norm, x, 1, y); /* of fewer values than the first part has */
    CHECK(y[0] == 0.5 && y[2] == 6.0);
    tec_norm_line(&norm, 0, &middle, &width);
    CHECK(middle == 2.0 && width == 1.0);
    tec_norm_line(&norm, 1, &middle, &width); /* a range of nothing is eps wide */
    CHECK(fabs(middle - 2.0) < 1e-7 && width == 5e-9);
    tec_norm_line(&then, 0, &middle, &width);
    CHECK(middle == 5.0 && width == 0.5);
    tec_norm_line(&then, 1, &middle, &width);
    CHECK(middle == 0.0 && width == 1.0);
}

TEST(lerobot_observations_that_are_not_normalised)
{
    struct tec_error err;
    struct tec_heap heap = {0};
    struct tec_arena arena;
    struct tec_norm norm;
    static const char *const keys[] = {KEYS("\"observation.state\""), KEYS("\"observation.x\""),
                                       KEYS("")};
    tec_arena_init(&arena, &heap);
    for (int i = 0; i < 3; i++) {
        json_t *step = json_pack("{s:o}", "config", json_loads(keys[i], 0, NULL));
        REQUIRE(step);
        CHECK_INT(tec_norm_load_lerobot(&norm, step, NULL, "observation.state", &arena, &err), ==,
                  TEC_OK);
        CHECK(norm.wanted == (i == 0));
        json_decref(step);
    }
    tec_arena_finish(&arena);
}

TAP_MAIN
