/* worker_observe.c - from a request's bytes to what a frame reads: decoded, completed, prepared. */
#include "tools/serve/worker_own.h"

#include <stdio.h>
#include <string.h>

enum { SKEW_NS = 1000000000 };

static const struct tec_value *find(const struct tec_request_message *m, const char *name)
{
    for (size_t i = 0; i < m->n; i++)
        if (strcmp(m->values[i].name, name) == 0)
            return &m->values[i];
    return NULL;
}

/* openpi ignores keys that it does not know; a session refuses a picture under such a key. The name
 * stays, as a text that nobody reads: it may be the misspelt one that a message should name. In a
 * map (ALOHA's images) an unknown picture is refused, there too. */
static void set_aside_unknown(struct tec_worker *w)
{
    struct tec_request_message *m = &w->request;
    for (size_t i = 0; i < m->n; i++)
        if (m->values[i].rank > 2 && !m->inner[i] && !tec_worker_knows(w, m->values[i].name))
            m->values[i] = (struct tec_value){.name = m->values[i].name, .data = ""};
}

static enum tec_status add_prompt(struct tec_worker *w, const char *name, struct tec_error *err)
{
    struct tec_request_message *m = &w->request;
    char ids[256];
    snprintf(ids, sizeof ids, "%.200s#ids", name);
    if (!w->default_prompt || find(m, name) || find(m, ids))
        return TEC_OK;
    if (m->n == TEC_MAX_INPUTS)
        return tec_fail(err, TEC_UNSUPPORTED, "request: more than %d values", TEC_MAX_INPUTS - 1);
    m->inner[m->n] = false;
    m->values[m->n++] = (struct tec_value){
        .name = name, .data = w->default_prompt, .bytes = strlen(w->default_prompt)};
    return TEC_OK;
}

/* Find the noise that the request's actions start from; NULL: it is drawn from the pipeline's seed
 * and the observation's number. */
static enum tec_status find_noise(struct tec_worker *w, struct tec_worker_session *s,
                                  struct tec_error *err)
{
    const struct tec_flow *f = &w->opened.engine->model->flow;
    const struct tec_value *given = &w->request.noise;
    size_t n = (size_t)f->horizon * (size_t)f->dim;
    s->given_noise = given->name || w->request.has_seed ? s->noise : NULL;
    if (!given->name) {
        if (w->request.has_seed)
            tec_noise(w->request.seed, TEC_NOISE_ACTIONS, 0, s->noise, n);
        return TEC_OK;
    }
    if (given->kind != TEC_VALUE_F32 || given->rank != 2 || given->shape[0] != f->horizon ||
        given->shape[1] != f->dim)
        return tec_fail(err, TEC_SHAPE, "tectum.noise: must be f32 [%d, %d]", f->horizon, f->dim);
    memcpy(s->noise, given->data, n * sizeof *s->noise);
    return tec_context(err, tec_noise_check(s->noise, n, err), "tectum.noise");
}

/* Find the time at which the cameras saw the observation: the client's, else that of the complete
 * request. */
static enum tec_status find_captured(struct tec_worker *w, int job, struct tec_error *err)
{
    const struct tec_request_message *m = &w->request;
    struct tec_job *j = &w->exchange->jobs[job];
    int64_t ahead = m->has_captured ? m->captured_ns - j->received_ns : 0;
    if (ahead > SKEW_NS)
        return tec_fail(err, TEC_INVALID,
                        "tectum.obs_ts: lies %.0f s after the request: it is of the server's "
                        "monotonic clock, as in replies",
                        (double)ahead / 1e9);
    j->captured_ns = m->has_captured && ahead < 0 ? m->captured_ns : j->received_ns;
    return TEC_OK;
}

