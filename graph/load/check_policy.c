/* check_policy.c - tells of text that the default plan would never run, and of text that is begun
 * anew before it can end. */
#include "graph/load/loader.h"
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

int tec_pipeline_superseded(const struct tec_pipeline *p, const struct tec_decl_node *n)
{
    bool apart = n->kind == TEC_DECL_DECODE && !n->culled && n->supersede &&
                 n->deadline.kind != TEC_DEADLINE_HARD && !n->draft.model.name &&
                 !tec_pipeline_rings(p, n) && !tec_pipeline_awaited(p, n);
    if (!apart)
        return 0;
    const struct tec_decl_spawn spawn = tec_pipeline_spawn(p, n);
    return spawn.kind == TEC_SPAWN_EVERY ? spawn.frames : 0;
}

int64_t tec_pipeline_superseded_tokens(const struct tec_pipeline *p, const struct tec_decl_node *n)
{
    int64_t frames = tec_pipeline_superseded(p, n);
    int most = p->capture.k.n ? p->capture.k.item[p->capture.k.n - 1] : n->max_tokens;
    int64_t made = frames * most;
    return !frames || made > n->max_tokens ? n->max_tokens : made;
}

/* By the count of tokens alone. */
void tec_check_superseded(struct tec_loader *ld)
{
    const struct tec_pipeline *p = ld->pipeline;
    struct tec_decl_node *nodes = ld->lists[TEC_NODES];
    for (int i = 0; i < p->n_nodes; i++) {
        struct tec_decl_node *n = &nodes[i];
        int64_t frames = tec_pipeline_superseded(p, n), made = tec_pipeline_superseded_tokens(p, n);
        if (!frames)
            continue;
        n->where_tokens = tec_where_field(ld, &ld->nodes[i], "max_tokens");
        if (made >= n->max_tokens)
            continue;
        int most = (int)(made / frames);
        struct tec_diagnostic *d = tec_diagnostics_add(
            ld->d, TEC_W118, n->where_tokens,
            "'%s' is begun anew after %lld frame%s of at most %d tokens each: where every frame "
            "has an observation it has %lld of its %d tokens by then, and a longer text never ends",
            n->name ? n->name : "decode", (long long)frames, frames == 1 ? "" : "s", most,
            (long long)made, n->max_tokens);
        tec_diagnostics_help(ld->d, d,
                             "spawn = every(%d), a point of at least %lld in capture.k, or "
                             "fewer max_tokens",
                             (n->max_tokens + most - 1) / most,
                             (long long)((n->max_tokens + frames - 1) / frames));
    }
}
