/* session.c - a robot's way into the frame loop, on the inputs that the demo's robot sent. */
#include "graph/run/session/session.h"
#include "base/store/safetensors.h"
#include "kernels/philox.h"
#include "tests/tap.h"

#include <math.h>

#define CASE "tests/golden/demo/episodes"
#define TOKENIZERS "tests/golden/tokenizers"

static struct tec_heap heap, tokens_heap;
static struct tec_error err;

#define CHECK_SAYS(text)                                                             \
    do {                                                                             \
        if (!tap_check(strstr(err.message, text) != NULL, text, __FILE__, __LINE__)) \
            fprintf(stderr, "#   message: %s\n", err.message);                       \
    } while (0)

enum { SIDE = 64, PIXELS = SIDE * SIDE * 3, CHUNK = 16 * 4, TEXT = 32 };

/* Everything a session borrows, and one request. */
static struct {
    struct tec_diagnostics diagnostics;
    struct tec_pipeline *pipeline;
    struct tec_checkpoint *checkpoint;
    struct tec_model *model;
    struct tec_tokenizer *tokenizer;
    struct tec_session *session;
    struct tec_session_options options;
    uint8_t image[2 * PIXELS], wrist[2 * PIXELS]; /* of the first two inferences */
    float state[8], noise[CHUNK];
    struct tec_value values[8];
    size_t n;
    struct tec_frame_input input;
    char warning[200];
} d;

static void read_input(const char *name, void *out, size_t bytes)
{
    struct tec_tensors *inputs = NULL;
    REQUIRE(tec_tensors_open(&inputs, CASE "/inputs.safetensors", &heap, &err) == TEC_OK);
    const struct tec_stored *t = tec_tensors_find(inputs, name);
    REQUIRE(t && t->bytes >= bytes);
    CHECK(tec_tensors_read(inputs, t, 0, out, bytes, &err) == TEC_OK);
    tec_tensors_close(inputs);
}

static struct tec_value *add(const char *name, enum tec_value_kind kind, int rank, int64_t a,
                             const void *data, size_t bytes)
{
    d.values[d.n] = (struct tec_value){name, kind, rank, {a, SIDE, 3}, data, bytes};
    return &d.values[d.n++];
}

/* The request of inference i. */
static void request(int i, const char *text)
{
    d.n = 0;
    add("observation/image", TEC_VALUE_U8, 3, SIDE, d.image + i * PIXELS, PIXELS);
    add("observation/wrist_image", TEC_VALUE_U8, 3, SIDE, d.wrist + i * PIXELS, PIXELS);
    add("observation/state", TEC_VALUE_F32, 1, 4, d.state + 4 * i, 4 * sizeof(float));
    add("prompt", TEC_VALUE_TEXT, 0, 0, text, strlen(text));
}

static void close_all(void)
{
    tec_session_destroy(d.session);
    tec_tokenizer_close(d.tokenizer);
    tec_model_close(d.model);
    tec_checkpoint_close(d.checkpoint);
    tec_pipeline_free(d.pipeline);
    tec_diagnostics_finish(&d.diagnostics);
    CHECK_INT(heap.live, ==, 0);
    CHECK_INT(tokens_heap.live, ==, 0);
}

static void open_parts(const char *pipeline, const char *text, const char *checkpoint,
                       const char *tokenizer)
{
    memset(&d, 0, sizeof d);
    err.message[0] = '\0';
    const struct tec_load_options load = {
        .path = pipeline, .text = text, .n = text ? strlen(text) : 0, .root = "pipelines"};
    tec_diagnostics_init(&d.diagnostics, &heap);
    bool loaded = tec_pipeline_load(&d.pipeline, &load, &heap, &d.diagnostics, &err) == TEC_OK;
    if (!loaded)
        fprintf(stderr, "#   message: %s\n", err.message);
    REQUIRE(loaded);
    if (checkpoint)
        REQUIRE(tec_checkpoint_open(&d.checkpoint, checkpoint, &heap, &err) == TEC_OK);
    const struct tec_model_choice choice = {.root = "pipelines/models",
                                            .arch = checkpoint ? NULL : "pi05",
                                            .size = checkpoint ? NULL : "tiny",
                                            .checkpoint = d.checkpoint};
    REQUIRE(tec_model_open(&d.model, &choice, &heap, &err) == TEC_OK);
    if (tokenizer)
        REQUIRE(tec_tokenizer_open(&d.tokenizer, tokenizer, &tokens_heap, &err) == TEC_OK);
    d.options = (struct tec_session_options){.pipeline = d.pipeline,
                                             .model = d.model,
                                             .checkpoint = d.checkpoint,
                                             .tokenizer = d.tokenizer,
                                             .root = ".",
                                             .max_text = TEXT,
                                             .seed = 7};
}

