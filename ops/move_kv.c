/* move_kv.c - runs of slots from one place to another, in order.
 *   from, to: one layer of a slot space each, perhaps the same; both fixed. args: moves, count,
 *   max_moves, max_tokens, row (bytes of a slot). */
#include "ops/call.h"

static enum tec_status infer(const struct tec_program *program, struct tec_call *call,
                             struct tec_error *err)
{
    const struct tec_tensor *from = tec_in(program, call, 0), *to = tec_out(program, call, 0);
    const struct tec_move_args *a = &call->args.move;
    TEC_TRY(TEC_NEED(from && to && from->fixed && to->fixed, err,
                     "needs slots to read and to write, of fixed tensors"));
    TEC_TRY(TEC_NEED(a->moves && a->count && a->max_moves > 0 && a->max_tokens > 0, err,
                     "needs moves, of how many slots, and their number"));
    TEC_TRY(TEC_NEED(a->row > 0 && a->row % 2 == 0, err, "a slot of %d bytes", a->row));
    size_t most = (size_t)a->max_tokens * (size_t)a->row;
    return TEC_NEED(most <= from->size && most <= to->size, err,
                    "%d slots of %d bytes, of %zu and into %zu bytes", a->max_tokens, a->row,
                    from->size, to->size);
}

static void record(const struct tec_program *program, const struct tec_call *call,
                   struct tec_capture *capture)
{
    struct tec_move_args a = call->args.move;
    a.from = tec_in(program, call, 0)->at;
    a.to = tec_out(program, call, 0)->at;
    tec_capture_add(capture, TEC_KERNEL_move_kv, &a, call->barrier, call->label);
}

/* M moves of as many slots as is said, else as one may have; 12 bytes say what a move is. */
static struct tec_cost cost(const struct tec_call *call, const struct tec_counts *counts)
{
    const struct tec_move_args *a = &call->args.move;
    int64_t moves = tec_counts_rows(counts, a->count, a->max_moves);
    int64_t slots = moves * a->max_tokens;
    for (int i = 0; i < counts->n; i++)
        if (counts->items[i].count == a->count && counts->items[i].keys > 0)
            slots = counts->items[i].keys;
    int64_t bytes = tec_cost_times(slots, a->row);
    return (struct tec_cost){.read = moves * 12, .kv_read = bytes, .kv_written = bytes};
}

const struct tec_op tec_op_move_kv = {.infer = infer, .record = record, .cost = cost};
