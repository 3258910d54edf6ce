/* compile.c - allocates all that a plan owns and runs the compiler's passes over it.
 *
 * Runs once, at load, on the thread that opens the engine; the replay of a frame allocates nothing.
 * The order is fixed: check the sizes, divide the KV space into regions, upload constants, reserve
 * what each stream writes, then run the passes of passes.def. Captures hold addresses, so
 * everything that they point to must exist before the pass `capture` and must never move. On a
 * device that only measures the same code runs and counts bytes. */
#include "graph/compile/plan.h"

#include "graph/model/program.h"
#include "kernels/matrix.h"

#include <stddef.h>
#include <string.h>

static const struct {
    const char *name;
    enum tec_status (*run)(struct tec_plan *plan, struct tec_error *err);
} passes[] = {
#define NODE_PASS(name, text)
#define PASS(name, text) {#name, tec_pass_##name},
#include "graph/compile/passes.def"
#undef PASS
#undef NODE_PASS
};

/* Slots of a space of its own: what lies in them is in no region. */
static enum tec_status make_space(struct tec_plan *p, struct tec_kv_space *space,
                                  const struct tec_kv_shape *shape, int slots,
                                  struct tec_error *err)
{
    tec_kv_space_init(space, shape);
    tec_kv_space_reserve(space, slots);
    TEC_TRY(tec_kv_space_create(space, p->device, &p->arena, err));
    p->bytes.kv += tec_kv_space_bytes(space);
    return TEC_OK;
}

/* Projected keys are float32, as their projections are. Action nodes share the place: they run one
 * after the other, each makes its own. */
static enum tec_status make_crossed(struct tec_plan *p, struct tec_error *err)
{
    const struct tec_model_program *f = p->model->program;
    const struct tec_kv_shape shape = {f->n_projected, f->kept.kv_heads, f->kept.head_dim, false};
    return make_space(p, &p->crossed, &shape, tec_plan_keys(p), err);
}

/* A private tail, a slot that nobody reads, and where there is a penalty the tokens seen, of each
 * request slot. */
static enum tec_status take_request_slots(struct tec_plan *p, struct tec_error *err)
{
    const struct tec_plan_spec *s = &p->spec;
    size_t n = (size_t)s->request_slots + 1;
    p->used_words = s->penalty > 0.0F && s->penalty != 1.0F ? (p->model->text.vocab + 31) / 32 : 0;
    p->tails = TEC_NEW(&p->arena, n, int);
    p->trash = TEC_NEW(&p->arena, n, int);
    p->used = p->used_words ? TEC_NEW(&p->arena, n, unsigned *) : NULL;
    bool all = p->tails && p->trash && (p->used || !p->used_words);
    for (int i = 0; all && p->used && i < s->request_slots; i++) {
        p->used[i] = TEC_NEW(&p->arena, (size_t)p->used_words, unsigned);
        all = p->used[i] != NULL;
    }
    if (!all)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for %d request slots", s->request_slots);
    for (int i = 0; i < s->request_slots; i++)
        p->tails[i] = tec_kv_space_reserve(&p->space, s->prompt_tokens + s->new_tokens);
    int trash = tec_kv_space_reserve(&p->space, s->request_slots + 1);
    for (int i = 0; i < s->request_slots; i++)
        p->trash[i] = trash + i;
    return TEC_OK;
}

/* Reserve KV slots: prefix regions, private tails, one trash slot per request slot, the suffix's
 * scratch. */