static enum tec_status create(void)
{
    err.message[0] = '\0';
    return tec_session_create(&d.session, &d.options, &heap, &err);
}

static void open_demo(void)
{
    open_parts("pipelines/demo_metaworld.lua", NULL, CASE "/checkpoint",
               CASE "/checkpoint/tokenizer.model");
    read_input("button.image", d.image, sizeof d.image);
    read_input("button.wrist_image", d.wrist, sizeof d.wrist);
    read_input("button.state", d.state, sizeof d.state);
    read_input("button.noise", d.noise, sizeof d.noise);
    REQUIRE(create() == TEC_OK);
    request(0, "press the button");
}

static enum tec_status observe_frame(const float *noise, int64_t frame)
{
    err.message[0] = '\0';
    return tec_session_observe(d.session, d.values, d.n, noise, frame, 99, &d.input, d.warning,
                               &err);
}

static enum tec_status observe(void)
{
    return observe_frame(d.noise, 0);
}

TEST(philox_has_its_published_values)
{
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } known[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        uint32_t out[4];
        tec_philox_words(known[i].counter, known[i].key, out);
        CHECK(memcmp(out, known[i].out, sizeof out) == 0);
    }
}

TEST(noise_is_a_function_of_its_place)
{
    static float a[4099], b[4099];
    double sum = 0.0, squares = 0.0;
    tec_noise(1, TEC_NOISE_ACTIONS, 5, a, 4099);
    for (size_t n = 0; n < 12; n++) {
        b[n] = 77.0F;
        tec_noise(1, TEC_NOISE_ACTIONS, 5, b, n);
        CHECK(memcmp(a, b, n * sizeof *a) == 0 && b[n] == 77.0F);
    }
    for (int i = 0; i < 4099; i++) {
        sum += (double)a[i];
        squares += (double)a[i] * (double)a[i];
    }
    CHECK(fabs(sum / 4099) < 0.06 && fabs(squares / 4099 - 1.0) < 0.08);
    tec_noise(1, TEC_NOISE_ACTIONS, 6, b, 4099);
    CHECK(memcmp(a, b, 16) != 0);
    tec_noise(2, TEC_NOISE_ACTIONS, 5, b, 4099);
    CHECK(memcmp(a, b, 16) != 0);
    tec_noise(1, TEC_NOISE_ACTIONS, 5 + (INT64_C(1) << 32), b, 4099);
    CHECK(memcmp(a, b, 16) != 0);
    tec_noise(1 + (UINT64_C(1) << 32), TEC_NOISE_ACTIONS, 5, b, 4099);
    CHECK(memcmp(a, b, 16) != 0);
}

TEST(observation_becomes_an_input)
{
    static const int ids[] = {2,   278, 903, 328, 268, 323, 6, 280, 903, 515,
                              890, 52,  891, 420, 340, 5,   4, 279, 903, 890};
    open_demo();
    CHECK(tec_session_observation(d.session) == NULL);
    REQUIRE(observe() == TEC_OK);
    const struct tec_prefix_input *o = &d.input.chains[0].prefix;
    CHECK_INT(o->n_pictures, ==, 2);
    CHECK(memcmp(o->picture[0], d.image, PIXELS) == 0);
    CHECK(memcmp(o->picture[1], d.wrist, PIXELS) == 0);
    REQUIRE(o->n_text == 20);
    CHECK(memcmp(o->ids, ids, sizeof ids) == 0);
    CHECK(memcmp(d.input.chains[0].noise[0], d.noise, sizeof d.noise) == 0);
    CHECK_INT(d.input.captured_ns, ==, 99);
    CHECK_STR(d.warning, "");
    CHECK_STR(tec_session_observation(d.session)->text, "press the button");
    CHECK_STR(tec_session_robot(d.session)->name, "metaworld");
    CHECK_STR(tec_session_template(d.session)->name, "with_state");
    CHECK(tec_session_rows(d.session) == 16 && tec_session_columns(d.session) == 4);
    close_all();
}

