/* template.c - tests of prompt templates: cleaning, endings, bins and token ids, the strict parser,
 * and the shipped templates. */
#include "tests/transform.h"

#include "base/lua.h"
#include "graph/transform/template.h"

static struct tec_arena arena;

/* Render call 0 of {calls = [{text}]} with the fields `more`; the result is compared as a string.
 */
static const char *render(const char *fields, const char *text, size_t n, const int *bins,
                          int n_bins)
{
    static char copy[200];
    const char *out = NULL;
    struct tec_template *t = NULL;
    size_t bytes = 0;
    const struct tec_template_values values = {{{text, n, false}}, 1, bins, n_bins};
    tec_arena_init(&arena, &heap);
    json_t *templates = json(fields);
    REQUIRE(tec_template_parse(&t, templates, "t", "p.lua", &arena, &err) == TEC_OK);
    json_decref(templates);
    REQUIRE(tec_template_render(&out, &bytes, t, 0, &values, &arena, &err) == TEC_OK);
    snprintf(copy, sizeof copy, "%.*s", (int)bytes, out);
    tec_arena_finish(&arena);
    return copy;
}

#define CLEAN "{'t':{'clean':true,'calls':[{'text':'<{text}>'}]}}"
#define RAW "{'t':{'ending':'!','calls':[{'text':'{text}','bos':true}]}}"

static const char *clean(const char *text)
{
    return render(CLEAN, text, strlen(text), NULL, 0);
}

TEST(text_is_cleaned)
{
    CHECK_STR(clean("  put the red_mug on\nthe plate. "), "<put the red mug on the plate.>");
    CHECK_STR(clean(" \t\r\n\v\f"), "<>");
    CHECK_STR(clean(""), "<>");
    CHECK_STR(clean("_a_"), "< a >"); /* '_' is replaced after the ends are stripped */
    CHECK_STR(clean("a\tb"), "<a\tb>");
    CHECK_STR(clean("\xc2\xa0\xe2\x80\x83 a \xe3\x80\x80\xc2\x85\x1f"), "<a>");
    CHECK_STR(clean("\xe2\x80\x8b"
                    "a\xe2\x80\x8b"),
              "<\xe2\x80\x8b"
              "a\xe2\x80\x8b>");                /* a zero-width space is none */
    CHECK_STR(clean("\xc3\x85"), "<\xc3\x85>"); /* ends like U+0085, is a letter */
    CHECK_STR(clean("\xe3\x80"), "<\xe3\x80>"); /* cut short */
}

TEST(text_gets_its_ending_once)
{
    CHECK_STR(render(RAW, "go_", 3, NULL, 0), "go_!");
    CHECK_STR(render(RAW, "go!", 3, NULL, 0), "go!");
    CHECK_STR(render(RAW, "", 0, NULL, 0), "!");
}

TEST(several_texts_have_their_places)
{
    const struct tec_template_values values = {
        {{"a b", 3, false}, {"", 0, true}, {"c", 1, true}}, 3, NULL, 0};
    struct tec_template_values shorter = values;
    struct tec_template *t = NULL;
    const char *out = NULL;
    size_t n = 0;
    tec_arena_init(&arena, &heap);
    json_t *templates = json("{'all':{'ending':'!','calls':[{'text':'<{text}>'}]},"
                             "'each':{'calls':[{'text':'{text3},{text1}'}]},"
                             "'none':{'calls':[{'text':'go'}]}}");
    REQUIRE(tec_template_parse(&t, templates, "all", "p.lua", &arena, &err) == TEC_OK);
    REQUIRE(tec_template_render(&out, &n, t, 0, &values, &arena, &err) == TEC_OK);
    CHECK(n == 8 && memcmp(out, "<a b\nc!>", 8) == 0); /* an empty text is no line */
    CHECK(tec_template_misplaces(t, 1, &arena) == NULL && !tec_template_misplaces(t, 8, &arena));
    CHECK_STR(tec_template_misplaces(t, 0, &arena), "has {text}, but no text is read");
    REQUIRE(tec_template_parse(&t, templates, "each", "p.lua", &arena, &err) == TEC_OK);
    REQUIRE(tec_template_render(&out, &n, t, 0, &values, &arena, &err) == TEC_OK);
    CHECK(n == 5 && memcmp(out, "c,a b", 5) == 0);
    CHECK_STR(tec_template_misplaces(t, 2, &arena), "has {text3}, but 2 texts are read");
    CHECK_STR(tec_template_misplaces(t, 3, &arena),
              "has neither {text} nor {text2}, which is read");
    REQUIRE(tec_template_parse(&t, templates, "none", "p.lua", &arena, &err) == TEC_OK);
    CHECK(tec_template_misplaces(t, 0, &arena) == NULL);
    CHECK_STR(tec_template_misplaces(t, 1, &arena),
              "has neither {text} nor {text1}, which is read");
    REQUIRE(tec_template_cut(&shorter, 9, 8)); /* the last that may be, never the first */
    CHECK(shorter.texts[0].n == 3 && shorter.texts[2].n == 0);
    CHECK(!tec_template_cut(&shorter, 9, 8));
    json_decref(templates);
    tec_arena_finish(&arena);
}

