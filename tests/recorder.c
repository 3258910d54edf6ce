/* recorder.c - tests of the flight recorder: what events keep, the ring that overwrites its oldest,
 * copies taken while the frame thread writes, the table of words; and of the figures beside it. */
#include "graph/live/recorder.h"
#include "base/clock.h"
#include "graph/live/figures.h"
#include "graph/live/seam.h"
#include "graph/run/loop/loop.h"
#include "tests/tap.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct tec_heap heap;
static struct tec_arena arena;
static struct tec_recorder recorder;
static struct tec_error err;
static const struct tec_tick tick = {
    .frame = 7, .tick_ns = 1000, .deadline_ns = 51000, .late_ns = 9};

static bool open(void)
{
    tec_arena_init(&arena, &heap);
    return tec_recorder_create(&recorder, &arena, &err) == TEC_OK;
}

static void emit(struct tec_event event)
{
    event.tick = &tick;
    tec_recorder_emit(&recorder, &event);
}

TEST(an_event_keeps_what_its_kind_has)
{
    struct tec_flight_event e[32];
    uint64_t from = 0;
    struct tec_frame_record record = {.overrun_us = 12,
                                      .missed = true,
                                      .cause = TEC_CAUSE_HOST,
                                      .planner_ns = 5000,
                                      .host_ns = 8000,
                                      .tokens = 3};
    REQUIRE(open());
    emit((struct tec_event){.kind = TEC_EVENT_FRAME, .node = -1, .request = -1, .t_ns = 1});
    emit((struct tec_event){.kind = TEC_EVENT_START,
                            .node = 2,
                            .request = -1,
                            .rows = 5,
                            .padded = 8,
                            .k = 4,
                            .t_ns = 2});
    emit((struct tec_event){
        .kind = TEC_EVENT_END, .node = 2, .request = -1, .t_ns = 9, .since_ns = 2});
    emit((struct tec_event){
        .kind = TEC_EVENT_FINISH, .node = 2, .request = 40, .what = "eos", .done = 6, .t_ns = 10});
    emit((struct tec_event){
        .kind = TEC_EVENT_FRAME_END, .node = -1, .record = &record, .since_ns = 1, .t_ns = 20});
    size_t n = tec_recorder_copy(&recorder, &from, e, 32);
    CHECK_INT(n, ==, 5 + 6);
    CHECK_INT(from, ==, 0);
    CHECK(e[0].kind == TEC_EVENT_FRAME && e[0].frame == 7 && e[0].value == 1000 && e[0].more == 50);
    CHECK(e[1].more == 5 + 8 * 1000 && e[1].count == 4 && e[1].node == 2);
    CHECK(e[2].value == 2 && e[2].t_ns == 9);
    CHECK(e[3].value == 40 && e[3].more == 6);
    CHECK(strcmp(tec_recorder_word(&recorder, e[3].what), "eos") == 0);
    CHECK(e[4].flag && e[4].more == 12 &&
          strcmp(tec_recorder_word(&recorder, e[4].what), "host") == 0);
    CHECK(e[5].kind == TEC_FLIGHT_FIGURE && e[5].value == 5);
    CHECK(strcmp(tec_recorder_word(&recorder, e[5].what), "planner_us") == 0);
    CHECK(strcmp(tec_recorder_word(&recorder, 0), "") == 0);
    CHECK(strcmp(tec_recorder_word(&recorder, 255), "") == 0);
    tec_arena_finish(&arena);
}

/* What the loop tells of a frame of the bundled demo that takes a request: 28 events, which the
 * recorder keeps as 35. tests/host_path.t counts what that costs. */
