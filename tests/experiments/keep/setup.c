/* setup.c - the model opened and closed, a cell's store, link and blocks. */
#include "tests/experiments/keep/setup.h"

#include "tools/measure/machine.h"

#include <string.h>
#include <unistd.h>

enum { BEGINNING = 160, OBJECT = 28, EXAMPLE = 72, QUERY = 288, ANSWER = 64, MIB = 1 << 20 };

/* Tokens of the longest prompt of any cell. */
static int longest(const struct tec_keeping *s)
{
    int segments = 0;
    for (int i = 0; i < s->n_cells; i++)
        segments = s->cells[i].segments > segments ? s->cells[i].segments : segments;
    return BEGINNING + segments * OBJECT + TEC_KEEPING_EXAMPLES * (EXAMPLE - OBJECT) + QUERY;
}

static enum tec_status open_checkpoint(struct tec_keeping_setup *w, struct tec_error *err)
{
    const char *dir = w->suite->weights;
    w->source.seed = w->suite->seed;
    if (!dir)
        return TEC_OK;
    TEC_TRY(tec_checkpoint_open(&w->checkpoint, dir, w->heap, err));
    w->source.checkpoint = w->checkpoint;
    return tec_tokenizer_open(&w->tokenizer, tec_arena_printf(&w->arena, "%s/tokenizer.json", dir),
                              w->heap, err);
}

static enum tec_status open_model(struct tec_keeping_setup *w, struct tec_error *err)
{
    struct tec_invocation *call = w->suite->call;
    struct tec_device_options device;
    TEC_TRY(tec_cli_need_root(call, err));
    const struct tec_model_choice choice = {
        .root = tec_arena_printf(&w->arena, "%s/pipelines/models", call->root),
        .arch = w->checkpoint ? NULL : w->suite->arch,
        .size = tec_shared_size(&call->shared),
        .overrides = w->suite->depth ? json_pack("{s:i}", "layers", w->suite->depth) : NULL,
        .checkpoint = w->checkpoint};
    enum tec_status status;
    if (!choice.root)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a path");
    TEC_TRY(tec_cli_device_choice(call, &device, err));
    device.branches = true; /* as an engine has it of a memory's prompts */
    TEC_TRY(tec_device_open(&w->device, &device, w->heap, err));
    status = tec_model_open(&w->model, &choice, w->heap, err);
    json_decref(choice.overrides);
    TEC_TRY(status);
    if (!w->checkpoint)
        w->model->text.scale = 0.1F; /* else a random model only repeats the token it is given */
    const struct tec_weights_options weights = {.model = w->model,
                                                .source = w->source,
                                                .device = w->device,
                                                .bf16 = true,
                                                .language = true};
    return tec_weights_load(&w->weights, &weights, w->heap, err);
}

static enum tec_status open_plan(struct tec_keeping_setup *w, struct tec_error *err)
{
    const struct tec_token_tree *tree = &w->skills.tree;
    const struct tec_score_limits trees = {.rows = tree->n_rows,
                                           .entries = tree->n_entries,
                                           .chains = tree->n_chains,
                                           .spans = tree->n_spans,
                                           .depths = tree->depths,
                                           .reached = tree->reached};
    const struct tec_plan_spec spec = {.frame_tokens = w->most,
                                       .text_tokens = w->most,
                                       .request_slots = 1,
                                       .new_tokens = ANSWER,
                                       .n_batches = 1,
                                       .batches = {1},
                                       .max_k = 1,
                                       .segments = TEC_KEEPING_SEGMENTS + 1,
                                       .segment_tokens = w->most,
                                       .trees = trees};
    const struct tec_plan_inputs in = {.spec = &spec,
                                       .model = w->model,
                                       .weights = w->weights,
                                       .source = w->source,
                                       .device = w->device};
    TEC_TRY(tec_plan_create(&w->plan, &in, w->heap, err));
    TEC_TRY(tec_recall_create(&w->recall, w->plan, &w->arena, err));
    w->region = tec_kv_pool_take(&w->plan->prefixes);
    w->own = tec_kv_pool_take(&w->plan->prefixes);
    const struct tec_program *p = &tec_plan_part(w->plan, TEC_PART_DECODE, 1)->program;
    w->logits = -1;
    for (int i = 0; i < p->n_tensors; i++)
        if (strcmp(p->tensors[i].name, "logits") == 0 && p->tensors[i].at)
            w->logits = i;
    return w->region < 0 || w->own < 0 ? tec_fail(err, TEC_INVALID, "the plan has no two prefixes")
                                       : TEC_OK;
}

