/* encoder.c - sentence encoders: texts at the edges, company that changes no byte, directories that
 * are hostile. What vectors should be is judged by tests/golden/encoders (verify.t). */
#include "graph/encoder/encoder.h"
#include "graph/encoder/directory.h"
#include "tests/box.h"
#include "tests/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MINI "tests/golden/encoders/minilm_tiny/checkpoint"
#define WIDE "tests/golden/encoders/mpnet_odd/checkpoint"

enum { MOST = 12, WIDTH = 72, TOKENS = 187 };

static struct tec_heap heap;
static struct tec_error err;

static enum tec_status try_open(struct tec_encoder **e, const char *path, int texts, int rows)
{
    const struct tec_encoder_options o = {
        .path = path,
        .models = "pipelines/models",
        .device = {.kind = tap.device, .threads = 1, .tier = tec_tier_best()},
        .max_texts = texts,
        .max_rows = rows};
    return tec_encoder_open(e, &o, &heap, &err);
}

static struct tec_encoder *open_at(const char *path, int texts, int rows)
{
    struct tec_encoder *e = NULL;
    enum tec_status status = try_open(&e, path, texts, rows);
    if (status != TEC_OK)
        fprintf(stderr, "# %s\n", err.message);
    REQUIRE(status == TEC_OK);
    return e;
}

static void close_all(struct tec_encoder *e)
{
    tec_encoder_close(e);
    CHECK_INT(heap.live, ==, 0);
}

static struct tec_encoder_text text_of(const char *s)
{
    return (struct tec_encoder_text){s, strlen(s)};
}

static double length_of(const float *v, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += (double)v[i] * (double)v[i];
    return sqrt(sum);
}

