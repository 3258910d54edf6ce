/* safety.c - tests of what a server tells of a stop: each stop and its end once, however seldom
 * somebody looks. */
#include "tools/serve/safety.h"

#include "tests/tap.h"

#include <string.h>

static struct tec_safety safety;
static struct tec_safety_log told;
static char text[640];
static const struct tec_safety_stop late = {
    .limit = 3, .node = "act", .number = 12, .client = 4, .session = "left arm"};

static const char *said(void)
{
    text[0] = '\0';
    tec_safety_tell(&safety, &told, 0, "serve", text, sizeof text);
    return strstr(text, "is stopped") ? "stopped" : strstr(text, "was reset") ? "reset" : text;
}

TEST(a_stop_that_was_reset_before_anybody_looked_is_told)
{
    CHECK_STR(said(), "");
    tec_safety_stop(&safety, &late);
    tec_safety_reset(&safety);
    CHECK_STR(said(), "stopped");
    CHECK_STR(said(), "reset");
    CHECK_STR(said(), "");
}

TEST(a_stop_is_told_once)
{
    tec_safety_stop(&safety, &late);
    CHECK_STR(said(), "stopped");
    tec_safety_stop(&safety, &late);
    CHECK_STR(said(), "");
    tec_safety_reset(&safety);
    tec_safety_stop(&safety, &late); /* stopped again before anybody looked */
    CHECK_STR(said(), "");
    tec_safety_reset(&safety);
    CHECK_STR(said(), "reset");
    CHECK_STR(said(), "");
}

TEST(a_stop_says_whose_it_was_and_why)
{
    static struct tec_safety s;
    struct tec_safety_log log = {0};
    const struct tec_safety_stop other = {.why = TEC_STOP_LIMITS, .node = "move", .client = 5};
    tec_safety_stop(&s, &late);
    tec_safety_stop(&s, &other); /* it holds already */
    tec_safety_leave(&s, 5);
    tec_safety_tell(&s, &log, 0, "serve", text, sizeof text);
    CHECK_STR(strstr(text, "`: "),
              "`: 'act' had no actions of its own 4 times in a row, limit = 3: the last was not "
              "there in time, request 12 of connection 4 (session left arm)\n");
    tec_safety_reset(&s);
    tec_safety_tell(&s, &log, 0, "serve", text, sizeof text);
    tec_safety_stop(&s, &other);
    tec_safety_leave(&s, 5);
    tec_safety_tell(&s, &log, 0, "serve", text, sizeof text);
    CHECK_STR(strstr(text, "`: "), "`: 'move' was beyond the robot's limits, which stops it, "
                                   "request 0 of connection 5, which has left\n");
}

TAP_MAIN