static void a_frame(const struct tec_decision *decision, const struct tec_request_view *view,
                    const struct tec_frame_record *record)
{
    static const char *const before[] = {"fork", "store", "retrieve", "batch"};
    emit((struct tec_event){.kind = TEC_EVENT_FRAME, .node = -1, .request = -1, .t_ns = 1});
    emit((struct tec_event){.kind = TEC_EVENT_ARRIVE, .node = 2, .request = 3, .tokens = 12});
    emit((struct tec_event){.kind = TEC_EVENT_ADMIT, .node = 2, .request = 3, .tokens = 12});
    emit((struct tec_event){.kind = TEC_EVENT_INPUT, .node = -1, .request = -1});
    emit((struct tec_event){.kind = TEC_EVENT_PLAN,
                            .node = -1,
                            .request = -1,
                            .what = "oxygen",
                            .n = 1,
                            .decision = decision,
                            .view = view});
    emit((struct tec_event){
        .kind = TEC_EVENT_KV, .node = -1, .what = "alloc", .kv = "obs", .tokens = 50});
    for (int node = 0; node < 2; node++) {
        emit((struct tec_event){.kind = TEC_EVENT_START, .node = node, .request = -1, .rows = 1});
        emit((struct tec_event){.kind = TEC_EVENT_END, .node = node, .since_ns = 2, .rows = 1});
    }
    emit((struct tec_event){.kind = TEC_EVENT_RELEASE, .node = 1, .request = -1, .since_ns = 1});
    tec_recorder_seam(&recorder, &(struct tec_event){.node = 1, .tick = &tick}, 0.5F);
    for (int i = 0; i < 4; i++)
        emit((struct tec_event){.kind = TEC_EVENT_KV, .node = -1, .what = before[i], .kv = "lang"});
    emit((struct tec_event){.kind = TEC_EVENT_START, .node = 2, .rows = 2, .padded = 3, .k = 4});
    emit((struct tec_event){.kind = TEC_EVENT_END, .node = 2, .since_ns = 3, .rows = 1});
    for (int i = 0; i < 2; i++) {
        emit((struct tec_event){.kind = TEC_EVENT_KV, .node = -1, .what = "append", .kv = "lang"});
        emit((struct tec_event){.kind = TEC_EVENT_TOKENS, .node = 2, .tokens = 4, .done = 4});
    }
    emit((struct tec_event){.kind = TEC_EVENT_KV, .node = -1, .what = "unbatch", .kv = "lang"});
    emit((struct tec_event){.kind = TEC_EVENT_FINISH, .node = 2, .what = "eos", .done = 5});
    emit((struct tec_event){.kind = TEC_EVENT_KV, .node = -1, .what = "remove", .kv = "lang"});
    emit((struct tec_event){.kind = TEC_EVENT_KV, .node = -1, .what = "update", .kv = "lang"});
    emit((struct tec_event){.kind = TEC_EVENT_KV, .node = -1, .what = "free", .kv = "obs"});
    emit((struct tec_event){.kind = TEC_EVENT_FRAME_END, .node = -1, .record = record});
}

/* Nanoseconds of this thread for one such frame: the best of a few rounds. */
static int64_t time_of(int frames, const struct tec_decision *decision,
                       const struct tec_request_view *view, const struct tec_frame_record *record)
{
    int64_t best = INT64_MAX;
    for (int round = 0; round < 10; round++) {
        int64_t began = tec_clock_thread();
        for (int i = 0; i < frames; i++)
            a_frame(decision, view, record);
        int64_t took = (tec_clock_thread() - began) / frames;
        best = took < best ? took : best;
    }
    return best;
}

TEST(a_frame_of_the_demo_is_kept_whole)
{
    enum { FRAMES = 1000, TIMED = 200, KEPT = 35 };
    struct tec_flight_event e[KEPT];
    struct tec_decision decision = {.source = "oxygen.lua", .n_rows = 1};
    const struct tec_request_view view[1] = {{.id = 3, .node = 2}};
    const struct tec_frame_record record = {.planner_ns = 5000, .host_ns = 8000, .tokens = 5};
    uint64_t from = 0;
    decision.rows[0].line = 13;
    decision.rows[0].k = 4;
    REQUIRE(open());
    recorder.n_nodes = 3;
    _Atomic uint64_t(*ring)[4] = recorder.ring;
    int64_t kept_ns = time_of(TIMED, &decision, view, &record);
    recorder.ring = NULL; /* to make the events takes time too */
    int64_t made_ns = time_of(TIMED, &decision, view, &record);
    recorder.ring = ring;
    printf("# to keep the %d events of a frame takes %lld ns\n", KEPT,
           (long long)(kept_ns - made_ns));
    atomic_store(&recorder.written, 0);
    for (int i = 0; i < FRAMES; i++)
        a_frame(&decision, view, &record);
    CHECK_INT(atomic_load(&recorder.written), ==, FRAMES * KEPT);
    from = (FRAMES - 1) * KEPT;
    REQUIRE(tec_recorder_copy(&recorder, &from, e, KEPT) == KEPT);
    CHECK(e[0].kind == TEC_EVENT_FRAME && e[5].kind == TEC_FLIGHT_DECIDED && e[5].more == 13);
    CHECK_STR(tec_recorder_word(&recorder, e[14].what), "store");
    CHECK_STR(tec_recorder_word(&recorder, e[14].count), "lang");
    CHECK(e[28].kind == TEC_EVENT_FRAME_END && e[KEPT - 1].kind == TEC_FLIGHT_FIGURE);
    tec_arena_finish(&arena);
}

