/* session_request_prompt.c - reads the prompts that decode nodes have of their own, as token
 * ids.
 *
 * Runs on the session's thread. Ids may be given instead of a text; without a tokenizer the prompt
 * is as long as is allowed, which is what a measurement needs. */
#include "graph/run/session/session_request_prompt.h"

#include "graph/run/launch/text_input.h"

#include <string.h>

static void add_chain(struct tec_request_prompt_inputs *prompts, const struct tec_pipeline *p,
                      int chain, const struct tec_model *model,
                      const struct tec_tokenizer *tokenizer)
{
    bool there[TEC_MAX_PROMPTS] = {false};
    for (int i = 0; i < p->n_nodes; i++) {
        const struct tec_decl_node *n = &p->nodes[i];
        int at = n->chain != chain ? -1 : tec_pipeline_prompt_of(p, n);
        if (at < 0 || there[at])
            continue;
        there[at] = true;
        prompts->each[prompts->n++] = (struct tec_request_prompt_input){
            at, &p->inputs[n->prompt.index], tokenizer, model->text.vocab};
    }
}

void tec_session_request_prompt_init(struct tec_request_prompt_inputs *prompts,
                                     const struct tec_session_options *o)
{
    prompts->n = 0;
    add_chain(prompts, o->pipeline, o->chain, o->model, o->tokenizer);
    for (int i = 0; i < o->n_secondary; i++)
        if (o->secondary[i].reads)
            add_chain(prompts, o->pipeline, o->secondary[i].chain, o->secondary[i].model,
                      o->secondary[i].tokenizer);
}

enum tec_status tec_session_request_prompt_take(const struct tec_request_prompt_inputs *prompts,
                                                int *ids[TEC_MAX_PROMPTS], struct tec_arena *arena,
                                                struct tec_error *err)
{
    for (int i = 0; i < prompts->n; i++) {
        const struct tec_decl_input *in = prompts->each[i].input;
        ids[i] = TEC_NEW(arena, (size_t)in->max_tokens, int);
        if (!ids[i])
            return tec_fail(err, TEC_NO_MEMORY, "%s: no memory", in->name);
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
    TEC_TRY(tec_text_of(in, v, in->initial, text_max, "it is the prompt of a decode node", &text,
                        &bytes, err));
    const struct tec_encode how = {0};
    enum tec_status status = tec_tokenizer_encode(tokenizer, text, bytes, how, ids,
                                                  (size_t)in->max_tokens, &count, scratch, err);
    if (status != TEC_OK)
        return tec_context(err, status, "%s", in->name);
    if (count > (size_t)in->max_tokens)
        return tec_text_long(in->name, count, in->max_tokens, err);
    *n = (int)count;
    return TEC_OK;
}

static enum tec_status take_ids(const struct tec_decl_input *in, const struct tec_value *given,
                                int *ids, int *n, struct tec_error *err)
{
    TEC_TRY(tec_text_count_ids(given, n, err));
    if (*n > in->max_tokens)
        return tec_text_long(in->name, (size_t)*n, in->max_tokens, err);
    memcpy(ids, given->data, given->bytes);
    return TEC_OK;
}

enum tec_status tec_session_request_prompt_read(const struct tec_request_prompt_inputs *prompts,
                                                const struct tec_value *values, size_t n_values,
                                                size_t text_max, int *const ids[TEC_MAX_PROMPTS],
                                                struct tec_request_prompt out[TEC_MAX_PROMPTS],
                                                struct tec_arena *scratch, struct tec_error *err)
{
    for (int i = 0; i < prompts->n; i++) {
        const struct tec_request_prompt_input *p = &prompts->each[i];
        const struct tec_decl_input *in = p->input;
        const struct tec_value *given = tec_text_find(values, n_values, in->name, "#ids");
        int n = 0;
        if (given)
            TEC_TRY(take_ids(in, given, ids[i], &n, err));
        else if (p->tokenizer)
            TEC_TRY(encode(in, p->tokenizer, tec_text_find(values, n_values, in->name, ""),
                           text_max, ids[i], &n, scratch, err));
        else
            tec_text_make_ids(n = in->max_tokens, p->vocab, ids[i]);
        TEC_TRY(tec_text_check(in->name, ids[i], n, p->vocab, "", err));
        out[p->at] = (struct tec_request_prompt){ids[i], n};
    }
    return TEC_OK;
}
