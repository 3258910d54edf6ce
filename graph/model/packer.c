/* packer.c - packs a matrix into panels with several threads, chunk by chunk, and uploads it.
 *
 * Runs at load. Each lane reads, converts and packs whole panels of its own; the calling thread
 * then uploads the chunks in the order of rows and reports the first failure in that order. So
 * neither the bytes nor the error message depends on the number of threads, and the buffers stay
 * small whatever the size of the matrix. */
#include "graph/model/packer.h"

#include "kernels/conv.h"
#include "kernels/int4.h"
#include "kernels/int8.h"
#include "kernels/matrix.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

/* A chunk is whole panels of about CHUNK floats: some hundred microseconds of work, so that meeting
 * after each costs little. Smaller matrices than ALONE are not worth waking anybody. */
enum { CHUNK = 1 << 17, ALONE = 1 << 20, PANEL = 16, SPIN_US = 200 };

/* One tensor; what lanes share. Lane i takes the chunk that begins at row first + i * step. */
struct job {
    struct tec_packer *packer;
    const struct tec_found *found;
    struct tec_packed_columns columns;
    enum tec_matrix_layout layout;
    char *to;
    bool in_place; /* the device's memory is the host's */
    int64_t first, step;
};

void tec_packer_open(struct tec_packer *packer, const struct tec_weight_source *source,
                     struct tec_device *device, struct tec_heap *heap)
{
    *packer = (struct tec_packer){.source = *source, .device = device, .heap = heap};
}

void tec_packer_close(struct tec_packer *packer)
{
    tec_team_destroy(packer->team);
    packer->team = NULL;
    for (int i = 0; i < TEC_PACKER_LANES; i++) {
        tec_heap_put(packer->heap, packer->lanes[i].rows);
        tec_heap_put(packer->heap, packer->lanes[i].packed);
        packer->lanes[i] = (struct tec_packer_lane){0};
    }
}

size_t tec_packed_size(enum tec_matrix_layout layout, enum tec_form form, int rows, int k)
{
    if (form == TEC_FORM_INT4)
        return tec_int4_size(tec_padded(rows), k, TEC_INT4_GROUP);
    if (form == TEC_FORM_POINTS)
        return tec_conv_size(layout, rows, k);
    return form == TEC_FORM_INT8 ? tec_int8_size(tec_padded(rows), k)
                                 : tec_matrix_size(layout, form == TEC_FORM_BF16, rows, k);
}

static size_t packed_size(const struct job *j, int64_t rows)
{
    return tec_packed_size(j->layout, j->columns.form, (int)rows, j->columns.cols);
}

static int64_t chunk_rows(const struct job *j, int lane, int64_t *first)
{
    *first = j->first + lane * j->step;
    int64_t left = j->found->rows - *first;
    return left < 0 ? 0 : left < j->step ? left : j->step;
}

/* Keep columns from .. from + cols - 1 of rows of `all`. */
static void keep_columns(float *rows, int64_t n, int64_t all, struct tec_packed_columns c)
{
    if (c.cols == all)
        return;
    for (int64_t r = 0; r < n; r++)
        memmove(rows + r * c.cols, rows + r * all + c.from, (size_t)c.cols * sizeof *rows);
}

void tec_packer_turn(float *row, int64_t n, int turn, float *spare)
{
    int64_t inner = n / turn;
    memcpy(spare, row, (size_t)n * sizeof *spare);
    for (int64_t i = 0; i < n; i++)
        row[i % inner * turn + i / inner] = spare[i];
}

/* float16 has no scale for a group of 4-bit weights that reaches further. Columns that are not kept
 * may, but in turned rows, whose columns are all kept: by one matrix or another. */
static enum tec_status check_range(const struct job *j, int64_t first, int64_t n, const float *rows,
                                   struct tec_error *err)
{
    const struct tec_checkpoint *from = j->packer->source.checkpoint;
    const struct tec_found *f = j->found;
    const struct tec_packed_columns *kept = &j->columns;
    for (int64_t i = 0; i < n * f->cols; i++) {
        int64_t at = (f->first + first) * f->cols + i, column = i % f->cols;
        bool in = kept->turn || (column >= kept->from && column < kept->from + kept->cols);
        if (in && fabsf(rows[i]) > (float)TEC_INT4_MOST)
            return tec_fail(
                err, TEC_UNSUPPORTED,
                "%s: tensor '%s' element %lld is %g; what is kept in 4 bits must be within +-%d",
                from ? from->path : "-", f->name, (long long)at, (double)rows[i], TEC_INT4_MOST);
    }
    return TEC_OK;
}