static double dot(const float *a, const float *b, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

/* --- texts ----------------------------------------------------------------------------------- */

TEST(what_an_encoder_says_of_itself)
{
    struct tec_encoder *e = open_at(WIDE, 0, 0);
    CHECK_INT(tec_encoder_width(e), ==, WIDTH);
    CHECK_INT(tec_encoder_tokens(e), ==, TOKENS);
    CHECK(tec_model_encodes(tec_encoder_model(e)));
    close_all(e);
}

TEST(empty_unknown_and_long_texts_have_vectors)
{
    static char endless[4000];
    for (size_t i = 0; i + 1 < sizeof endless; i++)
        endless[i] = i % 4 == 3 ? ' ' : 'a';
    struct tec_encoder *e = open_at(WIDE, 0, 0);
    const struct tec_encoder_text texts[] = {text_of(""), text_of("\xf0\x9f\xa4\x96"),
                                             text_of(endless), text_of("put the mug down")};
    float v[4][WIDTH];
    int ids[TOKENS], n = 0;
    REQUIRE(tec_encoder_embed(e, texts, 4, v[0], &err) == TEC_OK);
    for (int i = 0; i < 4; i++)
        CHECK(fabs(length_of(v[i], WIDTH) - 1) < 1e-6);
    for (int i = 1; i < 4; i++)
        CHECK(dot(v[0], v[i], WIDTH) < 0.9999);
    REQUIRE(tec_encoder_ids(e, texts[0], ids, &n, &err) == TEC_OK);
    CHECK_INT(n, ==, 2); /* what stands around a text */
    REQUIRE(tec_encoder_ids(e, texts[2], ids, &n, &err) == TEC_OK);
    CHECK_INT(n, ==, TOKENS);
    CHECK_INT(ids[n - 1], ==, 2); /* cut, and still ended */
    close_all(e);
}

TEST(a_text_longer_than_the_limit_is_cut_where_the_limit_is)
{
    struct tec_encoder *e = open_at(MINI, 0, 0);
    char text[400];
    int ids[64], n = 0, tokens = tec_encoder_tokens(e), end = 2 * (tokens - 2);
    float cut[64], whole[64];
    REQUIRE(end > 2 && end < 300);
    for (int i = 0; i < end; i++)
        text[i] = i % 2 ? ' ' : 'a';
    snprintf(text + end, sizeof text - (size_t)end, "the red mug");
    const struct tec_encoder_text fits = {text, (size_t)end}, longer = text_of(text);
    const struct tec_encoder_text shorter = {text, (size_t)end - 2}; /* one token less */
    REQUIRE(tec_encoder_embed(e, &fits, 1, whole, &err) == TEC_OK);
    REQUIRE(tec_encoder_ids(e, fits, ids, &n, &err) == TEC_OK);
    CHECK_INT(n, ==, tokens);
    REQUIRE(tec_encoder_embed(e, &longer, 1, cut, &err) == TEC_OK);
    CHECK(memcmp(cut, whole, sizeof cut) == 0);
    REQUIRE(tec_encoder_embed(e, &shorter, 1, cut, &err) == TEC_OK);
    CHECK(memcmp(cut, whole, sizeof cut) != 0);
    close_all(e);
}

TEST(a_text_that_is_not_utf8_is_named)
{
    struct tec_encoder *e = open_at(MINI, 0, 0);
    const struct tec_encoder_text texts[] = {text_of("fine"), text_of("\xff")};
    float v[2 * 64];
    CHECK_INT(tec_encoder_embed(e, texts, 2, v, &err), ==, TEC_MALFORMED);
    CHECK(strstr(err.message, "text 1") != NULL);
    REQUIRE(tec_encoder_embed(e, texts, 1, v, &err) == TEC_OK); /* and goes on */
    close_all(e);
}

TEST(ids_are_looked_at)
{
    struct tec_encoder *e = open_at(MINI, 0, 0);
    int ids[64] = {11, 46, 12}, starts[] = {0, 3};
    float v[64], w[64];
    REQUIRE(tec_encoder_embed_ids(e, ids, starts, 1, v, &err) == TEC_OK);
    struct tec_encoder_text a = text_of("a");
    REQUIRE(tec_encoder_embed(e, &a, 1, w, &err) == TEC_OK);
    CHECK(memcmp(v, w, sizeof v) == 0);
    ids[1] = 1200;
    CHECK_INT(tec_encoder_embed_ids(e, ids, starts, 1, v, &err), ==, TEC_INVALID);
    ids[1] = -1;
    CHECK_INT(tec_encoder_embed_ids(e, ids, starts, 1, v, &err), ==, TEC_INVALID);
    starts[1] = 0;
    CHECK_INT(tec_encoder_embed_ids(e, ids, starts, 1, v, &err), ==, TEC_INVALID);
    starts[1] = 49;
    CHECK_INT(tec_encoder_embed_ids(e, ids, starts, 1, v, &err), ==, TEC_INVALID);
    close_all(e);
}

/* --- company --------------------------------------------------------------------------------- */

static const char *const lines[MOST] = {
    "",
    "a",
    "Put the red mug on the table.",
    "find a lettuce, turn on the cube, done.",
    "GRAB THE APPLE!",
    "robot 12 345 -6.78",
    "the bowl is in the fridge",
    "na\xc3\xafve caf\xc3\xa9",
    "turn off the apple and put it in the drawer",
    "\xf0\x9f\x8d\x8e",
    "don't stop!!! (ever)",
    "put the knife into the sink, then the spoon, then the pot"};

/* A text has the same bytes alone, in any company, and with any room for it. */
static void company(const char *path)
{
    float alone[MOST][WIDTH], together[MOST][WIDTH];
    struct tec_encoder_text texts[MOST], turned[MOST];
    struct tec_encoder *e = open_at(path, 1, 0);
    int width = tec_encoder_width(e);
    for (int i = 0; i < MOST; i++) {
        texts[i] = text_of(lines[i]);
        turned[MOST - 1 - i] = texts[i];
        REQUIRE(tec_encoder_embed(e, &texts[i], 1, alone[i], &err) == TEC_OK);
    }
    tec_encoder_close(e);
    static const int rooms[][2] = {{MOST, 4000}, {5, 64}, {3, 0}, {0, 200}};
    for (size_t r = 0; r < 4; r++) {
        e = open_at(path, rooms[r][0], rooms[r][1]);
        float *v = together[0];
        REQUIRE(tec_encoder_embed(e, texts, MOST, v, &err) == TEC_OK);
        for (int i = 0; i < MOST; i++)
            CHECK(memcmp(v + i * width, alone[i], (size_t)width * 4) == 0);
        REQUIRE(tec_encoder_embed(e, turned, MOST, v, &err) == TEC_OK);
        for (int i = 0; i < MOST; i++)
            CHECK(memcmp(v + i * width, alone[MOST - 1 - i], (size_t)width * 4) == 0);
        close_all(e);
    }
}

TEST(company_changes_no_byte)
{
    company(MINI);
    company(WIDE); /* scores know distances */
}

TEST(a_call_takes_no_memory)
{
    struct tec_encoder *e = open_at(WIDE, 4, 0);
    struct tec_encoder_text texts[MOST];
    float v[MOST * WIDTH];
    for (int i = 0; i < MOST; i++)
        texts[i] = text_of(lines[i]);
    heap.fail_at = heap.calls + 1; /* every request is refused */
    CHECK_INT(tec_encoder_embed(e, texts, MOST, v, &err), ==, TEC_OK);
    heap.fail_at = 0;
    close_all(e);
}

TEST(a_token_that_is_not_counted_moves_no_position)
{
    struct tec_encoder *e = open_at(WIDE, 0, 0);
    int with[] = {0, 535, 1, 691, 2}, without[] = {0, 535, 3, 691, 2}, starts[] = {0, 5};
    float a[WIDTH], b[WIDTH];
    REQUIRE(tec_encoder_embed_ids(e, with, starts, 1, a, &err) == TEC_OK);
    REQUIRE(tec_encoder_embed_ids(e, without, starts, 1, b, &err) == TEC_OK);
    CHECK(memcmp(a, b, sizeof a) != 0);
    CHECK(fabs(length_of(a, WIDTH) - 1) < 1e-6);
    close_all(e);
}

/* --- distances ------------------------------------------------------------------------------- */

TEST(buckets_of_distances)
{
    const struct tec_relative r = {.name = "t", .rows = 32, .buckets = 32, .distance = 128};
    static const int far[][2] = {{7, 7},   {8, 8},   {11, 8},  {12, 9},   {15, 9},     {16, 10},
                                 {22, 10}, {23, 11}, {32, 12}, {45, 12},  {46, 13},    {63, 13},
                                 {64, 14}, {90, 14}, {91, 15}, {128, 15}, {500000, 15}};
    CHECK_INT(tec_relative_bucket(&r, 0), ==, 0);
    for (size_t i = 0; i < sizeof far / sizeof far[0]; i++) {
        CHECK_INT(tec_relative_bucket(&r, -far[i][0]), ==, far[i][1]);
        CHECK_INT(tec_relative_bucket(&r, far[i][0]), ==, 16 + far[i][1]);
    }
}

/* --- directories ----------------------------------------------------------------------------- */

static struct box box;

/* A copy of an encoder's directory, by links. */
static void make_dir(const char *from)
{
    static const char *const names[] = {"config.json",    "model.safetensors",
                                        "modules.json",   "sentence_bert_config.json",
                                        "tokenizer.json", "1_Pooling/config.json"};
    char golden[256];
    box_make(&box);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(golden, sizeof golden, "%s/%s", from, names[i]);
        box_link(&box, names[i], golden);
    }
}

