/* recorder.c - keeps the frame loop's newest events, 32 bytes each, for other threads to copy. */
#include "graph/live/recorder.h"

#include "graph/run/loop/loop.h"

#include <string.h>

_Static_assert(sizeof(struct tec_flight_event) == 32, "an event is four words");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "`put` packs an event's bytes");

enum { MARGIN = 256 /* events that may be overwritten while others are copied */ };

/* What recordings of earlier versions have. */
_Static_assert(TEC_EVENT_READ == 15 && TEC_EVENT_LEFT_OUT == 16 && TEC_EVENT_FRAME_END == 17,
               "numbers of events");
_Static_assert(TEC_FLIGHT_FIGURE == 18 && TEC_FLIGHT_SEAM == 21 && TEC_EVENT_UNREAD == 22,
               "numbers of a recording's own");

const char *tec_recorder_kind(int kind)
{
    static const char *const names[TEC_FLIGHT_KINDS] = {[TEC_EVENT_FRAME] = "frame",
                                                        [TEC_EVENT_CANCEL] = "cancel",
                                                        [TEC_EVENT_SHED] = "shed",
                                                        [TEC_EVENT_ARRIVE] = "arrive",
                                                        [TEC_EVENT_ADMIT] = "admit",
                                                        [TEC_EVENT_REFUSE] = "refuse",
                                                        [TEC_EVENT_INPUT] = "input",
                                                        [TEC_EVENT_PLAN] = "plan",
                                                        [TEC_EVENT_KV] = "kv",
                                                        [TEC_EVENT_START] = "start",
                                                        [TEC_EVENT_END] = "end",
                                                        [TEC_EVENT_RELEASE] = "release",
                                                        [TEC_EVENT_TOKENS] = "tokens",
                                                        [TEC_EVENT_FINISH] = "finish",
                                                        [TEC_EVENT_VERSION] = "version",
                                                        [TEC_EVENT_READ] = "read",
                                                        [TEC_EVENT_UNREAD] = "unread",
                                                        [TEC_EVENT_LEFT_OUT] = "left_out",
                                                        [TEC_EVENT_FRAME_END] = "frame_end",
                                                        [TEC_FLIGHT_FIGURE] = "figure",
                                                        [TEC_FLIGHT_NOTE] = "note",
                                                        [TEC_FLIGHT_DECIDED] = "decided",
                                                        [TEC_FLIGHT_SEAM] = "seam"};
    return kind >= 0 && kind < TEC_FLIGHT_KINDS ? names[kind] : "unknown";
}

/* --- the frame thread ------------------------------------------------------------------------- */

static bool is_word(const struct tec_recorder *r, int number, const char *word)
{
    return strncmp(r->words[number - 1], word, TEC_FLIGHT_WORD - 1) == 0;
}

/* The number of a word that is there, or is added; 0 where the table is full. */
static uint8_t look_up(struct tec_recorder *r, const char *word)
{
    int n = atomic_load_explicit(&r->n_words, memory_order_relaxed);
    for (int i = 1; i <= n; i++)
        if (is_word(r, i, word))
            return (uint8_t)i;
    if (n == TEC_FLIGHT_WORDS)
        return 0;
    size_t length = strnlen(word, TEC_FLIGHT_WORD - 1);
    memcpy(r->words[n], word, length);
    r->words[n][length] = '\0';
    atomic_store_explicit(&r->n_words, n + 1, memory_order_release);
    return (uint8_t)(n + 1);
}

/* Numbers of a frame's record, by the order of put_figures; the last two only where they are not 0.
 */
static const char *const figures[TEC_FLIGHT_FIGURES] = {
    "planner_us", "host_us", "tokens", "rows", "slack_us", "age_us", "waited_us", "stood_us"};

enum tec_status tec_recorder_create(struct tec_recorder *r, struct tec_arena *arena,
                                    struct tec_error *err)
{
    *r = (struct tec_recorder){
        .ring = tec_arena_push(arena, TEC_FLIGHT_EVENTS, sizeof *r->ring, 64),
        .words = tec_arena_push(arena, TEC_FLIGHT_WORDS, sizeof *r->words, 1)};
    if (!r->ring || !r->words)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for the flight recorder");
    r->n_nodes = TEC_MAX_NODES;
    for (int i = 0; i < TEC_CAUSES; i++)
        r->causes[i] = look_up(r, tec_cause_name((enum tec_cause)i));
    for (int i = 0; i < TEC_FLIGHT_FIGURES; i++)
        r->figures[i] = look_up(r, figures[i]);
    return TEC_OK;
}

