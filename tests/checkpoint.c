/* checkpoint.c - checkpoint directories: layouts, tokenizers, statistics, and what goes wrong. */
#include "base/store/checkpoint.h"
#include "base/store/kind.h"
#include "tests/tap.h"

#include <ftw.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define PI "tests/golden/pi/"

/* A folder of a test's own, filled with texts and with links to golden files. */
struct box {
    char dir[64], path[400];
};

static void box_make(struct box *b)
{
    snprintf(b->dir, sizeof b->dir, "/tmp/tec-checkpoint-XXXXXX");
    REQUIRE(mkdtemp(b->dir));
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st, (void)flag, (void)ftw;
    return remove(path);
}

static void box_remove(struct box *b)
{
    CHECK(nftw(b->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0);
}

/* b->path of a name, with the folders above it made and the old file removed. */
static void box_path(struct box *b, const char *name)
{
    snprintf(b->path, sizeof b->path, "%s/%s", b->dir, name);
    for (char *slash = b->path + strlen(b->dir) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(b->path, 0777);
        *slash = '/';
    }
    unlink(b->path);
}

static void box_put(struct box *b, const char *name, const char *text)
{
    box_path(b, name);
    FILE *f = fopen(b->path, "wb");
    REQUIRE(f);
    fputs(text, f);
    CHECK(fclose(f) == 0);
}

static void box_link(struct box *b, const char *name, const char *golden)
{
    char *full = realpath(golden, NULL);
    box_path(b, name);
    REQUIRE(full);
    CHECK(symlink(full, b->path) == 0);
    free(full);
}

static void check_message(const char *path, enum tec_status want, const char *piece)
{
    struct tec_heap heap = {0};
    struct tec_error err = {0};
    struct tec_checkpoint *c;
    CHECK_INT(tec_checkpoint_open(&c, path, &heap, &err), ==, want);
    if (!strstr(err.message, piece))
        CHECK_STR(err.message, piece);
    tec_checkpoint_close(c);
    CHECK_INT(heap.live, ==, 0);
}

/* The same with every golden file it does not replace. */
static void box_openpi(struct box *b)
{
    box_make(b);
    box_link(b, "config.json", PI "pi05_odd/checkpoint/config.json");
    box_link(b, "model.safetensors", PI "pi05_odd/checkpoint/model.safetensors");
    box_link(b, "assets/droid/norm_stats.json",
             PI "pi05_odd/checkpoint/assets/droid/norm_stats.json");
}

static const struct {
    const char *path;
    enum tec_layout layout;
    const char *prefix, *tokenizer, *asset;
} golden[] = {
    {PI "pi05_tiny/checkpoint", TEC_LAYOUT_OPENPI, "", NULL, "physical-intelligence/libero"},
    {PI "pi05_odd/checkpoint", TEC_LAYOUT_OPENPI, "", NULL, "droid"},
    {PI "pi0_tiny/checkpoint", TEC_LAYOUT_OPENPI, "", NULL, "trossen"},
    {PI "pi0_odd/checkpoint", TEC_LAYOUT_OPENPI, "", NULL, "droid"},
    {PI "pi05_odd_lerobot/checkpoint", TEC_LAYOUT_LEROBOT, "model.",
     "pretrained_model/tokenizer/tokenizer.json", NULL},
    {PI "pi0_tiny_lerobot/checkpoint", TEC_LAYOUT_LEROBOT, "model.",
     "pretrained_model/tokenizer/tokenizer.json", NULL},
    {PI "pi0_tiny_lerobot/checkpoint/pretrained_model", TEC_LAYOUT_LEROBOT, "model.",
     "tokenizer/tokenizer.json", NULL},
    {"tests/golden/demo/episodes/checkpoint", TEC_LAYOUT_OPENPI, "", "tokenizer.model",
     "metaworld"},
    {PI "pi05_odd/checkpoint/model.safetensors", TEC_LAYOUT_FILE, "", NULL, NULL},
};

TEST(golden_checkpoints_open)
{
    struct tec_heap heap = {0};
    struct tec_error err;
    for (size_t i = 0; i < sizeof golden / sizeof golden[0]; i++) {
        struct tec_checkpoint *c;
        enum tec_status status = tec_checkpoint_open(&c, golden[i].path, &heap, &err);
        CHECK_INT(status, ==, TEC_OK);
        if (status != TEC_OK)
            continue;
        char path[200];
        snprintf(path, sizeof path, "%s/%s", golden[i].path,
                 golden[i].tokenizer ? golden[i].tokenizer : "");
        CHECK_STR(tec_layout_name(c->layout), tec_layout_name(golden[i].layout));
        CHECK_STR(c->prefix, golden[i].prefix);
        CHECK_STR(c->tokenizer ? c->tokenizer : "", golden[i].tokenizer ? path : "");
        CHECK_INT(c->n_assets, ==, golden[i].asset ? 1 : 0);
        if (c->n_assets && golden[i].asset)
            CHECK_STR(c->assets[0], golden[i].asset);
        CHECK(tec_checkpoint_tensor(c, "action_in_proj.weight"));
        CHECK(tec_checkpoint_tensor(c, "action_in_proj.weight") ==
                  tec_checkpoint_tensor(c, "model.action_in_proj.weight") ||
              c->layout != TEC_LAYOUT_LEROBOT);
        CHECK(!tec_checkpoint_tensor(c, "action_in_proj"));
        CHECK_INT(strlen(c->hash), ==, 32);
        tec_checkpoint_close(c);
    }
    CHECK_INT(heap.live, ==, 0);
}

static int n_opened, n_refused;

static int open_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    struct tec_heap heap = {0};
    struct tec_error err;
    struct tec_checkpoint *c;
    (void)st;
    if (flag != FTW_D || strcmp(path + ftw->base, "checkpoint") != 0)
        return 0;
    bool opened = tec_checkpoint_open(&c, path, &heap, &err) == TEC_OK;
    if (!opened)
        fprintf(stderr, "# %s\n", err.message);
    tec_checkpoint_close(c);
    n_opened += opened;
    n_refused += !opened;
    return 0;
}

