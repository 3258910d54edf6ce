/* weights.c - loads the weights of a model onto the device: stacks layer by layer, embedding and
 * head, and in their order the parts that other files load.
 *
 * Runs at load. Tensors are read one after the other through a small buffer and packed at their
 * final place, which never changes, since captures hold its address. A tied embedding is stored
 * once, and so is one whose two tensors hold equal bytes; k | v is a view into q | k | v. On a dry
 * source the same code only counts bytes. */
#include "graph/model/weights.h"

#include "graph/model/loading.h"
#include "graph/model/surplus.h"
#include "graph/model/weight_cache.h"
#include "kernels/matrix.h"

#include <string.h>

static enum tec_status load_norm(struct tec_weight_loading *l, const struct tec_stack *s,
                                 const char *weight, const char *bias, const float **w,
                                 const float **b)
{
    *w = *b = NULL;
    if (s->norm == TEC_BLOCK_ADAPTIVE_NORM)
        return TEC_OK;
    TEC_TRY(tec_weight_loading_vector(l, weight, s->width, 1.0F - s->norm_offset, w));
    return tec_weight_loading_vector(l, bias, s->width, 0.0F, b);
}

/* Layer names, filled in for one layer. */
struct names {
    char text[TEC_ROLE_COUNT][256];
    const char *of[TEC_ROLE_COUNT];
};

static void name_layer(struct names *names, const struct tec_stack *s, int layer)
{
    for (int r = 0; r < TEC_ROLE_COUNT; r++) {
        names->of[r] = NULL;
        if (s->names[r]) {
            tec_layer_name(names->text[r], s->names[r], layer);
            names->of[r] = names->text[r];
        }
    }
}

static enum tec_status load_feed_forward(struct tec_weight_loading *l, const struct tec_stack *s,
                                         const char *const *of, struct tec_layer *layer)
{
    int at[2];
    const struct tec_piece up[] = {{of[TEC_ROLE_gate], NULL, s->mlp, 0},
                                   {of[TEC_ROLE_up], of[TEC_ROLE_up_bias], s->mlp, 0}};
    TEC_TRY(tec_weight_loading_pieces(l, s->gated ? up : up + 1, s->gated ? 2 : 1, s->width, 0,
                                      tec_weight_loading_form(l, true, s->width), &layer->up, at));
    layer->gate_at = at[0];
    layer->up_at = s->gated ? at[1] : 0;
    const struct tec_piece down = {of[TEC_ROLE_down], of[TEC_ROLE_down_bias], s->width, 0};
    return tec_weight_loading_pieces(l, &down, 1, s->mlp, 0,
                                     tec_weight_loading_form(l, true, s->mlp), &layer->down, at);
}

static enum tec_status load_vectors(struct tec_weight_loading *l, const struct tec_stack *s,
                                    const char *const *of, struct tec_layer *layer)
{
    float centre = 1.0F - s->norm_offset;
    TEC_TRY(tec_weight_loading_vector(l, of[TEC_ROLE_scale1], s->width, 1.0F, &layer->scale1));
    TEC_TRY(tec_weight_loading_vector(l, of[TEC_ROLE_scale2], s->width, 1.0F, &layer->scale2));
    TEC_TRY(tec_weight_loading_vector(l, of[TEC_ROLE_q_norm], s->head_dim, centre, &layer->q_norm));
    return tec_weight_loading_vector(l, of[TEC_ROLE_k_norm], s->head_dim, centre, &layer->k_norm);
}

/* The attention whose keys are those of other rows, where the stack has one: its queries and its
 * keys and values are computed of different rows, so they are two matrices. */
