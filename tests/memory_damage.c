/* memory_damage.c - tests of a memory file with one flipped bit, closed in an orderly way: no older
 * text comes back, no removed segment lives, and what is missing is named.
 *
 * A torn end is still only a torn end. */
#include "graph/memory/log_own.h"
#include "graph/memory/store.h"
#include "tests/box.h"
#include "tests/store_inside.h"

#include <fcntl.h>
#include <unistd.h>

enum { LAYERS = 2, ROW = 8, DIM = 2, TOKENS = 2, NAMES = 4, OPERATIONS = 14, MOST = 16384 };
enum { HEADER_BITS = 8 * sizeof(struct tec_log_header) };

static const char *const names[NAMES] = {"cup", "pen", "fork", "lid"};

/* The operations on a segment: round 0 removes it, -1 gives it keys and values. */
static const struct operation {
    int name, round;
} program[OPERATIONS] = {{0, 1}, {1, 1}, {0, -1}, {2, 1}, {0, 2}, {1, -1}, {1, 0},
                         {3, 1}, {0, 3}, {3, -1}, {2, 2}, {0, 4}, {2, -1}, {3, 0}};

/* The rounds of the segments after each operation (0: absent), and where the file ended. */
static struct {
    int round[NAMES];
    int64_t end;
} after[OPERATIONS + 1];

static struct tec_heap heap;
static struct tec_store *store;
static char folder[32], path[64];
static unsigned char whole[MOST];

/* The damage of the last open: the segments that were named, and how often. */
static uint64_t blamed[8];
static int damages;

static void on_damage(void *user, const struct tec_log_damage *d)
{
    (void)user;
    if (d->segment && damages < 8)
        blamed[damages] = d->segment;
    CHECK(d->offset >= TEC_LOG_HEADER && d->what[0]);
    damages++;
}

static enum tec_status open_store(struct tec_error *err)
{
    const struct tec_store_options options = {
        .path = path,
        .key = {.model = {5}, .layers = LAYERS, .row_bytes = ROW, .dim = DIM},
        .max_segments = 8,
        .threshold = 0.5,
        .stable_steps = 100,
        .damage = on_damage};
    damages = 0;
    memset(blamed, 0, sizeof blamed);
    return tec_store_open(&store, &options, &heap, err);
}

static int text_of(char *text, size_t size, int name, int round)
{
    return snprintf(text, size, "%s, told %d times", names[name], round);
}

static void give_kv(uint32_t segment)
{
    unsigned char rows[2 * TOKENS * ROW];
    const void *pieces[LAYERS] = {rows, rows};
    struct tec_store_segment_view v;
    REQUIRE(tec_store_view(store, segment, &v));
    memset(rows, (int)(v.segment * 16 + v.version), sizeof rows);
    REQUIRE(tec_store_put_kv(store, segment, v.version, v.epoch, pieces, NULL) == TEC_OK);
}

static void operate(const struct operation *o)
{
    struct tec_groups_change change;
    const float v[DIM] = {o->name % 2 ? 1.0F : 0.0F, o->name % 2 ? 0.0F : 1.0F};
    char text[64];
    uint32_t segment = 0;
    if (o->round == 0) {
        REQUIRE(tec_store_remove(store, names[o->name], &change, NULL) == TEC_OK);
    } else if (o->round > 0) {
        size_t n = (size_t)text_of(text, sizeof text, o->name, o->round);
        REQUIRE(tec_store_put(store, names[o->name], text, n, TOKENS, v, &segment, &change, NULL) ==
                TEC_OK);
    } else {
        REQUIRE(store_find(store, names[o->name], &segment) == TEC_OK);
        give_kv(segment);
    }
}

static int64_t slurp(void)
{
    int file = open(path, O_RDONLY);
    ssize_t n = read(file, whole, MOST);
    REQUIRE(file >= 0 && n > TEC_LOG_HEADER && n < MOST);
    close(file);
    return n;
}

static void spit(int64_t bytes)
{
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    REQUIRE(file >= 0 && write(file, whole, (size_t)bytes) == bytes);
    close(file);
}

