/* engine_warm.c - the warm-up of an engine: what its launches are run with before the first frame,
 * and what it tells of a long one. */
#include "graph/run/engine/engine_own.h"

#include <stdio.h>

enum { WARM_FRAMES = 2 };

/* FLOP and bytes of a launch that takes some tenths of a second on two cores: what is more is
 * sampled in the warm-up. */
static const double large = 4e10;

/* A black observation of the longest prompt for a chain that is in frames. */
static enum tec_status warm_input(struct tec_engine *e, const struct tec_engine_chain *c,
                                  struct tec_chain_input *in, struct tec_error *err)
{
    const struct tec_model *m = c->of->model;
    size_t chunk = (size_t)m->flow.horizon * (size_t)m->flow.dim;
    uint8_t *black = TEC_NEW(&e->arena, tec_model_picture_bytes(m), uint8_t);
    int *ids = TEC_NEW(&e->arena, (size_t)c->plan->spec.text_tokens, int);
    float *zeros = TEC_NEW(&e->arena, chunk, float);
    if (!black || !ids || !zeros)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for the first frame");
    tec_prefix_mark(m, ids, c->plan->spec.text_tokens, c->plan->spec.pictures);
    in->prefix = (struct tec_prefix_input){
        .n_pictures = c->plan->spec.pictures, .n_text = c->plan->spec.text_tokens, .ids = ids};
    for (int i = 0; i < TEC_MAX_ACTIONS; i++)
        in->noise[i] = zeros;
    for (int i = 0; i < in->prefix.n_pictures; i++)
        in->prefix.picture[i] = black;
    return TEC_OK;
}

/* A long warm-up that was not made is worth a line. */
static void tell_samples(const struct tec_engine *e, const struct tec_replay_samples *s, int64_t ns)
{
    char line[256];
    const struct tec_costs *costs = tec_loop_costs(e->loop);
    double frame = (tec_costs_us(costs, TEC_COST_PREFILL, 0, 0.5) +
                    tec_costs_us(costs, TEC_COST_ACTION, 0, 0.5)) /
                   1e6;
    if (s->replays == 0 || !e->options.trouble)
        return;
    if (s->commands)
        snprintf(line, sizeof line,
                 "warm-up: %lld of %lld commands were run, in %.1f s; a frame takes about %.3g s",
                 (long long)s->run, (long long)s->commands, (double)ns / 1e9, frame);
    else
        snprintf(line, sizeof line,
                 "warm-up: large launches were not run, the costs are known; a frame takes about "
                 "%.3g s",
                 frame);
    e->options.trouble(e->options.user, line);
}

enum tec_status tec_engine_warm(struct tec_engine *e, struct tec_error *err)
{
    struct tec_frame_input input = {.captured_ns = 0};
    for (int i = 0; i < e->n_chains; i++)
        if (!e->chains[i].plan->spec.secondary)
            TEC_TRY(warm_input(e, &e->chains[i], &input.chains[i], err));
    struct tec_replay_samples samples = {
        .least = e->options.sampled_from > 0.0 ? e->options.sampled_from : large};
    const struct tec_clock clock = {NULL};
    int64_t from = tec_clock_now(&clock);
    if (e->options.progress)
        e->options.progress(e->options.user, "warm-up", 0, WARM_FRAMES);
    tec_loop_warm(e->loop, &input, WARM_FRAMES, e->options.interpret ? NULL : &samples);
    tell_samples(e, &samples, tec_clock_now(&clock) - from);
    return tec_engine_failure(e, err);
}
