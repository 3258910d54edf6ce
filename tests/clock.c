/* clock.c - time never goes back; a fake clock is moved by hand. */
#include "base/clock.h"
#include "tests/tap.h"

TEST(real_time_never_goes_back)
{
    const struct tec_clock clock = {NULL};
    int64_t last = tec_clock_now(&clock);
    CHECK_INT(last, >, 0);
    for (int i = 0; i < 100000; i++) {
        int64_t now = tec_clock_now(&clock);
        REQUIRE(now >= last);
        last = now;
    }
}

TEST(a_real_wait_ends_late_not_early)
{
    const struct tec_clock clock = {NULL};
    int64_t start = tec_clock_now(&clock), until = start + 3000000;
    tec_clock_wait(&clock, until);
    CHECK_INT(tec_clock_now(&clock), >=, until);
}

TEST(a_wait_for_the_past_returns_at_once)
{
    const struct tec_clock clock = {NULL};
    int64_t start = tec_clock_now(&clock);
    tec_clock_wait(&clock, start - 1000000000);
    tec_clock_wait(&clock, 0);
    tec_clock_wait(&clock, INT64_MIN);
    CHECK_INT(tec_clock_now(&clock) - start, <, 1000000000);
}

TEST(a_fake_clock_is_a_variable)
{
    int64_t ns = 1000;
    const struct tec_clock clock = {&ns};
    CHECK_INT(tec_clock_now(&clock), ==, 1000);
    tec_clock_wait(&clock, 5000);
    CHECK_INT(ns, ==, 5000);
    tec_clock_wait(&clock, 4000);
    CHECK_INT(ns, ==, 5000);
    ns = 7;
    CHECK_INT(tec_clock_now(&clock), ==, 7);
}

TAP_MAIN
