/* keep_tokens.c - logits and tokens of a run of kind "selective". */
#include "tests/judge/keep.h"
#include "tests/judge/pi_text.h"
#include "tests/judge/stage_times.h"

#include <string.h>

bool tec_keep_own(struct tec_keep *j, const char *key, const char *check)
{
    struct tec_verify *v = j->pi->v;
    const json_t *own = json_object_get(json_object_get(v->json, "own_choice"), "bfloat16");
    const json_t *same = json_object_get(json_object_get(own, j->name), key);
    bool bf16 = strcmp(v->dtype, "bf16") == 0;
    if (bf16 && json_is_false(same))
        tec_verify_unjudged(v, tec_keep_name(j, -1, check),
                            "not judged: the case's own bf16 run chooses others");
    else if (bf16 && !json_is_true(same))
        tec_verify_report(v, tec_keep_name(j, -1, check), 1.0, 0.0, 0.0, false, NULL,
                          "the case does not say what its own bf16 run chooses");
    return !bf16 || json_is_true(same);
}

/* A row of the prompt as a decode step repeats it, or the request after the prompt. */
static const float *step(struct tec_keep *j, struct tec_row_state *row, int *token)
{
    struct tec_plan_part *part = tec_plan_part(j->plan, TEC_PART_DECODE, 1);
    struct tec_row_state *rows[] = {row};
    struct tec_replay replay = {0};
    size_t n;
    int made;
    tec_launch_decode(j->plan, part, rows, 1, 1, token, &made, &replay);
    tec_verify_replayed(j->pi->v, j->plan, &replay);
    return tec_pi_tap(j->pi, part, "logits", 0, 1, &n);
}

static void start(struct tec_keep *j, struct tec_row_state *row, int tokens)
{
    tec_row_start(row, j->plan, j->region, tokens, j->ids[tokens - 1], 0, TEC_KEEP_STEPS, -1);
    row->pos = j->pos[tokens - 1];
}

void tec_keep_logits(struct tec_keep *j, const int *ids, int n)
{
    struct tec_pi *pi = j->pi;
    size_t vocab = (size_t)pi->model->text.vocab, rows = (size_t)(j->n - j->query);
    float *all = TEC_NEW(pi->v->arena, (rows + (size_t)n) * vocab, float);
    struct tec_row_state row;
    int token;
    for (size_t i = 0; all && i < rows; i++) {
        start(j, &row, j->query + (int)i + 1);
        const float *logits = step(j, &row, &token);
        if (logits)
            memcpy(all + i * vocab, logits, vocab * sizeof *all);
    }
    tec_pi_compare(pi, tec_keep_name(j, -1, "logits"), all, all ? rows * vocab : 0, NULL);
    start(j, &row, j->n);
    for (int i = 0; all && i < n; i++) {
        row.token = i ? ids[i - 1] : row.token;
        const float *logits = step(j, &row, &token);
        if (logits)
            memcpy(all + (size_t)i * vocab, logits, vocab * sizeof *all);
    }
    tec_pi_compare(pi, tec_keep_name(j, -1, "step_logits"), all, all ? (size_t)n * vocab : 0, NULL);
}

/* The case's logits of every step, [n, vocab]; NULL if it has none. */
static const float *expected(struct tec_keep *j, size_t n)
{
    const struct tec_tensors *t = j->pi->expected;
    const struct tec_stored *s = tec_tensors_find(t, tec_keep_name(j, -1, "step_logits"));
    float *logits = TEC_NEW(j->pi->v->arena, n, float);
    bool whole = s && logits && s->bytes == n * sizeof *logits;
    return whole && tec_tensors_read_f32(t, s, 0, logits, n, NULL) == TEC_OK ? logits : NULL;
}

/* Root mean square error of the case's own bf16 run in this run's logits. */
static double own_error(struct tec_keep *j)
{
    const json_t *of = json_object_get(j->pi->v->json, "err_bf16");
    of = json_object_get(of, tec_keep_name(j, -1, "step_logits"));
    return json_number_value(json_object_get(of, "rms"));
}

/* Each step after the case's own tokens, so that one near tie does not decide those behind it. */
static void judge_steps(struct tec_keep *j, const int *want, int n)
{
    struct tec_arena *arena = j->pi->v->arena;
    const char *check = tec_keep_name(j, -1, "tokens");
    size_t vocab = (size_t)j->pi->model->text.vocab;
    const float *logits = expected(j, (size_t)n * vocab);
    double near = own_error(j);
    struct tec_row_state row;
    int differ = 0, tied = 0;
    start(j, &row, j->n);
    for (int i = 0; i < n; i++, logits += logits ? vocab : 0) {
        int got = -1;
        row.token = i ? want[i - 1] : row.token;
        step(j, &row, &got);
        bool tie =
            got >= 0 && got != want[i] && logits && (double)(logits[want[i]] - logits[got]) < near;
        tied += tie;
        differ += got != want[i] && !tie;
    }
    tec_verify_report(j->pi->v, check, differ, 0.0, 0.0, differ == 0, NULL,
                      tied ? tec_arena_printf(arena,
                                              "%d of %d steps chose one whose logit is less than "
                                              "%.3g below the best, the case's own bf16 error",
                                              tied, n, near)
                           : NULL);
}

void tec_keep_tokens(struct tec_keep *j, const int *ids, int n)
{
    const char *check = tec_keep_name(j, -1, "tokens");
    struct tec_row_state row;
    int got[TEC_KEEP_STEPS] = {0};
    if (!tec_keep_own(j, "same_tokens", "tokens"))
        return;
    if (strcmp(j->pi->v->dtype, "bf16") == 0) {
        judge_steps(j, ids, n);
        return;
    }
    start(j, &row, j->n);
    for (int i = 0; i < n; i++)
        step(j, &row, &got[i]);
    tec_verify_ids(j->pi->v, check, got, (size_t)n, ids, (size_t)n);
}
