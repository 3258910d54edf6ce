/* qwen_tokens.c - what a text model says: greedy, under its repetition penalty, as its files say
 * that it ends; and the logits that chose each token. */
#include "tests/judge/qwen.h"
#include "tests/judge/stage_times.h"

#include <string.h>

struct tec_row_state tec_qwen_row(const struct tec_qwen *q, struct tec_plan *plan,
                                  const struct tec_qwen_prompt *p, int eos)
{
    struct tec_row_state row;
    (void)q;
    tec_row_start(&row, plan, p->request.region, p->n_tokens, p->tokens[p->n_tokens - 1],
                  p->request.request_slot, p->request.n + 1, eos);
    tec_row_saw(&row, plan, p->in.o.ids, p->in.o.n_text);
    return row;
}

void tec_qwen_tap(const struct tec_qwen *q, struct tec_plan *plan, const char *name, float *out)
{
    size_t n;
    const float *row = tec_pi_tap(q->pi, tec_plan_part(plan, TEC_PART_DECODE, 1), name, 0, 1, &n);
    if (row)
        memcpy(out, row, n * sizeof *out);
}

static enum tec_status prefill(struct tec_qwen *q, struct tec_plan *plan, struct tec_qwen_prompt *p,
                               int *region, struct tec_error *err)
{
    struct tec_plan_part *part = tec_plan_part(plan, TEC_PART_FRAME, 0);
    const struct tec_action_inputs none = {.noise = NULL};
    struct tec_replay replay = {0};
    TEC_TRY(tec_prefix_check(plan, &p->in.o, err));
    if (*region < 0)
        *region = tec_kv_pool_take(&plan->prefixes);
    if (*region < 0)
        return tec_fail(err, TEC_NO_MEMORY, "no region for a prompt");
    tec_launch_prefix(plan, part, *region, &p->in.o, &none, &replay);
    tec_verify_replayed(q->pi->v, plan, &replay);
    return tec_device_failure(plan->device, err);
}

/* Single steps with the tokens given; tap `name` of each step from `first` on. */
static float *forced(struct tec_qwen *q, struct tec_plan *plan, const struct tec_qwen_prompt *p,
                     const int *ids, int n, int first, const char *name)
{
    struct tec_plan_part *part = tec_plan_part(plan, TEC_PART_DECODE, 1);
    size_t vocab = (size_t)q->pi->model->text.vocab;
    float *all = TEC_NEW(q->pi->v->arena, (size_t)(n - first) * vocab, float);
    struct tec_row_state row = tec_qwen_row(q, plan, p, -1), *rows[] = {&row};
    for (int i = 0; all && i < n; i++) {
        struct tec_replay replay = {0};
        int token, made;
        row.token = i ? ids[i - 1] : row.token;
        tec_launch_decode(plan, part, rows, 1, 1, &token, &made, &replay);
        tec_verify_replayed(q->pi->v, plan, &replay);
        if (i >= first)
            tec_qwen_tap(q, plan, name, all + (size_t)(i - first) * vocab);
    }
    return all;
}

/* Decode freely, k tokens a launch, all prompts of `others` beside it; how many were made. */
static int run(struct tec_qwen *q, struct tec_plan *plan, int index, int k, bool beside, int eos,
               int *tokens)
{
    struct tec_row_state row[TEC_QWEN_PROMPTS], *rows[TEC_QWEN_PROMPTS];
    int n = 0, made[TEC_QWEN_PROMPTS], have = 0, want = q->prompts[index].request.n;
    int *got = TEC_NEW(q->pi->v->arena, (size_t)TEC_QWEN_PROMPTS * TEC_QWEN_STEPS, int);
    for (int i = 0; i < q->n; i++) {
        int at = (index + i) % q->n;
        if (i && !beside)
            break;
        row[n] = tec_qwen_row(q, plan, &q->prompts[at], eos);
        rows[n] = &row[n];
        n++;
    }
    struct tec_plan_part *part = tec_plan_part(plan, TEC_PART_DECODE, n);
    while (got && have < want && !row[0].done) {
        struct tec_replay replay = {0};
        int step = k < want - have ? k : want - have;
        tec_launch_decode(plan, part, rows, n, step, got, made, &replay);
        tec_verify_replayed(q->pi->v, plan, &replay);
        memcpy(tokens + have, got, (size_t)made[0] * sizeof *tokens);
        have += made[0];
    }
    return have;
}

