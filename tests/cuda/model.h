/* model.h - what tests of the whole engine on the CUDA device share: the tiny model of tests/tiny.h
 * on the emulator, observations for it and a planner that throws dice. */
#ifndef TEC_TESTS_CUDA_MODEL_H
#define TEC_TESTS_CUDA_MODEL_H

#include "tests/loop_frame.h"
#include "tests/tiny.h"

#include <cuda_emulator_control.h>

enum { MODEL_SEEN = 8 };

static struct tec_error err;
static struct tiny t;
static struct tiny_observation seen[MODEL_SEEN];

/* Kernels are counted and not run, but for those that marks, loops and the ends of texts need. */
static inline void model_without_bodies(void)
{
    cuda_emulator_bodies(false);
    cuda_emulator_always("stamp_kernel");
    cuda_emulator_always("loop_kernel");
    cuda_emulator_always("next_token*");
}

static inline void model_clean(void)
{
    cudaDeviceReset();
    cuda_emulator_reset();
    cuda_emulator_protect(false); /* the device's own tests look at that */
    tap.device = "cuda";
}

static inline void model_open(const char *arch, bool bf16, int beside)
{
    if (!tiny_open_split(&t, arch, bf16, 2, beside, 200, &err))
        fprintf(stderr, "# %s\n", err.message);
    REQUIRE(t.plan);
    for (int i = 0; i < MODEL_SEEN; i++)
        tiny_observe(&seen[i], t.model, (uint64_t)i + 1);
}

static inline void model_close(void)
{
    struct cuda_emulator_counters c;
    tiny_close(&t);
    cuda_emulator_counters(&c);
    CHECK_INT(tiny_heap.live, ==, 0);
    CHECK_INT(c.device_bytes, ==, 0);
    CHECK_INT(c.pinned_bytes, ==, 0);
    CHECK_INT(c.streams + c.events + c.graphs + c.execs, ==, 0);
    CHECK_INT(c.reports, ==, 0);
}

/* Any batch, k, group and sharing. */
static inline enum tec_status model_draw(void *self, const struct tec_frame_view *view,
                                         struct tec_decision *d, struct tec_error *e)
{
    static const int ks[] = {0, 1, 2, 5, 8};
    uint64_t *dice = self;
    int all = tiny_below(dice, 2) ? ks[tiny_below(dice, 5)] : -1;
    (void)e;
    for (int i = 0; i < view->n_req; i++) {
        d->rows[i].k = all >= 0 ? all : ks[tiny_below(dice, 5)];
        d->rows[i].group = all >= 0 ? 0 : tiny_below(dice, 3);
        d->rows[i].unshare = tiny_below(dice, 3) == 0;
        d->rows[i].shed = tiny_below(dice, 60) == 0;
    }
    for (int node = 2; node <= 3; node++)
        d->nodes[node].partition = tiny_below(dice, 3) - 1;
    return TEC_OK;
}

static inline struct tec_planner model_dice(uint64_t *dice)
{
    return (struct tec_planner){.name = "dice", .self = dice, .plan = model_draw};
}

/* A loop over what is open. */
static inline struct tec_loop *model_loop(const struct tec_planner *planner,
                                          void (*released)(void *user, int action,
                                                           const float *chunk,
                                                           const struct tec_frame_record *record))
{
    struct tec_loop *loop = NULL;
    struct tec_loop_options o = tiny_loop(&t);
    o.chains[0].executor = tiny_executor(&t);
    o.planner = *planner;
    o.released = released;
    REQUIRE(tec_loop_create(&loop, &o, &tiny_heap, &err) == TEC_OK);
    return loop;
}

/* The next frame: sometimes without an observation, with any decoders spawning. */
static inline const struct tec_frame_record *model_frame(struct tec_loop *loop, uint64_t *dice,
                                                         int *which)
{
    *which = tiny_below(dice, 7) ? tiny_below(dice, MODEL_SEEN) : -1;
    return loop_frame(loop, *which >= 0 ? &seen[*which].input : NULL, 0,
                      (unsigned)tiny_below(dice, 4));
}

#endif
