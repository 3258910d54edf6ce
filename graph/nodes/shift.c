/* shift.c - keys and values of all layers from slots to slots: a ring whose sequences move. */
#include "graph/nodes/node.h"

static void move(struct tec_lower *l, void *at, bool values)
{
    const struct tec_kv_space *s = l->space;
    int cols = s->shape.kv_heads * s->shape.head_dim;
    struct tec_call call = tec_call_of(TEC_OP_move_kv, "shift");
    call.in[0] = call.out[0] =
        tec_program_fixed(l->program, values ? "v" : "k", at, s->bytes, s->slots, cols, cols, NULL);
    call.args.move = (struct tec_move_args){.moves = l->moves->list,
                                            .count = l->moves->count,
                                            .max_moves = l->moves->max,
                                            .max_tokens = l->max_moved,
                                            .row = cols * (s->shape.bf16 ? 2 : 4)};
    tec_program_call(l->program, &call);
}

void tec_lower_shift(struct tec_lower *l)
{
    for (int i = 0; i < l->space->shape.layers; i++) {
        move(l, l->space->k[i], false);
        move(l, l->space->v[i], true);
    }
}
