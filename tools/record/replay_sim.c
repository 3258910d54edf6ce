/* replay_sim.c - recorded arrivals through the real loop and policy, on a virtual clock.
 *
 * What came is the recording's: ticks, observations, requests, how long texts are that came to
 * their ends, how late inputs were. What follows is the simulation's: which ticks are skipped
 * because a frame is not over, when language goes on between requests to a server, which requests
 * live. */
#include "tools/record/replay_sim.h"

#include "tools/measure/measure.h"
#include "tools/record/replay_sim_own.h"
#include "tools/simulate/simulated.h"

#include <string.h>

enum { PATIENCE_US = 200000, MOST_TICKS = 1000000, MOST_PAUSES = 1000, ALIVE = 4096 };
enum { FIRST_PAUSE_NS = 500000, LONGEST_PAUSE_NS = 4000000 };

/* --- answers to the loop ---------------------------------------------------------------------- */

static int64_t took(void *user, int model, int mark, int rows, int k)
{
    const struct tec_replay_sim *s = user;
    const char *name;
    return tec_simulated_took(s->opened.engine, &s->costs, model, mark, rows, k, &name);
}

/* The recorded request that is this one now; NULL: the recording had none like it. */
static struct tec_recorded_request *request_of(const struct tec_replay_sim *s, int64_t now)
{
    for (size_t i = s->newest; i > 0 && i + ALIVE > s->newest; i--)
        if (s->run.requests[i - 1].now == now)
            return &s->run.requests[i - 1];
    return NULL;
}

static int end_of(void *user, int64_t request)
{
    const struct tec_recorded_request *r = request_of(user, request);
    return r ? r->length : 0;
}

/* --- what the loop tells ---------------------------------------------------------------------- */

/* A request of this frame is the first recorded one of its node that is none yet. */
static void match(struct tec_replay_sim *s, const struct tec_event *e)
{
    const struct tec_recorded_part *part = s->parts[e->tick->session % TEC_MAX_SESSIONS];
    for (size_t i = 0; part && i < part->n_requests; i++) {
        struct tec_recorded_request *r = &s->run.requests[part->first_request + i];
        if (r->now >= 0 || r->node != e->node)
            continue;
        r->now = e->request;
        if (s->newest < part->first_request + i + 1)
            s->newest = part->first_request + i + 1;
        return;
    }
}

static void keep_notes(struct tec_replay_sim *s, const struct tec_decision *d)
{
    json_object_clear(s->notes);
    for (int i = 0; d && i < d->n_notes; i++)
        json_object_set_new(s->notes, d->notes[i].key,
                            d->notes[i].is_number ? json_real(d->notes[i].number)
                                                  : json_string(d->notes[i].text));
}

static void hear(void *user, const struct tec_event *e)
{
    struct tec_replay_sim *s = user;
    tec_summary_event(&s->summary, e);
    if (e->kind == TEC_EVENT_ARRIVE)
        match(s, e);
    if (e->kind == TEC_EVENT_PLAN && s->o->diff)
        keep_notes(s, e->decision);
}

/* --- ticks ------------------------------------------------------------------------------------ */

static int decoder_of(const struct tec_replay_sim *s, const char *node)
{
    const struct tec_loop_options *loop = tec_loop_settings(s->opened.engine->loop);
    for (int d = 0; d < loop->n_decoders; d++)
        if (strcmp(loop->decoders[d].name, node) == 0)
            return d;
    return 0;
}

static void fill_asks(struct tec_replay_sim *s, struct tec_tick *tick,
                      const struct tec_recorded_part *part)
{
    struct tec_ask *asks = s->asks[part->session];
    int64_t *cancels = s->cancels[part->session];
    bool decodes = tec_loop_settings(s->opened.engine->loop)->n_decoders > 0;
    for (int i = 0; decodes && i < part->n_asks; i++)
        asks[tick->n_asks++] = (struct tec_ask){.decoder = decoder_of(s, part->asks[i].node),
                                                .max_tokens = part->asks[i].max_tokens,
                                                .prio = part->asks[i].prio};
    for (int i = 0; i < part->n_cancels; i++)
        for (size_t k = s->newest; k > 0 && k + ALIVE > s->newest; k--)
            if (s->run.requests[k - 1].id == part->cancels[i] && s->run.requests[k - 1].now >= 0) {
                cancels[tick->n_cancels++] = s->run.requests[k - 1].now;
                break;
            }
    tick->asks = asks;
    tick->cancels = cancels;
}

/* Of ticks of a period others have frames than had them when recorded, so the observations that
 * texts are counted by are counted anew. */
