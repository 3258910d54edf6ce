/* qwen_lm.c - judges cases of kind "lm" and "vlm": a text model's checkpoint, its prompts, with
 * pictures in them or not, what it says. */
#include "tests/judge/qwen.h"

#include <stdio.h>
#include <string.h>

const int *tec_qwen_ids(const struct tec_qwen *q, const json_t *entry, const char *key, int *n)
{
    const json_t *list = json_object_get(entry, key);
    size_t size = json_array_size(list);
    *n = (int)size;
    if (size < 1 || size > TEC_QWEN_TEXT)
        return NULL;
    int *ids = TEC_NEW(q->pi->v->arena, size, int);
    for (size_t i = 0; ids && i < size; i++)
        ids[i] = (int)json_integer_value(json_array_get(list, i));
    return ids;
}

static enum tec_status add_prompt(struct tec_qwen *q, const json_t *entry, const char *key,
                                  const char *name, bool counts, struct tec_error *err)
{
    if (q->n == TEC_QWEN_PROMPTS)
        return tec_fail(err, TEC_UNSUPPORTED, "more than %d prompts", TEC_QWEN_PROMPTS);
    struct tec_qwen_prompt *p = &q->prompts[q->n];
    int steps = 0;
    *p = (struct tec_qwen_prompt){.name = name, .entry = entry, .counts = counts};
    p->tokens = p->in.o.ids = tec_qwen_ids(q, entry, key, &p->in.o.n_text);
    p->n_tokens = p->in.o.n_text;
    const int *greedy = tec_qwen_ids(q, entry, "greedy", &steps);
    if (!p->in.o.ids || !greedy || steps > TEC_QWEN_STEPS)
        return tec_fail(err, TEC_MALFORMED, "prompt %d: lacks tokens or greedy", q->n);
    TEC_TRY(tec_qwen_pictures(q, p, err));
    p->request = (struct tec_pi_request){.in = &p->in,
                                         .plan = q->plan,
                                         .region = -1,
                                         .request_slot = q->n,
                                         .n = steps,
                                         .name = name};
    q->n++;
    return TEC_OK;
}

static enum tec_status collect(struct tec_qwen *q, struct tec_error *err)
{
    const json_t *json = q->pi->v->json, *prompts = json_object_get(json, "prompts");
    bool bf16 = strcmp(q->pi->v->dtype, "bf16") == 0;
    if (!prompts) /* the margins of a case of 4-bit weights are wide: fp16 chooses the same */
        return add_prompt(q, json, "prompt", "",
                          !bf16 || json_is_true(json_object_get(json, "greedy_fp16_equal")), err);
    for (size_t i = 0; i < json_array_size(prompts); i++) {
        char key[40];
        snprintf(key, sizeof key, "prompt%zu.bfloat16", i);
        bool same = json_is_true(json_object_get(json_object_get(json, "tokens_equal"), key));
        TEC_TRY(add_prompt(q, json_array_get(prompts, i), "tokens",
                           tec_arena_printf(q->pi->v->arena, "prompt%zu.", i), !bf16 || same, err));
    }
    return q->n ? TEC_OK : tec_fail(err, TEC_MALFORMED, "the case has no prompts");
}

/* a e + b f of two entries {max, rms}; NULL counts as zeros. */
static json_t *mixed(double a, const json_t *e, double b, const json_t *f)
{
    static const char *const keys[] = {"max", "rms"};
    json_t *sum = json_object();
    for (int i = 0; i < 2; i++)
        json_object_set_new(sum, keys[i],
                            json_real(a * json_number_value(json_object_get(e, keys[i])) +
                                      b * json_number_value(json_object_get(f, keys[i]))));
    return sum;
}

static void add_bounds(json_t *all, const char *name, double times, json_t *fp32, json_t *bf16,
                       const json_t *std)
{
    json_t *one =
        json_pack("{s:o, s:o, s:f}", "err_fp32", mixed(times, fp32, 0.0, NULL), "err_bf16",
                  mixed(times, bf16, 0.0, NULL), "rms", json_number_value(std));
    json_object_set_new(all, name, one);
    json_decref(fp32);
    json_decref(bf16);
}

/* Cases of 4-bit weights hold what weights rounded to fp16 give; the kernels' products are exact
 * (the case's exact.logits), so taps may differ by what fp16 does. What bf16 does those cases do
 * not say: a step of it is eight of fp16. */
