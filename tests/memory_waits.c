/* memory_waits.c - tests of who waits for a slow disk: only the caller whose request needs it; a
 * forward's reads and the preparation of prompts continue. */
#include "base/clock.h"
#include "graph/memory/store.h"
#include "tests/box.h"
#include "tests/store_inside.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum { LAYERS = 3, ROW = 32, DIM = 4, TOKENS = 5, SEGMENTS = 8 };
#define SLOW_NS INT64_C(400000000)
#define MOST_NS (SLOW_NS / 2) /* test machines are shared */

static const struct tec_clock real = {NULL};
static char path[64], folder[32];
static struct tec_heap heap;
static struct tec_store *store;

static void put(uint32_t i, int round)
{
    static unsigned char rows[LAYERS][2 * TOKENS * ROW];
    const void *pieces[LAYERS];
    const float v[DIM] = {1.0f, (float)i};
    struct tec_groups_change change;
    struct tec_store_segment_view view;
    char id[8], text[32];
    uint32_t segment = 0;
    snprintf(id, sizeof id, "u%u", i);
    int n = snprintf(text, sizeof text, "%u in round %d", i, round);
    REQUIRE(tec_store_put(store, id, text, (size_t)n, TOKENS, v, &segment, &change, NULL) ==
            TEC_OK);
    REQUIRE(segment == i && tec_store_view(store, segment, &view));
    for (uint32_t l = 0; l < LAYERS; l++) {
        memset(rows[l], (int)(i * 7 + l), sizeof rows[l]);
        pieces[l] = rows[l];
    }
    REQUIRE(tec_store_put_kv(store, segment, view.version, view.epoch, pieces, NULL) == TEC_OK);
}

/* Put everything into the file and nothing into RAM. */
static void open_store(int64_t slow_ns)
{
    const struct tec_store_options options = {
        .path = path,
        .key = {.layers = LAYERS, .row_bytes = ROW, .dim = DIM},
        .log.slow_sync_ns = slow_ns,
        .max_segments = SEGMENTS,
        .threshold = 2.0,
        .stable_steps = 1};
    REQUIRE(tec_store_open(&store, &options, &heap, NULL) == TEC_OK);
}

static void begin(void)
{
    box_folder(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/store", folder);
    heap = (struct tec_heap){0};
    open_store(SLOW_NS);
    for (uint32_t i = 0; i < SEGMENTS; i++)
        put(i, 0);
}

static void end(void)
{
    tec_store_close(store);
    CHECK_INT(heap.live, ==, 0);
    unlink(path);
    rmdir(folder);
}

/* A thread that makes a call that needs the disk. */
static struct work {
    enum tec_status (*what)(struct tec_store *store, struct tec_error *err);
    enum tec_status status;
    struct tec_error err;
    int64_t took;
    _Atomic bool done;
    pthread_t thread;
} work;

static void *run_work(void *user)
{
    struct work *w = user;
    int64_t from = tec_clock_now(&real);
    w->status = w->what(store, &w->err);
    w->took = tec_clock_now(&real) - from;
    atomic_store(&w->done, true);
    return NULL;
}

static void start(enum tec_status (*what)(struct tec_store *, struct tec_error *))
{
    work = (struct work){.what = what};
    REQUIRE(pthread_create(&work.thread, NULL, run_work, &work) == 0);
}

static void join(void)
{
    pthread_join(work.thread, NULL);
    CHECK_INT(work.status, ==, TEC_OK);
    CHECK(work.took >= SLOW_NS);
}

static void longer(int64_t *most, int64_t from)
{
    int64_t took = tec_clock_now(&real) - from;
    *most = took > *most ? took : *most;
}

TEST(reads_do_not_wait_while_the_file_is_replaced)
{
    unsigned char piece[2 * TOKENS * ROW + 64];
    struct tec_kv *kv = NULL;
    int64_t most = 0;
    int reads = 0;
    begin();
    REQUIRE(tec_store_pin(store, 3, &kv, NULL) == TEC_OK);
    CHECK_INT(tec_store_kv_tier(kv), ==, TEC_KEPT_FILE);
    start(store_compact);
    for (; !atomic_load(&work.done); reads++) {
        int64_t from = tec_clock_now(&real);
        for (uint32_t l = 0; l < LAYERS; l++)
            REQUIRE(tec_store_read(store, kv, l, piece, NULL) == TEC_OK && piece[0] == 21 + l);
        longer(&most, from);
        usleep(100);
    }
    join();
    printf("# %d reads beside a replacement of %.0f ms, the longest took %.3f ms\n", reads,
           (double)work.took / 1e6, (double)most / 1e6);
    CHECK(reads > 10);
    CHECK_INT(most, <, MOST_NS);
    CHECK_INT(tec_store_counts(store).compactions, ==, 1);
    REQUIRE(tec_store_read(store, kv, 1, piece, NULL) == TEC_OK && piece[0] == 22);
    tec_store_drop(store, kv);
    end();
}

TEST(prompts_are_prepared_while_changes_are_made_durable)
{
    const float v[DIM] = {1.0f};
    struct tec_store_segment_view view;
    struct tec_kv *kv = NULL;
    uint32_t found[SEGMENTS], n = 0;
    int64_t most = 0;
    int asked = 0;
    begin();
    start(tec_store_sync);
    for (; !atomic_load(&work.done); asked++) {
        int64_t from = tec_clock_now(&real);
        REQUIRE(tec_store_query(store, v, SEGMENTS, found, &n, NULL) == TEC_OK && n == SEGMENTS);
        REQUIRE(tec_store_view(store, found[0], &view));
        REQUIRE(tec_store_pin(store, found[0], &kv, NULL) == TEC_OK);
        tec_store_drop(store, kv);
        longer(&most, from);
        usleep(100);
    }
    join();
    printf("# %d questions beside a sync of %.0f ms, the longest took %.3f ms\n", asked,
           (double)work.took / 1e6, (double)most / 1e6);
    CHECK(asked > 10);
    CHECK_INT(most, <, MOST_NS);
    end();
}

/* A file that is replaced during a sync must hold all that the sync promised. */
TEST(a_sync_that_the_file_changes_under_keeps_its_promise)
{
    struct tec_store_segment_view view;
    begin();
    for (uint32_t i = 0; i < SEGMENTS; i++)
        put(i, 1);
    start(tec_store_sync);
    usleep(50000);
    CHECK_INT(store_compact(store, NULL), ==, TEC_OK);
    join();
    put(2, 2);
    CHECK_INT(tec_store_sync(store, NULL), ==, TEC_OK);
    tec_store_close(store);
    open_store(0);
    for (uint32_t i = 0; i < SEGMENTS; i++) {
        REQUIRE(tec_store_view(store, i, &view) && view.has_kv);
        CHECK_INT(view.version, ==, i == 2 ? 3 : 2);
    }
    end();
}

TAP_MAIN
