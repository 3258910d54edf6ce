/* simulator_init.c - sets up a simulator from its pipeline and its scenario, and checks
 * that every cost it needs is there. */
#include "tools/simulate/simulated.h"
#include "tools/simulate/simulator.h"

#include <string.h>

/* Create an action output of a session from the hard deadline of its action node. */
static enum tec_status make_action_output(struct tec_simulator *w, struct tec_simulator_session *s,
                                          int action, struct tec_error *err)
{
    const struct tec_decl_node *n = tec_pipeline_action(w->o.pipeline, action);
    const struct tec_scenario *scenario = w->o.scenario;
    if (!scenario->output_actions || !n || (action == 0 && s->deadline_ns < 0))
        return TEC_OK;
    const struct tec_action_output_options o = {.on_miss = n->deadline.on_miss,
                                                .limit = n->deadline.limit,
                                                .decay_actions = n->deadline.decay_actions,
                                                .actions = scenario->output_actions,
                                                .rows = w->o.engine->topology.horizon,
                                                .width = scenario->output_dims};
    return tec_action_output_create(&s->outputs[action], &o, w->arena, err);
}

static enum tec_status make_sessions(struct tec_simulator *w, struct tec_error *err)
{
    const struct tec_scenario *scenario = w->o.scenario;
    const struct tec_loop_options *loop = tec_loop_settings(w->o.engine->loop);
    int64_t period = w->o.engine->topology.period_us * 1000;
    int64_t deadline = loop->n_actions ? loop->actions[0].deadline_ns : 0;
    w->n_sessions = scenario->n_sessions ? scenario->n_sessions : w->o.pipeline->frame.sessions;
    for (int i = 0; i < w->n_sessions; i++) {
        struct tec_simulator_session *s = &w->sessions[i];
        const struct tec_scenario_session *from = &scenario->sessions[i];
        *s = (struct tec_simulator_session){.period_ns = period,
                                            .deadline_ns = deadline ? deadline : -1,
                                            .spawn_every = -1,
                                            .waiting = -1,
                                            .open = -1};
        if (w->n_sessions > 1)
            s->name = tec_arena_printf(w->arena, "%d", i);
        if (scenario->n_sessions) {
            s->name = from->name;
            s->period_ns = from->period_us * 1000;
            s->offset_ns = from->offset_us * 1000;
            s->deadline_ns = from->deadline_us < 0 ? s->deadline_ns : from->deadline_us * 1000;
            s->spawn_every = from->spawn_every;
        }
        if (w->paced && s->period_ns <= 0)
            return tec_fail(err, TEC_INVALID,
                            "the pipeline has no period: a paced clock needs one");
        for (int a = 0; a < loop->n_actions; a++)
            TEC_TRY(make_action_output(w, s, a, err));
    }
    return TEC_OK;
}

static enum tec_status make_lists(struct tec_simulator *w, struct tec_simulator_session *of,
                                  struct tec_error *err)
{
    const struct tec_scenario *s = w->o.scenario;
    size_t asks = (size_t)s->arrivals.n + TEC_MAX_ARRIVALS;
    size_t cancels = (size_t)s->cancel.n + TEC_SIMULATOR_LATER;
    of->asks = TEC_NEW(w->arena, asks, struct tec_ask);
    of->cancel_after = TEC_NEW(w->arena, asks, int);
    of->cancels = TEC_NEW(w->arena, cancels, int64_t);
    if (!of->asks || !of->cancel_after || !of->cancels)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for requests");
    return TEC_OK;
}

/* What sessions read in a frame, and what they ask for. */
static enum tec_status make_givens(struct tec_simulator *w, struct tec_error *err)
{
    size_t columns = (size_t)w->o.scenario->output_dims + 1;
    w->chunk = TEC_NEW(w->arena, (size_t)w->o.engine->topology.horizon * columns + 1, double);
    if (!w->chunk)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for actions");
    for (int i = 0; i < w->n_sessions; i++) {
        TEC_TRY(tec_simulated_input(&w->sessions[i].input, w->o.engine, w->arena, err));
        TEC_TRY(make_lists(w, &w->sessions[i], err));
    }
    return TEC_OK;
}

/* Whether a launch of that name exists; a ring's launches have names of their own. */
static bool has_launch(const struct tec_simulator *w, const char *name)
{
    const struct tec_topology *t = &w->o.engine->topology;
    const struct tec_loop_options *loop = tec_loop_settings(w->o.engine->loop);
    for (int n = 0; n < t->n_nodes; n++)
        if (!t->nodes[n].ring && strcmp(t->nodes[n].name, name) == 0)
            return true;
    bool any = false;
    for (int i = 0; i < loop->n_chains; i++)
        any |= loop->chains[i].ring && (strcmp(name, loop->chains[i].packed) == 0 ||
                                        strcmp(name, loop->chains[i].alone) == 0);
    return any;
}

