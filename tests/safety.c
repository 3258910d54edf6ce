/* safety.c - tests of what a server tells of a stop: each stop and its end once, however seldom
 * somebody looks. */
#include "tools/serve/safety.h"

#include "tests/tap.h"

#include <string.h>

static struct tec_safety safety;
static struct tec_safety_log told;
static char text[256];

static const char *said(void)
{
    text[0] = '\0';
    tec_safety_tell(&safety, &told, 0, "serve", text, sizeof text);
    return strstr(text, "is stopped") ? "stopped" : strstr(text, "was reset") ? "reset" : text;
}

TEST(a_stop_that_was_reset_before_anybody_looked_is_told)
{
    CHECK_STR(said(), "");
    tec_safety_stop(&safety);
    tec_safety_reset(&safety);
    CHECK_STR(said(), "stopped");
    CHECK_STR(said(), "reset");
    CHECK_STR(said(), "");
}

TEST(a_stop_is_told_once)
{
    tec_safety_stop(&safety);
    CHECK_STR(said(), "stopped");
    tec_safety_stop(&safety);
    CHECK_STR(said(), "");
    tec_safety_reset(&safety);
    tec_safety_stop(&safety); /* stopped again before anybody looked */
    CHECK_STR(said(), "");
    tec_safety_reset(&safety);
    CHECK_STR(said(), "reset");
    CHECK_STR(said(), "");
}

TAP_MAIN
