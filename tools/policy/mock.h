/* mock.h - a policy behind its real host, in front of views that a test makes up.
 *
 * A mock has the topology of a pipeline file (no checkpoint is read), a view whose arrays it owns,
 * costs that are given as a table, and what the policy decided last. Not thread-safe. */
#ifndef TEC_TOOLS_POLICY_MOCK_H
#define TEC_TOOLS_POLICY_MOCK_H

#include "graph/load/pipeline.h"
#include "policies/host/policy.h"

enum { TEC_MOCK_COSTS = 256, TEC_MOCK_LEVELS = 4 };

/* Quantiles a cost may be given at: 0.5, 0.99, 0.999 and 1. */
extern const char *const tec_mock_level_names[TEC_MOCK_LEVELS];

struct tec_mock_cost {
    char name[32]; /* "decode", "prefill", "action", "packed" or a node's name */
    int batch;     /* 0 = any point */
    int level;     /* -1 = all quantiles */
    double us;
};

struct tec_mock_options {
    const char *pipeline, *policy; /* a path; a path or a bundled name, NULL = the pipeline's */
    const char *root;
    const char *const *set; /* "PATH=VALUE" on the pipeline */
    int n_set;
    const char *const *param; /* "NAME=VALUE" of the policy */
    int n_param;
    int horizon, layers; /* 0 = horizon of the action's buffer, layers unknown */
};

struct tec_mock {
    struct tec_heap *heap;
    struct tec_arena arena;
    struct tec_pipeline *pipeline;
    struct tec_topology topology;
    struct tec_policy *policy;
    struct tec_planner planner;
    struct tec_frame_view view; /* req, kv, seg and late_us point to what follows */
    struct tec_request_view req[TEC_MAX_ROWS];
    struct tec_kv_view *kv;
    struct tec_segment_view seg[TEC_MAX_SEGMENTS];
    int64_t *late;
    struct tec_mock_cost costs[TEC_MOCK_COSTS];
    int n_costs;
    double slack[TEC_MOCK_LEVELS];
    struct tec_decision decision; /* of the last plan; the default plan when it failed */
    bool failed;                  /* the last hook ended in an error: */
    struct tec_error error;
};

/* Load pipeline and policy. Budgets are generous (100 ms a call): decisions are judged here, not
 * time. Fails as tec_pipeline_load and tec_policy_open do. */
enum tec_status tec_mock_open(struct tec_mock **out, const struct tec_mock_options *options,
                              struct tec_heap *heap, struct tec_error *err);
void tec_mock_close(struct tec_mock *mock); /* NULL is allowed */

/* The request that comes when nothing is said of it: of the first decode node, fresh, born now,
 * with that node's max_tokens and soft deadline. `i` gives its id. */
struct tec_request_view tec_mock_request(const struct tec_mock *mock, int i);

/* On to the next frame: index and clock go on by one period, requests are a frame older. */
void tec_mock_advance(struct tec_mock *mock);

/* Ask the policy about the view as it is; fills decision, failed and error. */
void tec_mock_plan(struct tec_mock *mock);

/* Call another hook through `planner` first, then this: takes a failure over from its report. */
void tec_mock_note_failure(struct tec_mock *mock, int64_t failures_before);

/* Index of the node with this name in the topology, -1 = none. */
int tec_mock_node(const struct tec_mock *mock, const char *name);
/* The prefill that makes the prefix of a node's requests, or -1. */
int tec_mock_prefill(const struct tec_mock *mock, int node);

/* Rows that run in order of launch, by (priority, row) within a launch and launches by their first
 * row: order[0 .. n), launch[i] counts from 0. Returns n. */
int tec_mock_launches(const struct tec_mock *mock, int order[TEC_MAX_ROWS],
                      int launch[TEC_MAX_ROWS]);

#endif
