/* take_rows.c - y[r / group] = rows row[r] of x, group of them side by side.
 *   x [.., cols], y [max_rows / group rounded up, group * cols], another tensor than x. args: row,
 *   group >= 1, round; rows (the number taken; NULL where group is 1: the live rows of y); max_rows
 *   (0: as many as y holds). */
#include "ops/call.h"

#include <limits.h>

static enum tec_status infer(const struct tec_program *program, struct tec_call *call,
                             struct tec_error *err)
{
    const struct tec_tensor *x = tec_in(program, call, 0), *y = tec_out(program, call, 0);
    struct tec_take_args *a = &call->args.take;
    TEC_TRY(TEC_NEED(x && y && x != y && a->row, err, "needs x, another y and row"));
    TEC_TRY(TEC_NEED(a->group >= 1 && a->group <= y->cols && y->cols == a->group * x->cols, err,
                     "%d rows of %d side by side do not make %d columns", a->group, x->cols,
                     y->cols));
    TEC_TRY(TEC_NEED(a->rows || a->group == 1, err, "needs the number of rows to take"));
    if (!a->rows)
        a->rows = y->live;
    long room = (long)y->rows * a->group;
    TEC_TRY(TEC_NEED(a->max_rows >= 0 && a->max_rows <= room && room <= INT_MAX, err,
                     "%d rows to take, y holds %ld", a->max_rows, room));
    if (a->max_rows == 0)
        a->max_rows = (int)room;
    a->x_rows = x->rows;
    a->cols = x->cols;
    a->ldx = x->ld;
    a->ldy = y->ld;
    return TEC_OK;
}

static void record(const struct tec_program *program, const struct tec_call *call,
                   struct tec_capture *capture)
{
    struct tec_take_args a = call->args.take;
    a.x = (const float *)(const void *)tec_in(program, call, 0)->at;
    a.y = (float *)(void *)tec_out(program, call, 0)->at;
    tec_capture_add(capture, TEC_KERNEL_take_rows, &a, call->barrier, call->label);
}

/* R rows of c elements, and R indices. */
static struct tec_cost cost(const struct tec_call *call, const struct tec_counts *counts)
{
    const struct tec_take_args *a = &call->args.take;
    int64_t rows = tec_counts_rows(counts, a->rows, a->max_rows), n = rows * a->cols;
    return (struct tec_cost){.read = n * 4 + rows * 4, .written = n * 4};
}

/* Not row-wise: a lane reads rows that others wrote. */
const struct tec_op tec_op_take_rows = {.infer = infer, .record = record, .cost = cost};