/* The number of a word, from 1. Most are literals: a text at the same address most often is the
 * word that it was. Not part of its callers, which are shorter and seldom come here. */
static uint8_t __attribute__((noinline)) word_of(struct tec_recorder *r, const char *word)
{
    if (!word || !word[0])
        return 0;
    uint8_t *near = &r->near[((uintptr_t)word >> 3 ^ (uintptr_t)word) % TEC_FLIGHT_NEAR];
    if (*near == 0 || !is_word(r, *near, word))
        *near = look_up(r, word);
    return *near;
}

/* Find or take the place of a text, from its first one on. */
static uint8_t __attribute__((noinline))
fixed_place(struct tec_recorder *r, const char *word, size_t at)
{
    enum { TRIES = 4 };
    for (size_t i = at; i < at + TRIES; i++) {
        const char **text = &r->fixed[i % TEC_FLIGHT_FIXED].text;
        uint8_t *number = &r->fixed[i % TEC_FLIGHT_FIXED].word;
        if (*text == word)
            return *number;
        if (*text)
            continue;
        *text = word;
        *number = word[0] ? look_up(r, word) : 0;
        return *number;
    }
    return word_of(r, word);
}

/* The same of a text that stays as it is for as long as the engine does. */
static inline uint8_t fixed_word(struct tec_recorder *r, const char *word)
{
    size_t at = (size_t)((uint64_t)(uintptr_t)word * 0x9e3779b97f4a7c15U >> 56);
    if (!word)
        return 0;
    return r->fixed[at].text == word ? r->fixed[at].word : fixed_place(r, word, at);
}

/* An event on its way into the ring. Whole words: bytes that are written one by one and then read
 * as a word wait for each other in the processor. */
struct kept {
    int64_t t_ns, value;
    int32_t frame, more;
    unsigned kind, session, lane, what, flag, count;
    int node;
};

static inline void put(struct tec_recorder *r, const struct kept *e)
{
    uint64_t at = atomic_load_explicit(&r->written, memory_order_relaxed);
    uint64_t numbers = (uint32_t)e->frame | (uint64_t)(uint32_t)e->more << 32;
    uint64_t rest = (uint64_t)(e->kind | e->session << 8 | e->lane << 16 | e->what << 24) |
                    (uint64_t)((uint16_t)e->node | e->flag << 16 | e->count << 24) << 32;
    _Atomic uint64_t *to = r->ring[at % TEC_FLIGHT_EVENTS];
    /* Who reads a word of this event finds `written` at it, or beyond. */
    atomic_store_explicit(&to[0], (uint64_t)e->t_ns, memory_order_release);
    atomic_store_explicit(&to[1], (uint64_t)e->value, memory_order_release);
    atomic_store_explicit(&to[2], numbers, memory_order_release);
    atomic_store_explicit(&to[3], rest, memory_order_release);
    atomic_store_explicit(&r->written, at + 1, memory_order_release);
}

static int32_t fits(int64_t n)
{
    return n > INT32_MAX ? INT32_MAX : n < INT32_MIN ? INT32_MIN : (int32_t)n;
}

static uint8_t few(int n)
{
    return (uint8_t)(n < 0 ? 0 : n > UINT8_MAX ? UINT8_MAX : n);
}

/* Behind a frame's end: numbers of its record, each by its name. */
static void put_figures(struct tec_recorder *r, struct kept one,
                        const struct tec_frame_record *record)
{
    const int64_t values[TEC_FLIGHT_FIGURES] = {record->planner_ns / 1000,
                                                record->host_ns / 1000,
                                                record->tokens,
                                                record->rows,
                                                record->actions[0].slack_us,
                                                record->actions[0].age_us,
                                                record->waited_ns / 1000,
                                                record->stood_ns / 1000};
    enum { ALWAYS = 6 /* the others only where there is something to say */ };
    one.kind = TEC_FLIGHT_FIGURE;
    one.flag = one.count = 0;
    one.more = 0;
    for (int i = 0; i < TEC_FLIGHT_FIGURES; i++) {
        if (i >= ALWAYS && values[i] == 0)
            continue;
        one.what = r->figures[i];
        one.value = values[i];
        put(r, &one);
    }
}

static void put_notes(struct tec_recorder *r, struct kept one, const struct tec_decision *d)
{
    one.kind = TEC_FLIGHT_NOTE;
    for (int i = 0; i < d->n_notes; i++) {
        const struct tec_note *note = &d->notes[i];
        one.what = word_of(r, note->key);
        one.flag = note->is_number;
        one.node = note->line < INT16_MAX ? note->line : INT16_MAX;
        one.more = note->is_number ? 0 : word_of(r, note->text);
        memcpy(&one.value, &note->number, sizeof one.value);
        put(r, &one);
    }
}

