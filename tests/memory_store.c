/* memory_store.c - tests of the memory store: tiers, versions under readers, what survives, what is
 * refused, and what is counted. */
#include "base/clock.h"
#include "graph/memory/store.h"
#include "tests/box.h"
#include "tests/sanitized.h"
#include "tests/store_inside.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LAYERS = 3, ROW = 32, DIM = 4, TOKENS = 5, SEGMENTS = 40 };

static char path[64], folder[32];

static void make_path(void)
{
    box_folder(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/kitchen.mem", folder);
}

static void remove_path(void)
{
    char fresh[80];
    snprintf(fresh, sizeof fresh, "%s.new", path);
    unlink(fresh);
    unlink(path);
    rmdir(folder);
}

static struct tec_store_options plain(const char *file)
{
    return (struct tec_store_options){.path = file,
                                      .key = {.model = {1},
                                              .tokenizer = {2},
                                              .dtype = {3},
                                              .layers = LAYERS,
                                              .row_bytes = ROW,
                                              .dim = DIM},
                                      .max_segments = SEGMENTS,
                                      .threshold = 0.8,
                                      .stable_steps = 3,
                                      .ram_bytes = 1 << 20,
                                      .sync_each = true};
}

/* Segment i points along one of the axes; the segments of an axis are alike. */
static void vector(uint32_t i, float *v)
{
    for (int k = 0; k < DIM; k++)
        v[k] = (uint32_t)k == i % DIM ? 1.0f : 0.01f * (float)(i % 7);
}

static enum tec_status put(struct tec_store *s, uint32_t i, uint32_t round, uint32_t *segment,
                           struct tec_groups_change *change, struct tec_error *err)
{
    char id[16], text[32];
    float v[DIM];
    vector(i, v);
    snprintf(id, sizeof id, "segment%u", i);
    int n = snprintf(text, sizeof text, "text of %u, round %u", i, round);
    return tec_store_put(s, id, text, (size_t)n, TOKENS, v, segment, change, err);
}

static unsigned char byte_of(uint64_t segment, uint64_t version, uint64_t epoch, uint32_t layer)
{
    return (unsigned char)(segment * 31 + version * 7 + epoch * 3 + layer);
}

/* KV whose bytes tell which segment it belongs to. */
static enum tec_status give_kv(struct tec_store *s, uint32_t segment, struct tec_error *err)
{
    unsigned char rows[LAYERS][2 * TOKENS * ROW];
    const void *pieces[LAYERS];
    struct tec_store_segment_view v;
    REQUIRE(tec_store_view(s, segment, &v));
    for (uint32_t l = 0; l < LAYERS; l++) {
        memset(rows[l], byte_of(v.segment, v.version, v.epoch, l), sizeof rows[l]);
        pieces[l] = rows[l];
    }
    return tec_store_put_kv(s, segment, v.version, v.epoch, pieces, err);
}

static bool kv_right(struct tec_store *s, struct tec_kv *kv, uint64_t segment, uint64_t version,
                     uint64_t epoch)
{
    unsigned char piece[512];
    for (uint32_t l = 0; l < LAYERS; l++) {
        if (tec_store_read(s, kv, l, piece, NULL) != TEC_OK)
            return false;
        for (uint32_t i = 0; i < 2 * TOKENS * ROW; i++)
            if (piece[i] != byte_of(segment, version, epoch, l))
                return false;
    }
    return true;
}

static bool segment_right(struct tec_store *s, uint32_t segment)
{
    struct tec_store_segment_view v;
    struct tec_kv *kv = NULL;
    if (!tec_store_view(s, segment, &v) || tec_store_pin(s, segment, &kv, NULL) != TEC_OK)
        return false;
    bool right = kv_right(s, kv, v.segment, v.version, v.epoch);
    tec_store_drop(s, kv);
    return right;
}

static uint32_t fill(struct tec_store *s)
{
    uint32_t list[SEGMENTS], n = tec_store_missing(s, list, SEGMENTS);
    for (uint32_t i = 0; i < n; i++)
        REQUIRE(give_kv(s, list[i], NULL) == TEC_OK);
    return n;
}

TEST(segments_come_back_with_groups_texts_and_kv)
{
    struct tec_heap heap = {0};
    struct tec_store *s = NULL;
    struct tec_groups_change change;
    struct tec_store_options options = plain(path);
    struct tec_store_segment_view v;
    float query[DIM];
    uint32_t segment = 0, before[SEGMENTS], after[SEGMENTS], n = 0, m = 0;
    make_path();
    REQUIRE(tec_store_open(&s, &options, &heap, NULL) == TEC_OK);
    for (uint32_t i = 0; i < 20; i++)
        REQUIRE(put(s, i, 0, &segment, &change, NULL) == TEC_OK);
    CHECK_INT(fill(s), ==, 20);
    REQUIRE(tec_store_step(s, 3, &change, NULL) == TEC_OK);
    CHECK_INT(change.n_promoted, ==, 4);
    CHECK_INT(fill(s), ==, 20); /* jointly now */
    REQUIRE(tec_store_remove(s, "segment5", &change, NULL) == TEC_OK);
    REQUIRE(put(s, 6, 1, &segment, &change, NULL) == TEC_OK);
    CHECK(change.demoted != TEC_NO_GROUP);
    CHECK_INT(change.computed, ==, 5 * TOKENS);
    vector(2, query);
    REQUIRE(tec_store_query(s, query, 12, before, &n, NULL) == TEC_OK);
    uint32_t missing = tec_store_missing(s, after, SEGMENTS);
    CHECK_INT(missing, ==, 4 + 5); /* the four left of one group, the five of the other */
    tec_store_close(s);

    REQUIRE(tec_store_open(&s, &options, &heap, NULL) == TEC_OK);
    REQUIRE(tec_store_query(s, query, 12, after, &m, NULL) == TEC_OK);
    CHECK_INT(n, ==, m);
    CHECK_INT(tec_store_missing(s, before, SEGMENTS), ==, missing);
    REQUIRE(store_find(s, "segment6", &segment) == TEC_OK);
    REQUIRE(tec_store_view(s, segment, &v));
    CHECK_STR(v.text, "text of 6, round 1");
    CHECK_INT(v.version, ==, 2);
    CHECK_INT(store_find(s, "segment5", &segment), ==, TEC_NOT_FOUND);
    REQUIRE(store_find(s, "segment3", &segment) == TEC_OK);
    REQUIRE(tec_store_view(s, segment, &v));
    CHECK(v.epoch != 0 && v.has_kv && !v.in_ram);
    CHECK(segment_right(s, segment));
    CHECK_INT(tec_store_counts(s).damages, ==, 0);
    tec_store_close(s);
    CHECK_INT(heap.live, ==, 0);
    remove_path();
}

TEST(a_reader_keeps_its_version)
{
    for (int with_file = 0; with_file < 2; with_file++) {
        struct tec_heap heap = {0};
        struct tec_store *s = NULL;
        struct tec_groups_change change;
        struct tec_kv *old = NULL, *fresh = NULL;
        uint32_t segment = 0;
        make_path();
        struct tec_store_options options = plain(with_file ? path : NULL);
        options.ram_bytes = with_file ? 0 : 1 << 20;
        REQUIRE(tec_store_open(&s, &options, &heap, NULL) == TEC_OK);
        REQUIRE(put(s, 1, 0, &segment, &change, NULL) == TEC_OK);
        REQUIRE(give_kv(s, segment, NULL) == TEC_OK);
        REQUIRE(tec_store_pin(s, segment, &old, NULL) == TEC_OK);
        REQUIRE(put(s, 1, 1, &segment, &change, NULL) == TEC_OK);
        CHECK_INT(tec_store_pin(s, segment, &fresh, NULL), ==, TEC_NOT_FOUND);
        REQUIRE(give_kv(s, segment, NULL) == TEC_OK);
        REQUIRE(tec_store_pin(s, segment, &fresh, NULL) == TEC_OK);
        CHECK(kv_right(s, old, 1, 1, 0) && kv_right(s, fresh, 1, 2, 0));
        REQUIRE(store_compact(s, NULL) == TEC_OK); /* the old one is not in the new file */
        CHECK(kv_right(s, old, 1, 1, 0) && kv_right(s, fresh, 1, 2, 0));
        REQUIRE(tec_store_remove(s, "segment1", &change, NULL) == TEC_OK);
        CHECK(kv_right(s, old, 1, 1, 0) && kv_right(s, fresh, 1, 2, 0));
        tec_store_drop(s, old);
        CHECK(kv_right(s, fresh, 1, 2, 0));
        tec_store_drop(s, fresh);
        CHECK_INT(tec_store_counts(s).ram_bytes, ==, 0);
        tec_store_close(s);
        CHECK_INT(heap.live, ==, 0);
        remove_path();
    }
}

TEST(kv_of_what_has_changed_is_refused)
{
    struct tec_heap heap = {0};
    struct tec_store *s = NULL;
    struct tec_groups_change change;
    struct tec_error err;
    struct tec_store_segment_view v;
    uint32_t segment = 0, other = 0;
    unsigned char rows[2 * TOKENS * ROW] = {0};
    const void *pieces[LAYERS] = {rows, rows, rows};
    const struct tec_store_options options = plain(NULL);
    REQUIRE(tec_store_open(&s, &options, &heap, NULL) == TEC_OK);
    REQUIRE(put(s, 0, 0, &segment, &change, NULL) == TEC_OK);
    REQUIRE(put(s, 4, 0, &other, &change, NULL) == TEC_OK);
    REQUIRE(tec_store_view(s, segment, &v));
    REQUIRE(put(s, 0, 1, &segment, &change, NULL) == TEC_OK);
    CHECK_INT(tec_store_put_kv(s, segment, v.version, v.epoch, pieces, &err), ==, TEC_NOT_FOUND);
    REQUIRE(tec_store_step(s, 3, &change, NULL) == TEC_OK); /* the group flips: a joint form now */
    CHECK_INT(tec_store_put_kv(s, segment, v.version + 1, 0, pieces, &err), ==, TEC_NOT_FOUND);
    REQUIRE(tec_store_view(s, segment, &v));
    CHECK_INT(tec_store_put_kv(s, segment, v.version, v.epoch, pieces, &err), ==, TEC_OK);
    REQUIRE(tec_store_remove(s, "segment4", &change, NULL) == TEC_OK);
    CHECK_INT(tec_store_pin(s, segment, &(struct tec_kv *){NULL}, &err), ==, TEC_NOT_FOUND);
    CHECK_STR(
        err.message,
        "memory: KV of segment 'segment0' is not there in the form it should have; compute it");
    tec_store_close(s);
    CHECK_INT(heap.live, ==, 0);
}

static int evictions[TEC_KEPT_PLACES];

static void on_evict(void *user, const struct tec_eviction *e)
{
    (void)user;
    evictions[e->tier]++;
    CHECK(e->tier == TEC_KEPT_FILE || e->bytes != NULL);
}

/* Check that nothing can leave RAM while n <= 4 others are held. */
static enum tec_status give_while_held(struct tec_store *s, uint32_t segment,
                                       const uint32_t *others, uint32_t n)
{
    struct tec_kv *held[4];
    for (uint32_t i = 0; i < n; i++)
        REQUIRE(tec_store_pin(s, others[i], &held[i], NULL) == TEC_OK);
    enum tec_status status = give_kv(s, segment, NULL);
    for (uint32_t i = 0; i < n; i++)
        tec_store_drop(s, held[i]);
    return status;
}

static void check_warm(struct tec_store *s, uint32_t segment)
{
    struct tec_kv *kv = NULL;
    REQUIRE(tec_store_pin(s, segment, &kv, NULL) == TEC_OK);
    CHECK(tec_store_kv_piece(kv, 0) == NULL);
    REQUIRE(tec_store_warm(s, kv, NULL) == TEC_OK);
    CHECK(tec_store_kv_piece(kv, 0) != NULL && kv_right(s, kv, 1, 1, 0));
    tec_store_drop(s, kv);
}

/* Store ten segments with KV, of which the second is used again and again. */
static void fill_ten(struct tec_store *s, uint32_t *segment)
{
    struct tec_groups_change change;
    struct tec_kv *kv = NULL;
    for (uint32_t i = 0; i < 10; i++) {
        REQUIRE(put(s, i, 0, &segment[i], &change, NULL) == TEC_OK);
        REQUIRE(give_kv(s, segment[i], NULL) == TEC_OK);
        if (i < 2)
            continue;
        REQUIRE(tec_store_pin(s, segment[1], &kv, NULL) == TEC_OK);
        tec_store_drop(s, kv);
    }
}

static void check_eviction(bool with_file)
{
    const int64_t one = LAYERS * (int64_t)(2 * TOKENS * ROW + 64);
    struct tec_heap heap = {0};
    struct tec_store *s = NULL;
    struct tec_store_segment_view v;
    uint32_t segment[10] = {0};
    make_path();
    struct tec_store_options options = plain(with_file ? path : NULL);
    options.ram_bytes = 4 * one;
    options.evict = on_evict;
    memset(evictions, 0, sizeof evictions);
    REQUIRE(tec_store_open(&s, &options, &heap, NULL) == TEC_OK);
    fill_ten(s, segment);
    CHECK_INT(evictions[TEC_KEPT_RAM], ==, 6);
    CHECK_INT(tec_store_counts(s).ram_bytes, ==, 4 * one);
    CHECK(tec_store_view(s, segment[1], &v) && v.has_kv && v.in_ram);
    CHECK(tec_store_view(s, segment[0], &v) && v.has_kv == with_file && !v.in_ram);
    const uint32_t young[] = {segment[1], segment[7], segment[8], segment[9]};
    CHECK_INT(give_while_held(s, segment[0], young, 4), ==, with_file ? TEC_OK : TEC_NO_MEMORY);
    if (with_file)
        check_warm(s, segment[0]);
    tec_store_close(s);
    CHECK_INT(heap.live, ==, 0);
    remove_path();
}

static uint32_t put_text(struct tec_store *s, const char *id, const char *text, uint32_t axis)
{
    struct tec_groups_change change;
    uint32_t segment = TEC_NO_SEGMENT;
    float v[DIM];
    vector(axis, v);
    REQUIRE(tec_store_put(s, id, text, strlen(text), TOKENS, v, &segment, &change, NULL) == TEC_OK);
    return segment;
}

/* Does the KV of a segment have the bytes that give_kv has written for another one, v, elsewhere?
 */
static bool same_kv(struct tec_store *s, uint32_t segment, const struct tec_store_segment_view *v)
{
    struct tec_kv *kv = NULL;
    bool right = tec_store_pin(s, segment, &kv, NULL) == TEC_OK &&
                 kv_right(s, kv, v->segment, v->version, v->epoch);
    tec_store_drop(s, kv);
    return right;
}

TEST(what_another_store_has_kept_of_a_text_is_taken_over)
{
    struct tec_heap heap = {0};
    struct tec_store *a, *b;
    struct tec_store_options in_file, in_ram = plain(NULL);
    struct tec_error err;
    struct tec_store_segment_view v;
    make_path();
    in_file = plain(path);
    in_file.ram_bytes = 0; /* its KV is read from the file */
    REQUIRE(tec_store_open(&a, &in_file, &heap, NULL) == TEC_OK);
    REQUIRE(tec_store_open(&b, &in_ram, &heap, NULL) == TEC_OK);
    (void)put_text(b, "first", "of no use here", 1);
    uint32_t cup = put_text(a, "cup", "the cup is on the table", 0);
    uint32_t mug = put_text(b, "mug", "the cup is on the table", 2);
    uint32_t other = put_text(b, "other", "the cup is on the shelf", 3);
    CHECK_INT(tec_store_share(b, mug, a, &err), ==, TEC_NOT_FOUND); /* it has no KV of it yet */
    REQUIRE(give_kv(a, cup, NULL) == TEC_OK);
    REQUIRE(tec_store_view(a, cup, &v));
    CHECK_INT(tec_store_share(b, other, a, &err), ==, TEC_NOT_FOUND);
    CHECK_INT(tec_store_share(b, SEGMENTS, a, &err), ==, TEC_NOT_FOUND);
    CHECK_INT(tec_store_share(b, mug, a, &err), ==, TEC_OK);
    CHECK(same_kv(b, mug, &v));
    CHECK_INT(tec_store_share(b, mug, a, &err), ==, TEC_NOT_FOUND); /* it has its own */
    /* Another text under the same name is another text, and one that has gone is none. */
    mug = put_text(b, "mug", "the cup is on the shelf", 2);
    CHECK_INT(tec_store_share(b, mug, a, &err), ==, TEC_NOT_FOUND);
    struct tec_groups_change change;
    mug = put_text(b, "mug", "the cup is on the table", 2);
    REQUIRE(tec_store_remove(a, "cup", &change, NULL) == TEC_OK);
    CHECK_INT(tec_store_share(b, mug, a, &err), ==, TEC_NOT_FOUND);
    tec_store_close(a);
    tec_store_close(b);
    remove_path();
    CHECK_INT(heap.live, ==, 0);
}

/* Three alike, which become a static group, in two stores; in the second one text is another. */
TEST(joint_kv_is_taken_over_where_all_texts_of_the_group_are_the_same)
{
    struct tec_heap heap = {0};
    struct tec_store *stores[3];
    struct tec_store_options o = plain(NULL);
    struct tec_groups_change change;
    struct tec_error err;
    struct tec_store_segment_view v;
    uint32_t last[3];
    for (int i = 0; i < 3; i++) {
        REQUIRE(tec_store_open(&stores[i], &o, &heap, NULL) == TEC_OK);
        (void)put_text(stores[i], "x", "one", 0);
        (void)put_text(stores[i], "y", i == 2 ? "another two" : "two", 0);
        last[i] = put_text(stores[i], "z", "three", 0);
        for (int step = 1; step < 9; step++)
            REQUIRE(tec_store_step(stores[i], step, &change, NULL) == TEC_OK);
    }
    REQUIRE(give_kv(stores[0], last[0], NULL) == TEC_OK);
    REQUIRE(tec_store_view(stores[0], last[0], &v) && v.epoch != 0);
    CHECK_INT(tec_store_share(stores[1], last[1], stores[0], &err), ==, TEC_OK);
    CHECK(same_kv(stores[1], last[1], &v));
    CHECK_INT(tec_store_share(stores[2], last[2], stores[0], &err), ==, TEC_NOT_FOUND);
    for (int i = 0; i < 3; i++)
        tec_store_close(stores[i]);
    CHECK_INT(heap.live, ==, 0);
}

/* Many segments with one text, which come and go in any order. */
TEST(segments_are_found_by_their_texts)
{
    struct tec_heap heap = {0};
    struct tec_store *s;
    struct tec_store_options o = plain(NULL);
    struct tec_groups_change change;
    bool there[SEGMENTS] = {false};
    uint64_t state = 5;
    REQUIRE(tec_store_open(&s, &o, &heap, NULL) == TEC_OK);
    for (int round = 0; round < 2000; round++) {
        state = state * 6364136223846793005ULL + 1442695040888963407ULL;
        uint32_t i = (uint32_t)(state >> 33) % SEGMENTS, text = (uint32_t)(state >> 50) % 3;
        char id[16], words[16];
        snprintf(id, sizeof id, "id%u", i);
        snprintf(words, sizeof words, "text %u", text);
        if (there[i] && text == 2)
            REQUIRE(tec_store_remove(s, id, &change, NULL) == TEC_OK);
        else
            (void)put_text(s, id, words, i);
        there[i] = !(there[i] && text == 2);
    }
    int n = 0, in_chains = 0;
    for (int i = 0; i < SEGMENTS; i++)
        n += there[i];
    for (int text = 0; text < 3; text++) {
        char words[16];
        int bytes = snprintf(words, sizeof words, "text %d", text);
        in_chains += store_texts(s, words, (size_t)bytes);
    }
    CHECK_INT(in_chains, ==, n);
    tec_store_close(s);
    CHECK_INT(heap.live, ==, 0);
}

TEST(the_least_recently_used_leaves_ram_first)
{
    check_eviction(false);
    check_eviction(true);
}

TEST(a_full_file_is_compacted_and_then_forgets_kv_but_no_text)
{
    struct tec_heap heap = {0};
    struct tec_store *s = NULL;
    struct tec_groups_change change;
    struct tec_error err = {TEC_OK, ""};
    uint32_t segment = 0, list[SEGMENTS];
    make_path();
    struct tec_store_options options = plain(path);
    options.log.max_bytes = 40000;
    options.ram_bytes = 0;
    options.evict = on_evict;
    memset(evictions, 0, sizeof evictions);
    REQUIRE(tec_store_open(&s, &options, &heap, NULL) == TEC_OK);
    for (uint32_t round = 0; round < 4; round++)
        for (uint32_t i = 0; i < SEGMENTS; i++) {
            REQUIRE(put(s, i, round, &segment, &change, &err) == TEC_OK);
            REQUIRE(give_kv(s, segment, &err) == TEC_OK);
            CHECK(segment_right(s, segment));
        }
    struct tec_store_counts counts = tec_store_counts(s);
    CHECK_INT(counts.segments, ==, SEGMENTS);
    CHECK_INT(counts.file_bytes, <=, 40000);
    CHECK(counts.compactions > 3 && evictions[TEC_KEPT_FILE] > 10);
    uint32_t missing = tec_store_missing(s, list, SEGMENTS);
    CHECK(missing > 5 && missing < SEGMENTS);
    tec_store_close(s);
    REQUIRE(tec_store_open(&s, &options, &heap, NULL) == TEC_OK);
    CHECK_INT(tec_store_counts(s).segments, ==, SEGMENTS);
    CHECK_INT(tec_store_missing(s, list, SEGMENTS), <=, missing);
    CHECK_INT(put(s, SEGMENTS, 0, &segment, &change, &err), ==, TEC_NO_MEMORY);
    CHECK_STR(err.message, "memory: there is room for 40 segments, and as many are");
    tec_store_close(s);
    CHECK_INT(heap.live, ==, 0);
    remove_path();
}

TEST(a_full_disk_leaves_a_store_that_reads)
{
    struct tec_heap heap = {0};
    make_path();
    for (int64_t room = 4300; room < 22000; room += 311) {
        struct tec_store_options options = plain(path);
        struct tec_store *s = NULL;
        struct tec_groups_change change;
        struct tec_error err = {TEC_OK, ""};
        struct tec_store_segment_view v;
        uint32_t segment = 0, done = 0, kv_done = 0;
        options.log.fail_after = room;
        unlink(path);
        REQUIRE(tec_store_open(&s, &options, &heap, NULL) == TEC_OK);
        while (put(s, done, 0, &segment, &change, &err) == TEC_OK) {
            done++;
            if (give_kv(s, segment, &err) != TEC_OK)
                break;
            kv_done++;
        }
        CHECK(strstr(err.message, "not written") != NULL);
        CHECK(tec_store_fails(s));
        CHECK_INT(tec_store_counts(s).segments, ==, done); /* what failed is not done */
        CHECK_INT(tec_store_remove(s, "segment0", &change, &err), ==,
                  done ? TEC_IO : TEC_NOT_FOUND);
        for (uint32_t i = 0; i < kv_done; i++)
            CHECK(segment_right(s, i));
        tec_store_close(s);
        options.log.fail_after = 0;
        REQUIRE(tec_store_open(&s, &options, &heap, NULL) == TEC_OK);
        CHECK_INT(tec_store_counts(s).segments, ==, done);
        for (uint32_t i = 0; i < kv_done; i++)
            CHECK(tec_store_view(s, i, &v) && v.has_kv && segment_right(s, i));
        tec_store_close(s);
    }
    CHECK_INT(heap.live, ==, 0);
    remove_path();
}

/* A failed write is not remembered: once there is room again, all is as if it had not failed. */
TEST(a_disk_that_has_room_again_is_written_to_again)
{
    struct tec_heap heap = {0};
    struct tec_store *s = NULL;
    struct tec_groups_change change;
    struct tec_error err = {TEC_OK, ""};
    struct rlimit was, now;
    uint32_t segment = 0, other = 0;
    make_path();
    const struct tec_store_options options = plain(path);
    REQUIRE(tec_store_open(&s, &options, &heap, NULL) == TEC_OK);
    REQUIRE(put(s, 0, 0, &segment, &change, NULL) == TEC_OK);
    REQUIRE(getrlimit(RLIMIT_FSIZE, &was) == 0);
    signal(SIGXFSZ, SIG_IGN);
    now = (struct rlimit){(rlim_t)tec_store_counts(s).file_bytes + 300, was.rlim_max};
    REQUIRE(setrlimit(RLIMIT_FSIZE, &now) == 0);
    CHECK_INT(give_kv(s, segment, &err), ==, TEC_IO); /* a cache: RAM has it */
    CHECK(strstr(err.message, "not written") && tec_store_fails(s) && segment_right(s, segment));
    CHECK_INT(put(s, 1, 0, &other, &change, NULL), ==, TEC_OK); /* it is small enough */
    CHECK(!tec_store_fails(s));
    CHECK_INT(put(s, 2, 0, &other, &change, &err), ==, TEC_IO);
    CHECK(tec_store_fails(s));
    REQUIRE(setrlimit(RLIMIT_FSIZE, &was) == 0);
    CHECK_INT(put(s, 3, 0, &other, &change, NULL), ==, TEC_OK);
    CHECK_INT(give_kv(s, other, NULL), ==, TEC_OK);
    CHECK(!tec_store_fails(s));
    tec_store_close(s);
    REQUIRE(tec_store_open(&s, &options, &heap, NULL) == TEC_OK);
    CHECK_INT(tec_store_counts(s).damages, ==, 0);
    CHECK_INT(tec_store_counts(s).segments, ==, 3);
    REQUIRE(store_find(s, "segment3", &other) == TEC_OK);
    CHECK(segment_right(s, other));
    tec_store_close(s);
    CHECK_INT(heap.live, ==, 0);
    remove_path();
}

TEST(a_file_that_could_not_be_made_durable_is_written_anew)
{
    for (int by_change = 0; by_change < 2; by_change++) {
        struct tec_heap heap = {0};
        struct tec_store *s = NULL;
        struct tec_groups_change change;
        struct tec_error err = {TEC_OK, ""};
        uint32_t segment = 0;
        make_path();
        struct tec_store_options options = plain(path);
        options.sync_each = false;
        options.ram_bytes = 0;
        options.log.fail_sync = 2; /* one is the open's */
        REQUIRE(tec_store_open(&s, &options, &heap, NULL) == TEC_OK);
        REQUIRE(put(s, 0, 0, &segment, &change, NULL) == TEC_OK);
        REQUIRE(give_kv(s, segment, NULL) == TEC_OK);
        REQUIRE(tec_store_sync(s, NULL) == TEC_OK);
        REQUIRE(put(s, 1, 0, &segment, &change, NULL) == TEC_OK);
        REQUIRE(give_kv(s, segment, NULL) == TEC_OK);
        CHECK_INT(tec_store_sync(s, &err), ==, TEC_IO);
        CHECK(strstr(err.message, "cannot be made durable") && tec_store_fails(s));
        if (by_change)
            CHECK_INT(put(s, 2, 0, &segment, &change, NULL), ==, TEC_OK);
        else
            CHECK_INT(tec_store_sync(s, NULL), ==, TEC_OK);
        CHECK(!tec_store_fails(s));
        CHECK_INT(tec_store_counts(s).damages, ==, 0);
        CHECK(segment_right(s, 0));
        tec_store_close(s);
        options.log.fail_sync = 0;
        REQUIRE(tec_store_open(&s, &options, &heap, NULL) == TEC_OK);
        CHECK_INT(tec_store_counts(s).segments, ==, 2 + by_change); /* the second one too */
        CHECK_INT(tec_store_counts(s).damages, ==, 0);
        CHECK(segment_right(s, 0));
        tec_store_close(s);
        CHECK_INT(heap.live, ==, 0);
        remove_path();
    }
}

static int64_t count_damage;

static void on_damage(void *user, const struct tec_log_damage *d)
{
    (void)user;
    (void)d;
    count_damage++;
}

TEST(damage_is_named_and_never_read)
{
    struct tec_heap heap = {0};
    struct tec_store *s = NULL;
    struct tec_groups_change change;
    uint32_t segment = 0, wrong = 0, unreadable = 0;
    make_path();
    struct tec_store_options options = plain(path);
    options.damage = on_damage;
    REQUIRE(tec_store_open(&s, &options, &heap, NULL) == TEC_OK);
    for (uint32_t i = 0; i < 12; i++) {
        REQUIRE(put(s, i, 0, &segment, &change, NULL) == TEC_OK);
        REQUIRE(give_kv(s, segment, NULL) == TEC_OK);
    }
    REQUIRE(tec_store_step(s, 9, &change, NULL) == TEC_OK);
    fill(s);
    int64_t bytes = tec_store_counts(s).file_bytes;
    tec_store_close(s);
    for (int64_t at = TEC_LOG_HEADER; at < bytes; at += 71) {
        int file = open(path, O_RDWR);
        unsigned char one = 0;
        REQUIRE(pread(file, &one, 1, at) == 1);
        one ^= 0x40;
        REQUIRE(pwrite(file, &one, 1, at) == 1);
        count_damage = 0;
        REQUIRE(tec_store_open(&s, &options, &heap, NULL) == TEC_OK);
        CHECK(tec_store_counts(s).segments >= 11);
        for (uint32_t i = 0; i < SEGMENTS; i++) {
            struct tec_store_segment_view v;
            struct tec_kv *kv = NULL;
            if (!tec_store_view(s, i, &v) || tec_store_pin(s, i, &kv, NULL) != TEC_OK)
                continue;
            unsigned char piece[512];
            struct tec_error err = {TEC_OK, ""};
            bool readable = true;
            for (uint32_t l = 0; l < LAYERS && readable; l++)
                readable = tec_store_read(s, kv, l, piece, &err) == TEC_OK;
            if (readable)
                wrong += !kv_right(s, kv, v.segment, v.version, v.epoch);
            else
                CHECK(strstr(err.message, "is damaged") != NULL);
            unreadable += !readable;
            tec_store_drop(s, kv);
            CHECK(tec_store_view(s, i, &v) && v.has_kv == readable);
        }
        CHECK(count_damage <= 2);
        bool cut = tec_store_counts(s).file_bytes < bytes;
        tec_store_close(s);
        one ^= 0x40;
        REQUIRE(pwrite(file, &one, 1, at) == 1);
        close(file);
        if (cut) /* the last batch */
            break;
    }
    CHECK_INT(wrong, ==, 0);
    CHECK(unreadable > 10);
    CHECK_INT(heap.live, ==, 0);
    remove_path();
}

/* Readers work on a throttled file while segments change, are removed, and the file is written
 * anew. */
static struct {
    struct tec_store *store;
    _Atomic bool stop;
    _Atomic int read, wrong;
} race;

static void *race_reader(void *user)
{
    uint64_t dice = (uint64_t)(uintptr_t)user;
    while (!atomic_load(&race.stop)) {
        struct tec_kv *kv = NULL;
        dice = dice * 6364136223846793005u + 1442695040888963407u;
        uint32_t segment = (uint32_t)(dice >> 33) % SEGMENTS;
        unsigned char piece[512];
        if (tec_store_pin(race.store, segment, &kv, NULL) != TEC_OK)
            continue;
        for (uint32_t l = 0; l < LAYERS; l++) {
            bool good = tec_store_read(race.store, kv, l, piece, NULL) == TEC_OK;
            for (uint32_t i = 1; good && i < 2 * TOKENS * ROW; i++)
                good = piece[i] == piece[0];
            /* the byte of this version: layers differ by one */
            static _Thread_local unsigned char first;
            first = l == 0 ? piece[0] : first;
            atomic_fetch_add(&race.wrong, !good || piece[0] != (unsigned char)(first + l));
        }
        atomic_fetch_add(&race.read, 1);
        tec_store_drop(race.store, kv);
    }
    return NULL;
}

TEST(changes_never_reach_a_reader)
{
    struct tec_heap heap = {0};
    struct tec_groups_change change;
    pthread_t readers[3];
    make_path();
    struct tec_store_options options = plain(path);
    options.sync_each = false;
    options.ram_bytes = 6 * LAYERS * (2 * TOKENS * ROW + 64);
    options.log.max_bytes = 90000;
    options.log.read_bytes_per_sec = 20000000;
    memset(&race, 0, sizeof race);
    REQUIRE(tec_store_open(&race.store, &options, &heap, NULL) == TEC_OK);
    for (uintptr_t i = 0; i < 3; i++)
        REQUIRE(pthread_create(&readers[i], NULL, race_reader, (void *)(i + 1)) == 0);
    uint32_t rounds = 0; /* as many as readers on a busy machine need, too */
    for (; rounds < 3000 || (rounds < 300000 && atomic_load(&race.read) <= 100); rounds++) {
        uint32_t round = rounds, i = round * 7 % 30, segment = 0;
        char id[16];
        snprintf(id, sizeof id, "segment%u", i);
        if (round % 11 == 10)
            (void)tec_store_remove(race.store, id, &change, NULL);
        else if (put(race.store, i, round, &segment, &change, NULL) == TEC_OK)
            CHECK_INT(give_kv(race.store, segment, NULL), ==, TEC_OK);
        if (round % 40 == 39)
            CHECK_INT(tec_store_step(race.store, round, &change, NULL), ==, TEC_OK);
    }
    usleep(20000);
    atomic_store(&race.stop, true);
    for (int i = 0; i < 3; i++)
        pthread_join(readers[i], NULL);
    struct tec_store_counts counts = tec_store_counts(race.store);
    printf("# %d reads of three layers beside %u changes and %d compactions\n",
           atomic_load(&race.read), rounds, (int)counts.compactions);
    CHECK_INT(atomic_load(&race.wrong), ==, 0);
    CHECK(atomic_load(&race.read) > 100 && counts.compactions > 3);
    CHECK_INT(counts.damages, ==, 0);
    tec_store_close(race.store);
    CHECK_INT(heap.live, ==, 0);
    remove_path();
}

/* Finding what is missing looks at each segment once or twice, however many there are and whether
 * they are of one group or of many; the looks are counted, not timed. */
TEST(what_is_missing_is_found_in_one_pass)
{
    enum { MANY = 600, AT_ONCE = 4 };
    for (int groups = 0; groups < 2; groups++) {
        struct tec_heap heap = {0};
        struct tec_store *s = NULL;
        struct tec_groups_change change;
        struct tec_store_cursor from = {.inside = false};
        uint32_t segment = 0, list[AT_ONCE], n, done = 0, passed = 0;
        struct tec_store_options options = plain(NULL);
        options.max_segments = MANY;
        options.ram_bytes = 1 << 24;
        options.threshold = groups ? 2.0 : -1.0; /* each its own, or all in one */
        REQUIRE(tec_store_open(&s, &options, &heap, NULL) == TEC_OK);
        for (uint32_t i = 0; i < MANY; i++)
            REQUIRE(put(s, i, 0, &segment, &change, NULL) == TEC_OK);
        while ((n = tec_store_missing_from(s, &from, list, AT_ONCE)) > 0)
            for (uint32_t i = 0; i < n; i++)
                if (list[i] % 10 == 9) { /* it cannot be computed */
                    tec_store_pass(s, &from, list[i]);
                    passed++;
                } else {
                    REQUIRE(give_kv(s, list[i], NULL) == TEC_OK);
                    done++;
                }
        CHECK_INT(tec_store_counts(s).looked, <=, 3 * MANY);
        CHECK_INT(done, ==, MANY / 10 * 9);
        CHECK_INT(passed, ==, MANY / 10);
        from = (struct tec_store_cursor){.inside = false};
        CHECK_INT(tec_store_missing_from(s, &from, list, AT_ONCE), ==, AT_ONCE);
        REQUIRE(tec_store_remove(s, "segment9", &change, NULL) == TEC_OK); /* where the place is */
        CHECK_INT(tec_store_missing_from(s, &from, list, AT_ONCE), ==, AT_ONCE);
        CHECK_INT(list[0], ==, 19);
        tec_store_close(s);
        CHECK_INT(heap.live, ==, 0);
    }
}

TEST(a_hundred_thousand_segments_open_fast)
{
    enum { MANY = SANITIZED ? 20000 : 100000 };
    const struct tec_clock clock = {0};
    struct tec_heap heap = {0};
    struct tec_store *s = NULL;
    struct tec_groups_change change;
    uint32_t segment = 0, missing[1];
    make_path();
    struct tec_store_options options = plain(path);
    options.max_segments = MANY;
    options.sync_each = false;
    options.ram_bytes = 0;
    REQUIRE(tec_store_open(&s, &options, &heap, NULL) == TEC_OK);
    for (uint32_t i = 0; i < MANY; i++) {
        REQUIRE(put(s, i, 0, &segment, &change, NULL) == TEC_OK);
        REQUIRE(give_kv(s, segment, NULL) == TEC_OK);
    }
    double megabytes = (double)tec_store_counts(s).file_bytes / 1e6;
    tec_store_close(s);
    int64_t begin = tec_clock_now(&clock);
    REQUIRE(tec_store_open(&s, &options, &heap, NULL) == TEC_OK);
    printf("# a store of %d segments with KV, %.0f MB: opened in %.0f ms (in the page cache)\n",
           MANY, megabytes, (double)(tec_clock_now(&clock) - begin) / 1e6);
    CHECK_INT(tec_store_counts(s).segments, ==, MANY);
    CHECK_INT(tec_store_missing(s, missing, 1), ==, 0);
    CHECK(segment_right(s, 12345));
    tec_store_close(s);
    CHECK_INT(heap.live, ==, 0);
    remove_path();
}

TEST(memory_that_runs_out_is_reported_and_nothing_leaks)
{
    make_path();
    struct tec_store_options options = plain(path);
    for (int64_t n = 1; n < 60; n++) {
        struct tec_heap heap = {.fail_at = n};
        struct tec_store *s = NULL;
        struct tec_groups_change change;
        uint32_t segment = 0;
        unlink(path);
        enum tec_status status = tec_store_open(&s, &options, &heap, NULL);
        for (uint32_t i = 0; i < 8 && status == TEC_OK; i++) {
            status = put(s, i, 0, &segment, &change, NULL);
            if (status == TEC_OK)
                status = give_kv(s, segment, NULL);
        }
        if (status == TEC_OK)
            status = store_compact(s, NULL);
        CHECK(status == TEC_OK || status == TEC_NO_MEMORY);
        tec_store_close(s);
        CHECK_INT(heap.live, ==, 0);
    }
    remove_path();
}

TAP_MAIN
