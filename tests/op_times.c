/* op_times.c - tests of timing a part call by call: the times are of the part's own calls and
 * costs, and timing does not change what it computes.
 *
 * It also tests the measurement of the FLOP/s that a device's products reach. */
#include "tools/measure/op_times.h"
#include "tools/measure/peak_gemm.h"

#include "tests/device_facts.h"
#include "tests/stage_work.h"
#include "tests/tiny.h"

static struct tec_error err;
static struct tiny tiny;
static struct tiny_observation seen;
static struct tec_op_times times;

static void run_frame(void *user, struct tec_replay *replay)
{
    int *launches = user;
    const struct tec_frame_input *in = &seen.input;
    const struct tec_action_inputs a = {.noise = in->chains[0].noise[0],
                                        .state = in->chains[0].state};
    tec_launch_prefix(tiny.plan, tec_plan_part(tiny.plan, TEC_PART_FRAME, 0), 0,
                      &in->chains[0].prefix, &a, replay);
    ++*launches;
}

static struct tec_op_times_of of_frame(int passes, int *launches)
{
    return (struct tec_op_times_of){.plan = tiny.plan,
                                    .part = tec_plan_part(tiny.plan, TEC_PART_FRAME, 0),
                                    .size = {.pictures = seen.input.chains[0].prefix.n_pictures,
                                             .text = seen.input.chains[0].prefix.n_text,
                                             .k = 1},
                                    .passes = passes,
                                    .launch = run_frame,
                                    .user = launches};
}

/* The time of a stage's calls of that label; 0 when there are none. */
static double ns_of(enum tec_stage stage, const char *label)
{
    double ns = 0.0;
    for (int i = 0; i < times.n; i++)
        if (times.items[i].stage == stage && strcmp(times.items[i].label, label) == 0)
            ns += times.items[i].ns;
    return ns;
}

/* On a CPU a call has the kernel of its command: weights of float32 are multiplied by gemm_f32. */
static int of_bf16;
static void see_kernel(void *user, const struct tec_op_call *call)
{
    (void)user;
    bool f32 = call->kernel == TEC_KERNEL_gemm_f32, bf16 = call->kernel == TEC_KERNEL_gemm_bf16;
    CHECK(!f32 || (call->cost.products == 0 && call->cost.products_f32 > 0));
    CHECK(!bf16 || (call->cost.products > 0 && call->cost.products_f32 == 0));
    CHECK(!call->rounded);
    of_bf16 += bf16;
}

TEST(all_calls_of_a_part_are_timed)
{
    struct stage_work sums[TEC_STAGE_COUNT];
    int launches = 0;
    REQUIRE(tiny_open(&tiny, "pi05", true, 2, 0, &err));
    tiny_observe(&seen, tiny.model, 3);
    struct tec_op_times_of of = of_frame(8, &launches);
    of.each = see_kernel;
    of_bf16 = 0;
    REQUIRE(tec_op_times_measure(&times, &of, &tiny_heap, &err) == TEC_OK);
    CHECK_INT(launches, ==, 8);
    CHECK(of_bf16 > 0 || strcmp(tap.device, "cpu") != 0);
    CHECK(times.launch_ns > 0.0);
    stage_work_sum(tiny.plan, of.part, &of.size, sums);
    for (int s = 0; s < TEC_STAGE_COUNT; s++) {
        struct tec_cost cost = {.products = 0};
        int64_t calls = 0;
        for (int i = 0; i < times.n; i++)
            if (times.items[i].stage == (enum tec_stage)s) {
                calls += times.items[i].calls;
                tec_cost_add(&cost, &times.items[i].cost);
                CHECK(times.items[i].ns >= 0.0);
            }
        CHECK_INT(calls, ==, sums[s].calls);
        CHECK(memcmp(&cost, &sums[s].cost, sizeof cost) == 0);
    }
    CHECK(times.sum_ns > 0.0);
    /* Where they are one kernel, its norm has the time. */
    CHECK(ns_of(TEC_STAGE_PREFIX, "qkv") + ns_of(TEC_STAGE_PREFIX, "norm1") > 0.0);
    CHECK(ns_of(TEC_STAGE_PREFIX, "no such call") == 0.0);
    tiny_close(&tiny);
    CHECK_INT(tiny_heap.live, ==, 0);
}

