/* shift.c - keys and values from slots to slots: a ring whose sequences move, and one that gathers.
 * Each layer moves its own inside a forward; the interpreter has a part for those of all layers. */
#include "graph/nodes/node.h"

void tec_lower_move(struct tec_lower *l, const struct tec_moves *moves, int from, int to,
                    const char *label)
{
    struct tec_call call = tec_call_of(TEC_OP_move_kv, label);
    call.in[0] = from;
    call.out[0] = to;
    call.args.move = (struct tec_move_args){.moves = moves->list,
                                            .count = moves->count,
                                            .max_moves = moves->max,
                                            .max_tokens = l->max_moved,
                                            .row = (int)tec_kv_row_bytes(&l->space->shape)};
    tec_program_call(l->program, &call);
}

void tec_lower_shift(struct tec_lower *l)
{
    for (int i = 0; i < 2 * l->space->shape.layers; i++) {
        int at = tec_lower_kv(l, l->space, i / 2, i % 2 != 0);
        tec_lower_move(l, l->moves, at, at, "shift");
    }
}
