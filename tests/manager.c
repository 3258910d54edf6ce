/* manager.c - tests of the manager's six operations on the device (store, retrieve, update, remove,
 * batch, unbatch): they are reported in order, and the data they carry comes back byte for byte. */
#include "tests/loop_frame.h"
#include "tests/tiny.h"

#include <string.h>

enum { ROWS = 4, OPS = 1024 };

static struct tec_error err;
static struct tiny tiny;
static struct tiny_observation seen[ROWS];

/* --- reported operations ---------------------------------------------------------------------- */

struct op {
    enum tec_event_kind kind;
    const char *what;
    int64_t request, ids[TEC_MAX_ROWS];
    int n, tokens;
};

struct log {
    int n;
    struct op op[OPS];
};

static struct log heard;

static void note(void *self, const struct tec_event *e)
{
    struct log *log = self;
    bool wanted = e->kind == TEC_EVENT_KV || e->kind == TEC_EVENT_TOKENS ||
                  e->kind == TEC_EVENT_FINISH || e->kind == TEC_EVENT_CANCEL;
    if (!wanted || log->n == OPS)
        return;
    struct op *op = &log->op[log->n++];
    *op = (struct op){
        .kind = e->kind, .what = e->what, .request = e->request, .n = e->n, .tokens = e->tokens};
    for (int i = 0; i < e->n; i++)
        op->ids[i] = e->requests[i];
}

/* Find the next operation of that name from `at` on; -1 if there is none. */
static int find_op(int at, const char *what)
{
    for (; at < heard.n; at++)
        if (heard.op[at].kind == TEC_EVENT_KV && strcmp(heard.op[at].what, what) == 0)
            return at;
    return -1;
}

static int count_ops(const char *what)
{
    int n = 0;
    for (int at = find_op(0, what); at >= 0; at = find_op(at + 1, what))
        n++;
    return n;
}

/* --- loops ----------------------------------------------------------------------------------- */

/* The steps of a frame are the same for all rows; `alone` means that no two rows share a launch. */
struct pace {
    int k;
    bool alone, backward;
};

static enum tec_status advance(void *self, const struct tec_frame_view *view,
                               struct tec_decision *d, struct tec_error *error)
{
    const struct pace *p = self;
    (void)error;
    for (int i = 0; i < d->n_rows; i++) {
        d->rows[i].k = p->k;
        d->rows[i].group = p->alone ? i : 0;
        d->rows[i].priority = p->backward ? view->n_req - i : 0;
    }
    return TEC_OK;
}

static struct tec_loop *open_loop(struct pace *pace)
{
    struct tec_loop *loop = NULL;
    struct tec_loop_options o = tiny_loop(&tiny);
    heard.n = 0;
    o.chains[0].executor = tec_executor_real(tiny.plan);
    o.planner = (struct tec_planner){.name = "pace", .self = pace, .plan = advance};
    o.events = (struct tec_event_sink){note, &heard};
    REQUIRE(tec_loop_create(&loop, &o, &tiny_heap, &err) == TEC_OK);
    return loop;
}

static const struct tec_utterance *text_of(const struct tec_loop *loop, int64_t id)
{
    for (int i = 0; i < tec_loop_utterances(loop); i++)
        if (tec_loop_utterance(loop, i)->id == id)
            return tec_loop_utterance(loop, i);
    return NULL;
}

/* Run a frame of seen[i] in which one request of at most `max` tokens is asked for. */
static void ask(struct tec_loop *loop, int i, int max)
{
    struct tec_ask one = {.max_tokens = max};
    struct tec_tick tick = tec_loop_tick(loop, 0, 0);
    tick.asks = &one;
    tick.n_asks = 1;
    tec_loop_run(loop, &seen[i].input, &tick);
    REQUIRE(!one.refused);
}

struct texts {
    int count[ROWS], tokens[ROWS][TINY_NEW];
    char reason[ROWS][32];
};