/* Replaying call by call makes what a launch makes, so the next launch gives the same result. */
TEST(timing_changes_nothing)
{
    static float before[4096], after[4096];
    struct tec_replay replay = {0};
    double all = 0.0;
    int launches = 0;
    REQUIRE(tiny_open(&tiny, "pi05", true, 2, 0, &err));
    tiny_observe(&seen, tiny.model, 4);
    size_t size = (size_t)tiny.model->flow.horizon * (size_t)tiny.model->flow.dim;
    REQUIRE(size <= sizeof before / sizeof before[0]);
    const struct tec_op_times_of of = of_frame(1, &launches);
    run_frame(&launches, &replay);
    tec_launch_actions(tiny.plan, of.part, before);
    REQUIRE(tec_op_times_measure(&times, &of, &tiny_heap, &err) == TEC_OK);
    for (int i = 0; i < times.n; i++)
        all += times.items[i].ns;
    /* Of one pass the whole is their sum, but for calls that are shorter than its one mark: where
     * that lost its processor, nothing is left of either. */
    CHECK(all > times.sum_ns - 1.0);
    run_frame(&launches, &replay);
    tec_launch_actions(tiny.plan, of.part, after);
    CHECK(memcmp(before, after, size * sizeof *before) == 0);
    tiny_close(&tiny);
}

TEST(sizes_that_do_not_fit_are_refused)
{
    int launches = 0;
    REQUIRE(tiny_open(&tiny, "pi05", true, 1, 0, &err));
    tiny_observe(&seen, tiny.model, 5);
    struct tec_op_times_of of = of_frame(1, &launches);
    of.size.pictures = 99;
    CHECK_INT(tec_op_times_measure(&times, &of, &tiny_heap, &err), ==, TEC_INVALID);
    CHECK_INT(launches, ==, 0);
    tiny_close(&tiny);
    CHECK_INT(tiny_heap.live, ==, 0);
}

/* Expect more FLOP/s than one multiply-add in a microsecond, and fewer than any machine has. */
TEST(a_product_reaches_something)
{
    const struct tec_device_options d = {
        .kind = tap.device, .threads = 2, .spin_us = 0, .tier = tec_tier_best()};
    struct tec_device *device;
    REQUIRE(tec_device_open(&device, &d, &tiny_heap, &err) == TEC_OK);
    int64_t own = device_bytes_of(device);
    static const enum tec_kernel_id kernels[] = {TEC_KERNEL_gemm_f32, TEC_KERNEL_gemm_bf16,
                                                 TEC_KERNEL_gemm_int8, TEC_KERNEL_gemm_int4};
    for (int i = 0; i < 2 * 4; i++) {
        const struct tec_peak_gemm of = {kernels[i / 2], i % 2, .rows = 33, .side = 64, .times = 3};
        double flop_s = 0.0;
        CHECK_INT(tec_peak_gemm_measure(&flop_s, device, &of, &tiny_heap, &err), ==, TEC_OK);
        CHECK(flop_s > 1e6 && flop_s < 1e16);
        CHECK_INT(device_bytes_of(device), ==, own);
    }
    tec_device_close(device);
    CHECK_INT(tiny_heap.live, ==, 0);
}

/* Check that nothing is left allocated. */
TEST(a_product_without_memory_says_so)
{
    const struct tec_device_options d = {
        .kind = tap.device, .threads = 1, .spin_us = 0, .tier = tec_tier_best()};
    const struct tec_peak_gemm of = {
        .kernel = TEC_KERNEL_gemm_bf16, .rows = 4, .side = 16, .times = 1};
    static struct tec_heap heap;
    struct tec_device *device;
    double flop_s;
    REQUIRE(tec_device_open(&device, &d, &tiny_heap, &err) == TEC_OK);
    int64_t own = device_bytes_of(device);
    heap.fail_at = 1;
    CHECK_INT(tec_peak_gemm_measure(&flop_s, device, &of, &heap, &err), ==, TEC_NO_MEMORY);
    CHECK_INT(heap.live, ==, 0);
    CHECK_INT(device_bytes_of(device), ==, own);
    tec_device_close(device);
}

TAP_MAIN
