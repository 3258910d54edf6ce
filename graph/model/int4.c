/* int4.c - repacks matrices of 4-bit weights from the published formats into the kernels' panels.
 *
 * Runs at load; several threads make panels of their own. A published word holds eight columns of
 * one k (AWQ, in an interleaved order) or eight k of one column (GPTQ); a panel holds words of
 * eight k for each of 16 columns, group by group behind the group's scales and zeros. Where a file
 * assigns k to groups in another order, the weights are sorted by group and the order is kept, for
 * the activations to follow. */
#include "graph/model/int4.h"

#include "kernels/int4.h"
#include "kernels/matrix.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

/* A published matrix as it is in the checkpoint. */
struct published {
    const struct tec_int4_piece *piece;
    int groups;
    uint32_t *weights, *zeros; /* words of eight nibbles */
    uint16_t *scales;          /* [groups, rows] */
    int32_t *index;            /* [k] group of each k, or NULL: in order */
};

/* One tensor whole, of `count` elements of `size` bytes; an absent one that may be leaves NULL. */
static enum tec_status read_whole(const struct tec_weight_source *s, const char *weight,
                                  const char *what, enum tec_dtype dtype, const int64_t shape[2],
                                  int rank, bool optional, void *out, struct tec_heap *heap,
                                  struct tec_error *err)
{
    char name[256];
    void *block = NULL;
    memcpy(out, &block, sizeof block);
    tec_packed_name(name, weight, what);
    const struct tec_stored *t = tec_checkpoint_tensor(s->checkpoint, name);
    if (!t && optional)
        return TEC_OK;
    if (!t)
        return tec_fail(err, TEC_NOT_FOUND, "%s: lacks tensor '%s'", s->checkpoint->path, name);
    bool fits = t->rank == rank && t->shape[0] == shape[0] && (rank < 2 || t->shape[1] == shape[1]);
    if (!fits || t->dtype != dtype)
        return tec_fail(
            err, TEC_SHAPE,
            "%s: tensor '%s' must be %s [%lld%s%.0lld], is %s of rank %d with %lld rows",
            s->checkpoint->path, name, tec_dtype_name(dtype), (long long)shape[0],
            rank < 2 ? "" : ", ", rank < 2 ? 0LL : (long long)shape[1], tec_dtype_name(t->dtype),
            t->rank, t->rank ? (long long)t->shape[0] : 0LL);
    block = tec_heap_get(heap, t->bytes + 1);
    memcpy(out, &block, sizeof block);
    if (!block)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for %llu bytes of '%s'",
                        (unsigned long long)t->bytes, name);
    return tec_tensors_read(s->checkpoint->tensors, t, 0, block, t->bytes, err);
}

static enum tec_status read_all(const struct tec_weight_source *s, struct published *p,
                                struct tec_heap *heap, struct tec_error *err)
{
    const struct tec_int4_piece *piece = p->piece;
    bool awq = piece->packing->kind == TEC_PACKING_AWQ;
    int64_t k = piece->k, n = piece->rows;
    const int64_t weights[2] = {awq ? k : k / 8, awq ? n / 8 : n}, zeros[2] = {p->groups, n / 8};
    const int64_t scales[2] = {p->groups, n}, index[2] = {k, 0};
    TEC_TRY(
        read_whole(s, piece->name, "qweight", TEC_I32, weights, 2, false, &p->weights, heap, err));
    TEC_TRY(read_whole(s, piece->name, "qzeros", TEC_I32, zeros, 2, false, &p->zeros, heap, err));
    TEC_TRY(read_whole(s, piece->name, "scales", TEC_F16, scales, 2, false, &p->scales, heap, err));
    return awq ? TEC_OK
               : read_whole(s, piece->name, "g_idx", TEC_I32, index, 1, !piece->packing->ordered,
                            &p->index, heap, err);
}

