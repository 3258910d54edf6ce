/* dump.c - collects what the model got and gave in each frame, and writes it as tensors of one
 * safetensors file. */
#include "tools/frames/dump.h"

#include "base/store/safetensors.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A tensor that grows row by row. */
struct column {
    char name[120];
    enum tec_dtype dtype;
    int rank; /* rank of one row */
    int64_t shape[2];
    size_t bytes; /* bytes of one row */
    unsigned char *data;
    size_t n, room; /* rows */
};

enum { FRAME, PROMPT_IDS, PROMPT_TOKENS, STATE, N_FRAME_COLUMNS };
enum { NOISE, CHUNK, ACTIONS, N_ACTION_COLUMNS };
enum { REQUEST, TOKENS, COUNT, DONE, N_TEXT_COLUMNS };

struct tec_dump {
    struct tec_heap *heap;
    int n_decoders, n_actions; /* action nodes, at least one */
    int max_text, max_tokens;
    size_t dim, chunk, actions;
    struct column frames[N_FRAME_COLUMNS];
    struct column nodes[TEC_MAX_ACTIONS][N_ACTION_COLUMNS];
    struct column texts[TEC_MAX_DECODERS][N_TEXT_COLUMNS];
};

/* Add one zeroed row, or return NULL without memory. */
static void *add_row(struct tec_dump *d, struct column *c)
{
    if (c->n == c->room) {
        size_t room = c->room ? 2 * c->room : 64;
        unsigned char *data = room <= SIZE_MAX / (c->bytes + 1) / 2
                                  ? tec_heap_get(d->heap, room * c->bytes + 1)
                                  : NULL;
        if (!data)
            return NULL;
        if (c->n)
            memcpy(data, c->data, c->n * c->bytes);
        tec_heap_put(d->heap, c->data);
        c->data = data;
        c->room = room;
    }
    void *row = c->data + c->n++ * c->bytes;
    memset(row, 0, c->bytes);
    return row;
}

static void describe(struct column *c, const char *node, const char *name, enum tec_dtype dtype,
                     int64_t rows, int64_t columns)
{
    snprintf(c->name, sizeof c->name, "%.80s%s%s", node, *node ? "." : "", name);
    c->dtype = dtype;
    c->rank = columns > 0 ? 2 : rows > 0 ? 1 : 0;
    c->shape[0] = rows;
    c->shape[1] = columns;
    c->bytes = (size_t)tec_dtype_bits(dtype) / 8 * (rows > 0 ? (size_t)rows : 1) *
               (columns > 0 ? (size_t)columns : 1);
}

enum tec_status tec_dump_create(struct tec_dump **out, const struct tec_frames *f,
                                struct tec_heap *heap, struct tec_error *err)
{
    struct tec_dump *d = tec_heap_get(heap, sizeof *d);
    if (!d)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a dump");
    const struct tec_engine *e = f->opened.engine;
    const struct tec_plan_spec *s = &e->plan->spec;
    int64_t dim = f->model->flow.dim;
    d->heap = heap;
    d->n_decoders = f->n_decoders;
    d->n_actions = f->n_actions ? f->n_actions : 1;
    d->max_text = s->text_tokens;
    d->max_tokens = s->new_tokens;
    d->dim = (size_t)dim;
    describe(&d->frames[FRAME], "", "frame", TEC_I64, 0, 0);
    describe(&d->frames[PROMPT_IDS], "", "prompt_ids", TEC_I32, s->text_tokens, 0);
    describe(&d->frames[PROMPT_TOKENS], "", "prompt_tokens", TEC_I32, 0, 0);
    describe(&d->frames[STATE], "", "state", TEC_F32, dim, 0);
    for (int i = 0; i < d->n_actions; i++) { /* the first one's are plain */
        const char *node = i ? f->actions[i] : "";
        const struct tec_session *session = tec_engine_session(e, i);
        const struct tec_flow *flow = tec_engine_flow(e, i);
        describe(&d->nodes[i][NOISE], node, "noise", TEC_F32, flow->horizon, flow->dim);
        describe(&d->nodes[i][CHUNK], node, "chunk", TEC_F32, flow->horizon, flow->dim);
        describe(&d->nodes[i][ACTIONS], node, "actions", TEC_F64, tec_session_rows(session),
                 tec_session_columns(session));
    }
    for (int i = 0; i < f->n_decoders; i++) {
        describe(&d->texts[i][REQUEST], f->decoders[i], "request", TEC_I64, 0, 0);
        describe(&d->texts[i][TOKENS], f->decoders[i], "tokens", TEC_I32, s->new_tokens, 0);
        describe(&d->texts[i][COUNT], f->decoders[i], "count", TEC_I32, 0, 0);
        describe(&d->texts[i][DONE], f->decoders[i], "done", TEC_I32, 0, 0);
    }
    *out = d;
    return TEC_OK;
}

