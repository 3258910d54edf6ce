/* remember.c - units computed by themselves, to be kept: one packed forward, a sequence each.
 *
 * What was said becomes a segment of a memory (graph/run/recall/memory_said.c), as a text that
 * comes with an observation does. A segment's keys are kept before rotation, because its place in a
 * prompt is not known yet. The forward runs when a frame leaves time for it, never in front of an
 * answer. */
#include "graph/nodes/layers.h"

/* Keys before rotation and values of the rows, to where they are kept. */
static void keep(struct tec_lower *l, const struct tec_built *b, int layer, struct tec_keys keys)
{
    int at = b->p->layers[layer].attention;
    const struct tec_attention_weights *w = b->w[at].attention;
    const struct tec_attend *n = &b->p->calls[at].attend;
    bool only = keys.q < 0;
    struct tec_call call = tec_call_of(TEC_OP_rope_store, "keep");
    call.in[0] = keys.qkv;
    call.out[1] = tec_lower_kv(l, l->kept, layer, false);
    call.out[2] = tec_lower_kv(l, l->kept, layer, true);
    call.bf16 = l->kept->shape.bf16;
    call.args.rope = (struct tec_rope_args){.slot = l->remember->kept,
                                            .pos = b->rows->pos,
                                            .q_at = -1,
                                            .k_at = only ? 0 : w->k_at,
                                            .v_at = w->v_at - (only ? w->k_at : 0),
                                            .heads = n->heads,
                                            .kv_heads = n->kv_heads,
                                            .head_dim = n->head_dim};
    tec_program_call(l->program, &call);
}

static void lower(struct tec_lower *l)
{
    const struct tec_text *t = &l->model->text;
    const struct tec_rows *rows = &l->remember->rows;
    const struct tec_reading r = {.space = l->space, .rows = rows, .keys_only = true};
    struct tec_built b;
    int x = tec_program_tensor(l->program, "x", rows->max, t->stack.width, rows->count);
    tec_lower_tokens(l, x, l->remember->ids, rows->count, rows->max, l->zero, t->scale);
    bool goes = tec_layers_begin(&b, l, &r, x);
    for (int layer = 0; layer < t->stack.layers && goes && l->program->status == TEC_OK; layer++) {
        struct tec_keys keys = tec_layers_keys(&b, layer);
        keep(l, &b, layer, keys);
        if (keys.q >= 0)
            tec_layers_rest(&b, layer, keys);
    }
}

const struct tec_node_kind tec_node_remember = {
    .name = "remember", .text = "what was said to a segment of a memory", .lower = lower};