TEST(the_oldest_are_overwritten)
{
    struct tec_flight_event *e = malloc(TEC_FLIGHT_EVENTS * sizeof *e);
    uint64_t from = 0;
    int64_t all = TEC_FLIGHT_EVENTS + 1000;
    REQUIRE(e && open());
    for (int64_t i = 0; i < all; i++)
        emit((struct tec_event){.kind = TEC_EVENT_ARRIVE, .node = -1, .request = i, .t_ns = i});
    size_t n = tec_recorder_copy(&recorder, &from, e, TEC_FLIGHT_EVENTS);
    CHECK(n > TEC_FLIGHT_EVENTS - 1000 && n < TEC_FLIGHT_EVENTS);
    CHECK_INT(from + n, ==, all);
    for (size_t i = 0; i < n; i++)
        CHECK_INT(e[i].value, ==, (int64_t)(from + i));
    from += n;
    CHECK_INT(tec_recorder_copy(&recorder, &from, e, 10), ==, 0);
    free(e);
    tec_arena_finish(&arena);
}

TEST(words_are_kept_once_and_end_with_the_table)
{
    char word[80];
    struct tec_flight_event e[2];
    REQUIRE(open());
    for (int i = 0; i < 400; i++) {
        snprintf(word, sizeof word,
                 "%d a reason that is far longer than any word may be, so it is cut", i);
        emit((struct tec_event){.kind = TEC_EVENT_SHED, .node = -1, .what = word});
        emit((struct tec_event){.kind = TEC_EVENT_SHED, .node = -1, .what = word});
    }
    CHECK_INT(atomic_load(&recorder.n_words), ==, TEC_FLIGHT_WORDS);
    uint64_t from = 20;
    REQUIRE(tec_recorder_copy(&recorder, &from, e, 2) == 2);
    CHECK(e[0].what == e[1].what);
    CHECK_INT(strlen(tec_recorder_word(&recorder, e[0].what)), ==, TEC_FLIGHT_WORD - 1);
    from = 790;
    REQUIRE(tec_recorder_copy(&recorder, &from, e, 2) == 2);
    CHECK(e[0].what == 0);
    tec_arena_finish(&arena);
}

static _Atomic bool ended;

static void *write_events(void *user)
{
    int64_t n = *(const int64_t *)user;
    for (int64_t i = 0; i < n; i++)
        emit((struct tec_event){.kind = TEC_EVENT_ARRIVE, .node = -1, .request = i, .t_ns = i});
    atomic_store(&ended, true);
    return NULL;
}

/* Whatever the reader copies meanwhile is whole, and in order. */
TEST(copies_are_whole_while_the_frame_thread_writes)
{
    enum { ROOM = 4096 };
    static struct tec_flight_event e[ROOM];
    int64_t all = 8 * TEC_FLIGHT_EVENTS, seen = 0;
    uint64_t next = 0;
    pthread_t writer;
    REQUIRE(open());
    atomic_store(&ended, false);
    REQUIRE(pthread_create(&writer, NULL, write_events, &all) == 0);
    for (bool last = false; !last;) {
        last = atomic_load(&ended);
        for (size_t n = ROOM; n > 0;) {
            n = tec_recorder_copy(&recorder, &next, e, ROOM);
            for (size_t i = 0; i < n; i++)
                CHECK(e[i].value == (int64_t)(next + i) && e[i].t_ns == e[i].value);
            next += n;
            seen += (int64_t)n;
        }
    }
    pthread_join(writer, NULL);
    CHECK_INT(next, ==, all);
    CHECK(seen > 0);
    tec_arena_finish(&arena);
}