TEST(bins_are_joined)
{
    static const int bins[] = {-1, 0, 255};
    CHECK_STR(render("{'t':{'calls':[{'text':'S {state};{text}{text}'}]}}", "a", 1, bins, 3),
              "S -1 0 255;aa");
    CHECK_STR(render("{'t':{'calls':[{'text':'S {state};'}]}}", "a", 1, NULL, 0), "S ;");
    /* Marks inside the instruction are text. */
    CHECK_STR(render(CLEAN, "{state} {text}", 14, bins, 3), "<{state} {text}>");
}

TEST(calls_are_encoded_apart)
{
    struct tec_template *t = NULL;
    struct tec_tokenizer *tokenizer = NULL;
    const struct tec_template_values values = {{{"a", 1, false}}, 1, NULL, 0};
    int ids[16], joined[16];
    size_t n = 0, n_joined = 0;
    tec_arena_init(&arena, &heap);
    json_t *templates = json("{'t':{'calls':[{'text':'{text}','bos':true},"
                             "{'text':'b','bos':true},{'text':'c'}]},"
                             "'joined':{'calls':[{'text':'b'}]}}");
    REQUIRE(tec_tokenizer_open(&tokenizer, "tests/golden/tokenizers/gemma_like/tokenizer.model",
                               &heap, &err) == TEC_OK);
    REQUIRE(tec_template_parse(&t, templates, "t", "p.lua", &arena, &err) == TEC_OK);
    REQUIRE(tec_template_encode(t, tokenizer, &values, ids, 16, &n, &arena, &err) == TEC_OK);
    REQUIRE(tec_template_parse(&t, templates, "joined", "p.lua", &arena, &err) == TEC_OK);
    REQUIRE(tec_template_encode(t, tokenizer, &values, joined, 16, &n_joined, &arena, &err) ==
            TEC_OK);
    CHECK_INT(n, ==, 5);
    CHECK_INT(n_joined, ==, 1);
    CHECK(ids[0] == tec_tokenizer_bos(tokenizer) && ids[2] == ids[0] && ids[3] == joined[0]);
    tec_tokenizer_close(tokenizer);
    json_decref(templates);
    tec_arena_finish(&arena);
}

/* One turn as it is published, encoded whole: newlines of the instruction may join the role's, but
 * what the instruction spells stays text. */
TEST(a_turn_is_encoded_as_published)
{
    static const char before[] =
        "<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are "
        "a helpful assistant.<|im_end|>\n<|im_start|>user\n";
    static const char after[] = "<|im_end|>\n<|im_start|>assistant\n";
    static const char *const texts[] = {"Hello", "\n\n put it down ", "", "<|im_end|>"};
    struct tec_template *t = NULL;
    struct tec_tokenizer *tokenizer = NULL;
    const struct tec_encode how = {0};
    json_t *templates = NULL;
    int ids[128], whole[128];
    size_t n = 0, n_whole = 0;
    char text[512];
    tec_arena_init(&arena, &heap);
    REQUIRE(tec_lua_read(&templates, "pipelines/models/prompts.lua", "pipelines/models", &heap,
                         &err) == TEC_OK);
    REQUIRE(tec_tokenizer_open(&tokenizer, "tests/golden/tokenizers/qwen_like/tokenizer.json",
                               &heap, &err) == TEC_OK);
    REQUIRE(tec_template_parse(&t, templates, "chatml", "p.lua", &arena, &err) == TEC_OK);
    int end = tec_tokenizer_id(tokenizer, "<|im_end|>", 10), ends = 0;
    for (int i = 0; i < 4; i++) {
        const struct tec_template_values values = {
            {{texts[i], strlen(texts[i]), false}}, 1, NULL, 0};
        snprintf(text, sizeof text, "%s%s%s", before, texts[i], after);
        REQUIRE(tec_template_encode(t, tokenizer, &values, ids, 128, &n, &arena, &err) == TEC_OK);
        REQUIRE(tec_tokenizer_encode(tokenizer, text, strlen(text), how, whole, 128, &n_whole,
                                     &arena, &err) == TEC_OK);
        if (i < 3)
            CHECK(n == n_whole && n <= 128 && memcmp(ids, whole, n * sizeof *ids) == 0);
    }
    for (size_t i = 0; i < n; i++)
        ends += ids[i] == end;
    CHECK(end >= 0 && n > n_whole && ends == 2);
    tec_tokenizer_close(tokenizer);
    json_decref(templates);
    tec_arena_finish(&arena);
}

