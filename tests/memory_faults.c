/* memory_faults.c - tests of faults while a forward loads a memory: no wrong byte is used,
 * acknowledged data remains, and an error sentence says where the fault is. */
#include "graph/memory/prefetch.h"
#include "tests/box.h"
#include "tests/store_inside.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LAYERS = 5, ROW = 128, DIM = 3, SEGMENTS = 12, TOKENS = 24, BODY = 2 * TOKENS * ROW };
enum { PIECE = BODY + 64, PIECES = LAYERS * SEGMENTS, KV = LAYERS * PIECE };

static char path[64], folder[32];
static struct tec_store *store;
static struct tec_heap heap;
static _Alignas(64) unsigned char room[PIECES][PIECE];
static struct tec_kv *kv[SEGMENTS];
static uint32_t segments[SEGMENTS];
static struct tec_error err;

static struct tec_store_options plain(int64_t ram)
{
    return (struct tec_store_options){
        .path = path,
        .key = {.model = {9}, .layers = LAYERS, .row_bytes = ROW, .dim = DIM},
        .max_segments = 4 * SEGMENTS,
        .threshold = 0.9,
        .stable_steps = 2,
        .ram_bytes = ram,
        .sync_each = true};
}

static enum tec_status open_store(int64_t ram, int64_t most)
{
    struct tec_store_options options = plain(ram);
    options.log.max_bytes = most;
    return tec_store_open(&store, &options, &heap, &err);
}