/* Store ROWS requests one after the other, then advance all at that pace until they end. */
static void run_all(struct texts *out, struct pace pace, const int max[ROWS])
{
    int k = pace.k;
    struct tec_loop *loop = open_loop(&pace);
    pace.k = 0;
    for (int i = 0; i < ROWS; i++)
        ask(loop, i, max[i]);
    pace.k = k;
    for (int f = 0; f < 40 && tec_loop_live(loop); f++)
        loop_frame(loop, NULL, 0, 0);
    memset(out, 0, sizeof *out);
    for (int i = 0; i < ROWS; i++) {
        const struct tec_utterance *u = text_of(loop, i);
        REQUIRE(u && u->done);
        out->count[i] = u->count;
        memcpy(out->tokens[i], u->tokens, (size_t)u->count * sizeof(int));
        snprintf(out->reason[i], sizeof out->reason[i], "%s", u->reason);
    }
    tec_loop_destroy(loop);
    CHECK_INT(tiny.plan->prefixes.in_use, ==, 0);
}

static void open_tiny(const char *arch)
{
    REQUIRE(tiny_open(&tiny, arch, true, 1, 0, &err));
    tiny.model->text.eos = -1;
    for (int i = 0; i < ROWS; i++)
        tiny_observe(&seen[i], tiny.model, (uint64_t)i + 3);
}

static const int longest[ROWS] = {TINY_NEW, TINY_NEW, TINY_NEW, TINY_NEW};

/* --- round trips ----------------------------------------------------------------------------- */

static void split_and_batch(const char *arch)
{
    static struct texts whole, other;
    static const struct pace paces[] = {{1, false, false}, {1, true, false}, {2, false, false},
                                        {2, true, true},   {5, false, true}, {8, true, false},
                                        {8, false, false}};
    open_tiny(arch);
    run_all(&whole, (struct pace){8, true, false}, longest);
    CHECK(memcmp(whole.tokens[0], whole.tokens[1], sizeof whole.tokens[0]) != 0);
    for (size_t i = 0; i < sizeof paces / sizeof paces[0]; i++) {
        run_all(&other, paces[i], longest);
        CHECK(memcmp(&whole, &other, sizeof whole) == 0);
    }
    tiny_close(&tiny);
}

TEST(split_runs_and_batches_are_the_same_bytes_pi05)
{
    split_and_batch("pi05");
}
TEST(split_runs_and_batches_are_the_same_bytes_pi0)
{
    split_and_batch("pi0");
}

/* A shorter request must be the beginning of the longer one, alone and beside others. */
TEST(a_request_of_its_own_length_is_a_prefix)
{
    static struct texts whole, brief;
    static const int max[][ROWS] = {{1, 2, 3, 4}, {TINY_NEW, 1, 7, 2}, {5, 5, TINY_NEW + 9, 0}};
    open_tiny("pi05");
    run_all(&whole, (struct pace){5, false, false}, longest);
    for (size_t m = 0; m < sizeof max / sizeof max[0]; m++)
        for (int k = 1; k <= 8; k += k < 2 ? 1 : 3) { /* 1, 2, 5, 8 */
            run_all(&brief, (struct pace){k, false, false}, max[m]);
            for (int i = 0; i < ROWS; i++) {
                int want = max[m][i] > 0 && max[m][i] < TINY_NEW ? max[m][i] : TINY_NEW;
                CHECK_INT(brief.count[i], ==, want);
                CHECK_STR(brief.reason[i], "length");
                CHECK(memcmp(brief.tokens[i], whole.tokens[i], (size_t)want * sizeof(int)) == 0);
            }
        }
    tiny_close(&tiny);
}

/* The end token stops a row that its length would not stop, and the other way round. */
TEST(end_token_and_length_whichever_is_first)
{
    static struct texts whole, other;
    open_tiny("pi05");
    run_all(&whole, (struct pace){8, false, false}, longest);
    int end = whole.tokens[0][4], at = 0;
    while (whole.tokens[0][at] != end)
        at++;
    tiny.model->text.eos = end;
    const int after[ROWS] = {at + 2, at + 1, TINY_NEW, 1}, before[ROWS] = {at, 1, 1, 1};
    run_all(&other, (struct pace){5, false, false}, after);
    CHECK_INT(other.count[0], ==, at + 1);
    CHECK_STR(other.reason[0], "eos");
    CHECK(memcmp(other.tokens[0], whole.tokens[0], (size_t)(at + 1) * sizeof(int)) == 0);
    if (at > 0) {
        run_all(&other, (struct pace){5, false, false}, before);
        CHECK_INT(other.count[0], ==, at);
        CHECK_STR(other.reason[0], "length");
    }
    tiny_close(&tiny);
}

