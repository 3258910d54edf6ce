/* run.c - all points take turns: reset, warm-up, frames, next point; several rounds. Points of one
 * S run on engines that are open at once, so that what is compared lies close together in time. */
#include "tests/experiments/oxygen/frame.h"
#include "tests/experiments/oxygen/parallel.h"

#include "tools/api/topology.h"
#include "tools/measure/machine.h"

#include <math.h>
#include <string.h>

/* What a group of points runs on. */
struct group {
    struct tec_oxygen_engine engine[TEC_OXYGEN_ROBOTS];
    struct tec_oxygen_engine many; /* LIBERO: several sessions in a frame */
    struct tec_oxygen_pair pair[TEC_OXYGEN_INPUTS];
    bool pairs; /* the parallel baseline can be run */
    struct tec_oxygen_block block;
};

static bool make_room(struct tec_oxygen *suite)
{
    for (int i = 0; i < suite->n_points; i++) {
        struct tec_oxygen_point *p = &suite->points[i];
        p->room = suite->rounds * (p->warmup + p->frames);
        p->request_room = p->room * 8;
        p->frame = TEC_NEW(suite->call->arena, (size_t)p->room, struct tec_oxygen_frame);
        p->request =
            TEC_NEW(suite->call->arena, (size_t)p->request_room, struct tec_oxygen_request);
        if (!p->frame || !p->request)
            return false;
    }
    return true;
}

static void count_energy(struct tec_oxygen *suite, struct tec_oxygen_point *p, double before)
{
    double after;
    if (before >= 0.0 && tec_energy_read(&suite->energy, &after))
        p->joules += after - before;
    else
        p->joules = (double)NAN;
}

/* The policy of a point, with its k; closed by the caller. */
static enum tec_status open_policy(struct tec_policy **policy, const struct tec_oxygen_block *b,
                                   struct tec_error *err)
{
    const struct tec_oxygen_point *p = b->point;
    struct tec_opened *o = &b->engine->base.opened;
    char word[16];
    const char *const words[] = {word};
    snprintf(word, sizeof word, "k=%d", p->k);
    return tec_open_policy(policy, o->pipeline, tec_oxygen_policies[p->setting],
                           b->engine->base.call.root, &o->engine->topology, words, p->k ? 1 : 0,
                           b->engine->base.call.heap, err);
}

static enum tec_status run_block(struct tec_oxygen *suite, struct group *g,
                                 struct tec_oxygen_point *p, struct tec_error *err)
{
    struct tec_oxygen_block *b = &g->block;
    struct tec_policy *policy;
    double joules = -1.0;
    memset(b, 0, sizeof *b);
    b->engine = p->together ? &g->many : &g->engine[p->robot];
    b->point = p;
    TEC_TRY(tec_arrivals_parse(&b->arrivals, p->load ? p->load->spec : "uniform:1", p->N, 42, err));
    TEC_TRY(tec_oxygen_show(b->engine, p->input, err));
    TEC_TRY(open_policy(&policy, b, err));
    b->planner = tec_policy_planner(policy);
    tec_loop_restart(b->engine->base.opened.engine->loop);
    for (int f = 0; f < p->warmup + p->frames; f++) {
        if (f == p->warmup)
            tec_energy_read(&suite->energy, &joules);
        tec_oxygen_run_frame(b, f, f < p->warmup);
        TEC_TRY(tec_device_failure(b->engine->base.opened.engine->device, err));
    }
    count_energy(suite, p, joules);
    tec_loop_set_planner(b->engine->base.opened.engine->loop, &tec_default_planner);
    tec_loop_restart(b->engine->base.opened.engine->loop);
    p->policy_failures += tec_policy_report(policy)->failures;
    tec_policy_close(policy);
    p->ran = true;
    p->plan_bytes = b->engine->base.opened.engine->plan->bytes.total;
    return TEC_OK;
}

static enum tec_status run_pair(struct tec_oxygen *suite, struct group *g,
                                struct tec_oxygen_point *p, struct tec_error *err)
{
    struct tec_oxygen_pair *pair = &g->pair[p->input];
    double joules = -1.0;
    TEC_TRY(tec_oxygen_pair_begin(pair, err));
    for (int f = 0; f < p->warmup + p->frames; f++) {
        if (f == p->warmup)
            tec_energy_read(&suite->energy, &joules);
        TEC_TRY(tec_oxygen_pair_frame(pair, p, f, f < p->warmup, err));
    }
    count_energy(suite, p, joules);
    p->ran = true;
    p->plan_bytes = tec_oxygen_pair_bytes(pair);
    return TEC_OK;
}