static enum tec_flight_decided decided(const struct tec_row_decision *row)
{
    return row->shed ? TEC_DECIDED_SHED : row->k > 0 ? TEC_DECIDED_DECODE : TEC_DECIDED_PAUSE;
}

static bool alike(const struct tec_row_decision *a, const struct tec_row_decision *b)
{
    return a->line == b->line && a->k == b->k && decided(a) == decided(b);
}

/* Requests about which a line said the same are one event. */
static void put_decided(struct tec_recorder *r, struct kept one, const struct tec_event *e)
{
    const struct tec_decision *d = e->decision;
    uint64_t told = 0; /* bit set of rows */
    _Static_assert(TEC_MAX_ROWS <= 64, "a bit each");
    one.kind = TEC_FLIGHT_DECIDED;
    one.what = word_of(r, d->source);
    for (int i = 0; i < d->n_rows; i++) {
        const struct tec_row_decision *row = &d->rows[i];
        if (row->line == 0 || told >> i & 1)
            continue;
        one.lane = 0;
        for (int k = i; k < d->n_rows; k++)
            if (alike(row, &d->rows[k])) {
                told |= (uint64_t)1 << k;
                one.lane++;
            }
        one.value = e->view ? e->view[i].id : -1;
        one.node = e->view ? e->view[i].node : -1;
        one.more = row->line;
        one.count = few(row->k);
        one.flag = decided(row);
        put(r, &one);
    }
    one.value = -1;
    one.lane = one.count = 0;
    for (int i = 0; i < r->n_nodes; i++) {
        if (d->nodes[i].line == 0)
            continue;
        one.node = i;
        one.more = d->nodes[i].line;
        one.flag = d->nodes[i].skip ? TEC_DECIDED_SKIP : TEC_DECIDED_NODE;
        put(r, &one);
    }
}

/* --- what each kind of event keeps, as the table of recorder.h has it --- */

static void keep_frame(struct tec_recorder *r, struct kept *out, const struct tec_event *e)
{
    const struct tec_tick *tick = e->tick;
    (void)r;
    out->value = tick->tick_ns;
    out->more = tick->deadline_ns < 0 ? -1 : fits((tick->deadline_ns - tick->tick_ns) / 1000);
}

static void keep_input(struct tec_recorder *r, struct kept *out, const struct tec_event *e)
{
    (void)r;
    out->value = e->tick->late_ns;
}

static void keep_plan(struct tec_recorder *r, struct kept *out, const struct tec_event *e)
{
    (void)r;
    out->value = e->decision ? e->decision->snapped : 0;
    out->more = e->n;
}

static void keep_kv(struct tec_recorder *r, struct kept *out, const struct tec_event *e)
{
    out->count = fixed_word(r, e->kv);
}

static void keep_launch(struct tec_recorder *r, struct kept *out, const struct tec_event *e)
{
    (void)r;
    out->value = e->kind == TEC_EVENT_END ? e->since_ns : e->request;
    out->more = (e->rows ? e->rows : e->observations > 1 ? e->observations : 1) + 1000 * e->padded;
    out->count = few(e->k);
}

static void keep_release(struct tec_recorder *r, struct kept *out, const struct tec_event *e)
{
    (void)r;
    out->value = e->since_ns;
    out->more = e->tick->deadline_ns < 0 ? 0 : fits((e->tick->deadline_ns - e->t_ns) / 1000);
}

static void keep_tokens(struct tec_recorder *r, struct kept *out, const struct tec_event *e)
{
    (void)r;
    out->more = e->done;
    out->count = few(e->tokens);
}

static void keep_age(struct tec_recorder *r, struct kept *out, const struct tec_event *e)
{
    (void)r;
    out->more = e->frames;
}

static void keep_frame_end(struct tec_recorder *r, struct kept *out, const struct tec_event *e)
{
    out->value = e->since_ns;
    out->more = fits(e->record->overrun_us);
    out->count = few(e->record->in_flight);
    out->flag = e->record->missed;
    out->what = r->causes[e->record->cause];
}