static void pack_rows(const struct job *j, int n, const float *rows, void *to)
{
    int k = j->columns.cols;
    if (j->columns.form == TEC_FORM_INT4)
        tec_int4_pack(to, n, k, TEC_INT4_GROUP, 0, n, rows);
    else if (j->columns.form == TEC_FORM_INT8)
        tec_int8_pack(to, n, k, 0, n, rows);
    else
        tec_matrix_pack(to, j->layout, j->columns.form == TEC_FORM_BF16, n, k, 0, n, rows);
}

static void pack_chunk(void *user, int lane)
{
    struct job *j = user;
    struct tec_packer_lane *l = &j->packer->lanes[lane];
    int64_t first, n = chunk_rows(j, lane, &first);
    l->status = TEC_OK;
    if (n == 0)
        return;
    l->status = tec_weight_rows(&j->packer->source, j->found, first, n, l->rows, &l->err);
    if (l->status == TEC_OK && j->columns.form == TEC_FORM_INT4)
        l->status = check_range(j, first, n, l->rows, &l->err);
    if (l->status != TEC_OK)
        return;
    int64_t cols = j->found->cols;
    for (int64_t r = 0; r < n && j->columns.turn; r++)
        tec_packer_turn(l->rows + r * cols, cols, j->columns.turn, l->rows + j->step * cols);
    keep_columns(l->rows, n, cols, j->columns);
    void *to = j->in_place ? j->to + packed_size(j, first) : l->packed;
    if (!j->in_place)
        memset(to, 0, packed_size(j, n));
    pack_rows(j, (int)n, l->rows, to);
}

static bool grow(struct tec_heap *heap, void **at, size_t *room, size_t size)
{
    if (size <= *room)
        return true;
    tec_heap_put(heap, *at);
    *at = tec_heap_get(heap, size);
    *room = *at ? size : 0;
    return *at;
}

static enum tec_status make_room(struct job *j, int lanes, struct tec_error *err)
{
    size_t rows = (size_t)((j->step + 1) * j->found->cols) * sizeof(float); /* and one spare */
    size_t packed = j->in_place ? 0 : packed_size(j, j->step);
    for (int i = 0; i < lanes; i++) {
        struct tec_packer_lane *l = &j->packer->lanes[i];
        void *as_read = l->rows;
        bool ok = grow(j->packer->heap, &as_read, &l->rows_room, rows);
        l->rows = as_read;
        if (!ok || !grow(j->packer->heap, &l->packed, &l->packed_room, packed))
            return tec_fail(err, TEC_NO_MEMORY, "no memory for a chunk of weights of %zu bytes",
                            rows + packed);
    }
    return TEC_OK;
}

/* The threads for a matrix of so many values; NULL if it is small or no threads can be had: the
 * caller then packs alone. */
struct tec_team *tec_packer_team(struct tec_packer *packer, int64_t values)
{
    struct tec_error why;
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    int most = online > TEC_PACKER_LANES ? TEC_PACKER_LANES : (int)online;
    if (values < ALONE || most < 2)
        return NULL;
    if (!packer->team &&
        tec_team_create(&packer->team, most, SPIN_US, packer->heap, &why) != TEC_OK)
        packer->team = NULL;
    return packer->team;
}

/* Collects the lanes' results in the order of rows and returns the first failure in that order. */
static enum tec_status hand_over(struct job *j, int lanes, struct tec_error *err)
{
    for (int i = 0; i < lanes; i++) {
        struct tec_packer_lane *l = &j->packer->lanes[i];
        int64_t first, n = chunk_rows(j, i, &first);
        if (l->status != TEC_OK) {
            *err = l->err;
            return l->status;
        }
        if (n > 0 && !j->in_place)
            tec_device_upload(j->packer->device, TEC_STREAM_MAIN, j->to + packed_size(j, first),
                              l->packed, packed_size(j, n));
    }
    return tec_device_failure(j->packer->device, err);
}

enum tec_status tec_packer_rows(struct tec_packer *packer, const struct tec_found *found,
                                struct tec_packed_columns columns, void *to, struct tec_error *err)
{
    if (packer->source.dry || found->rows == 0)
        return TEC_OK;
    int64_t step = CHUNK / found->cols / PANEL * PANEL;
    step = step < PANEL ? PANEL : step;
    struct job j = {.packer = packer,
                    .found = found,
                    .columns = columns,
                    .layout = tec_device_layout(packer->device),
                    .to = to,
                    .in_place = tec_device_reads_host(packer->device),
                    .step =
                        step < tec_padded((int)found->rows) ? step : tec_padded((int)found->rows)};
    struct tec_team *team = tec_packer_team(packer, found->rows * found->cols);
    int lanes = team ? tec_team_lanes(team) : 1;
    TEC_TRY(make_room(&j, lanes, err));
    for (; j.first < found->rows; j.first += j.step * lanes) {
        if (team)
            tec_team_run(team, pack_chunk, &j);
        else
            pack_chunk(&j, 0);
        TEC_TRY(hand_over(&j, lanes, err));
    }
    return TEC_OK;
}
