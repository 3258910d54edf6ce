/* memory_log.c - tests of the file of a memory store: acknowledged data survives kills, full disks
 * and compaction; damage is named and the rest is kept; another model's file is refused. */
#include "base/clock.h"
#include "graph/memory/log_own.h"
#include "tests/box.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SEGMENTS = 12, LAYERS = 3, ROW = 24, DIM = 4, KILLS = 240 /* or --rounds */ };
enum { HEADER = sizeof(struct tec_log_header) };

static const struct tec_log_key key = {.model = {11, 12},
                                       .tokenizer = {21, 22},
                                       .dtype = {31, 32},
                                       .layers = LAYERS,
                                       .row_bytes = ROW,
                                       .dim = DIM};
static char path[64], folder[32];

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static void make_path(void)
{
    box_folder(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/store", folder);
}

static void remove_path(void)
{
    char fresh[80];
    snprintf(fresh, sizeof fresh, "%s.new", path);
    unlink(fresh);
    unlink(path);
    rmdir(folder);
}

/* What a store would know after reading: the last state of each segment. */
struct state {
    uint64_t version[SEGMENTS]; /* 0: not there */
    int64_t kv[SEGMENTS];       /* place of the KV of that version, 0: none */
    uint32_t tokens[SEGMENTS];
    int64_t steps; /* operations done, by the last record */
    int records, damages, wrong;
    struct tec_log_damage last;
};

/* Everything about a version follows from its number. */
static uint32_t tokens_of(uint64_t version)
{
    return 1 + (uint32_t)(mix(version) % 7);
}

static size_t text_of(uint64_t version, char *text)
{
    size_t n = mix(version + 5) % 200;
    for (size_t i = 0; i < n; i++)
        text[i] = (char)('a' + (version + i) % 26);
    return n;
}

static void rows_of(uint64_t version, uint32_t layer, unsigned char *rows)
{
    for (uint32_t i = 0; i < 2 * tokens_of(version) * ROW; i++)
        rows[i] = (unsigned char)mix(version * 64 + layer * 8 + i % 8);
}

static enum tec_status on_record(void *user, const struct tec_log_record *r, struct tec_error *err)
{
    struct state *s = user;
    uint64_t u = r->segment % SEGMENTS;
    char text[256];
    (void)err;
    s->records++;
    if (r->step > s->steps)
        s->steps = r->step;
    if (r->type == TEC_LOG_PUT) {
        size_t n = text_of(r->version, text);
        s->wrong += r->text_bytes != n || memcmp(r->text, text, n) != 0 || r->id_bytes != 2 ||
                    memcmp(r->id, "id", 2) != 0 || r->embedding[2] != (float)(r->version % 1000) ||
                    r->tokens != tokens_of(r->version);
        s->version[u] = r->version;
        s->tokens[u] = r->tokens;
        s->kv[u] = 0;
    } else if (r->type == TEC_LOG_DELETE) {
        s->version[u] = 0;
        s->kv[u] = 0;
    } else if (r->type == TEC_LOG_KV && s->version[u] == r->version) {
        s->kv[u] = r->place;
    }
    return TEC_OK;
}

static void on_damage(void *user, const struct tec_log_damage *damage)
{
    struct state *s = user;
    s->damages++;
    s->last = *damage;
}

static enum tec_status open_state(struct tec_log **log, struct state *s,
                                  const struct tec_log_options *options, struct tec_heap *heap,
                                  struct tec_error *err)
{
    static const struct tec_log_options none = {0};
    const struct tec_log_visitor visitor = {.user = s, .record = on_record, .damage = on_damage};
    memset(s, 0, sizeof *s);
    return tec_log_open(log, path, &key, options ? options : &none, &visitor, heap, err);
}

static enum tec_status put(struct tec_log *log, uint64_t segment, uint64_t version, int64_t step,
                           struct tec_error *err)
{
    char text[256];
    const float embedding[DIM] = {1.0f, 2.0f, (float)(version % 1000), 4.0f};
    struct tec_log_record r = {.type = TEC_LOG_PUT,
                               .segment = segment,
                               .version = version,
                               .step = step,
                               .tokens = tokens_of(version),
                               .id = "id",
                               .id_bytes = 2,
                               .text = text,
                               .text_bytes = text_of(version, text),
                               .embedding = embedding};
    return tec_log_append(log, &r, err);
}

static enum tec_status put_kv(struct tec_log *log, uint64_t segment, uint64_t version, int64_t step,
                              int64_t *place, struct tec_error *err)
{
    unsigned char rows[LAYERS][2 * 8 * ROW];
    const void *pieces[LAYERS];
    for (uint32_t l = 0; l < LAYERS; l++) {
        rows_of(version, l, rows[l]);
        pieces[l] = rows[l];
    }
    struct tec_log_record r = {.type = TEC_LOG_KV,
                               .segment = segment,
                               .version = version,
                               .step = step,
                               .tokens = tokens_of(version),
                               .pieces = pieces};
    enum tec_status status = tec_log_append(log, &r, err);
    if (status == TEC_OK && place)
        *place = r.place;
    return status;
}

static bool kv_right(struct tec_log *log, uint64_t segment, uint64_t version, int64_t place)
{
    unsigned char piece[1024], rows[1024];
    uint32_t tokens = tokens_of(version);
    size_t stride = tec_log_piece_bytes(&key, tokens);
    for (uint32_t l = 0; l < LAYERS; l++) {
        rows_of(version, l, rows);
        if (tec_log_pread(log, piece, stride, place + (int64_t)(l * stride), NULL) != TEC_OK ||
            !tec_log_piece_whole(piece, stride, segment, version, l) ||
            memcmp(piece, rows, 2 * tec_log_piece_value(&key, tokens)) != 0)
            return false;
    }
    return true;
}

/* The i-th operation of an endless program, and its effect on a state. */
static enum tec_status operate(struct tec_log *log, struct state *s, int64_t i,
                               struct tec_error *err)
{
    uint64_t dice = mix((uint64_t)i), u = dice % SEGMENTS;
    int64_t place = 1;
    enum tec_status status = TEC_OK;
    if (dice / 64 % 8 == 0 && s->version[u]) {
        struct tec_log_record r = {.type = TEC_LOG_DELETE, .segment = u, .step = i + 1};
        status = log ? tec_log_append(log, &r, err) : TEC_OK;
        s->version[u] = 0;
        s->kv[u] = 0;
    } else if (dice / 64 % 2 == 0 && s->version[u]) {
        status = log ? put_kv(log, u, s->version[u], i + 1, &place, err) : TEC_OK;
        s->kv[u] = place;
    } else {
        s->version[u] = (uint64_t)i + 1;
        s->kv[u] = 0;
        status = log ? put(log, u, s->version[u], i + 1, err) : TEC_OK;
    }
    s->steps = i + 1;
    return status;
}

static enum tec_status compact(struct tec_log *log, struct state *s, struct tec_error *err)
{
    struct tec_log *fresh = NULL;
    TEC_TRY(tec_log_compact_begin(log, &fresh, err));
    struct tec_log_record clock = {.type = TEC_LOG_CLOCK, .step = s->steps};
    enum tec_status status = tec_log_append(fresh, &clock, err);
    for (uint64_t u = 0; u < SEGMENTS && status == TEC_OK; u++) {
        if (s->version[u])
            status = put(fresh, u, s->version[u], 0, err);
        if (status != TEC_OK || !s->kv[u])
            continue;
        struct tec_log_record r = {.type = TEC_LOG_KV,
                                   .segment = u,
                                   .version = s->version[u],
                                   .tokens = tokens_of(s->version[u]),
                                   .place = s->kv[u]};
        status = tec_log_copy(fresh, log, &r, err);
        s->kv[u] = r.place;
    }
    bool placed = false;
    if (status == TEC_OK)
        status = tec_log_compact_place(log, fresh, &placed, err);
    if (!placed) {
        tec_log_compact_abandon(fresh);
        return status;
    }
    tec_log_compact_switch(log, fresh);
    tec_log_close(fresh);
    return status;
}

/* Run a writer until it is killed; it reports how many operations are acknowledged. A hasty one
 * hardly syncs, so it is killed in the middle of a record. */
static void writer(int tell, bool hasty)
{
    struct tec_heap heap = {0};
    struct tec_log *log = NULL;
    struct state s;
    if (open_state(&log, &s, NULL, &heap, NULL) != TEC_OK || s.wrong || s.damages > 1)
        _exit(1);
    for (int64_t i = s.steps;; i++) {
        if (operate(log, &s, i, NULL) != TEC_OK)
            _exit(2);
        if (mix((uint64_t)i) / 1024 % (hasty ? 400 : 40) == 0 && compact(log, &s, NULL) != TEC_OK)
            _exit(3);
        if (mix((uint64_t)i) / 4096 % (hasty ? 200 : 3) != 0)
            continue; /* batches of several */
        if (tec_log_sync(log, NULL) != TEC_OK)
            _exit(4);
        if (write(tell, &s.steps, sizeof s.steps) != (ssize_t)sizeof s.steps)
            _exit(5);
    }
}

/* Let a writer run for a while and kill it; returns how many operations it had acknowledged. */
static int64_t run_and_kill(uint64_t dice, int64_t before)
{
    int ends[2], status = 0;
    int64_t told = before, now;
    REQUIRE(pipe(ends) == 0);
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        writer(ends[1], dice / 65536 % 3 == 0);
    }
    close(ends[1]);
    REQUIRE(child > 0);
    usleep((useconds_t)(500 + dice % 12000));
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    CHECK(WIFSIGNALED(status));
    while (read(ends[0], &now, sizeof now) == (ssize_t)sizeof now)
        told = now;
    close(ends[0]);
    return told;
}

