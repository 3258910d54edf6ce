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

#define VLA "tests/golden/openvla/tiny/checkpoint/"

/* A Hugging Face folder with real tensors and files of our own. */
static void box_hf(struct box *b, const char *config)
{
    static const char *const files[] = {
        "model.safetensors.index.json", "model-00001-of-00003.safetensors",
        "model-00002-of-00003.safetensors", "model-00003-of-00003.safetensors"};
    char file[200];
    box_make(b);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        snprintf(file, sizeof file, VLA "%s", files[i]);
        box_link(b, files[i], file);
    }
    box_put(b, "config.json", config);
}

/* Statistics of the action under a key: the message of the failure, "" when there is none. */
static const char *dataset_says(const char *dir, const char *key, enum tec_norm_mode mode,
                                enum tec_status want, struct tec_norm *norm)
{
    static struct tec_error err;
    static struct tec_heap heap;
    static double low;
    struct tec_arena arena;
    struct tec_checkpoint *c = NULL;
    tec_arena_init(&arena, &heap);
    err.message[0] = '\0';
    enum tec_status status = tec_checkpoint_open(&c, dir, &heap, &err);
    if (status == TEC_OK)
        status = tec_checkpoint_norm_dataset(c, norm, key, "action", mode, 1e-8, &arena, &err);
    if (status == TEC_OK) {
        low = norm->q01 ? norm->q01[0] : 0.0;
        norm->q01 = &low;
    }
    CHECK_INT(status, ==, want);
    tec_checkpoint_close(c);
    tec_arena_finish(&arena);
    CHECK_INT(heap.live, ==, 0);
    return err.message;
}

static void check_dataset(const struct box *b, const char *key, enum tec_norm_mode mode,
                          enum tec_status want, const char *text, struct tec_norm *norm)
{
    const char *said = dataset_says(b->dir, key, mode, want, norm);
    bool right = *text ? strstr(said, text) != NULL : !*said;
    if (!tap_check(right, text, __FILE__, __LINE__))
        fprintf(stderr, "#   message: %s\n", said);
}

TEST(datasets_are_chosen_by_key)
{
    struct box b;
    struct tec_norm norm = {0};
    box_hf(&b, "{\"model_type\": \"x\"}");
    check_dataset(&b, NULL, TEC_NORM_QUANTILE, TEC_NOT_FOUND, "no statistics to un-normalise",
                  &norm);
    check_dataset(&b, "a", TEC_NORM_QUANTILE, TEC_NOT_FOUND, "neither norm_stats in config.json",
                  &norm);
    box_put(&b, "config.json",
            "{\"model_type\": \"x\", \"norm_stats\": {\"b\": {\"action\": {\"q01\": [1], "
            "\"q99\": [2]}}, \"a\": {}}}");
    check_dataset(&b, NULL, TEC_NORM_QUANTILE, TEC_INVALID,
                  "config.json: norm_stats: choose one of the keys a, b", &norm);
    check_dataset(&b, "c", TEC_NORM_QUANTILE, TEC_NOT_FOUND, "no key 'c'; there are a, b", &norm);
    check_dataset(&b, "a", TEC_NORM_QUANTILE, TEC_NOT_FOUND, "norm_stats: a.action: there is none",
                  &norm);
    check_dataset(&b, "b", TEC_NORM_QUANTILE, TEC_OK, "", &norm);
    CHECK(norm.n == 1 && *norm.q01 == 1.0 && !norm.mask && norm.eps == 1e-8);
    CHECK(norm.convention == TEC_NORM_DATASET);
    check_dataset(&b, "b", TEC_NORM_MIN_MAX, TEC_MALFORMED, "b.action: min_max normalisation needs",
                  &norm);
    check_dataset(&b, "b", TEC_NORM_MEAN_STD, TEC_UNSUPPORTED, "quantile or min_max", &norm);
    /* The file of a fine-tuned checkpoint replaces them. */
    box_put(&b, "dataset_statistics.json",
            "{\"new\": {\"action\": {\"q01\": [5, 0], \"q99\": [9, 1], \"mask\": [true, false]}}}");
    check_dataset(&b, NULL, TEC_NORM_QUANTILE, TEC_OK, "", &norm);
    CHECK(norm.n == 2 && *norm.q01 == 5.0 && norm.mask);
    check_dataset(&b, "b", TEC_NORM_QUANTILE, TEC_NOT_FOUND,
                  "dataset_statistics.json: no key 'b'; there are new", &norm);
    box_put(&b, "dataset_statistics.json", "{}");
    check_dataset(&b, NULL, TEC_NORM_QUANTILE, TEC_NOT_FOUND, "no statistics", &norm);
    box_put(&b, "dataset_statistics.json", "[]");
    check_dataset(&b, NULL, TEC_NORM_QUANTILE, TEC_MALFORMED, "dataset_statistics.json: ", &norm);
    box_remove(&b);
}

