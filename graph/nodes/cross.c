/* cross.c - layers that read another stack's keys: projections of those that the prefix has, made
 * once for all steps of a flow, and queries that count their positions from 0.
 *
 * A projected key lies in a space of its own, in the order of the sequence and not by the slots of
 * the prefix, so that one run of slots is all that such a layer sees. */
#include "graph/nodes/node.h"

/* Which of the layers that cross a layer is. */
static int index_of(const struct tec_stack *s, int layer)
{
    int at = 0;
    for (int i = 0; i < layer; i++)
        at += tec_stack_crossed(s, i);
    return at;
}

/* Keys or values of the prefix through their projection, to the first places of the space. */
static void project(struct tec_lower *l, const struct tec_forward *f, int layer, bool values)
{
    const struct tec_prefix_table *t = l->prefix;
    const struct tec_layer *w = &f->weights->layers[layer];
    int cols = f->stack->kv_heads * f->stack->head_dim;
    int x = tec_program_tensor(l->program, "keys", t->max_keys, cols, t->n_keys);
    struct tec_call read = tec_call_of(TEC_OP_read_kv, "keys");
    read.in[0] = tec_lower_kv(l, f->space, tec_lower_kv_layer(f, layer), values);
    read.out[0] = x;
    read.args.read_kv.slot = t->keys;
    read.bf16 = f->space->shape.bf16;
    tec_program_call(l->program, &read);
    int y = tec_lower_linear(l, values ? &w->crossed_v : &w->crossed_k, x, "cross");
    tec_lower_tap(l, y, "%slayer%d.cross_%s", "suffix.", layer, values ? "v" : "k");
    struct tec_call copy = tec_call_of(TEC_OP_copy, "cross");
    copy.in[0] = y;
    copy.out[0] = tec_lower_kv(l, l->crossed, index_of(f->stack, layer), values);
    tec_program_call(l->program, &copy);
}

void tec_lower_cross(struct tec_lower *l, const struct tec_forward *f)
{
    for (int layer = 0; layer < f->stack->layers && l->program->status == TEC_OK; layer++)
        for (int values = 0; values < 2 && tec_stack_crossed(f->stack, layer); values++)
            project(l, f, layer, values != 0);
}

struct tec_keys tec_lower_crossed_keys(struct tec_lower *l, const struct tec_forward *f, int layer,
                                       int x)
{
    int index = index_of(f->stack, layer);
    struct tec_attend numbers;
    struct tec_attending across = tec_lower_attending(f, layer, &numbers);
    across.rows = f->across;
    struct tec_keys keys = {.kv = {tec_lower_kv(l, l->crossed, index, false),
                                   tec_lower_kv(l, l->crossed, index, true)}};
    int n = tec_lower_norm(l, f, layer, 0, x, true, "norm1");
    keys.qkv = tec_lower_linear(l, &f->weights->layers[layer].qkv, n, "q");
    if (f->tap && f->tap_inside)
        tec_lower_tap(l, keys.qkv, "%slayer%d.q", f->tap, layer);
    keys.q = tec_lower_queries(l, &across, keys.qkv);
    return keys;
}

struct tec_forward tec_lower_view(const struct tec_lower *l, const struct tec_forward *f, int layer)
{
    struct tec_forward view = *f;
    if (tec_stack_crossed(f->stack, layer)) {
        view.rows = f->across;
        view.space = l->crossed;
    }
    return view;
}
