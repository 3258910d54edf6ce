/* client_rtc.c - a robot and a server on a virtual clock: late, lost and cold replies, what goes
 * along with a request, and how long replies take. */
#include "tests/client_queue.h"

/* --- a robot and a server --------------------------------------------------------------------- */

/* Turns of a millisecond. A camera of 30 Hz, a server whose n-th reply takes `takes(n)`; negative:
 * it never comes and the client connects anew. */
struct robot {
    int64_t (*takes)(int n);
    int64_t from, until;
    /* what happened */
    int asked, taken, fresh, dry;
    double worst; /* largest distance of an action from its time, in rows */
    double back;  /* largest step back */
    struct tec_client_ahead first, newest;
};

static void drive(struct robot *r)
{
    int64_t captured = 0, sent = 0, arrives = INT64_MAX, number = -1, of = 0;
    double before = -(double)INFINITY;
    for (int64_t now = r->from; now < r->until; now += MS) {
        if ((now / MS) % 33 == 0) {
            captured = now;
            number++;
        }
        if (now >= arrives) {
            r->taken += reply(of, sent, now);
            arrives = INT64_MAX;
        }
        if (arrives == INT64_MAX && number > of - (r->asked == 0) &&
            tec_client_queue_due(&queue) <= now && tec_client_queue_wants(&queue, captured, now)) {
            int64_t takes = r->takes(r->asked);
            r->newest = tec_client_queue_ahead(&queue, captured);
            if (r->asked++ == 0)
                r->first = r->newest;
            sent = captured;
            of = number;
            arrives = takes < 0 ? INT64_MAX : now + takes;
            if (takes < 0)
                tec_client_queue_connected(&queue);
        }
        if (next(now) != TEC_OK || told.source != TECTUM_CLIENT_FRESH) {
            r->dry++;
            continue;
        }
        double place = rows_of(now);
        r->fresh++;
        r->worst = fmax(r->worst, fabs(action[0] - place));
        r->back = fmax(r->back, before - action[0]);
        before = action[0];
    }
}

static int64_t once_late(int n)
{
    return n == 5 ? 300 * MS : 60 * MS;
}

/* The published bug of the splice: the new chunk began with the row of an estimated delay. */
TEST(rtc_splice)
{
    struct robot r = {.takes = once_late, .from = 10000 * (int64_t)MS, .until = 30000LL * MS};
    open_queue((struct tectum_client_options){.rtc = TECTUM_CLIENT_GUIDED});
    drive(&r);
    CHECK(r.taken > 30);
    CHECK(r.fresh > 19000);
    CHECK(r.worst <= 1.0); /* a row lasts one period; its chunk's grid is at most one off */
    CHECK(r.back <= 1.0);
}

/* The published bug of the empty prefix: what was not there was sent as rows of zeros. */
TEST(rtc_empty_prefix)
{
    struct tec_client_ahead ahead;
    open_queue((struct tectum_client_options){.rtc = TECTUM_CLIENT_GUIDED, .first_delay = 6});
    ahead = tec_client_queue_ahead(&queue, 0);
    CHECK_INT(ahead.rows, ==, 0);
    CHECK_INT(ahead.delay, ==, 0);
    REQUIRE(reply(0, 1000 * MS, 1010 * MS));
    ahead = tec_client_queue_ahead(&queue, 1000 * MS + 12 * (int64_t)PERIOD);
    CHECK_INT(ahead.rows, ==, 4); /* not more than there are */
    CHECK_INT(ahead.delay, ==, 4);
    for (int i = 0; i < ahead.rows; i++)
        CHECK(ahead.values[i * COLUMNS] == 20.0 + 12 + i);
    ahead = tec_client_queue_ahead(&queue, 1000 * MS + 16 * (int64_t)PERIOD);
    CHECK_INT(ahead.rows, ==, 0); /* used up: nothing is carried out meanwhile */
    tec_client_queue_reset(&queue);
    ahead = tec_client_queue_ahead(&queue, 1100 * MS);
    CHECK_INT(ahead.rows, ==, 0); /* an episode begins free */
}

static int64_t cold_then_warm(int n)
{
    return n == 0 ? 3000 * MS : 60 * MS;
}

static int64_t lost_and_cold(int n)
{
    return n == 5 ? -1 : n == 6 ? 3000 * MS : 60 * MS;
}

/* The published bug of the cold start: the first reply's time stayed in the estimate. */
TEST(rtc_cold_start)
{
    struct robot r = {.takes = cold_then_warm, .from = MS, .until = 9000 * (int64_t)MS};
    open_queue((struct tectum_client_options){.rtc = TECTUM_CLIENT_GUIDED});
    drive(&r);
    CHECK(r.asked > 12);
    CHECK_INT(r.newest.delay, >=, 2); /* 60 ms, and up to 33 since the picture, of rows of 50 */
    CHECK_INT(r.newest.delay, <=, 3);
    r.until = 30000 * (int64_t)MS;
    r.from = 9000 * (int64_t)MS;
    r.asked = 0;
    r.takes = lost_and_cold; /* another connection, to a server that began anew */
    drive(&r);
    CHECK(r.asked > 22);
    CHECK_INT(r.newest.delay, <=, 3);
}

