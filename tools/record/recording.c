/* recording.c - takes from the frame thread what a recording keeps, and writes it beside. */
#include "tools/record/recording_own.h"

#include "base/thread.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RING_BYTES = 64 << 20, POLL_NS = 5000000, FLUSH_NS = 1000000000, LIMIT_MIB = 4096 };

/* --- the frame thread: items into the ring ---------------------------------------------------- */

static void copy_in(struct tec_byte_ring *ring, uint64_t at, const void *data, size_t n)
{
    size_t from = (size_t)(at & (ring->size - 1)), first = ring->size - from;
    first = n < first ? n : first;
    if (first)
        memcpy(ring->data + from, data, first);
    if (n > first)
        memcpy(ring->data, (const uint8_t *)data + first, n - first);
}

static size_t room_of(const struct tec_byte_ring *ring)
{
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_acquire);
    return ring->size - (size_t)(atomic_load_explicit(&ring->tail, memory_order_relaxed) - head);
}

static void leave_out(struct tec_recording *r)
{
    atomic_fetch_add_explicit(&r->lost, 1, memory_order_relaxed);
}

/* Begin an item of so many bytes; false: it is left out. */
static bool begin(struct tec_recording *r, enum tec_recorded_kind kind, size_t bytes)
{
    size_t whole = sizeof(struct tec_item_head) + bytes;
    if (!r || atomic_load_explicit(&r->over, memory_order_relaxed))
        return false;
    while (r->o.waits && whole <= r->ring.size && room_of(&r->ring) < whole &&
           !atomic_load(&r->over))
        tec_clock_wait(&r->clock, tec_clock_now(&r->clock) + POLL_NS);
    if (room_of(&r->ring) < whole) {
        leave_out(r);
        return false;
    }
    const struct tec_item_head head = {(uint32_t)kind, (uint32_t)bytes, tec_clock_now(&r->clock)};
    r->at = atomic_load_explicit(&r->ring.tail, memory_order_relaxed);
    copy_in(&r->ring, r->at, &head, sizeof head);
    r->at += sizeof head;
    return true;
}

static void add(struct tec_recording *r, const void *data, size_t n)
{
    if (n)
        copy_in(&r->ring, r->at, data, n);
    r->at += n;
}

static void end(struct tec_recording *r)
{
    atomic_store_explicit(&r->ring.tail, r->at, memory_order_release);
}

void tec_recording_inputs(struct tec_recording *r, int session, int64_t number,
                          const struct tec_value *values, size_t n)
{
    const struct tec_item_inputs front = {number, session, (int)n};
    size_t bytes = sizeof front;
    for (size_t i = 0; i < n; i++)
        bytes += sizeof(struct tec_item_value) + strlen(values[i].name) + values[i].bytes;
    if (!begin(r, TEC_ITEM_INPUTS, bytes))
        return;
    add(r, &front, sizeof front);
    for (size_t i = 0; i < n; i++) {
        const struct tec_value *v = &values[i];
        struct tec_item_value one = {.kind = (int)v->kind,
                                     .rank = v->rank,
                                     .bytes = v->bytes,
                                     .name_bytes = strlen(v->name)};
        memcpy(one.shape, v->shape, sizeof one.shape);
        add(r, &one, sizeof one);
        add(r, v->name, one.name_bytes);
        add(r, v->data, v->bytes);
    }
    end(r);
}

void tec_recording_tick(struct tec_recording *r, const struct tec_recorded_tick *t)
{
    struct tec_item_tick item = {.number = t->number,
                                 .frame = t->tick->frame,
                                 .ahead = t->tick->ahead,
                                 .counted = t->tick->counted,
                                 .spawn = t->tick->spawn,
                                 .mute = t->tick->mute,
                                 .tick_ns = t->tick->tick_ns,
                                 .session = t->session,
                                 .noise_n = t->noise ? t->noise_n : 0,
                                 .observed = t->observed,
                                 .rests = t->tick->rests,
                                 .reset = (int)t->reset};
    size_t noise = (size_t)item.noise_n * sizeof *t->noise;
    for (int i = 0; i < t->tick->n_asks && i < TEC_MAX_ASKS; i++)
        item.asks[item.n_asks++] = (struct tec_item_ask){
            t->tick->asks[i].decoder, t->tick->asks[i].max_tokens, t->tick->asks[i].prio};
    for (int i = 0; i < t->tick->n_cancels && i < TEC_MAX_ASKS; i++)
        item.cancels[item.n_cancels++] = t->tick->cancels[i];
    if (!begin(r, TEC_ITEM_TICK, sizeof item + noise))
        return;
    add(r, &item, sizeof item);
    add(r, t->noise, noise);
    end(r);
}

