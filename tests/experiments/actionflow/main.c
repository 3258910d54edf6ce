/* main.c - the body of `experiments actionflow`: grid, runs, sums, files. */
#include "tests/experiments/actionflow/actionflow.h"

#include <string.h>

static enum tec_status run_all(struct tec_actionflow *s, struct tec_error *err)
{
    const struct tec_clock clock = {NULL};
    int64_t start = tec_clock_now(&clock);
    tec_actionflow_grid(s);
    TEC_TRY(tec_actionflow_run(s, err));
    s->elapsed_ns = tec_clock_now(&clock) - start;
    TEC_TRY(tec_actionflow_write_json(s, err));
    TEC_TRY(tec_actionflow_write_figures(s, err));
    return tec_actionflow_write_table(s, err);
}

enum tec_status tec_actionflow_main(struct tec_invocation *call,
                                    const struct tec_suite_options *options, struct tec_error *err)
{
    struct tec_actionflow *s = TEC_NEW(call->arena, 1, struct tec_actionflow);
    if (!s)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a suite");
    s->call = call;
    s->quick = options->quick;
    s->full = strcmp(tec_shared_size(&call->shared), "full") == 0;
    s->frames = options->frames;
    s->rounds = options->rounds ? options->rounds : s->quick || s->full ? 1 : 2;
    s->dir = options->dir;
    s->command = options->command;
    s->seed = call->shared.random_weights.given ? call->shared.random_weights.value : 1;
    enum tec_status status = run_all(s, err);
    if (status == TEC_OK && call->shared.format != TEC_FORMAT_JSON)
        fprintf(call->out,
                "%d cells of %d variants in %.0f s; %s/actionflow.md, suite.json, *.svg\n",
                s->n_cells, TEC_ACTIONFLOW_VARIANTS, (double)s->elapsed_ns / 1e9, s->dir);
    json_decref(s->machine);
    return status;
}