TEST(broken_datasets_are_located)
{
    static const struct {
        const char *action, *says;
    } bad[] = {
        {"{\"q01\": [1, 2], \"q99\": [3]}", "k.action: q99 has 1 values, the ones before it 2"},
        {"{\"q01\": [NaN], \"q99\": [3]}", "dataset_statistics.json: line 1, column"},
        {"{\"q01\": [1], \"q99\": [Infinity]}", "not a JSON number"},
        {"{\"q01\": [1], \"q99\": [-Infinity]}", "dataset_statistics.json: line 1, column"},
        {"{\"q01\": [1], \"q99\": [0]}", "q01 and q99 of value 0 are 1 and 0"},
        {"{\"q01\": [1], \"q99\": [3], \"mask\": [true, true]}",
         "mask is not a list of 1 booleans"},
        {"{\"q01\": [1], \"q99\": [3], \"mask\": [1]}", "mask[0] is neither true nor false"},
        {"{\"q01\": [1], \"q99\": [3], \"mask\": true}", "mask is not a list of 1 booleans"},
        {"{\"mean\": [1], \"std\": [3]}", "quantile normalisation needs q01 and q99"},
        {"7", "k.action: is not an object"},
    };
    struct box b;
    struct tec_norm norm = {0};
    box_hf(&b, "{\"model_type\": \"x\"}");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char text[300];
        snprintf(text, sizeof text, "{\"k\": {\"action\": %s}}", bad[i].action);
        box_put(&b, "dataset_statistics.json", text);
        check_dataset(&b, "k", TEC_NORM_QUANTILE, TEC_MALFORMED, bad[i].says, &norm);
    }
    box_remove(&b);
}

/* A preprocessor_config.json with one field replaced; the failure's message. */
static const char *processor_says(const char *more, enum tec_status want, struct tec_processor *p)
{
    static struct tec_error err;
    json_error_t where;
    json_t *json =
        json_loads("{\"image_resize_strategy\": \"letterbox\","
                   "\"input_sizes\": [[3, 8, 8], [3, 8, 8]],"
                   "\"means\": [[0.485, 0.456, 0.406], [0.1, 0.2, 0.3]],"
                   "\"tvf_normalize_params\": [{\"mean\": [1, 2, 3], \"std\": [1, 1, 1]},"
                   "{\"mean\": [4, 5, 6], \"std\": [2, 2, 2]}],"
                   "\"tvf_letterbox_fill\": null}",
                   0, &where);
    json_t *other = json_loads(more, 0, &where);
    REQUIRE(json && other && json_object_update(json, other) == 0);
    err.message[0] = '\0';
    CHECK_INT(tec_processor_parse(p, json, "p.json", &err), ==, want);
    json_decref(other);
    json_decref(json);
    return err.message;
}

