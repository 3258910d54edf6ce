/* encoder.c - embeds texts: tokenizes them, packs them into forwards and returns a vector each.
 *
 * Runs on the one thread that owns the encoder. Texts of a call are sequences of one forward,
 * without padding, until its rows or texts are full; then the forward runs and the next one is
 * filled. A row attends to its own text only, so a text's vector has the same bytes in any
 * company. */
#include "graph/encoder/encoder.h"

#include "base/text/bytes.h"
#include "graph/encoder/encoder_own.h"
#include "kernels/matrix.h"

#include <string.h>

int tec_encoder_width(const struct tec_encoder *e)
{
    return e->model->text.stack.width;
}

int tec_encoder_tokens(const struct tec_encoder *e)
{
    return e->tokens;
}

const struct tec_model *tec_encoder_model(const struct tec_encoder *e)
{
    return e->model;
}

/* Put the folder's prompt before a text, in scratch. */
static enum tec_status add_prompt(struct tec_encoder *e, struct tec_encoder_text *text,
                                  struct tec_error *err)
{
    const char *prompt = e->directory.prompt;
    struct tec_bytes whole;
    if (!prompt || !*prompt)
        return TEC_OK;
    tec_bytes_init(&whole, &e->scratch, 0);
    tec_bytes_add(&whole, prompt, strlen(prompt));
    tec_bytes_add(&whole, text->at, text->n);
    if (whole.failed)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a text of %zu bytes", text->n);
    *text = (struct tec_encoder_text){whole.at, whole.n};
    return TEC_OK;
}

enum tec_status tec_encoder_ids(struct tec_encoder *e, struct tec_encoder_text text, int *ids,
                                int *n, struct tec_error *err)
{
    const int *before, *after;
    int n_before = tec_tokenizer_around(e->tokenizer, false, &before);
    int n_after = tec_tokenizer_around(e->tokenizer, true, &after);
    size_t room = (size_t)(e->tokens - n_before - n_after), count = 0;
    struct tec_arena_mark empty = tec_arena_mark(&e->scratch);
    empty.used = 0;
    tec_arena_rewind(&e->scratch, empty);
    TEC_TRY(add_prompt(e, &text, err));
    TEC_TRY(tec_tokenizer_encode(e->tokenizer, text.at, text.n, (struct tec_encode){0},
                                 ids + n_before, room, &count, &e->scratch, err));
    int inner = (int)(count < room ? count : room);
    memcpy(ids, before, (size_t)n_before * sizeof *ids);
    memcpy(ids + n_before + inner, after, (size_t)n_after * sizeof *ids);
    *n = n_before + inner + n_after;
    return TEC_OK;
}

/* The rows of a text whose mean is its vector; the mean of one row is that row, to the bit. */
static struct tec_span pooled_rows(enum tec_encoder_pool pool, int first, int n)
{
    const struct tec_span rows[] = {[TEC_ENCODER_POOL_MEAN] = {first, n},
                                    [TEC_ENCODER_POOL_FIRST] = {first, 1},
                                    [TEC_ENCODER_POOL_LAST] = {first + n - 1, 1}};
    return rows[pool];
}

/* Append a text to the forward that is being filled. */
static void add_text(struct tec_encoder *e, const int *ids, int n)
{
    struct tec_encode_table *t = &e->table;
    const struct tec_positions *p = &e->model->text.position;
    int first = e->filled, counted = 0;
    for (int i = 0; i < n; i++) {
        int r = first + i;
        bool skip = p->skip >= 0 && ids[i] == p->skip;
        t->ids[r] = ids[i];
        t->place[r] = skip ? p->first - 1 : p->first + counted++;
        t->rows.pos[r] = i;
        t->rows.seq[r] = e->n_texts;
        t->rows.visible[r] = n;
    }
    t->rows.spans[e->n_texts] = (struct tec_span){first, n};
    t->pool[e->n_texts++] = pooled_rows(e->directory.pool, first, n);
    e->filled += n;
}

