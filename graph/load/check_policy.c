/* check_policy.c - tells of text that the default plan would never run. */
#include "graph/load/diagnostics.h"
#include "graph/load/pipeline_texts.h"

#include <string.h>

void tec_pipeline_check_policy(const struct tec_pipeline *p, const char *policy,
                               struct tec_diagnostics *d)
{
    const struct tec_decl_node *hard = NULL, *text = NULL;
    if (!policy)
        policy = p->policy.name;
    if (policy && strcmp(policy, "default") != 0)
        return;
    for (int i = 0; i < p->n_nodes; i++) {
        const struct tec_decl_node *n = &p->nodes[i];
        if (n->culled)
            continue;
        bool must = n->deadline.kind == TEC_DEADLINE_HARD || tec_pipeline_awaited(p, n);
        if (must && !hard)
            hard = n;
        if (!must && tec_decl_makes_text(n) && !tec_pipeline_rings(p, n) && !text)
            text = n;
    }
    if (!hard || !text)
        return;
    struct tec_diagnostic *told =
        tec_diagnostics_add(d, TEC_W114, text->where,
                            "'%s' never runs: the default plan leaves text beside the hard "
                            "deadline of '%s' to a policy",
                            text->name ? text->name : "?", hard->name ? hard->name : "?");
    tec_diagnostics_help(d, told,
                         "name a policy: policy = use { name = \"fill\" }, or --policy fill");
}
