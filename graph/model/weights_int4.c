/* weights_int4.c - a layer's matrices of 4-bit weights on their way to a device. */
#include "graph/model/int4.h"
#include "graph/model/loading.h"
#include "kernels/int4.h"
#include "kernels/matrix.h"

/* Piece i's 4-bit weights to `w`; its order of k, where it has one, to order[orders++] and the
 * panels'. */
static enum tec_status load_packed_piece(struct tec_weight_loading *l,
                                         const struct tec_piece *piece, int k, char *w,
                                         struct tec_orders *orders)
{
    const struct tec_int4_piece from = {.name = piece->weight,
                                        .packing = l->packing,
                                        .rows = piece->rows,
                                        .k = k,
                                        .group = tec_weight_loading_group(l, k)};
    size_t size = tec_weight_loading_size(l, piece->rows, k, TEC_FORM_INT4);
    bool in_place = tec_device_reads_host(l->options->device);
    unsigned char *to = in_place ? (unsigned char *)w : tec_heap_get(l->heap, size);
    if (!to)
        return tec_fail(l->err, TEC_NO_MEMORY, "no memory for %zu bytes of weights", size);
    struct tec_team *team = tec_packer_team(&l->packer, (int64_t)piece->rows * k);
    enum tec_status status = tec_packed_read(&l->source, &from, to, orders, team, l->heap, l->err);
    if (!in_place) {
        if (status == TEC_OK)
            tec_device_upload(l->options->device, TEC_STREAM_MAIN, w, to, size);
        tec_heap_put(l->heap, to);
    }
    return status;
}

static enum tec_status load_packed_bias(struct tec_weight_loading *l, const struct tec_piece *piece,
                                        float *bias)
{
    TEC_TRY(tec_weight_loading_reserve(l, piece->rows));
    TEC_TRY(tec_weight_vector(&l->source, piece->bias, piece->rows, 0.0F, l->buffer, l->err));
    if (bias && !l->source.dry)
        tec_device_upload(l->options->device, TEC_STREAM_MAIN, bias, l->buffer,
                          (size_t)piece->rows * 4);
    return TEC_OK;
}

/* Where packed k are not those of x in order: the orders that pieces have, and whose a panel is. */
static enum tec_status load_orders(struct tec_weight_loading *l, const struct tec_orders *orders,
                                   int n, int k, struct tec_matrix *m)
{
    void *order = NULL, *of = NULL;
    if (!l->packing->ordered)
        return TEC_OK;
    TEC_TRY(tec_weight_loading_block(l, (size_t)n * (size_t)k * sizeof(int), &order));
    TEC_TRY(tec_weight_loading_block(l, (size_t)m->n / 16 * sizeof(int), &of));
    m->order = order;
    m->order_of = of;
    if (l->source.dry)
        return TEC_OK;
    tec_device_upload(l->options->device, TEC_STREAM_MAIN, order, orders->order,
                      (size_t)n * (size_t)k * sizeof(int));
    tec_device_upload(l->options->device, TEC_STREAM_MAIN, of, orders->panel,
                      (size_t)m->n / 16 * sizeof(int));
    return TEC_OK;
}

static enum tec_status load_all(struct tec_weight_loading *l, const struct tec_piece *pieces, int n,
                                int k, const int *at, struct tec_matrix *m, float *bias,
                                struct tec_orders *orders)
{
    for (int i = 0; i < n; i++) {
        int panels = tec_padded(pieces[i].rows) / 16;
        for (int p = 0; p < panels; p++)
            orders->panel[at[i] / 16 + p] = i;
        orders->piece = i;
        if (!l->source.dry)
            TEC_TRY(load_packed_piece(
                l, &pieces[i], k,
                (char *)m->w + tec_weight_loading_size(l, at[i], k, TEC_FORM_INT4), orders));
        TEC_TRY(load_packed_bias(l, &pieces[i], bias ? bias + at[i] : NULL));
    }
    return load_orders(l, orders, n, k, m);
}

enum tec_status tec_weight_loading_packed(struct tec_weight_loading *l,
                                          const struct tec_piece *pieces, int n, int k,
                                          const int *at, struct tec_matrix *m, float *bias)
{
    struct tec_orders orders = {.order = tec_heap_get(l->heap, (size_t)n * (size_t)k * sizeof(int)),
                                .panel = tec_heap_get(l->heap, (size_t)m->n / 16 * sizeof(int))};
    enum tec_status status = TEC_OK;
    if (!orders.order || !orders.panel)
        status = tec_fail(l->err, TEC_NO_MEMORY, "no memory for an order");
    else
        status = load_all(l, pieces, n, k, at, m, bias, &orders);
    tec_heap_put(l->heap, orders.order);
    tec_heap_put(l->heap, orders.panel);
    return status;
}