static int64_t uneven(int n)
{
    return (20 + (n * 7919) % 161) * (int64_t)MS;
}

TEST(jitter_moves_no_action_away_from_its_time)
{
    struct robot r = {.takes = uneven, .from = MS, .until = 600000LL * MS};
    open_queue((struct tectum_client_options){.queue_threshold = 0.7});
    drive(&r);
    CHECK(r.taken > 1000);
    CHECK(r.worst <= 1.0);
    CHECK(r.dry < 200); /* before the first reply */
}

static int64_t lost(int n)
{
    return n == 3 ? -1 : 60 * MS;
}

TEST(a_lost_reply_costs_no_action_while_rows_are_left)
{
    struct robot r = {.takes = lost, .from = MS, .until = 20000 * (int64_t)MS};
    open_queue((struct tectum_client_options){.horizon = 0});
    drive(&r);
    CHECK(r.worst <= 1.0);
    CHECK(r.dry < 100);
}

/* --- what goes along ----------------------------------------------------------------------------
 */

TEST(given_rows_are_those_that_are_carried_out_meanwhile)
{
    open_queue((struct tectum_client_options){.rtc = TECTUM_CLIENT_GIVEN, .given_rows = 5});
    REQUIRE(reply(0, 1000 * MS, 1010 * MS));
    struct tec_client_ahead ahead = tec_client_queue_ahead(&queue, 1120 * MS);
    CHECK_INT(ahead.rows, ==, 1);            /* nothing is measured yet: first_delay */
    REQUIRE(reply(1, 1120 * MS, 1250 * MS)); /* 130 ms; its rows begin with those of 1100 */
    ahead = tec_client_queue_ahead(&queue, 1320 * MS);
    CHECK_INT(ahead.rows, ==, 3); /* row 4 is 20 ms old: it ends 130 ms later in row 7 */
    CHECK_INT(ahead.delay, ==, 3);
    CHECK(ahead.values[0] == rows_of(1120 * MS) + 4);
    CHECK(!tec_client_queue_reply(&queue, chunk(2, 1320 * MS, ROWS), 7, 1500 * MS)); /* another's */
    REQUIRE(reply(2, 1320 * MS, 1320 * MS + 8 * (int64_t)PERIOD));
    CHECK_INT(tec_client_queue_ahead(&queue, 1750 * MS).rows, ==, 5); /* as the input has room */
}

/* Rows that were carried out before the seam are what an observation from then is told. */
TEST(what_is_left_begins_with_what_was_carried_out)
{
    const int64_t at = 1000 * MS;
    open_queue((struct tectum_client_options){.rtc = TECTUM_CLIENT_GUIDED});
    REQUIRE(reply_of(1.0, 0, at, at));
    REQUIRE(reply_of(2.0, 1, at + 2 * (int64_t)PERIOD, at + 5 * (int64_t)PERIOD));
    struct tec_client_ahead ahead = tec_client_queue_ahead(&queue, at + 3 * (int64_t)PERIOD);
    CHECK_INT(ahead.rows, ==, 15);
    CHECK(ahead.values[0] == 1.0 && ahead.values[COLUMNS] == 1.0);
    CHECK(ahead.values[2 * COLUMNS] == 2.0);
}

/* --- times --------------------------------------------------------------------------------------
 */

TEST(durations_have_quantiles_of_the_newest)
{
    struct tec_client_durations d = {.n = 0};
    CHECK_INT(tec_client_durations_at(&d, 0.5), ==, -1);
    for (int i = 1; i <= 100; i++)
        tec_client_durations_add(&d, i);
    CHECK_INT(tec_client_durations_at(&d, 0.5), ==, 50);
    CHECK_INT(tec_client_durations_at(&d, 0.99), ==, 99);
    CHECK_INT(tec_client_durations_at(&d, 1.0), ==, 100);
    for (int i = 0; i < TEC_CLIENT_TIMES; i++)
        tec_client_durations_add(&d, 7);
    CHECK_INT(tec_client_durations_at(&d, 1.0), ==, 7);
}

TEST(the_clock_s_offset_is_that_of_the_shortest_way)
{
    struct tec_client_clock c = {.n = 0};
    int64_t offset, error, apart = 123456 * (int64_t)MS;
    CHECK(!tec_client_clock_offset(&c, &offset, &error));
    for (int i = 0; i < 20; i++) { /* there it takes 1 ms, back 1 + i % 5 */
        int64_t sent = i * (int64_t)1000 * MS, got = sent + MS, left = got + 30 * MS;
        const struct tec_client_stamps s = {sent, got + apart, left + apart,
                                            left + (1 + i % 5) * MS};
        tec_client_clock_add(&c, &s);
    }
    REQUIRE(tec_client_clock_offset(&c, &offset, &error));
    CHECK_INT(offset, ==, apart);
    CHECK_INT(error, ==, MS + 1);
    const struct tec_client_stamps wrong[] = {
        {0, 5, 4, 10}, {0, -1, 4, 10}, {0, 1, INT64_MAX, 10}, {0, 1, 20, 10}};
    int n = c.at;
    for (size_t i = 0; i < 4; i++)
        tec_client_clock_add(&c, &wrong[i]);
    CHECK_INT(c.at, ==, n);
}

TAP_MAIN