/* Requests of which a line said the same are one event; the default plan has no lines. */
TEST(decisions_are_told_with_their_lines)
{
    static struct tec_decision d;
    const struct tec_request_view view[4] = {
        {.id = 5, .node = 2}, {.id = 6, .node = 2}, {.id = 7, .node = 2}, {.id = 8, .node = 2}};
    struct tec_flight_event e[16];
    uint64_t from = 0;
    d = (struct tec_decision){.n_rows = 4, .source = "p.lua", .n_notes = 1};
    for (int i = 0; i < 3; i++)
        d.rows[i] = (struct tec_row_decision){.k = i == 1 ? 0 : 4, .line = i == 1 ? 9 : 7};
    d.notes[0] = (struct tec_note){.key = "n", .is_number = true, .line = 12};
    d.nodes[3].line = 20;
    d.nodes[3].skip = true;
    REQUIRE(open());
    emit((struct tec_event){
        .kind = TEC_EVENT_PLAN, .node = -1, .request = -1, .decision = &d, .view = view, .n = 4});
    REQUIRE(tec_recorder_copy(&recorder, &from, e, 16) == 5);
    CHECK(e[1].kind == TEC_FLIGHT_NOTE && e[1].node == 12);
    CHECK(e[2].kind == TEC_FLIGHT_DECIDED && e[2].value == 5 && e[2].lane == 2 && e[2].more == 7);
    CHECK(e[2].count == 4 && e[2].flag == TEC_DECIDED_DECODE && e[2].node == 2);
    CHECK(strcmp(tec_recorder_word(&recorder, e[2].what), "p.lua") == 0);
    CHECK(e[3].value == 6 && e[3].lane == 1 && e[3].more == 9 && e[3].flag == TEC_DECIDED_PAUSE);
    CHECK(e[4].value == -1 && e[4].node == 3 && e[4].more == 20 && e[4].flag == TEC_DECIDED_SKIP);
    d.source = NULL;
    emit((struct tec_event){
        .kind = TEC_EVENT_PLAN, .node = -1, .request = -1, .decision = &d, .view = view, .n = 4});
    from = 5;
    CHECK_INT(tec_recorder_copy(&recorder, &from, e, 16), ==, 2);
    tec_arena_finish(&arena);
}

TEST(chunks_join_at_the_row_of_their_moment)
{
    float before[6];
    const float a[6] = {0, 0, 1, 10, 2, 20}, b[6] = {0, 0, 4, 10, 2, 25};
    struct tec_seam s = {
        .rows = 3, .columns = 2, .row_ns = 100, .captured_ns = -1, .before = before};
    CHECK(tec_seam_join(&s, a, 0, 50) < 0.0F);        /* nothing is before it */
    CHECK(tec_seam_join(&s, b, 100, 210) == 10.0F);   /* row 1 against row 2 */
    CHECK(tec_seam_join(&s, a, 1000, 1050) == 25.0F); /* its row 0 against the last one */
    s.row_ns = 0;
    CHECK(tec_seam_join(&s, b, 0, 0) < 0.0F);
}

TEST(figures_count_what_the_loop_tells)
{
    static struct tec_figures f;
    struct tec_frame_record record = {.start_ns = 0,
                                      .end_ns = 30000000,
                                      .missed = true,
                                      .cause = TEC_CAUSE_PLAN,
                                      .in_flight = 2,
                                      .snapped = 1};
    const struct tec_event events[] = {
        {.kind = TEC_EVENT_END, .node = 1, .t_ns = 4000000, .since_ns = 1000000, .tick = &tick},
        {.kind = TEC_EVENT_TOKENS, .tokens = 5, .tick = &tick},
        {.kind = TEC_EVENT_RELEASE, .flag = true, .t_ns = 9000000, .tick = &tick},
        {.kind = TEC_EVENT_FRAME_END, .record = &record, .tick = &tick}};
    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++)
        tec_figures_count(&f, &events[i]);
    CHECK_INT(atomic_load(&f.frames), ==, 1);
    CHECK_INT(atomic_load(&f.missed[TEC_CAUSE_PLAN]), ==, 1);
    CHECK_INT(atomic_load(&f.tokens), ==, 5);
    CHECK_INT(atomic_load(&f.late), ==, 1);
    CHECK_INT(atomic_load(&f.in_flight), ==, 2);
    CHECK_INT(atomic_load(&f.nodes[1].sum_ns), ==, 3000000);
    CHECK_INT(atomic_load(&f.nodes[1].counts[3]), ==, 1); /* up to 5 ms */
    CHECK_INT(atomic_load(&f.frame.counts[6]), ==, 1);    /* up to 50 ms */
}

TAP_MAIN