void tec_dump_destroy(struct tec_dump *d)
{
    if (!d)
        return;
    for (int i = 0; i < N_FRAME_COLUMNS; i++)
        tec_heap_put(d->heap, d->frames[i].data);
    for (int i = 0; i < d->n_actions; i++)
        for (int k = 0; k < N_ACTION_COLUMNS; k++)
            tec_heap_put(d->heap, d->nodes[i][k].data);
    for (int i = 0; i < d->n_decoders; i++)
        for (int k = 0; k < N_TEXT_COLUMNS; k++)
            tec_heap_put(d->heap, d->texts[i][k].data);
    tec_heap_put(d->heap, d);
}

/* Put the actions into a frame's row: a ring's into that of the observation that they answer. */
static void put_left(struct tec_dump *d, const struct tec_frame_left *left, int64_t row)
{
    const struct column *frames = &d->frames[FRAME];
    struct column *c = d->nodes[left->action];
    for (size_t i = left->chunk ? frames->n : 0; i-- > 0;) {
        int64_t at;
        memcpy(&at, frames->data + i * sizeof at, sizeof at);
        if (at != row)
            continue;
        memcpy(c[CHUNK].data + i * c[CHUNK].bytes, left->chunk, c[CHUNK].bytes);
        if (left->actions)
            memcpy(c[ACTIONS].data + i * c[ACTIONS].bytes, left->actions,
                   (size_t)left->rows * (size_t)left->columns * sizeof(double));
        return;
    }
}

/* Of a pipeline without actions that of its first chain, which judges look at. */
static const float *noise_of(const struct tec_frames *f, const struct tec_frame_input *in,
                             int action)
{
    const struct tec_loop_options *o = tec_loop_settings(f->opened.engine->loop);
    if (o->n_actions == 0)
        return in->chains[0].noise[0];
    return in->chains[o->actions[action].chain].noise[o->actions[action].at];
}

/* What an action node starts from, and no chunk yet. */
static enum tec_status add_start(struct tec_dump *d, struct column *node, const float *noise,
                                 struct tec_error *err)
{
    void *row[N_ACTION_COLUMNS];
    for (int i = 0; i < N_ACTION_COLUMNS; i++)
        if (!(row[i] = add_row(d, &node[i])))
            return tec_fail(err, TEC_NO_MEMORY, "no memory for a dump");
    double *actions = row[ACTIONS];
    memcpy(row[NOISE], noise, node[NOISE].bytes);
    for (size_t i = 0; i < node[ACTIONS].bytes / sizeof *actions; i++)
        actions[i] = (double)NAN;
    return TEC_OK;
}

static enum tec_status add_observed(struct tec_dump *d, const struct tec_frames *f,
                                    const struct tec_frame_out *frame, struct tec_error *err)
{
    const struct tec_chain_input *in = &frame->input.chains[0];
    void *row[N_FRAME_COLUMNS];
    for (int i = 0; i < N_FRAME_COLUMNS; i++)
        if (!(row[i] = add_row(d, &d->frames[i])))
            return tec_fail(err, TEC_NO_MEMORY, "no memory for a dump");
    int32_t n =
        tec_session_prompt_tokens(tec_session_of(f->opened.engine->session, 0), &frame->input);
    n = n < d->max_text ? n : d->max_text;
    memcpy(row[FRAME], &frame->record->frame, sizeof frame->record->frame);
    memcpy(row[PROMPT_IDS], in->prefix.ids, (size_t)n * sizeof(int32_t));
    memcpy(row[PROMPT_TOKENS], &n, sizeof n);
    memcpy(row[STATE], in->state, d->dim * sizeof(float));
    for (int i = 0; i < d->n_actions; i++)
        TEC_TRY(add_start(d, d->nodes[i], noise_of(f, &frame->input, i), err));
    return TEC_OK;
}

