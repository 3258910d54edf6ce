/* features.c - a text that becomes rows of features. Its own keys are needed by nobody behind it
 * and lie in scratch; the frame keeps the keys and values that a denoiser's layers make of the
 * features.
 *
 * In memory the rows of pictures stand before the others. Text counts by the order of the sequence,
 * so its scratch slots are positions; what the frame keeps lies in the order of memory, so that
 * rows of pictures are one run of slots and all others another. */
#include "graph/nodes/features.h"

/* A layer norm of the features. */
static int norm(struct tec_lower *l, const struct tec_plain_norm *n, int x)
{
    const struct tec_tensor *t = x < 0 ? NULL : &l->program->tensors[x];
    struct tec_call call = tec_call_of(TEC_OP_layer_norm, "features_norm");
    if (!n->weight)
        return x;
    call.in[0] = x;
    call.out[0] =
        t ? tec_program_tensor(l->program, "features_norm", t->rows, t->cols, t->live) : -1;
    call.args.norm.weight = l->weights->features.norm;
    call.args.norm.bias = l->weights->features.norm_bias;
    call.args.norm.eps = n->eps;
    tec_program_call(l->program, &call);
    return call.out[0];
}

/* A tensor whose values are rounded, as matrices read them: x where nothing is. */
static int rounded(struct tec_lower *l, int x)
{
    const struct tec_tensor *t = x < 0 ? NULL : &l->program->tensors[x];
    struct tec_call call = tec_call_of(TEC_OP_copy, "features");
    if (!l->round || !t)
        return x;
    call.in[0] = x;
    call.out[0] = tec_program_tensor(l->program, "features", t->rows, t->cols, t->live);
    call.args.map.round = true;
    tec_program_call(l->program, &call);
    return call.out[0];
}

/* The keys and values of a crossing layer, to the frame's slots. */
static void keep(struct tec_lower *l, const struct tec_forward *f, int layer, int x)
{
    const struct tec_layer *w = &f->weights->layers[layer];
    int kv = tec_lower_linear(l, &w->cross_kv, x, "cross_kv"), at = tec_lower_kv_layer(f, layer);
    struct tec_call call = tec_call_of(TEC_OP_rope_store, "keep");
    struct tec_rope_args *a = &call.args.rope;
    call.in[0] = kv;
    call.out[1] = tec_lower_kv(l, l->space, at, false);
    call.out[2] = tec_lower_kv(l, l->space, at, true);
    call.bf16 = l->space->shape.bf16;
    a->slot = l->prefix->prefix.slot;
    a->pos = l->prefix->prefix.pos;
    a->q_at = -1;
    a->v_at = w->cross_v_at;
    a->heads = f->stack->heads;
    a->kv_heads = f->stack->kv_heads;
    a->head_dim = f->stack->head_dim;
    tec_program_call(l->program, &call);
}

/* Rows behind the text's last norm. */
static int read_text(struct tec_lower *l)
{
    const struct tec_prefix_table *t = l->prefix;
    const struct tec_rows rows = {.count = t->prefix.count,
                                  .max = t->prefix.max,
                                  .pos = t->prefix.pos,
                                  .slot = t->prefix.pos,
                                  .seq = t->prefix.seq,
                                  .visible = t->prefix.visible,
                                  .seqs = t->features.seqs,
                                  .spans = t->features.spans};
    const struct tec_forward f = {.stack = &l->model->text.stack,
                                  .weights = &l->weights->text,
                                  .space = &l->reading[0],
                                  .rows = &rows,
                                  .tap = "prefix.",
                                  .tap_inside = true};
    int x = tec_program_tensor(l->program, "x", rows.max, f.stack->width, rows.count);
    tec_lower_prefix_rows(l, x);
    tec_lower_tap(l, x, "prefix.embeds");
    x = tec_lower_norm(l, &f, 0, 2, tec_lower_forward(l, &f, x),
                       l->model->features.project.weight != NULL, "final");
    tec_lower_tap(l, x, "prefix.final_norm");
    return x;
}

void tec_lower_features(struct tec_lower *l)
{
    const struct tec_features *features = &l->model->features;
    const struct tec_features_weights *w = &l->weights->features;
    const struct tec_stack *reader = &l->model->denoiser.stack;
    const struct tec_forward f = {.stack = &features->stack,
                                  .weights = &w->stack,
                                  .space = &l->reading[1],
                                  .rows = &l->prefix->features,
                                  .tap = "features.",
                                  .tap_inside = true};
    const struct tec_forward kept = {.stack = reader, .weights = &l->weights->denoiser.stack};
    int x = read_text(l);
    if (features->project.weight)
        x = tec_lower_linear(l, &w->project, x, "features");
    tec_lower_tap(l, x, "features.in");
    x = norm(l, &features->norm, x);
    tec_lower_tap(l, x, "features.norm");
    if (features->stack.layers)
        x = tec_lower_forward(l, &f, x);
    x = rounded(l, x);
    for (int i = 0; i < reader->layers && l->program->status == TEC_OK; i++)
        if (tec_stack_crossed(reader, i))
            keep(l, &kept, i, x);
}
