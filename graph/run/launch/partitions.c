/* partitions.c - an executor that runs requests on some lanes while the frame's hard nodes run on
 * the others.
 *
 * The frame thread starts and joins the work; `work` runs on the lanes beside. The two sides share
 * one atomic flag: launches that read the frame's own prefix wait until its prefill has ended. No
 * lock is needed for KV, because what the two sides write at one time is disjoint (partitions.h).
 */
#include "graph/run/launch/partitions.h"

#include "base/spin.h"

#include <stdatomic.h>

struct tec_partitions {
    struct tec_plan *plan;
    struct tec_heap *heap;
    struct tec_executor whole;   /* on all lanes, or on those that are left; a memory's, too */
    struct tec_launch *launches; /* of the frame; the lanes beside own them until they are waited
                                  * for */
    int n;
    bool forked;
    _Atomic bool seen; /* the frame's own prefills have ended */
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
            tec_decl_makes_text(&p->nodes[i]))
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

static void work(void *user)
{
    struct tec_partitions *p = user;
    for (int i = 0; i < p->n; i++) {
        if (p->launches[i].after_prefill)
            await_prefill(p);
        tec_launch_run(p->plan, true, &p->launches[i]);
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

/* Launches beside that need a prefix start after the last prefill of the frame. If the caller has
 * set a mark callback it is not replaced; they then start after the whole launch instead. */
static void launch_prefix(struct tec_partitions *p, struct tec_launch *launch)
{
    struct tec_replay *replay = &launch->replay;
    bool last = !launch->prefix.more, listen = p->forked && last && !replay->marked;
    if (listen) {
        replay->marked = marked;
        replay->user = p;
    }
    tec_executor_launch(&p->whole, launch);
    if (listen)
        replay->marked = NULL;
    if (last)
        atomic_store(&p->seen, true);
}

static void parted_launch(void *self, struct tec_launch *launch)
{
    struct tec_partitions *p = self;
    if (launch->kind == TEC_LAUNCH_prefix)
        launch_prefix(p, launch);
    else
        tec_executor_launch(&p->whole, launch);
}

static void parted_chunk(void *self, const struct tec_launch *launch, int i, float *chunk)
{
    const struct tec_partitions *p = self;
    p->whole.chunk(p->whole.self, launch, i, chunk);
}

static void parted_start(void *self, struct tec_launch *launches, int n)
{
    struct tec_partitions *p = self;
    p->launches = launches;
    p->n = n;
    p->forked = true;
    atomic_store(&p->seen, false);
    tec_device_fork(p->plan->device, work, p);
}

/* A frame whose prefill was not launched must not keep the others waiting. */
static void parted_wait(void *self)
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
        parted_wait(p);
    tec_heap_put(p->heap, p);
}

struct tec_executor tec_partitions_executor(struct tec_partitions *p)
{
    struct tec_executor e = p->whole;
    e.self = p;
    e.launch = parted_launch;
    e.chunk = parted_chunk;
    e.start = parted_start;
    e.wait = parted_wait;
    e.ran = NULL;
    return e;
}
