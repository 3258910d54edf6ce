/* prefetch_load.c - the prefetch thread: follows the forward's progress, loads pieces and publishes
 * layers.
 *
 * Between two loads it takes over the frame's counters, asks the rules of loading.h for the next
 * load, and sleeps for a poll interval when there is none. A load is never interrupted. When a
 * piece can be had from no tier, or the frame reports its layers out of order, the whole forward is
 * declared void; the caller then computes the prompt without kept KV. */
#include "graph/memory/prefetch_own.h"

#include "base/clock.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

static size_t at(const struct tec_prefetch *s, int layer, int segment)
{
    return (size_t)layer * (size_t)s->forward.segments + (size_t)segment;
}

/* Start the loading rules with the expected times of this forward's loads and layers. */
static enum tec_status rules_init(struct tec_prefetch *s)
{
    const struct tec_prefetch_forward *f = &s->forward;
    int64_t grain = 0;
    for (int u = 0; u < f->segments; u++) {
        struct tec_kv *kv = s->kv[u];
        enum tec_kept_in tier = kv ? tec_store_kv_tier(kv) : TEC_KEPT_PLACES;
        bool timed = tier < TEC_KEPT_PLACES && !(tier == TEC_KEPT_RAM && s->options.direct);
        int64_t ns = timed ? tec_prefetch_believed(s, tier, tec_store_kv_piece_bytes(kv)) : 0;
        int64_t part = timed && s->options.grain_bytes > 0
                           ? tec_prefetch_believed(s, tier, (size_t)s->options.grain_bytes)
                           : 0;
        grain = part > grain ? part : grain;
        for (int l = 0; l < f->layers; l++)
            s->load_ns[at(s, l, u)] = s->held[at(s, l, u)] ? 0 : ns;
    }
    const struct tec_loading_table table = {.layers = f->layers,
                                            .segments = f->segments,
                                            .attention = s->zeros,
                                            .importance = s->reveal_ns,
                                            .mlp = s->layer_ns,
                                            .load = s->load_ns,
                                            .order = f->order,
                                            .grain = grain};
    tec_arena_rewind(&s->rules_arena, s->rules_mark);
    s->rules = (struct tec_loading){.missing = NULL};
    return tec_loading_init(&s->rules, &table, f->overlap, s->sets, &s->rules_arena, NULL);
}

/* Take over one event from the frame side; false if there is none. */
static bool absorb_one(struct tec_prefetch *s)
{
    struct tec_loading *r = &s->rules;
    int next = r->started + 1, layers = s->forward.layers;
    /* Read in this order: the frame reports the rest before it reports that a layer started. */
    int started = atomic_load(&s->started), ended = atomic_load(&s->ended);
    int known = atomic_load(&s->known);
    if (r->known == r->started && next < layers && known > next) {
        if (tec_loading_known(r, s->sets + at(s, next, 0), NULL) != TEC_OK)
            atomic_store(&s->wrong, true);
        return !atomic_load(&s->wrong);
    }
    bool all_known = r->known == next || next == layers;
    if (r->computing && all_known && ended > r->started) {
        tec_loading_rest(r);
        return true;
    }
    if (next < layers && started > next) {
        if (!tec_loading_ready(r) || r->computing)
            atomic_store(&s->wrong, true); /* it did not wait, or did not tell */
        else
            tec_loading_start(r, s->started_at[next]);
        return !atomic_load(&s->wrong);
    }
    return false;
}

static void publish(struct tec_prefetch *s)
{
    int ready = s->rules.known + 1;
    if (tec_loading_ready(&s->rules) && atomic_load(&s->ready) < ready) {
        s->whole_at[s->rules.known] = tec_prefetch_now(s);
        atomic_store_explicit(&s->ready, ready, memory_order_release);
    }
}

static void note(struct tec_prefetch *s, const struct tec_load *load, int64_t start, int64_t end)
{
    if (s->n_loads < s->room_loads)
        s->loads[s->n_loads++] = (struct tec_load_event){start, end, load->layer, load->segment};
    s->counts.busy_ns += end - start;
    s->counts.loads++;
    s->counts.splits += load->from > 0 || !load->last;
}

/* The byte offset, rounded down to 64, that a load has reached after `time`. */
static size_t byte_at(const struct tec_prefetch *s, const struct tec_load *load, int64_t time,
                      size_t bytes)
{
    int64_t whole = s->load_ns[at(s, load->layer, load->segment)];
    if (whole <= 0)
        return 0;
    size_t byte = (size_t)((double)time / (double)whole * (double)bytes);
    return byte < bytes ? byte & ~(size_t)63 : bytes & ~(size_t)63;
}