TEST(every_golden_checkpoint_opens)
{
    n_opened = n_refused = 0;
    CHECK(nftw("tests/golden", open_one, 16, FTW_PHYS) == 0);
    CHECK_INT(n_opened, >=, 7);
    CHECK_INT(n_refused, ==, 0);
}

TEST(aliases_are_tried_in_order)
{
    static const char *const names[] = {"no.such", "action_out_proj.bias", "action_in_proj.bias"};
    struct tec_heap heap = {0};
    struct tec_error err;
    struct tec_checkpoint *c;
    REQUIRE(tec_checkpoint_open(&c, PI "pi0_odd/checkpoint", &heap, &err) == TEC_OK);
    const struct tec_stored *s = tec_checkpoint_any(c, names, 3);
    REQUIRE(s);
    CHECK_STR(s->name, "action_out_proj.bias");
    CHECK(!tec_checkpoint_any(c, names, 1));
    tec_checkpoint_close(c);
}

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

TEST(assets_are_chosen_by_name)
{
    struct box b;
    struct tec_heap heap = {0};
    struct tec_arena arena;
    struct tec_error err;
    struct tec_checkpoint *c;
    struct tec_norm norm;
    tec_arena_init(&arena, &heap);
    box_openpi(&b);
    box_link(&b, "assets/a/b/norm_stats.json",
             PI "pi05_odd/checkpoint/assets/droid/norm_stats.json");
    box_put(&b, "assets/empty/readme", "");
    REQUIRE(tec_checkpoint_open(&c, b.dir, &heap, &err) == TEC_OK);
    REQUIRE(c->n_assets == 2);
    CHECK_STR(c->assets[0], "a/b");
    CHECK_INT(tec_checkpoint_norm_openpi(c, &norm, NULL, "state", TEC_NORM_QUANTILE, &arena, &err),
              ==, TEC_INVALID);
    CHECK(strstr(err.message, "choose one of the asset ids a/b, droid"));
    CHECK_INT(tec_checkpoint_norm_openpi(c, &norm, "x", "state", TEC_NORM_QUANTILE, &arena, &err),
              ==, TEC_NOT_FOUND);
    CHECK_INT(
        tec_checkpoint_norm_openpi(c, &norm, "../..", "state", TEC_NORM_QUANTILE, &arena, &err), ==,
        TEC_NOT_FOUND);
    CHECK_INT(tec_checkpoint_norm_openpi(c, &norm, "a/b", "state", TEC_NORM_QUANTILE, &arena, &err),
              ==, TEC_OK);
    CHECK(norm.n > 0 && norm.q01 && norm.eps == 1e-6);
    CHECK_INT(tec_checkpoint_norm_openpi(c, &norm, "a/b", "stat", TEC_NORM_QUANTILE, &arena, &err),
              ==, TEC_NOT_FOUND);
    CHECK(strstr(err.message, "it has state, actions"));
    CHECK_INT(tec_checkpoint_norm_lerobot(c, &norm, "action", &arena, &err), ==, TEC_NOT_FOUND);
    tec_checkpoint_close(c);
    tec_arena_finish(&arena);
    box_remove(&b);
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

/* A LeRobot step with a state file of our own. */
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
    CHECK_INT(load_step(&b, STEP("QUANTILE10"), stats, 2, &norm, &err), ==, TEC_UNSUPPORTED);
    CHECK_INT(load_step(&b, STEP("QUANTILES"), stats, 1, &norm, &err), ==, TEC_MALFORMED);
    stats[0].dtype = TEC_I32;
    CHECK_INT(load_step(&b, STEP("QUANTILES"), stats, 2, &norm, &err), ==, TEC_SHAPE);
    CHECK(strstr(err.message, "action.q01"));
    stats[0].dtype = TEC_F32, stats[0].shape[0] = 1;
    CHECK_INT(load_step(&b, STEP("QUANTILES"), stats, 2, &norm, &err), ==, TEC_MALFORMED);
    box_remove(&b);
}