static enum tec_status load_cross(struct tec_weight_loading *l, const struct tec_stack *s,
                                  const char *const *of, struct tec_layer *layer)
{
    enum tec_form form = tec_weight_loading_form(l, true, s->width);
    int q = s->heads * s->head_dim, kv = s->kv_heads * s->head_dim, all = q + 2 * kv, at[2];
    if (!of[TEC_ROLE_cross])
        return TEC_OK;
    const char *w = of[TEC_ROLE_cross], *b = of[TEC_ROLE_cross_bias];
    const struct tec_piece asks = {w, b, q, 0}, keys[] = {{w, b, kv, q}, {w, b, kv, q + kv}},
                           o = {of[TEC_ROLE_cross_o], of[TEC_ROLE_cross_o_bias], s->width, 0};
    TEC_TRY(tec_weight_loading_pieces(l, &asks, 1, s->width, all, form, &layer->cross_q, at));
    TEC_TRY(tec_weight_loading_pieces(l, keys, 2, s->width, all, form, &layer->cross_kv, at));
    layer->cross_v_at = at[1];
    TEC_TRY(tec_weight_loading_pieces(l, &o, 1, q, 0, tec_weight_loading_form(l, true, q),
                                      &layer->cross_o, at));
    return load_norm(l, s, of[TEC_ROLE_cross_norm], of[TEC_ROLE_cross_norm_bias],
                     &layer->cross_norm, &layer->cross_norm_bias);
}

/* The projections of another stack's keys and values are small and kept as they are stored. */
static enum tec_status load_crossed(struct tec_weight_loading *l, const struct tec_stack *s,
                                    const char *const *of, struct tec_layer *layer)
{
    int kv = s->kv_heads * s->head_dim, at;
    const struct tec_piece q = {of[TEC_ROLE_q], of[TEC_ROLE_q_bias], s->heads * s->head_dim, 0};
    const struct tec_piece k = {of[TEC_ROLE_k], of[TEC_ROLE_k_bias], kv, 0};
    const struct tec_piece v = {of[TEC_ROLE_v], of[TEC_ROLE_v_bias], kv, 0};
    TEC_TRY(tec_weight_loading_pieces(
        l, &q, 1, s->width, 0, tec_weight_loading_form(l, true, s->width), &layer->qkv, &at));
    TEC_TRY(tec_weight_loading_pieces(l, &k, 1, kv, 0, TEC_FORM_F32, &layer->crossed_k, &at));
    return tec_weight_loading_pieces(l, &v, 1, kv, 0, TEC_FORM_F32, &layer->crossed_v, &at);
}

void tec_weight_loading_view(const struct tec_weight_loading *l, struct tec_layer *layer, int width)
{
    int at = layer->k_at;
    layer->kv = layer->qkv;
    layer->kv.w = (char *)layer->qkv.w + tec_weight_loading_size(l, at, width, layer->qkv.form);
    layer->kv.order_of = layer->qkv.order_of ? layer->qkv.order_of + at / 16 : NULL;
    layer->kv.bias = layer->qkv.bias ? layer->qkv.bias + at : NULL;
    layer->kv.n = layer->kv.cols = layer->qkv.n - at;
}

static enum tec_status load_qkv(struct tec_weight_loading *l, const struct tec_stack *s,
                                const char *const *of, struct tec_layer *layer)
{
    enum tec_form form = tec_weight_loading_form(l, true, s->width);
    int q = s->heads * s->head_dim, kv = s->kv_heads * s->head_dim, at[3];
    bool joined = of[TEC_ROLE_qkv] != NULL;
    const char *wb[2] = {of[TEC_ROLE_qkv], of[TEC_ROLE_qkv_bias]};
    const struct tec_piece qkv[] = {
        {joined ? wb[0] : of[TEC_ROLE_q], joined ? wb[1] : of[TEC_ROLE_q_bias], q, 0},
        {joined ? wb[0] : of[TEC_ROLE_k], joined ? wb[1] : of[TEC_ROLE_k_bias], kv, q},
        {joined ? wb[0] : of[TEC_ROLE_v], joined ? wb[1] : of[TEC_ROLE_v_bias], kv, q + kv}};
    TEC_TRY(tec_weight_loading_pieces(l, qkv, 3, s->width, joined ? q + 2 * kv : 0, form,
                                      &layer->qkv, at));
    layer->q_at = at[0];
    layer->k_at = at[1];
    layer->v_at = at[2];
    tec_weight_loading_view(l, layer, s->width);
    return TEC_OK;
}