TEST(text_in_lower_case)
{
    CHECK_STR(render("{'t':{'lower':true,'calls':[{'text':'To {text}?'}]}}", "Wipe CAF\xc3\x89", 10,
                     NULL, 0),
              "To wipe caf\xc3\xa9?");
    CHECK_STR(render("{'t':{'lower':true,'clean':true,'ending':'!','calls':[{'text':'{text}'}]}}",
                     " GO_On ", 7, NULL, 0),
              "go on!");
    CHECK_STR(render("{'t':{'lower':true,'calls':[{'text':'{text}'}]}}", "", 0, NULL, 0), "");
}

/* A piece that must come last is added once, and it is counted if it does not fit. */
/* As Python's re.sub(r"[^\w\s]", "", text) has it. */
TEST(text_without_punctuation)
{
    static const char *const words =
        "{'t':{'lower':true,'words':true,'calls':[{'text':'{text}'}]}}";
    CHECK_STR(render(words, "Pick up Cup_2, please!", 22, NULL, 0), "pick up cup_2 please");
    CHECK_STR(render(words, "caf\xc3\xa9\xc2\xb2 \xe2\x82\xac 5\n\t\x1c-", 17, NULL, 0),
              "caf\xc3\xa9\xc2\xb2  5\n\t\x1c");
    CHECK_STR(render(words, "e\xcc\x81", 3, NULL, 0), "e"); /* a mark is none of \w */
    CHECK_STR(render(words, "?", 1, NULL, 0), "");
}

TEST(ids_get_their_last_piece_once)
{
    struct tec_template *t = NULL;
    struct tec_tokenizer *tokenizer = NULL;
    const struct tec_template_values a = {{{"a", 1, false}}, 1, NULL, 0},
                                     space = {{{"a ", 2, false}}, 1, NULL, 0};
    int ids[16] = {0}, piece;
    size_t n = 0, m = 0;
    tec_arena_init(&arena, &heap);
    json_t *templates = json("{'t':{'ending_piece':'\xe2\x96\x81','calls':[{'text':'{text}'}]},"
                             "'u':{'ending_piece':'no such','calls':[{'text':'{text}'}]}}");
    REQUIRE(tec_tokenizer_open(&tokenizer, "tests/golden/openvla/tiny/checkpoint/tokenizer.model",
                               &heap, &err) == TEC_OK);
    piece = tec_tokenizer_id(tokenizer, "\xe2\x96\x81", 3);
    CHECK(piece >= 0);
    REQUIRE(tec_template_parse(&t, templates, "t", "p.lua", &arena, &err) == TEC_OK);
    REQUIRE(tec_template_encode(t, tokenizer, &a, ids, 16, &n, &arena, &err) == TEC_OK);
    CHECK(n >= 2 && ids[n - 1] == piece && ids[n - 2] != piece);
    REQUIRE(tec_template_encode(t, tokenizer, &space, ids, 16, &m, &arena, &err) == TEC_OK);
    CHECK(m >= 2 && ids[m - 1] == piece && ids[m - 2] != piece); /* it was there */
    REQUIRE(tec_template_encode(t, tokenizer, &a, ids, n - 1, &m, &arena, &err) == TEC_OK);
    CHECK_INT(m, ==, n);
    REQUIRE(tec_template_encode(t, tokenizer, &a, NULL, 0, &m, &arena, &err) == TEC_OK);
    CHECK_INT(m, ==, n);
    REQUIRE(tec_template_parse(&t, templates, "u", "p.lua", &arena, &err) == TEC_OK);
    CHECK(tec_template_encode(t, tokenizer, &a, ids, 16, &n, &arena, &err) == TEC_INVALID);
    CHECK_SAYS("prompt 'u': the tokenizer has no piece 'no such'");
    tec_tokenizer_close(tokenizer);
    json_decref(templates);
    tec_arena_finish(&arena);
}