static void count(struct tec_replay_sim *s, const struct tec_recorded_part *part,
                  const struct tec_replay_arrival *a, struct tec_tick *tick)
{
    struct tec_counted *counted = &s->counted[part->session];
    tick->counted = part->counted;
    tick->spawn = part->spawn;
    if (s->mode != TEC_RECORDING_PACED)
        return;
    if (part->reset == TEC_RESET_ALL && !a->again)
        counted->n = 0;
    tec_loop_count(s->opened.engine->loop, counted,
                   part->observed || a->again ? &s->inputs[part->session] : NULL, tick);
}

/* The tick of a part at a moment of this clock. `again`: the recording has none of that number, and
 * what is known of the one before stands for it. */
static struct tec_tick make_tick(struct tec_replay_sim *s, const struct tec_recorded_part *part,
                                 const struct tec_replay_arrival *a)
{
    const struct tec_loop *loop = s->opened.engine->loop;
    struct tec_tick tick = tec_loop_tick(loop, a->at_ns, 0);
    tick.session = part->session;
    if (s->mode != TEC_RECORDING_SERVED || s->opened.pipeline->frame.sessions > 1)
        tick.frame = a->again ? a->number : part->frame;
    tick.ahead = a->again ? part->ahead : tick.frame - part->frame + part->ahead;
    count(s, part, a, &tick);
    tick.mute = part->mute;
    tick.rests = part->rests;
    if (part->deadline_ns != INT64_MIN && s->o->every_ms <= 0.0)
        tick.deadline_ns = part->deadline_ns < 0 ? -1 : a->at_ns + part->deadline_ns;
    tick.late_ns = a->again ? 0 : part->late_ns;
    s->parts[part->session] = a->again ? NULL : part;
    if (!a->again)
        fill_asks(s, &tick, part);
    return tick;
}

static void observe(struct tec_replay_sim *s, const struct tec_recorded_part *part, int64_t at_ns)
{
    struct tec_frame_input *input = &s->inputs[part->session];
    input->captured_ns = at_ns;
    tec_simulated_texts(s->opened.engine, part->session, part->text, input);
}

static enum tec_status run_arrival(struct tec_replay_sim *s, const struct tec_replay_arrival *a,
                                   struct tec_error *err)
{
    struct tec_loop *loop = s->opened.engine->loop;
    const struct tec_frame_input *inputs[TEC_MAX_SESSIONS] = {NULL};
    struct tec_tick ticks[TEC_MAX_SESSIONS];
    memset(s->parts, 0, sizeof s->parts);
    for (int i = 0; i < a->moment->n; i++) {
        const struct tec_recorded_part *part = &s->run.parts[a->moment->first + (size_t)i];
        if (part->reset == TEC_RESET_ALL && !a->again)
            tec_loop_restart(loop);
        s->inputs[part->session].episode += part->reset == TEC_RESET_SESSION && !a->again;
        ticks[i] = make_tick(s, part, a);
        if (part->observed || a->again)
            observe(s, part, a->at_ns);
        inputs[i] = part->observed || a->again ? &s->inputs[part->session] : NULL;
    }
    tec_loop_run_sessions(loop, inputs, ticks, a->moment->n);
    s->counts.frames++;
    s->counts.more += a->again;
    for (int i = 0; i < a->moment->n && !a->again; i++)
        TEC_TRY(tec_replay_sim_compare(s, &s->run.parts[a->moment->first + (size_t)i],
                                       tec_loop_record(loop, i), err));
    return TEC_OK;
}

/* A server goes on with language until that moment, at once where there is something to run, after
 * pauses that grow where only time or an observation changes that. */
static void go_on(struct tec_replay_sim *s, int64_t until_ns)
{
    struct tec_loop *loop = s->opened.engine->loop;
    int64_t pause_ns = 0;
    int idle = 0;
    memset(s->parts, 0, sizeof s->parts);
    while (s->now_ns + pause_ns < until_ns && tec_loop_requests(loop) > 0 && idle < MOST_PAUSES) {
        s->now_ns += pause_ns;
        struct tec_tick tick = tec_loop_tick(loop, s->now_ns, 0);
        tick.rests = true;
        bool ran = tec_loop_run(loop, NULL, &tick)->n_launches > 0;
        pause_ns = ran ? 0 : pause_ns ? 2 * pause_ns : FIRST_PAUSE_NS;
        pause_ns = pause_ns < LONGEST_PAUSE_NS ? pause_ns : LONGEST_PAUSE_NS;
        idle = ran ? 0 : idle + 1;
    }
}