static enum tec_status load_layer(struct tec_weight_loading *l, const struct tec_stack *s,
                                  int index, struct tec_layer *layer)
{
    struct names names;
    const char *const *of = names.of;
    int heads = s->heads * s->head_dim, at;
    name_layer(&names, s, index);
    if (tec_stack_crossed(s, index))
        TEC_TRY(load_crossed(l, s, of, layer));
    else
        TEC_TRY(load_qkv(l, s, of, layer));
    const struct tec_piece o = {of[TEC_ROLE_o], of[TEC_ROLE_o_bias], s->width, 0};
    TEC_TRY(tec_weight_loading_pieces(l, &o, 1, heads, 0, tec_weight_loading_form(l, true, heads),
                                      &layer->o, &at));
    TEC_TRY(load_vectors(l, s, of, layer));
    TEC_TRY(load_cross(l, s, of, layer));
    TEC_TRY(load_feed_forward(l, s, of, layer));
    TEC_TRY(load_norm(l, s, of[TEC_ROLE_norm1], of[TEC_ROLE_norm1_bias], &layer->norm1,
                      &layer->norm1_bias));
    return load_norm(l, s, of[TEC_ROLE_norm2], of[TEC_ROLE_norm2_bias], &layer->norm2,
                     &layer->norm2_bias);
}

enum tec_status tec_weight_loading_stack(struct tec_weight_loading *l, const struct tec_stack *s,
                                         struct tec_stack_weights *w)
{
    w->layers = TEC_NEW(&l->out->arena, (size_t)s->layers, struct tec_layer);
    if (!w->layers)
        return tec_fail(l->err, TEC_NO_MEMORY, "no memory for %d layers", s->layers);
    for (int i = 0; i < s->layers; i++)
        TEC_TRY(load_layer(l, s, i, &w->layers[i]));
    return load_norm(l, s, s->names[TEC_ROLE_final], s->names[TEC_ROLE_final_bias], &w->final,
                     &w->final_bias);
}

static void collect(struct tec_expected *e, const char *const names[TEC_MAX_ALIASES])
{
    for (e->n_names = 0; e->n_names < TEC_MAX_ALIASES && names[e->n_names]; e->n_names++)
        e->names[e->n_names] = names[e->n_names];
}

/* One matrix when both names lead to the same tensor or to equal bytes, else two. */
static enum tec_status load_embeddings(struct tec_weight_loading *l, const struct tec_text *t)
{
    struct tec_expected embed = {.rank = 2, .shape = {t->vocab, t->stack.width}}, head = embed;
    struct tec_found found_embed = {0}, found_head = {0};
    collect(&embed, t->embed);
    collect(&head, t->head);
    bool same = !l->options->language || head.n_names == 0;
    for (int i = 0; !l->source.checkpoint && embed.n_names && i < head.n_names; i++)
        same |= strcmp(head.names[i], embed.names[0]) == 0;
    TEC_TRY(tec_weight_find(&l->source, &embed, &found_embed, l->err));
    if (!same)
        TEC_TRY(tec_weight_find(&l->source, &head, &found_head, l->err));
    if (!same && l->kept)
        same = l->kept_tied;
    else if (!same && l->source.checkpoint)
        TEC_TRY(tec_weight_same(&l->source, &found_embed, &found_head, &same, l->err));
    l->out->tied = same;
    const enum tec_form form = l->options->bf16 ? TEC_FORM_BF16 : TEC_FORM_F32;
    TEC_TRY(tec_weight_loading_found(l, &found_embed, 0, form, &l->out->embed));
    l->out->head = l->out->embed;
    if (same)
        return TEC_OK;
    return tec_weight_loading_found(l, &found_head, 0, form, &l->out->head);
}

