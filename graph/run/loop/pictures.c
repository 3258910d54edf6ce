/* pictures.c - rows of pictures that one prefill of a model makes and the others copy.
 *
 * Frame thread. The plans of a model that share have one place for what the towers made last. Whose
 * rows these are is known by the frame and the session of the observation, and by the addresses of
 * its pictures; an address alone would not do, as sets of buffers are used again. */
#include "graph/run/loop/pictures.h"
#include "graph/run/loop/state.h"

struct tec_pictures_seen tec_pictures_of(const struct tec_loop *l, const struct tec_prefix_input *o)
{
    struct tec_pictures_seen seen = {
        .opened = l->n_opened, .session = l->tick->session, .n = o->n_pictures};
    for (int i = 0; i < o->n_pictures; i++)
        seen.picture[i] = o->picture[i];
    return seen;
}

/* Pictures without pixels are simulated: as many as there is room for, which is no matter here. */
static bool same(const struct tec_pictures_seen *a, const struct tec_pictures_seen *b)
{
    bool simulated = !a->picture[0] && !b->picture[0];
    bool equal = a->opened == b->opened && a->session == b->session && (simulated || a->n == b->n);
    for (int i = 0; equal && i < a->n && !simulated; i++)
        equal = a->picture[i] == b->picture[i];
    return equal;
}

bool tec_pictures_known(const struct tec_chain *c, const struct tec_pictures_seen *seen)
{
    return c->plan->spec.shares && seen->n > 0 && same(&c->looks->kept, seen);
}

struct tec_observed tec_pictures_observed(const struct tec_loop *l, const struct tec_chain *c,
                                          int region)
{
    const struct tec_chain_input *in = tec_chain_input(l, c, l->input);
    const struct tec_pictures_seen seen = tec_pictures_of(l, &in->prefix);
    return (struct tec_observed){region, in, tec_pictures_known(c, &seen)};
}

void tec_pictures_keep(const struct tec_chain *c, struct tec_pictures_seen seen)
{
    if (c->plan->spec.shares)
        c->looks->kept = seen;
}
