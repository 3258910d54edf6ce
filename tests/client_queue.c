/* client_queue.c - a robot's queue of actions: sizes, seams, what a dry queue gives, its memory. */
#include "tests/client_queue.h"

/* --- late, and with another size ----------------------------------------------------------------
 */

TEST(a_chunk_that_is_over_is_dropped)
{
    open_queue((struct tectum_client_options){.horizon = 4});
    REQUIRE(reply(0, 1000 * MS, 1010 * MS));
    CHECK(!reply(1, 1100 * MS, 1100 * MS + 4 * (int64_t)PERIOD + MS));
    CHECK(reply(2, 1200 * MS, 1200 * MS + 3 * (int64_t)PERIOD + MS));
    REQUIRE(next(1200 * MS + 3 * (int64_t)PERIOD + MS) == TEC_OK);
    CHECK_INT(told.row, ==, 3);
    CHECK_INT(told.observation, ==, 2);
    CHECK_INT(told.age_ns, ==, 3 * (int64_t)PERIOD + MS);
    CHECK_INT(told.left, ==, 0);
    CHECK(!reply(1, 1250 * MS, 1260 * MS)); /* older than what is there */
}

TEST(an_old_observation_is_not_worth_asking)
{
    open_queue((struct tectum_client_options){.horizon = 4});
    CHECK(tec_client_queue_wants(&queue, 0, 100000 * (int64_t)MS)); /* any, for the first chunk */
    REQUIRE(reply(0, 1000 * MS, 1010 * MS));
    CHECK(tec_client_queue_wants(&queue, 1100 * MS, 1299 * MS));
    CHECK(!tec_client_queue_wants(&queue, 1100 * MS, 1300 * MS));
}

TEST(chunks_change_their_size)
{
    const int64_t at = 1000 * MS;
    open_queue((struct tectum_client_options){.horizon = 8, .merge = TECTUM_CLIENT_LINEAR});
    REQUIRE(reply(0, at, at));
    struct tec_client_chunk c = chunk(1, at + PERIOD, 3);
    REQUIRE(tec_client_queue_reply(&queue, c, 0, at + PERIOD));
    REQUIRE(next(at + 3 * (int64_t)PERIOD) == TEC_OK);
    CHECK_INT(told.left, ==, 0);
    c = chunk(2, at + 2 * (int64_t)PERIOD, 12);
    REQUIRE(tec_client_queue_reply(&queue, c, 0, at + 2 * (int64_t)PERIOD));
    REQUIRE(next(at + 2 * (int64_t)PERIOD) == TEC_OK);
    CHECK_INT(told.left, ==, 7);
    c = chunk(3, at + 3 * (int64_t)PERIOD, 4);
    c.columns = 1; /* values as they come: 4 rows of one column */
    REQUIRE(tec_client_queue_reply(&queue, c, 0, at + 3 * (int64_t)PERIOD));
    REQUIRE(next(at + 4 * (int64_t)PERIOD) == TEC_OK);
    CHECK_INT(told.columns, ==, 1);
    CHECK(action[0] == -1.0);
    CHECK_INT(tec_client_queue_next(&queue, at + 4 * (int64_t)PERIOD, action, 0, &told), ==,
              TEC_INVALID);
}

TEST(the_next_chunk_is_asked_for_in_time)
{
    open_queue((struct tectum_client_options){.horizon = 8, .queue_threshold = 0.25});
    CHECK(tec_client_queue_due(&queue) < 0);
    REQUIRE(reply(0, 1000 * MS, 1010 * MS));
    CHECK_INT(tec_client_queue_due(&queue), ==, 1000 * MS + 6 * (int64_t)PERIOD);
    open_queue((struct tectum_client_options){.queue_threshold = 1.0});
    REQUIRE(reply(0, 1000 * MS, 1010 * MS));
    CHECK_INT(tec_client_queue_due(&queue), ==, 1000 * MS);
}

