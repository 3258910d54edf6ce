/* qwen_variants.c - a text model's case by its other files: configurations in another style, and
 * the tokenizer that makes its prompts. */
#include "base/text/tokenizer.h"
#include "tests/judge/qwen.h"

#include <string.h>

/* The logits of the first prompt with `config` in place of the checkpoint's. */
static enum tec_status judge_variant(struct tec_qwen *q, json_t *config, const char *name,
                                     struct tec_error *err)
{
    struct tec_pi pi, *own = q->pi;
    struct tec_qwen v = {.pi = &pi};
    json_t *overrides = json_pack("{s:O}", "config", config);
    enum tec_status status = tec_pi_open_beside(&pi, own->v, "checkpoint", NULL, overrides, err);
    json_decref(overrides);
    pi.max_text = own->max_text;
    if (status == TEC_OK)
        status = tec_pi_plan(&pi, &v.plan, 0, TEC_QWEN_PROMPTS, TEC_QWEN_STEPS, true, err);
    if (status == TEC_OK) {
        struct tec_qwen_prompt p = q->prompts[0];
        p.request.region = -1;
        status = tec_qwen_prefill(&v, &p, 0, err);
        size_t n = (size_t)p.n_tokens * (size_t)pi.model->text.vocab;
        const float *logits = status == TEC_OK ? tec_qwen_row_logits(&v, &p, 0, "logits") : NULL;
        const float *want = tec_qwen_row_logits(q, &q->prompts[0], 0, "logits");
        double worst = 0.0;
        for (size_t i = 0; logits && want && i < n; i++) {
            double far = (double)logits[i] - (double)want[i];
            worst = far > worst ? far : -far > worst ? -far : worst;
        }
        tec_verify_report(own->v, name, worst, 0.0, 0.0, logits && want && worst <= 0.0, NULL,
                          NULL);
    }
    tec_plan_destroy(v.plan);
    tec_pi_finish(&pi);
    return status;
}

/* They must give the very bytes of the checkpoint's own, whose logits are within the bound. */
enum tec_status tec_qwen_variants(struct tec_qwen *q, struct tec_error *err)
{
    const json_t *list = json_object_get(q->pi->v->json, "config_variants");
    TEC_TRY(json_array_size(list) ? tec_qwen_prefill(q, &q->prompts[0], 0, err) : TEC_OK);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *file = json_string_value(json_array_get(list, i));
        json_error_t at;
        json_t *config = file ? json_load_file(tec_pi_path(q->pi, file), 0, &at) : NULL;
        if (!config)
            return tec_fail(err, TEC_MALFORMED, "config_variants: '%s' cannot be read",
                            file ? file : "?");
        const char *name = tec_arena_printf(q->pi->v->arena, "%s.logits", file);
        enum tec_status status = judge_variant(q, config, name, err);
        json_decref(config);
        TEC_TRY(status);
    }
    return TEC_OK;
}

enum tec_status tec_qwen_texts(struct tec_qwen *q, struct tec_error *err)
{
    struct tec_tokenizer *tokenizer = NULL;
    const struct tec_encode how = {.special = true};
    bool any = false;
    for (int i = 0; i < q->n; i++)
        any |= json_is_string(json_object_get(q->prompts[i].entry, "text"));
    if (!any)
        return TEC_OK;
    TEC_TRY(tec_tokenizer_open(&tokenizer, tec_pi_path(q->pi, "checkpoint"), q->pi->v->heap, err));
    enum tec_status status = TEC_OK;
    for (int i = 0; i < q->n && status == TEC_OK; i++) {
        const struct tec_qwen_prompt *p = &q->prompts[i];
        const char *text = json_string_value(json_object_get(p->entry, "text"));
        int ids[TEC_QWEN_TEXT];
        size_t n = 0;
        if (!text)
            continue;
        status = tec_tokenizer_encode(tokenizer, text, strlen(text), how, ids, TEC_QWEN_TEXT, &n,
                                      q->pi->v->arena, err);
        if (status == TEC_OK)
            tec_verify_ids(q->pi->v, tec_arena_printf(q->pi->v->arena, "%stokens", p->name), ids,
                           n < TEC_QWEN_TEXT ? n : TEC_QWEN_TEXT, p->tokens, (size_t)p->n_tokens);
    }
    tec_tokenizer_close(tokenizer);
    return status;
}
