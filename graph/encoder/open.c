/* open.c - from a directory to an encoder that is ready. */
#include "graph/encoder/encoder_own.h"
#include "kernels/matrix.h"

#include <string.h>

enum { MAX_TEXTS = 4096, DEFAULT_TEXTS = 32, MAX_ROWS = 1 << 20, SCRATCH = 1 << 18 };

static enum tec_status no_memory(const struct tec_encoder *e, const char *what,
                                 struct tec_error *err)
{
    return tec_fail(err, TEC_NO_MEMORY, "%s: no memory for %s", e->options.path, what);
}

/* How many tokens a text may have: what the directory says, as far as there are positions. */
static enum tec_status decide_limits(struct tec_encoder *e, struct tec_error *err)
{
    const int *ids;
    TEC_TRY(tec_encoder_directory_limit(&e->tokens, &e->directory, &e->model->text, err));
    int around = tec_tokenizer_around(e->tokenizer, false, &ids) +
                 tec_tokenizer_around(e->tokenizer, true, &ids);
    if (e->tokens <= around || around == 0)
        return tec_fail(err, TEC_UNSUPPORTED,
                        "%s: %d tokens stand around a text, of %d in all; an encoder needs some, "
                        "and room between them",
                        e->checkpoint->tokenizer, around, e->tokens);
    const struct tec_encoder_options *o = &e->options;
    e->texts = o->max_texts ? o->max_texts : DEFAULT_TEXTS;
    e->rows = o->max_rows > e->tokens ? o->max_rows : e->tokens;
    if (e->texts < 1 || e->texts > MAX_TEXTS || e->rows > MAX_ROWS)
        return tec_fail(err, TEC_INVALID, "a forward of %d texts and %d tokens; at most %d and %d",
                        e->texts, e->rows, MAX_TEXTS, MAX_ROWS);
    return TEC_OK;
}

static enum tec_status open_files(struct tec_encoder *e, struct tec_error *err)
{
    const struct tec_encoder_options *o = &e->options;
    struct tec_encoder_directory *d = &e->directory;
    TEC_TRY(tec_encoder_directory_read(d, o->path, e->heap, &e->arena, err));
    TEC_TRY(tec_checkpoint_open(&e->checkpoint, d->checkpoint, e->heap, err));
    const struct tec_model_choice choice = {.root = o->models, .checkpoint = e->checkpoint};
    TEC_TRY(tec_model_open(&e->model, &choice, e->heap, err));
    if (!tec_model_encodes(e->model))
        return tec_fail(err, TEC_UNSUPPORTED,
                        "%s: model '%s' makes no vector of a text: it is no encoder", d->checkpoint,
                        e->model->name);
    if (d->width && d->width != e->model->text.stack.width)
        return tec_fail(err, TEC_MALFORMED,
                        "%s/modules.json: the pooling is of %d numbers, the model makes %d",
                        o->path, d->width, e->model->text.stack.width);
    TEC_TRY(tec_tokenizer_open(&e->tokenizer,
                               e->checkpoint->tokenizer ? e->checkpoint->tokenizer : d->checkpoint,
                               e->heap, err));
    if (tec_tokenizer_size(e->tokenizer) > e->model->text.vocab)
        return tec_fail(err, TEC_MALFORMED,
                        "%s: the tokenizer has %d ids, the model's embedding %d rows",
                        d->checkpoint, tec_tokenizer_size(e->tokenizer), e->model->text.vocab);
    return decide_limits(e, err);
}

/* Values that are rows of the identity: key j of a text in the first rows has a one in column j of
 * table j / head_dim. */
static enum tec_status make_units(struct tec_encoder *e, struct tec_error *err)
{
    const struct tec_stack *s = &e->model->text.stack;
    const struct tec_kv_space *space = &e->plan->space;
    size_t cols = (size_t)s->kv_heads * (size_t)s->head_dim;
    int n = (e->tokens + s->head_dim - 1) / s->head_dim;
    n = n < 64 ? n : 64;
    e->units = TEC_NEW(&e->arena, (size_t)n, float *);
    float *line = TEC_NEW(&e->arena, cols, float);
    if (!e->units || !line)
        return no_memory(e, "taps", err);
    for (; e->n_units < n; e->n_units++) {
        int i = e->n_units;
        e->units[i] = tec_device_get(e->device, space->bytes);
        if (!e->units[i])
            return no_memory(e, "taps", err);
        for (int d = 0; d < s->head_dim && i * s->head_dim + d < space->slots; d++) {
            for (int h = 0; h < s->kv_heads; h++)
                line[h * s->head_dim + d] = 1.0F;
            tec_device_upload(e->device, TEC_STREAM_MAIN,
                              e->units[i] + (size_t)(i * s->head_dim + d) * cols, line,
                              cols * sizeof *line);
            memset(line, 0, cols * sizeof *line);
        }
    }
    return TEC_OK;
}