/* Whether either of two tokens is right at a step of a free run in bf16: the case's logits of both
 * are nearer than its own error in bf16. What follows is another text. */
static bool either_right(const struct tec_qwen *q, const struct tec_qwen_prompt *p, size_t step,
                         int got, int want)
{
    const struct tec_pi *pi = q->pi;
    size_t vocab = (size_t)pi->model->text.vocab;
    const char *key = tec_arena_printf(pi->v->arena, "%sstep_logits", p->name);
    const struct tec_stored *rows = key ? tec_tensors_find(pi->expected, key) : NULL;
    float *row = TEC_NEW(pi->v->arena, vocab, float);
    if (strcmp(pi->v->dtype, "bf16") != 0 || !rows || rows->bytes < (step + 1) * vocab * 4 ||
        !row || got < 0 || (size_t)got >= vocab || want < 0 || (size_t)want >= vocab ||
        tec_tensors_read_f32(pi->expected, rows, step * vocab, row, vocab, NULL) != TEC_OK)
        return false;
    const json_t *bound = json_object_get(json_object_get(pi->tensors, key), "err_bf16");
    double near = json_number_value(json_object_get(bound, "max"));
    double far = (double)row[want] - (double)row[got];
    return far <= near && -far <= near;
}

/* The ids of a free run; `plain`: without a penalty, so that step_logits chose them. */
static void judge_ids(const struct tec_qwen *q, const struct tec_qwen_prompt *p, const char *name,
                      bool plain, const int *got, int n_got, const int *want, int n_want)
{
    int at = 0, least = n_got < n_want ? n_got : n_want;
    while (at < least && got[at] == want[at])
        at++;
    if (!plain || at == least || !either_right(q, p, (size_t)at, got[at], want[at])) {
        tec_verify_ids(q->pi->v, name, got, (size_t)n_got, want, (size_t)n_want);
        return;
    }
    const char *note = tec_arena_printf(q->pi->v->arena,
                                        "at step %d either token is right: nearer than the case's "
                                        "bf16 error",
                                        at);
    tec_verify_report(q->pi->v, name, 0.0, 0.0, 0.0, true, NULL, note);
}

/* The same ids alone in one launch, one a launch, and beside the other prompts. */
static void judge_runs(struct tec_qwen *q, struct tec_plan *plan, int index, const char *key,
                       int eos)
{
    struct tec_pi *pi = q->pi;
    const struct tec_qwen_prompt *p = &q->prompts[index];
    int n_want, once[TEC_QWEN_STEPS], single[TEC_QWEN_STEPS], batch[TEC_QWEN_STEPS];
    const int *want = tec_qwen_ids(q, p->entry, key, &n_want);
    if (!want)
        return;
    int n = run(q, plan, index, p->request.n, false, eos, once);
    int n_single = run(q, plan, index, 1, false, eos, single);
    int n_batch = run(q, plan, index, 5, true, eos, batch);
    const char *name = tec_arena_printf(pi->v->arena, "%s%s", p->name, key);
    if (p->counts)
        judge_ids(q, p, name, plan == q->plan, once, n, want, n_want);
    tec_verify_ids(pi->v, tec_arena_printf(pi->v->arena, "%s.k1_equals_once", name), single,
                   (size_t)n_single, once, (size_t)n);
    tec_verify_ids(pi->v, tec_arena_printf(pi->v->arena, "%s.batched_equals_alone", name), batch,
                   (size_t)n_batch, once, (size_t)n);
}

