/* loading.c - helpers for loading weights: packed and joined matrices.
 *
 * Runs at load on one thread; the packer uses more. Matrices that share an input (q, k and v, or
 * gate and up) are joined at panel borders into one block, so a single matrix product serves all of
 * them and each part stays a view. */
#include "graph/model/loading.h"

#include "kernels/matrix.h"

enum tec_status tec_weight_loading_pack(struct tec_weight_loading *l, const struct tec_found *found,
                                        void *to, struct tec_packed_columns columns)
{
    return tec_packer_rows(&l->packer, found, columns, to, l->err);
}

enum tec_status tec_weight_loading_found(struct tec_weight_loading *l,
                                         const struct tec_found *found, int turn,
                                         enum tec_form form, struct tec_matrix *m)
{
    TEC_TRY(tec_weight_loading_matrix(l, (int)found->rows, (int)found->cols, form, m));
    return tec_weight_loading_pack(l, found, m->w,
                                   (struct tec_packed_columns){0, (int)found->cols, form, turn});
}

/* Piece i's weight and bias: the tensors of their names, or for a joined matrix rows of one tensor.
 */
static enum tec_status load_piece(struct tec_weight_loading *l, const struct tec_piece *piece,
                                  int k, int total, struct tec_packed_columns columns, void *w,
                                  float *bias)
{
    struct tec_expected e = {.names = {piece->weight},
                             .n_names = 1,
                             .rank = 2,
                             .shape = {total ? total : piece->rows, k}};
    struct tec_found found = {0};
    int first = total ? piece->first : 0, n = total ? total : piece->rows;
    TEC_TRY(tec_weight_find(&l->source, &e, &found, l->err));
    found.first = first;
    found.rows = piece->rows;
    TEC_TRY(tec_weight_loading_pack(l, &found, w, columns));
    TEC_TRY(tec_weight_loading_reserve(l, n));
    TEC_TRY(tec_weight_vector(&l->source, piece->bias, n, 0.0F, l->buffer, l->err));
    if (bias && !l->source.dry)
        tec_device_upload(l->options->device, TEC_STREAM_MAIN, bias, l->buffer + first,
                          (size_t)piece->rows * 4);
    return TEC_OK;
}

/* Joined matrices of inner length k; at[i] is the first column of piece i. `total` > 0: they are
 * rows of one tensor that has so many. */
enum tec_status tec_weight_loading_pieces(struct tec_weight_loading *l,
                                          const struct tec_piece *pieces, int n, int k, int total,
                                          enum tec_form form, struct tec_matrix *m, int *at)
{
    int rows = 0;
    bool biased = false;
    for (int i = 0; i < n; i++) {
        at[i] = rows;
        rows += tec_padded(pieces[i].rows);
        biased |= pieces[i].bias != NULL;
    }
    void *bias = NULL;
    TEC_TRY(tec_weight_loading_matrix(l, rows, k, form, m));
    if (biased)
        TEC_TRY(tec_weight_loading_block(l, (size_t)rows * 4, &bias));
    m->bias = bias;
    if (n == 1)
        m->cols = pieces[0].rows;
    if (l->packing)
        return tec_weight_loading_packed(l, pieces, n, k, at, m, bias);
    for (int i = 0; i < n; i++)
        TEC_TRY(load_piece(l, &pieces[i], k, total, (struct tec_packed_columns){0, k, form, 0},
                           (char *)m->w + tec_weight_loading_size(l, at[i], k, form),
                           biased ? (float *)bias + at[i] : NULL));
    return TEC_OK;
}

enum tec_status tec_weight_loading_dense(struct tec_weight_loading *l, const struct tec_dense *d,
                                         enum tec_form form, struct tec_matrix *m)
{
    int at;
    if (!d->weight)
        return TEC_OK;
    struct tec_piece piece = {d->weight, d->bias, d->rows, 0};
    return tec_weight_loading_pieces(l, &piece, 1, d->cols, 0, form, m, &at);
}