/* The k of each group, one group after the other. Each has as many as its place says. */
static enum tec_status make_order(const struct tec_weight_source *s, const struct published *p,
                                  int *order, struct tec_error *err)
{
    int k = p->piece->k, group = p->piece->group, at = 0;
    for (int g = 0; g < p->groups; g++) {
        int want = k - g * group < group ? k - g * group : group, first = at;
        for (int i = 0; i < k; i++) {
            int of = p->index ? p->index[i] : i / group;
            if (of < 0 || of >= p->groups)
                return tec_fail(err, TEC_MALFORMED,
                                "%s: g_idx of '%s' element %d is %d; must be 0 .. %d",
                                s->checkpoint->path, p->piece->name, i, of, p->groups - 1);
            if (of == g && at - first < want)
                order[at++] = i;
            else if (of == g)
                at = k + 1;
            if (at > k)
                break;
        }
        if (at - first != want)
            return tec_fail(err, TEC_UNSUPPORTED,
                            "%s: g_idx of '%s' gives group %d not the %d rows that it must have",
                            s->checkpoint->path, p->piece->name, g, want);
    }
    return TEC_OK;
}

static enum tec_status check_order(const struct tec_weight_source *s, const struct published *p,
                                   const int *order, struct tec_error *err)
{
    for (int i = 0; i < p->piece->k && !p->piece->packing->ordered; i++)
        if (order[i] != i)
            return tec_fail(err, TEC_MALFORMED,
                            "%s: g_idx of '%s' is not in order, but config.json says desc_act = "
                            "false",
                            s->checkpoint->path, p->piece->name);
    return TEC_OK;
}

/* Returns the bit position of column n in a word. */
static int shift_of(const struct published *p, int n)
{
    static const int awq[8] = {0, 16, 4, 20, 8, 24, 12, 28};
    return p->piece->packing->kind == TEC_PACKING_AWQ ? awq[n % 8] : 4 * (n % 8);
}

/* Scales and zeros of a group for the columns of a panel from n on. */
static void put_group(const struct published *p, int g, int n, unsigned char *at)
{
    int rows = p->piece->rows;
    for (int c = 0; c < 16 && n + c < rows; c++) {
        size_t word = (size_t)g * (size_t)(rows / 8) + (size_t)((n + c) / 8);
        uint32_t zero = p->zeros[word] >> shift_of(p, n + c) & 15U;
        memcpy(at + 2 * (size_t)c, &p->scales[(size_t)g * (size_t)rows + (size_t)(n + c)], 2);
        at[TEC_INT4_ZEROS + c] = (unsigned char)(zero + (p->piece->packing->minus ? 1 : 0));
    }
}

/* Eight k of eight columns, words of which hold one k each. */
static void put_awq(const struct published *p, const int *k, int n, unsigned char *at)
{
    uint32_t from[TEC_INT4_DEEP];
    for (int j = 0; j < TEC_INT4_DEEP; j++)
        from[j] = p->weights[(size_t)k[j] * (size_t)(p->piece->rows / 8) + (size_t)(n / 8)];
    for (int c = 0; c < 8; c++) {
        uint32_t word = 0;
        for (int j = 0; j < TEC_INT4_DEEP; j++)
            word |= (from[j] >> shift_of(p, c) & 15U) << (4 * j);
        memcpy(at + 4 * (size_t)c, &word, sizeof word);
    }
}

/* As above, for words that hold eight k of one column. */
static void put_gptq(const struct published *p, const int *k, int n, unsigned char *at)
{
    size_t rows = (size_t)p->piece->rows;
    bool whole = k[0] % TEC_INT4_DEEP == 0;
    for (int j = 1; j < TEC_INT4_DEEP; j++)
        whole = whole && k[j] == k[0] + j;
    if (whole) { /* the word is what is wanted */
        memcpy(at, p->weights + (size_t)(k[0] / 8) * rows + (size_t)n, 8 * sizeof(uint32_t));
        return;
    }
    for (int c = 0; c < 8; c++) {
        uint32_t word = 0;
        for (int j = 0; j < TEC_INT4_DEEP; j++)
            word |=
                (p->weights[(size_t)(k[j] / 8) * rows + (size_t)(n + c)] >> (4 * (k[j] % 8)) & 15U)
                << (4 * j);
        memcpy(at + 4 * (size_t)c, &word, sizeof word);
    }
}

static void put_panel(const struct published *p, const int *order, int n, unsigned char *to)
{
    const struct tec_int4_piece *piece = p->piece;
    bool awq = piece->packing->kind == TEC_PACKING_AWQ;
    int columns = piece->rows - n < 16 ? piece->rows - n : 16; /* 8 or 16 */
    for (int first = 0; first < piece->k; first += piece->group) {
        int last = piece->k - first < piece->group ? piece->k : first + piece->group;
        put_group(p, first / piece->group, n, to);
        to += TEC_INT4_LINE;
        for (int k = first; k < last; k += TEC_INT4_DEEP, to += TEC_INT4_LINE)
            for (int c = 0; c < columns; c += 8)
                (awq ? put_awq : put_gptq)(p, order + k, n + c, to + 4 * (size_t)c);
    }
}

