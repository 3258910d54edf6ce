/* session_further.c - reads the prompts of further models: one text of an observation each, as
 * token ids.
 *
 * Runs on the session's thread. The last text and its ids are kept, so that an instruction that
 * stays the same from frame to frame is tokenized once. Each prompt has a key, so that the loop
 * notices a change without comparing texts. */
#include "graph/run/session_further.h"

#include "graph/run/session_robot.h"
#include "graph/run/session_text.h"

#include <string.h>
#include <xxhash.h>

static const struct tec_decl_node *prefill_of(const struct tec_pipeline *p, int model)
{
    for (int i = 0; i < p->n_nodes; i++)
        if (!p->nodes[i].culled && p->nodes[i].kind == TEC_DECL_PREFILL &&
            p->nodes[i].model.index == model)
            return &p->nodes[i];
    return NULL;
}

static enum tec_status init_reader(struct tec_further_reader *r,
                                   const struct tec_session_options *o,
                                   const struct tec_session_model *of, struct tec_arena *arena,
                                   struct tec_error *err)
{
    r->node = prefill_of(o->pipeline, of->index);
    if (!r->node || r->node->reads.n != 1)
        return tec_fail(err, TEC_INVALID, "session: model '%s' has no prefill of one text",
                        o->pipeline->models[of->index].name);
    r->of = of;
    r->stream = o->edges ? tec_pipeline_stream(o->pipeline, of->index) : -1;
    r->input = &o->pipeline->inputs[r->node->reads.item[0].index];
    r->text_max = 1024 + 8 * (size_t)r->input->max_tokens;
    r->text = TEC_NEW(arena, r->text_max, char);
    r->ids = TEC_NEW(arena, (size_t)r->input->max_tokens, int);
    r->n = -1;
    if (!r->text || !r->ids)
        return tec_fail(err, TEC_NO_MEMORY, "%s: no memory", r->input->name);
    const char *name = r->node->template ? r->node->template : "plain";
    TEC_TRY(tec_session_read_template(&r->template, o->root, name, arena, err));
    if (r->template->state)
        return tec_fail(err, TEC_MALFORMED,
                        "%s:%d: '%s' reads a text alone: prompt template '%s' has {state}",
                        r->node->where.file ? r->node->where.file : "?", r->node->where.line,
                        r->node->name, name);
    return TEC_OK;
}

enum tec_status tec_further_init(struct tec_further_inputs *further,
                                 const struct tec_session_options *options, struct tec_arena *arena,
                                 struct tec_error *err)
{
    for (further->n = 0; further->n < options->n_further; further->n++)
        TEC_TRY(init_reader(&further->readers[further->n], options, &options->further[further->n],
                            arena, err));
    return TEC_OK;
}

size_t tec_further_longest(const struct tec_further_inputs *further)
{
    size_t most = 0;
    for (int i = 0; i < further->n; i++)
        if (further->readers[i].text_max > most)
            most = further->readers[i].text_max;
    return most;
}

enum tec_status tec_further_take(const struct tec_further_inputs *further,
                                 int *ids[TEC_MAX_MODELS - 1], struct tec_arena *arena,
                                 struct tec_error *err)
{
    for (int i = 0; i < further->n; i++) {
        ids[i] = TEC_NEW(arena, (size_t)further->readers[i].input->max_tokens, int);
        if (!ids[i])
            return tec_fail(err, TEC_NO_MEMORY, "%s: no memory", further->readers[i].input->name);
    }
    return TEC_OK;
}

/* Encode a text into the reader's ids, unless it is the text that was encoded last. */
static enum tec_status encode(struct tec_further_reader *r, const char *text, size_t bytes,
                              struct tec_arena *scratch, struct tec_error *err)
{
    const struct tec_template_values values = {text, bytes, NULL, 0};
    size_t count = 0, most = (size_t)r->input->max_tokens;
    if (r->n >= 0 && bytes == r->bytes && memcmp(text, r->text, bytes) == 0)
        return TEC_OK;
    r->n = -1;
    enum tec_status status = tec_template_encode(r->template, r->of->tokenizer, &values, r->ids,
                                                 most, &count, scratch, err);
    if (status != TEC_OK)
        return tec_context(err, status, "%s", r->input->name);
    if (count > most)
        return tec_text_long(r->input, count, err);
    memcpy(r->text, text, bytes);
    r->bytes = bytes;
    r->n = (int)count;
    return TEC_OK;
}