/* A file in place of its link; text NULL: none at all. */
static void put(const char *name, const char *text)
{
    if (text)
        box_put(&box, name, text);
    else
        box_path(&box, name);
}

/* The directory with one file changed is refused so, and nothing is left. */
static void refused(const char *from, const char *name, const char *text, enum tec_status status,
                    const char *says)
{
    struct tec_encoder *e = NULL;
    make_dir(from);
    put(name, text);
    enum tec_status got = try_open(&e, box.dir, 0, 0);
    CHECK_INT(got, ==, status);
    bool said = got != TEC_OK && strstr(err.message, says);
    if (!tap_check(said, says, __FILE__, __LINE__))
        fprintf(stderr, "#   message: %s\n", got == TEC_OK ? "(taken)" : err.message);
    tec_encoder_close(e);
    CHECK_INT(heap.live, ==, 0);
    box_remove(&box);
}

#define TRANSFORMER "{\"path\":\"\",\"type\":\"sentence_transformers.models.Transformer\"}"
#define POOLING "{\"path\":\"1_Pooling\",\"type\":\"sentence_transformers.models.Pooling\"}"
#define NORMALIZE "{\"path\":\"2_Normalize\",\"type\":\"sentence_transformers.models.Normalize\"}"

TEST(modules_that_are_not_there)
{
    static const char file[] = "modules.json";
    refused(MINI, file, NULL, TEC_NOT_FOUND, file);
    refused(MINI, file, "", TEC_MALFORMED, file);
    refused(MINI, file, "{}", TEC_MALFORMED, "not a list");
    refused(MINI, file, "[]", TEC_UNSUPPORTED, "0 modules");
    refused(MINI, file, "[7]", TEC_UNSUPPORTED, "module 0");
    refused(MINI, file, "[" TRANSFORMER "]", TEC_UNSUPPORTED, "1 modules");
    refused(MINI, file, "[" POOLING "," TRANSFORMER "]", TEC_UNSUPPORTED, "module 0 is 'Pooling'");
    refused(MINI, file, "[" TRANSFORMER "," POOLING "," POOLING "]", TEC_UNSUPPORTED, "module 2");
    refused(MINI, file, "[" TRANSFORMER "," POOLING "," NORMALIZE "," NORMALIZE "]",
            TEC_UNSUPPORTED, "module 3");
    refused(MINI, file, "[{\"path\":\"../minilm_tiny\",\"type\":\"a.Transformer\"}," POOLING "]",
            TEC_MALFORMED, "plain name");
    refused(MINI, file, "[{\"path\":\"/etc\",\"type\":\"a.Transformer\"}," POOLING "]",
            TEC_MALFORMED, "plain name");
    refused(MINI, file, "[{\"path\":5,\"type\":\"a.Transformer\"}," POOLING "]", TEC_MALFORMED,
            "plain name");
    refused(MINI, file, "[{\"path\":\"none\",\"type\":\"a.Transformer\"}," POOLING "]",
            TEC_NOT_FOUND, "none");
}

