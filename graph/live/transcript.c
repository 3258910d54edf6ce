/* transcript.c - reports what requests say: tokens and ends through a ring, rankings through triple
 * buffers, both without a lock on the frame thread's side. */
#include "graph/live/transcript.h"

#include <string.h>

enum { FRAMES = 4096 /* whose observation is remembered: longer than a text lasts */ };

void tec_transcript_init(struct tec_transcript *t)
{
    *t = (struct tec_transcript){.n_texts = 0};
    pthread_mutex_init(&t->lock, NULL);
}

void tec_transcript_finish(struct tec_transcript *t)
{
    pthread_mutex_destroy(&t->lock);
}

/* Three places for the newest ranking of each node that ranks. */
static enum tec_status give_rankings(struct tec_transcript *t, struct tec_arena *arena,
                                     struct tec_error *err)
{
    const struct tec_loop_options *o = tec_loop_settings(t->engine->loop);
    t->newest = TEC_NEW(arena, (size_t)o->n_decoders + 1, struct tec_transcript_newest);
    bool ok = t->newest != NULL;
    for (int d = 0; ok && d < o->n_decoders; d++) {
        tec_triple_init(&t->newest[d].box);
        t->newest[d].taken = -1;
        for (int i = 0; ok && o->decoders[d].tree && i < TEC_TRIPLE_PLACES; i++) {
            struct tec_transcript_ranking *r = &t->newest[d].places[i];
            r->items = TEC_NEW(arena, (size_t)o->decoders[d].tree->n_texts, struct tec_ranked);
            ok = r->items != NULL;
        }
    }
    return ok ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for rankings");
}

enum tec_status tec_transcript_attach(struct tec_transcript *t, const struct tec_engine *engine,
                                      int session, struct tec_arena *arena, struct tec_error *err)
{
    t->engine = engine;
    t->session = session;
    t->n_texts = tec_loop_utterances(engine->loop);
    t->places = TEC_NEW(arena, (size_t)t->n_texts, struct tec_transcript_place);
    t->texts = TEC_NEW(arena, (size_t)t->n_texts, struct tec_transcript_text);
    t->observation_of = TEC_NEW(arena, FRAMES, int64_t);
    if (!t->places || !t->texts || !t->observation_of)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for texts");
    for (int i = 0; i < t->n_texts; i++)
        t->places[i].at.id = t->texts[i].request = -1;
    TEC_TRY(give_rankings(t, arena, err));
    uint32_t events = (uint32_t)(t->n_texts * (engine->plan->spec.new_tokens + 2) * 2);
    return tec_spsc_init(&t->events, arena, events, sizeof(struct tec_transcript_event));
}

/* --- the frame thread ------------------------------------------------------------------------- */

void tec_transcript_note(struct tec_transcript *t, int64_t frame, int64_t observation)
{
    t->observation_of[frame % FRAMES] = observation;
}

static int64_t observation_of(const struct tec_transcript *t, const struct tec_utterance *u)
{
    return t->session < 0 ? u->frame : t->observation_of[u->frame % FRAMES];
}

/* A token, or, -1, the end. The record is the next text's when a reader comes to the event, so its
 * reason is copied. */
static bool push(struct tec_transcript *t, const struct tec_transcript_place *place,
                 const struct tec_utterance *u, int token)
{
    struct tec_transcript_event event = {.request = u->id,
                                         .observation = observation_of(t, u),
                                         .token = token,
                                         .decoder = u->decoder,
                                         .session = u->session,
                                         .ends = token < 0,
                                         .lost = place->lost};
    _Static_assert(sizeof event.reason == sizeof u->reason, "a reason fits");
    if (event.ends)
        memcpy(event.reason, u->reason, sizeof event.reason);
    return atomic_load_explicit(&t->unread, memory_order_relaxed) ||
           tec_spsc_push(&t->events, &event);
}

static void post_ranking(struct tec_transcript *t, const struct tec_utterance *u)
{
    struct tec_transcript_newest *r = &t->newest[u->decoder];
    struct tec_transcript_ranking *to = &r->places[r->box.writing];
    if (u->n_ranked == 0)
        return;
    to->request = u->id;
    to->observation = observation_of(t, u);
    to->n = u->n_ranked;
    memcpy(to->items, u->ranked, (size_t)u->n_ranked * sizeof *u->ranked);
    tec_triple_post(&r->box);
}

/* Report what is new of a text; false: nothing. An end that does not fit comes with a later frame.
 */
static bool tell_text(struct tec_transcript *t, struct tec_transcript_place *place,
                      const struct tec_utterance *u)
{
    if (u->id < 0 || (t->session >= 0 && u->session != t->session))
        return false;
    if (tec_cursor_follow(&place->at, u))
        place->lost = place->ranked = false;
    bool ends = u->done && !place->at.ended, said = ends || place->at.read < u->count;
    for (int n = u->count; place->at.read < n; place->at.read++)
        place->lost |= !push(t, place, u, u->tokens[place->at.read]);
    if (!ends)
        return said;
    if (!place->ranked)
        post_ranking(t, u);
    place->ranked = true;
    if (push(t, place, u, -1))
        tec_cursor_end(&place->at, u);
    return said;
}

void tec_transcript_tell(struct tec_transcript *t)
{
    bool said = false;
    for (int i = 0; i < t->n_texts; i++)
        said |= tell_text(t, &t->places[i], tec_loop_utterance(t->engine->loop, i));
    if (said)
        tec_bell_ring(&t->said);
}

/* --- readers ---------------------------------------------------------------------------------- */

static struct tec_transcript_text *text_of(struct tec_transcript *t, int64_t request, int decoder)
{
    const struct tec_tokenizer *tokenizer = tec_engine_tokenizer(t->engine, decoder);
    struct tec_transcript_text *oldest = &t->texts[0];
    for (int i = 0; i < t->n_texts; i++) {
        if (t->texts[i].request == request)
            return &t->texts[i];
        if (t->texts[i].request < oldest->request)
            oldest = &t->texts[i];
    }
    oldest->request = request;
    if (tokenizer)
        tec_detokenizer_init(&oldest->decoder, tokenizer, true);
    return oldest;
}

bool tec_transcript_read(struct tec_transcript *t, struct tec_transcript_event *event, char *text,
                         size_t room, size_t *bytes)
{
    size_t n = 0;
    if (!tec_spsc_pop(&t->events, event))
        return false;
    struct tec_transcript_text *of = text_of(t, event->request, event->decoder);
    if (tec_engine_tokenizer(t->engine, event->decoder))
        n = event->ends ? tec_detokenizer_flush(&of->decoder, text, room)
                        : tec_detokenizer_push(&of->decoder, event->token, text, room);
    *bytes = n <= room ? n : 0;
    if (event->ends)
        of->request = -1;
    return true;
}

const struct tec_transcript_ranking *tec_transcript_ranking(struct tec_transcript *t, int decoder,
                                                            int64_t from)
{
    struct tec_transcript_newest *r = &t->newest[decoder];
    if (tec_triple_take(&r->box))
        r->taken = r->places[r->box.reading].request;
    return r->taken < 0 || r->taken < from ? NULL : &r->places[r->box.reading];
}
