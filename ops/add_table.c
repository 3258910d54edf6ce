/* add_table.c - y[r] += table[r mod period], or table[row[r]].
 *   y [rows, cols]; table [period, ldt]. args: table, ldt, period, row (or NULL). */
#include "ops/call.h"

static enum tec_status infer(const struct tec_program *program, struct tec_call *call,
                             struct tec_error *err)
{
    const struct tec_tensor *y = tec_out(program, call, 0);
    struct tec_add_table_args *a = &call->args.add_table;
    TEC_TRY(TEC_NEED(y && a->table && a->period > 0 && a->ldt >= y->cols, err,
                     "needs y and a table of whole rows"));
    a->rows = y->live;
    a->max_rows = y->rows;
    a->cols = y->cols;
    a->ldy = y->ld;
    return TEC_OK;
}

static void record(const struct tec_program *program, const struct tec_call *call,
                   struct tec_capture *capture)
{
    struct tec_add_table_args a = call->args.add_table;
    a.y = (float *)(void *)tec_out(program, call, 0)->at;
    tec_capture_add(capture, TEC_KERNEL_add_table, &a, call->barrier, call->label);
}

/* R rows of c: one addition an element. y is read and written, and R indices where they are listed;
 * of the table as many rows as are used, at most its period. */
static struct tec_cost cost(const struct tec_call *call, const struct tec_counts *counts)
{
    const struct tec_add_table_args *a = &call->args.add_table;
    int64_t rows = tec_counts_rows(counts, a->rows, a->max_rows), n = rows * a->cols;
    int64_t used = rows < a->period ? rows : a->period;
    return (struct tec_cost){.other = n,
                             .weights = used * a->cols * 4,
                             .read = n * 4 + (a->row ? rows * 4 : 0),
                             .written = n * 4};
}

const struct tec_op tec_op_add_table = {
    .infer = infer, .record = record, .cost = cost, .rowwise = true};