/* The identity of the folder with one file's bytes changed at a place; NULL: as it is. */
static void identity_with(const char *name, const char *was, const char *becomes, uint64_t id[2])
{
    struct tec_encoder *e = NULL;
    make_dir(MINI);
    if (name) {
        static char bytes[1 << 20];
        char golden[256];
        snprintf(golden, sizeof golden, "%s/%s", MINI, name);
        FILE *f = fopen(golden, "rb");
        REQUIRE(f);
        size_t n = fread(bytes, 1, sizeof bytes, f);
        fclose(f);
        char *at = was ? memmem(bytes, n, was, strlen(was)) : bytes + n - 9;
        REQUIRE(n < sizeof bytes && at);
        memcpy(at, becomes, strlen(becomes));
        box_path(&box, name);
        f = fopen(box.path, "wb");
        REQUIRE(f && fwrite(bytes, 1, n, f) == n && fclose(f) == 0);
    }
    e = open_at(box.dir, 0, 0);
    CHECK(tec_encoder_identity(e, id, &err) == TEC_OK);
    close_all(e);
    box_remove(&box);
}

TEST(an_encoder_is_another_one_where_anything_of_it_is)
{
    /* The last weight; an epsilon; the pooling; a word; the limit. */
    static const struct {
        const char *name, *was, *becomes;
    } changes[] = {{"model.safetensors", NULL, "\1"},
                   {"config.json", "1e-12", "1e-11"},
                   {"1_Pooling/config.json",
                    "\"pooling_mode_cls_token\": false,\n  "
                    "\"pooling_mode_mean_tokens\": true",
                    "\"pooling_mode_cls_token\": true,\n  \"pooling_mode_mean_tokens\": false"},
                   {"tokenizer.json", "\"the\":", "\"thq\":"},
                   {"sentence_bert_config.json", "48", "47"}};
    enum { N = sizeof changes / sizeof changes[0] };
    uint64_t own[2], again[2], ids[N][2];
    identity_with(NULL, NULL, NULL, own);
    identity_with(NULL, NULL, NULL, again); /* a copy elsewhere is the same one */
    CHECK(memcmp(own, again, sizeof own) == 0 && (own[0] || own[1]));
    for (int i = 0; i < N; i++) {
        identity_with(changes[i].name, changes[i].was, changes[i].becomes, ids[i]);
        CHECK(memcmp(own, ids[i], sizeof own) != 0);
        for (int k = 0; k < i; k++)
            CHECK(memcmp(ids[k], ids[i], sizeof own) != 0);
    }
}