static void packed_bounds(const struct tec_qwen *q, json_t *all)
{
    const json_t *json = q->pi->v->json, *fp16 = json_object_get(json, "err_fp16");
    const char *name;
    json_t *e;
    json_object_foreach(json_object_get(json, "err_fp32"), name, e)
    {
        const json_t *half = json_object_get(fp16, name);
        bool logits = strcmp(name, "logits") == 0;
        add_bounds(all, name, 1.0, mixed(1.0, e, 0.375, half), mixed(8.0, half, 0.0, NULL), NULL);
        if (!logits)
            continue;
        add_bounds(all, "step_logits", 1.0, mixed(1.0, e, 0.375, half), mixed(8.0, half, 0.0, NULL),
                   NULL);
        add_bounds(all, "exact.logits", 1.0, mixed(1.0, e, 0.0, NULL), mixed(8.0, half, 0.0, NULL),
                   NULL);
    }
}

/* Bounds of the case, an object a tensor as elsewhere. Scores are logits times the penalty at most.
 */
static json_t *bounds_of(const struct tec_qwen *q)
{
    const json_t *json = q->pi->v->json, *std = json_object_get(json, "std");
    double penalty = json_number_value(json_object_get(json, "repetition_penalty"));
    json_t *all = json_object(), *e;
    const char *name;
    if (q->packed) {
        packed_bounds(q, all);
        return all;
    }
    json_object_foreach(json_object_get(json, "err_fp32"), name, e)
    {
        const json_t *bf16 = json_object_get(json_object_get(json, "err_bf16"), name);
        const char *steps = strstr(name, "step_logits");
        const json_t *size = json_object_get(std, name);
        add_bounds(all, name, 1.0, mixed(1.0, e, 0.0, NULL), mixed(1.0, bf16, 0.0, NULL), size);
        const char *scores = steps ? tec_arena_printf(q->pi->v->arena, "%.*spenalty_scores",
                                                      (int)(steps - name), name)
                                   : NULL;
        if (scores)
            add_bounds(all, scores, penalty, mixed(1.0, e, 0.0, NULL), mixed(1.0, bf16, 0.0, NULL),
                       size);
    }
    return all;
}

static enum tec_status make_plans(struct tec_qwen *q, struct tec_error *err)
{
    struct tec_pi *pi = q->pi;
    const struct tec_model *m = pi->model;
    q->far = (int)json_integer_value(json_object_get(pi->v->json, "far_start"));
    pi->max_text = TEC_QWEN_TEXT;
    pi->positions = q->far + TEC_QWEN_TEXT;
    TEC_TRY(tec_pi_plan(pi, &q->plan, 0, TEC_QWEN_PROMPTS, TEC_QWEN_STEPS, true, err));
    double penalty = json_number_value(json_object_get(pi->v->json, "repetition_penalty"));
    if (!(penalty > 0.0))
        return TEC_OK;
    bool same = m->text.penalty == (float)penalty;
    tec_verify_report(pi->v, "repetition_penalty", same ? 0.0 : 1.0, 0.0, 0.0, same, NULL, NULL);
    pi->penalty = m->text.penalty;
    return tec_pi_plan(pi, &q->penal, 0, TEC_QWEN_PROMPTS, TEC_QWEN_STEPS, true, err);
}

static enum tec_status judge(struct tec_qwen *q, struct tec_error *err)
{
    struct tec_pi *pi = q->pi;
    q->packed = json_object_get(pi->v->json, "quantization") != NULL;
    TEC_TRY(tec_pi_open_tensors(pi, err));
    pi->sibling = bounds_of(q);
    pi->tensors = pi->sibling;
    TEC_TRY(make_plans(q, err));
    TEC_TRY(collect(q, err));
    TEC_TRY(tec_qwen_tensors(q, err));
    TEC_TRY(tec_qwen_tokens(q, err));
    TEC_TRY(tec_qwen_texts(q, err));
    TEC_TRY(tec_qwen_variants(q, err));
    return q->packed ? tec_qwen_weights(q, err) : TEC_OK;
}

enum tec_status tec_verify_qwen_lm(struct tec_verify *v, struct tec_error *err)
{
    struct tec_pi pi;
    struct tec_qwen q = {.pi = &pi};
    enum tec_status status = tec_pi_open(&pi, v, "checkpoint", NULL, err);
    if (status == TEC_OK)
        status = judge(&q, err);
    tec_plan_destroy(q.plan);
    tec_plan_destroy(q.penal);
    tec_pi_finish(&pi);
    return status;
}
