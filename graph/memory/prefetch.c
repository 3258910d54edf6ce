/* prefetch.c - creates a prefetch and implements the side that the frame calls.
 *
 * The prefetch thread is in prefetch_load.c. The two sides talk through counters: the frame stores
 * how many layers have started, are known and have ended, the thread stores how many are ready. A
 * value is written before its count is published with release order, so the frame never locks or
 * blocks; waiting for a layer is spinning on one atomic. */
#include "graph/memory/prefetch_own.h"

#include "base/clock.h"
#include "base/spin.h"
#include "base/thread.h"

#include <string.h>

enum { POLL_NS = 50000, LOADS_A_PIECE = 2 };

static enum tec_status options_check(const struct tec_prefetch_options *o, struct tec_error *err)
{
    if (o->layers < 1 || o->layers > TEC_MAX_LOADING_LAYERS || o->segments < 1 ||
        o->segments > TEC_MAX_LOADING_SEGMENTS || o->grain_bytes < 0 || o->remote_ns < 0 ||
        o->poll_ns < 0 || o->poll_ns > 999999999)
        return tec_fail(
            err, TEC_INVALID,
            "memory: a prefetch of %d layers, %d segments, %lld bytes of grain, asking each "
            "%lld ns; up to %d, %d and 1 s are possible",
            o->layers, o->segments, (long long)o->grain_bytes, (long long)o->poll_ns,
            TEC_MAX_LOADING_LAYERS, TEC_MAX_LOADING_SEGMENTS);
    for (int t = 0; t < TEC_KEPT_PLACES; t++)
        if (o->limit[t].bytes_per_sec < 0 || o->limit[t].latency_ns < 0)
            return tec_fail(err, TEC_INVALID, "memory: the limit of tier %d is negative", t);
    return TEC_OK;
}

static bool arrays_take(struct tec_prefetch *s)
{
    size_t layers = (size_t)s->options.layers, segments = (size_t)s->options.segments;
    size_t pieces = layers * segments;
    struct tec_arena *a = &s->arena;
    int64_t **by_layer[] = {&s->reveal_ns,  &s->layer_ns,   &s->started_at, &s->known_at,
                            &s->ended_at,   &s->zeros,      &s->whole_at,   &s->bubble_ns,
                            &s->mean_layer, &s->mean_reveal};
    bool all = true;
    for (size_t i = 0; i < sizeof by_layer / sizeof *by_layer; i++)
        all = (*by_layer[i] = TEC_NEW(a, layers, int64_t)) && all;
    s->kv = TEC_NEW(a, segments, struct tec_kv *);
    s->order = TEC_NEW(a, segments, int);
    s->failed = TEC_NEW(a, segments, unsigned char);
    s->sets = TEC_NEW(a, pieces, unsigned char);
    s->staging = TEC_NEW(a, pieces, unsigned char *);
    s->pieces = TEC_NEW(a, pieces, const unsigned char *);
    s->held = TEC_NEW(a, pieces, unsigned char);
    s->there = TEC_NEW(a, pieces, _Atomic bool);
    s->load_ns = TEC_NEW(a, pieces, int64_t);
    s->room_loads = LOADS_A_PIECE * pieces;
    s->loads = TEC_NEW(a, s->room_loads, struct tec_load_event);
    /* One block for the arrays of the loading rules, reused by every forward. */
    size_t rules = pieces * sizeof(int64_t) + layers * sizeof(int) + segments + 256;
    all = tec_arena_push(&s->rules_arena, rules, 1, 64) && all;
    s->rules_mark = (struct tec_arena_mark){s->rules_arena.block, 0};
    return all && s->kv && s->order && s->failed && s->sets && s->staging && s->pieces && s->held &&
           s->there && s->load_ns && s->loads;
}

enum tec_status tec_prefetch_create(struct tec_prefetch **out, struct tec_store *store,
                                    const struct tec_prefetch_options *options,
                                    struct tec_heap *heap, struct tec_error *err)
{
    TEC_TRY(options_check(options, err));
    struct tec_prefetch *s = tec_heap_get(heap, sizeof *s);
    if (!s)
        return tec_fail(err, TEC_NO_MEMORY, "memory: no room for a prefetch");
    s->heap = heap;
    s->store = store;
    s->options = *options;
    s->options.poll_ns = options->poll_ns > 0 ? options->poll_ns : POLL_NS;
    tec_arena_init(&s->arena, heap);
    tec_arena_init(&s->rules_arena, heap);
    sem_init(&s->go, 0, 0);
    bool room = arrays_take(s);
    s->started_thread = room && tec_thread_start(&s->thread, tec_prefetch_run, s);
    if (s->started_thread) {
        *out = s;
        return TEC_OK;
    }
    tec_prefetch_destroy(s);
    if (room)
        return tec_fail(err, TEC_IO, "memory: no thread for a prefetch");
    return tec_fail(err, TEC_NO_MEMORY,
                    "memory: no room for a prefetch of %d layers of %d segments", options->layers,
                    options->segments);
}

