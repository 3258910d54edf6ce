/* action.c - a chunk of actions: what functions of the model's description make of the frame's keys
 * or rows (built.h), or a head the tokens of its prefill's last rows. */
#include "graph/nodes/built.h"

/* Of a flow what does not depend on its x, then its steps. */
static void act(struct tec_lower *l)
{
    const struct tec_model_program *p = l->model->program;
    struct tec_built b;
    if (!tec_built_begin(&b, l, p, l->weights->calls))
        return;
    tec_built_calls(&b, p->parts[TEC_PART_OF_ACTION], p->n, false);
    if (p->flow.steps)
        tec_built_steps(&b);
    else if (!b.settled[p->result])
        tec_built_copy(&b, p->result, tec_built_chunk(&b), 0);
}

static void lower(struct tec_lower *l)
{
    if (l->model->program)
        act(l);
    else
        tec_lower_next_tokens(l, l->hidden);
}

const struct tec_node_kind tec_node_action = {
    .name = "action", .text = "noise to a chunk of actions", .timed = true, .lower = lower};
