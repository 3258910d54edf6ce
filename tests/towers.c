/* towers.c - tests of towers with rows before their patches, and of chunks made in one forward.
 *
 * Their bytes depend neither on how many pictures a plan has room for, nor on room for text, nor on
 * lanes; the other picture, the state and each token change them. */
#include "graph/run/launch/launch.h"
#include "tests/tap.h"

#include <string.h>

enum { SIDE = 56, TEXT = 9, CHUNK = 8 * 7, PIXELS = SIDE * SIDE * 3 };

struct shape {
    int pictures, text, threads; /* room for, room for, lanes */
};

struct input {
    int pictures, ids[TEXT];
    float state[8];
    uint8_t *picture[2];
};

static struct tec_heap heap;
static struct tec_error err;
static uint8_t pixels[2][PIXELS];

static struct input input_of(int pictures)
{
    struct input in = {.pictures = pictures, .picture = {pixels[0], pixels[1]}};
    for (int p = 0; p < 2; p++)
        for (int i = 0; i < PIXELS; i++)
            pixels[p][i] = (uint8_t)(i * (7 + 4 * p) % 251);
    for (int i = 0; i < TEXT; i++)
        in.ids[i] = i ? 3 + 61 * i : 1;
    for (int i = 0; i < 8; i++)
        in.state[i] = 0.1F * (float)(i - 4);
    return in;
}

static void run(const char *arch, const char *dtype, struct shape shape, const struct input *in,
                float chunk[CHUNK])
{
    struct tec_model *model = NULL;
    struct tec_device *device = NULL;
    struct tec_weights *weights = NULL;
    struct tec_plan *plan = NULL;
    const struct tec_model_choice choice = {
        .root = "pipelines/models", .arch = arch, .size = "tiny"};
    const struct tec_device_options d = {
        .kind = "cpu", .threads = shape.threads, .tier = tec_tier_best()};
    REQUIRE(tec_model_open(&model, &choice, &heap, &err) == TEC_OK);
    REQUIRE(model->flow.horizon * model->flow.dim == CHUNK && model->vision.image_size == SIDE);
    REQUIRE(tec_device_open(&device, &d, &heap, &err) == TEC_OK);
    const struct tec_weights_options w = {.model = model,
                                          .source = {.seed = 5},
                                          .device = device,
                                          .bf16 = strcmp(dtype, "bf16") == 0,
                                          .language = true};
    REQUIRE(tec_weights_load(&weights, &w, &heap, &err) == TEC_OK);
    const struct tec_plan_spec spec = {.frame_tokens = shape.pictures * model->vision.tokens +
                                                       shape.text + tec_head_rows(model),
                                       .text_tokens = shape.text,
                                       .pictures = shape.pictures,
                                       .n_actions = 1,
                                       .actions = {{.steps = 1}}};
    const struct tec_plan_inputs inputs = {
        .spec = &spec, .model = model, .weights = weights, .source = {.seed = 5}, .device = device};
    REQUIRE(tec_plan_create(&plan, &inputs, &heap, &err) == TEC_OK);
    const struct tec_prefix_input o = {.n_pictures = in->pictures,
                                       .picture = {in->picture[0], in->picture[1]},
                                       .n_text = TEXT,
                                       .ids = in->ids};
    REQUIRE(tec_prefix_check(plan, &o, &err) == TEC_OK);
    struct tec_replay replay = {0};
    const struct tec_action_inputs a = {.state = in->state};
    tec_launch_prefix(plan, &plan->parts[0], tec_kv_pool_take(&plan->prefixes), &o, &a, &replay);
    tec_launch_actions(plan, &plan->parts[0], chunk);
    tec_plan_destroy(plan);
    tec_weights_close(weights);
    tec_device_close(device);
    tec_model_close(model);
    CHECK_INT(heap.live, ==, 0);
}

static void same_bytes(const char *arch, const char *dtype)
{
    static const struct shape others[] = {{2, TEXT, 1}, {1, 40, 1}, {2, 33, 3}};
    float first[CHUNK], other[CHUNK];
    const struct input in = input_of(1);
    run(arch, dtype, (struct shape){1, TEXT, 1}, &in, first);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        run(arch, dtype, others[i], &in, other);
        CHECK(memcmp(first, other, sizeof first) == 0);
    }
}

TEST(a_chunk_does_not_depend_on_the_room_of_its_plan)
{
    same_bytes("openvla_oft", "f32");
    same_bytes("openvla_oft", "bf16");
    same_bytes("openvla_parallel", "bf16");
}

TEST(everything_that_is_given_counts)
{
    float first[CHUNK], other[CHUNK];
    const struct shape shape = {2, TEXT, 1};
    const struct input in = input_of(2);
    run("openvla_oft", "f32", shape, &in, first);
    for (int i = 0; i < TEXT; i++) {
        struct input changed = in;
        changed.ids[i]++;
        run("openvla_oft", "f32", shape, &changed, other);
        CHECK(memcmp(first, other, sizeof first) != 0);
    }
    struct input changed = in;
    changed.state[7] += 0.5F;
    run("openvla_oft", "f32", shape, &changed, other);
    CHECK(memcmp(first, other, sizeof first) != 0);
    changed = in;
    changed.picture[0] = pixels[1];
    changed.picture[1] = pixels[0];
    run("openvla_oft", "f32", shape, &changed, other);
    CHECK(memcmp(first, other, sizeof first) != 0);
    pixels[1][PIXELS - 1] ^= 128;
    run("openvla_oft", "f32", shape, &in, other);
    CHECK(memcmp(first, other, sizeof first) != 0);
}

/* The values are tokens: whole numbers of the vocabulary. */
TEST(a_parallel_chunk_is_of_ids)
{
    float chunk[CHUNK];
    const struct input in = input_of(1);
    run("openvla_parallel", "f32", (struct shape){1, TEXT, 1}, &in, chunk);
    for (int i = 0; i < CHUNK; i++)
        CHECK(chunk[i] >= 0.0F && chunk[i] < 768.0F && chunk[i] == (float)(int)chunk[i]);
}

TAP_MAIN
