/* sends.c - copies beside the streams of the CUDA device: a stream waits for those that it is told
 * to, and a prompt of remembered segments has the same bytes in every order in which they may run.
 */
#include "tests/cuda/bench.h"
#include "tests/recall.h"

static const struct order {
    enum cuda_emulator_when when;
    unsigned seed;
} orders[] = {{CUDA_EMULATOR_LOWEST, 0},   {CUDA_EMULATOR_HIGHEST, 0},  {CUDA_EMULATOR_SHUFFLED, 1},
              {CUDA_EMULATOR_SHUFFLED, 2}, {CUDA_EMULATOR_SHUFFLED, 3}, {CUDA_EMULATOR_EARLY, 0}};
enum { ORDERS = sizeof orders / sizeof orders[0], FEW = 2 };

/* --- the device ------------------------------------------------------------------------------ */

static struct bench b;
static float *sent; /* pinned */

static void open_bench(const struct order *order)
{
    struct bench_side *s = &b.sides[0];
    const struct bench_counts counts = {.rows = ROWS};
    bench_clean();
    cuda_emulator_timing(order->when, order->seed);
    REQUIRE(bench_open(&b, 0, 0, &err) == TEC_OK);
    REQUIRE((sent = tec_device_pin(b.device, 2 * sizeof(float[BLOCK]))));
    tec_device_upload(b.device, TEC_STREAM_MAIN, s->counts, &counts, sizeof counts);
    REQUIRE(tec_capture_begin(&s->capture, b.device, TEC_STREAM_MAIN, &b.arena, &err) == TEC_OK);
    bench_copy(s, s->x, s->y, &s->counts->rows, ROWS, COLS, "copy");
    REQUIRE(tec_capture_end(s->capture, &err) == TEC_OK);
}

static void close_bench(void)
{
    tec_device_unpin(b.device, sent);
    bench_close(&b);
    bench_check_empty();
}

/* Wrong elements of what a replay made of x, which is `salt`'s. */
static int replay_wrong(int salt)
{
    struct bench_side *s = &b.sides[0];
    struct tec_replay r = {0};
    float y[BLOCK];
    int wrong = 0;
    tec_device_replay(b.device, s->capture, &r);
    CHECK_INT(r.status, ==, TEC_OK);
    tec_device_download(b.device, TEC_STREAM_MAIN, y, s->y, sizeof y);
    for (int i = 0; i < ROWS * COLS; i++)
        wrong += y[i / COLS * LD + i % COLS] != bench_x(salt, i / COLS, i % COLS);
    return wrong;
}

/* Half n of the pinned memory is `salt`'s and on its way to x, as a note says. */
static void send(int n, int salt)
{
    float *from = sent + (ptrdiff_t)n * BLOCK;
    for (int i = 0; i < BLOCK; i++)
        from[i] = bench_x(salt, i / LD, i % LD);
    tec_device_send(b.device, b.sides[0].x, from, sizeof(float[BLOCK]));
    tec_device_note(b.device, n);
}

TEST(a_stream_waits_for_what_it_is_told_to)
{
    int late = 0;
    for (size_t i = 0; i < ORDERS; i++) {
        open_bench(&orders[i]);
        for (int salt = 1; salt < 6; salt++) {
            send(salt % 2, salt);
            tec_device_await(b.device, TEC_STREAM_MAIN, salt % 2);
            CHECK_INT(replay_wrong(salt), ==, 0);
        }
        send(0, 7); /* and for nothing else */
        late += replay_wrong(7) > 0;
        close_bench();
    }
    CHECK_INT(late, >, 0);
}

TEST(a_note_stands_for_what_was_sent_before_it)
{
    for (size_t i = 0; i < ORDERS; i++) {
        open_bench(&orders[i]);
        send(0, 1);
        tec_device_await(b.device, TEC_STREAM_MAIN, 0);
        send(0, 2);
        send(1, 3); /* all before it, too */
        tec_device_await(b.device, TEC_STREAM_MAIN, 1);
        CHECK_INT(replay_wrong(3), ==, 0);
        tec_device_await(b.device, TEC_STREAM_MAIN, 5); /* never noted: no wait */
        CHECK_INT(replay_wrong(3), ==, 0);
        close_bench();
    }
}

TEST(pinned_memory_may_be_short)
{
    bench_clean();
    REQUIRE(bench_open(&b, 0, 0, &err) == TEC_OK);
    cuda_emulator_fail("cudaMallocHost", 1, cudaErrorMemoryAllocation);
    CHECK(tec_device_pin(b.device, 100) == NULL);
    CHECK_INT(tec_device_failure(b.device, &err), ==, TEC_OK);
    void *p = tec_device_pin(b.device, 100);
    CHECK(p != NULL);
    tec_device_unpin(b.device, p);
    bench_close(&b);
    bench_check_empty();
}

