#include "graph/run/session_own.h"

#include <string.h>

enum tec_status tec_own_init(struct tec_own_inputs *own, const struct tec_pipeline *pipeline,
                             struct tec_error *err)
{
    own->n = 0;
    for (int i = 0; i < pipeline->n_inputs; i++) {
        const struct tec_decl_input *in = &pipeline->inputs[i];
        if (tec_pipeline_prompt(pipeline, i) < 0)
            continue;
        if (own->n == TEC_MAX_PROMPTS)
            return tec_fail(err, TEC_UNSUPPORTED,
                            "%s:%d: this release has %d prompts of decode nodes; '%s' is one more",
                            in->where.file ? in->where.file : "?", in->where.line, TEC_MAX_PROMPTS,
                            in->name);
        own->input[own->n++] = in;
    }
    return TEC_OK;
}

enum tec_status tec_own_take(const struct tec_own_inputs *own, int *ids[TEC_MAX_PROMPTS],
                             struct tec_arena *arena, struct tec_error *err)
{
    for (int i = 0; i < own->n; i++) {
        ids[i] = TEC_NEW(arena, (size_t)own->input[i]->max_tokens, int);
        if (!ids[i])
            return tec_fail(err, TEC_NO_MEMORY, "%s: no memory", own->input[i]->name);
    }
    return TEC_OK;
}

/* NAME, or NAME#ids. */
static const struct tec_value *find(const struct tec_value *values, size_t n, const char *name,
                                    const char *tail)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < n; i++)
        if (strncmp(values[i].name, name, length) == 0 &&
            strcmp(values[i].name + length, tail) == 0)
            return &values[i];
    return NULL;
}

static enum tec_status fail_long(const struct tec_decl_input *in, size_t count,
                                 struct tec_error *err)
{
    return tec_fail(err, TEC_INVALID,
                    "%s: %zu tokens, the pipeline allows %d: raise max_tokens or shorten it",
                    in->name, count, in->max_tokens);
}

static enum tec_status take_ids(const struct tec_decl_input *in, const struct tec_value *v,
                                int *ids, int *n, struct tec_error *err)
{
    if (v->kind != TEC_VALUE_I32 || v->rank != 1 || v->shape[0] < 0 ||
        (uint64_t)v->shape[0] > SIZE_MAX / sizeof(int) ||
        v->bytes != (size_t)v->shape[0] * sizeof(int))
        return tec_fail(err, TEC_SHAPE, "%s: token ids are i32 [n]", v->name);
    if (v->shape[0] > in->max_tokens)
        return fail_long(in, (size_t)v->shape[0], err);
    memcpy(ids, v->data, v->bytes);
    *n = (int)v->shape[0];
    return TEC_OK;
}

static enum tec_status encode(const struct tec_decl_input *in,
                              const struct tec_tokenizer *tokenizer, const struct tec_value *v,
                              size_t text_max, int *ids, int *n, struct tec_arena *scratch,
                              struct tec_error *err)
{
    const char *text = v ? v->data : in->initial;
    size_t bytes = v ? v->bytes : text ? strlen(text) : 0, count = 0;
    if (v && v->kind != TEC_VALUE_TEXT)
        return tec_fail(err, TEC_SHAPE, "%s: must be a text", in->name);
    if (!text && !v)
        return tec_fail(err, TEC_NOT_FOUND, "%s: missing: it is the prompt of a decode node",
                        in->name);
    if (bytes > text_max)
        return tec_fail(err, TEC_INVALID, "%s: %zu bytes, at most %zu", in->name, bytes, text_max);
    const struct tec_encode how = {0};
    enum tec_status status = tec_tokenizer_encode(tokenizer, text ? text : "", bytes, how, ids,
                                                  (size_t)in->max_tokens, &count, scratch, err);
    if (status != TEC_OK)
        return tec_context(err, status, "%s", in->name);
    if (count > (size_t)in->max_tokens)
        return fail_long(in, count, err);
    *n = (int)count;
    return TEC_OK;
}

static enum tec_status check(const struct tec_decl_input *in, const int *ids, int n, int vocab,
                             struct tec_error *err)
{
    for (int i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= vocab)
            return tec_fail(err, TEC_INVALID, "%s: token %d is %d, the model's vocabulary has %d",
                            in->name, i + 1, ids[i], vocab);
    return TEC_OK;
}

/* Without a tokenizer: what a measurement wants. */
static int make_ids(const struct tec_decl_input *in, int vocab, int *ids)
{
    for (int i = 0; i < in->max_tokens; i++)
        ids[i] = vocab > 8 ? 3 + i % (vocab - 3) : 0;
    return in->max_tokens;
}

enum tec_status tec_own_read(const struct tec_own_inputs *own,
                             const struct tec_session_options *options,
                             const struct tec_value *values, size_t n_values, size_t text_max,
                             int *const ids[TEC_MAX_PROMPTS],
                             struct tec_own_prompt out[TEC_MAX_PROMPTS], struct tec_arena *scratch,
                             struct tec_error *err)
{
    int vocab = options->model->text.vocab;
    for (int i = 0; i < own->n; i++) {
        const struct tec_decl_input *in = own->input[i];
        const struct tec_value *given = find(values, n_values, in->name, "#ids");
        int n = 0;
        if (given)
            TEC_TRY(take_ids(in, given, ids[i], &n, err));
        else if (options->tokenizer)
            TEC_TRY(encode(in, options->tokenizer, find(values, n_values, in->name, ""), text_max,
                           ids[i], &n, scratch, err));
        else
            n = make_ids(in, vocab, ids[i]);
        TEC_TRY(check(in, ids[i], n, vocab, err));
        out[i] = (struct tec_own_prompt){ids[i], n};
    }
    return TEC_OK;
}
