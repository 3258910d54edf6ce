/* main.c - the body of `experiments keep`: grid, runs, sums, files. */
#include "tests/experiments/keep/keeping.h"

#include <stdlib.h>
#include <string.h>

enum { QUICK_STEPS = 2, SMALL_STEPS = 24, FULL_STEPS = 3, QUICK_QUESTIONS = 10 };

/* Words of --set are the suite's own: there is no pipeline behind it. */
static enum tec_status read_words(struct tec_keeping *s, struct tec_error *err)
{
    static const char *const experiments[] = {"methods", "segments", "ratio", "blocks", "links"};
    const struct tec_words *words = &s->call->shared.set;
    s->arch = "qwen2";
    s->weights = s->call->shared.weights;
    for (int i = 0; i < words->n; i++) {
        const char *word = words->item[i];
        bool known = true;
        if (strncmp(word, "model.arch=", 11) == 0)
            s->arch = word + 11;
        else if (strncmp(word, "model.layers=", 13) == 0)
            known = (s->depth = atoi(word + 13)) > 0 && s->depth <= TEC_KEEPING_LAYERS;
        else if (strncmp(word, "memory.remote=", 14) == 0)
            s->remote = word + 14;
        else if (strncmp(word, "experiment=", 11) == 0)
            s->only = word + 11;
        else
            known = false;
        for (int k = 0; known && s->only == word + 11; k++) {
            known = k < 5;
            if (known && strcmp(s->only, experiments[k]) == 0)
                break;
        }
        if (!known)
            return tec_fail(err, TEC_INVALID,
                            "--set %s: this suite knows model.arch=NAME, model.layers=N, "
                            "memory.remote=ADDRESS and "
                            "experiment=methods|segments|ratio|blocks|links",
                            word);
    }
    return TEC_OK;
}

static enum tec_status run_all(struct tec_keeping *s, struct tec_error *err)
{
    const struct tec_clock clock = {NULL};
    int64_t start = tec_clock_now(&clock);
    TEC_TRY(read_words(s, err));
    tec_keeping_grid(s);
    TEC_TRY(tec_keeping_run(s, err));
    s->elapsed_ns = tec_clock_now(&clock) - start;
    TEC_TRY(tec_keeping_write_json(s, err));
    TEC_TRY(tec_keeping_write_figures(s, err));
    return tec_keeping_write_table(s, err);
}

enum tec_status tec_keep_main(struct tec_invocation *call, const struct tec_suite_options *options,
                              struct tec_error *err)
{
    struct tec_keeping *s = TEC_NEW(call->arena, 1, struct tec_keeping);
    bool full = strcmp(tec_shared_size(&call->shared), "full") == 0;
    if (!s)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a suite");
    s->call = call;
    s->quick = options->quick;
    s->full = full && !call->shared.weights;
    s->steps = options->frames        ? options->frames
               : call->shared.weights ? (s->quick ? QUICK_QUESTIONS : 0)
               : s->quick             ? QUICK_STEPS
               : full                 ? FULL_STEPS
                                      : SMALL_STEPS;
    s->dir = options->dir;
    s->command = options->command;
    s->seed = call->shared.random_weights.given ? call->shared.random_weights.value : 1;
    enum tec_status status = run_all(s, err);
    if (status == TEC_OK && call->shared.format != TEC_FORMAT_JSON)
        fprintf(call->out, "%d cells of %d steps in %.0f s; %s/keep.md, suite.json, *.svg\n",
                s->n_cells, s->steps, (double)s->elapsed_ns / 1e9, s->dir);
    json_decref(s->machine);
    return status;
}