/* Check that the file holds exactly what the first `s->steps` operations leave. */
static void check_state(struct tec_log *log, const struct state *s)
{
    struct state want = {0};
    for (int64_t i = 0; i < s->steps; i++)
        (void)operate(NULL, &want, i, NULL);
    CHECK_INT(s->wrong, ==, 0);
    for (uint64_t u = 0; u < SEGMENTS; u++) {
        CHECK_INT(s->version[u], ==, want.version[u]);
        CHECK((s->kv[u] != 0) == (want.kv[u] != 0));
        if (s->kv[u])
            CHECK(kv_right(log, u, s->version[u], s->kv[u]));
    }
}

TEST(nothing_acknowledged_is_lost_by_kills)
{
    struct tec_heap heap = {0};
    int64_t acknowledged = 0, torn = 0, beyond = 0;
    const int kills = tap.rounds > 0 ? tap.rounds : KILLS;
    make_path();
    for (int k = 0; k < kills && !tap.failed; k++) {
        struct tec_log *log = NULL;
        struct tec_error err = {TEC_OK, ""};
        struct state s;
        acknowledged = run_and_kill(mix((uint64_t)k + 77), acknowledged);
        REQUIRE(open_state(&log, &s, NULL, &heap, &err) == TEC_OK);
        CHECK_INT(s.steps, >=, acknowledged);
        CHECK_INT(s.damages, <=, 1); /* at most a torn end */
        torn += s.damages;
        beyond += s.steps - acknowledged;
        acknowledged = s.steps; /* read at an open, so acknowledged by it */
        check_state(log, &s);
        tec_log_close(log);
    }
    printf("# %d kills, %d operations acknowledged, %d torn ends cut, %d operations beyond them\n",
           kills, (int)acknowledged, (int)torn, (int)beyond);
    CHECK(acknowledged > kills);
    CHECK_INT(heap.live, ==, 0);
    remove_path();
}

