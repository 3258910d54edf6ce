/* memory_prefetch.c - tests of the prefetcher: pieces are right and in time for every rule, tier
 * and speed; a failed load makes the forward void; loads are counted. */
#include "base/clock.h"
#include "graph/memory/prefetch_own.h"
#include "tests/box.h"
#include "tests/store_inside.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum { LAYERS = 6, ROW = 256, DIM = 2, SEGMENTS = 12, TOKENS = 16, PIECES = LAYERS * SEGMENTS };
enum { BODY = 2 * TOKENS * ROW, PIECE = BODY + 64 };

static char path[64], folder[32];
static struct tec_store *store;
static struct tec_heap heap;
static _Alignas(64) unsigned char room[PIECES][PIECE];
static unsigned char *staging[PIECES];
static struct tec_kv *kv[SEGMENTS];

static uint32_t tokens_of(uint32_t segment)
{
    return 4 + segment % 3 * 6; /* 4, 10, 16 */
}

static unsigned char byte_of(uint32_t segment, uint32_t layer, uint64_t version)
{
    return (unsigned char)(segment * 7 + layer * 31 + version * 64);
}

static void put(uint32_t i, int round)
{
    static unsigned char rows[LAYERS][BODY];
    const void *pieces[LAYERS];
    char id[8], text[32];
    const float v[DIM] = {1.0f, (float)i};
    struct tec_groups_change change;
    struct tec_store_segment_view view;
    uint32_t segment = 0;
    snprintf(id, sizeof id, "u%u", i);
    int n = snprintf(text, sizeof text, "%u in round %d", i, round);
    REQUIRE(tec_store_put(store, id, text, (size_t)n, tokens_of(i), v, &segment, &change, NULL) ==
            TEC_OK);
    REQUIRE(segment == i && tec_store_view(store, segment, &view));
    for (uint32_t l = 0; l < LAYERS; l++) {
        memset(rows[l], byte_of(i, l, view.version), BODY);
        pieces[l] = rows[l];
    }
    REQUIRE(tec_store_put_kv(store, segment, view.version, view.epoch, pieces, NULL) == TEC_OK);
}

