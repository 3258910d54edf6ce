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
    tec_arena_init(&arena, &heap);
    json_t *templates = json(fields);
    REQUIRE(tec_template_parse(&t, templates, "t", "p.lua", &arena, &err) == TEC_OK);
    json_decref(templates);
    REQUIRE(tec_template_render(&out, &bytes, t, 0, text, n, bins, n_bins, &arena, &err) == TEC_OK);
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

TEST(bins_are_joined)
{
    static const int bins[] = {-1, 0, 255};
    CHECK_STR(render("{'t':{'calls':[{'text':'S {state};{text}{text}'}]}}", "a", 1, bins, 3),
              "S -1 0 255;aa");
    CHECK_STR(render("{'t':{'calls':[{'text':'S {state};'}]}}", "a", 1, NULL, 0), "S ;");
    /* Marks inside the instruction are text. */
    CHECK_STR(render(CLEAN, "{state} {text}", 14, bins, 3), "<{state} {text}>");
}

TEST(becomes_parts_of_a_prompt)
{
    struct tec_template *t = NULL;
    struct tec_prompt_template how;
    tec_arena_init(&arena, &heap);
    json_t *templates = json("{'t':{'clean':true,'calls':[{'text':'A {text}, {state};','bos':true},"
                             "{'text':'B'}]},"
                             "'line':{'ending':'\\n','calls':[{'text':'{text}'}]},"
                             "'odd':{'ending':'!','calls':[{'text':'{text}'}]},"
                             "'late':{'calls':[{'text':'a'},{'text':'b','bos':true}]}}");
    REQUIRE(tec_template_parse(&t, templates, "t", "p.lua", &arena, &err) == TEC_OK);
    REQUIRE(tec_template_prompt(&how, t, 9, 7, &arena, &err) == TEC_OK);
    REQUIRE(how.n_parts == 6);
    CHECK(how.bos && how.max_tokens == 9 && how.pad == 7);
    CHECK_STR(how.parts[0].text, "A ");
    CHECK(how.parts[1].kind == TEC_PROMPT_CLEAN && !how.parts[1].apart);
    CHECK_STR(how.parts[2].text, ", ");
    CHECK(how.parts[3].kind == TEC_PROMPT_STATE);
    CHECK_STR(how.parts[4].text, ";");
    CHECK_STR(how.parts[5].text, "B");
    CHECK(how.parts[5].apart);
    REQUIRE(tec_template_parse(&t, templates, "line", "p.lua", &arena, &err) == TEC_OK);
    REQUIRE(tec_template_prompt(&how, t, 9, 7, &arena, &err) == TEC_OK);
    CHECK(how.n_parts == 1 && how.parts[0].kind == TEC_PROMPT_LINE && !how.bos);
    REQUIRE(tec_template_parse(&t, templates, "odd", "p.lua", &arena, &err) == TEC_OK);
    CHECK(tec_template_prompt(&how, t, 9, 7, &arena, &err) == TEC_UNSUPPORTED);
    REQUIRE(tec_template_parse(&t, templates, "late", "p.lua", &arena, &err) == TEC_OK);
    CHECK(tec_template_prompt(&how, t, 9, 7, &arena, &err) == TEC_UNSUPPORTED);
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
        {"{'t':{'calls':[{'text':'{txt}'}]}}", "'{txt}': a call knows {text} and {state}"},
        {"{'t':{'calls':[{'text':'a}'}]}}", "a call knows"},
        {"{'t':{'calls':[{'txt':'a'}]}}", "t.calls[1]: unknown field 'txt'"},
        {"{'t':{'calls':[{'text':'a','bos':1}]}}", "'bos' must be true or false"},
        {"{'t':{'calls':[{'text':''}]}}", "not empty"},
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

TEST(shipped_templates_parse)
{
    static const char *const names[] = {"plain", "with_state", "as_it_is"};
    struct tec_template *t = NULL;
    json_t *templates = NULL;
    tec_arena_init(&arena, &heap);
    REQUIRE(tec_lua_read(&templates, "pipelines/models/prompts.lua", "pipelines/models", &heap,
                         &err) == TEC_OK);
    for (size_t i = 0; i < 3; i++) {
        CHECK(tec_template_parse(&t, templates, names[i], "prompts.lua", &arena, &err) == TEC_OK);
        CHECK(t->state == (i == 1));
    }
    json_decref(templates);
    tec_arena_finish(&arena);
    CHECK_INT(heap.live, ==, 0);
}

TAP_MAIN