TEST(three_inputs_stay_valid)
{
    struct tec_frame_input first, second;
    float chunk[CHUNK] = {0};
    double a[CHUNK], b[CHUNK];
    open_demo();
    REQUIRE(observe() == TEC_OK);
    first = d.input;
    const struct tec_observation *seen = tec_session_observation(d.session), *then;
    request(1, "press it");
    REQUIRE(observe() == TEC_OK);
    second = d.input;
    then = tec_session_observation(d.session);
    request(0, "press the button");
    REQUIRE(observe() == TEC_OK);
    CHECK(first.chains[0].state != second.chains[0].state &&
          first.chains[0].state != d.input.chains[0].state);
    CHECK(memcmp(first.chains[0].prefix.picture[0], d.image, PIXELS) == 0);
    CHECK(memcmp(second.chains[0].prefix.picture[0], d.image + PIXELS, PIXELS) == 0);
    CHECK(first.chains[0].prefix.n_text == d.input.chains[0].prefix.n_text &&
          memcmp(first.chains[0].prefix.ids, d.input.chains[0].prefix.ids, 20 * sizeof(int)) == 0);
    CHECK(memcmp(first.chains[0].state, second.chains[0].state, 4 * sizeof(float)) != 0);
    CHECK_INT(tec_session_act_on(d.session, seen->state_raw, chunk, a, NULL), ==, 16);
    seen = tec_session_observation(d.session);
    CHECK_INT(tec_session_act_on(d.session, seen->state_raw, chunk, b, NULL), ==, 16);
    CHECK(memcmp(a, b, sizeof a) == 0);
    chunk[8] = NAN; /* the third row */
    CHECK_INT(tec_session_act_on(d.session, then->state_raw, chunk, a, NULL), ==, 2);
    close_all();
}

/* Texts that make the tokenizer work hardest, as long as they may be. */
static void observe_long(const char *piece)
{
    static char text[1024 + 8 * TEXT + 1];
    size_t n = 0, length = strlen(piece);
    for (; n + length <= sizeof text - 1; n += length)
        memcpy(text + n, piece, length);
    text[n] = '\0';
    request(0, text);
    CHECK(observe() == TEC_INVALID);
    CHECK_SAYS("prompt: prompt has ");
    CHECK_SAYS(" tokens, the pipeline allows 32: raise max_tokens or shorten it");
}

static void check_no_memory_taken(const char *tokenizer)
{
    static const char *const pieces[] = {"a a", "_", "x ", "0", "\xEF\xBF\xBD", "\xC5\x93q ", "b"};
    open_parts("pipelines/demo_metaworld.lua", NULL, CASE "/checkpoint", tokenizer);
    REQUIRE(create() == TEC_OK);
    request(0, "press");
    observe(); /* may fail for ids beyond the demo's vocabulary */
    int64_t calls = heap.calls, bytes = heap.bytes;
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++)
        observe_long(pieces[i]);
    request(0, "press");
    for (int i = 0; i < 8; i++)
        observe();
    CHECK_INT(heap.calls, ==, calls);
    CHECK_INT(heap.bytes, ==, bytes);
    close_all();
}

TEST(observing_takes_no_memory)
{
    open_demo();
    REQUIRE(observe() == TEC_OK);
    int64_t calls = heap.calls, taken = tokens_heap.calls;
    for (int i = 0; i < 20; i++) {
        request(i % 2, i % 3 ? "press the button" : "open the faucet");
        CHECK(observe_frame(i % 4 ? NULL : d.noise, i) == TEC_OK);
    }
    CHECK_INT(heap.calls, ==, calls);
    CHECK_INT(tokens_heap.calls, ==, taken);
    close_all();
    check_no_memory_taken(CASE "/checkpoint/tokenizer.model");
    check_no_memory_taken(TOKENIZERS "/gemma_like/tokenizer.model");
    check_no_memory_taken(TOKENIZERS "/gemma_like/tokenizer.json");
    check_no_memory_taken(TOKENIZERS "/llama_like/tokenizer.json");
}

