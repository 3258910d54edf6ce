/* worker_texts.c - texts of streams for the clients of the server: those that ended are kept for
 * the session until its next reply takes them. Engine thread. */
#include "tools/serve/worker_own.h"

#include <string.h>

bool tec_worker_texts_create(struct tec_worker *w, struct tec_worker_session *s)
{
    int n = tec_loop_utterances(w->opened.engine->loop);
    s->texts.at = TEC_NEW(&w->arena, (size_t)n + 1, struct tec_text_cursor);
    s->texts.bytes = TEC_NEW(&w->arena, TEC_WORKER_TEXT_BYTES, char);
    for (int i = 0; s->texts.at && i < n; i++)
        s->texts.at[i].id = -1;
    return s->texts.at && s->texts.bytes;
}

/* Texts that have ended are none of the client's. */
static void skip(const struct tec_worker *w, struct tec_worker_session *s)
{
    const struct tec_loop *loop = w->opened.engine->loop;
    for (int i = 0; i < tec_loop_utterances(loop); i++) {
        const struct tec_utterance *u = tec_loop_utterance(loop, i);
        tec_cursor_follow(&s->texts.at[i], u);
        if (atomic_load_explicit(&u->done, memory_order_acquire) != 0)
            tec_cursor_end(&s->texts.at[i], u);
    }
}

/* Bit set of the decoders of that stream or node; 0: there is none. */
static unsigned decoders_of(const struct tec_worker *w, const char *name)
{
    const struct tec_loop_options *o = tec_loop_settings(w->opened.engine->loop);
    unsigned of = 0;
    for (int d = 0; d < o->n_decoders; d++)
        if (strcmp(o->decoders[d].name, name) == 0 ||
            (w->streams[d] && strcmp(w->streams[d], name) == 0))
            of |= 1U << d;
    return of;
}

enum tec_status tec_worker_texts_find(const struct tec_worker *w, unsigned *of,
                                      const char *const *names, int n, struct tec_error *err)
{
    int all = tec_loop_settings(w->opened.engine->loop)->n_decoders;
    *of = n == 0 ? (1U << all) - 1U : 0U;
    for (int i = 0; i < n; i++) {
        unsigned one = decoders_of(w, names[i]);
        if (!one)
            return tec_fail(err, TEC_NOT_FOUND,
                            "tectum.texts: pipeline %s has no stream and no decode node '%.60s'",
                            w->opened.pipeline->name, names[i]);
        *of |= one;
    }
    return TEC_OK;
}

void tec_worker_texts_want(const struct tec_worker *w, struct tec_worker_session *s, unsigned of,
                           bool pushes)
{
    if (s->texts.of == 0)
        skip(w, s);
    s->texts.of = of;
    s->texts.pushes = pushes;
}

/* Take the oldest out. */
static void remove_oldest(struct tec_worker_texts *t)
{
    size_t bytes = t->kept[0].bytes;
    memmove(t->bytes, t->bytes + bytes, t->n_bytes - bytes);
    t->n_bytes -= bytes;
    t->n--;
    memmove(t->kept, t->kept + 1, (size_t)t->n * sizeof *t->kept);
    memmove(t->reasons, t->reasons + 1, (size_t)t->n * sizeof *t->reasons);
    for (int i = 0; i < t->n; i++) {
        t->kept[i].text -= bytes;
        t->kept[i].reason = t->reasons[i];
    }
}

void tec_worker_texts_pack(struct tec_worker_session *s)
{
    s->texts.sent = s->texts.n;
    s->texts.sent_lost = s->texts.lost;
}

void tec_worker_texts_left(struct tec_worker_session *s, bool replaced)
{
    struct tec_worker_texts *t = &s->texts;
    for (; !replaced && t->sent > 0; t->sent--)
        remove_oldest(t);
    t->lost -= replaced ? 0 : t->sent_lost;
    t->sent = t->sent_lost = 0;
}