static enum tec_status reserve_slots(struct tec_plan *p, struct tec_error *err)
{
    const struct tec_plan_spec *s = &p->spec;
    const struct tec_stack *t = tec_model_kept(p->model);
    bool bf16 = p->weights->bf16 && !p->model->text.keys_f32;
    const struct tec_kv_shape shape = {t->layers, t->kv_heads, t->head_dim, bf16};
    const struct tec_kv_shape one_layer = {1, t->kv_heads, t->head_dim, bf16};
    tec_kv_space_init(&p->space, &shape);
    /* A request holds on to a region of a ring; where keys move it is a copy, as each session's
     * newest is. */
    int sessions = s->sessions > 1 ? s->sessions : 1;
    int own = s->request_slots + (s->shifts && s->request_slots > 0 ? sessions : 0);
    int regions = s->stages ? s->rings * s->stages + own : s->request_slots + sessions;
    p->pictures = TEC_NEW(&p->arena, (size_t)regions + 1, int);
    if (!p->pictures)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for %d regions", regions);
    TEC_TRY(tec_kv_pool_init(&p->prefixes, &p->space, regions,
                             s->stages ? s->ring_tokens : s->frame_tokens, &p->arena, err));
    TEC_TRY(take_request_slots(p, err));
    for (int i = 0; i < s->n_actions; i++)
        p->scratch_slots[i] =
            tec_kv_space_reserve(&p->space, tec_plan_together(p) * tec_suffix_rows(p->model));
    p->segment_slot = s->segments ? tec_kv_space_reserve(&p->space, s->segment_tokens) : 0;
    for (int i = 0; s->trees.rows && i <= (int)s->beside; i++)
        p->tree_slot[i ? TEC_STREAM_BESIDE : TEC_STREAM_MAIN] =
            tec_kv_space_reserve(&p->space, s->trees.rows);
    TEC_TRY(tec_kv_space_create(&p->space, p->device, &p->arena, err));
    p->bytes.kv = tec_kv_space_bytes(&p->space);
    if (s->segments) {
        TEC_TRY(make_space(p, &p->kept, &shape, s->segment_tokens, err));
        p->bytes.kv += (int64_t)tec_plan_recall_room(p) * tec_plan_recall_rooms(p);
    }
    if (tec_plan_keys(p))
        TEC_TRY(make_crossed(p, err));
    int slots = s->rings * s->stages * s->ring_tokens;
    return s->gathers ? make_space(p, &p->gathered, &one_layer, slots, err) : TEC_OK;
}

/* KV scratch of rows that nobody reads later: one layer, in float32, as it is small. */
static enum tec_status make_tower(struct tec_plan *p, struct tec_kv_space *space, int kv_heads,
                                  int head_dim, int rows, struct tec_error *err)
{
    const struct tec_kv_shape shape = {1, kv_heads, head_dim, false};
    return make_space(p, space, &shape, rows, err);
}

/* Allocate what the parts of a stream write besides their activations: tower KV and scratch. */
static enum tec_status make_stream(struct tec_plan *p, enum tec_stream stream,
                                   struct tec_error *err)
{
    if (stream == TEC_STREAM_BESIDE && tec_device_lanes_concurrent(p->device) < 1)
        return tec_fail(err, TEC_INVALID, "the device has no lanes to split off");
    const struct tec_vision *v = &p->model->vision;
    const struct tec_model_program *program = p->model->program;
    int widest = tec_model_kept(p->model)->head_dim;
    for (int i = 0; i < v->n_towers; i++) {
        const struct tec_tower *tower = &v->towers[i];
        int rings = p->spec.rings ? p->spec.rings : tec_plan_together(p);
        int rows = p->spec.pictures * rings * (tower->prefix_rows + v->patches);
        widest = tower->stack.head_dim > widest ? tower->stack.head_dim : widest;
        TEC_TRY(make_tower(p, &p->towers[stream][i], tower->stack.kv_heads, tower->stack.head_dim,
                           rows, err));
    }
    const struct tec_stack *text = &p->model->text.stack;
    bool reads = tec_model_denoises(p->model);
    struct tec_kv_space *spaces = reads ? p->reading[stream] + 1 : p->towers[stream];
    for (int i = 0; program && i < program->n_among; i++) {
        const struct tec_rows_among *m = &program->among[i];
        int rows = reads ? p->spec.frame_tokens : program->calls[m->call].rows;
        widest = m->head_dim > widest ? m->head_dim : widest;
        TEC_TRY(make_tower(p, &spaces[i], m->kv_heads, m->head_dim, rows, err));
    }
    if (reads)
        TEC_TRY(make_tower(p, &p->reading[stream][0], text->kv_heads, text->head_dim,
                           p->spec.frame_tokens, err));
    widest = reads && text->head_dim > widest ? text->head_dim : widest;
    return tec_plan_constant(p, tec_device_scratch(p->device, stream, widest), &p->scratch[stream],
                             err);
}

