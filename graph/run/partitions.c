/* partitions.c - an executor that runs requests on some lanes while the frame's hard nodes run on
 * the others.
 *
 * The frame thread starts and joins the work; `work` runs on the lanes beside. The two sides share
 * one atomic flag: jobs that read the frame's own prefix wait until its prefill has ended. No lock
 * is needed for KV, because what the two sides write at one time is disjoint (partitions.h). */
#include "graph/run/partitions.h"

#include "base/spin.h"

#include <stdatomic.h>

struct tec_partitions {
    struct tec_plan *plan;
    struct tec_heap *heap;
    struct tec_executor whole; /* on all lanes, or on those that are left; a memory's, too */
    struct tec_soft_job *jobs; /* of the frame; the lanes beside own them until join */
    int n;
    const struct tec_chain_input *input;
    bool forked;
    _Atomic bool seen; /* the frame's own prefill has ended */
};

/* --- shares ---------------------------------------------------------------------------------- */

/* True if the frames' model has language nodes; a ring's decode node does not count, it makes the
 * actions. */
static bool decodes(const struct tec_pipeline *p)
{
    if (tec_pipeline_ring(p, 0))
        return false;
    for (int i = 0; i < p->n_nodes; i++)
        if (!p->nodes[i].culled && tec_pipeline_in_frames(p, &p->nodes[i]) &&
            (p->nodes[i].kind == TEC_DECL_DECODE || p->nodes[i].kind == TEC_DECL_SCORE))
            return true;
    return false;
}

/* The partition of the action, or without one of the prefill; -1 = none is named. */
static int hard_partition(const struct tec_pipeline *p)
{
    const struct tec_decl_node *hard = NULL;
    for (int i = 0; i < p->n_nodes; i++) {
        const struct tec_decl_node *n = &p->nodes[i];
        if (!n->culled && (n->kind == TEC_DECL_ACTION || (n->kind == TEC_DECL_PREFILL && !hard)))
            hard = n;
    }
    return hard ? hard->partition.index : -1;
}

int tec_partition_lanes(const struct tec_pipeline *p, int lanes)
{
    int hard = hard_partition(p), others = 0;
    double beside = 0.0;
    for (int i = 0; i < p->n_partitions; i++)
        if (i != hard) {
            beside += p->partitions[i].share;
            others++;
        }
    if (others == 0 || lanes < 2 || !decodes(p))
        return 0;
    double first = hard >= 0 ? p->partitions[hard].share : beside < 1.0 ? 1.0 - beside : 0.0;
    int n = (int)(lanes * beside / (first + beside) + 1e-9);
    return n > lanes - 1 ? lanes - 1 : n;
}

/* --- the lanes beside ------------------------------------------------------------------------ */

static void await_prefill(struct tec_partitions *p)
{
    for (int turns = 0; !atomic_load(&p->seen);)
        tec_spin(&turns);
}

static void score(struct tec_plan *plan, struct tec_soft_job *job)
{
    const struct tec_score_launch launch =
        tec_score_launch_of(job->tree, job->rows[0], job->likely);
    tec_launch_score(plan, tec_plan_part_concurrent(plan, TEC_PART_SCORE, 0), &launch,
                     &job->replay);
}

static void work(void *user)
{
    struct tec_partitions *p = user;
    for (int i = 0; i < p->n; i++) {
        struct tec_soft_job *j = &p->jobs[i];
        if (j->after_prefill)
            await_prefill(p);
        if (j->prefill)
            tec_launch_prefix(p->plan, tec_plan_part_concurrent(p->plan, TEC_PART_PREFIX, 0),
                              j->region, &p->input->prefix, NULL, &j->replay);
        else if (j->tree)
            score(p->plan, j);
        else
            tec_launch_decode(p->plan, tec_plan_part_concurrent(p->plan, TEC_PART_DECODE, j->n),
                              j->rows, j->n, j->k, j->tokens, j->made, &j->replay);
    }
}

/* --- the frame thread ------------------------------------------------------------------------ */

static void marked(void *user, int mark, int64_t now_ns)
{
    struct tec_partitions *p = user;
    (void)now_ns;
    if (mark == TEC_MARK_PREFILL)
        atomic_store(&p->seen, true);
}