void tec_worker_texts_forget(struct tec_worker_session *s)
{
    s->texts.anew = true;
    s->texts.of = 0;
    s->texts.pushes = false;
    s->texts.n = s->texts.lost = s->texts.sent = s->texts.sent_lost = 0;
    s->texts.n_bytes = 0;
}

/* Make room: of those in the newest reply nothing is lost, if it leaves. */
static void drop_oldest(struct tec_worker_texts *t)
{
    remove_oldest(t);
    if (t->sent > 0)
        t->sent--;
    else
        t->lost++;
}

/* The chunk_id of the observation that a text was born with. */
static int64_t observation_of(const struct tec_worker *w, const struct tec_worker_session *s,
                              const struct tec_utterance *u)
{
    const struct tec_observation_record *seen =
        tec_observation_records_find(&w->runtime.sessions[s->index].records, u->frame);
    return seen ? seen->number : -1;
}

/* Hand a text to the client's connection, where it still is. */
static void push(struct tec_worker *w, const struct tec_worker_session *s,
                 const struct tec_reply_text *text)
{
    struct tec_exchange *x = w->exchange;
    for (int i = 0; s->client > 0 && i < x->n; i++)
        if (atomic_load_explicit(&x->jobs[i].connected, memory_order_relaxed) == s->client &&
            tec_push_put(&x->pushes[i], s->client, text))
            x->wake(x->user);
}

static void keep(struct tec_worker *w, struct tec_worker_session *s, const struct tec_utterance *u)
{
    struct tec_worker_texts *t = &s->texts;
    struct tec_error err;
    char *text = NULL;
    int tokens = atomic_load_explicit(&u->count, memory_order_acquire);
    bool good = tec_engine_text(w->opened.engine, u, tokens, &w->moment, &text, &err) == TEC_OK;
    size_t bytes = good && text ? strlen(text) : 0;
    if (!good || bytes > TEC_WORKER_TEXT_BYTES) {
        t->lost++;
        return;
    }
    const struct tec_reply_text one = {
        .stream = w->streams[u->decoder],
        .node = tec_loop_settings(w->opened.engine->loop)->decoders[u->decoder].name,
        .request = u->id,
        .chunk_id = observation_of(w, s, u),
        .tokens = tokens,
        .done = atomic_load_explicit(&u->done, memory_order_acquire) == 1,
        .reason = u->reason,
        .text = text,
        .bytes = bytes};
    if (t->pushes) {
        push(w, s, &one);
        return;
    }
    while (t->n == TEC_WORKER_TEXTS || t->n_bytes + bytes > TEC_WORKER_TEXT_BYTES)
        drop_oldest(t);
    memcpy(t->reasons[t->n], u->reason, sizeof u->reason);
    if (bytes)
        memcpy(t->bytes + t->n_bytes, text, bytes);
    t->kept[t->n] = one;
    t->kept[t->n].reason = t->reasons[t->n];
    t->kept[t->n].text = t->bytes + t->n_bytes;
    t->n_bytes += bytes;
    t->n++;
}

static bool waited_for(const struct tec_worker *w, int64_t request)
{
    for (int job = 0; job < w->exchange->n; job++)
        if (w->jobs[job].waits && w->jobs[job].request == request)
            return true;
    return false;
}

void tec_worker_texts_keep(struct tec_worker *w, struct tec_worker_session *s)
{
    const struct tec_loop *loop = w->opened.engine->loop;
    for (int i = 0; s->texts.of && i < tec_loop_utterances(loop); i++) {
        const struct tec_utterance *u = tec_loop_utterance(loop, i);
        struct tec_text_cursor *at = &s->texts.at[i];
        if (u->id < 0)
            continue;
        tec_cursor_follow(at, u);
        if (at->ended || atomic_load_explicit(&u->done, memory_order_acquire) == 0)
            continue;
        tec_cursor_end(at, u);
        if (u->session == s->index && u->frame >= s->texts.from && s->texts.of >> u->decoder & 1U &&
            !waited_for(w, u->id))
            keep(w, s, u);
    }
}
