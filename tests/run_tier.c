/* run_tier.c - tests of kept pieces that stay on the device (tiers.gpu), through the engine: not a
 * byte of a prompt moves, less is sent, and what changed is never taken from there. */
#include "tests/planner.h"

#include <stdlib.h>

#define REUSE "nodes.recall.select=reuse"
enum { MEMORY = 64 << 20 };

/* Keys and values of all regions, one memory behind the other. */
static unsigned char *regions_of(const struct open *o, size_t *size)
{
    const struct tec_plan *plan = o->engine->chains[0].plan;
    size_t row = tec_kv_row_bytes(&plan->space.shape);
    size_t each = (size_t)plan->spec.frame_tokens * row, at = 0;
    *size = 2 * each * (size_t)plan->prefixes.n * (size_t)plan->space.shape.layers;
    unsigned char *all = malloc(*size);
    REQUIRE(all);
    for (int l = 0; l < plan->space.shape.layers; l++)
        for (int r = 0; r < plan->prefixes.n; r++)
            for (int v = 0; v < 2; v++, at += each) {
                const unsigned char *from = (v ? plan->space.v : plan->space.k)[l];
                tec_device_download(plan->device, TEC_STREAM_MAIN, all + at,
                                    from + (size_t)plan->prefixes.first[r] * row, each);
            }
    return all;
}

static bool same_regions(const struct open *a, const struct open *b)
{
    size_t size, other;
    unsigned char *x = regions_of(a, &size), *y = regions_of(b, &other);
    bool same = size == other && memcmp(x, y, size) == 0;
    free(x);
    free(y);
    return same;
}

/* The planner with and without a tier on the device. */
static struct open plain, held;
static bool sends;

static void open_both(const char *rule, const char *tier)
{
    folder_make();
    REQUIRE(open_planner(&plain, "", rule, NULL) == TEC_OK);
    REQUIRE(open_planner(&held, "", rule, tier) == TEC_OK);
    sends = !tec_device_reads_host(held.engine->device);
}

static void close_both(void)
{
    close_planner(&held);
    close_planner(&plain);
    CHECK_INT(rmdir(folder), ==, 0);
    CHECK_INT(heap.live, ==, 0);
}

/* The same bytes of both; bytes that lay on the device. */
static int64_t ask_both(const char *goal, const char *changes)
{
    int64_t before = counts(&held).held_bytes;
    struct answer want = ask(&plain, goal, changes), is = ask(&held, goal, changes);
    CHECK(same(&want, &is));
    CHECK(same_regions(&plain, &held));
    settle(&plain);
    settle(&held);
    CHECK_INT(counts(&plain).held_bytes, ==, 0);
    CHECK_INT(counts(&held).whole, ==, 0);
    return counts(&held).held_bytes - before;
}

/* Bytes that are sent with every prompt: its beginning. */
static int64_t beginning(void)
{
    const struct tec_chain_memory *c = held.engine->chains[0].memory;
    return sends ? 2 * (int64_t)c->n_beginning * (int64_t)c->row * c->recall.layers : 0;
}

static int64_t sent(const struct open *o)
{
    return counts(o).sent_bytes;
}

#define PUTS                                                                                      \
    "{\"put\": {\"cup\": \"the cup is on the table and is dirty\\n\", \"apple\": \"the apple is " \
    "in the fridge\\n\"}}"
#define CHANGES "{\"put\": {\"cup\": \"the cup is on the shelf and is clean\\n\"}}"

TEST(pieces_on_the_device_are_the_same_bytes)
{
    open_both(REUSE, "resources.mem.tiers.gpu=64MiB");
    CHECK_INT(ask_both("fetch the cup", PUTS), ==, 0); /* computed with the prompt */
    CHECK_INT(ask_both("fetch the cup", NULL), ==, 0); /* sent */
    int64_t before = sent(&held), loaded = counts(&held).prefetch.bytes[TEC_KEPT_RAM];
    int64_t there = ask_both("fetch the cup", NULL);
    CHECK(sends ? there > 0 : there == 0);
    CHECK_INT(sent(&held) - before, ==, beginning());
    if (sends) /* nothing was loaded */
        CHECK_INT(counts(&held).prefetch.bytes[TEC_KEPT_RAM], ==, loaded);
    CHECK_INT(ask_both("fetch the apple", NULL), ==, there); /* another prompt of the same texts */

    int64_t less = ask_both("fetch the cup", CHANGES); /* without the cup, which is computed */
    CHECK(sends ? 0 < less && less < there : less == 0);
    CHECK_INT(ask_both("fetch the cup", NULL), ==, less); /* the new one is sent */
    before = sent(&held);
    there = ask_both("fetch the cup", NULL);
    CHECK(sends ? there > less : there == 0);
    CHECK_INT(sent(&held) - before, ==, beginning());
    close_both();
}