void tec_recording_left(struct tec_recording *r, const struct tec_recorded_chunk *left)
{
    if (!r)
        return;
    const struct tec_item_left item = {.frame = left->frame,
                                       .seen = left->seen,
                                       .release_ns = left->release_ns,
                                       .age_us = left->age_us,
                                       .action = left->action,
                                       .session = left->session,
                                       .chunk_n =
                                           (int)tec_engine_chunk(r->o.opened->engine, left->action),
                                       .rows = left->actions ? left->rows : 0,
                                       .columns = left->columns,
                                       .late = left->late};
    size_t chunk = (size_t)item.chunk_n * sizeof(float);
    size_t actions = (size_t)item.rows * (size_t)item.columns * sizeof(double);
    if (!begin(r, TEC_ITEM_LEFT, sizeof item + chunk + actions))
        return;
    add(r, &item, sizeof item);
    add(r, left->chunk, chunk);
    add(r, left->actions, actions);
    end(r);
}

/* What was decided in the frame that has ended. */
static void put_decided(struct tec_recording *r)
{
    const struct tec_decided *of = &r->deciding.now;
    const struct tec_decision *d = &of->decision;
    struct tec_item_decided item = {.frame = of->frame,
                                    .session = of->session,
                                    .n_late = of->n_late,
                                    .n_refused = of->n_refused,
                                    .n_evicted = of->n_evicted,
                                    .n_rows = d->n_rows,
                                    .n_nodes = r->deciding.n_nodes,
                                    .n_recompute = d->n_recompute,
                                    .n_seg = d->n_seg};
    struct tec_item_part parts[TEC_DECIDED_PARTS];
    size_t bytes = sizeof item + tec_recording_decided_parts(parts, &r->deciding.now, &item);
    memcpy(item.depth, d->depth, sizeof item.depth);
    memcpy(item.policy, of->policy, sizeof item.policy);
    if (!of->whole && !atomic_load_explicit(&r->over, memory_order_relaxed))
        leave_out(r);
    if (!of->whole || !begin(r, TEC_ITEM_DECIDED, bytes))
        return;
    add(r, &item, sizeof item);
    for (int i = 0; i < TEC_DECIDED_PARTS; i++)
        add(r, parts[i].at, parts[i].n);
    end(r);
}

void tec_recording_frame(struct tec_recording *r, const struct tec_frame_record *f)
{
    if (!r)
        return;
    if (f->place == 0 && r->o.runtime)
        put_decided(r);
    struct tec_item_frame item = {.frame = f->frame,
                                  .tick_ns = f->tick_ns,
                                  .start_ns = f->start_ns,
                                  .end_ns = f->end_ns,
                                  .planner_ns = f->planner_ns,
                                  .host_ns = f->host_ns,
                                  .overrun_us = f->overrun_us,
                                  .age_us = f->actions[0].age_us,
                                  .slack_us = f->actions[0].slack_us,
                                  .session = f->session,
                                  .cause = (int)f->cause,
                                  .tokens = f->tokens,
                                  .rows = f->rows,
                                  .in_flight = f->in_flight,
                                  .snapped = f->snapped,
                                  .refused = f->refused,
                                  .shed = f->shed,
                                  .n_launches = f->n_launches,
                                  .missed = f->missed,
                                  .failed = f->failed};
    size_t launches = (size_t)f->n_launches * sizeof *f->launches;
    memcpy(item.policy, f->policy, sizeof item.policy);
    if (f->place == 0)
        tec_transcript_tell(&r->texts);
    if (!begin(r, TEC_ITEM_FRAME, sizeof item + launches))
        return;
    add(r, &item, sizeof item);
    add(r, f->launches, launches);
    end(r);
}

/* --- the writer ------------------------------------------------------------------------------- */