/* Does the tick open a frame now? Moves the clock to when it does. */
static bool opens(struct tec_replay_sim *s, struct tec_replay_arrival *a)
{
    const struct tec_recorded_part *part = &s->run.parts[a->moment->first];
    if (s->mode == TEC_RECORDING_FRAMES) { /* they follow each other */
        a->at_ns = s->now_ns;
        return true;
    }
    if (s->mode == TEC_RECORDING_PACED && s->now_ns > a->at_ns)
        return false;
    if (s->mode == TEC_RECORDING_SERVED)
        go_on(s, a->at_ns);
    s->now_ns = s->now_ns > a->at_ns ? s->now_ns : a->at_ns;
    /* A request whose deadline has passed was answered at it. */
    const int64_t deadline_ns = s->o->every_ms > 0.0
                                    ? tec_loop_tick(s->opened.engine->loop, 0, 0).deadline_ns
                                    : part->deadline_ns;
    return s->mode == TEC_RECORDING_PACED || deadline_ns < 0 || a->at_ns + deadline_ns > s->now_ns;
}

static enum tec_status arrive(struct tec_replay_sim *s, struct tec_replay_arrival a,
                              struct tec_error *err)
{
    const struct tec_recorded_part *part = &s->run.parts[a.moment->first];
    if (s->mode == TEC_RECORDING_SERVED && !part->observed && !part->n_cancels)
        return TEC_OK; /* language alone: the simulation has such frames of its own */
    if (opens(s, &a))
        return run_arrival(s, &a, err);
    s->counts.skipped++;
    return a.again ? TEC_OK : tec_replay_sim_skip(s, a.moment, err);
}

/* Ticks of a period that opened no frame when they were recorded. */
static enum tec_status arrive_between(struct tec_replay_sim *s, size_t at, struct tec_error *err)
{
    const struct tec_recorded_moment *m = &s->run.moments[at];
    const struct tec_recorded_part *from = &s->run.parts[m[-1].first];
    const struct tec_recorded_part *to = &s->run.parts[m->first];
    int64_t period_ns = s->opened.engine->topology.period_us * 1000;
    for (int64_t n = 1; period_ns > 0 && n < to->number - from->number; n++) {
        const struct tec_replay_arrival a = {.moment = m - 1,
                                             .at_ns = from->tick_ns + n * period_ns,
                                             .number = from->number + n,
                                             .again = true};
        if (a.at_ns >= to->tick_ns)
            break;
        if (++s->n_between > MOST_TICKS)
            return tec_fail(err, TEC_MALFORMED, "more than %d ticks lie between its frames",
                            MOST_TICKS);
        TEC_TRY(arrive(s, a, err));
    }
    return TEC_OK;
}

/* When a moment comes. With options.every_ms a server's observations follow each other so, and what
 * lies between comes with the one before it. */
static int64_t arrival_ns(const struct tec_replay_sim *s, size_t moment, int64_t *observations)
{
    const struct tec_recorded_part *part = &s->run.parts[s->run.moments[moment].first];
    *observations += part->observed;
    if (s->o->every_ms <= 0.0)
        return part->tick_ns;
    int64_t before = *observations > 0 ? *observations - 1 : 0;
    return s->run.parts[0].tick_ns + (int64_t)((double)before * s->o->every_ms * 1e6);
}

static enum tec_status run_all(struct tec_replay_sim *s, struct tec_error *err)
{
    int64_t observations = 0;
    s->now_ns = s->run.parts[0].tick_ns;
    for (size_t i = 0; i < s->run.n_moments; i++) {
        const struct tec_replay_arrival a = {.moment = &s->run.moments[i],
                                             .at_ns = arrival_ns(s, i, &observations)};
        if (i > 0 && s->mode == TEC_RECORDING_PACED)
            TEC_TRY(arrive_between(s, i, err));
        TEC_TRY(arrive(s, a, err));
    }
    if (s->mode == TEC_RECORDING_SERVED)
        go_on(s, INT64_MAX / 2);
    return s->summary.out_of_memory ? tec_fail(err, TEC_NO_MEMORY, "no memory for a summary")
                                    : TEC_OK;
}

/* --- opening ---------------------------------------------------------------------------------- */

static enum tec_recording_mode mode_of(const json_t *about)
{
    const char *mode = json_string_value(json_object_get(about, "mode"));
    return mode && strcmp(mode, "paced") == 0    ? TEC_RECORDING_PACED
           : mode && strcmp(mode, "served") == 0 ? TEC_RECORDING_SERVED
                                                 : TEC_RECORDING_FRAMES;
}