/* --- rows of two chunks -------------------------------------------------------------------------
 */

/* The value of row `row` behind a seam at row 2 between chunks of 1 and 11. */
static double behind_seam(enum tectum_client_merge merge, int row)
{
    const int64_t at = 1000 * MS;
    open_queue((struct tectum_client_options){.merge = merge, .blend_rows = 4});
    REQUIRE(reply_of(1.0, 0, at, at));
    REQUIRE(reply_of(11.0, 1, at + PERIOD, at + 2 * (int64_t)PERIOD));
    REQUIRE(next(at + row * (int64_t)PERIOD) == TEC_OK);
    CHECK(queue.plan.seam == 10.0);
    return action[0];
}

TEST(rows_are_merged_as_their_names_say)
{
    CHECK(behind_seam(TECTUM_CLIENT_LATEST_ONLY, 2) == 11.0);
    CHECK(fabs(behind_seam(TECTUM_CLIENT_WEIGHTED_AVERAGE, 5) - 8.0) < 1e-12);
    CHECK(fabs(behind_seam(TECTUM_CLIENT_AVERAGE, 5) - 6.0) < 1e-12);
    CHECK(fabs(behind_seam(TECTUM_CLIENT_CONSERVATIVE, 5) - 4.0) < 1e-12);
    for (int row = 2; row < 6; row++)
        CHECK(fabs(behind_seam(TECTUM_CLIENT_LINEAR, row) - (1.0 + 2.0 * (row - 1))) < 1e-12);
    CHECK(behind_seam(TECTUM_CLIENT_LINEAR, 6) == 11.0);
    CHECK(behind_seam(TECTUM_CLIENT_AVERAGE, 16) == 11.0); /* a row of the new chunk alone */
    double w = exp(-0.01);
    CHECK(fabs(behind_seam(TECTUM_CLIENT_ENSEMBLE, 5) - (1.0 + 11.0 * w) / (1.0 + w)) < 1e-12);
}

TEST(an_ensemble_weighs_as_act_does)
{
    const int64_t at = 1000 * MS;
    double sum = 0.0, weights = 0.0;
    open_queue((struct tectum_client_options){.merge = TECTUM_CLIENT_ENSEMBLE});
    for (int k = 0; k < 6; k++) {
        REQUIRE(reply_of(k * k, k, at + k * (int64_t)PERIOD, at + k * (int64_t)PERIOD));
        sum += exp(-0.01 * k) * k * k;
        weights += exp(-0.01 * k);
    }
    REQUIRE(next(at + 5 * (int64_t)PERIOD) == TEC_OK);
    CHECK(fabs(action[0] - sum / weights) < 1e-12);
}

TEST(rows_may_be_joined_by_lines)
{
    open_queue((struct tectum_client_options){.interpolate = 1});
    REQUIRE(reply(0, 1000 * MS, 1000 * MS));
    REQUIRE(next(1010 * MS) == TEC_OK);
    CHECK(fabs(action[0] - 20.2) < 1e-12);
    REQUIRE(next(1000 * MS + 15 * (int64_t)PERIOD + 10 * MS) == TEC_OK);
    CHECK(action[0] == 35.0); /* nothing is beyond the last one */
}

/* A gripper in the second column: shut (1) from row 8 on. */
static struct tec_client_chunk gripping(int64_t observation, int64_t captured, double base)
{
    struct tec_client_chunk c = chunk(observation, captured, ROWS);
    for (int i = 0; i < ROWS; i++) {
        values[i * COLUMNS] = base + i;
        values[i * COLUMNS + 1] = i < 8 ? 0.0 : 1.0;
    }
    return c;
}