/* Make a file of n operations and close it. Returns its bytes. */
static int64_t write_file(int64_t n, struct tec_heap *heap)
{
    struct tec_log *log = NULL;
    struct state s;
    unlink(path);
    REQUIRE(open_state(&log, &s, NULL, heap, NULL) == TEC_OK);
    for (int64_t i = 0; i < n; i++) {
        REQUIRE(operate(log, &s, i, NULL) == TEC_OK);
        REQUIRE(tec_log_sync(log, NULL) == TEC_OK);
    }
    int64_t bytes = tec_log_bytes(log);
    tec_log_close(log);
    return bytes;
}

static unsigned char *slurp(int64_t bytes)
{
    unsigned char *all = malloc((size_t)bytes);
    int file = open(path, O_RDONLY);
    REQUIRE(all && file >= 0 && read(file, all, (size_t)bytes) == bytes);
    close(file);
    return all;
}

static void spit(const unsigned char *all, int64_t bytes)
{
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    REQUIRE(file >= 0 && write(file, all, (size_t)bytes) == bytes);
    close(file);
}

TEST(a_file_cut_anywhere_keeps_what_is_whole)
{
    struct tec_heap heap = {0};
    make_path();
    int64_t bytes = write_file(14, &heap), last = -1;
    unsigned char *all = slurp(bytes);
    for (int64_t n = bytes; n >= TEC_LOG_HEADER; n -= 13) {
        struct tec_log *log = NULL;
        struct state s;
        spit(all, n);
        REQUIRE(open_state(&log, &s, NULL, &heap, NULL) == TEC_OK);
        CHECK(last < 0 || (s.steps <= last && s.steps >= last - 1));
        last = s.steps;
        check_state(log, &s);
        CHECK_INT(s.damages, ==, tec_log_bytes(log) < n);
        REQUIRE(operate(log, &s, s.steps, NULL) == TEC_OK); /* and goes on */
        CHECK_INT(tec_log_sync(log, NULL), ==, TEC_OK);
        tec_log_close(log);
        REQUIRE(open_state(&log, &s, NULL, &heap, NULL) == TEC_OK);
        CHECK_INT(s.steps, ==, last + 1);
        CHECK_INT(s.damages, ==, 0);
        tec_log_close(log);
    }
    CHECK_INT(last, ==, 0);
    free(all);
    CHECK_INT(heap.live, ==, 0);
    remove_path();
}