TEST(broken_directories_are_refused)
{
    struct box b;
    box_openpi(&b);
    check_message(b.dir, TEC_OK, "");
    box_put(&b, "config.json", "{\"action_dim\": 4,");
    check_message(b.dir, TEC_MALFORMED, "config.json: line 1, column");
    box_put(&b, "config.json", "[]");
    check_message(b.dir, TEC_MALFORMED, "config.json: holds a list");
    box_put(&b, "config.json", "{\"width\": 4}");
    check_message(b.dir, TEC_UNSUPPORTED, "of no known layout");
    box_put(&b, "config.json", "<!DOCTYPE html><html>");
    check_message(b.dir, TEC_MALFORMED, "config.json: is an HTML page");
    box_put(&b, "config.json", "{\"model_type\": \"x\", \"model_type\": \"y\"}");
    check_message(b.dir, TEC_MALFORMED, "duplicate");
    box_put(&b, "config.json", "{\"model_type\": \"x\"}");
    check_message(b.dir, TEC_OK, "");
    box_put(&b, "model.safetensors", "version https://git-lfs.github.com/spec/v1\noid sha256:4d\n");
    check_message(b.dir, TEC_MALFORMED, "model.safetensors: is a Git LFS pointer");
    box_put(&b, "model.safetensors", "<html><body>404</body></html>");
    check_message(b.dir, TEC_MALFORMED, "model.safetensors: is an HTML page");
    box_put(&b, "model.safetensors", "");
    check_message(b.dir, TEC_MALFORMED, "model.safetensors: 0 bytes");
    box_path(&b, "model.safetensors");
    check_message(b.dir, TEC_NOT_FOUND, "holds neither model.safetensors nor");
    CHECK(mkdir(b.path, 0777) == 0);
    check_message(b.dir, TEC_IO, "model.safetensors: is not a regular file");
    box_put(&b, "model.safetensors.index.json",
            "{\"weight_map\": {\"w\": \"../model.safetensors\"}}");
    check_message(b.dir, TEC_MALFORMED, "'../model.safetensors' is not a plain file name");
    box_remove(&b);
}

TEST(a_cut_model_is_refused)
{
    static char bytes[1 << 20];
    struct box b;
    FILE *f = fopen(PI "pi05_odd/checkpoint/model.safetensors", "rb");
    REQUIRE(f);
    size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    box_openpi(&b);
    box_path(&b, "model.safetensors");
    f = fopen(b.path, "wb");
    REQUIRE(f);
    CHECK(fwrite(bytes, 1, n - 1, f) == n - 1);
    fclose(f);
    check_message(b.dir, TEC_MALFORMED, "model.safetensors: the tensors end at data byte");
    box_remove(&b);
}

