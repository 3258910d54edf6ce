/* The loader's thread: what it reads, in which order, by io_uring and by pread, beside changes. */
#include "base/clock.h"
#include "graph/memory/loader.h"
#include "tests/box.h"

#include <stdlib.h>
#include <unistd.h>

enum { LAYERS = 4, ROW = 64, DIM = 2, TOKENS = 8, UNITS = 16, JOBS = UNITS * LAYERS };

static char path[64], folder[32];
static struct tec_store *store;
static struct tec_heap heap;

/* A store of UNITS units, byte `unit + 16 layer + version` everywhere in their KV. */
static void give_kv(uint32_t unit)
{
    unsigned char rows[LAYERS][2 * TOKENS * ROW];
    const void *pieces[LAYERS];
    struct tec_unit_view v;
    REQUIRE(tec_store_view(store, unit, &v));
    for (uint32_t l = 0; l < LAYERS; l++) {
        memset(rows[l], (int)(unit + 16 * l + 64 * v.version), sizeof rows[l]);
        pieces[l] = rows[l];
    }
    REQUIRE(tec_store_put_kv(store, unit, v.version, v.epoch, pieces, NULL) == TEC_OK);
}

static void put(uint32_t i, int round)
{
    char id[8], text[24];
    const float v[DIM] = {1.0f, (float)i};
    struct tec_groups_change change;
    uint32_t unit = 0;
    snprintf(id, sizeof id, "u%u", i);
    int n = snprintf(text, sizeof text, "%u in round %d", i, round);
    REQUIRE(tec_store_put(store, id, text, (size_t)n, TOKENS, v, &unit, &change, NULL) == TEC_OK);
    REQUIRE(unit == i);
    give_kv(i);
}

