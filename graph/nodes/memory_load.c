/* memory_load.c - a prompt of remembered segments: kept keys and values are placed, what is chosen
 * is computed anew, in fewer rows from layer to layer.
 *
 * A layer is two pieces, because the host chooses between them (doc/decisions/013). The first
 * places kept keys and values, computes those of the layer's rows over them, and sums up what their
 * attention is on. The second goes on with the rows that the next layer still has: what is dropped
 * needs no attention, output or MLP any more, nobody will read it. The last layer needs its keys
 * and values alone: the first token repeats the prompt's last row (decode.c).
 *
 * Where the sums are a branch of the layer (doc/decisions/050) a layer is one piece: the host
 * chooses while attention and MLP of all its rows go on, and what is dropped leaves when the next
 * one begins.
 */
#include "graph/nodes/layers.h"

static void place(struct tec_lower *l, int layer)
{
    const struct tec_recall_table *t = l->recall;
    const struct tec_attend *n = &tec_model_attention(l->model, layer)->attend;
    struct tec_call call = tec_call_of(TEC_OP_place_kv, "place");
    call.out[0] = tec_lower_kv(l, l->space, layer, false);
    call.out[1] = tec_lower_kv(l, l->space, layer, true);
    call.bf16 = l->space->shape.bf16;
    call.args.place = (struct tec_place_args){.places = t->places,
                                              .count = t->n_places,
                                              .max_places = t->max_places,
                                              .max_tokens = t->rows[0].max,
                                              .cos_sin = tec_lower_rotation(l, n),
                                              .kv_heads = n->kv_heads,
                                              .head_dim = n->head_dim};
    tec_program_call(l->program, &call);
}

/* Sums the attention of the first *n_summed rows over ranges of keys, into memory that stays. */
static void sum_up(struct tec_lower *l, const struct tec_rows *rows, int layer,
                   struct tec_keys keys)
{
    const struct tec_recall_table *t = l->recall;
    const struct tec_attend *n = &tec_model_attention(l->model, layer)->attend;
    struct tec_call call = tec_call_of(TEC_OP_attention_mass, "importance");
    struct tec_mass_args *a = &call.args.mass;
    call.in[0] = keys.q;
    call.in[1] = keys.kv.k;
    call.out[0] = tec_program_fixed(l->program, "mass", t->mass,
                                    (size_t)rows->max * (size_t)t->ld_mass * sizeof(float),
                                    rows->max, t->max_ranges, t->ld_mass, t->n_summed);
    call.bf16 = l->space->shape.bf16;
    a->scratch = l->scratch;
    a->row_seq = rows->seq;
    a->visible = rows->visible;
    a->seqs = rows->seqs;
    a->spans = rows->spans;
    a->ends = t->ends;
    a->n_ranges = t->n_ranges;
    a->heads = n->heads;
    a->kv_heads = n->kv_heads;
    a->head_dim = n->head_dim;
    a->window = n->window;
    a->scale = tec_lower_scale(n);
    a->cap = (float)n->cap;
    tec_program_call(l->program, &call);
}

/* One layer; false: the last one, of which keys and values are all. */
static bool recall_layer(struct tec_lower *l, struct tec_built *b, int layer)
{
    const struct tec_recall_table *t = l->recall;
    b->rows = &t->rows[layer % 2];
    place(l, layer);
    struct tec_keys keys = tec_layers_keys(b, layer);
    if (keys.q < 0)
        return false;
    sum_up(l, b->rows, layer, keys);
    tec_program_cut(l->program);
    const struct tec_rows_left on = {&t->rows[(layer + 1) % 2], t->take, "go_on_q", "go_on"};
    tec_layers_take(b, layer, &on, &keys);
    tec_layers_rest(b, layer, keys);
    return true;
}

/* One layer with its sums in a branch; the mark tells the host that they are there. */
static bool branching_layer(struct tec_lower *l, struct tec_built *b, int layer)
{
    const struct tec_recall_table *t = l->recall;
    b->rows = &t->rows[layer % 2];
    if (layer > 0)
        tec_layers_enter(b, layer, b->rows, t->take, "go_on");
    place(l, layer);
    struct tec_keys keys = tec_layers_keys(b, layer);
    if (keys.q < 0)
        return false;
    tec_program_branch(l->program, true);
    sum_up(l, b->rows, layer, keys);
    tec_program_mark(l->program, l->sums_mark);
    tec_program_branch(l->program, false);
    tec_layers_rest(b, layer, keys);
    return true;
}

/* Rows of the first layer: those of pictures stand before the tokens', where their place is
 * constant, as in a prefill. */
static void enter(struct tec_lower *l, int x)
{
    const struct tec_rows *rows = &l->recall->rows[0];
    const struct tec_prefix_table *t = l->prefix;
    bool sees = tec_lower_sees(l);
    if (sees)
        tec_lower_pictures(l, x, 0);
    tec_lower_tokens(l, x, l->recall->ids, sees ? t->n_text : rows->count, rows->max,
                     sees ? t->first_text : l->zero, l->model->text.scale);
}

static void lower(struct tec_lower *l)
{
    const struct tec_stack *s = &l->model->text.stack;
    const struct tec_rows *rows = &l->recall->rows[0];
    const struct tec_reading r = {
        .space = l->space, .rows = rows, .keys_only = !l->whole, .tap = "recall."};
    struct tec_built b;
    int x = tec_program_tensor(l->program, "x", rows->max, s->width, rows->count);
    enter(l, x);
    bool goes = tec_layers_begin(&b, l, &r, x);
    for (int layer = 0; layer < s->layers && goes && l->program->status == TEC_OK; layer++) {
        if (layer > 0)
            tec_program_cut(l->program);
        goes = l->branches ? branching_layer(l, &b, layer) : recall_layer(l, &b, layer);
    }
}

const struct tec_node_kind tec_node_memory_load = {
    .name = "memory_load",
    .text = "segments of a memory, some of them computed anew",
    .recalls = true,
    .lower = lower};
