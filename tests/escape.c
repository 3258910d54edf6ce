/* escape.c - text from outside becomes one line of plain UTF-8, in messages too. */
#include "base/escape.h"
#include "base/error.h"
#include "base/json_text.h"
#include "tests/tap.h"

#include <stdlib.h>

static const struct {
    const char *text, *shown;
} cases[] = {
    {"", ""},
    {"plain \\ \"text\"", "plain \\ \"text\""},
    {"\xc3\xa9 \xe6\x97\xa5 \xf0\x9f\xa4\x96", "\xc3\xa9 \xe6\x97\xa5 \xf0\x9f\xa4\x96"},
    {"\x1b[31mred\x07", "\\x1b[31mred\\x07"},
    {"a\nb\rc\td", "a\\nb\\rc\\td"},
    {"\x01\x1f\x7f", "\\x01\\x1f\\x7f"},
    {"\xc2\x80\xc2\x9b\xc2\x9f", "\\u0080\\u009b\\u009f"}, /* C1: CSI in one character */
    {"\xc2\xa0", "\xc2\xa0"},
    {"a\xe2\x80\xae"
     "b\xe2\x81\xa6\xe2\x81\xa9\xe2\x80\x8f\xd8\x9c",
     "a\\u202eb\\u2066\\u2069\\u200f\\u061c"},
    {"\xe2\x80\xa8\xe2\x80\xa9", "\\u2028\\u2029"},
    {"\xff\xc3(\xe2\x80", "\\xff\\xc3(\\xe2\\x80"},        /* no UTF-8, cut UTF-8 */
    {"\xc0\x9b\xed\xa0\x80", "\\xc0\\x9b\\xed\\xa0\\x80"}, /* overlong, half a surrogate */
};
enum { N_CASES = sizeof cases / sizeof cases[0] };

TEST(what_is_no_text_is_shown_as_an_escape)
{
    char shown[200], again[200];
    for (int i = 0; i < N_CASES; i++) {
        CHECK_INT(tec_escape(shown, sizeof shown, cases[i].text), ==, strlen(cases[i].shown));
        CHECK_STR(shown, cases[i].shown);
        tec_escape(again, sizeof again, shown);
        CHECK_STR(again, shown);
    }
}

TEST(every_byte_gives_utf8_without_control_characters)
{
    bool all_plain = true;
    for (int a = 1; a < 256; a++)
        for (int b = 1; b < 256; b++) {
            char text[] = {(char)a, (char)b, 'x', '\0'}, shown[20];
            tec_escape(shown, sizeof shown, text);
            json_t *string = json_string(shown); /* NULL: no UTF-8 */
            bool plain = string != NULL;
            for (const char *c = shown; *c; c++)
                plain &= (unsigned char)*c >= 0x20 && *c != 0x7f;
            json_decref(string);
            all_plain &= plain;
        }
    CHECK(all_plain);
}

TEST(what_does_not_fit_ends_after_a_whole_character)
{
    char shown[8];
    CHECK_INT(tec_escape(shown, 8, "abc\x1b[0m"), ==, 7);
    CHECK_STR(shown, "abc\\x1b");
    CHECK_INT(tec_escape(shown, 7, "abc\x1b[0m"), ==, 3);
    CHECK_STR(shown, "abc");
    CHECK_INT(tec_escape(shown, 3, "a\xe6\x97\xa5"), ==, 1);
    CHECK_INT(tec_escape(shown, 1, "abc"), ==, 0);
    CHECK_STR(shown, "");
}

TEST(a_stream_gets_the_same)
{
    for (int i = 0; i < N_CASES; i++) {
        char *text = NULL;
        size_t n = 0;
        FILE *f = open_memstream(&text, &n);
        REQUIRE(f);
        tec_escape_print(f, cases[i].text);
        fclose(f);
        CHECK_STR(text, cases[i].shown);
        free(text);
    }
}

TEST(messages_are_one_line_of_text)
{
    struct tec_error err;
    char far[500];
    tec_fail(&err, TEC_MALFORMED, "tensor '%s' is wrong", "a\x1b]0;title\x07\n\xff");
    CHECK_STR(err.message, "tensor 'a\\x1b]0;title\\x07\\n\\xff' is wrong");
    tec_context(&err, TEC_MALFORMED, "%s",
                "\xe2\x80\xae"
                "robot");
    CHECK_STR(err.message, "\\u202erobot: tensor 'a\\x1b]0;title\\x07\\n\\xff' is wrong");
    memset(far, '\x1b', sizeof far - 1);
    far[sizeof far - 1] = '\0';
    tec_fail(&err, TEC_MALFORMED, "%s", far);
    CHECK_INT(strlen(err.message), ==, 399); /* 99 escapes: cut between them */
    CHECK_STR(err.message + 392, "\\x1b...");
    far[0] = 'a';
    tec_fail(&err, TEC_MALFORMED, "%s", far);
    CHECK_INT(strlen(err.message), ==, 396);
    CHECK_STR(err.message + 389, "\\x1b...");
}

TEST(foreign_text_is_a_json_string)
{
    json_t *plain = tec_json_shown("\xc3\xa9\x1b"), *bytes = tec_json_shown("a\xff/b");
    CHECK_STR(json_string_value(plain), "\xc3\xa9\x1b"); /* JSON has its own escapes */
    CHECK_STR(json_string_value(bytes), "a\\xff/b");
    json_decref(plain);
    json_decref(bytes);
    CHECK(!tec_json_shown(NULL));
}

TEST(a_json_value_is_printed_whole_or_not)
{
    struct tec_error err;
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    json_t *json = json_pack("{s:s}", "a\x1b", "b");
    REQUIRE(f);
    CHECK_INT(tec_json_print(f, json, JSON_COMPACT, "a line", &err), ==, TEC_OK);
    CHECK_INT(tec_json_print(f, NULL, JSON_COMPACT, "a line", &err), ==, TEC_NO_MEMORY);
    CHECK_STR(err.message, "no memory for a line");
    fclose(f);
    CHECK_STR(text, "{\"a\\u001B\":\"b\"}\n");
    free(text);
    json_decref(json);
}

TAP_MAIN