void tec_prefetch_destroy(struct tec_prefetch *s)
{
    if (!s)
        return;
    if (s->started_thread) {
        struct tec_prefetch_result result;
        (void)tec_prefetch_finish(s, &result, NULL);
        s->stop = true;
        sem_post(&s->go);
        pthread_join(s->thread, NULL);
    }
    sem_destroy(&s->go);
    tec_arena_finish(&s->arena);
    tec_arena_finish(&s->rules_arena);
    tec_heap_put(s->heap, s);
}

static enum tec_status forward_check(const struct tec_prefetch *s,
                                     const struct tec_prefetch_forward *f, struct tec_error *err)
{
    if (s->open)
        return tec_fail(err, TEC_INVALID, "memory: a forward begins before the last is finished");
    if (f->layers < 1 || f->layers > s->options.layers || f->segments < 0 ||
        f->segments > s->options.segments)
        return tec_fail(err, TEC_INVALID,
                        "memory: a forward of %d layers, %d segments on a prefetch of "
                        "%d, %d",
                        f->layers, f->segments, s->options.layers, s->options.segments);
    if ((f->segments > 0 && (!f->kv || !f->staging || !f->first)) || !f->reveal_ns != !f->layer_ns)
        return tec_fail(err, TEC_INVALID, "memory: a forward without its arrays");
    for (int u = 0; u < f->segments; u++) {
        if (!f->kv[u] && !f->first[u])
            return tec_fail(err, TEC_INVALID, "memory: segment %d has no KV and is not computed",
                            u);
        for (int l = 0; f->kv[u] && l < f->layers; l++)
            if (!f->staging[(size_t)l * (size_t)f->segments + (size_t)u])
                return tec_fail(err, TEC_INVALID, "memory: segment %d has no place at layer %d", u,
                                l);
    }
    return TEC_OK;
}

static void copy(void *to, const void *from, size_t count, size_t size)
{
    if (from && count > 0)
        memcpy(to, from, count * size);
}

enum tec_status tec_prefetch_begin(struct tec_prefetch *s, const struct tec_prefetch_forward *f,
                                   struct tec_error *err)
{
    const struct tec_clock clock = {0};
    TEC_TRY(forward_check(s, f, err));
    size_t layers = (size_t)f->layers, segments = (size_t)f->segments;
    s->forward = *f;
    s->forward.order = f->order ? s->order : NULL;
    copy(s->kv, f->kv, segments, sizeof(void *));
    copy(s->staging, f->staging, layers * segments, sizeof(void *));
    copy(s->pieces, f->staging, layers * segments, sizeof(void *));
    copy(s->sets, f->first, segments, 1);
    copy(s->order, f->order, segments, sizeof *s->order);
    copy(s->reveal_ns, f->reveal_ns ? f->reveal_ns : s->mean_reveal, layers, sizeof(int64_t));
    copy(s->layer_ns, f->layer_ns ? f->layer_ns : s->mean_layer, layers, sizeof(int64_t));
    memset(s->whole_at, 0, layers * sizeof *s->whole_at);
    memset(s->bubble_ns, 0, layers * sizeof *s->bubble_ns);
    memset(s->failed, 0, segments);
    for (size_t i = 0; i < layers * segments; i++) {
        atomic_store_explicit(&s->there[i], false, memory_order_relaxed);
        s->held[i] = f->held && f->held[i];
        if (s->held[i])
            s->pieces[i] = NULL;
    }
    s->n_loads = 0;
    s->remote_left = s->options.remote_ns > 0 ? s->options.remote_ns : INT64_MAX;
    s->counts = (struct tec_prefetch_counts){.forwards = 1};
    s->begin = tec_clock_now(&clock);
    atomic_store(&s->started, 0);
    atomic_store(&s->known, 1);
    atomic_store(&s->ended, 0);
    atomic_store(&s->wrong, false);
    atomic_store(&s->finish, false);
    atomic_store(&s->ready, 0);
    atomic_store(&s->void_, false);
    atomic_store(&s->idle, false);
    s->open = true;
    sem_post(&s->go);
    return TEC_OK;
}