/* Scratch of the keys, the table, what is written, the constants: what lowering points at. */
static enum tec_status take_memory(struct tec_encoder *e, struct tec_error *err)
{
    const struct tec_stack *s = &e->model->text.stack;
    struct tec_plan *p = e->plan;
    size_t out = (size_t)e->texts * (size_t)tec_padded(s->width) * sizeof(float);
    tec_kv_space_init(&p->space, &(struct tec_kv_shape){1, s->kv_heads, s->head_dim, false});
    tec_kv_space_reserve(&p->space, e->rows);
    TEC_TRY(tec_kv_space_create(&p->space, e->device, &p->arena, err));
    const struct tec_encode_limits limits = {.rows = e->rows, .texts = e->texts};
    TEC_TRY(tec_table_init(&p->parts[0].block, &tec_encode_tables, &e->table, &e->device_table,
                           &limits, e->device, &p->arena, err));
    p->scratch[0] =
        tec_device_get(e->device, tec_device_scratch(e->device, TEC_STREAM_MAIN, s->head_dim));
    p->zero = tec_device_get(e->device, sizeof(int)); /* is 0 */
    e->out = tec_device_get(e->device, out);
    e->host = TEC_NEW(&e->arena, out / sizeof(float), float);
    e->ids = TEC_NEW(&e->arena, (size_t)e->tokens, int);
    if (!p->scratch[0] || !p->zero || !e->out || !e->host || !e->ids ||
        !tec_arena_push(&e->scratch, SCRATCH, 1, 1))
        return no_memory(e, "its tables", err);
    return e->options.taps ? make_units(e, err) : TEC_OK;
}

static enum tec_status compile(struct tec_encoder *e, struct tec_error *err)
{
    TEC_TRY(tec_plan_begin(&e->plan, e->model, e->weights, e->device, e->heap, err));
    TEC_TRY(take_memory(e, err));
    struct tec_plan *p = e->plan;
    struct tec_lower l = {.program = &p->parts[0].program,
                          .model = e->model,
                          .weights = e->weights,
                          .space = &p->space,
                          .scratch = p->scratch[0],
                          .zero = p->zero,
                          .device = e->device,
                          .hidden = -1,
                          .taps = e->options.taps ? &p->parts[0].taps : NULL};
    const struct tec_encoding encode = {.table = &e->device_table,
                                        .max_texts = e->texts,
                                        .unit = e->directory.unit,
                                        .out = e->out,
                                        .units = e->units,
                                        .n_units = e->n_units};
    tec_lower_encode(&l, &encode);
    TEC_TRY(tec_program_status(&p->parts[0].program, err));
    return tec_plan_finish(p, err);
}

static enum tec_status open_into(struct tec_encoder *e, struct tec_error *err)
{
    TEC_TRY(open_files(e, err));
    TEC_TRY(tec_device_open(&e->device, &e->options.device, e->heap, err));
    const struct tec_weights_options w = {.model = e->model,
                                          .source = {.checkpoint = e->checkpoint},
                                          .device = e->device,
                                          .bf16 = e->options.bf16};
    TEC_TRY(tec_weights_load(&e->weights, &w, e->heap, err));
    return compile(e, err);
}

enum tec_status tec_encoder_open(struct tec_encoder **out,
                                 const struct tec_encoder_options *options, struct tec_heap *heap,
                                 struct tec_error *err)
{
    struct tec_encoder *e = tec_heap_get(heap, sizeof *e);
    *out = NULL;
    if (!e)
        return tec_fail(err, TEC_NO_MEMORY, "%s: no memory for an encoder", options->path);
    e->heap = heap;
    e->options = *options;
    tec_arena_init(&e->arena, heap);
    tec_arena_init(&e->scratch, heap);
    enum tec_status status = open_into(e, err);
    e->options.path = e->options.models = NULL; /* the caller's */
    if (status == TEC_OK)
        *out = e;
    else
        tec_encoder_close(e);
    return status;
}

void tec_encoder_close(struct tec_encoder *e)
{
    if (!e)
        return;
    for (int i = 0; i < e->n_units; i++)
        tec_device_put(e->device, e->units[i]);
    if (e->out)
        tec_device_put(e->device, e->out);
    tec_plan_destroy(e->plan);
    tec_weights_close(e->weights);
    tec_device_close(e->device);
    tec_tokenizer_close(e->tokenizer);
    tec_model_close(e->model);
    tec_checkpoint_close(e->checkpoint);
    tec_arena_finish(&e->scratch);
    tec_arena_finish(&e->arena);
    tec_heap_put(e->heap, e);
}