/* The earliest action node with the same times: they share their tables. */
static int same_flow(const struct tec_plan *p, int action)
{
    const struct tec_plan_action *a = p->spec.actions;
    int i = 0;
    while (a[i].steps != a[action].steps || (a[i].fixed > 0) != (a[action].fixed > 0))
        i++;
    return i;
}

static enum tec_status make_flows(struct tec_plan *p, const struct tec_plan_inputs *in,
                                  struct tec_error *err)
{
    for (int i = 0; i < p->spec.n_actions; i++) {
        const struct tec_plan_action *a = &p->spec.actions[i];
        int same = same_flow(p, i);
        p->timed[i] = p->timed[same];
        if (same < i)
            continue;
        const struct tec_timed_options times = {.steps = a->steps, .actions = a->fixed > 0};
        TEC_TRY(tec_timed_create(&p->timed[i], p->model->program, &in->source, &times, p->device,
                                 p->heap, err));
        p->bytes.tables += p->timed[i]->bytes;
    }
    return TEC_OK;
}

/* Room for the rows of a model's pictures, which all its plans that share use. */
static enum tec_status take_picture_rows(struct tec_plan *p, float *others, struct tec_error *err)
{
    const struct tec_model *m = p->model;
    size_t rows = (size_t)m->n_slots * (size_t)m->vision.tokens;
    size_t bytes = rows * (size_t)tec_padded(m->text.stack.width) * sizeof(float);
    if (!p->spec.shares || p->spec.interpret)
        return TEC_OK;
    p->picture_rows = others;
    if (others)
        return TEC_OK;
    p->picture_rows = tec_device_get(p->device, bytes);
    p->owns_rows = true;
    p->bytes.activations += (int64_t)bytes;
    return p->picture_rows ? TEC_OK
                           : tec_fail(err, TEC_NO_MEMORY,
                                      "no memory for the rows of pictures, %zu bytes", bytes);
}

static enum tec_status run_passes(struct tec_plan *p, bool lower, struct tec_error *err)
{
    if (p->weights->packed || p->spec.segments > 0)
        TEC_TRY(tec_device_take_rows(p->device, err));
    for (size_t i = 0; i < sizeof passes / sizeof passes[0]; i++) {
        bool wanted = lower || passes[i].run != tec_pass_lower;
        enum tec_status status = wanted ? passes[i].run(p, err) : TEC_OK;
        if (status != TEC_OK)
            return tec_context(err, status, "pass %s", passes[i].name);
    }
    return TEC_OK;
}

/* Tools that read each layer's rows (interpreter, taps, whole layers) find others in a branching
 * recall: a row that is dropped leaves half a layer later. */
static bool branches(const struct tec_plan *p)
{
    const struct tec_plan_spec *s = &p->spec;
    bool plain = !s->interpret && !s->taps && !s->whole && !s->compares;
    return plain && s->segments > 0 && p->model->text.stack.layers > 1 &&
           (s->branches || tec_device_branches(p->device));
}

static enum tec_status create(struct tec_plan *p, const struct tec_plan_inputs *in,
                              struct tec_error *err)
{
    TEC_TRY(tec_plan_check(&p->spec, p->model, err));
    p->spec.branches = branches(p);
    TEC_TRY(reserve_slots(p, err));
    TEC_TRY(tec_plan_constants(p, err));
    TEC_TRY(make_stream(p, TEC_STREAM_MAIN, err));
    if (p->spec.beside)
        TEC_TRY(make_stream(p, TEC_STREAM_BESIDE, err));
    if (tec_model_flows(p->model) || tec_model_denoises(p->model))
        TEC_TRY(make_flows(p, in, err));
    TEC_TRY(take_picture_rows(p, in->picture_rows, err));
    TEC_TRY(run_passes(p, true, err));
    struct tec_byte_plan *b = &p->bytes;
    b->weights = p->weights->bytes;
    b->workspace = tec_device_workspace(p->device);
    b->total = b->weights + b->tables + b->kv + b->activations + b->frames + b->constants +
               b->taps + b->workspace;
    return TEC_OK;
}