static enum tec_status check_parts(const struct tec_replay_sim *s, struct tec_error *err)
{
    for (size_t i = 0; i < s->run.n_parts; i++)
        if (s->run.parts[i].session >= s->opened.pipeline->frame.sessions)
            return tec_fail(err, TEC_MALFORMED, "frame %lld: there is no session %d",
                            (long long)s->run.parts[i].number, s->run.parts[i].session);
    return TEC_OK;
}

static enum tec_status take_costs(struct tec_replay_sim *s, const struct tec_cost_table *given,
                                  struct tec_error *err)
{
    if (given)
        s->costs = *given;
    else
        TEC_TRY(tec_flight_costs(&s->costs, &s->run.flight, s->call->arena, err));
    struct tec_error missing;
    if (tec_simulated_check(s->opened.engine, &s->costs, &missing) != TEC_OK)
        return tec_fail(err, TEC_MALFORMED, "%.160s%s", missing.message,
                        given ? "" : ": it did not run in the recording, so give --costs FILE");
    s->device[0].contention = s->costs.contention;
    tec_loop_set_table(s->opened.engine->loop, &s->costs);
    return TEC_OK;
}

static enum tec_status open_engine(struct tec_replay_sim *s, struct tec_error *err)
{
    struct tec_engine_options options;
    tec_mcap_rewind(&s->run.flight.file);
    TEC_TRY(tec_replay_source_open(&s->source, s->call, &s->run.flight.file, err));
    const struct tec_engine_options more = {.dtype = s->source.dtype,
                                            .saturated = s->mode == TEC_RECORDING_FRAMES};
    TEC_TRY(tec_cli_open_options(&s->opened, &options, s->call, s->source.pipeline, &more, err));
    /* The real time of a call decides nothing here. */
    s->opened.pipeline->guard.hard_us = PATIENCE_US;
    options.random = tec_measured_by(s->call, s->opened.pipeline) != TEC_MEASURED_CHECKPOINT;
    options.progress = NULL;
    options.events = (struct tec_event_sink){hear, s};
    s->device[0] =
        (struct tec_virtual){.clock_ns = &s->now_ns, .user = s, .took = took, .end = end_of};
    TEC_TRY(tec_engine_simulate(&s->opened.engine, &options, s->device, s->call->heap, err));
    const struct tec_engine *e = s->opened.engine;
    for (int i = 0; i < s->opened.pipeline->frame.sessions; i++)
        TEC_TRY(tec_simulated_input(&s->inputs[i], e, s->call->arena, err));
    tec_summary_init(&s->summary, e->topology.horizon, tec_loop_settings(e->loop), s->call->arena);
    s->summary.ring = e->topology.n_rings > 0;
    TEC_TRY(take_costs(s, options.costs, err));
    TEC_TRY(tec_use_policy(&s->opened, NULL, err));
    return check_parts(s, err);
}

static enum tec_status open_all(struct tec_replay_sim *s, struct tec_error *err)
{
    TEC_TRY(tec_recorded_run_open(&s->run, s->o->path, s->call->heap, err));
    s->mode = mode_of(s->run.flight.about);
    if (s->o->every_ms > 0.0 && s->mode != TEC_RECORDING_SERVED)
        return tec_fail(err, TEC_INVALID, "--every is of recordings of serve, and this is none");
    s->notes = json_object();
    s->was_us = TEC_NEW(s->call->arena, s->run.n_parts + 1, int64_t);
    if (!s->notes || !s->was_us)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a replay");
    if (s->o->html)
        TEC_TRY(tec_replay_page_open(&s->page, s->call->heap, err));
    return open_engine(s, err);
}

enum tec_status tec_replay_simulate(struct tec_invocation *call,
                                    const struct tec_replay_options *options, struct tec_error *err)
{
    struct tec_replay_sim *s = tec_heap_get(call->heap, sizeof *s);
    if (!s)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a replay");
    *s = (struct tec_replay_sim){.o = options, .call = call};
    enum tec_status status = open_all(s, err);
    if (status == TEC_OK)
        status = tec_context(err, run_all(s, err), "%s", options->path);
    if (status == TEC_OK && s->run.flight.file.damage[0])
        tec_say(call, "%s: %s", options->path, s->run.flight.file.damage);
    if (status == TEC_OK)
        status = tec_replay_sim_tell(s, err);
    tec_replay_page_close(&s->page);
    tec_close_engine(&s->opened);
    tec_replay_source_close(&s->source);
    tec_recorded_run_close(&s->run);
    json_decref(s->notes);
    json_decref(s->counts.first);
    tec_heap_put(call->heap, s);
    return status;
}
