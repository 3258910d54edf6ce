/* linear.c - products with a model's matrices, and what is done to their results: sums,
 * activations, positions; copies, some rows, constants. */
#include "graph/nodes/node.h"
#include "kernels/matrix.h"

#include <string.h>

int tec_lower_linear(struct tec_lower *l, const struct tec_matrix *m, int x, const char *label)
{
    const struct tec_tensor *t = x < 0 ? NULL : &l->program->tensors[x];
    int y = t ? tec_program_tensor(l->program, label, t->rows, m->cols, t->live) : -1;
    tec_lower_linear_into(l, m, x, y, 0, NULL, false, label);
    return y;
}

static void set_matrix(const struct tec_lower *l, struct tec_call *call, const struct tec_matrix *m)
{
    call->bf16 = m->form == TEC_FORM_BF16;
    call->int8 = m->form == TEC_FORM_INT8;
    call->args.gemm.w = m->w;
    call->args.gemm.bias = m->bias;
    call->args.gemm.n = m->n;
    call->args.gemm.k = m->k;
    call->args.gemm.group = m->group;
    call->args.gemm.order = m->order;
    call->args.gemm.order_of = m->order_of;
    call->args.gemm.terms = call->bf16 && l->two_terms ? 2 : 0;
    call->args.gemm.digits = m->group && l->weights->bf16 ? 2 : call->int8 && l->one_digit ? 1 : 0;
}

static struct tec_call linear(const struct tec_lower *l, const struct tec_matrix *m, int x, int y,
                              bool add, const char *label)
{
    struct tec_call call = tec_call_of(TEC_OP_linear, label);
    call.in[0] = x;
    call.out[0] = y;
    set_matrix(l, &call, m);
    call.args.gemm.add = add;
    return call;
}

void tec_lower_linear_into(struct tec_lower *l, const struct tec_matrix *m, int x, int y,
                           int out_row, const struct tec_gate *gate, bool add, const char *label)
{
    struct tec_call call = linear(l, m, x, y, add, label);
    call.out_row = out_row;
    if (gate) {
        call.args.gemm.gate = gate->at;
        call.args.gemm.fixed = gate->fixed;
        call.args.gemm.fixed_gate = gate->clean;
    }
    tec_program_call(l->program, &call);
}

void tec_lower_linear_rows(struct tec_lower *l, const struct tec_matrix *m, int x, int y,
                           const struct tec_part_rows *part, bool add, const char *label)
{
    struct tec_call call = linear(l, m, x, y, add, label);
    call.in_row = part->in_row;
    call.out_row = part->out_row;
    if (part->gate)
        call.args.gemm.gate = part->gate->at;
    call.args.gemm.rows = part->rows;
    call.args.gemm.max_rows = part->max_rows;
    tec_program_call(l->program, &call);
}

void tec_lower_linear_windows(struct tec_lower *l, const struct tec_matrix *m, int x, int y,
                              const struct tec_windows *windows, bool add, const char *label)
{
    struct tec_call call = linear(l, m, x, y, add, label);
    call.windows = *windows;
    tec_program_call(l->program, &call);
}

void tec_lower_copy(struct tec_lower *l, int x, int y, int row, const char *label)
{
    struct tec_call call = tec_call_of(TEC_OP_copy, label);
    call.in[0] = x;
    call.out[0] = y;
    call.out_row = row;
    tec_program_call(l->program, &call);
}

int tec_lower_take(struct tec_lower *l, const struct tec_rows *rows, const int *row, int x,
                   const char *label)
{
    int cols = x < 0 ? 0 : l->program->tensors[x].cols;
    int y = x < 0 ? -1 : tec_program_tensor(l->program, label, rows->max, cols, rows->count);
    struct tec_call call = tec_call_of(TEC_OP_take_rows, label);
    call.in[0] = x;
    call.out[0] = y;
    call.args.take.row = row;
    call.args.take.group = 1;
    tec_program_call(l->program, &call);
    return y;
}

int tec_lower_constant(struct tec_lower *l, const float *at, int rows, int cols, const int *live)
{
    int ld = tec_padded(cols);
    void *memory = NULL;
    memcpy(&memory, &at, sizeof memory);
    return tec_program_fixed(l->program, "constant", memory,
                             (size_t)rows * (size_t)ld * sizeof(float), rows, cols, ld, live);
}

static struct tec_call activation(enum tec_activation f, int x, int y, const char *label)
{
    static const enum tec_op_id ops[] = {[TEC_ACTIVATION_GELU] = TEC_OP_gelu,
                                         [TEC_ACTIVATION_GELU_ERF] = TEC_OP_gelu_erf,
                                         [TEC_ACTIVATION_SILU] = TEC_OP_silu,
                                         [TEC_ACTIVATION_RELU] = TEC_OP_relu};
    struct tec_call call = tec_call_of(ops[f], label);
    call.in[0] = x;
    call.out[0] = y;
    return call;
}

void tec_lower_activation(struct tec_lower *l, enum tec_activation f, int x, int y)
{
    struct tec_call call = activation(f, x, y, "act");
    call.args.map.round = l->round;
    tec_program_call(l->program, &call);
}

void tec_lower_map(struct tec_lower *l, enum tec_activation f, int x, int y)
{
    struct tec_call call = activation(f, x, y, f == TEC_ACTIVATION_RELU ? "relu" : "act");
    tec_program_call(l->program, &call);
}

void tec_lower_position(struct tec_lower *l, int x, const float *table, int rows)
{
    struct tec_call call = tec_call_of(TEC_OP_add_table, "position");
    if (!table || x < 0)
        return;
    call.out[0] = x;
    call.args.add_table.table = table;
    call.args.add_table.ldt = l->program->tensors[x].ld;
    call.args.add_table.period = rows;
    tec_program_call(l->program, &call);
}
