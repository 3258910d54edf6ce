/* main.c - the body of `experiments oxygen`: grid, runs, sums, files. */
#include "tests/experiments/oxygen/oxygen.h"

#include "tests/experiments/oxygen/engines.h"
#include "tools/measure/machine.h"

#include <string.h>

/* Bytes of the plans of Table 2, exactly, without taking them: settings as in enum, then the batch
 * of two. */
static enum tec_status measure_memory(struct tec_oxygen *s, struct tec_error *err)
{
    static const char libero[] = "pipelines/pi05_libero.lua";
    int64_t text = 0;
    TEC_TRY(tec_oxygen_measure(&s->memory[TEC_OXYGEN_BASELINE], s, libero, 1, err));
    s->memory[TEC_OXYGEN_SHARED] = s->memory[TEC_OXYGEN_BASELINE];
    TEC_TRY(tec_oxygen_measure(&s->memory[TEC_OXYGEN_BATCHING], s, libero, 4, err));
    TEC_TRY(tec_oxygen_measure(&s->memory[TEC_OXYGEN_SETTINGS], s, libero, 2, err));
    TEC_TRY(tec_oxygen_measure(&text, s, "pipelines/suite/text.lua", 1, err));
    s->memory[TEC_OXYGEN_PARALLEL] = s->memory[TEC_OXYGEN_BASELINE] + text;
    return TEC_OK;
}

/* Words of --set: one says which experiment, the others are the pipelines'. */
static enum tec_status read_words(struct tec_oxygen *s, struct tec_error *err)
{
    static const char *const known[] = {"sweeps", "headline", "table", "loads"};
    struct tec_words *words = &s->call->shared.set;
    const char **kept = TEC_NEW(s->call->arena, (size_t)words->n + 1, const char *);
    int n = 0;
    if (!kept)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for words");
    for (int i = 0; i < words->n; i++) {
        bool own = strncmp(words->item[i], "experiment=", 11) == 0, found = !own;
        if (own)
            s->only = words->item[i] + 11;
        else
            kept[n++] = words->item[i];
        for (size_t k = 0; k < sizeof known / sizeof known[0]; k++)
            found |= own && strcmp(s->only, known[k]) == 0;
        if (!found)
            return tec_fail(err, TEC_INVALID,
                            "--set %s: the experiment is sweeps, headline, table or loads",
                            words->item[i]);
    }
    *words = (struct tec_words){n, kept};
    return TEC_OK;
}

static enum tec_status run_all(struct tec_oxygen *s, struct tec_error *err)
{
    const struct tec_clock clock = {NULL};
    int64_t start = tec_clock_now(&clock);
    TEC_TRY(read_words(s, err));
    TEC_TRY(tec_oxygen_grid(s, err));
    TEC_TRY(measure_memory(s, err));
    tec_energy_open(&s->energy, NULL);
    TEC_TRY(tec_oxygen_run(s, err));
    s->elapsed_ns = tec_clock_now(&clock) - start;
    TEC_TRY(tec_oxygen_sum(s, err));
    TEC_TRY(tec_oxygen_write_json(s, err));
    TEC_TRY(tec_oxygen_write_layout(s, err));
    TEC_TRY(tec_oxygen_write_figures(s, err));
    return tec_oxygen_write_table(s, err);
}

enum tec_status tec_oxygen_main(struct tec_invocation *call,
                                const struct tec_suite_options *options, struct tec_error *err)
{
    struct tec_oxygen *s = TEC_NEW(call->arena, 1, struct tec_oxygen);
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
        fprintf(call->out, "%d points in %.0f s; %s/oxygen.md, suite.json, fig*.svg, oxygen_*/\n",
                s->n_points, (double)s->elapsed_ns / 1e9, s->dir);
    json_decref(s->machine);
    return status;
}