/* --- order ----------------------------------------------------------------------------------- */

/* Check from `batch` at: unbatch has the same rows, and what each row made follows in that
 * order. */
static void check_launch(int batch)
{
    int unbatch = find_op(batch, "unbatch"), at = unbatch + 1;
    REQUIRE(unbatch > 0 && batch > 0);
    const struct op *b = &heard.op[batch], *u = &heard.op[unbatch], *r = &heard.op[batch - 1];
    CHECK_STR(r->what, "retrieve");
    CHECK(r->n == b->n && u->n == b->n);
    for (int i = 0; i < b->n; i++) {
        CHECK(u->ids[i] == b->ids[i] && r->ids[i] == b->ids[i]);
        REQUIRE(at + 1 < heard.n);
        CHECK(heard.op[at].kind == TEC_EVENT_TOKENS && heard.op[at].request == b->ids[i]);
        bool ends = heard.op[at + 1].kind == TEC_EVENT_FINISH;
        CHECK_INT(heard.op[at + 1].request, ==, b->ids[i]);
        at += ends ? 3 : 2;
        CHECK_STR(heard.op[at - 1].what, ends ? "remove" : "update");
    }
}

TEST(what_is_batched_is_unbatched_in_its_order)
{
    static struct texts texts;
    static const int max[ROWS] = {9, 3, TINY_NEW, 5};
    open_tiny("pi05");
    for (int backward = 0; backward < 2; backward++) {
        run_all(&texts, (struct pace){2, false, backward}, max);
        int batches = 0;
        for (int at = find_op(0, "batch"); at >= 0; at = find_op(at + 1, "batch"), batches++)
            check_launch(at);
        CHECK_INT(batches, >, 3);
        int first = find_op(0, "batch");
        CHECK_INT(heard.op[first].n, ==, ROWS);
        CHECK(heard.op[first].ids[0] == (backward ? ROWS - 1 : 0));
        CHECK_INT(count_ops("store"), ==, ROWS);
        CHECK_INT(count_ops("remove"), ==, ROWS);
        CHECK_INT(count_ops("retrieve"), ==, batches);
        CHECK_INT(count_ops("unbatch"), ==, batches);
    }
    tiny_close(&tiny);
}

/* --- cancel ---------------------------------------------------------------------------------- */

/* Run two requests; after the first tokens, cancel those ids. */
static void run_with_cancels(struct texts *out, const int64_t *ids, int n)
{
    struct pace pace = {2, false, false};
    struct tec_loop *loop = open_loop(&pace);
    ask(loop, 0, 0);
    ask(loop, 1, 0);
    struct tec_tick tick = tec_loop_tick(loop, 0, 0);
    tick.cancels = ids;
    tick.n_cancels = n;
    tec_loop_run(loop, NULL, &tick);
    for (int f = 0; f < 10; f++)
        loop_frame(loop, NULL, 0, 0);
    memset(out, 0, sizeof *out);
    for (int i = 0; i < 2; i++) {
        const struct tec_utterance *u = text_of(loop, i);
        REQUIRE(u);
        out->count[i] = u->count;
        memcpy(out->tokens[i], u->tokens, (size_t)u->count * sizeof(int));
        snprintf(out->reason[i], sizeof out->reason[i], "%s", u->reason);
    }
    tec_loop_destroy(loop);
    CHECK_INT(tiny.plan->prefixes.in_use, ==, 0);
}

TEST(an_unknown_cancel_changes_nothing)
{
    static struct texts none, unknown, known;
    static const int64_t strangers[] = {-1, 2, 77, INT64_MAX, INT64_MIN}, first[] = {0};
    open_tiny("pi05");
    run_with_cancels(&none, NULL, 0);
    run_with_cancels(&unknown, strangers, 5);
    CHECK(memcmp(&none, &unknown, sizeof none) == 0);
    run_with_cancels(&known, first, 1);
    CHECK_STR(known.reason[0], "cancelled");
    CHECK_INT(known.count[0], ==, 4);
    CHECK(memcmp(known.tokens[0], none.tokens[0], 4 * sizeof(int)) == 0);
    CHECK(memcmp(known.tokens[1], none.tokens[1], sizeof none.tokens[1]) == 0);
    tiny_close(&tiny);
    CHECK_INT(tiny_heap.live, ==, 0);
}

TAP_MAIN