#define LEROBOT PI "pi05_odd_lerobot/checkpoint/pretrained_model/"

TEST(names_in_processors_stay_inside)
{
    struct box b;
    struct tec_heap heap = {0};
    struct tec_arena arena;
    struct tec_error err;
    struct tec_checkpoint *c;
    struct tec_norm norm;
    tec_arena_init(&arena, &heap);
    box_make(&b);
    box_link(&b, "pretrained_model/config.json", LEROBOT "config.json");
    box_link(&b, "pretrained_model/model.safetensors", LEROBOT "model.safetensors");
    box_link(&b, "tokenizer.json", LEROBOT "tokenizer/tokenizer.json");
    box_put(&b, "pretrained_model/policy_preprocessor.json",
            "{\"steps\": [{\"registry_name\": \"tokenizer_processor\", \"config\": "
            "{\"tokenizer_name\": \"..\"}}, {\"registry_name\": \"normalizer_processor\", "
            "\"state_file\": \"../../x.safetensors\", \"config\": {}}]}");
    REQUIRE(tec_checkpoint_open(&c, b.dir, &heap, &err) == TEC_OK);
    CHECK_INT(c->layout, ==, TEC_LAYOUT_LEROBOT);
    CHECK(!c->tokenizer);
    CHECK_INT(tec_checkpoint_norm_lerobot(c, &norm, "observation.state", &arena, &err), ==,
              TEC_MALFORMED);
    CHECK(strstr(err.message, "'../../x.safetensors' is not a plain file name"));
    tec_checkpoint_close(c);
    tec_arena_finish(&arena);
    box_remove(&b);
}

TEST(other_things_are_named)
{
    struct box b;
    char path[200];
    box_make(&b);
    check_message("/no/such/path", TEC_NOT_FOUND, "no such file or directory");
    check_message(b.dir, TEC_NOT_FOUND, "holds neither model.safetensors");
    box_put(&b, "a.lua", "-- arm\nreturn pipeline { }\n");
    check_message(b.path, TEC_INVALID,
                  "this is a pipeline file; a checkpoint is a directory with model.safetensors");
    box_put(&b, "b.lua", "return policy { }\n");
    check_message(b.path, TEC_INVALID, "this is a policy");
    box_put(&b, "c.jsonl", "{}\n");
    check_message(b.path, TEC_INVALID, "this is a recording");
    box_put(&b, "d.bin", "\x01\x02");
    check_message(b.path, TEC_INVALID, "is no checkpoint");
    check_message("tests/golden/demo/episodes/checkpoint/tokenizer.model", TEC_INVALID,
                  "this is a tokenizer");
    snprintf(path, sizeof path, "%stokenizer", LEROBOT);
    check_message(path, TEC_INVALID, "this is a tokenizer");
    for (int i = TEC_PATH_MISSING; i <= TEC_PATH_RECORDING; i++)
        CHECK(*tec_path_kind_text((enum tec_path_kind)i));
    box_remove(&b);
}

/* The word that tells a Lua file lies across two reads. */
TEST(words_across_reads_are_seen)
{
    struct box b;
    static char text[9000];
    box_make(&b);
    for (size_t at = 4075; at < 4110; at++) {
        memset(text, ' ', sizeof text - 1);
        memcpy(text + at, "return pipeline {}", 18);
        box_put(&b, "x", text);
        CHECK_INT(tec_path_kind(b.path), ==, TEC_PATH_PIPELINE);
    }
    box_remove(&b);
}

TEST(no_memory_is_reported)
{
    static const char *const paths[] = {"tests/golden/demo/episodes/checkpoint",
                                        PI "pi05_odd_lerobot/checkpoint"};
    for (int p = 0; p < 2; p++) {
        bool done = false;
        for (int64_t at = 1; at < 1000 && !done; at++) {
            struct tec_heap heap = {.fail_at = at};
            struct tec_error err = {0};
            struct tec_checkpoint *c;
            enum tec_status status = tec_checkpoint_open(&c, paths[p], &heap, &err);
            done = status == TEC_OK;
            CHECK(done || (status == TEC_NO_MEMORY && *err.message));
            tec_checkpoint_close(c);
            CHECK_INT(heap.live, ==, 0);
        }
        CHECK(done);
    }
}

TAP_MAIN