TEST(more_pictures_than_a_frame_holds_are_refused)
{
    open_demo();
    tec_session_destroy(d.session);
    d.session = NULL;
    d.options.max_pictures = 1;
    CHECK(create() == TEC_MALFORMED);
    CHECK_SAYS("robot metaworld sends 2 pictures of 16 tokens, 'obs' has room for 1 beside the ");
    d.options.found = &d.diagnostics; /* all that is wrong is collected, and creating goes on */
    REQUIRE(create() == TEC_OK);
    CHECK_INT(d.diagnostics.n_errors, ==, 1);
    CHECK(observe() == TEC_INVALID);
    CHECK_SAYS("robot metaworld: 2 pictures, the pipeline's kv.frame has room for 1 beside the "
               "prompt: raise its tokens by 16");
    tec_session_destroy(d.session);
    d.options.max_pictures = 2;
    REQUIRE(create() == TEC_OK);
    CHECK(observe() == TEC_OK);
    close_all();
}

TEST(wrong_inputs_are_named_and_survived)
{
    static int ids[TEXT + 1] = {2, 900, 924};
    open_demo();
    REQUIRE(observe() == TEC_OK);
    const struct tec_frame_input good = d.input;
    d.values[0].name = "observation/imge";
    CHECK(observe() == TEC_NOT_FOUND);
    CHECK_SAYS("observation/imge: robot metaworld has no such camera; did you mean "
               "'observation/image'?");
    request(0, "press");
    d.values[1].shape[0] = SIDE / 2;
    d.values[1].bytes = PIXELS / 2;
    CHECK(observe() == TEC_SHAPE);
    CHECK_SAYS("observation/wrist_image: the picture is 32 high, 64 wide, the model takes 64 high, "
               "64 wide");
    request(0, "press");
    d.values[2].kind = TEC_VALUE_I32;
    CHECK(observe() == TEC_SHAPE);
    CHECK_SAYS("observation/state: must be 4 float values, is i32[4]");
    request(0, "press\xFF");
    CHECK(observe() == TEC_MALFORMED);
    CHECK_SAYS("prompt");
    request(0, "press");
    d.n--;
    CHECK(observe() == TEC_NOT_FOUND);
    add("prompt#ids", TEC_VALUE_I32, 1, 3, ids, 3 * sizeof(int));
    CHECK(observe() == TEC_INVALID);
    CHECK_SAYS("prompt: token 3 is 924, the model's vocabulary has 924");
    d.values[3].shape[0] = 4;
    CHECK(observe() == TEC_SHAPE);
    CHECK_SAYS("prompt#ids: token ids are i32 [n]");
    d.values[3].shape[0] = TEXT + 1;
    d.values[3].bytes = sizeof ids;
    CHECK(observe() == TEC_INVALID);
    CHECK_SAYS("33 tokens, the pipeline allows 32");
    CHECK(memcmp(&good, &d.input, sizeof good) == 0);
    CHECK(memcmp(good.chains[0].prefix.picture[0], d.image, PIXELS) == 0 &&
          good.chains[0].prefix.ids[0] == 2);
    CHECK_STR(tec_session_observation(d.session)->text, "press the button");
    d.values[3].shape[0] = 2;
    d.values[3].bytes = 2 * sizeof(int);
    CHECK(observe() == TEC_OK);
    CHECK(d.input.chains[0].prefix.n_text == 2 && d.input.chains[0].prefix.ids[1] == 900);
    request(1, "press the button");
    CHECK(observe() == TEC_OK);
    close_all();
}

TEST(wrong_statistics_are_warned_about)
{
    open_demo();
    d.state[0] = d.state[1] = d.state[2] = 1000.0F;
    REQUIRE(observe() == TEC_OK);
    CHECK(strstr(d.warning, "3 of 4 state entries lie beyond") != NULL);
    close_all();
}

TEST(noise_repeats)
{
    float a[CHUNK];
    open_demo();
    REQUIRE(observe_frame(NULL, 3) == TEC_OK);
    memcpy(a, d.input.chains[0].noise[0], sizeof a);
    REQUIRE(observe_frame(NULL, 4) == TEC_OK);
    CHECK(memcmp(a, d.input.chains[0].noise[0], sizeof a) != 0);
    REQUIRE(observe_frame(NULL, 3) == TEC_OK);
    CHECK(memcmp(a, d.input.chains[0].noise[0], sizeof a) == 0);
    tec_session_destroy(d.session);
    d.session = NULL;
    REQUIRE(create() == TEC_OK);
    REQUIRE(observe_frame(NULL, 3) == TEC_OK);
    CHECK(memcmp(a, d.input.chains[0].noise[0], sizeof a) == 0);
    close_all();
}