const unsigned char *const *tec_prefetch_pieces(const struct tec_prefetch *s)
{
    return s->pieces;
}

/* Note the time of an event of `layer`, then publish its count. A layer out of order sets `wrong`
 * and publishes nothing. */
static void told(struct tec_prefetch *s, _Atomic int *count, int layer, int64_t *times)
{
    if (!s->open || layer != atomic_load_explicit(count, memory_order_relaxed) ||
        layer >= s->forward.layers) {
        atomic_store(&s->wrong, true);
        return;
    }
    times[layer] = tec_prefetch_now(s);
    atomic_store_explicit(count, layer + 1, memory_order_release);
}

void tec_prefetch_started(struct tec_prefetch *s, int layer)
{
    told(s, &s->started, layer, s->started_at);
}

void tec_prefetch_known(struct tec_prefetch *s, int layer, const unsigned char *set)
{
    size_t segments = (size_t)s->forward.segments;
    bool next = layer == atomic_load_explicit(&s->known, memory_order_relaxed);
    if (next && layer < s->forward.layers && segments > 0)
        memcpy(s->sets + (size_t)layer * segments, set, segments);
    told(s, &s->known, layer, s->known_at);
}

void tec_prefetch_ended(struct tec_prefetch *s, int layer)
{
    told(s, &s->ended, layer, s->ended_at);
}

bool tec_prefetch_ready(const struct tec_prefetch *prefetch, int layer)
{
    struct tec_prefetch *s = (struct tec_prefetch *)(uintptr_t)prefetch; /* atomics are read */
    return atomic_load_explicit(&s->ready, memory_order_acquire) > layer ||
           atomic_load_explicit(&s->void_, memory_order_acquire);
}

bool tec_prefetch_there(const struct tec_prefetch *prefetch, int layer, int segment)
{
    struct tec_prefetch *s = (struct tec_prefetch *)(uintptr_t)prefetch; /* atomics are read */
    size_t at = (size_t)layer * (size_t)s->forward.segments + (size_t)segment;
    return atomic_load_explicit(&s->there[at], memory_order_acquire);
}

bool tec_prefetch_wait(const struct tec_prefetch *prefetch, int layer)
{
    struct tec_prefetch *s = (struct tec_prefetch *)(uintptr_t)prefetch;
    int turns = 0;
    while (!tec_prefetch_ready(s, layer))
        tec_spin(&turns);
    return !atomic_load_explicit(&s->void_, memory_order_acquire);
}

static void counts_add(struct tec_prefetch_counts *to, const struct tec_prefetch_counts *c)
{
    to->forwards += c->forwards;
    to->failed += c->failed;
    for (int t = 0; t < TEC_KEPT_PLACES; t++)
        to->bytes[t] += c->bytes[t];
    to->loads += c->loads;
    to->splits += c->splits;
    to->cancelled += c->cancelled;
    to->busy_ns += c->busy_ns;
    to->overlap_ns += c->overlap_ns;
    to->bubble_ns += c->bubble_ns;
}

static enum tec_status verdict(const struct tec_prefetch *s, struct tec_error *err)
{
    for (int u = 0; u < s->forward.segments; u++)
        if (s->failed[u])
            return tec_fail(err, TEC_NOT_FOUND,
                            "memory: KV of segment %d of a forward did not come: %.300s", u,
                            s->why.message);
    return tec_fail(err, TEC_INVALID,
                    "memory: a forward told its layers or sets out of order, or did not wait");
}

enum tec_status tec_prefetch_finish(struct tec_prefetch *s, struct tec_prefetch_result *result,
                                    struct tec_error *err)
{
    int turns = 0;
    *result = (struct tec_prefetch_result){.status = TEC_OK};
    if (!s->open)
        return TEC_OK;
    atomic_store(&s->finish, true);
    while (!atomic_load_explicit(&s->idle, memory_order_acquire))
        tec_spin(&turns);
    s->open = false;
    bool bad = atomic_load(&s->void_) || atomic_load(&s->wrong);
    s->counts.failed = bad;
    counts_add(&s->all, &s->counts);
    *result = (struct tec_prefetch_result){.status = bad ? verdict(s, err) : TEC_OK,
                                           .counts = s->counts,
                                           .bubble_ns = s->bubble_ns,
                                           .failed = s->failed,
                                           .loads = s->loads,
                                           .n_loads = s->n_loads};
    return result->status;
}

struct tec_prefetch_counts tec_prefetch_counts(const struct tec_prefetch *s)
{
    return s->all;
}