static void copy_out(const struct tec_byte_ring *ring, uint64_t at, void *data, size_t n)
{
    size_t from = (size_t)(at & (ring->size - 1)), first = ring->size - from;
    first = n < first ? n : first;
    memcpy(data, ring->data + from, first);
    if (n > first)
        memcpy((uint8_t *)data + first, ring->data, n - first);
}

static void put_items(struct tec_recording *r)
{
    struct tec_byte_ring *ring = &r->ring;
    for (;;) {
        uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
        struct tec_item_head item;
        if (head == atomic_load_explicit(&ring->tail, memory_order_acquire))
            return;
        copy_out(ring, head, &item, sizeof item);
        copy_out(ring, head + sizeof item, r->item, item.bytes);
        atomic_store_explicit(&ring->head, head + sizeof item + item.bytes, memory_order_release);
        tec_recording_put_item(r, &item);
    }
}

/* Say once why the file has ended. */
static void judge(struct tec_recording *r)
{
    struct tec_error err;
    uint64_t limit = (uint64_t)(r->o.limit_mib ? r->o.limit_mib : LIMIT_MIB) << 20;
    bool failed = r->file.status != TEC_OK;
    if (r->told || (!failed && r->file.written < limit))
        return;
    r->told = true;
    atomic_store(&r->over, true);
    if (failed && tec_mcap_status(&r->file, &err) != TEC_OK)
        tec_say(r->o.opened->call, "the recording has ended: %s", err.message);
    else
        tec_say(r->o.opened->call, "the recording has ended: %s has its %llu MiB (--record-mib)",
                r->o.path, (unsigned long long)(limit >> 20));
}

static void put_all(struct tec_recording *r)
{
    put_items(r);
    tec_recording_put_texts(r);
    tec_recording_put_stops(r);
    tec_recording_put_not_begun(r);
    tec_recording_put_flight(&r->file, r->o.recorder, &r->flight, &r->n_words, r->words, r->events,
                             r->wall_ns, INT64_MIN);
    int64_t now = tec_clock_now(&r->clock);
    if (now - r->flushed_ns > FLUSH_NS) {
        tec_mcap_flush(&r->file);
        r->flushed_ns = now;
    }
    judge(r);
}

static void *run(void *user)
{
    struct tec_recording *r = user;
    while (!atomic_load(&r->closing)) {
        put_all(r);
        tec_clock_wait(&r->clock, tec_clock_now(&r->clock) + POLL_NS);
    }
    put_all(r);
    return NULL;
}

/* --- life ------------------------------------------------------------------------------------- */

static int64_t wall_offset(const struct tec_clock *clock)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec - tec_clock_now(clock);
}

static void open_channels(struct tec_recording *r)
{
    const struct tec_loop_options *o = tec_loop_settings(r->o.opened->engine->loop);
    const struct tec_mcap_channel events = {.topic = "/tectum/flight",
                                            .encoding = "x-tectum-flight-1"};
    char topic[160];
    r->ticks = tec_recording_channel(&r->file, "/tectum/ticks");
    r->frames = tec_recording_channel(&r->file, "/tectum/frames");
    r->words = tec_recording_channel(&r->file, "/tectum/words");
    r->decisions = tec_recording_channel(&r->file, "/tectum/decisions");
    if (r->o.stops.stops)
        r->safety = tec_recording_channel(&r->file, "/tectum/safety");
    if (r->o.not_begun)
        r->not_begun = tec_recording_channel(&r->file, "/tectum/not_begun");
    r->events = tec_mcap_channel(&r->file, &events);
    for (int i = 0; i < o->n_actions; i++) {
        snprintf(topic, sizeof topic, "/tectum/actions/%.100s", o->actions[i].name);
        r->actions[i] = tec_recording_channel(&r->file, tec_arena_strdup(&r->arena, topic));
    }
    for (int i = 0; i < o->n_decoders; i++) {
        snprintf(topic, sizeof topic, "/tectum/text/%.100s", o->decoders[i].name);
        r->decoders[i] = tec_recording_channel(&r->file, tec_arena_strdup(&r->arena, topic));
    }
}