static enum tec_status find_ask(const struct tec_worker *w, struct tec_worker_session *s,
                                struct tec_error *err)
{
    const struct tec_loop_options *o = tec_loop_settings(w->opened.engine->loop);
    const char *node = w->request.ask.node;
    s->ask = (struct tec_ask){.max_tokens = w->request.ask.max_tokens, .prio = w->request.ask.prio};
    while (node && s->ask.decoder < o->n_decoders &&
           strcmp(o->decoders[s->ask.decoder].name, node) != 0)
        s->ask.decoder++;
    return !node || s->ask.decoder < o->n_decoders
               ? TEC_OK
               : tec_fail(err, TEC_NOT_FOUND,
                          "tectum.ask.node: pipeline %s has no decode node '%.60s'",
                          w->opened.pipeline->name, node);
}

/* What the request wants of its job. */
static void note_wishes(struct tec_worker_job *job, const struct tec_request_message *m)
{
    job->extended = m->extended;
    job->wants_streams = m->wants_streams;
    job->pushes = m->wants_streams && m->push;
    job->wants_text = m->wants_text;
    job->wants_timing = m->wants_timing;
    job->wants_actions = m->wants_actions;
}

enum tec_status tec_worker_read(struct tec_worker *w, int job, struct tec_error *err)
{
    const struct tec_job *j = &w->exchange->jobs[job];
    struct tec_request_message *m = &w->request;
    if (j->is_text)
        return tec_fail(err, TEC_MALFORMED,
                        "request: a text message; observations are binary ones, msgpack");
    TEC_TRY(tec_serve_request_read(m, j->message, j->n, &w->moment, err));
    w->jobs[job].started_ns = w->jobs[job].decoded_ns = tec_clock_now(&w->clock);
    if (m->wants_text && w->text_bytes == 0)
        return tec_fail(err, TEC_UNSUPPORTED,
                        "tectum.tasks: pipeline %s has no decode node: it makes no text",
                        w->opened.pipeline->name);
    return TEC_OK;
}

bool tec_worker_belongs(const struct tec_worker *w, const struct tec_worker_session *s, int job)
{
    const char *name = w->request.session;
    if (name && name[0])
        return s->client >= 0 && strcmp(s->name, name) == 0;
    return s->client == w->exchange->jobs[job].client;
}

enum tec_status tec_worker_observe(struct tec_worker *w, struct tec_worker_session *s, int job,
                                   struct tec_error *err)
{
    const struct tec_job *j = &w->exchange->jobs[job];
    struct tec_request_message *m = &w->request;
    char warning[200];
    s->own = tec_worker_belongs(w, s, job);
    s->fresh = !s->own || m->reset;
    if (m->wants_streams)
        TEC_TRY(tec_worker_texts_find(w, &w->jobs[job].streams, m->streams, m->n_streams, err));
    TEC_TRY(find_ask(w, s, err));
    tec_worker_tell_unread(w, j->client);
    set_aside_unknown(w);
    TEC_TRY(tec_worker_pictures(w, err));
    TEC_TRY(add_prompt(w, w->prompt, err));
    for (const struct tec_session *o = tec_session_next(s->session); o; o = tec_session_next(o))
        if (tec_session_robot(o)) /* each has the prompt that stands in for a missing one */
            TEC_TRY(add_prompt(w, tec_session_robot(o)->prompt_input, err));
    TEC_TRY(find_noise(w, s, err));
    TEC_TRY(find_captured(w, job, err));
    note_wishes(&w->jobs[job], m);
    if (s->fresh) /* texts of streams are of one client's episode */
        tec_session_reset(s->session);
    enum tec_status status =
        tec_session_observe(s->session, m->values, m->n, s->given_noise, s->observations,
                            j->captured_ns, &s->input, warning, err);
    if (status != TEC_OK && s->fresh) /* another's episode goes on */
        tec_session_resume(s->session);
    TEC_TRY(status);
    tec_recording_inputs(w->recording, s->index, s->observations, m->values, m->n);
    if (warning[0] && !w->warned)
        tec_say(w->opened.call, "%s", warning);
    w->warned |= warning[0] != '\0';
    return TEC_OK;
}