/* --- a prompt -------------------------------------------------------------------------------- */

static bool late;       /* pieces come when a layer waits for them, not before */
static unsigned chance; /* not 0: others than these come late */

static bool waited(void *self, int layer)
{
    (void)self, (void)layer;
    return true;
}

static bool came(void *self, int layer, int segment)
{
    (void)self;
    return !late && (!chance || ((unsigned)(layer * 31 + segment * 7) + chance) % 3 > 0);
}

static const struct tec_recall_rule keeps = {
    .selection = TEC_SELECTION_keep, .scoring = TEC_SCORING_lift, .ratios = some};

/* Bytes of the pieces that the last run's layers did not compute, and layers that had any. */
static int64_t pieces_bytes(int *layers)
{
    int64_t sum = 0;
    *layers = 0;
    for (int l = 0; l < recall.layers; l++) {
        int64_t before = sum;
        for (int u = 0; u <= SEGMENTS; u++) {
            int tokens = u < SEGMENTS ? segments[u].end - segments[u].begin : BEGINNING;
            bool computed = recall.sets[l * (recall.max_segments + 1) + u];
            sum += computed ? 0 : 2 * (int64_t)tokens * (int64_t)row;
        }
        *layers += sum > before;
    }
    return sum;
}

/* Keys and values of a prompt, to be freed; every layer but the first has all it needs ahead, or
 * fewer where pieces come late. */
static unsigned char *recalled(const struct order *order, bool bf16, bool branches, size_t *size)
{
    const struct tec_recall_source source = {.find = find, .wait = waited, .came = came};
    struct cuda_emulator_counters c;
    int layers = 0;
    bench_clean();
    cuda_emulator_protect(false);
    cuda_emulator_timing(order->when, order->seed);
    tap.device = "cuda";
    branching = branches;
    open_model(bf16, 2);
    recall.n_rooms = FEW; /* of those that it has: they are used again */
    branching = false;
    make_prompt(LONG);
    const struct tec_recall_input in = prompt_in(tec_kv_pool_take(&plan->prefixes));
    REQUIRE(tec_recall_run(&recall, &in, &keeps, &source, &err) == TEC_OK);
    CHECK(recall.layers > recall.n_rooms);
    CHECK_INT(recall.moves.bytes, ==, pieces_bytes(&layers));
    CHECK_INT(recall.moves.layers, ==, layers);
    if (!chance)
        CHECK_INT(recall.moves.ahead, ==, late ? 0 : layers - 1);
    *size = region_bytes();
    unsigned char *copy = malloc(*size);
    REQUIRE(copy);
    memcpy(copy, read_region(in.region), *size);
    close_recall();
    cuda_emulator_counters(&c);
    CHECK_INT(c.reports, ==, 0);
    CHECK_INT(c.pinned_bytes + c.device_bytes, ==, 0);
    CHECK_INT(c.streams + c.events + c.graphs + c.execs, ==, 0);
    return copy;
}

static void every_order(bool bf16, bool branches)
{
    size_t size, other;
    late = true;
    unsigned char *want = recalled(&orders[0], bf16, branches, &size);
    late = false;
    for (chance = 0; chance < 3; chance += 2)
        for (size_t i = 0; i < ORDERS; i++) {
            unsigned char *got = recalled(&orders[i], bf16, branches, &other);
            CHECK(size == other && memcmp(want, got, size) == 0);
            free(got);
        }
    chance = 0;
    free(want);
    bench_clean();
}

TEST(pieces_come_ahead_in_every_order)
{
    every_order(true, false);
    every_order(false, false);
}

TEST(pieces_come_ahead_beside_a_choice)
{
    every_order(true, true);
    every_order(false, true);
}

/* The pieces of neighbours that lie side by side come in one copy: with those of the beginning at
 * most one more than there are gaps. */
static unsigned char *together[LAYERS];

static bool find_together(void *self, int layer, int segment, const void **k, const void **v)
{
    size_t at = 0;
    (void)self;
    for (int u = 0; u < segment; u++)
        at += (2 * (size_t)(segments[u].end - segments[u].begin) * row + 8 + 63) / 64 * 64;
    int tokens = segment < SEGMENTS ? segments[segment].end - segments[segment].begin : BEGINNING;
    *k = together[layer] + at;
    *v = together[layer] + at + (size_t)tokens * row;
    return true;
}

