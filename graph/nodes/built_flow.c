/* built_flow.c - the steps of a flow's action.
 *
 * What does not depend on x is made once before the steps, which are unrolled. What depends on the
 * time alone is in tables. */
#include "graph/nodes/built.h"

#include <math.h>

/* How much a step at this time is pulled: s / tau (s^2 + tau^2) / s^2 with s the time that is left
 * and tau what is done, at most `most`, which also is the pull of the first step. */
static float pull_at(double s, double most)
{
    double tau = 1.0 - s;
    double pull = tau > 0.0 ? s / tau * ((s * s + tau * tau) / (s * s)) : most;
    return (float)fmin(pull, most);
}

/* Pulls v towards the earlier chunk (real-time chunking by guidance, arXiv 2506.07339, as LeRobot's
 * RTCProcessor has it). Times count exactly, as LeRobot's loop has them. */
static void guide(struct tec_built *b, int v, int x)
{
    const struct tec_program_flow *f = &b->p->flow;
    struct tec_lower *l = b->l;
    const struct tec_prefix_table *t = l->prefix;
    double time = 1.0 + b->step * (-1.0 / l->timed->steps);
    struct tec_call call = tec_call_of(TEC_OP_guide, "guide");
    call.in[0] = x;
    int rows = t->most * f->horizon;
    call.in[1] = tec_program_fixed(l->program, "previous", t->previous,
                                   (size_t)rows * (size_t)t->ld * sizeof(float), rows, f->dim,
                                   t->ld, t->n_horizon);
    call.out[0] = v;
    call.args.guide.weight = t->pulls;
    call.args.guide.time = (float)time;
    call.args.guide.gain = pull_at(time, (double)l->guidance);
    tec_program_call(l->program, &call);
    tec_lower_tap(l, v, "v_guided.%d", b->step);
}

/* x moves by what the action has made; its first *n_fixed rows, given actions, stay. */
static void euler(struct tec_built *b, int x)
{
    struct tec_lower *l = b->l;
    struct tec_call call = tec_call_of(TEC_OP_euler, "euler");
    call.in[0] = b->tensor[b->p->result];
    call.out[0] = x;
    call.args.euler.dt = (float)((b->p->flow.falls ? -1.0 : 1.0) / l->timed->steps);
    call.args.euler.fixed = l->prefix->n_fixed;
    tec_program_call(l->program, &call);
    tec_lower_tap(l, x, "x_t.%d", b->step + 1);
}

/* Rows of the time that have names. */
static void tap_times(struct tec_built *b)
{
    for (int i = 0; i < b->p->n && b->l->taps; i++) {
        const struct tec_model_call *c = &b->p->calls[i];
        if (c->timed && c->name)
            tec_built_tap(b,
                          tec_lower_constant(b->l, tec_timed_row(b->l->timed, i, b->step), 1,
                                             c->cols, b->l->prefix->one),
                          c->name);
    }
}

static void step(struct tec_built *b, int x)
{
    const struct tec_model_program *p = b->p;
    struct tec_lower *l = b->l;
    for (int i = p->parts[TEC_PART_OF_ACTION]; i < p->n; i++) {
        b->tensor[i] = p->calls[i].moves ? -1 : b->tensor[i];
        b->settled[i] = false;
    }
    b->tensor[p->noise] = x;
    tap_times(b);
    tec_built_calls(b, p->parts[TEC_PART_OF_ACTION], p->n, true);
    tec_lower_tap(l, b->tensor[p->result], "v_t.%d", b->step);
    if (l->prefix->previous)
        guide(b, b->tensor[p->result], x);
    euler(b, x);
}

void tec_built_steps(struct tec_built *b)
{
    int x = tec_built_chunk(b), steps = b->l->timed->steps;
    tec_built_project_keys(b);
    for (b->step = 0; b->step < steps && b->l->program->status == TEC_OK; b->step++)
        step(b, x);
}
