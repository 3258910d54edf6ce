/* Model descriptions: what would be read where nothing is, or silently computed otherwise, is
 * refused by name; sizes that no buffer was made for are loaded all the same. */
#include "graph/model/parse.h"
#include "graph/model/weights.h"
#include "tests/tap.h"

#include <string.h>

static struct tec_heap heap;
static struct tec_error err;

static struct tec_model *open_tiny(void)
{
    struct tec_model *model = NULL;
    const struct tec_model_choice choice = {
        .root = "pipelines/models", .arch = "pi05", .size = "tiny"};
    REQUIRE(tec_model_open(&model, &choice, &heap, &err) == TEC_OK);
    return model;
}

/* The object or list at "a.b.c" of a description. */
static json_t *at(json_t *json, const char *path)
{
    char key[32];
    while (json && *path) {
        size_t n = strcspn(path, ".");
        REQUIRE(n < sizeof key);
        memcpy(key, path, n);
        key[n] = '\0';
        json = json_object_get(json, key);
        path += n + (path[n] == '.');
    }
    return json;
}

/* The description with `path`.`key` replaced (value NULL: taken out) must be refused so. */
static void refused(const char *path, const char *key, json_t *value, const char *says)
{
    struct tec_model *model = open_tiny(), other = {.name = NULL};
    other.json = json_deep_copy(model->json);
    json_t *place = at(other.json, path);
    REQUIRE(place && json_object_get(place, key));
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

TEST(descriptions_that_lack_a_tensor_are_refused)
{
    refused("text.stack.tensors", "final", NULL, "text.stack.tensors: lacks 'final'");
    refused("action.stack.tensors", "final", NULL, "action.stack.tensors: lacks 'final'");
    refused("vision", "patch_embed", json_false(), "lacks patch_embed");
    refused("vision", "projector", json_false(), "lacks patch_embed or projector");
    refused("text", "embed", json_array(), "text.embed: must name a tensor");
}

TEST(rotations_that_one_table_cannot_hold_are_refused)
{
    refused("action.stack", "theta", json_real(5000.0), "action.stack: theta 5000");
    refused("vision.stack", "theta", json_real(10000.0), "vision.stack: theta 10000");
}

/* A bias or a norm may be wider than sixteen rows of any matrix read before it. */
TEST(vectors_wider_than_the_read_buffer_are_loaded)
{
    enum { WIDE = 200000 };
    struct tec_model *model = open_tiny();
    struct tec_vision *v = &model->vision;
    struct tec_tower *t = &v->towers[0];
    struct tec_device *device = NULL;
    struct tec_weights *w = NULL;
    const struct tec_device_options d = {.kind = "cpu", .threads = 1, .tier = tec_tier_best()};
    v->image_size = 2;
    v->patch = 1;
    v->tokens = 4;
    t->stack.layers = 1;
    t->stack.width = t->patch_embed.rows = v->projector[0].cols = WIDE;
    t->stack.heads = t->stack.kv_heads = 1;
    t->stack.head_dim = t->stack.mlp = 16;
    t->patch_embed.cols = 3;
    REQUIRE(tec_device_open(&device, &d, &heap, &err) == TEC_OK);
    const struct tec_weights_options o = {
        .model = model, .source = {.seed = 3}, .device = device, .language = true};
    REQUIRE(tec_weights_load(&w, &o, &heap, &err) == TEC_OK);
    CHECK(w->towers[0].patch.bias[WIDE - 1] != 0.0F);
    tec_weights_close(w);
    tec_device_close(device);
    tec_model_close(model);
    CHECK_INT(heap.live, ==, 0);
}

TAP_MAIN