static enum tec_status take_room(struct tec_keeping_setup *w, struct tec_error *err)
{
    size_t vocab = (size_t)w->model->text.vocab, most = (size_t)w->most;
    const struct tec_kv_shape *s = &w->plan->space.shape;
    w->layers = w->model->text.stack.layers;
    w->row = (size_t)s->kv_heads * (size_t)s->head_dim * (s->bf16 ? 2 : 4);
    w->full = TEC_NEW(&w->arena, vocab, float);
    w->made = TEC_NEW(&w->arena, vocab, float);
    w->near = TEC_NEW(&w->arena, vocab, float);
    w->prompt.ids = TEC_NEW(&w->arena, most, int);
    w->old_ids = TEC_NEW(&w->arena, most, int);
    w->sets = TEC_NEW(&w->arena, (size_t)w->layers * (TEC_KEEPING_SEGMENTS + 1), unsigned char);
    w->staging_room =
        (size_t)w->layers * (2 * most * w->row + (size_t)TEC_KEEPING_SEGMENTS * 192 + 64);
    if (!w->full || !w->made || !w->near || !w->prompt.ids || !w->old_ids || !w->sets)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a prompt of %zu tokens", most);
    if (w->layers > TEC_KEEPING_LAYERS)
        return tec_fail(err, TEC_UNSUPPORTED, "a model of %d layers; the suite takes %d", w->layers,
                        TEC_KEEPING_LAYERS);
    w->suite->layers = w->layers;
    w->suite->vocab = w->model->text.vocab;
    w->suite->token_bytes = tec_kv_token_bytes(s);
    w->suite->weight_bytes = w->weights->bytes;
    w->suite->plan_bytes = w->plan->bytes.total;
    return TEC_OK;
}

static enum tec_status fill_beginning(struct tec_keeping_setup *w, struct tec_error *err)
{
    int ids[BEGINNING];
    int n = tec_trace_tokens(tec_trace_beginning(), w->model->text.vocab, ids, BEGINNING);
    return n <= BEGINNING ? tec_keeping_fill(w, &w->beginning, ids, n, err)
                          : tec_fail(err, TEC_INVALID, "a beginning of %d tokens", n);
}

enum tec_status tec_keeping_open(struct tec_keeping_setup *w, struct tec_keeping *suite,
                                 struct tec_error *err)
{
    memset(w, 0, sizeof *w);
    w->suite = suite;
    w->heap = suite->call->heap;
    w->most = longest(suite);
    tec_arena_init(&w->arena, w->heap);
    TEC_TRY(open_checkpoint(w, err));
    TEC_TRY(open_model(w, err));
    if (w->checkpoint) {
        TEC_TRY(tec_keeping_read(&w->questions, suite->weights, w->tokenizer, w->model->text.eos,
                                 suite->steps, &w->arena, err));
        w->most = w->questions.most;
        suite->steps = w->questions.n;
    } else {
        TEC_TRY(tec_keeping_skills_make(&w->skills, w->model->text.vocab, &w->arena, err));
    }
    TEC_TRY(open_plan(w, err));
    TEC_TRY(take_room(w, err));
    suite->machine = tec_machine_json(w->device);
    if (!suite->machine)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a machine");
    return w->checkpoint ? TEC_OK : fill_beginning(w, err);
}

