/* error.c - statuses have names and texts; messages are kept whole, or cut, never lost. */
#include "base/error.h"
#include "tests/tap.h"

static enum tec_status try_it(enum tec_status status, int *after)
{
    TEC_TRY(status);
    *after = 1;
    return TEC_OK;
}

TEST(fail_records_status_and_sentence)
{
    struct tec_error err = {TEC_OK, ""};
    CHECK_INT(tec_fail(&err, TEC_SHAPE, "w must be [%d], is [%d]", 8, 9), ==, TEC_SHAPE);
    CHECK_INT(err.status, ==, TEC_SHAPE);
    CHECK_STR(err.message, "w must be [8], is [9]");
}

TEST(an_error_may_be_absent)
{
    CHECK_INT(tec_fail(NULL, TEC_IO, "nobody reads this"), ==, TEC_IO);
    CHECK_INT(tec_context(NULL, TEC_IO, "nor this"), ==, TEC_IO);
}

TEST(context_is_put_in_front)
{
    struct tec_error err;
    tec_fail(&err, TEC_SHAPE, "w must be [8]");
    CHECK_INT(tec_context(&err, TEC_SHAPE, "node %s", "norm"), ==, TEC_SHAPE);
    tec_context(&err, TEC_SHAPE, "robot.lua");
    CHECK_STR(err.message, "robot.lua: node norm: w must be [8]");
    CHECK_INT(err.status, ==, TEC_SHAPE);
}

TEST(context_of_success_changes_nothing)
{
    struct tec_error err = {TEC_OK, "untouched"};
    CHECK_INT(tec_context(&err, TEC_OK, "node"), ==, TEC_OK);
    CHECK_STR(err.message, "untouched");
}

TEST(long_messages_are_cut_inside_the_buffer)
{
    struct {
        struct tec_error err;
        unsigned char fence[64];
    } guarded;
    memset(&guarded, 0x5a, sizeof guarded);
    char longer[1000];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    tec_fail(&guarded.err, TEC_INVALID, "%s", longer);
    CHECK_INT(strlen(guarded.err.message), ==, sizeof guarded.err.message - 1);
    for (int i = 0; i < 8; i++)
        tec_context(&guarded.err, TEC_INVALID, "%s", longer);
    CHECK_INT(strlen(guarded.err.message), ==, sizeof guarded.err.message - 1);
    tec_context(&guarded.err, TEC_INVALID, "where");
    CHECK(strncmp(guarded.err.message, "where: xxx", 10) == 0);
    for (size_t i = 0; i < sizeof guarded.fence; i++)
        REQUIRE(guarded.fence[i] == 0x5a);
}

TEST(every_status_has_a_name_and_a_text)
{
    static const char *const names[] = {
#define STATUS(name, text) #name,
#include "base/status.def"
#undef STATUS
    };
    int n = (int)(sizeof names / sizeof names[0]);
    for (int i = 0; i < n; i++) {
        CHECK_STR(tec_status_name((enum tec_status)i), names[i]);
        CHECK(tec_status_text((enum tec_status)i)[0] != '\0');
    }
    CHECK_STR(tec_status_name((enum tec_status)n), "UNKNOWN");
    CHECK_STR(tec_status_text((enum tec_status)n), "unknown status");
    CHECK_STR(tec_status_name((enum tec_status) - 1), "UNKNOWN");
}

TEST(try_returns_early_on_failure_only)
{
    int after = 0;
    CHECK_INT(try_it(TEC_TIME, &after), ==, TEC_TIME);
    CHECK_INT(after, ==, 0);
    CHECK_INT(try_it(TEC_OK, &after), ==, TEC_OK);
    CHECK_INT(after, ==, 1);
}

TEST(what_is_too_long_ends_between_two_words)
{
    struct tec_error err;
    char help[300], names[500] = "";
    memset(help, 'h', sizeof help);
    for (size_t i = 4; i < sizeof help; i += 5)
        help[i] = ' ';
    help[sizeof help - 1] = '\0';
    tec_fail(&err, TEC_IO, "gone.mcap: no such file");
    tec_context(&err, TEC_IO, "%s", help); /* longer than half of a message: all of it is there */
    CHECK(strncmp(err.message, help, sizeof help - 1) == 0);
    CHECK_STR(err.message + sizeof help - 1, ": gone.mcap: no such file");
    tec_context(&err, TEC_IO, "%s", help);
    size_t n = strlen(err.message);
    CHECK(n < sizeof err.message && n > sizeof err.message - 12);
    CHECK_STR(err.message + n - 8, "hhhh ...");
    for (size_t i = 0; i + 3 < sizeof names; i += 2)
        memcpy(names + i, "\xc3\xa4", 3);
    tec_fail(&err, TEC_IO, "%s", names); /* nor does it end within a character */
    n = strlen(err.message);
    CHECK_STR(err.message + n - 5, "\xc3\xa4...");
    CHECK_INT(n % 2, ==, 1);
}

/* A word of a length after which nothing but the points fits, whatever follows it. */
TEST(what_is_too_long_stays_in_its_room)
{
    struct tec_error err[2];
    char text[sizeof err[0].message + 20];
    for (size_t at = sizeof err[0].message - 80; at < sizeof err[0].message; at++) {
        memset(text, 'h', sizeof text);
        text[at] = ' ';
        text[sizeof text - 1] = '\0';
        err[1].status = TEC_IO;
        tec_fail(&err[0], TEC_IO, "%s", text);
        CHECK_INT(err[1].status, ==, TEC_IO);
        CHECK_INT(strnlen(err[0].message, sizeof err[0].message), <, sizeof err[0].message);
    }
}

TAP_MAIN
