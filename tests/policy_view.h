/* policy_view.h - a small pipeline and hand-filled frames for tests of policies. */
#ifndef TEC_TESTS_POLICY_VIEW_H
#define TEC_TESTS_POLICY_VIEW_H

#include "policies/host/policy.h"
#include "tests/tap.h"

#include <stdlib.h>
#include <unistd.h>

/* Test machines are shared: budgets far above what a call takes. */
static const struct tec_policy_limits patient = {
    .soft_us = 1000000, .hard_us = 2000000, .state_us = 1000000};

static const char *const view_inputs[] = {"cam_high", "state"};
static const char *const view_kv[] = {"obs", "lang"};
static const char *const view_partitions[] = {"rt", "bg"};

/* A hard action, language, an optional camera and memory of 36 layers. */
static inline struct tec_topology view_topology(void)
{
    return (struct tec_topology){.n_nodes = 5,
                                 .nodes = {{.name = "see", .kind = "prefill"},
                                           {.name = "act",
                                            .kind = "action",
                                            .partition = "rt",
                                            .deadline_us = 45000,
                                            .hard = true},
                                           {.name = "talk", .kind = "decode", .partition = "bg"},
                                           {.name = "look", .kind = "prefill", .optional = true},
                                           {.name = "recall", .kind = "memory_load"}},
                                 .n_batch = 4,
                                 .batch = {1, 2, 4, 8},
                                 .n_k = 3,
                                 .k = {4, 5, 8},
                                 .n_ratio = 3,
                                 .ratio = {0.1, 0.5, 0.9},
                                 .n_inputs = 2,
                                 .inputs = view_inputs,
                                 .n_kv = 2,
                                 .kv = view_kv,
                                 .n_partitions = 2,
                                 .partitions = view_partitions,
                                 .slots = 8,
                                 .horizon = 50,
                                 .layers = 36,
                                 .period_us = 50000,
                                 .seed = 7};
}

static inline double view_cost(const void *self, const char *what, double point, double q)
{
    (void)self;
    if (strcmp(what, "prefill") == 0 || strcmp(what, "action") == 0)
        return 9000 + 1000 * q;
    return strcmp(what, "decode") == 0 ? 600 + 50 * point + 10 * q : -1;
}

static inline double view_slack(const void *self, double q)
{
    (void)self;
    return 20000 - 1000 * q;
}

/* What a frame owns. */
struct view_frame {
    struct tec_frame_view view;
    struct tec_request_view req[TEC_MAX_ROWS];
    struct tec_segment_view seg[TEC_MAX_SEGMENTS];
    struct tec_kv_view kv[2];
    int64_t late_us[2];
};

/* Frame `index` of a run in which every field of every row that may change does. */
static inline void view_fill(struct view_frame *f, int64_t index, int n_req, int n_seg)
{
    int64_t now = index * 50000;
    for (int i = 0; i < n_req; i++)
        f->req[i] = (struct tec_request_view){.id = 100 + i + index / 10,
                                              .node = 2,
                                              .left = 30 - (int)((i + index) % 8),
                                              .done = (int)((i + index) % 8),
                                              .max = 30,
                                              .age_frames = (int)(i + index),
                                              .born_us = 1000 * (int64_t)i,
                                              .deadline_us = now + 100000 - 777 * ((i * 5) % 8),
                                              .slack_us = 100000 - 777 * ((i * 5) % 8) - index % 9,
                                              .kv_bytes = 4096 * (index % 8),
                                              .shared = true,
                                              .fresh = i == n_req - 1};
    for (int i = 0; i < n_seg; i++)
        f->seg[i] = (struct tec_segment_view){.id = 1000 + i,
                                              .tokens = 64,
                                              .importance = 1.0 / (double)(i + 1 + index % 3),
                                              .tier = i % 3,
                                              .dirty = i % 5 == 0,
                                              .fixed = i % 2 == 0,
                                              .last_used = index - i};
    f->kv[0] = (struct tec_kv_view){"obs", 968, 968, 17000, 968, 0};
    f->kv[1] = (struct tec_kv_view){"lang", 100 + index, 8000, 1800 * index, 10, 3};
    f->late_us[0] = index % 100;
    f->late_us[1] = 0;
    f->view = (struct tec_frame_view){
        .index = index,
        .now_us = now,
        .deadline_us = now + 45000,
        .budget_us = 45000,
        .period_us = 50000,
        .n_req = n_req,
        .slots = 8,
        .horizon = 50,
        .req = f->req,
        .n_kv = 2,
        .kv = f->kv,
        .n_inputs = 2,
        .late_us = f->late_us,
        .costs = {view_cost, view_slack, NULL},
        .last = {.total_us = 40000 + index % 7, .n_nodes = 5, .node_us = {19000, 12000 + index}},
        .seed = 7,
        .n_seg = n_seg,
        .seg = f->seg,
        .gpu = {.clock_mhz = 1980}};
}

/* A policy file with this text below /tmp; `which` of them may exist at a time. */
static inline const char *view_file(int which, const char *text)
{
    static char paths[4][64];
    snprintf(paths[which], sizeof paths[0], "/tmp/tectum-%d-%d.lua", (int)getpid(), which);
    FILE *f = fopen(paths[which], "w");
    REQUIRE(f);
    fputs(text, f);
    fclose(f);
    return paths[which];
}

/* The policy with this text. Fails the test when it does not load. */
static inline struct tec_policy *view_policy(const char *text, const struct tec_topology *t,
                                             const struct tec_policy_limits *limits,
                                             struct tec_heap *heap)
{
    struct tec_error err = {TEC_OK, ""};
    struct tec_policy *policy = NULL;
    const char *path = view_file(3, text);
    if (tec_policy_open(&policy, path, ".", t, limits, NULL, 0, heap, &err) != TEC_OK)
        fprintf(stderr, "# %s\n", err.message);
    unlink(path);
    REQUIRE(policy);
    return policy;
}

static inline enum tec_status view_plan(const struct tec_planner *planner,
                                        const struct tec_topology *t,
                                        const struct tec_frame_view *view,
                                        struct tec_decision *decision, struct tec_error *err)
{
    tec_planner_default(t, view, decision);
    return planner->plan(planner->self, view, decision, err);
}

#endif