TEST(a_prompt_makes_another_encoder)
{
    uint64_t own[2], id[2];
    identity_with(NULL, NULL, NULL, own);
    make_dir(MINI);
    put("config_sentence_transformers.json",
        "{\"prompts\":{\"q\":\"query: \"},\"default_prompt_name\":\"q\"}");
    struct tec_encoder *e = open_at(box.dir, 0, 0);
    CHECK(tec_encoder_identity(e, id, &err) == TEC_OK);
    CHECK(memcmp(own, id, sizeof own) != 0);
    CHECK(strcmp(tec_encoder_prompt(e), "query: ") == 0);
    CHECK(strcmp(tec_encoder_pooling(e), "mean") == 0);
    close_all(e);
    box_remove(&box);
}

static void pooling(const char *text, enum tec_status status, const char *says)
{
    struct tec_encoder *e = NULL;
    make_dir(MINI);
    put("1_Pooling/config.json", text);
    CHECK_INT(try_open(&e, box.dir, 0, 0), ==, status);
    if (status != TEC_OK)
        CHECK(strstr(err.message, says) != NULL);
    tec_encoder_close(e);
    CHECK_INT(heap.live, ==, 0);
    box_remove(&box);
}

TEST(poolings)
{
    pooling("{\"pooling_mode_mean_tokens\":true}", TEC_OK, "");
    pooling("{\"pooling_mode\":\"mean\",\"embedding_dimension\":64}", TEC_OK, "");
    pooling(NULL, TEC_NOT_FOUND, "1_Pooling/config.json");
    pooling("[]", TEC_MALFORMED, "not an object");
    pooling("{\"pooling_mode\":\"cls\"}", TEC_OK, "");
    pooling("{\"pooling_mode_lasttoken\":true,\"pooling_mode_max_tokens\":false}", TEC_OK, "");
    pooling("{}", TEC_UNSUPPORTED, "no pooling is on");
    pooling("{\"pooling_mode_mean_tokens\":false}", TEC_UNSUPPORTED, "no pooling is on");
    pooling("{\"pooling_mode_mean_tokens\":1}", TEC_MALFORMED, "must be true or false");
    pooling("{\"pooling_mode\":\"max\"}", TEC_UNSUPPORTED, "pooling 'max'");
    pooling("{\"pooling_mode\":[\"cls\"]}", TEC_UNSUPPORTED, "one word");
    pooling("{\"pooling_mode_mean_sqrt_len_tokens\":true}", TEC_UNSUPPORTED,
            "pooling 'pooling_mode_mean_sqrt_len_tokens'");
    pooling("{\"pooling_mode_mean_tokens\":true,\"pooling_mode_cls_token\":true}", TEC_UNSUPPORTED,
            "a second pooling");
    pooling("{\"pooling_mode_mean_tokens\":true,\"word_embedding_dimension\":65}", TEC_MALFORMED,
            "of 65 numbers");
    pooling("{\"pooling_mode_mean_tokens\":true,\"word_embedding_dimension\":-1}", TEC_MALFORMED,
            "word_embedding_dimension");
}