static bool in_group(const struct tec_oxygen *suite, const struct tec_oxygen_point *p, int S,
                     int robot)
{
    return p->S == S && (!suite->full || p->robot == robot);
}

/* Open what the points of the group need and is not open. */
static enum tec_status open_group(struct tec_oxygen *suite, struct group *g, int S, int robot,
                                  struct tec_error *err)
{
    for (int i = 0; i < suite->n_points; i++) {
        const struct tec_oxygen_point *p = &suite->points[i];
        if (!in_group(suite, p, S, robot))
            continue;
        struct tec_oxygen_pair *pair = &g->pair[p->input];
        struct tec_oxygen_engine *e = p->together ? &g->many : &g->engine[p->robot];
        const struct tec_oxygen_plan plan = {tec_oxygen_robots[p->robot].file, S, 0,
                                             p->together ? TEC_OXYGEN_SESSIONS : 0};
        if (p->setting == TEC_OXYGEN_PARALLEL && g->pairs && !pair->open)
            TEC_TRY(tec_oxygen_pair_open(pair, suite, S, p->input, err));
        if (p->setting != TEC_OXYGEN_PARALLEL && !e->base.open)
            TEC_TRY(tec_oxygen_open(e, suite, &plan, err));
    }
    return TEC_OK;
}

static enum tec_status run_points(struct tec_oxygen *suite, struct group *g, int S, int robot,
                                  struct tec_error *err)
{
    for (int round = 0; round < suite->rounds; round++)
        for (int i = 0; i < suite->n_points; i++) {
            struct tec_oxygen_point *p = &suite->points[i];
            if (!in_group(suite, p, S, robot) || (p->setting == TEC_OXYGEN_PARALLEL && !g->pairs))
                continue;
            if (suite->call->progress)
                fprintf(
                    stderr, "\r\033[Kbench: S %d, round %d of %d, point %d of %d: %s %s N %d k %d",
                    S, round + 1, suite->rounds, i + 1, suite->n_points,
                    tec_oxygen_robots[p->robot].name, tec_oxygen_policies[p->setting], p->N, p->k);
            TEC_TRY(p->setting == TEC_OXYGEN_PARALLEL ? run_pair(suite, g, p, err)
                                                      : run_block(suite, g, p, err));
        }
    return TEC_OK;
}

static enum tec_status run_group(struct tec_oxygen *suite, struct group *g, int S, int robot,
                                 struct tec_error *err)
{
    memset(g, 0, sizeof *g);
    enum tec_status status = tec_oxygen_pair_possible(suite, &g->pairs, err);
    if (status == TEC_OK)
        status = open_group(suite, g, S, robot, err);
    if (status == TEC_OK && !suite->machine) {
        for (int i = 0; i < TEC_OXYGEN_ROBOTS && !suite->machine; i++)
            if (g->engine[i].base.open)
                suite->machine = tec_machine_json(g->engine[i].base.opened.engine->device);
    }
    if (status == TEC_OK)
        status = run_points(suite, g, S, robot, err);
    for (int i = 0; i < TEC_OXYGEN_ROBOTS; i++)
        tec_oxygen_close(&g->engine[i]);
    tec_oxygen_close(&g->many);
    for (int i = 0; i < TEC_OXYGEN_INPUTS; i++)
        tec_oxygen_pair_close(&g->pair[i]);
    return status;
}

static bool has_points(const struct tec_oxygen *suite, int S, int robot)
{
    for (int i = 0; i < suite->n_points; i++)
        if (in_group(suite, &suite->points[i], S, robot))
            return true;
    return false;
}

enum tec_status tec_oxygen_run(struct tec_oxygen *suite, struct tec_error *err)
{
    struct group *g = TEC_NEW(suite->call->arena, 1, struct group);
    if (!g || !make_room(suite))
        return tec_fail(err, TEC_NO_MEMORY, "no memory for the suite's frames");
    suite->load_before = tec_machine_load();
    for (const int *S = tec_oxygen_s; *S; S++)
        for (int robot = 0; robot < (suite->full ? TEC_OXYGEN_ROBOTS : 1); robot++)
            if (has_points(suite, *S, robot)) {
                TEC_TRY(run_group(suite, g, *S, robot, err));
                TEC_TRY(tec_oxygen_sum(suite, err)); /* a long run leaves what it has */
                TEC_TRY(tec_oxygen_write_json(suite, err));
            }
    suite->load_after = tec_machine_load();
    if (suite->call->progress)
        fputs("\r\033[K", stderr);
    return TEC_OK;
}