/* The rows of texts are ordered by request, so that a file does not depend on the order in which
 * texts ended. */
static size_t place_of(const struct column *requests, int64_t id, bool *there)
{
    size_t i = requests->n;
    for (*there = false; i > 0; i--) {
        int64_t at;
        memcpy(&at, requests->data + (i - 1) * sizeof at, sizeof at);
        *there = at == id;
        if (at <= id)
            return *there ? i - 1 : i;
    }
    return 0;
}

static bool insert_row(struct tec_dump *d, struct column *c, size_t row)
{
    if (!add_row(d, c))
        return false;
    unsigned char *at = c->data + row * c->bytes;
    memmove(at + c->bytes, at, (c->n - 1 - row) * c->bytes);
    memset(at, 0, c->bytes);
    return true;
}

static enum tec_status add_text(struct tec_dump *d, const struct tec_frame_text *t,
                                struct tec_error *err)
{
    struct column *c = d->texts[t->decoder];
    bool there;
    size_t row = place_of(&c[REQUEST], t->request, &there);
    for (int i = 0; !there && i < N_TEXT_COLUMNS; i++)
        if (!insert_row(d, &c[i], row))
            return tec_fail(err, TEC_NO_MEMORY, "no memory for a dump");
    int32_t n = t->n_whole < d->max_tokens ? t->n_whole : d->max_tokens, done = t->done;
    memcpy(c[REQUEST].data + row * c[REQUEST].bytes, &t->request, sizeof t->request);
    memcpy(c[TOKENS].data + row * c[TOKENS].bytes, t->all, (size_t)n * sizeof(int32_t));
    memcpy(c[COUNT].data + row * c[COUNT].bytes, &n, sizeof n);
    memcpy(c[DONE].data + row * c[DONE].bytes, &done, sizeof done);
    return TEC_OK;
}

enum tec_status tec_dump_frame(struct tec_dump *d, const struct tec_frames *f,
                               const struct tec_frame_out *frame, struct tec_error *err)
{
    if (frame->observed)
        TEC_TRY(add_observed(d, f, frame, err));
    for (int i = 0; i < frame->n_left; i++)
        put_left(d, &frame->left[i], f->stages ? frame->left[i].seen : frame->record->frame);
    for (int i = 0; i < frame->n_texts; i++)
        TEC_TRY(add_text(d, &frame->texts[i], err));
    return TEC_OK;
}

static void put_entry(struct tec_tensor_entry *e, const struct column *c)
{
    *e = (struct tec_tensor_entry){.name = c->name,
                                   .dtype = c->dtype,
                                   .rank = c->rank + 1,
                                   .shape = {(int64_t)c->n, c->shape[0], c->shape[1]},
                                   .data = c->data ? c->data : (const void *)""};
}

enum tec_status tec_dump_write(struct tec_dump *d, const char *path, struct tec_error *err)
{
    enum { MOST = N_FRAME_COLUMNS + TEC_MAX_ACTIONS * N_ACTION_COLUMNS };
    struct tec_tensor_entry entries[MOST + TEC_MAX_DECODERS * N_TEXT_COLUMNS];
    size_t n = 0;
    for (int i = 0; i < N_FRAME_COLUMNS; i++)
        put_entry(&entries[n++], &d->frames[i]);
    for (int i = 0; i < d->n_actions; i++)
        for (int k = 0; k < N_ACTION_COLUMNS; k++)
            put_entry(&entries[n++], &d->nodes[i][k]);
    for (int i = 0; i < d->n_decoders; i++)
        for (int k = 0; k < N_TEXT_COLUMNS; k++)
            put_entry(&entries[n++], &d->texts[i][k]);
    return tec_context(err, tec_tensors_write(path, entries, n, d->heap, err), "--dump");
}