TEST(processors_say_how_pictures_are_made)
{
    static const struct {
        enum tec_status status;
        const char *more, *says;
    } bad[] = {
        {TEC_UNSUPPORTED, "{\"image_resize_strategy\": \"warp\"}",
         "'warp'; known are resize-naive, letterbox and resize-crop"},
        {TEC_MALFORMED, "{\"image_resize_strategy\": 1}", "image_resize_strategy is 'missing'"},
        {TEC_MALFORMED, "{\"input_sizes\": []}", "of 1 to 4 towers"},
        {TEC_MALFORMED, "{\"input_sizes\": [[3, 8]]}", "input_sizes[0] is not [3, height, width]"},
        {TEC_MALFORMED, "{\"input_sizes\": [[3, 0, 8]]}", "input_sizes[0]"},
        {TEC_MALFORMED, "{\"input_sizes\": [[3, 8, 8]]}", "has 2 entries for 1 towers"},
        {TEC_UNSUPPORTED, "{\"input_sizes\": [[3, 8, 8], [3, 4, 4]]}", "differ (8 x 8, 4 x 4)"},
        {TEC_UNSUPPORTED, "{\"input_sizes\": [[3, 8, 4], [3, 8, 4]]}", "it makes squares"},
        {TEC_MALFORMED, "{\"tvf_normalize_params\": [{\"mean\": [1, 2], \"std\": [1, 1, 1]}, {}]}",
         "the mean of tower 0"},
        {TEC_MALFORMED,
         "{\"tvf_normalize_params\": [{\"mean\": [1, 2, 3], \"std\": [1, 0, 1]}, {}]}",
         "the std of tower 0 is not a list of 3 numbers above 0"},
        {TEC_MALFORMED, "{\"tvf_letterbox_fill\": [0, 0, 256]}", "256 of its letterbox is no byte"},
        {TEC_UNSUPPORTED, "{\"interpolations\": [\"bicubic\", \"lanczos\"]}",
         "interpolations[1] is 'lanczos'"},
    };
    struct tec_processor p;
    CHECK_STR(processor_says("{}", TEC_OK, &p), "");
    CHECK(p.kind == TEC_RESHAPE_BOX && p.height == 8 && p.width == 8 && p.n_towers == 2);
    CHECK(p.mean[1][2] == 6.0 && p.deviation[1][0] == 2.0);       /* what was used, not `means` */
    CHECK(p.fill[0] == 25 && p.fill[1] == 51 && p.fill[2] == 76); /* of the last of `means` */
    CHECK_STR(processor_says("{\"tvf_letterbox_fill\": [1, 2, 3]}", TEC_OK, &p), "");
    CHECK(p.fill[2] == 3);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const char *said = processor_says(bad[i].more, bad[i].status, &p);
        if (!tap_check(strstr(said, bad[i].says) != NULL, bad[i].says, __FILE__, __LINE__))
            fprintf(stderr, "#   message: %s\n", said);
    }
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
    check_message(b.dir, TEC_IO, "model.safetensors: is a directory, not a regular file");
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

TEST(parts_are_joined_by_their_plain_names)
{
    static const char *const bad[] = {"",
                                      ".",
                                      "..",
                                      "../head.safetensors",
                                      "a/b.safetensors",
                                      "head",
                                      ".safetensors",
                                      "a\\b.safetensors"};
    const char *dir = "tests/golden/openvla/oft/checkpoint";
    struct tec_heap heap = {0};
    struct tec_error err = {0};
    struct tec_checkpoint *c;
    char hash[TEC_HASH_TEXT];
    bool joined = true;
    REQUIRE(tec_checkpoint_open(&c, "tests/golden/openvla/tiny/checkpoint", &heap, &err) == TEC_OK);
    CHECK(!tec_checkpoint_tensor(c, "action_head.model.fc1.weight"));
    memcpy(hash, c->hash, sizeof hash);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK_INT(tec_checkpoint_join(c, dir, bad[i], &joined, &err), ==, TEC_MALFORMED);
        CHECK(!joined && strstr(err.message, "is not a plain file name"));
    }
    CHECK(tec_checkpoint_join(c, dir, "none.safetensors", &joined, &err) == TEC_OK && !joined);
    CHECK_STR(c->hash, hash);
    CHECK(tec_checkpoint_join(c, dir, "action_head.safetensors", &joined, &err) == TEC_OK);
    CHECK(joined && tec_checkpoint_tensor(c, "action_head.model.fc1.weight"));
    CHECK(strcmp(c->hash, hash) != 0);
    CHECK(tec_checkpoint_join(c, dir, "action_head.safetensors", &joined, &err) == TEC_OK);
    CHECK(!joined);
    tec_checkpoint_close(c);
    CHECK_INT(heap.live, ==, 0);
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
    for (int i = TEC_PATH_MISSING; i <= TEC_PATH_ORBAX; i++)
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