TEST(a_discrete_column_is_never_between_two_values)
{
    const int columns[] = {1};
    const int64_t at = 1000 * MS;
    open_queue((struct tectum_client_options){
        .interpolate = 1, .merge = TECTUM_CLIENT_AVERAGE, .discrete = columns, .n_discrete = 1});
    REQUIRE(tec_client_queue_reply(&queue, gripping(0, at, 0.0), 0, at));
    REQUIRE(next(at + 7 * (int64_t)PERIOD + 40 * MS) == TEC_OK);
    CHECK(fabs(action[0] - 7.8) < 1e-12);
    CHECK(action[1] == 0.0);
    REQUIRE(next(at + 8 * (int64_t)PERIOD) == TEC_OK);
    CHECK(action[1] == 1.0);
    /* The new chunk shuts it four rows later: what is merged is the arm alone. */
    int64_t later = at + 4 * (int64_t)PERIOD;
    REQUIRE(tec_client_queue_reply(&queue, gripping(1, later, 14.0), 0, later));
    REQUIRE(next(at + 9 * (int64_t)PERIOD + 25 * MS) == TEC_OK);
    CHECK(fabs(action[0] - 14.5) < 1e-12);
    CHECK(action[1] == 0.0);
    REQUIRE(next(at + 12 * (int64_t)PERIOD) == TEC_OK);
    CHECK(action[1] == 1.0);
}

TEST(no_line_leads_from_one_chunk_to_another)
{
    const int64_t at = 1000 * MS, seam = at + 5 * (int64_t)PERIOD;
    open_queue((struct tectum_client_options){.interpolate = 1});
    REQUIRE(reply_of(1.0, 0, at, at));
    REQUIRE(reply_of(11.0, 1, at + PERIOD, seam));
    REQUIRE(next(seam - 10 * MS) == TEC_OK); /* a turn that began before the chunk came */
    CHECK(action[0] == 1.0);
    REQUIRE(next(seam) == TEC_OK);
    CHECK(action[0] == 11.0);
}

/* --- dry ----------------------------------------------------------------------------------------
 */

TEST(a_dry_queue_holds_for_a_while)
{
    const int64_t end = 1000 * MS + ROWS * (int64_t)PERIOD;
    open_queue((struct tectum_client_options){.hold_ms = 200});
    CHECK_INT(next(900 * MS), ==, TEC_TIME);
    CHECK_INT(told.source, ==, TECTUM_CLIENT_NONE);
    CHECK_INT(told.columns, ==, 0);
    REQUIRE(reply(0, 1000 * MS, 1010 * MS));
    REQUIRE(next(end - MS) == TEC_OK);
    CHECK_INT(told.source, ==, TECTUM_CLIENT_FRESH);
    REQUIRE(next(end + 100 * MS) == TEC_OK);
    CHECK_INT(told.source, ==, TECTUM_CLIENT_HELD);
    CHECK(action[0] == 35.0);
    CHECK_INT(told.age_ns, ==, ROWS * (int64_t)PERIOD + 100 * MS);
    CHECK_INT(next(end + 200 * MS), ==, TEC_TIME);
    CHECK_INT(atomic_load(&queue.dry), ==, 3);
}

TEST(a_dry_queue_gives_what_was_chosen)
{
    const int64_t end = 1000 * MS + ROWS * (int64_t)PERIOD;
    open_queue((struct tectum_client_options){.on_dry = TECTUM_CLIENT_ZEROS});
    CHECK_INT(next(900 * MS), ==, TEC_TIME); /* how many columns is not known */
    REQUIRE(reply(0, 1000 * MS, 1010 * MS));
    REQUIRE(next(end - MS) == TEC_OK);
    REQUIRE(next(end) == TEC_OK);
    CHECK_INT(told.source, ==, TECTUM_CLIENT_ZERO);
    CHECK(action[0] == 0.0 && action[1] == 0.0);
    open_queue((struct tectum_client_options){.on_dry = TECTUM_CLIENT_ERROR});
    REQUIRE(reply(0, 1000 * MS, 1010 * MS));
    REQUIRE(next(end - MS) == TEC_OK);
    CHECK_INT(next(end), ==, TEC_TIME);
}

