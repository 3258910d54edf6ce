/* action.c - a chunk of actions: what functions of the model's description make of the frame's keys
 * or rows (built.h), or a head the tokens of its prefill's last rows. */
#include "graph/nodes/built.h"

static void lower(struct tec_lower *l)
{
    if (l->model->program)
        tec_lower_built(l, TEC_PART_OF_ACTION);
    else
        tec_lower_next_tokens(l, l->hidden);
}

const struct tec_node_kind tec_node_action = {
    .name = "action", .text = "noise to a chunk of actions", .timed = true, .lower = lower};
