/* model.c - tests of model descriptions: one that would read outside its tensors, or compute
 * something else silently, is refused by name; sizes that no buffer was made for still load. */
#include "graph/model/parse.h"
#include "graph/model/program.h"
#include "graph/model/weights.h"
#include "tests/allocations.h"
#include "tests/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct tec_heap heap;
static struct tec_error err;

static struct tec_model *open_size(const char *arch, const char *size)
{
    struct tec_model *model = NULL;
    const struct tec_model_choice choice = {.root = "pipelines/models", .arch = arch, .size = size};
    REQUIRE(tec_model_open(&model, &choice, &heap, &err) == TEC_OK);
    return model;
}

static struct tec_model *open_tiny(void)
{
    return open_size("pi05", "tiny");
}

/* Find the object or list at "a.0.c" of a description. */
static json_t *at(json_t *json, const char *path)
{
    char key[32];
    while (json && *path) {
        size_t n = strcspn(path, ".");
        REQUIRE(n < sizeof key);
        memcpy(key, path, n);
        key[n] = '\0';
        json = json_is_array(json) ? json_array_get(json, strtoul(key, NULL, 10))
                                   : json_object_get(json, key);
        path += n + (path[n] == '.');
    }
    return json;
}

/* What tec_model_parse reads of a model. */
static void copy(struct tec_model *out, const struct tec_model *model)
{
    out->program = model->program;
    out->text.program = model->text.program;
    for (int i = 0; i < TEC_MAX_TOWERS; i++)
        out->vision.towers[i].program = model->vision.towers[i].program;
    out->vision.project = model->vision.project;
    out->head.program = model->head.program;
    out->json = json_deep_copy(model->json);
}

/* The description with `path`.`key` replaced (value NULL: removed) must be refused with this
 * message. */
static void refused_of(const char *arch, const char *path, const char *key, json_t *value,
                       const char *says)
{
    struct tec_model *model = open_size(arch, "tiny"), other = {.name = NULL};
    copy(&other, model);
    json_t *place = at(other.json, path);
    REQUIRE(place);
    if (value)
        json_object_set_new(place, key, value);
    else
        json_object_del(place, key);
    CHECK_INT(tec_model_parse(&other, &err), ==, TEC_MALFORMED);
    if (!strstr(err.message, says))
        fprintf(stderr, "# %s\n", err.message);
    CHECK(strstr(err.message, says) != NULL);
    json_decref(other.json);
    tec_model_close(model);
    CHECK_INT(heap.live, ==, 0);
}

static void refused(const char *path, const char *key, json_t *value, const char *says)
{
    refused_of("pi05", path, key, value, says);
}

TEST(descriptions_that_lack_a_tensor_are_refused)
{
    refused("text", "embed", json_array(), "text.embed: must name a tensor");
}

TEST(a_model_of_text_alone_has_nothing_else)
{
    refused_of("qwen2", "", "slots", json_pack("[s]", "x"), "a model of text alone");
    refused_of("qwen2", "", "vision", json_object(), "a model of text alone");
    refused_of("qwen2", "", "tokens", json_object(), "a model of text alone");
    refused("", "slots", NULL, "others have both slots and vision");
    refused("", "vision", NULL, "a flow stands beside text and vision");
    refused_of("qwen2", "text", "ends", json_pack("[i]", 512), "must be tokens 0 .. 511");
    refused_of("qwen2", "text", "ends", json_pack("[s]", "x"), "must be tokens 0 .. 511");
    refused_of("qwen2", "text", "penalty", json_real(0.0), "text.penalty: must be above 0");
    refused_of("qwen2", "text", "cap", json_real(-2.0), "text.cap: must not be negative");
}

TEST(functions_say_all_that_a_model_computes)
{
    refused_of("act", "", "text", json_object(), "must have text, or the functions prefill and");
    refused_of("act", "", "vision", json_object(), "it has no vision, tokens");
    refused("", "text", NULL, "must have text, or the functions prefill and action");
}

