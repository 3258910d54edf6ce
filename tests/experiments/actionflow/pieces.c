/* pieces.c - the timed calls of forwards as pieces of a frame, and beside the machine's ceilings.
 */
#include "tests/experiments/actionflow/actionflow.h"

#include <math.h>
#include <string.h>

const char *const tec_actionflow_pieces[TEC_ACTIONFLOW_PIECES] = {"pictures", "prefix", "decode",
                                                                  "head", "copies"};

static enum tec_actionflow_piece piece_of(const struct tec_op_time *op, bool decode)
{
    if (strcmp(op->label, "head") == 0 || strcmp(op->label, "next_token") == 0)
        return TEC_ACTIONFLOW_HEAD;
    if (strcmp(op->label, "gather") == 0 || strcmp(op->label, "shift") == 0)
        return TEC_ACTIONFLOW_MOVES;
    if (op->stage == TEC_STAGE_PICTURES)
        return TEC_ACTIONFLOW_PICTURES;
    return decode ? TEC_ACTIONFLOW_DECODE : TEC_ACTIONFLOW_PREFIX;
}

bool tec_actionflow_has_pieces(enum tec_actionflow_variant variant)
{
    return variant != TEC_ACTIONFLOW_UNPACKED && variant != TEC_ACTIONFLOW_NAIVE;
}

static double ms_of(const struct tec_actionflow *s, int forward, enum tec_actionflow_piece piece)
{
    const struct tec_actionflow_forward *f = &s->forwards[forward];
    double ns = f->known ? 0.0 : (double)NAN;
    for (int i = 0; i < f->times.n && f->known; i++)
        if (piece_of(&f->times.items[i], forward == TEC_ACTIONFLOW_ONE) == piece)
            ns += f->times.items[i].ns;
    return ns / 1e6;
}

double tec_actionflow_piece_ms(const struct tec_actionflow *s, enum tec_actionflow_variant variant,
                               enum tec_actionflow_piece piece)
{
    const struct tec_actionflow_cell *c = &s->cells[s->by_call];
    if (!tec_actionflow_has_pieces(variant))
        return (double)NAN;
    if (variant == TEC_ACTIONFLOW_GATHER)
        return ms_of(s, TEC_ACTIONFLOW_GATHERED, piece);
    if (variant == TEC_ACTIONFLOW_SEQUENTIAL)
        return ms_of(s, TEC_ACTIONFLOW_ALONE, piece) +
               (c->stages > 1 ? (c->stages - 1) * ms_of(s, TEC_ACTIONFLOW_ONE, piece) : 0.0);
    if (variant == TEC_ACTIONFLOW_COPY)
        return ms_of(s, TEC_ACTIONFLOW_MOVED, piece);
    return ms_of(s, TEC_ACTIONFLOW_FULL, piece);
}

double tec_actionflow_roof_ns(const struct tec_actionflow *s, const struct tec_cost *cost)
{
    double flop = (double)tec_cost_flops(cost) / s->flop_s;
    double bytes = (double)tec_cost_bytes(cost) / s->read_s;
    return isnan(flop) || isnan(bytes) ? (double)NAN : 1e9 * (flop > bytes ? flop : bytes);
}