TEST(limits_that_cannot_be)
{
    static const char file[] = "sentence_bert_config.json";
    refused(MINI, file, "{\"max_seq_length\":65}", TEC_MALFORMED, "positions for 64");
    refused(WIDE, file, "{\"max_seq_length\":189}", TEC_MALFORMED, "positions for 188");
    refused(MINI, file, "{\"max_seq_length\":0}", TEC_MALFORMED, "max_seq_length");
    refused(MINI, file, "{\"max_seq_length\":1e9}", TEC_MALFORMED, "max_seq_length");
    refused(MINI, file, "{\"max_seq_length\":99999999999999}", TEC_MALFORMED, "max_seq_length");
    refused(MINI, file, "{\"max_seq_length\":2}", TEC_UNSUPPORTED, "2 tokens stand around");
    refused(MINI, file, "{\"max_seq_length\":16,\"do_lower_case\":true}", TEC_UNSUPPORTED,
            "do_lower_case");
    refused(MINI, file, "{\"modality_config\":{\"text\":{\"method_output_name\":\"logits\"}}}",
            TEC_UNSUPPORTED, "'logits'");
    refused(MINI, file, "nonsense", TEC_MALFORMED, file);
}

TEST(a_directory_without_a_limit_has_the_models)
{
    make_dir(WIDE);
    put("sentence_bert_config.json", NULL);
    struct tec_encoder *e = open_at(box.dir, 0, 0);
    CHECK_INT(tec_encoder_tokens(e), ==, 188);
    close_all(e);
    put("sentence_bert_config.json", "{\"max_seq_length\":null}");
    e = open_at(box.dir, 0, 0);
    CHECK_INT(tec_encoder_tokens(e), ==, 188);
    close_all(e);
    box_remove(&box);
}

TEST(a_directory_without_a_limit_may_have_the_tokenizers)
{
    static const struct {
        const char *limit;
        int tokens;
    } of[] = {{"40", 40}, {"1000000000000000019884624838656", 188}, {"500", 188}, {"null", 188}};
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
        char text[128];
        make_dir(WIDE);
        put("sentence_bert_config.json", "{}");
        snprintf(text, sizeof text, "{\"model_max_length\":%s}", of[i].limit);
        put("tokenizer_config.json", text);
        struct tec_encoder *e = open_at(box.dir, 0, 0);
        CHECK_INT(tec_encoder_tokens(e), ==, of[i].tokens);
        close_all(e);
        box_remove(&box);
    }
}

TEST(a_prompt_of_the_directory_stands_before_every_text)
{
    static const char file[] = "config_sentence_transformers.json";
    static const char said[] = "{\"default_prompt_name\":\"q\",\"prompts\":{\"q\":\"find: \"}}";
    struct tec_encoder_text whole = text_of("find: a mug"), rest = text_of("a mug");
    float v[2][64];
    make_dir(MINI);
    put(file, "{\"default_prompt_name\":null,\"prompts\":{\"q\":\"find: \"}}");
    struct tec_encoder *e = open_at(box.dir, 0, 0);
    REQUIRE(tec_encoder_embed(e, &whole, 1, v[0], &err) == TEC_OK);
    close_all(e);
    put(file, said);
    e = open_at(box.dir, 0, 0);
    REQUIRE(tec_encoder_embed(e, &rest, 1, v[1], &err) == TEC_OK);
    CHECK(memcmp(v[0], v[1], sizeof v[0]) == 0);
    close_all(e);
    box_remove(&box);
    refused(MINI, file, "{\"default_prompt_name\":\"q\",\"prompts\":{}}", TEC_MALFORMED,
            "'q' is none of its prompts");
    refused(MINI, file, "[]", TEC_MALFORMED, file);
    make_dir(MINI);
    put(file, said);
    put("1_Pooling/config.json", "{\"pooling_mode\":\"mean\",\"include_prompt\":false}");
    CHECK_INT(try_open(&e, box.dir, 0, 0), ==, TEC_UNSUPPORTED);
    CHECK(strstr(err.message, "include_prompt") != NULL);
    CHECK_INT(heap.live, ==, 0);
    box_remove(&box);
}

TEST(vectors_without_a_length_of_one)
{
    struct tec_encoder_text a = text_of("put the mug down");
    float v[64], unit[64];
    make_dir(MINI);
    put("modules.json", "[" TRANSFORMER "," POOLING "]");
    struct tec_encoder *e = open_at(box.dir, 0, 0);
    REQUIRE(tec_encoder_embed(e, &a, 1, v, &err) == TEC_OK);
    close_all(e);
    box_remove(&box);
    e = open_at(MINI, 0, 0);
    REQUIRE(tec_encoder_embed(e, &a, 1, unit, &err) == TEC_OK);
    double length = length_of(v, 64);
    CHECK(length > 2);
    for (int i = 0; i < 64; i++)
        CHECK(fabs((double)v[i] / length - (double)unit[i]) < 1e-6);
    close_all(e);
}

