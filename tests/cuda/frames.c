/* frames.c - frames on the CUDA device: nothing is taken after start and a launch is a launch; the
 * same bytes in every order in which work may run; close to what a CPU computes.
 *
 *     cuda_frames.t [--frames N]    how many frames without kernel bodies; 10000 */
#include "policies/host/policy.h"
#include "tests/cuda/model.h"

#include <math.h>
#include <stdlib.h>

enum { FRAMES = 30, ACTIONS = TINY_HORIZON * 32, TEXTS = 4 * FRAMES };

static int many = 10000;

/* --- nothing is taken ------------------------------------------------------------------------ */

/* Launches that a record tells of: prefill and actions of a frame are one. */
static unsigned long launches_of(const struct tec_frame_record *r)
{
    unsigned long n = 0;
    for (int i = 0; i < r->n_launches; i++)
        n += strcmp(r->launches[i].node, "act") != 0;
    return n;
}

static unsigned long launched(void)
{
    struct cuda_emulator_counters c;
    cuda_emulator_counters(&c);
    return c.graph_launches;
}

static void run_frames(struct tec_loop *loop, uint64_t *dice, int n)
{
    struct cuda_emulator_counters before, after;
    int tokens = 0, texts = 0, wrong = 0, which;
    int64_t calls = tiny_heap.calls;
    unsigned long told = 0;
    cuda_emulator_counters(&before);
    for (int i = 0; i < n; i++) {
        unsigned long start = launched();
        const struct tec_frame_record *r = model_frame(loop, dice, &which);
        wrong += r->failed || launched() - start != launches_of(r);
        told += launches_of(r);
        tokens += r->tokens;
        texts += tec_loop_live(loop);
    }
    cuda_emulator_counters(&after);
    CHECK_INT(wrong, ==, 0);
    CHECK_INT(after.graph_launches - before.graph_launches, ==, told);
    CHECK_INT(tiny_heap.calls, ==, calls);
    CHECK_INT(after.allocations, ==, before.allocations);
    CHECK_INT(after.frees, ==, before.frees);
    CHECK_INT(after.captures, ==, before.captures);
    CHECK_INT(after.instantiations, ==, before.instantiations);
    CHECK_INT(after.updates, ==, before.updates);
    CHECK_INT(after.uploads, ==, before.uploads);
    CHECK_INT(after.kernel_nodes, ==, before.kernel_nodes); /* none outside a graph */
    CHECK_INT(tec_device_failure(t.device, NULL), ==, TEC_OK);
    CHECK_INT(texts, >, 0);
    printf("# %d frames, %lu launches, %lu kernels, %d tokens\n", n, told,
           after.kernels - before.kernels, tokens);
}

/* The plan goes on: what requests hold goes back. */
static void end_loop(struct tec_loop *loop)
{
    tec_loop_restart(loop);
    tec_loop_destroy(loop);
}

static void run_policy(const char *name, int n)
{
    static const struct tec_policy_limits patient = {.soft_us = 100000, .hard_us = 200000};
    struct tec_policy *policy;
    uint64_t dice = 5;
    REQUIRE(tec_policy_open(&policy, name, ".", &t.topology, &patient, NULL, 0, &tiny_heap, &err) ==
            TEC_OK);
    const struct tec_planner planner = tec_policy_planner(policy);
    struct tec_loop *loop = model_loop(&planner, NULL);
    run_frames(loop, &dice, n);
    end_loop(loop);
    CHECK_INT(tec_policy_report(policy)->failures, ==, 0);
    tec_policy_close(policy);
}

TEST(frames_take_nothing_and_launch_what_they_say)
{
    for (int beside = 0; beside < 2; beside++) {
        uint64_t dice = 77;
        model_clean();
        model_without_bodies();
        model_open("pi05", true, beside);
        const struct tec_planner planner = model_dice(&dice);
        struct tec_loop *loop = model_loop(&planner, NULL);
        run_frames(loop, &dice, many * 3 / 10);
        end_loop(loop);
        loop = model_loop(&tec_default_planner, NULL);
        run_frames(loop, &dice, many / 10);
        end_loop(loop);
        run_policy("oxygen", many / 10);
        model_close();
    }
}

