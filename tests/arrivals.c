/* arrivals.c - generators of requests: what they draw, and what a specification may say. */
#include "tools/measure/arrivals.h"

#include "tests/tap.h"

#include <math.h>
#include <stdlib.h>

static struct tec_arrival out[TEC_MAX_ARRIVALS];

static struct tec_arrivals parsed(const char *text)
{
    struct tec_arrivals a;
    struct tec_error err = {0};
    if (tec_arrivals_parse(&a, text, 30, 7, &err) != TEC_OK)
        fprintf(stderr, "# %s\n", err.message);
    REQUIRE(err.status == TEC_OK);
    return a;
}

/* The numbers of frames 0 to 7, as digits. */
static void counts(const char *text, char digits[9])
{
    struct tec_arrivals a = parsed(text);
    for (int f = 0; f < 8; f++)
        digits[f] = (char)('0' + tec_arrivals_at(&a, f, out));
    digits[8] = '\0';
}

TEST(uniform_arrivals_are_evenly_spread)
{
    static const struct {
        const char *text, *digits;
    } cases[] = {
        {"uniform:1", "11111111"},   {"uniform:0.25", "44444444"}, {"uniform:0.5", "22222222"},
        {"uniform:2", "10101010"},   {"uniform:4", "10001000"},    {"uniform:0.4", "32323232"},
        {"uniform:1.5", "11011011"}, {"uniform:0.1", "::::::::"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char digits[9];
        counts(cases[i].text, digits);
        CHECK_STR(digits, cases[i].digits);
    }
}

TEST(no_uniform_arrival_is_lost_over_a_long_time)
{
    static const char *const texts[] = {"uniform:0.3", "uniform:0.7", "uniform:3", "uniform:0.1"};
    static const int wanted[] = {100000, 42858, 10000, 300000};
    for (size_t t = 0; t < 4; t++) {
        struct tec_arrivals a = parsed(texts[t]);
        int total = 0;
        for (int f = 0; f < 30000; f++)
            total += tec_arrivals_at(&a, f, out);
        CHECK_INT(total, ==, wanted[t]);
    }
}

TEST(bursts_come_at_once)
{
    char digits[9];
    counts("bursty:6,3", digits);
    CHECK_STR(digits, "60060060");
    struct tec_arrivals a = parsed("bursty:6,10");
    int total = 0;
    for (int f = 0; f < 1000; f++)
        total += tec_arrivals_at(&a, f, out);
    CHECK_INT(total, ==, 600);
}

TEST(poisson_has_the_distribution_it_is_named_after)
{
    enum { FRAMES = 100000 };
    struct tec_arrivals a = parsed("poisson:1.5");
    int seen[TEC_MAX_ARRIVALS + 1] = {0};
    double p = exp(-1.5), chi = 0.0;
    for (int f = 0; f < FRAMES; f++)
        seen[tec_arrivals_at(&a, f, out)]++;
    for (int n = 0; n < 7; n++) {
        double want = p * FRAMES;
        chi += (seen[n] - want) * (seen[n] - want) / want;
        p *= 1.5 / (n + 1);
    }
    /* 99.9 % of such sums over 7 classes are below 24.3; the seed is fixed. */
    CHECK(chi < 24.3);
    CHECK(seen[7] > 0);
    struct tec_arrivals none = parsed("poisson:0");
    CHECK_INT(tec_arrivals_at(&none, 3, out), ==, 0);
}

TEST(lengths_and_cancellations_have_their_shares)
{
    enum { FRAMES = 50000 };
    struct tec_arrivals a = parsed("uniform:1+lengths:5,20,0.3+cancel:0.1,3");
    int longs = 0, cancelled = 0;
    for (int f = 0; f < FRAMES; f++) {
        REQUIRE(tec_arrivals_at(&a, f, out) == 1);
        REQUIRE(out[0].max_tokens == 5 || out[0].max_tokens == 20);
        REQUIRE(out[0].cancel_after == 0 || out[0].cancel_after == 3);
        longs += out[0].max_tokens == 20;
        cancelled += out[0].cancel_after == 3;
    }
    /* Five standard deviations: sqrt(n p (1 - p)) = 102 and 67. */
    CHECK(abs(longs - 15000) < 512);
    CHECK(abs(cancelled - 5000) < 335);
}

TEST(parts_stand_in_any_order_and_alone)
{
    struct tec_arrivals a = parsed("cancel:1,2+poisson:32"), b = parsed("lengths:5,20,1");
    int n = tec_arrivals_at(&a, 5, out);
    CHECK(n > 5);
    CHECK_INT(out[n - 1].max_tokens, ==, 30);
    CHECK_INT(out[n - 1].cancel_after, ==, 2);
    CHECK_INT(tec_arrivals_at(&b, 5, out), ==, 1);
    CHECK_INT(out[0].max_tokens, ==, 20);
    CHECK_INT(tec_arrivals_at(&b, -1, out), ==, 0);
}

TEST(a_frame_depends_on_seed_and_frame_alone)
{
    struct tec_arrivals a = parsed("poisson:3+lengths:5,20,0.5"), b = a;
    struct tec_arrival first[TEC_MAX_ARRIVALS];
    int differ = 0;
    b.seed = 8;
    for (int f = 99; f >= 0; f--) {
        int n = tec_arrivals_at(&a, f, first);
        tec_arrivals_at(&a, 1000 - f, out);
        CHECK_INT(tec_arrivals_at(&a, f, out), ==, n);
        CHECK(memcmp(first, out, (size_t)n * sizeof out[0]) == 0);
        differ += tec_arrivals_at(&b, f, out) != n;
    }
    CHECK(differ > 30);
}

TEST(a_frame_is_never_overrun)
{
    struct tec_arrivals a = parsed("poisson:32"), u = parsed("uniform:0.015625");
    for (int f = 0; f < 20000; f++)
        REQUIRE(tec_arrivals_at(&a, f, out) <= TEC_MAX_ARRIVALS);
    CHECK_INT(tec_arrivals_at(&u, 3, out), ==, TEC_MAX_ARRIVALS);
}

TEST(a_wrong_specification_is_refused_at_its_place)
{
    static const struct {
        const char *text, *place;
    } cases[] = {
        {"", "at 1:"},
        {"uniform", "at 8:"},
        {"uniform:", "at 9:"},
        {"uniform:0", "at 9:"},
        {"uniform:-1", "at 9:"},
        {"uniform:1e3", "at 10:"},
        {"uniform:0x1", "at 9:"},
        {"uniform:nan", "at 9:"},
        {"uniform:1.", "at 9:"},
        {"uniform:.5", "at 9:"},
        {"uniform: 1", "at 9:"},
        {"uniform:1+", "at 11:"},
        {"uniform:1+poisson:2", "at 11:"},
        {"uniform:1,2", "at 10:"},
        {"Poisson:1", "at 1:"},
        {"poisson:32.5", "at 9:"},
        {"poisson:1.5 ", "at 12:"},
        {"bursty:6", "at 9:"},
        {"bursty:6,0", "at 10:"},
        {"bursty:6.5,2", "at 8:"},
        {"lengths:5,20", "at 13:"},
        {"lengths:5,20,1.5", "at 14:"},
        {"lengths:0,20,0.5", "at 9:"},
        {"lengths:5,20,0.5+lengths:5,20,0.5", "at 18:"},
        {"cancel:0.1,1.5", "at 12:"},
        {"cancel:0.1,99999999999999999999", "at 12:"},
        {"burstyy:1,1", "at 1:"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tec_arrivals a = {.seed = 99};
        struct tec_error err = {0};
        CHECK_INT(tec_arrivals_parse(&a, cases[i].text, 30, 1, &err), ==, TEC_INVALID);
        if (!strstr(err.message, cases[i].place))
            fprintf(stderr, "# '%s': %s\n", cases[i].text, err.message);
        CHECK(strstr(err.message, cases[i].place));
        CHECK_INT(a.seed, ==, 99);
    }
    struct tec_arrivals a;
    struct tec_error err = {0};
    CHECK_INT(tec_arrivals_parse(&a, "uniform:1", 0, 1, &err), ==, TEC_INVALID);
    CHECK_INT(tec_arrivals_parse(&a, "uniform:1", 65537, 1, NULL), ==, TEC_INVALID);
}

TAP_MAIN