/* A bias or a norm may be wider than sixteen rows of any matrix that was read before it. */
TEST(vectors_wider_than_the_read_buffer_are_loaded)
{
    enum { WIDE = 200000 };
    struct tec_model *model = open_tiny();
    struct tec_tower *t = &model->vision.towers[0];
    struct tec_device *device = NULL;
    struct tec_weights *w = NULL;
    const struct tec_device_options d = {.kind = "cpu", .threads = 1, .tier = tec_tier_best()};
    t->program->n = 2; /* its pixels, and patches of one pixel */
    t->program->calls[1].cols = WIDE;
    t->program->calls[1].side = 1;
    model->vision.project->n = 1; /* its rows alone */
    REQUIRE(tec_device_open(&device, &d, &heap, &err) == TEC_OK);
    const struct tec_weights_options o = {
        .model = model, .source = {.seed = 3}, .device = device, .language = true};
    REQUIRE(tec_weights_load(&w, &o, &heap, &err) == TEC_OK);
    CHECK(w->towers[0][1].matrix.bias[WIDE - 1] != 0.0F);
    tec_weights_close(w);
    tec_device_close(device);
    tec_model_close(model);
    CHECK_INT(heap.live, ==, 0);
}

TEST(pictures_of_several_sizes_are_whole_squares_of_patches)
{
    static const char arch[] = "groot_n16"; /* squares of 2 x 2 patches of 7 pixels, up to 28 */
    refused_of(arch, "vision", "sizes", json_array(), "must be 1, one a slot");
    refused_of(arch, "vision", "sizes", json_pack("[[i, i]]", 28, 21), "28 x 21 must be multiples");
    refused_of(arch, "vision", "sizes", json_pack("[[i, i]]", 42, 14), "up to image_size 28");
    refused_of(arch, "vision", "sizes", json_pack("[[i, i]]", 0, 14), "0 x 14 must be");
    refused_of(arch, "vision", "sizes", json_pack("[[i, i]]", -14, 14), "-14 x 14 must be");
    refused_of("openvla", "vision", "sizes", json_pack("[[i, i]]", 28, 28), "need text.picture");
}

/* A grid of the table's size keeps it; a smaller one weighs by a triangle, edges by what is there.
 */