static enum tec_status take_memory(struct tec_recording *r, struct tec_error *err)
{
    r->ring.size = RING_BYTES;
    r->ring.data = tec_arena_push(&r->arena, RING_BYTES, 1, 64);
    r->item = tec_arena_push(&r->arena, RING_BYTES, 1, 64);
    if (!r->ring.data || !r->item)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a recording");
    return tec_transcript_attach(&r->texts, r->o.opened->engine, -1, &r->arena, err);
}

static enum tec_status open(struct tec_recording *r, struct tec_error *err)
{
    TEC_TRY(take_memory(r, err));
    TEC_TRY(tec_mcap_open(&r->file, r->o.path, "", r->heap, err));
    r->wall_ns = wall_offset(&r->clock);
    TEC_TRY(tec_recording_describe(&r->file, r->o.opened, r->o.mode, r->wall_ns, err));
    tec_recording_memories(&r->file, r->o.opened,
                           (uint64_t)(tec_clock_now(&r->clock) + r->wall_ns));
    open_channels(r);
    tec_mcap_flush(&r->file);
    TEC_TRY(tec_mcap_status(&r->file, err));
    r->flushed_ns = tec_clock_now(&r->clock);
    r->started = tec_thread_start(&r->thread, run, r);
    return r->started ? TEC_OK
                      : tec_fail(err, TEC_NO_MEMORY, "no memory for the thread of a recording");
}

enum tec_status tec_recording_open(struct tec_recording **out,
                                   const struct tec_recording_options *options,
                                   struct tec_error *err)
{
    struct tec_heap *heap = options->opened->call->heap;
    struct tec_recording *r = tec_heap_get(heap, sizeof *r);
    *out = NULL;
    if (!r)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a recording");
    *r = (struct tec_recording){.o = *options, .heap = heap};
    tec_arena_init(&r->arena, heap);
    tec_transcript_init(&r->texts);
    enum tec_status status = open(r, err);
    if (status == TEC_OK) {
        tec_deciding_init(&r->deciding, options->opened->engine->topology.n_nodes);
        if (options->runtime)
            options->runtime->deciding = &r->deciding;
        *out = r;
        return TEC_OK;
    }
    struct tec_error second;
    enum tec_status closed = tec_recording_close(r, &second);
    (void)closed; /* the first failure is told */
    return status;
}

enum tec_status tec_recording_close(struct tec_recording *r, struct tec_error *err)
{
    if (!r)
        return TEC_OK;
    if (r->o.runtime)
        r->o.runtime->deciding = NULL;
    atomic_store(&r->closing, true);
    if (r->started)
        pthread_join(r->thread, NULL);
    long long lost = (long long)atomic_load(&r->lost);
    if (lost)
        tec_say(r->o.opened->call, "%s: %lld messages found no room and are missing", r->o.path,
                lost);
    bool told = r->told;
    enum tec_status status = tec_mcap_close(&r->file, err);
    tec_transcript_finish(&r->texts);
    tec_arena_finish(&r->arena);
    tec_heap_put(r->heap, r);
    return told ? TEC_OK : status;
}

enum tec_status tec_recording_dump(const char *path, struct tec_opened *opened,
                                   const struct tec_recorder *recorder,
                                   enum tec_recording_mode mode, int64_t last_ns,
                                   struct tec_error *err)
{
    static const struct tec_clock clock = {NULL};
    struct tec_mcap_writer file;
    const struct tec_mcap_channel events = {.topic = "/tectum/flight",
                                            .encoding = "x-tectum-flight-1"};
    int64_t wall = wall_offset(&clock), now = tec_clock_now(&clock);
    uint64_t next = 0;
    int n_words = 0;
    TEC_TRY(tec_mcap_open(&file, path, "", opened->call->heap, err));
    enum tec_status status = tec_recording_describe(&file, opened, mode, wall, err);
    int words = tec_recording_channel(&file, "/tectum/words");
    int flight = tec_mcap_channel(&file, &events);
    tec_recording_put_flight(&file, recorder, &next, &n_words, words, flight, wall,
                             last_ns ? now - last_ns : INT64_MIN);
    struct tec_error second;
    enum tec_status closed = tec_mcap_close(&file, status == TEC_OK ? err : &second);
    return status == TEC_OK ? closed : status;
}