/* Where a segment is computed in the first layers, its pieces of the later ones alone stay. */
TEST(pieces_of_later_layers_stay_alone)
{
    open_both("nodes.recall.recompute.decay=0.5", "resources.mem.tiers.gpu=64MiB");
    ask_both("fetch the cup", PUTS);
    ask_both("fetch the cup", NULL);
    int64_t there = ask_both("fetch the cup", NULL);
    CHECK(sends ? there > 0 : there == 0);
    ask_both("fetch the apple", NULL); /* others are computed, and may be needed earlier */
    close_both();
}

/* With room for one segment of two, that which came first stays while both are used. */
TEST(a_tier_of_one_segment_holds_one)
{
    char tier[64];
    REQUIRE(open_planner(&plain, "", REUSE, NULL) == TEC_OK);
    const struct tec_memory *m = plain.engine->memories[0];
    size_t piece = (2 * (size_t)m->input->tokens_each * m->row + 8 + 63) / 64 * 64;
    snprintf(tier, sizeof tier, "resources.mem.tiers.gpu=%zu", 2 * piece * (size_t)m->layers - 1);
    close_planner(&plain);
    open_both(REUSE, tier);
    CHECK_INT(held.engine->memories[0]->shared->tier.n, ==, sends ? 1 : 0);
    ask_both("fetch the cup", PUTS);
    int64_t before = sent(&held);
    ask_both("fetch the cup", NULL);
    int64_t all = sent(&held) - before;
    before = sent(&held);
    int64_t there = ask_both("fetch the cup", NULL), rest = sent(&held) - before;
    CHECK(sends ? there > 0 && rest > beginning() && rest < all : there + rest == 0);
    close_both();
}

static int warned(const struct tec_diagnostics *d)
{
    int n = 0;
    for (int i = 0; i < d->n; i++)
        n += d->list[i].code == TEC_W110 && strstr(d->list[i].message, "tiers.gpu") != NULL;
    return n;
}

/* Measure the planner with a tier; *found: lines that say that nothing is kept there. */
static struct tec_measured measure(const char *tier, int *found)
{
    struct open o;
    struct tec_measured m;
    struct tec_arena arena;
    struct tec_diagnostics d;
    tec_arena_init(&arena, &heap);
    tec_diagnostics_init(&d, &heap);
    REQUIRE(open_planner(&o, "", REUSE, tier) == TEC_OK);
    struct tec_engine_options options = o.engine->options;
    options.found = &d;
    REQUIRE(tec_engine_measure(&m, &options, &heap, &arena, &err) == TEC_OK);
    *found = warned(&d);
    sends = !tec_device_reads_host(o.engine->device);
    close_planner(&o);
    tec_diagnostics_finish(&d);
    tec_arena_finish(&arena);
    return m;
}

TEST(a_tier_is_in_the_plan_of_the_device)
{
    int found;
    struct open o;
    struct tec_measured none = measure(NULL, &found);
    CHECK_INT(found, ==, 0);
    struct tec_measured m = measure("resources.mem.tiers.gpu=64MiB", &found);
    CHECK_INT(found, ==, sends ? 0 : 1);
    CHECK(sends ? m.memory.device > MEMORY / 2 && m.memory.device <= MEMORY : m.memory.device == 0);
    CHECK_INT(m.bytes.total - none.bytes.total, ==, m.memory.device);
    CHECK_INT(m.bytes.kv - none.bytes.kv, ==, m.memory.device);
    CHECK_INT(m.needs[0] - none.needs[0], ==, m.memory.device);
    CHECK_INT(m.host, ==, none.host);
    m = measure("resources.mem.tiers.gpu=1KiB", &found);
    CHECK_INT(found, ==, 1);
    CHECK_INT(m.bytes.total, ==, none.bytes.total);
    if (!sends)
        return;
    CHECK_INT(open_planner(&o, "", "memory.device=64MiB", "resources.mem.tiers.gpu=64MiB"), ==,
              TEC_NO_MEMORY);
    CHECK(strstr(err.message, "static plan needs") != NULL);
}

TAP_MAIN