static void open_store(int64_t ram, int64_t speed)
{
    const struct tec_store_options options = {
        .path = path,
        .key = {.layers = LAYERS, .row_bytes = ROW, .dim = DIM},
        .log = {.read_bytes_per_sec = speed},
        .max_units = UNITS,
        .threshold = 2.0, /* groups of one */
        .stable_steps = 1,
        .ram_bytes = ram};
    box_folder(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/store", folder);
    memset(&heap, 0, sizeof heap);
    REQUIRE(tec_store_open(&store, &options, &heap, NULL) == TEC_OK);
    for (uint32_t i = 0; i < UNITS; i++)
        put(i, 0);
}

static void close_store(void)
{
    tec_store_close(store);
    CHECK_INT(heap.live, ==, 0);
    unlink(path);
    rmdir(folder);
}

static struct tec_loader *start(bool no_uring)
{
    const struct tec_loader_options options = {.jobs = JOBS, .depth = 8, .no_uring = no_uring};
    struct tec_loader *loader = NULL;
    REQUIRE(tec_loader_create(&loader, store, &options, &heap, NULL) == TEC_OK);
    return loader;
}

/* All layers of all units, with or without changes in between; how long it took. */
static int64_t load_all(struct tec_loader *loader, int rounds)
{
    const struct tec_clock clock = {0};
    struct tec_kv *kv[UNITS];
    size_t bytes = 0;
    for (uint32_t u = 0; u < UNITS; u++)
        REQUIRE(tec_store_pin(store, u, &kv[u], NULL) == TEC_OK);
    bytes = tec_kv_piece_bytes(kv[0]);
    uint64_t version = tec_kv_version(kv[0]);
    unsigned char *all = aligned_alloc(64, JOBS * bytes);
    REQUIRE(all);
    int64_t begin = tec_clock_now(&clock);
    for (uint32_t i = 0; i < JOBS; i++) {
        const struct tec_loader_job job = {
            .kv = kv[i % UNITS], .layer = i / UNITS, .piece = all + i * bytes, .tag = i};
        REQUIRE(tec_loader_submit(loader, &job));
    }
    CHECK(!tec_loader_submit(loader, &(struct tec_loader_job){.kv = kv[0], .piece = all}));
    for (int r = 0; r < rounds; r++) { /* under the reader's hands */
        for (uint32_t u = 0; u < UNITS; u++)
            put(u, r + 1);
        REQUIRE(tec_store_compact(store, NULL) == TEC_OK);
    }
    for (uint32_t i = 0; i < JOBS; i++) {
        struct tec_loader_job job;
        REQUIRE(tec_loader_take(loader, &job, 20000000000));
        CHECK_INT(job.tag, ==, i); /* in order */
        CHECK_INT(job.status, ==, TEC_OK);
        const unsigned char *piece = job.piece;
        unsigned char want = (unsigned char)(i % UNITS + 16 * (i / UNITS) + 64 * version);
        CHECK(piece[0] == want && memcmp(piece, piece + 1, 2 * TOKENS * ROW - 1) == 0);
    }
    int64_t took = tec_clock_now(&clock) - begin;
    CHECK(!tec_loader_take(loader, &(struct tec_loader_job){0}, 0));
    CHECK(!tec_loader_take(loader, &(struct tec_loader_job){0}, 1000000));
    for (uint32_t u = 0; u < UNITS; u++)
        tec_store_drop(store, kv[u]);
    free(all);
    return took;
}

TEST(pieces_come_in_order_from_every_tier)
{
    for (int ram = 0; ram < 2; ram++)
        for (int no_uring = 0; no_uring < 2; no_uring++) {
            open_store(ram ? 1 << 20 : 0, 0);
            struct tec_loader *loader = start(no_uring);
            if (!no_uring)
                printf("# files are read by %s\n", tec_loader_how(loader));
            else
                CHECK_STR(tec_loader_how(loader), "pread");
            (void)load_all(loader, 0);
            struct tec_store_counts counts = tec_store_counts(store);
            int64_t size = JOBS * (2 * TOKENS * ROW + 64);
            CHECK_INT(counts.read_bytes[TEC_KEPT_RAM], ==, ram ? size : 0);
            CHECK_INT(counts.read_bytes[TEC_KEPT_FILE], ==, ram ? 0 : size);
            tec_loader_destroy(loader);
            close_store();
        }
}

TEST(units_that_change_while_they_are_loaded_keep_their_bytes)
{
    for (int no_uring = 0; no_uring < 2; no_uring++) {
        open_store(0, 2000000);
        struct tec_loader *loader = start(no_uring);
        for (int i = 0; i < 3; i++)
            (void)load_all(loader, 3);
        CHECK_INT(tec_store_counts(store).damages, ==, 0);
        tec_loader_destroy(loader);
        close_store();
    }
}

TEST(a_throttled_file_takes_its_time)
{
    open_store(0, 1000000); /* 70 KB at 1 MB/s */
    struct tec_loader *loader = start(false);
    int64_t took = load_all(loader, 0);
    CHECK_INT(took, >=, 69000000);
    tec_loader_destroy(loader);
    close_store();
}

TEST(a_damaged_file_says_compute_it)
{
    open_store(0, 0);
    struct tec_loader *loader = start(false);
    struct tec_kv *kv = NULL;
    struct tec_loader_job job;
    _Alignas(64) static unsigned char piece[4096];
    REQUIRE(tec_store_pin(store, 3, &kv, NULL) == TEC_OK);
    REQUIRE(truncate(path, 5000) == 0); /* by somebody else */
    REQUIRE(tec_loader_submit(loader, &(struct tec_loader_job){kv, 1, piece, 7, TEC_OK}));
    REQUIRE(tec_loader_take(loader, &job, 20000000000));
    CHECK_INT(job.status, ==, TEC_MALFORMED);
    tec_store_drop(store, kv);
    CHECK_INT(tec_store_pin(store, 3, &kv, NULL), ==, TEC_NOT_FOUND);
    CHECK_INT(tec_store_counts(store).damages, ==, 1);
    tec_loader_destroy(loader);
    close_store();
}

TEST(jobs_that_nobody_takes_are_ended)
{
    open_store(0, 0);
    struct tec_loader *loader = start(false);
    struct tec_kv *kv = NULL;
    _Alignas(64) static unsigned char piece[4][4096];
    REQUIRE(tec_store_pin(store, 3, &kv, NULL) == TEC_OK);
    for (uint32_t l = 0; l < LAYERS; l++)
        REQUIRE(tec_loader_submit(loader, &(struct tec_loader_job){kv, l, piece[l], l, TEC_OK}));
    tec_loader_destroy(loader);
    CHECK_INT(piece[3][0], ==, (unsigned char)(3 + 48 + 64));
    tec_store_drop(store, kv);
    close_store();
}

TAP_MAIN
