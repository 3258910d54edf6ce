/* profile.c - the times of a part's calls on the CUDA device are those of the kernels that were
 * started, by the emulator's clock of 1000 ns a kernel, also where several calls are one kernel.
 * Kernel bodies are off. */
#include "graph/run/launch/launch.h"
#include "tests/cuda/model.h"
#include "tools/measure/op_times.h"
#include "tools/measure/profile_ops.h"

static struct tec_op_times times;

static void run_frame(void *user, struct tec_replay *replay)
{
    const struct tec_chain_input *in = &seen[0].input.chains[0];
    const struct tec_action_inputs a = {.noise = in->noise[0], .state = in->state};
    tec_launch_prefix(t.plan, user, 0, &in->prefix, &a, replay);
}

TEST(calls_have_the_times_of_their_kernels)
{
    enum { MARKS = 3 }; /* of a frame: its prefill, its action, the end */
    int together = 0;
    model_clean();
    model_open("pi05", true, 0);
    model_without_bodies();
    cuda_emulator_always("time_kernel");
    struct tec_plan_part *part = tec_plan_part(t.plan, TEC_PART_FRAME, 0);
    const struct tec_prefix_input *in = &seen[0].input.chains[0].prefix;
    const struct tec_op_times_of of = {
        .plan = t.plan,
        .part = part,
        .size = {.pictures = in->n_pictures, .text = in->n_text, .k = 1},
        .passes = 2,
        .launch = run_frame,
        .user = part};
    REQUIRE(tec_op_times_measure(&times, &of, &tiny_heap, &err) == TEC_OK);
    CHECK(times.sum_ns == 1000.0 * (tec_capture_kernels(part->capture) - MARKS));
    for (int i = 0; i < times.n; i++) {
        CHECK(times.items[i].ns >= 0.0);
        together += times.items[i].ns == 0.0;
    }
    CHECK_INT(together, >, 0); /* calls that are done with the one in front */
    model_close();
}

/* No roof is measured on a GPU: then none is printed, where 0 % would be a reading. */
TEST(a_time_without_a_roof_is_of_none)
{
    static char text[2000];
    struct tec_profiled_op op = {.node = "see", .op = "norm1", .us = 2.0};
    struct tec_profiled_ops ops = {.n_parts = 1,
                                   .parts = {{.name = "frame", .launch_us = 2.0, .sum_us = 2.0}},
                                   .n = 1,
                                   .ops = &op};
    FILE *out = fmemopen(text, sizeof text, "w");
    REQUIRE(out);
    tec_profile_print_ops(&ops, out);
    fclose(out);
    CHECK(strstr(text, " -\n") != NULL);
    CHECK(strstr(text, "0%") == NULL);
    CHECK(strstr(text, "roof: not measured") != NULL);
}

TAP_MAIN