static enum tec_status check_scales(const struct tec_weight_source *s, const struct published *p,
                                    struct tec_error *err)
{
    size_t n = (size_t)p->groups * (size_t)p->piece->rows;
    for (size_t i = 0; i < n; i++)
        if ((p->scales[i] & 0x7c00U) == 0x7c00U)
            return tec_fail(err, TEC_MALFORMED, "%s: scale %zu of '%s' is not finite",
                            s->checkpoint->path, i, p->piece->name);
    return TEC_OK;
}

/* A panel of a hash's words, zeros of 8, and scales that give weights a variance of 1 / k. */
static void random_panel(const struct tec_weight_source *s, const struct tec_int4_piece *piece,
                         int n, unsigned char *to)
{
    size_t panel = tec_int4_panel(piece->k, piece->group), words = panel / 8;
    size_t first = (size_t)(n / 16) * words, length = strlen(piece->name);
    for (size_t i = 0; i < words; i++) {
        uint64_t bits = XXH3_64bits_withSeed(piece->name, length, s->seed + first + i);
        memcpy(to + i * 8, &bits, sizeof bits);
    }
    int exponent;
    double unit = frexp(1.0 / (4.61 * sqrt((double)piece->k)), &exponent); /* 0.5 .. 1 */
    uint16_t scale = (uint16_t)((exponent - 1 + 15) << 10 | (int)((unit * 2.0 - 1.0) * 1024.0));
    for (int g = 0; g * piece->group < piece->k; g++) {
        unsigned char *at = to + tec_int4_group(g, piece->group);
        memset(at, 0, TEC_INT4_LINE);
        for (int c = 0; c < 16 && n + c < piece->rows; c++) {
            memcpy(at + 2 * (size_t)c, &scale, sizeof scale);
            at[TEC_INT4_ZEROS + c] = 8;
        }
    }
}

/* The job that lanes share; each packs panels of its own. */
struct job {
    const struct tec_weight_source *source;
    const struct published *p;
    const int *order;
    unsigned char *to;
    int lanes;
};

static void put_share(void *user, int lane)
{
    const struct job *j = user;
    const struct tec_int4_piece *piece = j->p->piece;
    size_t panel = tec_int4_panel(piece->k, piece->group);
    struct tec_range share =
        tec_share((struct tec_part){lane, j->lanes}, (piece->rows + 15) / 16, 1);
    for (int i = share.first; i < share.last; i++) {
        if (j->source->checkpoint)
            put_panel(j->p, j->order, i * 16, j->to + (size_t)i * panel);
        else
            random_panel(j->source, piece, i * 16, j->to + (size_t)i * panel);
    }
}

static void put_all(const struct tec_weight_source *source, const struct published *p,
                    const int *order, unsigned char *to, struct tec_team *team)
{
    struct job j = {source, p, order, to, team ? tec_team_lanes(team) : 1};
    if (team)
        tec_team_run(team, put_share, &j);
    else
        put_share(&j, 0);
}

enum tec_status tec_packed_read(const struct tec_weight_source *source,
                                const struct tec_int4_piece *piece, unsigned char *to,
                                const struct tec_orders *orders, struct tec_team *team,
                                struct tec_heap *heap, struct tec_error *err)
{
    struct published p = {.piece = piece, .groups = (piece->k + piece->group - 1) / piece->group};
    int *order = orders->order + (size_t)orders->piece * (size_t)piece->k;
    for (int i = 0; !source->checkpoint && i < piece->k; i++)
        order[i] = i;
    if (!source->checkpoint) {
        put_all(source, &p, order, to, team);
        return TEC_OK;
    }
    enum tec_status status = read_all(source, &p, heap, err);
    if (status == TEC_OK)
        status = make_order(source, &p, order, err);
    if (status == TEC_OK)
        status = check_order(source, &p, order, err);
    if (status == TEC_OK)
        status = check_scales(source, &p, err);
    if (status == TEC_OK)
        put_all(source, &p, order, to, team);
    tec_heap_put(heap, p.weights);
    tec_heap_put(heap, p.zeros);
    tec_heap_put(heap, p.scales);
    tec_heap_put(heap, p.index);
    return status;
}