TEST(a_bit_that_flips_costs_its_record_alone)
{
    struct tec_heap heap = {0};
    struct state whole;
    struct tec_log *log = NULL;
    int64_t refused = 0, pieces = 0;
    make_path();
    int64_t bytes = write_file(30, &heap);
    unsigned char *all = slurp(bytes);
    REQUIRE(open_state(&log, &whole, NULL, &heap, NULL) == TEC_OK);
    tec_log_close(log);
    for (int64_t at = 0; at < bytes; at += at < HEADER ? 1 : 37) {
        struct state s;
        struct tec_error err = {TEC_OK, ""};
        all[at] ^= 0x10;
        spit(all, bytes);
        all[at] ^= 0x10;
        if (open_state(&log, &s, NULL, &heap, &err) != TEC_OK) {
            CHECK(at < HEADER && strstr(err.message, path) != NULL);
            refused++;
            continue;
        }
        CHECK_INT(s.wrong, ==, 0);
        CHECK_INT(s.records, >=, whole.records - 1);
        CHECK_INT(s.damages, <=, 1);
        CHECK((s.damages == 1) == (s.records < whole.records));
        for (uint64_t u = 0; u < SEGMENTS; u++)
            if (s.kv[u] && !kv_right(log, u, s.version[u], s.kv[u]))
                pieces++; /* found when it is read */
        tec_log_close(log);
    }
    CHECK_INT(refused, >, 80);
    CHECK(pieces > 0);
    free(all);
    CHECK_INT(heap.live, ==, 0);
    remove_path();
}

