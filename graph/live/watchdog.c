/* watchdog.c - the watchdog of actions: the frame thread posts chunks, and the consumer takes its
 * tick's chunk in time or, at the deadline, what on_miss says. */
#include "graph/live/watchdog.h"

#include "base/clock.h"

#include <math.h>
#include <string.h>

static const struct tec_clock wall = {NULL};

const struct tec_decl_deadline *tec_watchdog_deadline(const struct tec_pipeline *p, int i)
{
    const struct tec_decl_node *actor = tec_pipeline_action(p, i);
    return actor && actor->deadline.kind == TEC_DEADLINE_HARD ? &actor->deadline : NULL;
}

static enum tec_status take_memory(struct tec_watchdog *o, const struct tec_engine *e,
                                   struct tec_arena *arena, struct tec_error *err)
{
    size_t state = (size_t)tec_session_state(e->session), chunk = tec_engine_chunk(e, o->action);
    o->numbers = TEC_NEW(arena, (size_t)o->rows * (size_t)o->columns, double);
    bool ok = o->numbers != NULL;
    for (int i = 0; i < TEC_TRIPLE_PLACES; i++) {
        o->places[i].chunk = TEC_NEW(arena, chunk, float);
        o->places[i].state_raw = TEC_NEW(arena, state, double);
        ok = ok && o->places[i].chunk && o->places[i].state_raw;
    }
    o->chunk_bytes = chunk * sizeof(float);
    o->state_bytes = state * sizeof(double);
    return ok ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for actions");
}

struct tec_action_output_options tec_watchdog_output(const struct tec_engine *engine, int action,
                                                     const struct tec_decl_deadline *d, int actions)
{
    const struct tec_session *session = tec_engine_session(engine, action);
    double ensemble = 0.0;
    bool ensembles = tec_session_ensembles(session, &ensemble);
    int rows = tec_session_rows(session);
    return (struct tec_action_output_options){.on_miss = d ? d->on_miss : TEC_MISS_HOLD,
                                              .limit = tec_session_miss_limit(session, d),
                                              .decay_actions = d ? d->decay_actions : 0,
                                              .actions = actions > 0 ? actions
                                                         : ensembles ? 1
                                                                     : rows,
                                              .rows = rows,
                                              .width = tec_session_columns(session),
                                              .executed =
                                                  actions > 0 ? 0 : tec_session_executed(session),
                                              .limits = tec_session_limits(session),
                                              .ensembles = ensembles,
                                              .ensemble = ensemble};
}

/* How many rows the robot says that it executes; 0 = all of them, or the one of an ensemble. */
static int said(const struct tec_engine *engine, int action)
{
    const struct tec_session *session = tec_engine_session(engine, action);
    int rows = tec_session_rows(session), executed = tec_session_executed(session);
    double ensemble;
    return tec_session_ensembles(session, &ensemble) || executed > rows ? 0 : executed;
}

enum tec_status tec_watchdog_create(struct tec_watchdog *o, const struct tec_engine *engine,
                                    int session, int action, int actions, struct tec_arena *arena,
                                    struct tec_error *err)
{
    const struct tec_decl_deadline *d = tec_watchdog_deadline(engine->options.pipeline, action);
    struct tec_action_output_options options =
        tec_watchdog_output(engine, action, d, actions > 0 ? actions : said(engine, action));
    if (options.rows < 1) { /* a pipeline without actions: none is ever posted */
        options.rows = options.width = 1;
        options.actions = options.actions > 0 ? options.actions : 1;
    }
    *o = (struct tec_watchdog){.action = action,
                               .session = tec_engine_session_at(engine, session, action),
                               .actions = options.actions,
                               .rows = options.rows,
                               .columns = options.width,
                               .chunk = {.frame = -1}};
    tec_triple_init(&o->box);
    TEC_TRY(tec_action_output_create(&o->output, &options, arena, err));
    return take_memory(o, engine, arena, err);
}

void tec_watchdog_flush(struct tec_watchdog *o)
{
    if (!o->holds)
        return;
    o->holds = false;
    tec_triple_post(&o->box);
    tec_bell_ring(&o->bell);
}

static void put_chunk(const struct tec_watchdog *o, struct tec_watchdog_place *to,
                      const struct tec_watchdog_place *from)
{
    const struct tec_watchdog_place own = *to;
    *to = *from;
    to->chunk = own.chunk;
    to->state_raw = own.state_raw;
    memcpy(to->chunk, from->chunk, o->chunk_bytes);
    memcpy(to->state_raw, from->state_raw, o->state_bytes);
}

