/* client_queue.h - a queue on a virtual clock, with chunks whose values say for when they are. */
#ifndef TEC_TESTS_CLIENT_QUEUE_H
#define TEC_TESTS_CLIENT_QUEUE_H

#include "tests/tap.h"
#include "tools/client/queue.h"

#include <math.h>

static const int64_t MS = 1000000, PERIOD = 50000000;
enum { ROWS = 16, COLUMNS = 2 };

static struct tec_heap heap;
static struct tec_client_queue queue;
static struct tec_error err;
static double action[COLUMNS];
static struct tectum_client_action told;
static double values[64 * COLUMNS];

static void open_queue(struct tectum_client_options o)
{
    o.rate_hz = o.rate_hz > 0.0 ? o.rate_hz : 20.0;
    tec_client_queue_finish(&queue);
    REQUIRE(tec_client_queue_init(&queue, &o, &heap, &err) == TEC_OK);
    tec_client_queue_connected(&queue);
}

/* A time in rows. */
static double rows_of(int64_t ns)
{
    return (double)ns / (double)PERIOD;
}

/* Row i of a chunk says for when it is: the time in rows. */
static struct tec_client_chunk chunk(int64_t observation, int64_t captured, int rows)
{
    for (int i = 0; i < rows; i++) {
        values[i * COLUMNS] = rows_of(captured) + i;
        values[i * COLUMNS + 1] = -1.0;
    }
    return (struct tec_client_chunk){.values = values,
                                     .rows = rows,
                                     .columns = COLUMNS,
                                     .observation = observation,
                                     .captured_ns = captured};
}

static bool reply(int64_t observation, int64_t captured, int64_t now)
{
    return tec_client_queue_reply(&queue, chunk(observation, captured, ROWS),
                                  atomic_load(&queue.episode), now);
}

/* A chunk of equal rows. */
__attribute__((unused)) static bool reply_of(double value, int64_t observation, int64_t captured,
                                             int64_t now)
{
    struct tec_client_chunk c = chunk(observation, captured, ROWS);
    for (int i = 0; i < ROWS; i++)
        values[i * COLUMNS] = value;
    return tec_client_queue_reply(&queue, c, atomic_load(&queue.episode), now);
}

static enum tec_status next(int64_t now)
{
    return tec_client_queue_next(&queue, now, action, COLUMNS, &told);
}

#endif
