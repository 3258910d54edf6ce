/* policy.c - fuzz target: any bytes as a policy. It loads or is refused; what it decides stays
 * within what the pipeline has captured; and its memory is given back.
 */
#include "tests/policy_view.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct tec_error err;
static const struct tec_policy_limits fuzzed = {.soft_us = 20000,
                                                .hard_us = 40000,
                                                .setup_us = 100000,
                                                .state_us = 20000,
                                                .heap = (size_t)1 << 20,
                                                .block = 64 * 1024,
                                                .string = 4096,
                                                .strikes = 1000,
                                                .window_frames = 1000};

static void need(bool good)
{
    if (!good)
        abort();
}

/* The bytes as a file, and behind a first byte of 1 as the body of a plan. */
static void write_file(const char *path, const uint8_t *data, size_t size)
{
    FILE *f = fopen(path, "w");
    need(f != NULL);
    if (size > 0 && data[0] == 1)
        fprintf(f,
                "return policy { name = 'p', api = 1, state = { n = 0 }, plan = function(S, F, D)\n"
                "%.*s\nend }\n",
                (int)size - 1, (const char *)data + 1);
    else
        fwrite(data, 1, size, f);
    need(fclose(f) == 0);
}

static void check_decision(const struct tec_topology *t, const struct tec_decision *d)
{
    for (int i = 0; i < 3; i++) {
        bool captured = d->rows[i].k == 0;
        for (int k = 0; k < t->n_k; k++)
            captured |= d->rows[i].k == t->k[k];
        need(captured);
    }
}

static void run_frames(struct tec_policy *policy, const struct tec_topology *t)
{
    static struct view_frame f;
    static struct tec_decision d;
    struct tec_planner planner = tec_policy_planner(policy);
    struct tec_frame_result result = {.n_nodes = 5};
    for (int i = 0; i < 4; i++) {
        view_fill(&f, i, 3, 2);
        view_plan(&planner, t, &f.view, &d, NULL);
        check_decision(t, &d);
        if (planner.observe)
            planner.observe(planner.self, &f.view, &result);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tec_heap heap = {0};
    struct tec_topology t = view_topology();
    struct tec_policy *policy = NULL;
    char path[64];
    snprintf(path, sizeof path, "/tmp/tectum-fuzz-%d.lua", (int)getpid());
    write_file(path, data, size);
    if (tec_policy_open(&policy, path, ".", &t, &fuzzed, NULL, 0, &heap, &err) == TEC_OK)
        run_frames(policy, &t);
    tec_policy_close(policy);
    unlink(path);
    need(heap.live == 0);
    return 0;
}
