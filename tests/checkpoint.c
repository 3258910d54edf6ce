/* checkpoint.c - checkpoint directories: layouts, tokenizers, assets, and what goes wrong. */
#include "base/store/checkpoint.h"
#include "base/store/kind.h"
#include "tests/box.h"

#define PI "tests/golden/pi/"

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
    char config[4096];
    snprintf(config, sizeof config, "%s/config.json", path);
    if (flag != FTW_D || strcmp(path + ftw->base, "checkpoint") != 0 || access(config, F_OK) != 0)
        return 0; /* parts that stand beside another checkpoint are none */
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
    static const char word[] = "return pipeline {}";
    box_make(&b);
    for (size_t at = 4075; at < 4110; at++) {
        memset(text, ' ', sizeof text - 1);
        for (size_t i = 0; word[i]; i++)
            text[at + i] = word[i];
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