/* Wait until a load has taken as long as configured for its tier (benches and tests). */
static void hold(const struct tec_prefetch *s, enum tec_kept_in tier, int64_t start, size_t bytes)
{
    const struct tec_prefetch_limit *limit = &s->options.limit[tier];
    const struct tec_clock clock = {0};
    int64_t ns = limit->latency_ns;
    if (limit->bytes_per_sec > 0)
        ns += (int64_t)((double)bytes * 1e9 / (double)limit->bytes_per_sec);
    if (ns > 0)
        tec_clock_wait(&clock, s->begin + start + ns);
}

/* The part of start .. end in which the forward waited for its next layer. */
static int64_t waited(const struct tec_prefetch *prefetch, int64_t start, int64_t end)
{
    struct tec_prefetch *s = (struct tec_prefetch *)(uintptr_t)prefetch; /* atomics are read */
    int next = atomic_load(&s->started);
    int64_t since = 0;
    if (next >= s->forward.layers || atomic_load(&s->ended) < next ||
        atomic_load(&s->known) <= next || atomic_load(&s->ready) > next)
        return 0;
    if (next > 0)
        since =
            s->ended_at[next - 1] > s->known_at[next] ? s->ended_at[next - 1] : s->known_at[next];
    since = since > start ? since : start;
    return end > since ? end - since : 0;
}

/* Until when a load may wait for a server. */
static int64_t remote_until(const struct tec_prefetch *s, int64_t start)
{
    return s->remote_left < INT64_MAX ? s->begin + start + s->remote_left : INT64_MAX;
}

static void arrived(struct tec_prefetch *s, const struct tec_load *load, size_t where)
{
    if (load->last)
        atomic_store_explicit(&s->there[where], true, memory_order_release);
}

static bool load(struct tec_prefetch *s, const struct tec_load *load)
{
    struct tec_kv *kv = s->kv[load->segment];
    size_t where = at(s, load->layer, load->segment), bytes = kv ? tec_store_kv_piece_bytes(kv) : 0;
    const unsigned char *there = kv ? tec_store_kv_piece(kv, (uint32_t)load->layer) : NULL;
    int64_t start = tec_prefetch_now(s);
    enum tec_kept_in tier = TEC_KEPT_RAM;
    if (s->held[where]) {
        arrived(s, load, where);
        return true;
    }
    if (there && s->options.direct) {
        s->pieces[where] = there;
        s->counts.bytes[TEC_KEPT_RAM] += load->last ? (int64_t)bytes : 0;
        note(s, load, start, start);
        arrived(s, load, where);
        return true;
    }
    size_t from = load->from > 0 ? byte_at(s, load, load->from, bytes) : 0;
    size_t to = load->last ? bytes : byte_at(s, load, load->to, bytes);
    int64_t until = remote_until(s, start);
    enum tec_status status = kv ? tec_store_read_part(s->store, kv, (uint32_t)load->layer, from, to,
                                                      s->staging[where], until, &tier, &s->why)
                                : tec_fail(&s->why, TEC_NOT_FOUND, "it has no KV");
    if (status != TEC_OK) {
        s->failed[load->segment] = 1;
        return false;
    }
    hold(s, tier, start, to - from);
    int64_t end = tec_prefetch_now(s);
    if (tier == TEC_KEPT_REMOTE && s->remote_left < INT64_MAX)
        s->remote_left -= waited(s, start, end);
    if (to > from)
        tec_prefetch_line_add(&s->lines[tier], to - from, end - start);
    s->counts.bytes[tier] += (int64_t)(to - from);
    note(s, load, start, end);
    arrived(s, load, where);
    return true;
}

static void nap(const struct tec_prefetch *s)
{
    const struct timespec pause = {.tv_nsec = (long)s->options.poll_ns};
    nanosleep(&pause, NULL);
}

static void forward(struct tec_prefetch *s)
{
    struct tec_load next;
    bool going = rules_init(s) == TEC_OK;
    if (!going)
        atomic_store(&s->wrong, true);
    while (going && !atomic_load(&s->finish)) {
        while (absorb_one(s))
            continue;
        publish(s);
        going = !atomic_load(&s->wrong);
        if (going && tec_loading_pick(&s->rules, tec_prefetch_now(s), &next)) {
            going = load(s, &next);
            tec_loading_done(&s->rules, &next);
        } else if (going) {
            nap(s);
        }
    }
    if (!going)
        atomic_store_explicit(&s->void_, true, memory_order_release);
    while (!atomic_load(&s->finish))
        nap(s);
    while (going && absorb_one(s))
        continue;
    for (int l = s->rules.started + 1; s->rules.missing && l < s->forward.layers; l++)
        s->counts.cancelled += s->rules.missing[l] > 0 ? s->rules.missing[l] : 0;
    tec_prefetch_measure(s);
}

void *tec_prefetch_run(void *user)
{
    struct tec_prefetch *s = user;
    (void)prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);
    for (;;) {
        while (sem_wait(&s->go) != 0 && errno == EINTR)
            continue;
        if (s->stop)
            return NULL;
        forward(s);
        atomic_store_explicit(&s->idle, true, memory_order_release);
    }
}
