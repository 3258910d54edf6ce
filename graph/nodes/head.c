/* head.c - a chunk of actions from the hidden rows of one forward, without a flow. */
#include "graph/nodes/head.h"

#include <stdio.h>

static int layer_norm(struct tec_lower *l, const struct tec_normed_weights *w, int x)
{
    const struct tec_tensor *t = x < 0 ? NULL : &l->program->tensors[x];
    struct tec_call call = tec_call_of(TEC_OP_layer_norm, "head_norm");
    call.in[0] = x;
    call.out[0] = t ? tec_program_tensor(l->program, "head_norm", t->rows, t->cols, t->live) : -1;
    call.args.norm.eps = l->model->head.eps;
    call.args.norm.round = l->round;
    call.args.norm.weight = w->norm;
    call.args.norm.bias = w->norm_bias;
    tec_program_call(l->program, &call);
    return call.out[0];
}

/* x += y. */
static void add(struct tec_lower *l, int x, int y)
{
    struct tec_call call = tec_call_of(TEC_OP_euler, "add");
    call.in[0] = y;
    call.out[0] = x;
    call.args.euler.dt = 1.0F;
    tec_program_call(l->program, &call);
}

/* The hidden rows of one action side by side. */
static int side_by_side(struct tec_lower *l)
{
    const struct tec_flow *f = &l->model->flow;
    const struct tec_prefix_table *t = l->prefix;
    int width = l->model->text.stack.width;
    struct tec_call call = tec_call_of(TEC_OP_take_rows, "rows");
    call.in[0] = l->hidden;
    call.out[0] = tec_program_tensor(l->program, "rows", f->horizon, f->dim * width, t->n_horizon);
    call.args.take.row = t->in_order;
    call.args.take.rows = t->n_zeros;
    call.args.take.max_rows = f->horizon * f->dim;
    call.args.take.group = f->dim;
    call.args.take.round = 0;
    tec_program_call(l->program, &call);
    return call.out[0];
}

void tec_lower_head(struct tec_lower *l)
{
    const struct tec_head *h = &l->model->head;
    const struct tec_head_weights *w = &l->weights->chunk;
    const struct tec_prefix_table *t = l->prefix;
    const struct tec_flow *f = &l->model->flow;
    int n = layer_norm(l, &w->in, side_by_side(l));
    tec_lower_tap(l, n, "head.norm");
    int x = tec_lower_linear(l, &w->in.dense, n, "head_in");
    tec_lower_tap(l, x, "head.in");
    tec_lower_relu(l, x);
    for (int i = 0; i < h->n_blocks; i++) {
        int y = tec_lower_linear(l, &w->blocks[i].dense, layer_norm(l, &w->blocks[i], x), "head");
        tec_lower_relu(l, y);
        add(l, x, y);
        tec_lower_tap(l, x, "head.block%d", i);
    }
    int chunk = tec_program_fixed(l->program, "actions", t->noise,
                                  (size_t)f->horizon * (size_t)t->ld * sizeof(float), f->horizon,
                                  f->dim, t->ld, t->n_horizon);
    tec_lower_linear_into(l, &w->out.dense, layer_norm(l, &w->out, x), chunk, 0, NULL, false,
                          "head_out");
}