static enum tec_status read_text(struct tec_further_reader *r, const struct tec_value *value,
                                 int *ids, int *n, uint64_t *key, struct tec_arena *scratch,
                                 struct tec_error *err)
{
    const char *text;
    size_t bytes;
    if (!r->of->tokenizer) {
        *n = tec_text_make_ids(r->input, r->of->model->text.vocab, ids);
        *key = value ? XXH3_64bits_withSeed(value->data, value->bytes, 0) : 0;
        return TEC_OK;
    }
    TEC_TRY(tec_text_of(r->input, value, r->text_max, "a prefill reads it", &text, &bytes, err));
    TEC_TRY(encode(r, text, bytes, scratch, err));
    memcpy(ids, r->ids, (size_t)r->n * sizeof *ids);
    *n = r->n;
    *key = XXH3_64bits_withSeed(text, bytes, 0);
    return TEC_OK;
}

/* Encode a version of a stream, once; it is cut until it fits. */
static enum tec_status encode_version(struct tec_further_reader *r, const char *text, size_t bytes,
                                      int64_t number, struct tec_arena *scratch,
                                      struct tec_error *err)
{
    if (r->n >= 0 && r->number == number)
        return TEC_OK;
    size_t count = 0, most = (size_t)r->input->max_tokens;
    if (bytes > r->text_max)
        bytes = tec_streams_cut(text, r->text_max, 1, 1);
    r->n = -1;
    do {
        bytes = count > most ? tec_streams_cut(text, bytes, count, most) : bytes;
        const struct tec_template_values values = {text, bytes, NULL, 0};
        enum tec_status status = tec_template_encode(r->template, r->of->tokenizer, &values, r->ids,
                                                     most, &count, scratch, err);
        if (status != TEC_OK)
            return tec_context(err, status, "%s", r->input->name);
    } while (count > most && bytes > 0);
    if (count > most)
        return tec_text_long(r->input, count, err);
    r->number = number;
    r->n = (int)count;
    return TEC_OK;
}

/* The newest text of a stream; *n stays 0 where there is none. */
static enum tec_status read_stream(struct tec_further_reader *r,
                                   const struct tec_session_streams *streams, int *ids, int *n,
                                   uint64_t *key, struct tec_text_read *read,
                                   struct tec_arena *scratch, struct tec_error *err)
{
    const char *text;
    size_t bytes;
    *n = 0;
    *key = 0;
    if (!tec_streams_text(streams, r->stream, &text, &bytes, read))
        return TEC_OK;
    if (!r->of->tokenizer) {
        int vocab = r->of->model->text.vocab;
        *n = tec_text_make_ids(r->input, vocab, ids);
        tec_streams_ids(streams, r->stream, vocab, 0, ids, *n);
        *key = (uint64_t)tec_streams_number(streams, r->stream);
        return TEC_OK;
    }
    int64_t number = tec_streams_number(streams, r->stream);
    TEC_TRY(encode_version(r, text, bytes, number, scratch, err));
    memcpy(ids, r->ids, (size_t)r->n * sizeof *ids);
    *n = r->n;
    *key = XXH3_64bits_withSeed(text, bytes, 0);
    return TEC_OK;
}

enum tec_status tec_further_read(struct tec_further_inputs *further,
                                 const struct tec_session_streams *streams,
                                 const struct tec_value *values, size_t n_values,
                                 int *const ids[TEC_MAX_MODELS - 1],
                                 struct tec_further_prompt out[TEC_MAX_MODELS - 1],
                                 struct tec_text_read read[TEC_MAX_MODELS - 1],
                                 struct tec_arena *scratch, struct tec_error *err)
{
    for (int i = 0; i < further->n; i++) {
        struct tec_further_reader *r = &further->readers[i];
        const char *name = r->input->name;
        const struct tec_value *given = tec_text_find(values, n_values, name, "#ids");
        uint64_t key = 0;
        int n = 0;
        if (r->stream >= 0) {
            TEC_TRY(read_stream(r, streams, ids[i], &n, &key, &read[i], scratch, err));
            out[i] = (struct tec_further_prompt){ids[i], n, key};
            if (n == 0)
                continue;
        } else if (given) {
            TEC_TRY(tec_text_take_ids(r->input, given, ids[i], &n, err));
            key = XXH3_64bits_withSeed(given->data, given->bytes, 1);
        } else {
            TEC_TRY(read_text(r, tec_text_find(values, n_values, name, ""), ids[i], &n, &key,
                              scratch, err));
        }
        if (n < 1)
            return tec_fail(err, TEC_INVALID, "%s: the prompt has no tokens", name);
        TEC_TRY(tec_text_check(r->input, ids[i], n, r->of->model->text.vocab, err));
        out[i] = (struct tec_further_prompt){ids[i], n, key};
    }
    return TEC_OK;
}
