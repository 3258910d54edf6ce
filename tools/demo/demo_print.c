/* demo_print.c - what the demo came to: tables for people, an object for programs. */
#include "tools/demo/demo.h"

#include <stdlib.h>
#include <string.h>

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The middle of n values, of a copy. */
static double median(const double *values, int n)
{
    static const int most = TEC_DEMO_FRAMES * TEC_DEMO_EPISODES;
    double sorted[TEC_DEMO_FRAMES * TEC_DEMO_EPISODES];
    if (n < 1 || n > most)
        return 0.0;
    memcpy(sorted, values, (size_t)n * sizeof *values);
    qsort(sorted, (size_t)n, sizeof *sorted, by_value);
    return sorted[(n - 1) / 2];
}

struct sums {
    int frames, actions, texts, recorded;
};

static struct sums sum_up(const struct tec_demo *demo)
{
    struct sums s = {0, 0, 0, 0};
    for (int i = 0; i < demo->n_results; i++) {
        const struct tec_demo_result *r = &demo->results[i];
        s.frames += r->frames;
        s.actions += r->equal_actions;
        s.texts += r->equal_texts;
        s.recorded += r->recorded_texts;
    }
    return s;
}

bool tec_demo_fine(const struct tec_demo *demo)
{
    struct sums s = sum_up(demo);
    bool fine =
        s.frames > 0 && s.actions == s.frames && s.texts == s.frames && s.recorded == s.frames;
    for (int i = 0; i < demo->n_results; i++)
        fine = fine && demo->results[i].difference <= demo->results[i].bound;
    return fine;
}

static double rate(int64_t count, int64_t ns)
{
    return ns > 0 ? (double)count / ((double)ns / 1e9) : 0.0;
}

static double mean_batch(const struct tec_demo_side *s)
{
    return s->launches ? (double)s->rows / (double)s->launches : 0.0;
}

bool tec_demo_print(const struct tec_demo *demo, FILE *out)
{
    struct sums sums = sum_up(demo);
    fprintf(out,
            "\nThe same %d frames under two policies, in turn:\n\n"
            "policy      frame p50  action p50  tokens/s  mean batch  bytes equal\n",
            sums.frames);
    for (int i = 0; i < 2; i++) {
        const struct tec_demo_side *s = &demo->sides[i];
        fprintf(out, "%-10s  %6.2f ms   %6.2f ms  %8.0f  %10.2f  ", s->policy,
                median(s->frame_us, s->n) / 1e3, median(s->action_us, s->n) / 1e3,
                rate(s->tokens, s->busy_ns), mean_batch(s));
        if (i == 0)
            fputs("-\n", out);
        else
            fprintf(out, "actions %d/%d, texts %d/%d\n", sums.actions, sums.frames, sums.texts,
                    sums.frames);
    }
    fprintf(out,
            "\nAgainst the recorded episodes (%s):\n\n"
            "episode        largest difference of an action  bound     sentences equal\n",
            demo->f32 ? "f32" : "bf16");
    for (int i = 0; i < demo->n_results; i++) {
        const struct tec_demo_result *r = &demo->results[i];
        fprintf(out, "%-13s  %-31.3g  %-8.3g  %d/%d%s\n", r->key, r->difference, r->bound,
                r->recorded_texts, r->frames,
                r->difference <= r->bound ? "" : "   beyond the bound");
    }
    return tec_demo_fine(demo);
}

json_t *tec_demo_json(const struct tec_demo *demo)
{
    json_t *policies = json_array(), *episodes = json_array();
    for (int i = 0; i < 2; i++) {
        const struct tec_demo_side *s = &demo->sides[i];
        json_array_append_new(policies,
                              json_pack("{s:s, s:i, s:f, s:f, s:f, s:f}", "policy", s->policy,
                                        "frames", s->n, "frame_p50_us", median(s->frame_us, s->n),
                                        "action_p50_us", median(s->action_us, s->n), "tokens_s",
                                        rate(s->tokens, s->busy_ns), "mean_batch", mean_batch(s)));
    }
    for (int i = 0; i < demo->n_results; i++) {
        const struct tec_demo_result *r = &demo->results[i];
        json_array_append_new(episodes,
                              json_pack("{s:s, s:i, s:i, s:i, s:f, s:f, s:i}", "episode", r->key,
                                        "frames", r->frames, "equal_actions", r->equal_actions,
                                        "equal_texts", r->equal_texts, "difference", r->difference,
                                        "bound", r->bound, "recorded_texts", r->recorded_texts));
    }
    return json_pack("{s:o, s:o, s:b}", "policies", policies, "episodes", episodes, "ok",
                     (int)tec_demo_fine(demo));
}