/* --- bytes ----------------------------------------------------------------------------------- */

/* What a run came to. */
struct outcome {
    float chunks[FRAMES][ACTIONS];
    int frame, released;
    int tokens[TEXTS][TINY_NEW], count[TEXTS];
};
static struct outcome first, now;

static void released(void *user, int action, const float *chunk,
                     const struct tec_frame_record *record)
{
    (void)action;
    (void)user, (void)record;
    memcpy(now.chunks[now.frame], chunk,
           sizeof(float) * (size_t)(t.model->flow.horizon * t.model->flow.dim));
    now.released++;
}

static void play(int beside, uint64_t seed)
{
    uint64_t dice = seed;
    int which;
    model_open("pi05", false, beside);
    const struct tec_planner planner = model_dice(&dice);
    struct tec_loop *loop = model_loop(&planner, released);
    memset(&now, 0, sizeof now);
    for (now.frame = 0; now.frame < FRAMES; now.frame++) {
        CHECK(!model_frame(loop, &dice, &which)->failed);
        for (int i = 0; i < tec_loop_utterances(loop); i++) {
            const struct tec_utterance *u = tec_loop_utterance(loop, i);
            if (u->id < 0)
                continue;
            REQUIRE(u->id < TEXTS);
            now.count[u->id] = u->count;
            memcpy(now.tokens[u->id], u->tokens, (size_t)u->count * sizeof(int));
        }
    }
    tec_loop_destroy(loop);
}

/* Chunks and texts that are not those of the first run. */
static int different(void)
{
    int chunks = 0, texts = 0;
    for (int f = 0; f < FRAMES; f++)
        chunks += memcmp(now.chunks[f], first.chunks[f], sizeof now.chunks[f]) != 0;
    for (int i = 0; i < TEXTS; i++)
        texts += now.count[i] != first.count[i] ||
                 memcmp(now.tokens[i], first.tokens[i], sizeof now.tokens[i]) != 0;
    if (chunks + texts)
        fprintf(stderr, "# %d of %d chunks, %d texts differ\n", chunks, now.released, texts);
    return chunks + texts;
}

TEST(every_order_of_work_gives_the_same_bytes)
{
    static const struct {
        enum cuda_emulator_when when;
        unsigned seed;
        int beside;
    } runs[] = {{CUDA_EMULATOR_LOWEST, 0, 0},
                {CUDA_EMULATOR_HIGHEST, 0, 1},
                {CUDA_EMULATOR_SHUFFLED, 9, 1},
                {CUDA_EMULATOR_EARLY, 0, 1}};
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        model_clean();
        cuda_emulator_timing(runs[i].when, runs[i].seed);
        play(runs[i].beside, 4);
        model_close();
        if (i == 0)
            first = now;
        CHECK_INT(now.released, >, FRAMES / 2);
        CHECK_INT(different(), ==, 0);
    }
}

TEST(results_are_those_of_a_cpu)
{
    double worst = 0;
    int same = 0, texts = 0;
    model_clean();
    tap.device = "cpu";
    play(0, 4);
    tiny_close(&t);
    first = now;
    model_clean();
    play(0, 4);
    model_close();
    CHECK_INT(now.released, ==, first.released);
    for (int f = 0; f < FRAMES; f++)
        for (int i = 0; i < ACTIONS; i++) {
            double want = (double)first.chunks[f][i], got = (double)now.chunks[f][i];
            worst = fmax(worst, fabs(got - want) / fmax(1.0, fabs(want)));
        }
    for (int i = 0; i < TEXTS; i++) {
        texts += first.count[i] > 0;
        same += first.count[i] > 0 && first.count[i] == now.count[i] &&
                memcmp(first.tokens[i], now.tokens[i], sizeof now.tokens[i]) == 0;
    }
    printf("# actions differ by %.2e at most; %d of %d texts are the same\n", worst, same, texts);
    CHECK(worst < 1e-4);
    CHECK_INT(texts, >, FRAMES / 2);
    CHECK_INT(same, ==, texts);
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "--frames") == 0) {
        many = atoi(argv[2]);
        argv += 2;
        argc -= 2;
    }
    return tap_main(argc, argv);
}
