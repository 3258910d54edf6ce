/* memory_chain.c - the memories of one chain: their fixed beginning, and all that recalling a
 * prompt of their segments needs. Taken at load, on the thread that opens the engine. */
#include "graph/run/recall/memory_own.h"

#include "base/clock.h"

#include <stdio.h>
#include <string.h>

static const struct tec_clock real = {NULL};

enum tec_status tec_memory_chain_create(struct tec_chain_memory **out,
                                        struct tec_memory *const *memories, int n, bool patient,
                                        struct tec_heap *heap, struct tec_error *err)
{
    struct tec_chain_memory *c = tec_heap_get(heap, sizeof *c);
    if (!c)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a chain's memories");
    c->n = n;
    memcpy(c->of, memories, (size_t)n * sizeof(struct tec_memory *));
    c->patient = patient;
    c->heap = heap;
    tec_arena_init(&c->arena, heap);
    *out = c;
    return TEC_OK;
}

void tec_memory_chain_destroy(struct tec_chain_memory *c)
{
    if (!c)
        return;
    tec_recall_finish(&c->recall);
    if (c->begin)
        tec_device_unpin(c->plan->device, c->begin);
    tec_arena_finish(&c->arena);
    tec_heap_put(c->heap, c);
}

int tec_memory_chain_kept(const struct tec_chain_memory *c)
{
    return c->begin ? c->n_beginning : 0;
}

static int max_segments(const struct tec_chain_memory *c)
{
    int n = 0;
    for (int m = 0; m < c->n; m++)
        n += c->of[m]->input->max_segments;
    return n;
}

enum tec_status tec_memory_rooms(const struct tec_chain_memory *c, struct tec_memory_prompt *rooms,
                                 int n, struct tec_arena *arena, struct tec_error *err)
{
    size_t segments = (size_t)max_segments(c);
    for (int i = 0; i < n; i++) {
        struct tec_memory_prompt *p = &rooms[i];
        *p = (struct tec_memory_prompt){.n_memories = c->n,
                                        .segments =
                                            TEC_NEW(arena, segments, struct tec_segment_range),
                                        .handles = TEC_NEW(arena, segments, uint32_t),
                                        .local = TEC_NEW(arena, segments, int),
                                        .kv = TEC_NEW(arena, segments, struct tec_kv *),
                                        .views = TEC_NEW(arena, segments, struct tec_segment_view)};
        if (!p->segments || !p->handles || !p->local || !p->kv || !p->views)
            return tec_fail(err, TEC_NO_MEMORY, "no memory for %zu segments of a prompt", segments);
    }
    return TEC_OK;
}

/* Whether the beginning's keys are the same in every prompt: not where it sees what stands behind
 * it, or pictures in front. */
static bool begins_alone(const struct tec_chain_memory *c)
{
    return c->plan->spec.pictures < 1 && c->plan->model->text.mask != TEC_MASK_BIDIR;
}

/* Run a launch of one text; what a token of it takes is believed of the next launches. */
static enum tec_status run_text(struct tec_chain_memory *c, const struct tec_remember_text *text,
                                struct tec_error *err)
{
    int64_t begin = tec_clock_now(&real);
    TEC_TRY(tec_remember_run(c->plan, text, 1, err));
    int64_t each = (tec_clock_now(&real) - begin) / text->n;
    for (int m = 0; m < c->n; m++)
        c->of[m]->shared->token_ns = each;
    return TEC_OK;
}

/* Where it is not kept it is computed with each prompt. */
static enum tec_status keep_beginning(struct tec_chain_memory *c, struct tec_error *err)
{
    size_t bytes = (size_t)c->n_beginning * c->row, layers = (size_t)c->of[0]->layers;
    if (!begins_alone(c) || c->n_beginning < 1 || c->n_beginning > c->plan->spec.segment_tokens)
        return TEC_OK;
    const struct tec_remember_text text = {c->beginning, c->n_beginning};
    TEC_TRY(run_text(c, &text, err));
    c->begin = tec_device_pin(c->plan->device, 2 * bytes * layers);
    TEC_TRY(tec_device_failure(c->plan->device, err));
    if (!c->begin)
        return tec_fail(err, TEC_NO_MEMORY, "no memory to keep the beginning of prompts");
    for (size_t l = 0; l < layers; l++) {
        unsigned char *k = c->begin + 2 * l * bytes;
        tec_remember_read(c->plan, 0, c->n_beginning, (int)l, k, k + bytes);
    }
    return TEC_OK;
}

static enum tec_status take_held(struct tec_chain_memory *c, struct tec_error *err)
{
    size_t regions = (size_t)c->plan->prefixes.n, tokens = (size_t)c->plan->spec.frame_tokens;
    size_t segments = (size_t)max_segments(c) + 1;
    c->held = TEC_NEW(&c->arena, regions, int *);
    c->n_held = TEC_NEW(&c->arena, regions, int);
    c->places = TEC_NEW(&c->arena, segments, struct tec_segment_range);
    c->fresh = TEC_NEW(&c->arena, segments, bool);
    bool whole = c->held && c->n_held && c->places && c->fresh;
    for (size_t i = 0; whole && i < regions; i++) {
        c->held[i] = TEC_NEW(&c->arena, tokens, int);
        whole = c->held[i] != NULL;
    }
    return whole ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for %zu regions", regions);
}

/* Every piece of the recall has run before the first frame: a prompt of the beginning alone. */
static enum tec_status warm(struct tec_chain_memory *c, struct tec_error *err)
{
    const struct tec_recall_rule whole = {.selection = TEC_SELECTION_full};
    const struct tec_recall_source none = {.self = c};
    int *ids = TEC_NEW(&c->arena, (size_t)c->n_beginning + 1, int);
    int region = tec_kv_pool_take(&c->plan->prefixes);
    if (!ids || region < 0)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a first prompt");
    memcpy(ids, c->beginning, (size_t)c->n_beginning * sizeof *ids);
    const struct tec_recall_input in = {
        .ids = ids, .n = c->n_beginning + 1, .query = c->n_beginning, .region = region};
    enum tec_status status = tec_recall_run(&c->recall, &in, &whole, &none, err);
    tec_kv_pool_drop(&c->plan->prefixes, region);
    return status;
}

/* What a launch of segments takes, believed of the first: else none would fit between frames. */
static enum tec_status measure(struct tec_chain_memory *c, struct tec_error *err)
{
    int n = c->of[0]->input->tokens_each, most = c->plan->spec.segment_tokens;
    n = n < most ? n : most;
    const struct tec_remember_text text = {TEC_NEW(&c->arena, (size_t)n, int), n};
    if (c->begin)
        return TEC_OK;
    if (!text.ids)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a first segment");
    return run_text(c, &text, err);
}

enum tec_status tec_memory_chain_attach(struct tec_chain_memory *c, struct tec_plan *plan,
                                        struct tec_error *err)
{
    c->plan = plan;
    c->row = c->of[0]->row;
    for (int m = 0; m < c->n; m++)
        TEC_TRY(tec_memory_take(c->of[m]->shared, plan, err));
    TEC_TRY(take_held(c, err));
    TEC_TRY(tec_recall_create(&c->recall, plan, &c->arena, err));
    TEC_TRY(keep_beginning(c, err));
    TEC_TRY(warm(c, err));
    TEC_TRY(measure(c, err));
    for (int m = 0; m < c->n; m++) {
        tec_memory_fill_stores(c->of[m]->shared, c->patient);
        TEC_TRY(tec_memory_start_worker(c->of[m]->shared, err));
    }
    return TEC_OK;
}
