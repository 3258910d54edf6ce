/* encoded.c - all rows of an observation through an encoder, and a chunk from learned queries that
 * ask its rows. The frame keeps what the queries read: the keys and values that each of their
 * layers makes of the encoder's rows. */
#include "graph/nodes/encoded.h"

#include <string.h>

/* Memory that is only read, as a tensor. */
static int constant(struct tec_lower *l, const float *at, int rows, int cols, const int *live)
{
    int ld = (cols + 15) / 16 * 16;
    void *memory = NULL;
    memcpy(&memory, &at, sizeof memory);
    return tec_program_fixed(l->program, "constant", memory,
                             (size_t)rows * (size_t)ld * sizeof(float), rows, cols, ld, live);
}

static void copy_to(struct tec_lower *l, int x, int y, int row, const char *label)
{
    struct tec_call call = tec_call_of(TEC_OP_copy, label);
    call.in[0] = x;
    call.out[0] = y;
    call.out_row = row;
    tec_program_call(l->program, &call);
}

static void front_rows(struct tec_lower *l, int x)
{
    const struct tec_row_encoder *e = &l->model->encoder;
    const struct tec_prefix_table *t = l->prefix;
    for (int i = 0; i < e->n_rows; i++) {
        const struct tec_front_row *row = &e->rows[i];
        if (row->constant) {
            const float *at = l->weights->encoder.constant[i];
            copy_to(l, constant(l, at, 1, e->stack.width, t->one), x, i, "constant");
            continue;
        }
        int state = tec_program_fixed(l->program, "state", t->state + row->place,
                                      (size_t)(t->ld - row->place) * sizeof(float), 1,
                                      row->dense.cols, t->ld - row->place, t->one);
        tec_lower_tap(l, state, "state%d", i);
        tec_lower_linear_into(l, &l->weights->encoder.front[i], state, x, i, NULL, false,
                              "state_in");
    }
}

/* The keys and values of a layer of the queries, to the frame's slots. */
static void keep_keys(struct tec_lower *l, int layer, int x)
{
    const struct tec_stack *s = &l->model->queries.stack;
    const struct tec_layer *w = &l->weights->queries.stack.layers[layer];
    int kv = tec_lower_linear(l, &w->cross_kv, x, "cross_kv");
    tec_lower_position(l, kv, w->cross_kv_shift, l->prefix->encoder.max);
    struct tec_call call = tec_call_of(TEC_OP_rope_store, "keep");
    struct tec_rope_args *a = &call.args.rope;
    call.in[0] = kv;
    call.out[1] = tec_lower_kv(l, l->space, layer, false);
    call.out[2] = tec_lower_kv(l, l->space, layer, true);
    call.bf16 = l->space->shape.bf16;
    a->slot = l->prefix->prefix.slot;
    a->pos = l->prefix->prefix.pos;
    a->q_at = -1;
    a->v_at = w->cross_v_at;
    a->heads = s->heads;
    a->kv_heads = s->kv_heads;
    a->head_dim = s->head_dim;
    tec_program_call(l->program, &call);
}

void tec_lower_encoded(struct tec_lower *l)
{
    const struct tec_row_encoder *e = &l->model->encoder;
    const struct tec_rows *rows = &l->prefix->encoder;
    const struct tec_forward f = {.stack = &e->stack,
                                  .weights = &l->weights->encoder.stack,
                                  .space = &l->towers[0],
                                  .rows = rows,
                                  .tap = "encoder.",
                                  .tap_inside = true};
    int x = tec_program_tensor(l->program, "rows", rows->max, e->stack.width, rows->count);
    front_rows(l, x);
    for (int s = 0; s < l->model->n_slots; s++) {
        int picture = tec_lower_net(l, s);
        copy_to(l, picture, x, e->n_rows + tec_model_picture_rows(l->model, s), "picture");
    }
    tec_lower_tap(l, x, "encoder.in");
    if (l->taps)
        tec_lower_tap(
            l, constant(l, l->weights->encoder.position, rows->max, e->stack.width, rows->count),
            "encoder.position");
    x = tec_lower_forward(l, &f, x);
    if (e->stack.names[TEC_ROLE_final])
        x = tec_lower_norm(l, &f, 0, 2, x, false, "final");
    tec_lower_tap(l, x, "encoder.out");
    for (int i = 0; i < l->model->queries.stack.layers; i++)
        keep_keys(l, i, x);
}

void tec_lower_queries(struct tec_lower *l)
{
    const struct tec_queries *q = &l->model->queries;
    const struct tec_flow *flow = &l->model->flow;
    const struct tec_prefix_table *t = l->prefix;
    const struct tec_rows *rows = &t->suffix;
    const struct tec_forward f = {.stack = &q->stack,
                                  .weights = &l->weights->queries.stack,
                                  .space = l->space,
                                  .rows = rows,
                                  .asked = &t->asked,
                                  .tap = "queries.",
                                  .tap_inside = true};
    int x = tec_program_tensor(l->program, "queries", rows->max, q->stack.width, rows->count);
    copy_to(l, constant(l, l->weights->queries.start, rows->max, q->stack.width, rows->count), x, 0,
            "start");
    x = tec_lower_norm(l, &f, 0, 2, tec_lower_forward(l, &f, x), false, "final");
    tec_lower_tap(l, x, "queries.out");
    int chunk = tec_program_fixed(l->program, "actions", t->noise,
                                  (size_t)flow->horizon * (size_t)t->ld * sizeof(float),
                                  flow->horizon, flow->dim, t->ld, t->n_horizon);
    tec_lower_linear_into(l, &l->weights->queries.out, x, chunk, 0, NULL, false, "actions");
}