static enum tec_status load_all(struct tec_weight_loading *l)
{
    const struct tec_model *m = l->options->model;
    if (tec_model_asks(m))
        return tec_weight_loading_program(l, m->program, &l->out->calls);
    for (int i = 0; i < m->vision.n_towers; i++)
        TEC_TRY(tec_weight_loading_tower(l, &m->vision.towers[i], &l->out->towers[i]));
    if (m->vision.n_projector)
        TEC_TRY(tec_weight_loading_projector(l, &m->vision));
    TEC_TRY(load_embeddings(l, &m->text));
    TEC_TRY(tec_weight_loading_sums(l, &m->text));
    TEC_TRY(tec_weight_loading_program(l, m->text.program, &l->out->text));
    for (int i = 0; i < 2; i++)
        TEC_TRY(tec_weight_loading_dense(l, &m->head.states[i], TEC_FORM_F32, &l->out->states[i]));
    return m->program ? tec_weight_loading_program(l, m->program, &l->out->calls) : TEC_OK;
}

/* From the source, or with `kept` from that file, which is the weights' from then on. */
static enum tec_status load(struct tec_weights **out, const struct tec_weights_options *options,
                            struct tec_blocks *kept, struct tec_heap *heap, struct tec_error *err)
{
    struct tec_weights *w = tec_heap_get(heap, sizeof *w);
    if (!w) {
        tec_blocks_close(kept);
        return tec_fail(err, TEC_NO_MEMORY, "no memory for weights");
    }
    w->device = options->device;
    w->bf16 = options->bf16;
    w->kept = kept;
    tec_arena_init(&w->arena, heap);
    struct tec_weight_loading l = {.out = w,
                                   .options = options,
                                   .source = options->source,
                                   .kept = kept,
                                   .kept_tied = kept && tec_blocks_note(kept),
                                   .err = err,
                                   .heap = heap};
    l.source.dry |= kept != NULL;
    tec_packer_open(&l.packer, &l.source, options->device, heap);
    enum tec_status status = load_all(&l);
    tec_packer_close(&l.packer);
    tec_heap_put(heap, l.buffer);
    if (status == TEC_OK && kept && w->n_blocks != tec_blocks_count(kept))
        status = tec_fail(err, TEC_MALFORMED, "has %d blocks, not %d", tec_blocks_count(kept),
                          w->n_blocks);
    if (status == TEC_OK && kept)
        status = tec_device_failure(options->device, err);
    if (status != TEC_OK) {
        tec_weights_close(w);
        return status;
    }
    if (kept && !tec_device_reads_host(options->device)) {
        tec_blocks_close(kept); /* the device has a copy */
        w->kept = NULL;
    }
    *out = w;
    return TEC_OK;
}

/* From the file that an earlier start has kept. false: there is none, or it does not fit. */
static bool load_kept(struct tec_weights **out, const struct tec_weights_options *options,
                      struct tec_heap *heap)
{
    struct tec_packer threads;
    struct tec_error why;
    tec_packer_open(&threads, &options->source, options->device, heap);
    struct tec_blocks *kept =
        tec_weight_cache_open(options, tec_packer_team(&threads, INT64_MAX), heap);
    tec_packer_close(&threads);
    if (!kept)
        return false;
    if (load(out, options, kept, heap, &why) == TEC_OK)
        return true;
    if (options->cache->say)
        options->cache->say(options->cache->self, why.message);
    return false;
}

enum tec_status tec_weights_load(struct tec_weights **out,
                                 const struct tec_weights_options *options, struct tec_heap *heap,
                                 struct tec_error *err)
{
    struct tec_weights_options own = *options;
    own.bf16 = options->bf16 && !options->model->float32;
    bool cached = own.cache && own.source.checkpoint && !own.source.dry;
    if (own.source.checkpoint)
        TEC_TRY(tec_model_accounts_for(own.model, own.source.checkpoint, heap, err));
    if (cached && load_kept(out, &own, heap))
        return TEC_OK;
    TEC_TRY(load(out, &own, NULL, heap, err));
    if (cached && own.cache->written)
        tec_weight_cache_write(&own, *out, heap);
    return TEC_OK;
}

void tec_weights_close(struct tec_weights *w)
{
    if (!w)
        return;
    struct tec_heap *heap = w->arena.heap;
    bool in_file = w->kept && tec_device_reads_host(w->device);
    for (int i = 0; i < w->n_blocks && !in_file; i++)
        tec_device_put(w->device, w->blocks[i]);
    tec_blocks_close(w->kept);
    tec_arena_finish(&w->arena);
    tec_heap_put(heap, w);
}