/* If the caller has set a mark callback it is not replaced; the jobs that need the prefix then
 * start after the whole launch instead of after its prefill. */
static void parted_prefix(void *self, enum tec_part_kind kind, int region,
                          const struct tec_chain_input *input, struct tec_replay *replay)
{
    struct tec_partitions *p = self;
    bool listen = p->forked && !replay->marked;
    if (listen) {
        replay->marked = marked;
        replay->user = p;
    }
    p->whole.prefix(p->whole.self, kind, region, input, replay);
    if (listen)
        replay->marked = NULL;
    atomic_store(&p->seen, true);
}

static void parted_action(void *self, const struct tec_action_launch *launch,
                          struct tec_replay *replay)
{
    struct tec_partitions *p = self;
    p->whole.action(p->whole.self, launch, replay);
}

static void parted_actions(void *self, int at, float *chunk)
{
    struct tec_partitions *p = self;
    p->whole.actions(p->whole.self, at, chunk);
}

static void parted_decode(void *self, struct tec_row_state *const *rows, int n, int k, int *tokens,
                          int *made, struct tec_replay *replay)
{
    struct tec_partitions *p = self;
    p->whole.decode(p->whole.self, rows, n, k, tokens, made, replay);
}

static void parted_verify(void *self, struct tec_verify_row *rows, int n, struct tec_replay *replay)
{
    struct tec_partitions *p = self;
    p->whole.verify(p->whole.self, rows, n, replay);
}

static void parted_score(void *self, const struct tec_token_tree *tree,
                         const struct tec_row_state *row, float *likely, struct tec_replay *replay)
{
    struct tec_partitions *p = self;
    p->whole.score(p->whole.self, tree, row, likely, replay);
}

static void parted_recompute(void *self, const struct tec_decision *decision,
                             const struct tec_memory_prompt *prompt, int first)
{
    struct tec_partitions *p = self;
    p->whole.recompute(p->whole.self, decision, prompt, first);
}

static void parted_report(void *self, struct tec_frame_view *view)
{
    struct tec_partitions *p = self;
    p->whole.report(p->whole.self, view);
}

static void parted_idle(void *self, int64_t until_ns)
{
    struct tec_partitions *p = self;
    p->whole.idle(p->whole.self, until_ns);
}

static void parted_concurrent(void *self, struct tec_soft_job *jobs, int n,
                              const struct tec_chain_input *input)
{
    struct tec_partitions *p = self;
    p->jobs = jobs;
    p->n = n;
    p->input = input;
    p->forked = true;
    atomic_store(&p->seen, false);
    tec_device_fork(p->plan->device, work, p);
}

/* A frame whose prefill was not launched must not keep the jobs waiting. */
static void parted_join(void *self)
{
    struct tec_partitions *p = self;
    atomic_store(&p->seen, true);
    tec_device_join(p->plan->device);
    p->forked = false;
}

enum tec_status tec_partitions_create(struct tec_partitions **out, struct tec_plan *plan,
                                      const struct tec_executor *whole, struct tec_heap *heap,
                                      struct tec_error *err)
{
    struct tec_partitions *p = tec_heap_get(heap, sizeof *p);
    if (!p)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for partitions");
    p->plan = plan;
    p->heap = heap;
    p->whole = *whole;
    *out = p;
    return TEC_OK;
}

void tec_partitions_destroy(struct tec_partitions *p)
{
    if (!p)
        return;
    if (p->forked)
        parted_join(p);
    tec_heap_put(p->heap, p);
}

struct tec_executor tec_partitions_executor(struct tec_partitions *p)
{
    return (struct tec_executor){.self = p,
                                 .clock = p->whole.clock,
                                 .prefix = parted_prefix,
                                 .action = parted_action,
                                 .actions = parted_actions,
                                 .decode = parted_decode,
                                 .verify = p->whole.verify ? parted_verify : NULL,
                                 .score = parted_score,
                                 .recompute = p->whole.recompute ? parted_recompute : NULL,
                                 .report = p->whole.report ? parted_report : NULL,
                                 .idle = p->whole.idle ? parted_idle : NULL,
                                 .beside = parted_concurrent,
                                 .join = parted_join};
}