TEST(the_file_of_another_is_refused_and_left_alone)
{
    struct tec_heap heap = {0};
    struct tec_log *log = NULL, *second = NULL;
    struct tec_error err;
    struct state s;
    const struct tec_log_options options = {0};
    const struct tec_log_visitor visitor = {.user = &s, .record = on_record, .damage = on_damage};
    make_path();
    int64_t bytes = write_file(5, &heap);
    struct tec_log_key other[6] = {key, key, key, key, key, key};
    const char *said[6] = {
        "another model (", "another tokenizer", "another dtype, quantize or round",
        "layers",          "embeddings of 4",   "another model's weights"};
    other[0].model[0]++;
    other[1].tokenizer[0]++;
    other[2].dtype[0]++;
    other[3].layers++;
    other[4].dim++;
    other[5].model[1]++;
    for (int i = 0; i < 6; i++) {
        CHECK_INT(tec_log_open(&log, path, &other[i], &options, &visitor, &heap, &err), ==,
                  TEC_INVALID);
        CHECK(strstr(err.message, path) && strstr(err.message, said[i]));
    }
    REQUIRE(open_state(&log, &s, NULL, &heap, NULL) == TEC_OK);
    CHECK_INT(s.steps, ==, 5);
    CHECK_INT(tec_log_bytes(log), ==, bytes);
    CHECK_INT(open_state(&second, &s, NULL, &heap, &err), ==, TEC_INVALID);
    CHECK(strstr(err.message, "is open in another program") != NULL);
    tec_log_close(log);
    spit((const unsigned char *)"notes about the kitchen", 23);
    CHECK_INT(open_state(&log, &s, NULL, &heap, &err), ==, TEC_MALFORMED);
    CHECK(strstr(err.message, "is no store file") != NULL);
    CHECK_INT(heap.live, ==, 0);
    remove_path();
}

TEST(a_full_disk_loses_nothing_acknowledged)
{
    struct tec_heap heap = {0};
    make_path();
    for (int64_t room = 4200; room < 12000; room += 97) {
        const struct tec_log_options options = {.fail_after = room};
        struct tec_log *log = NULL;
        struct tec_error err = {TEC_OK, ""};
        struct state s;
        int64_t acknowledged = 0;
        enum tec_status status = TEC_OK;
        unlink(path);
        REQUIRE(open_state(&log, &s, &options, &heap, &err) == TEC_OK);
        while (status == TEC_OK) {
            status = operate(log, &s, s.steps, &err);
            if (status == TEC_OK && tec_log_sync(log, &err) == TEC_OK)
                acknowledged = s.steps;
        }
        CHECK_INT(status, ==, TEC_IO);
        CHECK(strstr(err.message, "not written") && strstr(err.message, "No space left"));
        CHECK(tec_log_fails(log) && !tec_log_read_only(log));
        CHECK_INT(put(log, 1, 1, 1, &err), ==, TEC_IO);
        CHECK_INT(tec_log_sync(log, &err), ==, TEC_OK); /* nothing is waiting */
        tec_log_close(log);
        REQUIRE(open_state(&log, &s, NULL, &heap, NULL) == TEC_OK);
        CHECK_INT(s.steps, ==, acknowledged);
        CHECK_INT(s.damages, ==, 0);
        check_state(log, &s);
        tec_log_close(log);
    }
    CHECK_INT(heap.live, ==, 0);
    remove_path();
}

