/* profile_variant.c - a launch that is measured: listed with room for its samples, and given them.
 */
#include "tools/measure/profile.h"

bool tec_profile_add(struct tec_profile *p, enum tec_cost_kind kind, const char *node, bool lone,
                     int batch)
{
    struct tec_profile_variant *v = &p->variants[p->n_variants++];
    *v = (struct tec_profile_variant){.kind = kind, .node = node, .lone = lone, .batch = batch};
    v->samples.room = p->frames;
    v->samples.ns = TEC_NEW(p->call->arena, (size_t)p->frames, int64_t);
    return v->samples.ns != NULL;
}

void tec_profile_keep(const struct tec_profile *p, struct tec_profile_variant *v, int64_t ns,
                      int steps)
{
    if (!p->counting || v->samples.n == v->samples.room)
        return;
    v->samples.ns[v->samples.n++] = ns / steps;
    v->busy_ns += ns;
}