/* The index of the largest of n logits, the first of equals. */
static int largest(const float *logits, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (logits[i] > logits[best])
            best = i;
    return (int)best;
}

/* Each step after the case's own tokens: where its own bf16 runs agree, and the two best logits are
 * farther apart than their error, the choice must be the case's. */
static void judge_steps(struct tec_qwen *q, const struct tec_qwen_prompt *p, const float *logits,
                        const int *ids, int n)
{
    struct tec_pi *pi = q->pi;
    const json_t *agrees = json_object_get(p->entry, "bf16_agrees");
    const json_t *margins = json_object_get(p->entry, "margins");
    size_t vocab = (size_t)pi->model->text.vocab;
    const char *name = tec_arena_printf(pi->v->arena, "%sstep_tokens", p->name);
    const char *key = tec_arena_printf(pi->v->arena, "%sstep_logits", p->name);
    const json_t *bound = json_object_get(json_object_get(pi->tensors, key), "err_bf16");
    bool bf16 = strcmp(pi->v->dtype, "bf16") == 0;
    double near = bf16 ? json_number_value(json_object_get(bound, "max")) : 0.0;
    int wrong = 0;
    if (!agrees || !logits)
        return;
    for (int i = 0; i < n; i++) {
        bool counts = !bf16 || (json_is_true(json_array_get(agrees, (size_t)i)) &&
                                json_number_value(json_array_get(margins, (size_t)i)) > near);
        wrong += counts && largest(logits + (size_t)i * vocab, vocab) != ids[i];
    }
    tec_verify_report(pi->v, name, wrong, 0.0, 0.0, wrong == 0, NULL, NULL);
}

static void judge_logits(struct tec_qwen *q, int index)
{
    struct tec_pi *pi = q->pi;
    const struct tec_qwen_prompt *p = &q->prompts[index];
    size_t vocab = (size_t)pi->model->text.vocab;
    int n = 0;
    const int *ids = tec_qwen_ids(q, p->entry, "greedy", &n);
    const char *name = tec_arena_printf(pi->v->arena, "%sstep_logits", p->name);
    if (ids && name && tec_tensors_find(pi->expected, name)) {
        const float *logits = forced(q, q->plan, p, ids, n, 0, "logits");
        tec_pi_compare(pi, name, logits, (size_t)n * vocab, NULL);
        judge_steps(q, p, logits, ids, n);
    }
    ids = tec_qwen_ids(q, p->entry, "greedy_penalty", &n);
    name = tec_arena_printf(pi->v->arena, "%spenalty_scores", p->name);
    if (ids && q->penal && name && tec_tensors_find(pi->expected, name))
        tec_pi_compare(pi, name, forced(q, q->penal, p, ids, n, n - 1, "scores"), vocab, NULL);
}

enum tec_status tec_qwen_tokens(struct tec_qwen *q, struct tec_error *err)
{
    int regions[TEC_QWEN_PROMPTS];
    for (int i = 0; i < q->n; i++) {
        regions[i] = -1;
        TEC_TRY(prefill(q, q->plan, &q->prompts[i], &q->prompts[i].request.region, err));
        if (q->penal)
            TEC_TRY(prefill(q, q->penal, &q->prompts[i], &regions[i], err));
        /* Both pools are fresh and alike: a prompt has the same region in both. */
        if (q->penal && regions[i] != q->prompts[i].request.region)
            return tec_fail(err, TEC_INVALID, "prompt %d has two regions", i);
    }
    for (int i = 0; i < q->n; i++) {
        judge_logits(q, i);
        judge_runs(q, q->plan, i, "greedy", -1);
        judge_runs(q, q->penal ? q->penal : q->plan, i, "generate", q->pi->model->text.eos);
        if (q->penal)
            judge_runs(q, q->penal, i, "greedy_penalty", -1);
    }
    return TEC_OK;
}