TEST(what_cannot_be_made_durable_is_not_acknowledged)
{
    struct tec_heap heap = {0};
    make_path();
    for (int64_t good = 2; good < 12; good++) {
        const struct tec_log_options options = {.fail_sync = good};
        struct tec_log *log = NULL;
        struct tec_error err = {TEC_OK, ""};
        struct state s;
        int64_t acknowledged = 0;
        unlink(path);
        REQUIRE(open_state(&log, &s, &options, &heap, &err) == TEC_OK);
        for (;;) { /* two operations a batch */
            REQUIRE(operate(log, &s, s.steps, &err) == TEC_OK);
            REQUIRE(operate(log, &s, s.steps, &err) == TEC_OK);
            if (tec_log_sync(log, &err) != TEC_OK)
                break;
            acknowledged = s.steps;
        }
        CHECK(strstr(err.message, "cannot be made durable, to be written anew") != NULL);
        CHECK_INT(tec_log_bytes(log), ==, log->synced);
        CHECK_INT(put(log, 1, 1, 1, &err), ==, TEC_IO);
        tec_log_close(log);
        REQUIRE(open_state(&log, &s, NULL, &heap, NULL) == TEC_OK);
        CHECK_INT(s.steps, ==, acknowledged);
        check_state(log, &s);
        tec_log_close(log);
    }
    CHECK_INT(heap.live, ==, 0);
    remove_path();
}

/* Test a refusal by the system itself: a limit on the size of files. */
TEST(a_write_that_the_system_refuses_is_survived)
{
    struct tec_heap heap = {0};
    struct tec_log *log = NULL;
    struct state s;
    int status = 0;
    make_path();
    pid_t child = fork();
    if (child == 0) {
        const struct rlimit limit = {9000, 9000};
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &limit);
        if (open_state(&log, &s, NULL, &heap, NULL) != TEC_OK)
            _exit(1);
        while (operate(log, &s, s.steps, NULL) == TEC_OK)
            if (tec_log_sync(log, NULL) != TEC_OK)
                _exit(2);
        _exit(tec_log_fails(log) && tec_log_bytes(log) <= 9000 ? 0 : 3);
    }
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    REQUIRE(open_state(&log, &s, NULL, &heap, NULL) == TEC_OK);
    CHECK_INT(s.damages, ==, 0);
    CHECK_INT(s.steps, >, 3);
    check_state(log, &s);
    tec_log_close(log);
    remove_path();
}

TEST(a_size_limit_refuses_and_compaction_makes_room)
{
    const struct tec_log_options options = {.max_bytes = 40000};
    struct tec_heap heap = {0};
    struct tec_log *log = NULL;
    struct tec_error err;
    struct state s;
    int compactions = 0;
    make_path();
    REQUIRE(open_state(&log, &s, &options, &heap, NULL) == TEC_OK);
    while (compactions < 5) {
        struct state before = s;
        enum tec_status status = operate(log, &s, s.steps, &err);
        if (status == TEC_OK)
            continue;
        REQUIRE(status == TEC_NO_MEMORY);
        CHECK(!tec_log_fails(log));
        s = before;
        REQUIRE(compact(log, &s, &err) == TEC_OK);
        CHECK(tec_log_bytes(log) < 30000);
        compactions++;
    }
    CHECK_INT(tec_log_sync(log, NULL), ==, TEC_OK);
    check_state(log, &s);
    tec_log_close(log);
    REQUIRE(open_state(&log, &s, NULL, &heap, NULL) == TEC_OK);
    check_state(log, &s);
    tec_log_close(log);
    CHECK_INT(heap.live, ==, 0);
    remove_path();
}

TEST(memory_that_runs_out_is_reported)
{
    struct tec_heap setup = {0};
    make_path();
    write_file(10, &setup);
    for (int64_t n = 1; n < 12; n++) {
        struct tec_heap heap = {.fail_at = n};
        struct tec_log *log = NULL;
        struct state s;
        enum tec_status status = open_state(&log, &s, NULL, &heap, NULL);
        CHECK(status == TEC_OK || status == TEC_NO_MEMORY);
        if (status == TEC_OK) {
            status = operate(log, &s, s.steps, NULL);
            CHECK(status == TEC_OK || status == TEC_NO_MEMORY);
            tec_log_close(log);
        }
        CHECK_INT(heap.live, ==, 0);
    }
    remove_path();
}