/* An empty plan with its arena. */
static struct tec_plan *new_plan(const struct tec_model *model, const struct tec_weights *weights,
                                 struct tec_device *device, struct tec_heap *heap,
                                 struct tec_error *err)
{
    struct tec_plan *p = tec_heap_get(heap, sizeof *p);
    if (!p) {
        tec_fail(err, TEC_NO_MEMORY, "no memory for a plan");
        return NULL;
    }
    p->model = model;
    p->weights = weights;
    p->device = device;
    p->heap = heap;
    tec_arena_init(&p->arena, heap);
    return p;
}

enum tec_status tec_plan_create(struct tec_plan **out, const struct tec_plan_inputs *in,
                                struct tec_heap *heap, struct tec_error *err)
{
    struct tec_plan *p = new_plan(in->model, in->weights, in->device, heap, err);
    if (!p)
        return TEC_NO_MEMORY;
    p->spec = *in->spec;
    enum tec_status status = create(p, in, err);
    if (status != TEC_OK) {
        tec_plan_destroy(p);
        return status;
    }
    *out = p;
    return TEC_OK;
}

enum tec_status tec_plan_begin(struct tec_plan **out, const struct tec_model *model,
                               const struct tec_weights *weights, struct tec_device *device,
                               struct tec_heap *heap, struct tec_error *err)
{
    struct tec_plan *p = new_plan(model, weights, device, heap, err);
    if (!p)
        return TEC_NO_MEMORY;
    tec_plan_add_part(p, TEC_PART_ENCODE, "encode", false);
    *out = p;
    return TEC_OK;
}

enum tec_status tec_plan_finish(struct tec_plan *p, struct tec_error *err)
{
    return run_passes(p, false, err);
}

/* The three arrays of the trie are one block, which begins with `first`. */
static void put_trie(struct tec_plan *p)
{
    void *block;
    memcpy(&block, &p->trie.first, sizeof block);
    tec_device_put(p->device, block);
}

void tec_plan_destroy(struct tec_plan *p)
{
    if (!p)
        return;
    for (int i = 0; i < p->n_parts; i++) {
        tec_capture_free(p->parts[i].capture);
        for (int s = 0; s < p->parts[i].n_slices && p->parts[i].slices; s++)
            tec_capture_free(p->parts[i].slices[s]);
        if (p->parts[i].kind != TEC_PART_RECALL_BRANCH) /* whose place is the recall's */
            tec_device_put(p->device, p->parts[i].own);
        if (p->parts[i].kind == TEC_PART_RECALL)
            tec_table_recall_finish(&p->parts[i].recall, p->device);
        tec_table_finish(&p->parts[i].block, p->device);
        tec_table_finish(&p->parts[i].choice, p->device);
        tec_table_finish(&p->parts[i].seen, p->device);
        tec_taps_finish(&p->parts[i].taps, p->device);
    }
    tec_kv_space_destroy(&p->space);
    tec_kv_space_destroy(&p->gathered);
    tec_kv_space_destroy(&p->kept);
    tec_kv_space_destroy(&p->crossed);
    for (int i = 0; i < TEC_STREAM_COUNT; i++) {
        for (int t = 0; t < TEC_MAX_TOWERS; t++)
            tec_kv_space_destroy(&p->towers[i][t]);
        for (int t = 0; t < 1 + TEC_MAX_TOWERS; t++)
            tec_kv_space_destroy(&p->reading[i][t]);
        tec_device_put(p->device, p->scratch[i]);
    }
    for (int i = 0; i < p->spec.n_actions; i++)
        if (same_flow(p, i) == i)
            tec_timed_destroy(p->timed[i]);
    for (int i = 0; i < p->n_streams; i++)
        tec_device_put(p->device, p->activations[i]);
    for (int i = 0; i < TEC_MAX_ROTATIONS + TEC_MAX_TOWERS; i++)
        tec_device_put(p->device, p->cos_sin[i]);
    tec_device_put(p->device, p->lut);
    if (p->owns_rows)
        tec_device_put(p->device, p->picture_rows);
    tec_device_put(p->device, p->zero);
    tec_device_put(p->device, p->ends);
    tec_device_put(p->device, p->shuffle);
    put_trie(p);
    tec_arena_finish(&p->arena);
    tec_heap_put(p->heap, p);
}