TEST(templates_are_strict)
{
    static const struct {
        const char *fields, *says;
    } bad[] = {
        {"{'tt':{}}", "p.lua: no prompt template 't'; did you mean 'tt'?"},
        {"{'t':{}}", "p.lua: t: field 'calls' is missing"},
        {"{'t':{'calls':[]}}", "at least one text"},
        {"{'t':{'calls':[{'text':'{txt}'}]}}",
         "'{txt}': a call knows {text}, {text1} to {text8} and {state}"},
        {"{'t':{'calls':[{'text':'a}'}]}}", "a call knows"},
        {"{'t':{'calls':[{'txt':'a'}]}}", "t.calls[1]: unknown field 'txt'"},
        {"{'t':{'calls':[{'text':'a','bos':1}]}}", "'bos' must be true or false"},
        {"{'t':{'calls':[{'text':''}]}}", "not empty"},
        {"{'t':{'lower':1,'calls':[{'text':'a'}]}}", "'lower' must be true or false"},
        {"{'t':{'ending_piece':'','calls':[{'text':'a'}]}}", "not empty"},
        {"{'t':[1]}", "must be a table of named fields"},
    };
    struct tec_template *t = NULL;
    tec_arena_init(&arena, &heap);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        json_t *templates = json(bad[i].fields);
        CHECK(tec_template_parse(&t, templates, "t", "p.lua", &arena, &err) != TEC_OK);
        CHECK_SAYS(bad[i].says);
        json_decref(templates);
    }
    tec_arena_finish(&arena);
}

/* Recorded from transformers with the template of Qwen3-VL (tests/fixtures/make_qwen3_vl_chat.py).
 */
TEST(chats_of_pictures_are_those_of_transformers)
{
    enum { ROOM = 256 };
    struct tec_template *t = NULL;
    struct tec_tokenizer *tokenizer = NULL;
    json_t *templates = NULL, *one;
    json_t *cases = json_load_file("tests/fixtures/groot/qwen3_vl_chat.json", 0, NULL);
    size_t i, k;
    int ids[ROOM];
    char name[32];
    tec_arena_init(&arena, &heap);
    REQUIRE(json_array_size(cases) == 20);
    REQUIRE(tec_lua_read(&templates, "pipelines/models/prompts.lua", "pipelines/models", &heap,
                         &err) == TEC_OK);
    REQUIRE(tec_tokenizer_open(&tokenizer, "tests/golden/groot/prepost/eagle_tiny", &heap, &err) ==
            TEC_OK);
    json_array_foreach(cases, i, one)
    {
        const json_t *task = json_object_get(one, "task"), *want = json_object_get(one, "ids");
        const struct tec_template_values values = {
            {{json_string_value(task), json_string_length(task), false}}, 1, NULL, 0};
        size_t n = 0, same = 0;
        snprintf(name, sizeof name, "qwen3_vl%s%d",
                 json_is_true(json_object_get(one, "words")) ? "_words" : "",
                 (int)json_integer_value(json_object_get(one, "pictures")));
        REQUIRE(tec_template_parse(&t, templates, name, "p.lua", &arena, &err) == TEC_OK);
        REQUIRE(tec_template_encode(t, tokenizer, &values, ids, ROOM, &n, &arena, &err) == TEC_OK);
        for (k = 0; k < n && k < ROOM; k++)
            same += ids[k] == (int)json_integer_value(json_array_get(want, k));
        CHECK_INT(n, ==, json_array_size(want));
        CHECK_INT(same, ==, n);
    }
    json_decref(cases);
    json_decref(templates);
    tec_tokenizer_close(tokenizer);
    tec_arena_finish(&arena);
    CHECK_INT(heap.live, ==, 0);
}

TEST(shipped_templates_parse)
{
    static const char *const names[] = {"plain", "with_state", "as_it_is", "openvla", "chatml"};
    struct tec_template *t = NULL;
    json_t *templates = NULL;
    tec_arena_init(&arena, &heap);
    REQUIRE(tec_lua_read(&templates, "pipelines/models/prompts.lua", "pipelines/models", &heap,
                         &err) == TEC_OK);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        CHECK(tec_template_parse(&t, templates, names[i], "prompts.lua", &arena, &err) == TEC_OK);
        CHECK(t->state == (i == 1));
    }
    json_decref(templates);
    tec_arena_finish(&arena);
    CHECK_INT(heap.live, ==, 0);
}

TAP_MAIN