void tec_watchdog_post(struct tec_watchdog *o, int64_t frame, const struct tec_frame_record *record,
                       const float *chunk, const struct tec_observation_record *seen)
{
    struct tec_watchdog_place *place = &o->places[o->box.writing];
    if (chunk) {
        place->frame = frame;
        place->seen = seen->number;
        place->captured_ns = seen->captured_ns;
        place->released_ns = record->actions[o->action].release_ns;
        place->over = record->actions[o->action].over;
        place->left_out.frame = -1;
        memcpy(place->chunk, chunk, o->chunk_bytes);
        memcpy(place->state_raw, seen->state_raw, o->state_bytes);
    } else {
        if (!o->newest)
            place->frame = -1;
        else if (o->newest != place) /* the consumer may not have seen it yet */
            put_chunk(o, place, o->newest);
        place->left_out = (struct tec_watchdog_left_out){frame, seen->number, tec_clock_now(&wall)};
    }
    o->newest = place;
    o->holds = true;
    if (record->actions[o->action].to_come == 0)
        tec_watchdog_flush(o);
}

/* In the robot's units; the first row that is not finite ends it. */
static void take_chunk(struct tec_watchdog *o, const struct tec_watchdog_place *p)
{
    struct tec_beyond beyond;
    int rows = tec_session_act_on(o->session, p->state_raw, p->chunk, o->numbers, &beyond);
    for (int i = rows * o->columns; i < o->rows * o->columns; i++)
        o->numbers[i] = (double)NAN;
    o->released_ns = p->released_ns;
    o->chunk = (struct tec_action_output_chunk){.frame = p->frame,
                                                .captured_ns = p->captured_ns,
                                                .actions = o->numbers,
                                                .seen = p->seen,
                                                .over = p->over,
                                                .beyond = beyond};
}

/* Take the newest chunk, and a frame behind it that leaves the action out. */
static void take(struct tec_watchdog *o)
{
    if (!tec_triple_take(&o->box))
        return;
    const struct tec_watchdog_place *p = &o->places[o->box.reading];
    bool out = p->left_out.frame >= 0, known = out && p->frame <= o->chunk.frame;
    if (p->frame >= 0 && p->seen >= o->forgets && !known)
        take_chunk(o, p);
    if (!out || p->left_out.seen < o->forgets)
        return;
    if (o->chunk.frame >= 0) /* one that came late still serves the frames after its own */
        tec_action_output_late(o->output, &o->chunk);
    o->chunk = (struct tec_action_output_chunk){
        .frame = p->left_out.frame, .seen = p->left_out.seen, .left_out = true};
    o->released_ns = p->left_out.told_ns;
}

bool tec_watchdog_look(struct tec_watchdog *o, int64_t frame, int64_t deadline_ns,
                       struct tec_watchdog_given *given)
{
    take(o);
    int64_t now = tec_clock_now(&wall);
    bool in_time = o->chunk.frame >= frame && o->released_ns <= deadline_ns;
    if (!in_time && now < deadline_ns)
        return false;
    bool known = o->chunk.frame >= 0, own = o->chunk.frame >= frame;
    if (known && !own)
        tec_action_output_late(o->output, &o->chunk);
    given->handed = in_time ? tec_action_output_fresh(o->output, &o->chunk)
                            : tec_action_output_missed(o->output, frame);
    if (known && own && !in_time) /* a late chunk still serves the frames after this one */
        tec_action_output_late(o->output, &o->chunk);
    given->handed_ns = now;
    given->age_ns = given->handed.frame < 0 ? -1 : now - given->handed.captured_ns;
    return true;
}

void tec_watchdog_hand(struct tec_watchdog *o, int64_t frame, int64_t deadline_ns,
                       struct tec_watchdog_given *given)
{
    for (;;) {
        uint32_t seen = atomic_load(&o->bell.rings);
        if (tec_watchdog_look(o, frame, deadline_ns, given))
            return;
        tec_bell_wait(&o->bell, seen, deadline_ns);
    }
}

void tec_watchdog_stop(struct tec_watchdog *o)
{
    tec_action_output_stop(o->output);
}

void tec_watchdog_reset(struct tec_watchdog *o)
{
    tec_action_output_reset(o->output);
}

void tec_watchdog_forget(struct tec_watchdog *o, int64_t from)
{
    o->forgets = from;
    if (o->chunk.seen < from)
        o->chunk.frame = -1;
}