TEST(positions_are_interpolated)
{
    static const float table[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    float out[16];
    struct tec_grid_table t = {.side = 4, .width = 1, .at = table};
    tec_model_grid_resize(&t, (struct tec_picture_size){4, 4}, out);
    for (int i = 0; i < 16; i++)
        CHECK(out[i] == table[i]);
    /* Of 4 to 2: entries 0, 1, 2 weigh 3, 3, 1 of 7, mirrored at the other end. */
    tec_model_grid_resize(&t, (struct tec_picture_size){2, 2}, out);
    CHECK(fabs((double)out[0] - 25.0 / 7.0) < 1e-6);
    CHECK(fabs((double)out[3] - (15.0 - 25.0 / 7.0)) < 1e-6);
    /* Of corners both ends stay; the middle of 3 lies between entries 1 and 2; one patch is the
     * first. */
    t.corners = true;
    tec_model_grid_resize(&t, (struct tec_picture_size){4, 4}, out);
    for (int i = 0; i < 16; i++)
        CHECK(out[i] == table[i]);
    tec_model_grid_resize(&t, (struct tec_picture_size){3, 2}, out);
    CHECK(out[0] == 0.0F && out[1] == 3.0F && out[2] == 6.0F && out[4] == 12.0F && out[5] == 15.0F);
    tec_model_grid_resize(&t, (struct tec_picture_size){1, 1}, out);
    CHECK(out[0] == 0.0F);
}

TEST(towers_that_do_not_fit_together_are_refused)
{
    static const char arch[] = "openvla";
    refused_of(arch, "vision", "towers", json_array(), "towers must be 1 .. 2");
    refused_of(arch, "vision", "towers", json_pack("[{}, {}, {}]"), "towers must be 1 .. 2");
    refused_of(arch, "vision.towers.0", "patch", json_integer(7), "vision.towers: ");
    refused_of(arch, "vision.towers.0", "mean", json_pack("[f, f]", 0.5, 0.5),
               "mean must be three");
    refused_of(arch, "vision.towers.0", "std", json_pack("[f, f, i]", 0.5, 0.5, 0),
               "std must be three positive");
    refused_of(arch, "vision.towers.0", "std", json_pack("[f, f, f]", 0.5, 0.5, 1e300),
               "std must be three");
    refused_of(arch, "vision", "shuffle", json_integer(2), "vision: ");
}

TEST(pictures_that_do_not_fit_a_prefix_are_refused)
{
    static const char arch[] = "smolvla";
    refused_of(arch, "vision", "pictures", json_string("f16"), "'f16' is not u8 or f32");
    refused_of(arch, "vision", "around", json_pack("{s:[], s:[]}", "before", "behind"),
               "must have tokens before or behind");
    refused_of(arch, "vision", "around", json_pack("{s:[i], s:[]}", "before", 420, "behind"),
               "before must be tokens 0 .. 419");
    refused_of(arch, "vision", "around",
               json_pack("{s:[i], s:[], s:i}", "before", 1, "behind", "blanks", 4),
               "blanks of 0 .. 3, is 4");
}

TEST(actions_that_do_not_fit_their_text_are_refused)
{
    static const char arch[] = "smolvla";
    refused_of(arch, "text", "mask", json_string("causal_all"),
               "prompt: a row behind it needs a text with mask bidir");
    refused_of(arch, "", "action", json_object(), "action");
}

TEST(a_mask_is_one_of_three)
{
    refused_of("openvla", "text", "mask", json_string("none"), "'none' is not bidir, causal");
}

TEST(actions_as_tokens_are_checked)
{
    static const char arch[] = "openvla";
    refused_of(arch, "", "tokens", NULL, "must have flow, or tokens, chunk or both");
    refused_of(arch, "tokens", "vocab", json_integer(769), "vocab must be 1 .. 768");
    refused_of(arch, "tokens", "vocab", json_integer(0), "vocab must be 1 .. 768");
    refused_of(arch, "tokens", "bins", json_integer(1), "bins must be 2 ..");
    refused_of(arch, "tokens", "bins", json_integer(705), "bins must be 2 .. 704");
    refused_of(arch, "tokens", "most", json_integer(0), "must be 1 .. 1024");
    refused_of(arch, "tokens", "count", json_integer(8), "an action of 8 tokens");
    refused_of(arch, "tokens", "count", json_integer(-1), "an action of -1 tokens");
}

/* The head that stands beside the tiny case. */
static void refused_chunk(const char *path, const char *key, json_t *value, const char *says)
{
    struct tec_checkpoint *c = NULL;
    struct tec_model *model = NULL, other = {.name = NULL};
    REQUIRE(tec_checkpoint_open(&c, "tests/golden/openvla/tiny/checkpoint", &heap, &err) == TEC_OK);
    const struct tec_model_choice choice = {.root = "pipelines/models",
                                            .checkpoint = c,
                                            .beside = "tests/golden/openvla/oft/checkpoint"};
    REQUIRE(tec_model_open(&model, &choice, &heap, &err) == TEC_OK);
    CHECK(tec_model_heads(model) && model->program->alone && model->head.state == 8);
    copy(&other, model);
    json_object_set_new(at(other.json, path), key, value);
    CHECK_INT(tec_model_parse(&other, &err), ==, TEC_MALFORMED);
    if (!strstr(err.message, says))
        fprintf(stderr, "# %s\n", err.message);
    CHECK(strstr(err.message, says) != NULL);
    json_decref(other.json);
    tec_model_close(model);
    tec_checkpoint_close(c);
    CHECK_INT(heap.live, ==, 0);
}

TEST(chunks_that_no_forward_makes_are_refused)
{
    refused_chunk("chunk", "horizon", json_integer(0), "4096 rows at most");
    refused_chunk("chunk", "horizon", json_integer(2000000000), "4096 rows at most");
    refused_chunk("chunk", "dim", json_integer(1000), "4096 rows at most");
    refused_chunk("chunk", "horizon", json_integer(3), "hidden: 56 rows of 64 columns; a chunk");
    refused_chunk("", "ignored", json_string("x"), "ignored: must be a list of names");
    refused_chunk("chunk", "state", json_object(), "chunk: no field here is named state");
    refused_chunk("chunk", "horizon", json_string("3"),
                  "chunk: a field is of another type: Expected integer, got string");
    refused_chunk("text", "mask", json_string("causal_all"), "needs mask bidir");
    refused_chunk("", "tokens", json_pack("{s:i, s:i, s:i}", "most", 7, "vocab", 700, "bins", 256),
                  "or stand beside tokens");
}

/* Every tensor of the published checkpoint must be used with its shape, or ignored. */
static json_t *published;
static int64_t parameters;
static int n_used;

static int64_t elements(const json_t *shape)
{
    int64_t n = 1;
    for (size_t i = 0; i < json_array_size(shape); i++)
        n *= json_integer_value(json_array_get(shape, i));
    return n;
}

static enum tec_status cross_out(void *user, const struct tec_expected *e, struct tec_error *why)
{
    (void)user;
    (void)why;
    if (e->rank == 0)
        return TEC_OK;
    const json_t *shape = json_array_get(json_object_get(published, e->names[0]), 0);
    int64_t is[4] = {0};
    int rank = (int)json_array_size(shape);
    for (int i = 0; i < rank && i < 4; i++)
        is[i] = json_integer_value(json_array_get(shape, (size_t)i));
    if (!shape || rank > 4 || !tec_expected_shape(e, rank, is))
        fprintf(stderr, "# '%s' is not there, or of another shape\n", e->names[0]);
    CHECK(shape && rank <= 4 && tec_expected_shape(e, rank, is));
    parameters += elements(shape);
    n_used++;
    json_object_del(published, e->names[0]);
    return TEC_OK;
}

/* `published` is what the model of a full size reads and ignores, and nothing else. */
static void check_published(const char *arch, int tensors, int64_t all, int64_t ignored)
{
    struct tec_model *model = open_size(arch, "full");
    CHECK_INT(json_object_size(published), ==, tensors);
    parameters = n_used = 0;
    REQUIRE(tec_model_visit(model, cross_out, NULL, &err) == TEC_OK);
    CHECK_INT(parameters, ==, all - ignored);
    const char *name;
    json_t *value;
    json_object_foreach(published, name, value)
    {
        if (!tec_model_ignores(model, name))
            fprintf(stderr, "# '%s' is not known\n", name);
        CHECK(tec_model_ignores(model, name));
        parameters += elements(json_array_get(value, 0));
        n_used++;
    }
    CHECK_INT(n_used, ==, tensors);
    CHECK_INT(parameters, ==, all);
    json_decref(published);
    tec_model_close(model);
}

TEST(every_tensor_of_the_published_checkpoint_is_known)
{
    json_t *file = json_load_file("tests/golden/openvla/tensor_names/openvla-7b.json",
                                  JSON_REJECT_DUPLICATES, NULL);
    REQUIRE(file);
    published = json_deep_copy(json_object_get(file, "shapes"));
    check_published("openvla", 982, INT64_C(7541237184), 43080480);
    json_decref(file);
    CHECK_INT(heap.live, ==, 0);
}

/* Its wrapper puts "model." in front of each name. */
TEST(every_tensor_of_a_net_with_queries_is_known)
{
    json_t *file =
        json_load_file("tests/golden/act/tensor_names_default.json", JSON_REJECT_DUPLICATES, NULL);
    const char *name;
    json_t *value;
    REQUIRE(file);
    published = json_object();
    json_object_foreach(file, name, value)
    {
        REQUIRE(strncmp(name, "model.", 6) == 0);
        json_object_set_new(published, name + 6, json_pack("[O]", json_array_get(value, 1)));
    }
    check_published("act", 234, 51685006, 17450048);
    json_decref(file);
    CHECK_INT(heap.live, ==, 0);
}

/* Make the description of a checkpoint whose config.json, that of the tiny case, is changed. */
static enum tec_status described(const char *path, const char *key, json_t *value)
{
    struct tec_checkpoint *c = NULL;
    struct tec_model *model = NULL;
    REQUIRE(tec_checkpoint_open(&c, "tests/golden/openvla/tiny/checkpoint", &heap, &err) == TEC_OK);
    json_t *place = at(c->config, path);
    REQUIRE(place);
    if (value)
        json_object_set_new(place, key, value);
    const struct tec_model_choice choice = {.root = "pipelines/models", .checkpoint = c};
    enum tec_status status = tec_model_open(&model, &choice, &heap, &err);
    tec_model_close(model);
    tec_checkpoint_close(c);
    CHECK_INT(heap.live, ==, 0);
    return status;
}

TEST(hostile_configurations_are_refused)
{
    static const struct {
        const char *path, *key, *value;
    } bad[] = {
        {"text_config", "num_attention_heads", "0"},
        {"text_config", "num_attention_heads", "-4"},
        {"text_config", "num_attention_heads", "3"},
        {"text_config", "num_attention_heads", "1e300"},
        {"text_config", "num_attention_heads", "\"4\""},
        {"text_config", "num_key_value_heads", "3"},
        {"text_config", "hidden_size", "9223372036854775807"},
        {"text_config", "hidden_size", "64.5"},
        {"text_config", "num_hidden_layers", "1000000"},
        {"text_config", "intermediate_size", "[]"},
        {"text_config", "vocab_size", "63"},
        {"text_config", "vocab_size", "0"},
        {"text_config", "rope_theta", "\"x\""},
        {"text_config", "rope_theta", "1"},
        {"text_config", "rope_scaling", "{\"type\": \"linear\"}"},
        {"text_config", "rms_norm_eps", "-1"},
        {"text_config", "hidden_act", "\"gelu\""},
        {"", "text_config", "7"},
        {"", "image_sizes", "[0, 0]"},
        {"", "image_sizes", "[56, 70]"},
        {"", "image_sizes", "[1048576, 1048576]"},
        {"", "timm_model_ids", "[\"a\", \"b\"]"},
        {"", "timm_model_ids", "[7, {}]"},
        {"", "timm_model_args", "[{\"num_heads\": 0}, {}]"},
        {"", "timm_model_args", "[{\"num_heads\": 7}, {}]"},
        {"", "timm_model_args", "[{\"depth\": 1}, {}]"},
        {"", "timm_model_args", "[{\"mlp_ratio\": 1e308}, {}]"},
        {"", "timm_model_args", "[{\"mlp_ratio\": 0.0001}, {}]"},
        {"", "timm_model_args", "3"},
        {"", "timm_override_act_layers", "[\"quick_gelu\", null]"},
        {"", "n_action_bins", "0"},
        {"", "n_action_bins", "1000000"},
        {"", "pad_to_multiple_of", "768"},
    };
    CHECK(described("", "model_type", json_string("openvla")) == TEC_OK);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        json_t *value = json_loads(bad[i].value, JSON_DECODE_ANY, NULL);
        REQUIRE(value);
        enum tec_status status = described(bad[i].path, bad[i].key, value);
        if (status == TEC_OK)
            fprintf(stderr, "# %s = %s was taken\n", bad[i].key, bad[i].value);
        CHECK(status != TEC_OK);
    }
}

