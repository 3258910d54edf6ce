/* engine_shares.c - which chains of a model share the rows that its towers make of pictures.
 *
 * Runs at load, when the chains are described. Two prompts of one observation read the same
 * pictures; whoever is first makes their rows, the other copies them (pictures.c). */
#include "graph/run/engine/engine_own.h"

/* Do two chains read the same pictures, and any? */
static bool same_pictures(const struct tec_pipeline *p, int a, int b)
{
    const struct tec_decl_node *x = &p->nodes[p->chains[a].prefill];
    const struct tec_decl_node *y = &p->nodes[p->chains[b].prefill];
    bool same = true, any = false;
    for (int i = 0; same && i < p->n_inputs; i++) {
        bool picture = p->inputs[i].kind == TEC_INPUT_IMAGE;
        same = !picture || tec_decl_reads(x, i) == tec_decl_reads(y, i);
        any |= picture && tec_decl_reads(x, i);
    }
    return same && any;
}

/* Are the rows of pictures in a chain's prefix those that the towers make? Prompts of memories have
 * launches of their own, and so have those of rings and of several sessions. */
static bool plain(const struct tec_engine *e, int chain)
{
    const struct tec_plan_spec *s = &e->chains[chain].spec;
    const struct tec_model *m = e->chains[chain].of->model;
    return e->options.pipeline->chains[chain].prefill >= 0 && !s->stages && !s->segments &&
           !s->n_together && m->vision.n_towers > 0 && !m->vision.n_sizes && !tec_model_asks(m) &&
           !tec_model_denoises(m);
}

void tec_engine_share_pictures(struct tec_engine *e)
{
    for (int i = 0; i < e->n_chains; i++)
        for (int j = 0; j < i; j++) {
            bool both = e->chains[i].of == e->chains[j].of && plain(e, i) && plain(e, j) &&
                        same_pictures(e->options.pipeline, i, j);
            e->chains[i].spec.shares |= both;
            e->chains[j].spec.shares |= both;
        }
}