TEST(neighbours_come_in_one_copy)
{
    const struct tec_recall_rule reuse = {.selection = TEC_SELECTION_reuse};
    const struct tec_recall_source apart = {.find = find};
    const struct tec_recall_source side = {.find = find_together, .behind = 72};
    const void *k, *v, *to_k, *to_v;
    bench_clean();
    cuda_emulator_protect(false);
    tap.device = "cuda";
    open_model(true, 2);
    make_prompt(LONG);
    for (int l = 0; l < recall.layers; l++) {
        together[l] = pin(2 * (size_t)query * row + (SEGMENTS + 1) * 72);
        for (int u = 0; u <= SEGMENTS; u++) {
            int tokens = u < SEGMENTS ? segments[u].end - segments[u].begin : BEGINNING;
            find(NULL, l, u, &k, &v);
            find_together(NULL, l, u, &to_k, &to_v);
            memcpy((void *)(size_t)to_k, k, (size_t)tokens * row);
            memcpy((void *)(size_t)to_v, v, (size_t)tokens * row);
        }
    }
    const struct tec_recall_input in = prompt_in(tec_kv_pool_take(&plan->prefixes));
    REQUIRE(tec_recall_run(&recall, &in, &reuse, &apart, &err) == TEC_OK);
    CHECK_INT(recall.moves.copies, ==, 2 * (SEGMENTS + 1) * recall.layers);
    unsigned char *want = read_region(in.region);
    REQUIRE(tec_recall_run(&recall, &in, &reuse, &side, &err) == TEC_OK);
    CHECK_INT(recall.moves.copies, ==, recall.layers);
    CHECK(memcmp(want, read_region(in.region), region_bytes()) == 0);
    close_recall();
    bench_clean();
}

/* Pieces that stay: where on the device, and which are there. */
static unsigned char *stay[LAYERS];
static bool kept[LAYERS][SEGMENTS + 1];
static int given_up; /* the layer whose pieces never come; 0: all do */

static void *stays(void *self, int layer, int segment, bool *there)
{
    (void)self;
    *there = kept[layer][segment];
    return segment < SEGMENTS ? stay[layer] + 2 * (size_t)segments[segment].begin * row : NULL;
}

static void placed(void *self, int layer, int segment)
{
    (void)self;
    kept[layer][segment] = segment < SEGMENTS;
}

static bool comes(void *self, int layer)
{
    (void)self;
    return !given_up || layer < given_up;
}

/* What a run that is given up has sent counts for the layers that have ended alone. */
TEST(pieces_stay_once_their_layer_has_ended)
{
    const struct tec_recall_rule reuse = {.selection = TEC_SELECTION_reuse};
    const struct tec_recall_source source = {
        .find = find, .wait = comes, .came = came, .stays = stays, .placed = placed};
    for (size_t i = 0; i < ORDERS; i++) {
        bench_clean();
        cuda_emulator_protect(false);
        cuda_emulator_timing(orders[i].when, orders[i].seed);
        tap.device = "cuda";
        open_model(true, 2);
        make_prompt(LONG);
        memset(kept, 0, sizeof kept);
        for (int l = 0; l < recall.layers; l++)
            REQUIRE((stay[l] = tec_device_get(device, 2 * (size_t)query * row)));
        const struct tec_recall_input in = prompt_in(tec_kv_pool_take(&plan->prefixes));
        REQUIRE(run(&reuse, in.region));
        unsigned char *want = read_region(in.region);
        int64_t begins = 2 * (int64_t)BEGINNING * (int64_t)row;
        int64_t layer = 2 * (int64_t)query * (int64_t)row - begins;
        given_up = 2;
        CHECK(tec_recall_run(&recall, &in, &reuse, &source, &err) == TEC_NOT_FOUND);
        CHECK_INT(recall.moves.bytes, ==, recall.layers * (layer + begins)); /* all were sent */
        given_up = 0;
        for (int again = 0; again < 2; again++) {
            int left = again ? 0 : recall.layers - 2;
            REQUIRE(tec_recall_run(&recall, &in, &reuse, &source, &err) == TEC_OK);
            CHECK_INT(recall.moves.bytes, ==, left * layer + recall.layers * begins);
            CHECK(memcmp(want, read_region(in.region), region_bytes()) == 0);
        }
        for (int l = 0; l < recall.layers; l++)
            tec_device_put(device, stay[l]);
        close_recall();
    }
    bench_clean();
}

TEST(a_copy_that_fails_is_told)
{
    static const char *const functions[] = {"cudaMemcpyAsync", "cudaEventRecord",
                                            "cudaStreamWaitEvent"};
    const struct tec_recall_rule reuse = {.selection = TEC_SELECTION_reuse};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        bench_clean();
        cuda_emulator_protect(false);
        tap.device = "cuda";
        open_model(true, 2);
        make_prompt(LONG);
        int region = tec_kv_pool_take(&plan->prefixes);
        cuda_emulator_fail(functions[i], 3, cudaErrorUnknown);
        CHECK(!run(&reuse, region));
        CHECK_INT(err.status, ==, TEC_DEVICE);
        CHECK(strncmp(err.message, "cuda:0: ", 8) == 0);
        close_recall();
    }
    bench_clean();
}

TAP_MAIN