/* Calls of the process's allocator in the opening of a model, jansson's too; call `fail_at` of them
 * fails, 0: none. */
static long open_calls(struct tec_checkpoint *c, bool bare, long fail_at, enum tec_status *status)
{
    const struct tec_model_choice choice = {
        .root = "pipelines/models", .arch = "smolvla", .checkpoint = c};
    struct tec_model *model = NULL;
    long begin = atomic_load(&allocations->calls);
    err = (struct tec_error){TEC_OK, ""};
    c->bare = bare;
    allocations->fail_at = fail_at ? begin + fail_at : 0;
    *status = tec_model_open(&model, &choice, &heap, &err);
    allocations->fail_at = 0;
    tec_model_close(model);
    return atomic_load(&allocations->calls) - begin;
}

/* Of a folder that needs another one, which is not there: that is known after as many calls as it
 * takes to refuse one whose weights are read. */
TEST(no_memory_for_what_is_missing_is_said)
{
    enum { AROUND = 40 };
    struct tec_checkpoint *c = NULL;
    enum tec_status status;
    int refused = 0;
    REQUIRE(tec_checkpoint_open(&c, "pipelines/checkpoints/metaworld_smolvla", &heap, &err) ==
            TEC_OK);
    json_object_set_new(c->config, "vlm_model_name", json_string("nobody/has_it"));
    long known = open_calls(c, false, 0, &status);
    CHECK_INT(status, ==, TEC_NOT_FOUND);
    for (long n = known - AROUND; n < known + AROUND; n++) {
        (void)open_calls(c, true, n, &status);
        refused += status == TEC_NO_MEMORY;
        if (status == TEC_NO_MEMORY && !strstr(err.message, "memory"))
            fprintf(stderr, "# %s\n", err.message);
        CHECK(status != TEC_NO_MEMORY || strstr(err.message, "memory"));
    }
    CHECK(refused > AROUND / 2 || !ALLOCATIONS_SEEN);
    tec_checkpoint_close(c);
    CHECK_INT(heap.live, ==, 0);
}

TAP_MAIN