TEST(a_robot_that_goes_on_moving_is_stopped_after_three_misses)
{
    open_demo(); /* its commands are changes of place */
    struct tec_decl_deadline held = {.kind = TEC_DEADLINE_HARD, .ms = 10, .on_miss = TEC_MISS_HOLD};
    CHECK_INT(tec_session_miss_limit(d.session, &held), ==, 3);
    held.limit = 5;
    CHECK_INT(tec_session_miss_limit(d.session, &held), ==, 5);
    struct tec_decl_deadline stops = {
        .kind = TEC_DEADLINE_HARD, .ms = 10, .on_miss = TEC_MISS_ZEROS};
    CHECK_INT(tec_session_miss_limit(d.session, &stops), ==, 0);
    tec_session_destroy(d.session);
    d.session = NULL;
    json_t *robot = json_deep_copy(d.pipeline->robots[0].description);
    json_object_set_new(json_object_get(robot, "actions"), "relative", json_false());
    struct tec_pipeline mine = *d.pipeline;
    struct tec_decl_robot declared = d.pipeline->robots[0];
    mine.robots = &declared;
    declared.description = robot;
    d.options.pipeline = &mine;
    REQUIRE(create() == TEC_OK);
    held.limit = 0;
    CHECK_INT(tec_session_miss_limit(d.session, &held), ==, 0);
    json_decref(robot);
    close_all();
}

TEST(prompts_are_cut_only_where_the_robot_says_so)
{
    int whole[TEXT];
    open_demo();
    REQUIRE(observe() == TEC_OK);
    memcpy(whole, d.input.chains[0].prefix.ids, sizeof whole);
    tec_session_destroy(d.session);
    d.session = NULL;
    json_t *robot = json_deep_copy(d.pipeline->robots[0].description);
    json_t *prompt = json_object_get(robot, "prompt");
    json_object_set_new(prompt, "max_tokens", json_integer(10));
    struct tec_pipeline mine = *d.pipeline;
    struct tec_decl_robot declared = d.pipeline->robots[0];
    mine.robots = &declared;
    declared.description = robot;
    d.options.pipeline = &mine;
    REQUIRE(create() == TEC_OK);
    CHECK(observe() == TEC_INVALID);
    CHECK_SAYS("prompt: prompt has 20 tokens, the robot allows 10");
    tec_session_destroy(d.session);
    d.session = NULL;
    json_object_set_new(prompt, "truncate", json_true());
    REQUIRE(create() == TEC_OK);
    REQUIRE(observe() == TEC_OK);
    CHECK(d.input.chains[0].prefix.n_text == 10 &&
          memcmp(d.input.chains[0].prefix.ids, whole, 40) == 0);
    json_decref(robot);
    close_all();
}

/* A plan may allow more tokens than its one text has: rings that share forwards have the larger
 * number. */
TEST(a_text_may_be_as_long_as_the_plan_allows)
{
    enum { TOKENS = 4000, BYTES = 4 * TOKENS };
    static const char words[] = "press the button ";
    static char text[BYTES + 1];
    for (size_t i = 0; i < BYTES; i++)
        text[i] = words[i % (sizeof words - 1)];
    open_demo();
    tec_session_destroy(d.session);
    d.session = NULL;
    json_t *robot = json_deep_copy(d.pipeline->robots[0].description);
    json_object_del(json_object_get(robot, "prompt"), "max_tokens");
    struct tec_pipeline mine = *d.pipeline;
    struct tec_decl_robot declared = d.pipeline->robots[0];
    mine.robots = &declared;
    declared.description = robot;
    d.options.pipeline = &mine;
    d.options.max_text = TOKENS;
    REQUIRE(create() == TEC_OK);
    request(0, text);
    REQUIRE(observe() == TEC_OK);
    int n = d.input.chains[0].prefix.n_text;
    CHECK(n > TEXT && n < TOKENS);
    REQUIRE(observe() == TEC_OK);
    CHECK_INT(d.input.chains[0].prefix.n_text, ==, n);
    json_decref(robot);
    close_all();
}