/* Run the forward that has been filled and copy its vectors to out. */
static enum tec_status flush(struct tec_encoder *e, float *out, struct tec_error *err)
{
    struct tec_plan_part *part = &e->plan->parts[0];
    struct tec_replay replay = {.status = TEC_OK};
    int width = tec_encoder_width(e), ld = tec_padded(width), n = e->n_texts;
    *e->table.rows.count = e->filled;
    *e->table.n_texts = n;
    e->filled = e->n_texts = 0;
    if (n == 0)
        return TEC_OK;
    tec_device_upload(e->device, TEC_STREAM_MAIN, part->block.device, part->block.host,
                      part->block.size);
    tec_device_replay(e->device, part->capture, &replay);
    tec_device_download(e->device, TEC_STREAM_MAIN, e->host, e->out,
                        (size_t)n * (size_t)ld * sizeof *e->host);
    TEC_TRY(tec_device_failure(e->device, err));
    for (int i = 0; i < n; i++)
        memcpy(out + (size_t)i * (size_t)width, e->host + (size_t)i * (size_t)ld,
               (size_t)width * sizeof *out);
    return TEC_OK;
}

/* Add text i of a call, after a flush if the forward is full; *done counts finished texts. */
static enum tec_status add(struct tec_encoder *e, const int *ids, int n, int i, int *done,
                           float *out, struct tec_error *err)
{
    if (e->n_texts == e->texts || e->filled + n > e->rows) {
        TEC_TRY(flush(e, out + (size_t)*done * (size_t)tec_encoder_width(e), err));
        *done = i;
    }
    add_text(e, ids, n);
    return TEC_OK;
}

enum tec_status tec_encoder_embed(struct tec_encoder *e, const struct tec_encoder_text *texts,
                                  int n, float *out, struct tec_error *err)
{
    int done = 0, count = 0;
    e->filled = e->n_texts = 0;
    for (int i = 0; i < n; i++) {
        enum tec_status status = tec_encoder_ids(e, texts[i], e->ids, &count, err);
        if (status != TEC_OK)
            return tec_context(err, status, "text %d", i);
        TEC_TRY(add(e, e->ids, count, i, &done, out, err));
    }
    return flush(e, out + (size_t)done * (size_t)tec_encoder_width(e), err);
}

enum tec_status tec_encoder_embed_ids(struct tec_encoder *e, const int *ids, const int *starts,
                                      int n, float *out, struct tec_error *err)
{
    int done = 0;
    e->filled = e->n_texts = 0;
    for (int i = 0; i < n; i++) {
        int count = starts[i + 1] - starts[i];
        if (count < 1 || count > e->tokens)
            return tec_fail(err, TEC_INVALID, "text %d: %d ids; must be 1 .. %d", i, count,
                            e->tokens);
        for (int j = starts[i]; j < starts[i + 1]; j++)
            if (ids[j] < 0 || ids[j] >= e->model->text.vocab)
                return tec_fail(err, TEC_INVALID, "text %d: id %d is not one of the %d there are",
                                i, ids[j], e->model->text.vocab);
        TEC_TRY(add(e, ids + starts[i], count, i, &done, out, err));
    }
    return flush(e, out + (size_t)done * (size_t)tec_encoder_width(e), err);
}

float *tec_encoder_tap(struct tec_encoder *e, const char *name, int *rows, int *cols,
                       struct tec_arena *arena)
{
    const struct tec_taps *taps = &e->plan->parts[0].taps;
    const struct tec_tap *t = NULL;
    for (int i = 0; i < taps->n && !t; i++)
        t = strcmp(taps->items[i].name, name) == 0 ? &taps->items[i] : NULL;
    if (!t)
        return NULL;
    *rows = t->rows;
    *cols = t->cols;
    if (t->live)
        tec_device_download(e->device, TEC_STREAM_MAIN, rows, t->live, sizeof *rows);
    float *out = TEC_NEW(arena, (size_t)*rows * (size_t)t->cols, float);
    for (int r = 0; out && r < *rows; r++)
        tec_device_download(e->device, TEC_STREAM_MAIN, out + (size_t)r * (size_t)t->cols,
                            t->data + (size_t)r * (size_t)t->ld, (size_t)t->cols * sizeof *out);
    return out;
}
