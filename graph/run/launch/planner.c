/* planner.c - the default plan, and the lattice points that a decision is moved to.
 *
 * Frame thread. The default plan must be valid in every frame, as it is what runs when a policy
 * fails. So with hard nodes it does no soft work at all: it decodes nothing for soft requests and
 * skips optional nodes; without hard nodes it does as much as was captured. */
#include "graph/run/launch/planner.h"
#include "graph/nodes/node.h"

#include <stdio.h>
#include <string.h>

const struct tec_planner tec_default_planner = {.name = "default"};

const char *tec_planner_name(const struct tec_planner *planner)
{
    return planner->decider ? planner->decider(planner->self) : planner->name;
}

static const char *const cause_names[] = {
#define CAUSE(name, word, meaning) word,
#include "graph/run/launch/causes.def"
#undef CAUSE
};

const char *tec_cause_name(enum tec_cause cause)
{
    return cause < TEC_CAUSES ? cause_names[cause] : "?";
}

int tec_topology_find(const struct tec_topology *t, const char *name)
{
    for (int i = 0; i < t->n_nodes; i++)
        if (strcmp(t->nodes[i].name, name) == 0)
            return i;
    return -1;
}

bool tec_topology_decodes(const struct tec_topology *t, int node)
{
    return node >= 0 && node < t->n_nodes && !t->nodes[node].ring &&
           tec_node_says(t->nodes[node].kind);
}

int tec_topology_stages(const struct tec_topology *t)
{
    int most = 0;
    for (int i = 0; i < t->n_rings; i++)
        most = t->rings[i].stages > most ? t->rings[i].stages : most;
    return most;
}

int tec_snap_down(const int *points, int n, int wish)
{
    int best = 0;
    for (int i = 0; i < n && points[i] <= wish; i++)
        best = points[i];
    return best;
}

double tec_ratio_within(const struct tec_topology *t, double wish, double before)
{
    double most = t->n_ratio ? t->ratio[t->n_ratio - 1] : 1.0;
    most = before < most ? before : most;
    return wish > most ? most : wish > 0.0 ? wish : 0.0;
}

int tec_snap_up(const int *points, int n, int rows)
{
    for (int i = 0; i < n; i++)
        if (points[i] >= rows)
            return points[i];
    return n > 0 ? points[n - 1] : 0;
}

static bool any_hard(const struct tec_topology *topology)
{
    for (int i = 0; i < topology->n_nodes; i++)
        if (topology->nodes[i].hard)
            return true;
    return false;
}

static int last_point(const int *points, int n)
{
    return n > 0 ? points[n - 1] : 0;
}

void tec_planner_default(const struct tec_topology *topology, const struct tec_frame_view *view,
                         struct tec_decision *decision)
{
    bool guarded = any_hard(topology);
    memset(decision, 0,
           offsetof(struct tec_decision, notes)); /* behind a count of 0 lies nothing */
    decision->n_recompute = decision->n_seg = 0;
    decision->n_rows = view->n_req < TEC_MAX_ROWS ? view->n_req : TEC_MAX_ROWS;
    for (int i = 0; i < decision->n_rows; i++) {
        int node = view->req[i].node;
        bool hard = node >= 0 && node < topology->n_nodes && topology->nodes[node].hard;
        decision->rows[i].k = hard || !guarded ? last_point(topology->k, topology->n_k) : 0;
        decision->rows[i].priority = view->req[i].prio;
    }
    for (int i = 0; i < TEC_MAX_NODES; i++)
        decision->nodes[i].partition = -1;
    for (int i = 0; i < topology->n_nodes; i++) {
        decision->nodes[i].skip =
            guarded && topology->nodes[i].optional && !topology->nodes[i].hard;
        if (!guarded)
            decision->nodes[i].slices = topology->nodes[i].slices * TEC_MAX_ROWS;
        if (decision->nodes[i].skip)
            snprintf(decision->nodes[i].reason, sizeof decision->nodes[i].reason, "default plan");
    }
    for (int i = 0; i < TEC_MAX_RINGS; i++)
        decision->depth[i] = last_point(topology->depth, topology->n_depth);
}