#define CONFIG(more)                                                                           \
    "{\"model_type\":\"bert\",\"hidden_size\":64,\"num_hidden_layers\":2,\"vocab_size\":1200," \
    "\"num_attention_heads\":4,\"intermediate_size\":128,\"max_position_embeddings\":64" more "}"

TEST(configurations_that_do_not_fit)
{
    static const char file[] = "config.json";
    refused(MINI, file, "{\"model_type\":\"qwen2\"}", TEC_UNSUPPORTED, "it is no encoder");
    refused(MINI, file, "{\"model_type\":\"other\"}", TEC_NOT_FOUND, "no model description");
    refused(MINI, file, CONFIG(",\"hidden_act\":\"relu\""), TEC_POLICY, "hidden_act");
    refused(MINI, file, CONFIG(",\"position_embedding_type\":\"relative_key\""), TEC_POLICY,
            "position_embedding_type");
    refused(MINI, file, CONFIG(",\"type_vocab_size\":3"), TEC_SHAPE, "token_type");
    refused(MINI, file, CONFIG(",\"type_vocab_size\":0"), TEC_POLICY, "type_vocab_size");
    refused(MINI, file, CONFIG(",\"layer_norm_eps\":0"), TEC_POLICY,
            "config.json: layer_norm_eps: must be above 0 and below 1, is 0");
    refused(MINI, file, CONFIG(",\"layer_norm_eps\":1e300"), TEC_POLICY, "layer_norm_eps");
    refused(MINI, file, CONFIG(",\"is_decoder\":true"), TEC_POLICY,
            "config.json: is_decoder: true is not supported");
    refused(MINI, file,
            "{\"model_type\":\"roberta\",\"max_position_embeddings\":64,\"pad_token_id\":63}",
            TEC_POLICY, "config.json: pad_token_id: must be a whole number below 63");
    refused(MINI, "tokenizer.json", "{}", TEC_UNSUPPORTED, "tokenizer.json");
    refused(MINI, "model.safetensors", "short", TEC_MALFORMED, "model.safetensors");
    refused(WIDE, file,
            "{\"model_type\":\"mpnet\",\"hidden_size\":72,\"num_hidden_layers\":3,"
            "\"vocab_size\":1205,\"num_attention_heads\":3,\"intermediate_size\":100,"
            "\"max_position_embeddings\":190,\"relative_attention_num_buckets\":16}",
            TEC_MALFORMED, "relative");
    refused(WIDE, file,
            "{\"model_type\":\"mpnet\",\"hidden_size\":72,\"num_hidden_layers\":3,"
            "\"vocab_size\":1205,\"num_attention_heads\":3,\"intermediate_size\":100,"
            "\"max_position_embeddings\":2}",
            TEC_MALFORMED, "position");
}

/* The tensors of an encoder once more: as bf16, or rounded to it and float32; with a prefix before
 * their names; `bad`: the first number of the one of that name is infinite. */