TEST(a_hundred_thousand_segments_open_fast)
{
    enum { MANY = 100000 };
    struct tec_heap heap = {0};
    struct tec_log *log = NULL;
    struct state s;
    make_path();
    REQUIRE(open_state(&log, &s, NULL, &heap, NULL) == TEC_OK);
    for (uint64_t i = 0; i < MANY; i++) {
        REQUIRE(put(log, i, i + 1, 0, NULL) == TEC_OK);
        REQUIRE(put_kv(log, i, i + 1, (int64_t)i + 1, NULL, NULL) == TEC_OK);
    }
    REQUIRE(tec_log_sync(log, NULL) == TEC_OK);
    int64_t bytes = tec_log_bytes(log);
    tec_log_close(log);
    const struct tec_clock clock = {0};
    int64_t begin = tec_clock_now(&clock);
    REQUIRE(open_state(&log, &s, NULL, &heap, NULL) == TEC_OK);
    int64_t took = tec_clock_now(&clock) - begin;
    printf("# %d segments with KV, %.0f MB: opened in %.0f ms (in the page cache)\n", MANY,
           (double)bytes / 1e6, (double)took / 1e6);
    CHECK_INT(s.records, ==, 2 * MANY);
    CHECK_INT(s.steps, ==, MANY);
    CHECK(heap.peak < 4 << 20); /* nothing grows with the file */
    tec_log_close(log);
    remove_path();
}

static char told[200];

static void hear(void *user, const char *made)
{
    (void)user;
    size_t n = strlen(told);
    snprintf(told + n, sizeof told - n, "%s ", made);
}

static enum tec_status pass(void *user, const struct tec_log_record *record, struct tec_error *err)
{
    (void)user, (void)record, (void)err;
    return TEC_OK;
}

static enum tec_status open_named(const char *name, struct tec_error *err)
{
    static const struct tec_log_options none = {0};
    const struct tec_log_visitor visitor = {.record = pass, .made = hear};
    struct tec_heap heap = {0};
    struct tec_log *log = NULL;
    told[0] = '\0';
    enum tec_status status = tec_log_open(&log, name, &key, &none, &visitor, &heap, err);
    tec_log_close(log);
    CHECK_INT(heap.live, ==, 0);
    return status;
}

TEST(folders_below_the_current_one_are_made)
{
    char was[PATH_MAX], away[sizeof folder + 16];
    struct tec_error err;
    make_path();
    REQUIRE(getcwd(was, sizeof was) && chdir(folder) == 0);
    CHECK_INT(open_named("a//b/store", &err), ==, TEC_OK);
    CHECK_STR(told, "a a//b ");
    CHECK_INT(open_named("a//b/store", &err), ==, TEC_OK); /* they are there */
    CHECK_STR(told, "");
    CHECK_INT(open_named("a/../c/store", &err), ==, TEC_IO);
    CHECK(strstr(err.message, "there is no folder a/../c;"));
    snprintf(away, sizeof away, "%s/c/d/store", folder);
    CHECK_INT(open_named(away, &err), ==, TEC_IO);
    CHECK(strstr(err.message, "/c; only folders below"));
    CHECK_INT(access("c", F_OK), ==, -1);
    snprintf(away, sizeof away, "%s/a/b/store", folder);
    CHECK_INT(open_named(away, &err), ==, TEC_OK);
    CHECK_INT(symlink("nowhere", "link"), ==, 0);
    CHECK_INT(open_named("link/store", &err), ==, TEC_IO);
    CHECK(strstr(err.message, "the folder link cannot be made: File exists"));
    CHECK_INT(open_named("a/b/store/c/store", &err), ==, TEC_IO);
    CHECK(strstr(err.message, "a/b/store cannot be made: File exists"));
    CHECK(unlink("link") == 0 && unlink("a/b/store") == 0 && rmdir("a/b") == 0 && rmdir("a") == 0);
    REQUIRE(chdir(was) == 0);
    remove_path();
}

TAP_MAIN