/* Make RAM for so many bytes; what was given last is in it. */
static void open_store(int64_t ram)
{
    const struct tec_store_options options = {
        .path = path,
        .key = {.layers = LAYERS, .row_bytes = ROW, .dim = DIM},
        .max_segments = SEGMENTS,
        .threshold = 2.0,
        .stable_steps = 1,
        .ram_bytes = ram};
    box_folder(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/store", folder);
    memset(&heap, 0, sizeof heap);
    REQUIRE(tec_store_open(&store, &options, &heap, NULL) == TEC_OK);
    for (uint32_t i = 0; i < SEGMENTS; i++)
        put(i, 0);
    for (uint32_t i = 0; i < PIECES; i++)
        staging[i] = room[i];
}

static void close_store(void)
{
    tec_store_close(store);
    CHECK_INT(heap.live, ==, 0);
    unlink(path);
    rmdir(folder);
}

static void pin_all(void)
{
    for (uint32_t u = 0; u < SEGMENTS; u++)
        REQUIRE(tec_store_pin(store, u, &kv[u], NULL) == TEC_OK);
}

static void drop_all(void)
{
    for (uint32_t u = 0; u < SEGMENTS; u++)
        tec_store_drop(store, kv[u]);
}

static struct tec_prefetch *start(const struct tec_prefetch_options *given)
{
    struct tec_prefetch_options options = *given;
    struct tec_prefetch *prefetch = NULL;
    options.layers = LAYERS;
    options.segments = SEGMENTS;
    REQUIRE(tec_prefetch_create(&prefetch, store, &options, &heap, NULL) == TEC_OK);
    return prefetch;
}

static uint32_t dice(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 16;
}

/* Sets that shrink: segment u is computed at the layers before last[u]. */
static void make_sets(unsigned char (*sets)[SEGMENTS], uint32_t *seed)
{
    for (uint32_t u = 0; u < SEGMENTS; u++) {
        uint32_t last = dice(seed) % (LAYERS + 1);
        for (uint32_t l = 0; l < LAYERS; l++)
            sets[l][u] = l < last;
    }
}

static void pause_ns(int64_t ns)
{
    const struct tec_clock clock = {0};
    if (ns > 0)
        tec_clock_wait(&clock, tec_clock_now(&clock) + ns);
}

static bool piece_right(const unsigned char *piece, uint32_t segment, uint32_t layer,
                        uint64_t version)
{
    size_t body = 2 * tokens_of(segment) * ROW;
    return piece[0] == byte_of(segment, layer, version) && memcmp(piece, piece + 1, body - 1) == 0;
}

static unsigned char held[PIECES]; /* pieces that the forward has elsewhere */

/* Whether a piece lies where it should, whole: one that is held lies nowhere. */
static bool piece_there(const struct tec_prefetch *s, int layer, uint32_t u)
{
    int at = layer * SEGMENTS + (int)u;
    const unsigned char *piece = tec_prefetch_pieces(s)[at];
    if (!tec_prefetch_there(s, layer, (int)u) || held[at])
        return held[at] && !piece && tec_prefetch_there(s, layer, (int)u) && room[at][0] == 0xAA;
    return piece_right(piece, u, (uint32_t)layer, kv[u]->version);
}

/* Run layers of so many ns each; returns how many pieces were right, or -1 if the forward is
 * void. */
static int compute(struct tec_prefetch *s, unsigned char (*sets)[SEGMENTS], int64_t layer_ns)
{
    int right = 0, wanted = 0;
    for (int l = 0; l < LAYERS; l++) {
        if (!tec_prefetch_wait(s, l))
            return -1;
        tec_prefetch_started(s, l);
        for (uint32_t u = 0; u < SEGMENTS; u++) {
            wanted += !sets[l][u];
            if (!sets[l][u])
                right += piece_there(s, l, u);
        }
        pause_ns(layer_ns / 2);
        if (l + 1 < LAYERS)
            tec_prefetch_known(s, l + 1, sets[l + 1]);
        pause_ns(layer_ns / 2);
        tec_prefetch_ended(s, l);
    }
    CHECK_INT(right, ==, wanted);
    return right;
}

static struct tec_prefetch_forward plain(unsigned char (*sets)[SEGMENTS])
{
    return (struct tec_prefetch_forward){.layers = LAYERS,
                                         .segments = SEGMENTS,
                                         .overlap = TEC_OVERLAP_BOUNDED,
                                         .kv = kv,
                                         .staging = staging,
                                         .first = sets[0]};
}

static int64_t wanted_bytes(unsigned char (*sets)[SEGMENTS])
{
    int64_t bytes = 0;
    for (uint32_t i = 0; i < PIECES; i++)
        if (!sets[i / SEGMENTS][i % SEGMENTS] && !held[i])
            bytes += (int64_t)tec_store_kv_piece_bytes(kv[i % SEGMENTS]);
    return bytes;
}

TEST(pieces_are_right_for_every_rule_tier_and_grain)
{
    uint32_t seed = 7;
    for (int round = 0; round < 12; round++) {
        const struct tec_prefetch_options options = {
            .grain_bytes = round % 3 * 1024,
            .direct = round % 2,
            .limit = {[TEC_KEPT_FILE] = {.bytes_per_sec = round % 4 ? 0 : 50000000}}};
        open_store(round / 3 * 200000);
        pin_all();
        struct tec_prefetch *s = start(&options);
        int64_t calls = heap.calls;
        for (int i = 0; i < 12; i++) {
            unsigned char sets[LAYERS][SEGMENTS];
            struct tec_prefetch_result result;
            make_sets(sets, &seed);
            struct tec_prefetch_forward f = plain(sets);
            f.overlap = (enum tec_overlap)(i % TEC_OVERLAPS);
            for (uint32_t k = 0; k < PIECES; k++)
                held[k] = i % 3 == 2 && dice(&seed) % 3 == 0;
            f.held = i % 3 ? held : NULL;
            memset(room, 0xAA, sizeof room);
            REQUIRE(tec_prefetch_begin(s, &f, NULL) == TEC_OK);
            CHECK(compute(s, sets, i % 2 ? 200000 : 0) >= 0);
            CHECK_INT(tec_prefetch_finish(s, &result, NULL), ==, TEC_OK);
            CHECK_INT(result.counts.bytes[TEC_KEPT_RAM] + result.counts.bytes[TEC_KEPT_FILE], ==,
                      wanted_bytes(sets));
            CHECK_INT(result.counts.cancelled, ==, 0);
        }
        CHECK_INT(heap.calls, ==, calls); /* nothing is allocated */
        struct tec_prefetch_counts all = tec_prefetch_counts(s);
        CHECK(all.forwards == 12 && all.failed == 0);
        memset(held, 0, sizeof held);
        tec_prefetch_destroy(s);
        drop_all();
        close_store();
    }
}

/* Run one forward on a link of a given speed, with layers of layer_ns. */
static struct tec_prefetch_result timed(int64_t speed, int64_t layer_ns, enum tec_overlap overlap,
                                        int64_t *took)
{
    const struct tec_clock clock = {0};
    const struct tec_prefetch_options options = {
        .limit = {[TEC_KEPT_FILE] = {.bytes_per_sec = speed}}};
    unsigned char sets[LAYERS][SEGMENTS] = {{0}};
    struct tec_prefetch_result result;
    struct tec_prefetch *s = start(&options);
    struct tec_prefetch_forward f = plain(sets);
    f.overlap = overlap;
    for (int i = 0; i < 2; i++) { /* the second knows times */
        int64_t begin = tec_clock_now(&clock);
        REQUIRE(tec_prefetch_begin(s, &f, NULL) == TEC_OK);
        CHECK(compute(s, sets, layer_ns) >= 0);
        CHECK_INT(tec_prefetch_finish(s, &result, NULL), ==, TEC_OK);
        *took = tec_clock_now(&clock) - begin;
    }
    tec_prefetch_destroy(s);
    return result;
}

TEST(loading_beside_computing_is_counted)
{
    int64_t took = 0, alone = 0;
    open_store(0);
    pin_all();
    unsigned char none[LAYERS][SEGMENTS] = {{0}};
    int64_t bytes = wanted_bytes(none);
    /* 5 ms a layer on the link, 5 ms in computing */
    struct tec_prefetch_result r = timed(bytes * 200 / LAYERS, 5000000, TEC_OVERLAP_BOUNDED, &took);
    printf("# beside: %.1f ms, link busy %.1f, overlap %.1f, bubbles %.1f\n", (double)took * 1e-6,
           (double)r.counts.busy_ns * 1e-6, (double)r.counts.overlap_ns * 1e-6,
           (double)r.counts.bubble_ns * 1e-6);
    CHECK_INT(r.counts.busy_ns, >=, LAYERS * 4900000);
    CHECK_INT(r.counts.overlap_ns, >, 5000000);
    CHECK_INT(r.counts.overlap_ns, <=, r.counts.busy_ns);
    CHECK_INT(r.counts.bubble_ns, >=, 4900000); /* before the first layer at least */
    r = timed(bytes * 200 / LAYERS, 5000000, TEC_OVERLAP_SEPARATE, &alone);
    CHECK_INT(r.counts.bubble_ns, >=, LAYERS * 4900000);
    for (int i = 0; i < 5 && took >= alone; i++) /* somebody else had the cores */
        (void)timed(bytes * 200 / LAYERS, 5000000, TEC_OVERLAP_BOUNDED, &took);
    CHECK_INT(alone, >, took);
    drop_all();
    close_store();
}

TEST(what_is_believed_of_a_tier_is_what_was_measured)
{
    const struct tec_prefetch_options options = {
        .limit = {[TEC_KEPT_FILE] = {.bytes_per_sec = 10000000, .latency_ns = 500000}}};
    unsigned char sets[LAYERS][SEGMENTS] = {{0}};
    struct tec_prefetch_result result;
    open_store(0);
    pin_all();
    struct tec_prefetch *s = start(&options);
    struct tec_prefetch_forward f = plain(sets);
    CHECK_INT(tec_prefetch_believed(s, TEC_KEPT_FILE, 8192), ==, 0);
    REQUIRE(tec_prefetch_begin(s, &f, NULL) == TEC_OK);
    CHECK(compute(s, sets, 0) >= 0);
    CHECK_INT(tec_prefetch_finish(s, &result, NULL), ==, TEC_OK);
    int64_t believed = tec_prefetch_believed(s, TEC_KEPT_FILE, 8192); /* 0.5 ms + 0.82 ms */
    printf("# 8 KiB are believed to take %.3f ms\n", (double)believed * 1e-6);
    CHECK(believed > 600000 && believed < 1000000000); /* the machine may be busy */
    CHECK_INT(tec_prefetch_believed(s, TEC_KEPT_RAM, 8192), ==, 0);
    tec_prefetch_destroy(s);
    drop_all();
    close_store();
}

TEST(times_of_loads_are_a_line)
{
    struct tec_prefetch_line line = {0};
    CHECK_INT(tec_prefetch_line_at(&line, 100), ==, 0);
    tec_prefetch_line_add(&line, 1000, 7000);
    CHECK_INT(tec_prefetch_line_at(&line, 100), ==, 700); /* one size: in proportion */
    for (size_t i = 0; i < 200; i++)
        tec_prefetch_line_add(&line, 1000 + i % 4 * 1000,
                              (int64_t)(5000 + 3 * (1000 + i % 4 * 1000)));
    int64_t at = tec_prefetch_line_at(&line, 2500);
    CHECK(at > 12450 && at < 12550); /* 5000 + 3 each; the first has faded */
    for (size_t i = 0; i < 200; i++) /* a link that is slower now */
        tec_prefetch_line_add(&line, 1000 + i % 4 * 1000,
                              (int64_t)(9000 + 8 * (1000 + i % 4 * 1000)));
    at = tec_prefetch_line_at(&line, 2500);
    CHECK(at > 28500 && at < 29100);
    for (size_t i = 0; i < 400; i++) /* larger is faster: no line, but a mean */
        tec_prefetch_line_add(&line, 1000 + i % 2 * 1000, (int64_t)(4000 - i % 2 * 3000));
    CHECK_INT(tec_prefetch_line_at(&line, 1500), >, 0);
    CHECK_INT(tec_prefetch_line_at(&line, SIZE_MAX / 2), <=, INT64_C(1) << 40);
}

TEST(a_segment_that_changes_while_it_is_loaded_keeps_its_bytes)
{
    const struct tec_prefetch_options options = {
        .limit = {[TEC_KEPT_FILE] = {.bytes_per_sec = 20000000}}};
    unsigned char sets[LAYERS][SEGMENTS] = {{0}};
    struct tec_prefetch_result result;
    open_store(0);
    struct tec_prefetch *s = start(&options);
    for (int round = 1; round < 4; round++) {
        pin_all();
        struct tec_prefetch_forward f = plain(sets);
        REQUIRE(tec_prefetch_begin(s, &f, NULL) == TEC_OK);
        for (uint32_t u = 0; u < SEGMENTS; u++)
            put(u, round);
        REQUIRE(store_compact(store, NULL) == TEC_OK);
        CHECK_INT(kv[0]->version, ==, round); /* the older one */
        CHECK(compute(s, sets, 0) > 0);
        CHECK_INT(tec_prefetch_finish(s, &result, NULL), ==, TEC_OK);
        drop_all();
    }
    tec_prefetch_destroy(s);
    close_store();
}

TEST(what_cannot_be_loaded_makes_the_forward_void)
{
    const struct tec_prefetch_options options = {.direct = true};
    unsigned char sets[LAYERS][SEGMENTS] = {{0}};
    struct tec_prefetch_result result;
    struct tec_error err;
    open_store(0);
    pin_all();
    struct tec_prefetch *s = start(&options);
    struct tec_prefetch_forward f = plain(sets);
    /* Damage the last layer of the last segment, which is the end of the file. */
    int file = open(path, O_RDWR);
    off_t end = lseek(file, 0, SEEK_END);
    REQUIRE(file >= 0 && pwrite(file, "x", 1, end - 100) == 1 && close(file) == 0);
    REQUIRE(tec_prefetch_begin(s, &f, NULL) == TEC_OK);
    CHECK_INT(compute(s, sets, 0), ==, -1);
    CHECK(tec_prefetch_ready(s, LAYERS - 1) && !tec_prefetch_wait(s, 0));
    CHECK_INT(tec_prefetch_finish(s, &result, &err), ==, TEC_NOT_FOUND);
    printf("# %s\n", err.message);
    CHECK(result.failed[SEGMENTS - 1] && !result.failed[0]);
    CHECK_INT(result.counts.failed, ==, 1);
    drop_all();
    struct tec_store_segment_view view; /* it is missing now; computed, all is well */
    REQUIRE(tec_store_view(store, SEGMENTS - 1, &view));
    CHECK(!view.has_kv);
    memset(sets, 0, sizeof sets);
    for (uint32_t u = 0; u + 1 < SEGMENTS; u++)
        REQUIRE(tec_store_pin(store, u, &kv[u], NULL) == TEC_OK);
    kv[SEGMENTS - 1] = NULL;
    CHECK_INT(tec_prefetch_begin(s, &f, NULL), ==, TEC_INVALID);
    for (int l = 0; l < LAYERS; l++)
        sets[l][SEGMENTS - 1] = 1;
    REQUIRE(tec_prefetch_begin(s, &f, NULL) == TEC_OK);
    CHECK(compute(s, sets, 0) > 0);
    CHECK_INT(tec_prefetch_finish(s, &result, NULL), ==, TEC_OK);
    for (uint32_t u = 0; u + 1 < SEGMENTS; u++)
        tec_store_drop(store, kv[u]);
    tec_prefetch_destroy(s);
    close_store();
}

TEST(what_is_told_out_of_order_is_refused)
{
    const struct tec_prefetch_options options = {.poll_ns = 1000};
    unsigned char sets[LAYERS][SEGMENTS] = {{0}};
    unsigned char all[SEGMENTS];
    struct tec_prefetch_result result;
    open_store(1 << 20);
    pin_all();
    struct tec_prefetch *s = start(&options);
    struct tec_prefetch_forward f = plain(sets);
    memset(all, 1, sizeof all);
    for (int kind = 0; kind < 5; kind++) {
        REQUIRE(tec_prefetch_begin(s, &f, NULL) == TEC_OK);
        CHECK_INT(tec_prefetch_begin(s, &f, NULL), ==, TEC_INVALID);
        REQUIRE(tec_prefetch_wait(s, 0));
        tec_prefetch_started(s, kind == 0);
        if (kind == 1)
            tec_prefetch_known(s, 2, sets[2]);
        if (kind == 2)
            tec_prefetch_known(s, 1, all); /* grows */
        if (kind == 3)
            tec_prefetch_ended(s, 1);
        if (kind == 4) {
            tec_prefetch_known(s, 1, sets[1]);
            tec_prefetch_started(s, 1); /* layer 0 did not end */
        }
        CHECK(!tec_prefetch_wait(s, LAYERS - 1));
        CHECK_INT(tec_prefetch_finish(s, &result, NULL), ==, TEC_INVALID);
    }
    tec_prefetch_destroy(s);
    drop_all();
    close_store();
}

TEST(a_forward_given_up_stops_its_loads)
{
    const struct tec_prefetch_options options = {
        .limit = {[TEC_KEPT_FILE] = {.bytes_per_sec = 2000000}}};
    unsigned char sets[LAYERS][SEGMENTS] = {{0}};
    struct tec_prefetch_result result;
    open_store(0);
    pin_all();
    struct tec_prefetch *s = start(&options);
    struct tec_prefetch_forward f = plain(sets);
    REQUIRE(tec_prefetch_begin(s, &f, NULL) == TEC_OK);
    pause_ns(20000000);
    CHECK_INT(tec_prefetch_finish(s, &result, NULL), ==, TEC_OK);
    CHECK_INT(result.counts.cancelled, >, PIECES / 2);
    CHECK_INT(tec_prefetch_finish(s, &result, NULL), ==, TEC_OK); /* nothing to finish */
    REQUIRE(tec_prefetch_begin(s, &f, NULL) == TEC_OK);
    tec_prefetch_destroy(s); /* with one that is open */
    drop_all();
    close_store();
}

TEST(sizes_out_of_range_are_refused_and_memory_may_be_missing)
{
    struct tec_prefetch *s = NULL;
    struct tec_error err;
    open_store(0);
    const struct tec_prefetch_options wrong[] = {
        {.layers = 0, .segments = 1},
        {.layers = TEC_MAX_LOADING_LAYERS + 1, .segments = 1},
        {.layers = 1, .segments = TEC_MAX_LOADING_SEGMENTS + 1},
        {.layers = 1, .segments = 1, .grain_bytes = -1},
        {.layers = 1, .segments = 1, .limit = {{.latency_ns = -1}}}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK_INT(tec_prefetch_create(&s, store, &wrong[i], &heap, &err), ==, TEC_INVALID);
    const struct tec_prefetch_options right = {.layers = LAYERS, .segments = SEGMENTS};
    for (int n = 1; n < 100; n++) {
        heap.fail_at = heap.calls + n;
        enum tec_status status = tec_prefetch_create(&s, store, &right, &heap, &err);
        heap.fail_at = 0;
        if (status == TEC_OK) {
            tec_prefetch_destroy(s);
            CHECK(n > 3);
            break;
        }
        CHECK_INT(status, ==, TEC_NO_MEMORY);
    }
    close_store();
}

TAP_MAIN
