/* place_kv.c - kept keys and values go to their slots, keys rotated to their place.
 *   k, v: one layer of a slot space, both fixed. args: places, count, max_places, max_tokens,
 *   cos_sin, kv_heads, head_dim. */
#include "ops/call.h"

#include <limits.h>

static enum tec_status infer(const struct tec_program *program, struct tec_call *call,
                             struct tec_error *err)
{
    const struct tec_tensor *k = tec_out(program, call, 0), *v = tec_out(program, call, 1);
    const struct tec_place_args *a = &call->args.place;
    TEC_TRY(TEC_NEED(k && v && k->fixed && v->fixed, err, "needs k and v, fixed tensors"));
    TEC_TRY(TEC_NEED(a->places && a->count && a->max_places > 0 && a->max_tokens > 0, err,
                     "needs places, of how many tokens, and their number"));
    TEC_TRY(TEC_NEED(a->max_tokens <= INT_MAX / a->max_places, err,
                     "%d places of %d tokens are too many", a->max_places, a->max_tokens));
    TEC_TRY(TEC_NEED(a->kv_heads > 0 && a->head_dim > 0, err, "%d kv heads of %d", a->kv_heads,
                     a->head_dim));
    TEC_TRY(TEC_NEED(!a->cos_sin || a->head_dim % 2 == 0, err,
                     "head_dim must be even to rotate, is %d", a->head_dim));
    size_t row = (size_t)a->kv_heads * (size_t)a->head_dim * (call->bf16 ? 2 : 4);
    size_t most = k->size < v->size ? k->size : v->size;
    return TEC_NEED((size_t)a->max_tokens <= most / row, err,
                    "%d slots of %zu bytes, into %zu bytes", a->max_tokens, row, most);
}

static void record(const struct tec_program *program, const struct tec_call *call,
                   struct tec_capture *capture)
{
    struct tec_place_args a = call->args.place;
    a.k = tec_out(program, call, 0)->at;
    a.v = tec_out(program, call, 1)->at;
    tec_capture_add(capture, call->bf16 ? TEC_KERNEL_place_kv_bf16 : TEC_KERNEL_place_kv_f32, &a,
                    call->barrier, call->label);
}

/* P places of T tokens in all, as many as is said, else as there may be; g key heads of d. A pair
 * takes 4 multiplications and 2 additions, so an element of a key 3. Read: what says where, kept
 * keys and values, and with a rotation d / 2 pairs of cos and sin for each token. */
static struct tec_cost cost(const struct tec_call *call, const struct tec_counts *counts)
{
    const struct tec_place_args *a = &call->args.place;
    int64_t places = tec_counts_rows(counts, a->count, a->max_places);
    int64_t tokens = places * a->max_tokens, row = (int64_t)a->kv_heads * a->head_dim;
    for (int i = 0; i < counts->n; i++)
        if (counts->items[i].count == a->count && counts->items[i].keys > 0)
            tokens = counts->items[i].keys;
    int64_t bytes = tec_cost_times(tokens, 2 * row * (call->bf16 ? 2 : 4));
    return (struct tec_cost){
        .other = a->cos_sin ? tec_cost_times(tokens, row * 3) : 0,
        .weights = a->cos_sin ? tec_cost_times(tokens, (int64_t)a->head_dim * 4) : 0,
        .read = places * (int64_t)sizeof *a->places,
        .kv_read = bytes,
        .kv_written = bytes,
    };
}

const struct tec_op tec_op_place_kv = {.infer = infer, .record = record, .cost = cost};