/* Write the program's file; its bytes are in `whole`. */
static int64_t make_file(bool orderly)
{
    struct tec_error err;
    snprintf(folder, sizeof folder, "/dev/shm/tec-box-XXXXXX"); /* thousands of syncs */
    if (!mkdtemp(folder))
        box_folder(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/store", folder);
    REQUIRE(open_store(&err) == TEC_OK);
    after[0].end = tec_store_counts(store).file_bytes;
    for (int i = 0; i < OPERATIONS; i++) {
        memcpy(after[i + 1].round, after[i].round, sizeof after[i].round);
        operate(&program[i]);
        if (program[i].round >= 0)
            after[i + 1].round[program[i].name] = program[i].round;
        after[i + 1].end = tec_store_counts(store).file_bytes;
        if (i % 4 == 3)
            REQUIRE(tec_store_sync(store, NULL) == TEC_OK);
    }
    int64_t bytes = orderly ? 0 : slurp();
    tec_store_close(store);
    return orderly ? slurp() : bytes;
}

static void remove_file(void)
{
    unlink(path);
    rmdir(folder);
    CHECK_INT(heap.live, ==, 0);
}

/* KV that can be read at all must be that of the text. */
static void check_kv(uint32_t segment, const struct tec_store_segment_view *v)
{
    unsigned char piece[256];
    struct tec_kv *kv = NULL;
    if (tec_store_pin(store, segment, &kv, NULL) != TEC_OK)
        return;
    for (uint32_t l = 0; l < LAYERS; l++)
        if (tec_store_read(store, kv, l, piece, NULL) == TEC_OK)
            for (int i = 0; i < 2 * TOKENS * ROW; i++)
                CHECK_INT(piece[i], ==, (unsigned char)(v->segment * 16 + v->version));
    tec_store_drop(store, kv);
}

static bool was_blamed(uint64_t segment)
{
    for (int i = 0; i < 8; i++)
        if (blamed[i] == segment)
            return true;
    return false;
}

/* Check that each segment has its text of that round, or is absent and named. Returns how many are
 * absent. */
static int check_segments(const int round[NAMES])
{
    int absent = 0;
    for (int n = 0; n < NAMES; n++) {
        struct tec_store_segment_view v;
        char text[64];
        uint32_t segment = 0;
        bool lives = store_find(store, names[n], &segment) == TEC_OK;
        if (lives && tec_store_view(store, segment, &v)) {
            (void)text_of(text, sizeof text, n, round[n]);
            CHECK_STR(v.text, text);
            check_kv(segment, &v);
        } else if (round[n] != 0) {
            CHECK(was_blamed((uint64_t)n + 1)); /* serial numbers are those of the first puts */
            absent++;
        }
    }
    return absent;
}

TEST(one_flipped_bit_brings_nothing_old_back)
{
    int refused = 0, absent = 0, named = 0;
    int64_t bytes = make_file(true);
    for (int64_t bit = 0; bit < 8 * bytes && !tap.failed; bit++) {
        struct tec_error err = {TEC_OK, ""};
        if (bit == 8 * 256)
            bit = 8 * (int64_t)TEC_LOG_HEADER; /* nothing is in the rest of the first page */
        whole[bit / 8] ^= (unsigned char)(1U << bit % 8);
        spit(bytes);
        whole[bit / 8] ^= (unsigned char)(1U << bit % 8);
        if (open_store(&err) != TEC_OK) {
            CHECK(bit < HEADER_BITS && strstr(err.message, path) != NULL);
            refused++;
            continue;
        }
        int gone = check_segments(after[OPERATIONS].round);
        CHECK(gone <= 1 && damages <= 1 && gone <= damages);
        absent += gone;
        named += damages;
        tec_store_close(store);
        if (tap.failed)
            printf("# bit %d of byte %lld\n", (int)(bit % 8), (long long)bit / 8);
    }
    printf("# %lld bytes: %d flips refused, %d named, %d cost a segment\n", (long long)bytes,
           refused, named, absent);
    CHECK(refused == HEADER_BITS && named > 8 * 1000 && absent > 8 * 200);
    remove_file();
}

/* Cut at every byte a file that was closed in an orderly way and one that was not: what is left
 * must be a prefix of the operations. */
TEST(a_file_cut_at_any_byte_is_a_prefix)
{
    for (int orderly = 0; orderly < 2; orderly++) {
        int64_t bytes = make_file(orderly != 0);
        int done = OPERATIONS;
        for (int64_t n = bytes; n >= TEC_LOG_HEADER && !tap.failed; n--) {
            spit(n);
            while (done > 0 && after[done].end > n)
                done--;
            REQUIRE(open_store(NULL) == TEC_OK);
            CHECK_INT(check_segments(after[done].round), ==, 0);
            bool torn = n != after[done].end && n != bytes;
            CHECK_INT(damages, ==, torn);
            tec_store_close(store);
        }
        CHECK_INT(done, ==, 0);
        remove_file();
    }
}

TEST(an_end_is_written_once_and_also_into_a_full_file)
{
    struct tec_error err;
    int64_t bytes = make_file(true);
    for (int i = 0; i < 3; i++) { /* nothing happens, nothing is written */
        REQUIRE(open_store(&err) == TEC_OK);
        CHECK_INT(damages, ==, 0);
        tec_store_close(store);
        CHECK_INT(slurp(), ==, bytes);
    }
    REQUIRE(open_store(&err) == TEC_OK);
    operate(&(struct operation){1, 7});
    int64_t longer = tec_store_counts(store).file_bytes;
    tec_store_close(store);
    CHECK_INT(slurp(), ==, longer + 128);
    REQUIRE(open_store(&err) == TEC_OK);
    REQUIRE(store_compact(store, &err) == TEC_OK); /* an end of the new file, too */
    operate(&(struct operation){1, 8});
    longer = tec_store_counts(store).file_bytes;
    tec_store_close(store);
    CHECK_INT(slurp(), ==, longer + 128);
    remove_file();
}

TAP_MAIN
