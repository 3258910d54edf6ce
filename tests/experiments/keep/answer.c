/* answer.c - what follows a prompt: skills are scored, tokens made, both compared with those of the
 * prompt that was computed whole. */
#include "tests/experiments/keep/setup.h"

#include <math.h>

static int64_t now(void)
{
    const struct tec_clock clock = {NULL};
    return tec_clock_now(&clock);
}

static int region_of(const struct tec_keeping_setup *w, const struct tec_keeping_method *m)
{
    return m->selection == TEC_SELECTION_prefix ? w->own : w->region;
}

/* One forward over the tree of all skills; the likeliest is the planner's answer. */
static void rank(struct tec_keeping_setup *w, const struct tec_keeping_method *m,
                 struct tec_keeping_answer *answer)
{
    const struct tec_keeping_prompt *p = &w->prompt;
    const struct tec_keeping_skills *s = &w->skills;
    const struct tec_row_state row = {
        .region = region_of(w, m), .prefix = p->n, .token = p->ids[p->n - 1]};
    const struct tec_score_launch launch = {.tree = &s->tree, .row = &row, .likely = s->likely};
    struct tec_replay replay = {0};
    int64_t begin = now();
    tec_launch_score(w->plan, tec_plan_part(w->plan, TEC_PART_SCORE, 0), &launch, &replay);
    tec_token_tree_sum(&s->tree, s->likely, s->sums, s->scratch);
    for (int i = 1; i < s->tree.n_texts; i++)
        if (s->sums[i] > s->sums[answer->skill])
            answer->skill = i;
    answer->ns = now() - begin;
}

/* The next token; of a question, those of its answer for as long as they are right. */
static int64_t decode(struct tec_keeping_setup *w, const struct tec_keeping_method *m, bool *right)
{
    const struct tec_keeping_prompt *p = &w->prompt;
    struct tec_plan_part *part = tec_plan_part(w->plan, TEC_PART_DECODE, 1);
    struct tec_row_state row, *rows[] = {&row};
    struct tec_replay replay = {0};
    int64_t begin = now();
    int token, made, most = w->question ? w->question->n_answer : 1;
    tec_row_start(&row, w->plan, region_of(w, m), p->n, p->ids[p->n - 1], 0, most, -1);
    tec_launch_decode(w->plan, part, rows, 1, 1, &token, &made, &replay);
    int64_t took = now() - begin;
    *right = w->question && token == w->question->answer[0];
    if (w->logits >= 0)
        tec_device_download(w->device, part->stream, w->made, part->program.tensors[w->logits].at,
                            (size_t)w->model->text.vocab * sizeof *w->made);
    for (int i = 1; i < most && *right; i++) {
        tec_launch_decode(w->plan, part, rows, 1, 1, &token, &made, &replay);
        *right = token == w->question->answer[i];
    }
    return took;
}

enum tec_status tec_keeping_reply(struct tec_keeping_setup *w, const struct tec_keeping_method *m,
                                  struct tec_keeping_answer *answer, struct tec_error *err)
{
    *answer = (struct tec_keeping_answer){0};
    if (w->skills.tree.n_texts > 0)
        rank(w, m, answer);
    int64_t took = decode(w, m, &answer->right);
    answer->ns = w->skills.tree.n_texts > 0 ? answer->ns : took;
    return tec_device_failure(w->device, err);
}

static int likeliest(const float *x, int n)
{
    int best = 0;
    for (int i = 1; i < n; i++)
        if (x[i] > x[best])
            best = i;
    return best;
}

static double log_sum(const float *x, int n, float most)
{
    double sum = 0.0;
    for (int i = 0; i < n; i++)
        sum += exp((double)x[i] - (double)most);
    return (double)most + log(sum);
}

void tec_keeping_compare(const struct tec_keeping_setup *w, const struct tec_keeping_answer *answer,
                         struct tec_keeping_row *row)
{
    int n = w->model->text.vocab, a = likeliest(w->full, n), b = likeliest(w->made, n);
    double za = log_sum(w->full, n, w->full[a]), zb = log_sum(w->made, n, w->made[b]), kl = 0.0;
    for (int i = 0; i < n; i++) {
        double p = (double)w->full[i] - za;
        kl += exp(p) * (p - ((double)w->made[i] - zb));
    }
    row->agree += a == b;
    row->skill += answer->skill == w->best;
    row->kl += kl > 0.0 ? kl : 0.0;
}