void tec_keeping_close(struct tec_keeping_setup *w)
{
    tec_keeping_end_cell(w);
    tec_heap_put(w->heap, w->beginning.kv);
    tec_recall_finish(&w->recall);
    tec_plan_destroy(w->plan);
    tec_weights_close(w->weights);
    tec_model_close(w->model);
    tec_device_close(w->device);
    tec_tokenizer_close(w->tokenizer);
    tec_checkpoint_close(w->checkpoint);
    tec_arena_finish(&w->arena);
}

/* --- of a cell ------------------------------------------------------------------------------- */

static enum tec_status open_store(struct tec_keeping_setup *w, const struct tec_keeping_link *link,
                                  struct tec_error *err)
{
    bool ram = !link->name || link->tier == TEC_KEPT_RAM;
    w->key = (struct tec_log_key){.model = {w->suite->seed, 1},
                                  .tokenizer = {1, 1},
                                  .dtype = {2, 1},
                                  .layers = (uint32_t)w->layers,
                                  .row_bytes = (uint32_t)w->row,
                                  .dim = TEC_TRACE_DIM};
    struct tec_store_options o = {.key = w->key,
                                  .max_segments = TEC_TRACE_SEGMENTS,
                                  .threshold = 0.35,
                                  .stable_steps = TEC_KEEPING_STABLE,
                                  .ram_bytes = ram ? INT64_MAX / 4 : 0};
    if (link->name && link->tier == TEC_KEPT_FILE) {
        w->path = tec_arena_printf(&w->arena, "%s/keep.store", w->suite->dir);
        if (!w->path)
            return tec_fail(err, TEC_NO_MEMORY, "no memory for a path");
        unlink(w->path);
        o.path = w->path;
    }
    if (link->name && link->tier == TEC_KEPT_REMOTE) {
        w->remote = true;
        o.remote.address = w->suite->remote;
        o.remote.queue_bytes = (int64_t)1024 * MIB;
    }
    return tec_store_open(&w->store, &o, w->heap, err);
}

enum tec_status tec_keeping_begin_cell(struct tec_keeping_setup *w,
                                       const struct tec_keeping_cell *cell, struct tec_error *err)
{
    tec_keeping_end_cell(w);
    TEC_TRY(open_store(w, &cell->link, err));
    for (int i = 0; i < cell->n_rows; i++) {
        const struct tec_keeping_method *m = &cell->rows[i].method;
        int k = 0;
        while (k < w->n_shelves && w->shelves[k].block != m->block)
            k++;
        if (m->kept == TEC_KEEPING_BLOCKS && k == w->n_shelves)
            w->shelves[w->n_shelves++].block = m->block;
    }
    if (!cell->link.name)
        return TEC_OK;
    struct tec_prefetch_options o = {.layers = w->layers, .segments = TEC_KEEPING_SEGMENTS};
    o.grain_bytes = MIB / 4;
    o.limit[cell->link.tier].bytes_per_sec = cell->link.bytes_per_sec;
    w->staging = tec_heap_get(w->heap, w->staging_room);
    if (!w->staging)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for loaded pieces");
    return tec_prefetch_create(&w->prefetch, w->store, &o, w->heap, err);
}

void tec_keeping_end_cell(struct tec_keeping_setup *w)
{
    tec_prefetch_destroy(w->prefetch);
    tec_heap_put(w->heap, w->staging);
    tec_store_close(w->store);
    if (w->path)
        unlink(w->path);
    for (int i = 0; i < w->n_shelves; i++)
        for (int k = 0; k < TEC_TRACE_SEGMENTS; k++)
            tec_heap_put(w->heap, w->shelves[i].slots[k].kv);
    memset(w->shelves, 0, sizeof w->shelves);
    w->prefetch = NULL;
    w->staging = NULL;
    w->store = NULL;
    w->path = NULL;
    w->remote = false;
    w->n_shelves = w->n_old = 0;
    w->step = 0;
    w->question = NULL;
}