static bool substitute(double value, int64_t observation, int64_t captured, int64_t now)
{
    struct tec_client_chunk c = chunk(observation, captured, ROWS);
    for (int i = 0; i < ROWS; i++)
        values[i * COLUMNS] = value;
    c.substitute = true;
    return tec_client_queue_reply(&queue, c, 0, now);
}

TEST(substitutes_come_behind_ones_own_rows)
{
    const int64_t at = 1000 * MS;
    open_queue((struct tectum_client_options){.horizon = 8});
    CHECK(!substitute(5.0, 0, at, at));
    open_queue((struct tectum_client_options){.on_dry = TECTUM_CLIENT_ON_MISS, .horizon = 8});
    REQUIRE(reply_of(1.0, 0, at, at));
    REQUIRE(substitute(5.0, 1, at + 4 * (int64_t)PERIOD, at + 5 * (int64_t)PERIOD));
    for (int i = 5; i < 12; i++) {
        REQUIRE(next(at + i * (int64_t)PERIOD) == TEC_OK);
        CHECK_INT(told.source, ==, i < 8 ? TECTUM_CLIENT_FRESH : TECTUM_CLIENT_SUBSTITUTE);
        CHECK(action[0] == (i < 8 ? 1.0 : 5.0));
    }
    REQUIRE(next(at + 12 * (int64_t)PERIOD) == TEC_OK);
    CHECK_INT(told.source, ==, TECTUM_CLIENT_HELD);
    CHECK_INT(queue.delays.n, ==, 0); /* a reply at its deadline says nothing of the model */
}

TEST(an_observation_of_long_ago_has_no_row_in_common)
{
    const int64_t at = 4000000000 * (int64_t)1000000000; /* rows in between are beyond an int's */
    open_queue((struct tectum_client_options){.rate_hz = 1e4, .on_dry = TECTUM_CLIENT_ON_MISS});
    REQUIRE(reply_of(1.0, 0, at, at));
    CHECK(!substitute(5.0, 1, 1, 2));
}

TEST(a_stop_of_the_server_ends_the_actions)
{
    open_queue((struct tectum_client_options){.hold_ms = -1});
    REQUIRE(reply(0, 1000 * MS, 1010 * MS));
    REQUIRE(next(1020 * MS) == TEC_OK);
    tec_client_queue_stopped(&queue, 0);
    CHECK_INT(next(1030 * MS), ==, TEC_TIME);
    CHECK_INT(told.source, ==, TECTUM_CLIENT_STOPPED);
    CHECK(tec_client_queue_due(&queue) < 0);
    REQUIRE(reply(1, 1100 * MS, 1110 * MS));
    REQUIRE(next(1110 * MS) == TEC_OK);
    CHECK_INT(told.source, ==, TECTUM_CLIENT_FRESH);
}

TEST(an_episode_begins_with_nothing)
{
    open_queue((struct tectum_client_options){.hold_ms = -1});
    REQUIRE(reply(0, 1000 * MS, 1010 * MS));
    REQUIRE(next(1020 * MS) == TEC_OK);
    tec_client_queue_reset(&queue);
    CHECK_INT(next(1030 * MS), ==, TEC_TIME);
    CHECK_INT(told.source, ==, TECTUM_CLIENT_NONE);
    CHECK(!tec_client_queue_reply(&queue, chunk(1, 1010 * MS, ROWS), 0, 1040 * MS));
    CHECK_INT(next(1050 * MS), ==, TEC_TIME);
    REQUIRE(reply(2, 1050 * MS, 1060 * MS));
    REQUIRE(next(1070 * MS) == TEC_OK);
    CHECK_INT(told.observation, ==, 2);
}