static void begin(int64_t ram, int64_t most)
{
    box_folder(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/store", folder);
    memset(&heap, 0, sizeof heap);
    REQUIRE(open_store(ram, most) == TEC_OK);
}

static void end(void)
{
    tec_store_close(store);
    store = NULL;
    CHECK_INT(heap.live, ==, 0);
    unlink(path);
    rmdir(folder);
}

/* Make segments of three groups; the text says only which segment and which version it is. */
static enum tec_status put(uint32_t i, int round)
{
    char id[8], text[32];
    float v[DIM] = {0};
    struct tec_groups_change change;
    v[i % DIM] = 1.0f;
    snprintf(id, sizeof id, "u%u", i);
    int n = snprintf(text, sizeof text, "%u round %d", i, round);
    return tec_store_put(store, id, text, (size_t)n, TOKENS, v, &segments[i], &change, &err);
}

static unsigned char byte_of(uint64_t segment, uint64_t version, uint64_t epoch, uint32_t layer)
{
    return (unsigned char)(segment * 13 + version * 101 + epoch * 29 + layer * 3);
}

static enum tec_status give(uint32_t segment)
{
    static unsigned char rows[LAYERS][BODY];
    const void *pieces[LAYERS];
    struct tec_store_segment_view v;
    REQUIRE(tec_store_view(store, segment, &v));
    for (uint32_t l = 0; l < LAYERS; l++) {
        memset(rows[l], byte_of(v.segment, v.version, v.epoch, l), BODY);
        pieces[l] = rows[l];
    }
    return tec_store_put_kv(store, segment, v.version, v.epoch, pieces, &err);
}

static uint32_t fill(void)
{
    uint32_t list[4 * SEGMENTS], n = tec_store_missing(store, list, 4 * SEGMENTS);
    for (uint32_t i = 0; i < n; i++)
        REQUIRE(give(list[i]) == TEC_OK);
    return n;
}

static void fill_all(void)
{
    for (uint32_t i = 0; i < SEGMENTS; i++)
        REQUIRE(put(i, 0) == TEC_OK);
    CHECK_INT(fill(), ==, SEGMENTS);
}

/* The segment whose bytes each pinned KV must have. */
static struct tec_store_segment_view pinned[SEGMENTS];

/* Pin what is kept; the others are computed. Returns how many are pinned. */
static uint32_t pin(unsigned char *computed)
{
    uint32_t n = 0;
    for (uint32_t u = 0; u < SEGMENTS; u++) {
        REQUIRE(tec_store_view(store, segments[u], &pinned[u]));
        kv[u] = NULL;
        computed[u] = tec_store_pin(store, segments[u], &kv[u], &err) != TEC_OK;
        n += !computed[u];
    }
    return n;
}

static struct tec_prefetch *stream_new(int64_t bytes_per_sec)
{
    const struct tec_prefetch_options options = {
        .layers = LAYERS,
        .segments = SEGMENTS,
        .direct = true,
        .limit = {[TEC_KEPT_FILE] = {.bytes_per_sec = bytes_per_sec}}};
    struct tec_prefetch *stream = NULL;
    REQUIRE(tec_prefetch_create(&stream, store, &options, &heap, &err) == TEC_OK);
    return stream;
}

/* Begin a forward of all segments on what is pinned. */
static void forward_begin(struct tec_prefetch *s, const unsigned char *computed)
{
    static unsigned char *staging[PIECES];
    for (uint32_t i = 0; i < PIECES; i++)
        staging[i] = room[i];
    const struct tec_prefetch_forward f = {.layers = LAYERS,
                                           .segments = SEGMENTS,
                                           .overlap = TEC_OVERLAP_BOUNDED,
                                           .kv = kv,
                                           .staging = staging,
                                           .first = computed};
    REQUIRE(tec_prefetch_begin(s, &f, &err) == TEC_OK);
}

/* Run the rest of the forward: every byte reported as ready must be the pinned version's. */
static enum tec_status forward_end(struct tec_prefetch *s, const unsigned char *computed)
{
    struct tec_prefetch_result result;
    for (int l = 0; l < LAYERS && tec_prefetch_wait(s, l); l++) {
        tec_prefetch_started(s, l);
        for (int u = 0; u < SEGMENTS; u++) {
            const unsigned char *p = tec_prefetch_pieces(s)[l * SEGMENTS + u];
            const struct tec_store_segment_view *v = &pinned[u];
            unsigned char want = byte_of(v->segment, v->version, v->epoch, (uint32_t)l);
            CHECK(computed[u] || (p[0] == want && memcmp(p, p + 1, BODY - 1) == 0));
        }
        if (l + 1 < LAYERS)
            tec_prefetch_known(s, l + 1, computed);
        tec_prefetch_ended(s, l);
    }
    enum tec_status status = tec_prefetch_finish(s, &result, &err);
    for (uint32_t u = 0; u < SEGMENTS; u++)
        tec_store_drop(store, kv[u]);
    return status;
}

static enum tec_status forward(struct tec_prefetch *s)
{
    unsigned char computed[SEGMENTS];
    (void)pin(computed);
    forward_begin(s, computed);
    return forward_end(s, computed);
}

TEST(a_segment_updated_while_it_is_loaded_is_new_the_next_time)
{
    unsigned char computed[SEGMENTS];
    begin(0, 0);
    fill_all();
    struct tec_prefetch *s = stream_new(KV * 100); /* a segment takes 10 ms */
    CHECK_INT(pin(computed), ==, SEGMENTS);
    forward_begin(s, computed);
    REQUIRE(put(4, 1) == TEC_OK && give(segments[4]) == TEC_OK);
    REQUIRE(store_compact(store, &err) == TEC_OK);
    CHECK_INT(forward_end(s, computed), ==, TEC_OK); /* the old bytes */
    CHECK_INT(pinned[4].version, ==, 1);
    CHECK_INT(forward(s), ==, TEC_OK); /* the new ones */
    CHECK_INT(pinned[4].version, ==, 2);
    tec_prefetch_destroy(s);
    end();
}

TEST(a_segment_removed_while_it_is_loaded_is_there_until_it_is_dropped)
{
    struct tec_groups_change change;
    unsigned char computed[SEGMENTS];
    begin(0, 0);
    fill_all();
    struct tec_prefetch *s = stream_new(KV * 100);
    CHECK_INT(pin(computed), ==, SEGMENTS);
    forward_begin(s, computed);
    REQUIRE(tec_store_remove(store, "u7", &change, &err) == TEC_OK);
    REQUIRE(put(7, 5) == TEC_OK); /* the handle is used again */
    CHECK_INT(segments[7], ==, 7);
    CHECK_INT(forward_end(s, computed), ==, TEC_OK);
    tec_prefetch_destroy(s);
    end();
}

TEST(a_group_that_flips_in_the_step_that_retrieves_it_is_of_one_form)
{
    const float query[DIM] = {1.0f, 0, 0};
    struct tec_groups_change change;
    unsigned char computed[SEGMENTS];
    uint32_t got[4], n = 0;
    begin(1 << 22, 0);
    fill_all();
    struct tec_prefetch *s = stream_new(KV * 100);
    REQUIRE(tec_store_query(store, query, 4, got, &n, &err) == TEC_OK && n == 4);
    CHECK_INT(pin(computed), ==, SEGMENTS); /* alone */
    forward_begin(s, computed);
    REQUIRE(tec_store_step(store, 2, &change, &err) == TEC_OK); /* and now jointly */
    CHECK_INT(change.n_promoted, ==, DIM);
    CHECK_INT(forward_end(s, computed), ==, TEC_OK);
    CHECK_INT(pin(computed), ==, 0); /* no segment is of a form that it no longer has */
    REQUIRE(tec_store_query(store, query, 4, got, &n, &err) == TEC_OK);
    CHECK_INT(n, ==, 4); /* the whole group */
    struct tec_store_segment_view v = pinned[0];
    const void *old[LAYERS] = {room[0], room[0], room[0], room[0], room[0]};
    CHECK_INT(tec_store_put_kv(store, segments[0], v.version, 0, old, &err), ==, TEC_NOT_FOUND);
    printf("# %s\n", err.message);
    CHECK_INT(fill(), ==, SEGMENTS);
    CHECK_INT(pin(computed), ==, SEGMENTS); /* jointly; and now one of them changes */
    forward_begin(s, computed);
    REQUIRE(put(0, 1) == TEC_OK);
    CHECK_INT(forward_end(s, computed), ==, TEC_OK);
    CHECK_INT(pin(computed), ==, SEGMENTS - 4); /* its group is computed again, each alone */
    for (uint32_t u = 0; u < SEGMENTS; u++)
        tec_store_drop(store, kv[u]);
    tec_prefetch_destroy(s);
    end();
}

TEST(a_full_ram_tier_reads_from_the_file)
{
    struct tec_kv *held = NULL;
    begin(3 * KV, 0); /* room for three segments */
    fill_all();
    struct tec_prefetch *s = stream_new(0);
    CHECK_INT(forward(s), ==, TEC_OK);
    struct tec_prefetch_counts c = tec_prefetch_counts(s);
    CHECK_INT(c.bytes[TEC_KEPT_RAM], ==, 3 * KV);
    CHECK_INT(c.bytes[TEC_KEPT_FILE], ==, 9 * KV);
    unsigned char computed[SEGMENTS];
    CHECK_INT(pin(computed), ==, SEGMENTS); /* all RAM is pinned: nothing more goes in */
    REQUIRE(tec_store_pin(store, segments[0], &held, &err) == TEC_OK);
    CHECK_INT(tec_store_warm(store, held, &err), ==, TEC_NO_MEMORY);
    printf("# %s\n", err.message);
    forward_begin(s, computed);
    CHECK_INT(put(1, 1), ==, TEC_OK);
    CHECK_INT(give(segments[1]), ==, TEC_OK); /* to the file alone */
    CHECK_INT(forward_end(s, computed), ==, TEC_OK);
    tec_store_drop(store, held);
    CHECK_INT(forward(s), ==, TEC_OK);
    CHECK(tec_store_counts(store).ram_bytes <= 3 * KV);
    tec_prefetch_destroy(s);
    end();
}

/* Check that all segments are of that round or newer, and that what is loaded is theirs. Computes
 * what is missing. */
static void check_rounds(int64_t ram, const int *rounds)
{
    REQUIRE(open_store(ram, 0) == TEC_OK);
    for (uint32_t u = 0; u < SEGMENTS; u++) {
        char id[8], want[32];
        struct tec_store_segment_view v;
        snprintf(id, sizeof id, "u%u", u);
        snprintf(want, sizeof want, "%u round %d", u, rounds[u]);
        REQUIRE(store_find(store, id, &segments[u]) == TEC_OK);
        REQUIRE(tec_store_view(store, segments[u], &v));
        CHECK_STR(v.text, want);
    }
    struct tec_prefetch *s = stream_new(0);
    CHECK_INT(forward(s), ==, TEC_OK);
    tec_prefetch_destroy(s);
}

TEST(a_file_cut_off_at_any_place_gives_no_wrong_byte)
{
    struct stat st;
    begin(0, 0);
    fill_all();
    tec_store_close(store);
    REQUIRE(stat(path, &st) == 0);
    uint32_t computed_most = 0;
    for (int i = 0; i < 40; i++) {
        /* among the texts, which come first, and among KV */
        off_t at = i < 20 ? 4096 + i * 173 : st.st_size - st.st_size / 21 * (i - 20);
        REQUIRE(truncate(path, at) == 0);
        REQUIRE(open_store(0, 0) == TEC_OK);
        struct tec_prefetch *s = stream_new(0);
        uint32_t n = tec_store_counts(store).segments, lost = SEGMENTS - n;
        for (uint32_t u = 0; u < SEGMENTS; u++)
            REQUIRE(put(u, 0) == TEC_OK); /* those whose text was cut off come again */
        CHECK_INT(forward(s), ==, TEC_OK);
        computed_most = lost > computed_most ? lost : computed_most;
        CHECK(fill() >= lost);
        CHECK_INT(forward(s), ==, TEC_OK);
        tec_prefetch_destroy(s);
        tec_store_close(store);
        unlink(path); /* as it was */
        REQUIRE(open_store(0, 0) == TEC_OK);
        fill_all();
        tec_store_close(store);
    }
    CHECK_INT(computed_most, >, 0);
    REQUIRE(open_store(0, 0) == TEC_OK);
    end();
}

TEST(a_file_damaged_under_a_forward_gives_no_wrong_byte)
{
    uint32_t seed = 11, voids = 0;
    struct stat st;
    begin(0, 0);
    fill_all();
    REQUIRE(stat(path, &st) == 0);
    struct tec_prefetch *s = stream_new(0);
    for (int i = 0; i < 60; i++) {
        seed = seed * 1664525u + 1013904223u;
        int file = open(path, O_WRONLY);
        off_t at = 4096 + (off_t)((seed >> 8) % (uint32_t)(st.st_size - 4096));
        REQUIRE(file >= 0 && pwrite(file, "damage", 6, at) == 6 && close(file) == 0);
        enum tec_status status = forward(s);
        CHECK(status == TEC_OK || status == TEC_NOT_FOUND);
        voids += status != TEC_OK;
        for (int again = 0; status != TEC_OK && again < SEGMENTS; again++)
            status = forward(s); /* each time at least one segment fewer is loaded */
        CHECK_INT(status, ==, TEC_OK);
        (void)fill();
        REQUIRE(stat(path, &st) == 0);
    }
    printf("# 60 damages, %u forwards void: %s\n", voids, err.message);
    CHECK(voids > 10);
    tec_prefetch_destroy(s);
    end();
}

TEST(a_disk_that_fills_up_loses_nothing_acknowledged)
{
    int rounds[SEGMENTS] = {0};
    begin(0, 0);
    fill_all();
    struct tec_prefetch *s = stream_new(0);
    struct rlimit was, now;
    struct stat st;
    REQUIRE(stat(path, &st) == 0 && getrlimit(RLIMIT_FSIZE, &was) == 0);
    signal(SIGXFSZ, SIG_IGN);
    now = (struct rlimit){(rlim_t)st.st_size + KV + 700, was.rlim_max};
    REQUIRE(setrlimit(RLIMIT_FSIZE, &now) == 0);
    int failed = 0;
    for (int round = 1; round < 6; round++)
        for (uint32_t u = 0; u < SEGMENTS; u++) {
            enum tec_status status = put(u, round);
            CHECK(status == TEC_OK || status == TEC_IO);
            if (status == TEC_OK)
                rounds[u] = round; /* acknowledged */
            if (status == TEC_OK)
                status = give(segments[u]);
            if (status != TEC_OK && failed++ == 0)
                printf("# %s\n", err.message);
            if (u == 5)
                CHECK_INT(forward(s), ==, TEC_OK); /* reading goes on */
        }
    CHECK(failed > 0 && tec_store_fails(store));
    CHECK(strstr(err.message, path) != NULL);
    tec_prefetch_destroy(s);
    tec_store_close(store);
    REQUIRE(setrlimit(RLIMIT_FSIZE, &was) == 0);
    check_rounds(0, rounds);
    REQUIRE(put(0, 99) == TEC_OK); /* there is room again */
    end();
}

TEST(a_size_limit_forgets_kv_but_no_text)
{
    int rounds[SEGMENTS];
    begin(0, 6 * KV);
    for (int round = 0; round < 4; round++)
        for (uint32_t u = 0; u < SEGMENTS; u++) {
            REQUIRE(put(u, round) == TEC_OK);
            CHECK_INT(give(segments[u]), ==, TEC_OK);
            rounds[u] = round;
        }
    struct tec_prefetch *s = stream_new(0);
    CHECK_INT(forward(s), ==, TEC_OK); /* what is left is right, the rest is computed */
    CHECK(tec_store_counts(store).file_bytes <= 6 * KV);
    CHECK(tec_store_counts(store).evicted[TEC_KEPT_FILE] > 0);
    tec_prefetch_destroy(s);
    tec_store_close(store);
    check_rounds(0, rounds);
    end();
}

TAP_MAIN
