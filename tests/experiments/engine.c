/* engine.c - an engine on random weights, and one frame of its loop. */
#include "tests/experiments/suite.h"

#include <string.h>

void tec_suite_begin(struct tec_suite_engine *e, const struct tec_invocation *call, uint64_t seed,
                     int threads)
{
    memset(e, 0, sizeof *e);
    e->call = *call;
    e->open = true;
    tec_arena_init(&e->arena, call->heap);
    if (threads)
        e->call.shared.threads = threads;
    e->call.shared.random_weights = (struct tec_seed){true, seed};
}

enum tec_status tec_suite_set(struct tec_suite_engine *e, const char *const *words, int n,
                              struct tec_error *err)
{
    const struct tec_words *given = &e->call.shared.set;
    const char **all = TEC_NEW(&e->arena, (size_t)given->n + (size_t)n + 1, const char *);
    bool whole = all != NULL;
    for (int i = 0; whole && i < n; i++) {
        all[i] = words[i];
        whole = words[i] != NULL;
    }
    if (!whole)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for the words of a plan");
    for (int i = 0; i < given->n; i++)
        all[n + i] = given->item[i];
    e->call.shared.set = (struct tec_words){n + given->n, all};
    return TEC_OK;
}

enum tec_status tec_suite_path(struct tec_suite_engine *e, const char *file, const char **path,
                               struct tec_error *err)
{
    e->call.arena = &e->arena;
    TEC_TRY(tec_cli_need_root(&e->call, err));
    *path = tec_arena_printf(&e->arena, "%s/%s", e->call.root, file);
    return *path ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for a path");
}

enum tec_status tec_suite_open(struct tec_suite_engine *e, const char *file, struct tec_error *err)
{
    const struct tec_engine_options more = {
        .saturated = true, .forgets = true, .interpret = e->interpret};
    const char *path;
    TEC_TRY(tec_suite_path(e, file, &path, err));
    TEC_TRY(tec_cli_open_engine(&e->opened, &e->call, path, &more, err));
    e->opened.engine->model->text.eos = -1; /* the experiments never stop early */
    return TEC_OK;
}

void tec_suite_close(struct tec_suite_engine *e)
{
    if (!e->open)
        return;
    tec_close_engine(&e->opened);
    tec_arena_finish(&e->arena);
    e->open = false;
}

const struct tec_frame_record *tec_suite_ask(struct tec_loop *loop, struct tec_frame_input *input,
                                             struct tec_ask *ask)
{
    const struct tec_clock clock = {NULL};
    int64_t now = tec_clock_now(&clock);
    struct tec_tick tick = tec_loop_tick(loop, now, 0);
    if (input)
        input->captured_ns = now;
    tick.n_asks = ask ? 1 : 0;
    tick.asks = ask;
    return tec_loop_run(loop, input, &tick);
}
