/* weights.c - loads the weights of a model onto the device: embedding and head, and in their order
 * the parts that other files load.
 *
 * Runs at load. Tensors are read one after the other through a small buffer and packed at their
 * final place, which never changes, since captures hold its address. A tied embedding is stored
 * once, and so is one whose two tensors hold equal bytes, but beside a head in 8 bits, as rows of
 * the embedding are not rounded; k | v is a view into q | k | v. On a dry source the same code only
 * counts bytes. */
#include "graph/model/weights.h"

#include "graph/model/loading.h"
#include "graph/model/surplus.h"
#include "graph/model/weight_cache.h"
#include "kernels/matrix.h"

#include <string.h>

static void collect(struct tec_expected *e, const char *const names[TEC_MAX_ALIASES])
{
    for (e->n_names = 0; e->n_names < TEC_MAX_ALIASES && names[e->n_names]; e->n_names++)
        e->names[e->n_names] = names[e->n_names];
}

/* One matrix when both names lead to the same tensor or to equal bytes and the head is not rounded,
 * else two. */
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
    const enum tec_form rounded = l->options->quantize_head ? TEC_FORM_INT8 : form;
    TEC_TRY(tec_weight_loading_found(l, &found_embed, 0, form, &l->out->embed));
    l->out->head = l->out->embed;
    if (same && rounded == form)
        return TEC_OK;
    return tec_weight_loading_found(l, same ? &found_embed : &found_head, 0, rounded,
                                    &l->out->head);
}

static enum tec_status load_all(struct tec_weight_loading *l)
{
    const struct tec_model *m = l->options->model;
    if (tec_model_asks(m))
        return tec_weight_loading_program(l, m->program, &l->out->calls);
    for (int i = 0; i < m->vision.n_towers; i++)
        TEC_TRY(tec_weight_loading_program(l, m->vision.towers[i].program, &l->out->towers[i]));
    if (m->vision.project)
        TEC_TRY(tec_weight_loading_program(l, m->vision.project, &l->out->project));
    TEC_TRY(load_embeddings(l, &m->text));
    TEC_TRY(tec_weight_loading_sums(l, &m->text));
    TEC_TRY(tec_weight_loading_program(l, m->text.program, &l->out->text));
    if (m->head.program)
        TEC_TRY(tec_weight_loading_program(l, m->head.program, &l->out->state));
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
    if (!own.language)
        own.quantize_head = TEC_QUANTIZE_NONE; /* one file of packed weights for either */
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
