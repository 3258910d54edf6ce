/* session_request_prompt.c - reads the prompts that decode nodes have of their own, as token
 * ids.
 *
 * Runs on the session's thread. Ids may be given instead of a text; without a tokenizer the prompt
 * is as long as is allowed, which is what a measurement needs. */
#include "graph/run/session_request_prompt.h"

#include "graph/run/session_text.h"

static bool read_by(const struct tec_pipeline *p, int input, int chain)
{
    for (int i = 0; i < p->n_nodes; i++)
        if (!p->nodes[i].culled && p->nodes[i].prompt.index == input && p->nodes[i].chain == chain)
            return true;
    return false;
}

void tec_request_prompt_init(struct tec_request_prompt_inputs *prompts,
                             const struct tec_pipeline *pipeline, int chain)
{
    prompts->n = 0;
    for (int i = 0; i < pipeline->n_inputs; i++) {
        int at = tec_pipeline_prompt(pipeline, i);
        if (at < 0 || !read_by(pipeline, i, chain))
            continue;
        prompts->at[prompts->n] = at;
        prompts->input[prompts->n++] = &pipeline->inputs[i];
    }
}

enum tec_status tec_request_prompt_take(const struct tec_request_prompt_inputs *prompts,
                                        int *ids[TEC_MAX_PROMPTS], struct tec_arena *arena,
                                        struct tec_error *err)
{
    for (int i = 0; i < prompts->n; i++) {
        ids[i] = TEC_NEW(arena, (size_t)prompts->input[i]->max_tokens, int);
        if (!ids[i])
            return tec_fail(err, TEC_NO_MEMORY, "%s: no memory", prompts->input[i]->name);
    }
    return TEC_OK;
}

static enum tec_status encode(const struct tec_decl_input *in,
                              const struct tec_tokenizer *tokenizer, const struct tec_value *v,
                              size_t text_max, int *ids, int *n, struct tec_arena *scratch,
                              struct tec_error *err)
{
    const char *text;
    size_t bytes, count = 0;
    TEC_TRY(tec_text_of(in, v, text_max, "it is the prompt of a decode node", &text, &bytes, err));
    const struct tec_encode how = {0};
    enum tec_status status = tec_tokenizer_encode(tokenizer, text, bytes, how, ids,
                                                  (size_t)in->max_tokens, &count, scratch, err);
    if (status != TEC_OK)
        return tec_context(err, status, "%s", in->name);
    if (count > (size_t)in->max_tokens)
        return tec_text_long(in, count, err);
    *n = (int)count;
    return TEC_OK;
}

enum tec_status tec_request_prompt_read(const struct tec_request_prompt_inputs *prompts,
                                        const struct tec_session_options *options,
                                        const struct tec_value *values, size_t n_values,
                                        size_t text_max, int *const ids[TEC_MAX_PROMPTS],
                                        struct tec_request_prompt out[TEC_MAX_PROMPTS],
                                        struct tec_arena *scratch, struct tec_error *err)
{
    int vocab = options->model->text.vocab;
    for (int i = 0; i < prompts->n; i++) {
        const struct tec_decl_input *in = prompts->input[i];
        const struct tec_value *given = tec_text_find(values, n_values, in->name, "#ids");
        int n = 0;
        if (given)
            TEC_TRY(tec_text_take_ids(in, given, ids[i], &n, err));
        else if (options->tokenizer)
            TEC_TRY(encode(in, options->tokenizer, tec_text_find(values, n_values, in->name, ""),
                           text_max, ids[i], &n, scratch, err));
        else
            n = tec_text_make_ids(in, vocab, ids[i]);
        TEC_TRY(tec_text_check(in, ids[i], n, vocab, err));
        out[prompts->at[i]] = (struct tec_request_prompt){ids[i], n};
    }
    return TEC_OK;
}