TEST(sessions_that_do_not_fit_are_refused)
{
    open_parts("pipelines/demo_metaworld.lua", NULL, CASE "/checkpoint", NULL);
    struct tec_pipeline mine = *d.pipeline;
    struct tec_decl_robot declared = d.pipeline->robots[0];
    mine.robots = &declared;
    d.options.pipeline = &mine;
    static const struct {
        const char *section, *field, *value, *says;
    } bad[] = {
        {"norm", "asset", "other", "other"},
        {"norm", "mode", "mean_st", "mean_std"},
        {"prompt", "template", "with_stat", "no prompt template 'with_stat'"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        json_t *robot = json_deep_copy(d.pipeline->robots[0].description);
        declared.description = robot;
        json_object_set_new(json_object_get(robot, bad[i].section), bad[i].field,
                            json_string(bad[i].value));
        CHECK(create() != TEC_OK && d.session == NULL);
        CHECK_SAYS(bad[i].says);
        json_decref(robot);
    }
    declared = d.pipeline->robots[0];
    d.options.max_text = 0;
    CHECK(create() == TEC_INVALID);
    d.options.max_text = TEXT;
    CHECK(create() == TEC_OK);
    close_all();
}

/* Every allocation fails once: no leak, no crash, and the message says so. */
TEST(create_survives_every_failed_allocation)
{
    open_demo();
    tec_session_destroy(d.session);
    d.session = NULL;
    int64_t live = heap.live, n = 0;
    for (; n < 10000; n++) {
        heap.fail_at = heap.calls + n + 1;
        enum tec_status status = create();
        heap.fail_at = 0;
        if (status == TEC_OK)
            break;
        CHECK_INT(heap.live, ==, live);
        CHECK(d.session == NULL);
    }
    CHECK(n > 5 && n < 10000);
    close_all();
}

#define PLAIN                                                                                     \
    "return pipeline { name='p', schema=1, model = model { arch='pi05', weights='x' },\n"         \
    " frame = frame { period_ms=100, clock='external' },\n"                                       \
    " inputs = { image { name='front', h=28, w=28 }, image { name='back', h=28, w=28,\n"          \
    "   slot='base_0_rgb', optional=true }, tensor { name='joints', shape={3} },\n"               \
    "   text { name='task', max_tokens=8 } },\n"                                                  \
    " resources = { kv.frame { name='obs', tokens=100 }, buffer { name='chunk', shape={50,32} } " \
    "},"                                                                                          \
    " nodes = { prefill { name='see', reads={'front','back','joints','task'}, writes='obs' },\n"  \
    "   action { name='act', kv='obs', steps=2, out='chunk',\n"                                   \
    "     deadline=hard { ms=90, on_miss='hold' } } } }"

TEST(without_a_robot_values_pass_as_they_are)
{
    static float chunk[50 * 32], joints[3] = {1.0F, -2.0F, 0.5F};
    static double out[50 * 32];
    static uint8_t picture[28 * 28 * 3] = {9};
    open_parts("pipelines/plain.lua", PLAIN, NULL, NULL);
    d.options.max_text = 8;
    REQUIRE(create() == TEC_OK);
    CHECK(tec_session_robot(d.session) == NULL);
    struct tec_value *v = add("front", TEC_VALUE_U8, 3, 28, picture, sizeof picture);
    v->shape[1] = 28;
    add("joints", TEC_VALUE_F32, 1, 3, joints, sizeof joints);
    REQUIRE(observe_frame(NULL, 0) == TEC_OK);
    CHECK_INT(d.input.chains[0].prefix.n_pictures, ==, 1);
    CHECK(tec_session_observation(d.session)->valid[1] &&
          !tec_session_observation(d.session)->valid[0]);
    CHECK(memcmp(d.input.chains[0].state, joints, sizeof joints) == 0 &&
          d.input.chains[0].state[3] == 0.0F);
    CHECK(d.input.chains[0].prefix.n_text == 8 && d.input.chains[0].prefix.ids[0] == 2);
    for (int i = 0; i < 50 * 32; i++)
        chunk[i] = (float)i;
    CHECK_INT(tec_session_act_on(d.session, tec_session_observation(d.session)->state_raw, chunk,
                                 out, NULL),
              ==, 50);
    CHECK(tec_session_columns(d.session) == 32 && out[0] == 0.0 && out[1599] == 1599.0);
    v->name = "frnt";
    CHECK(observe_frame(NULL, 0) == TEC_NOT_FOUND);
    CHECK_SAYS("did you mean 'front'?");
    close_all();
}

#define LEROBOT "tests/golden/pi/pi0_tiny_lerobot/checkpoint/pretrained_model"

/* No robot in the pipeline: the checkpoint's own, whose pictures are floats, as the model's. */
TEST(lerobot_checkpoints_bring_their_robot)
{
    static uint8_t pictures[2][28 * 28 * 3];
    static float state[64];
    open_parts("pipelines/plain.lua", PLAIN, LEROBOT, LEROBOT "/tokenizer/tokenizer.json");
    REQUIRE(create() == TEC_OK);
    const struct tec_robot *robot = tec_session_robot(d.session);
    REQUIRE(robot != NULL && robot->n_parts == 1 && robot->n_state <= 64);
    CHECK_STR(robot->name, "lerobot");
    CHECK_STR(tec_session_template(d.session)->name, "as_it_is");
    int n = 0;
    for (int i = 0; i < robot->n_cameras && n < 2; i++) {
        if (!robot->cameras[i].input)
            continue;
        for (int k = 0; k < 28 * 28 * 3; k++)
            pictures[n][k] = (uint8_t)(k + n);
        struct tec_value *v =
            add(robot->cameras[i].input, TEC_VALUE_U8, 3, 28, pictures[n++], sizeof pictures[0]);
        v->shape[1] = 28;
    }
    CHECK_INT(n, ==, 2);
    add("observation.state", TEC_VALUE_F32, 1, robot->n_state, state,
        (size_t)robot->n_state * sizeof *state);
    add("task", TEC_VALUE_TEXT, 0, 0, "a", 1);
    REQUIRE(observe_frame(NULL, 0) == TEC_OK);
    REQUIRE(d.input.chains[0].prefix.n_pictures == 2);
    for (int i = 0; i < 2; i++)
        for (int k = 0, wrong = 0; k < 28 * 28 * 3; k++) {
            float seen;
            memcpy(&seen, d.input.chains[0].prefix.picture[i] + (size_t)k * sizeof seen,
                   sizeof seen);
            wrong += seen != (float)pictures[i][k] / 255.0F;
            CHECK_INT(wrong, ==, 0);
        }
    int64_t calls = heap.calls;
    CHECK(observe_frame(NULL, 1) == TEC_OK);
    CHECK_INT(heap.calls, ==, calls);
    close_all();
}

/* A robot of one's own over LeRobot's checkpoint: three cameras' slots, 8 numbers in, 7 out. */
#define OWN(norm, state, actions)                                                                  \
    "return pipeline { name='p', schema=1, model = model { arch='pi0', weights='x' },\n"           \
    " robot = { name='own', cameras = {}, state = { inputs = { { input='joints', size=" state      \
    " } } },\n  actions = { size=" actions " }, norm = { mode='" norm "' }, prompt = { input='t' " \
    "} },\n frame = frame { period_ms=100, clock='external' },\n"                                  \
    " inputs = { tensor { name='joints', shape={" state "} }, text { name='t', max_tokens=8 } "    \
    "},\n resources = { kv.frame { name='obs', tokens=100 }, buffer { name='chunk', "              \
    "shape={50,32} } },"                                                                           \
    " nodes = { prefill { name='see', reads={'joints','t'}, writes='obs' },\n"                     \
    "   action { name='act', kv='obs', steps=2, out='chunk',\n"                                    \
    "     deadline=hard { ms=90, on_miss='zeros' } } } }"

TEST(a_robot_of_its_own_must_not_contradict_the_checkpoint)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {OWN("mean_std", "8", "7"), NULL},
        {OWN("quantile", "8", "7"), "robot own wants quantile statistics for its state, the "
                                    "checkpoint's are mean_std"},
        {OWN("mean_std", "8", "6"), "robot own takes 6 columns of the actions, but"},
        {OWN("mean_std", "7", "7"), "robot own has a state of 7 entries, but"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        open_parts("pipelines/plain.lua", cases[i].text, LEROBOT,
                   LEROBOT "/tokenizer/tokenizer.json");
        enum tec_status status = create();
        CHECK_INT(status, ==, cases[i].says ? TEC_MALFORMED : TEC_OK);
        if (cases[i].says) {
            CHECK_SAYS(cases[i].says);
            CHECK_SAYS("pipelines/plain.lua");
            CHECK_SAYS(LEROBOT);
        }
        close_all();
    }
}

TAP_MAIN