/* NULL: the request and the tokens alone. */
static void (*const keeps[TEC_EVENTS])(struct tec_recorder *r, struct kept *out,
                                       const struct tec_event *e) = {
    [TEC_EVENT_FRAME] = keep_frame,     [TEC_EVENT_INPUT] = keep_input,
    [TEC_EVENT_PLAN] = keep_plan,       [TEC_EVENT_KV] = keep_kv,
    [TEC_EVENT_START] = keep_launch,    [TEC_EVENT_END] = keep_launch,
    [TEC_EVENT_RELEASE] = keep_release, [TEC_EVENT_TOKENS] = keep_tokens,
    [TEC_EVENT_FINISH] = keep_tokens,   [TEC_EVENT_VERSION] = keep_age,
    [TEC_EVENT_READ] = keep_age,        [TEC_EVENT_FRAME_END] = keep_frame_end};

/* `what` is a literal, or a name of the pipeline; others write reasons and names of policies. */
static const bool is_fixed[TEC_EVENTS] = {
    [TEC_EVENT_KV] = true,      [TEC_EVENT_START] = true, [TEC_EVENT_END] = true,
    [TEC_EVENT_VERSION] = true, [TEC_EVENT_READ] = true,  [TEC_EVENT_UNREAD] = true};

/* Behind the event of a plan, or of a frame's end: what more it tells. */
static void __attribute__((noinline))
put_more(struct tec_recorder *r, const struct kept *out, const struct tec_event *e)
{
    if (e->kind == TEC_EVENT_FRAME_END)
        put_figures(r, *out, e->record);
    if (e->kind != TEC_EVENT_PLAN || !e->decision)
        return;
    put_notes(r, *out, e->decision);
    if (e->decision->source)
        put_decided(r, *out, e);
}

void tec_recorder_emit(struct tec_recorder *r, const struct tec_event *e)
{
    if (!r->ring)
        return;
    struct kept out = {.t_ns = e->t_ns,
                       .value = e->request,
                       .frame = (int32_t)(e->tick->frame & INT32_MAX),
                       .more = e->tokens,
                       .kind = (uint8_t)e->kind,
                       .session = (uint8_t)e->tick->session,
                       .lane = (uint8_t)e->lane,
                       .what = !e->what            ? 0
                               : is_fixed[e->kind] ? fixed_word(r, e->what)
                                                   : word_of(r, e->what),
                       .node = e->node,
                       .flag = e->flag};
    if (keeps[e->kind])
        keeps[e->kind](r, &out, e);
    put(r, &out);
    if (e->kind == TEC_EVENT_FRAME_END || e->kind == TEC_EVENT_PLAN)
        put_more(r, &out, e);
}

void tec_recorder_seam(struct tec_recorder *r, const struct tec_event *e, float jump)
{
    if (!r->ring)
        return;
    struct kept out = {.t_ns = e->t_ns,
                       .value = e->since_ns,
                       .frame = (int32_t)(e->tick->frame & INT32_MAX),
                       .kind = TEC_FLIGHT_SEAM,
                       .session = (uint8_t)e->tick->session,
                       .node = e->node};
    memcpy(&out.more, &jump, sizeof jump);
    put(r, &out);
}

/* --- any thread ------------------------------------------------------------------------------- */

size_t tec_recorder_copy(const struct tec_recorder *r, uint64_t *from,
                         struct tec_flight_event *events, size_t room)
{
    uint64_t end = atomic_load_explicit(&r->written, memory_order_acquire);
    uint64_t oldest = end > TEC_FLIGHT_EVENTS - MARGIN ? end - (TEC_FLIGHT_EVENTS - MARGIN) : 0;
    if (!r->ring)
        return 0;
    if (*from < oldest)
        *from = oldest;
    size_t n = end > *from ? (size_t)(end - *from) : 0;
    n = n < room ? n : room;
    for (size_t i = 0; i < n; i++) {
        const _Atomic uint64_t *at = r->ring[(*from + i) % TEC_FLIGHT_EVENTS];
        uint64_t words[4];
        for (int k = 0; k < 4; k++)
            words[k] = atomic_load_explicit(&at[k], memory_order_relaxed);
        memcpy(&events[i], words, sizeof words);
    }
    atomic_thread_fence(memory_order_acquire);
    uint64_t now = atomic_load_explicit(&r->written, memory_order_relaxed);
    uint64_t safe = now + 1 > TEC_FLIGHT_EVENTS ? now + 1 - TEC_FLIGHT_EVENTS : 0;
    if (safe <= *from)
        return n;
    size_t lost = safe - *from < n ? (size_t)(safe - *from) : n;
    memmove(events, events + lost, (n - lost) * sizeof *events);
    *from += lost;
    return n - lost;
}

const char *tec_recorder_word(const struct tec_recorder *r, int what)
{
    return what > 0 && what <= atomic_load_explicit(&r->n_words, memory_order_acquire)
               ? r->words[what - 1]
               : "";
}