static void write_tensors(const char *from, const char *prefix, bool bf16, const char *bad)
{
    struct tec_tensors *t = NULL;
    struct tec_arena arena;
    char path[300];
    tec_arena_init(&arena, &heap);
    snprintf(path, sizeof path, "%s/model.safetensors", from);
    REQUIRE(tec_tensors_open(&t, path, &heap, &err) == TEC_OK);
    size_t n = tec_tensors_count(t), kept = 0;
    struct tec_tensor_entry *entries = TEC_NEW(&arena, n, struct tec_tensor_entry);
    for (size_t i = 0; i < n; i++) {
        const struct tec_stored *s = tec_tensors_at(t, i);
        size_t count = (size_t)tec_stored_count(s);
        float *wide = TEC_NEW(&arena, count, float);
        uint16_t *half = TEC_NEW(&arena, count, uint16_t);
        if (s->dtype != TEC_F32)
            continue;
        REQUIRE(tec_tensors_read_f32(t, s, 0, wide, count, &err) == TEC_OK);
        for (size_t k = 0; k < count; k++) {
            half[k] = tec_f32_to_bf16(wide[k]);
            wide[k] = tec_bf16_to_f32(half[k]);
        }
        if (bad && strcmp(bad, s->name) == 0)
            wide[0] = INFINITY;
        struct tec_tensor_entry *e = &entries[kept++];
        *e = (struct tec_tensor_entry){.name = tec_arena_printf(&arena, "%s%s", prefix, s->name),
                                       .dtype = bf16 ? TEC_BF16 : TEC_F32,
                                       .rank = s->rank,
                                       .data = bf16 ? (const void *)half : wide};
        for (int d = 0; d < s->rank; d++)
            e->shape[d] = s->shape[d];
    }
    box_path(&box, "model.safetensors");
    REQUIRE(tec_tensors_write(box.path, entries, kept, &heap, &err) == TEC_OK);
    tec_tensors_close(t);
    tec_arena_finish(&arena);
}

static void embed_written(const char *from, const char *prefix, bool bf16, float v[WIDTH])
{
    struct tec_encoder_text a = text_of("put the mug down");
    make_dir(from);
    write_tensors(from, prefix, bf16, NULL);
    struct tec_encoder *e = open_at(box.dir, 0, 0);
    REQUIRE(tec_encoder_embed(e, &a, 1, v, &err) == TEC_OK);
    close_all(e);
    box_remove(&box);
}

TEST(names_with_a_prefix_and_tensors_of_16_bits)
{
    static const struct {
        const char *from, *prefix;
    } kinds[] = {{MINI, "bert."}, {WIDE, "mpnet."}};
    for (int i = 0; i < 2; i++) {
        float plain[WIDTH] = {0}, other[WIDTH] = {0};
        embed_written(kinds[i].from, "", false, plain);
        CHECK(length_of(plain, WIDTH) > 0.99);
        embed_written(kinds[i].from, kinds[i].prefix, false, other);
        CHECK(memcmp(plain, other, sizeof plain) == 0);
        embed_written(kinds[i].from, "", true, other);
        CHECK(memcmp(plain, other, sizeof plain) == 0);
    }
}

TEST(numbers_that_are_not_finite_are_named)
{
    static const char *const names[] = {"encoder.relative_attention_bias.weight",
                                        "embeddings.position_embeddings.weight",
                                        "embeddings.LayerNorm.bias"};
    for (int i = 0; i < 3; i++) {
        struct tec_encoder *e = NULL;
        make_dir(WIDE);
        write_tensors(WIDE, "", false, names[i]);
        CHECK_INT(try_open(&e, box.dir, 0, 0), ==, TEC_MALFORMED);
        CHECK(strstr(err.message, names[i]) != NULL);
        CHECK_INT(heap.live, ==, 0);
        box_remove(&box);
    }
}

TEST(a_model_that_decodes_is_no_encoder)
{
    struct tec_encoder *e = NULL;
    CHECK_INT(try_open(&e, "tests/golden/qwen/tiny/checkpoint", 0, 0), ==, TEC_NOT_FOUND);
    CHECK(!tec_encoder_directory_is("tests/golden/qwen/tiny/checkpoint"));
    CHECK(tec_encoder_directory_is(MINI));
    CHECK_INT(heap.live, ==, 0);
}

TEST(no_memory_anywhere_leaves_nothing)
{
    struct tec_encoder *e = NULL;
    int n = 0;
    for (bool done = false; !done && n < 20000; n += n < 60 ? 1 : 37) {
        heap.fail_at = heap.calls + n + 1;
        enum tec_status status = try_open(&e, MINI, 0, 0);
        heap.fail_at = 0;
        done = status == TEC_OK;
        CHECK(done || status == TEC_NO_MEMORY || status == TEC_NOT_FOUND);
        if (done)
            tec_encoder_close(e);
        CHECK_INT(heap.live, ==, 0);
    }
    CHECK(n > 20 && n < 20000);
}

TAP_MAIN