TEST(time_without_motion_does_not_count)
{
    const int64_t at = 1000 * MS, p = PERIOD;
    open_queue((struct tectum_client_options){.by_motion = 1, .horizon = 8});
    REQUIRE(reply(0, at, at + 5 * p)); /* the robot stood: row 0 */
    REQUIRE(next(at + 5 * p) == TEC_OK);
    CHECK_INT(told.row, ==, 0);
    REQUIRE(next(at + 12 * p + MS) == TEC_OK);
    CHECK_INT(told.row, ==, 7);
    /* Seen with two rows to go, there when the robot had stood for six: row 2 is next. */
    REQUIRE(reply(1, at + 11 * p, at + 19 * p));
    REQUIRE(next(at + 19 * p) == TEC_OK);
    CHECK_INT(told.row, ==, 2);
    /* Seen while it stood, there while it moves again: one row was carried out since. */
    REQUIRE(reply(2, at + 16 * p, at + 20 * p));
    REQUIRE(next(at + 20 * p) == TEC_OK);
    CHECK_INT(told.row, ==, 1);
    open_queue((struct tectum_client_options){.horizon = 8});
    REQUIRE(reply(0, at, at + 5 * p));
    REQUIRE(next(at + 5 * p) == TEC_OK);
    CHECK_INT(told.row, ==, 5); /* by time */
}

/* --- memory and options -------------------------------------------------------------------------
 */

TEST(an_action_takes_no_memory)
{
    open_queue((struct tectum_client_options){.hold_ms = -1});
    int64_t calls = atomic_load(&heap.calls);
    for (int i = 0; i < 50; i++) {
        reply(i, 1000 * MS + i * (int64_t)PERIOD, 1010 * MS + i * (int64_t)PERIOD);
        next(1020 * MS + i * (int64_t)PERIOD);
    }
    CHECK_INT(atomic_load(&heap.calls), ==, calls);
    tec_client_queue_finish(&queue);
    CHECK_INT(atomic_load(&heap.live), ==, 0);
}

TEST(memory_may_be_missing)
{
    const int columns[] = {1};
    const struct tectum_client_options o = {.rate_hz = 20, .discrete = columns, .n_discrete = 1};
    for (int64_t n = 1;; n++) {
        struct tec_heap few = {0};
        atomic_store(&few.fail_at, n);
        enum tec_status status = tec_client_queue_init(&queue, &o, &few, &err);
        tec_client_queue_finish(&queue);
        CHECK_INT(atomic_load(&few.live), ==, 0);
        if (status == TEC_OK)
            break;
        CHECK_INT(status, ==, TEC_NO_MEMORY);
    }
    memset(&queue, 0, sizeof queue);
}

TEST(options_are_checked)
{
    const int beyond = 64; /* there are 64 columns */
    const struct {
        struct tectum_client_options o;
        const char *word;
    } wrong[] = {{{.rate_hz = 0}, "rate_hz"},
                 {{.rate_hz = 1e-300}, "rate_hz"},
                 {{.rate_hz = 9e-4}, "rate_hz"},
                 {{.rate_hz = 10001}, "rate_hz"},
                 {{.rate_hz = (double)NAN}, "rate_hz"},
                 {{.rate_hz = 20, .horizon = 257}, "horizon"},
                 {{.rate_hz = 20, .horizon = -1}, "horizon"},
                 {{.rate_hz = 20, .queue_threshold = 1.5}, "queue_threshold"},
                 {{.rate_hz = 20, .max_rows = 5000}, "max_rows"},
                 {{.rate_hz = 20, .max_columns = -1}, "max_columns"},
                 {{.rate_hz = 20, .rtc = (enum tectum_client_rtc)3}, "rtc"},
                 {{.rate_hz = 20, .n_discrete = 1}, "discrete"},
                 {{.rate_hz = 20, .discrete = &beyond, .n_discrete = 1}, "discrete"},
                 {{.rate_hz = 20, .discrete = &beyond, .n_discrete = -1}, "discrete"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CHECK_INT(tec_client_queue_init(&queue, &wrong[i].o, &heap, &err), ==, TEC_INVALID);
        CHECK(strstr(err.message, wrong[i].word));
    }
    CHECK_INT(atomic_load(&heap.live), ==, 0);
}

TAP_MAIN