static enum tec_status check_tokens(const struct tec_simulator *w, int64_t tokens,
                                    const char *where, int index, struct tec_error *err)
{
    int most = w->o.engine->plan->spec.text_tokens;
    if (tokens <= most)
        return TEC_OK;
    if (index < 0)
        return tec_fail(err, TEC_MALFORMED, "text_tokens is %lld, the pipeline's prompt has %d",
                        (long long)tokens, most);
    return tec_fail(err, TEC_MALFORMED, "%s[%d]: text_tokens is %lld, the pipeline's prompt has %d",
                    where, index, (long long)tokens, most);
}

/* Whether actions, or requests of later frames, stand on an earlier frame's prefix. */
static bool keeps_prefix(const struct tec_simulator *w)
{
    const struct tec_loop_options *loop = tec_loop_settings(w->o.engine->loop);
    bool keeps = false;
    for (int i = 0; i < loop->n_actions; i++)
        keeps |= loop->actions[i].prev;
    for (int i = 0; i < loop->n_chains; i++) {
        const struct tec_loop_chain *c = &loop->chains[i];
        keeps |= c->holds || (c->in_frames && (c->every > 1 || c->on_change));
    }
    return keeps;
}

/* Between two chunks of a node with a rate the robot carries out the first. */
static enum tec_status check_rests(const struct tec_simulator *w, struct tec_error *err)
{
    const struct tec_loop_options *loop = tec_loop_settings(w->o.engine->loop);
    int64_t actions = w->o.scenario->output_actions;
    int horizon = w->o.engine->topology.horizon;
    for (int i = 0; i < loop->n_actions; i++)
        if (loop->actions[i].every > 1 && actions * loop->actions[i].every > horizon)
            return tec_fail(err, TEC_MALFORMED,
                            "%lld actions a frame are handed out, '%s' runs every %d frames: a "
                            "chunk has %d",
                            (long long)actions, loop->actions[i].name, loop->actions[i].every,
                            horizon);
    return TEC_OK;
}

static enum tec_status check_scenario(const struct tec_simulator *w, struct tec_error *err)
{
    const struct tec_scenario *s = w->o.scenario;
    const struct tec_topology *t = &w->o.engine->topology;
    TEC_TRY(tec_simulated_check(w->o.engine, w->o.costs, err));
    for (int i = 0; i < s->costs_from.n; i++)
        TEC_TRY(tec_simulated_check(w->o.engine, &s->costs_from.item[i].costs, err));
    for (int i = 0; i < s->spikes.n; i++)
        if (!has_launch(w, s->spikes.item[i].name))
            return tec_fail(err, TEC_MALFORMED,
                            t->n_rings ? "spikes[%d]: a ring runs 'packed' and 'decode', not '%s'"
                                       : "spikes[%d]: no node is named '%s'",
                            i, s->spikes.item[i].name);
    TEC_TRY(check_tokens(w, s->text_tokens, "", -1, err));
    for (int i = 0; i < s->instruction.n; i++)
        TEC_TRY(check_tokens(w, s->instruction.item[i].value, "instruction", i, err));
    int most = w->o.pipeline->frame.sessions;
    if (most > 1 && s->n_sessions > most)
        return tec_fail(err, TEC_MALFORMED, "sessions: the pipeline's frame has %d, there are %d",
                        most, s->n_sessions);
    if ((t->n_rings || keeps_prefix(w)) && most == 1 && s->n_sessions > 1)
        return tec_fail(err, TEC_MALFORMED,
                        "sessions: %s is of one session, there are %d and the pipeline's frame has "
                        "one",
                        t->n_rings ? "a ring" : "a prefix that later frames read", s->n_sessions);
    if (s->output_actions > t->horizon)
        return tec_fail(err, TEC_MALFORMED, "%d actions a frame are handed out, a chunk has %d",
                        s->output_actions, t->horizon);
    return check_rests(w, err);
}

enum tec_status tec_simulator_init(struct tec_simulator *simulator,
                                   const struct tec_simulator_options *options,
                                   struct tec_arena *arena, struct tec_error *err)
{
    struct tec_simulator *w = simulator;
    w->o = *options;
    w->arena = arena;
    w->paced = w->o.scenario->paced;
    w->running = -1;
    w->costs = w->o.costs;
    w->held = json_array();
    w->o.device->contention = w->costs->contention;
    TEC_TRY(check_scenario(w, err));
    TEC_TRY(make_sessions(w, err));
    TEC_TRY(make_givens(w, err));
    tec_summary_init(&w->summary, w->o.engine->topology.horizon,
                     tec_loop_settings(w->o.engine->loop), arena);
    w->summary.ring = w->o.engine->topology.n_rings > 0;
    return TEC_OK;
}
