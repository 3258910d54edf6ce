/* prefix.c - the prefix of a chain: what of an observation its keys stand for, and whether a frame
 * makes it anew. */
#include "graph/run/loop/prefix.h"
#include "graph/run/loop/tell.h"
#include "graph/run/loop/texts.h"

#include <string.h>

void tec_loop_drop_prefix(struct tec_loop *l, struct tec_chain *c)
{
    if (c->prefix.region < 0)
        return;
    tec_kv_pool_drop(&c->plan->prefixes, c->prefix.region);
    if (!c->ring) /* whose sequence goes on in it, and is told of */
        tec_loop_tell_prefix(l, "free", c, c->prefix.rows, tec_loop_now(l));
    c->prefix.region = -1;
}

void tec_loop_open_prefix(struct tec_loop *l, struct tec_chain *c,
                          const struct tec_frame_input *input, int region)
{
    const struct tec_chain_input *in = tec_chain_input(l, c, input);
    const struct tec_prefix_input *o = &in->prefix;
    struct tec_chain_prefix *p = &c->prefix;
    p->region = region;
    p->rows = tec_prefix_rows(c->plan, o);
    p->last_token = o->n_text ? o->ids[o->n_text - 1] : -1;
    p->n_prompt = c->plan->used ? o->n_text : 0;
    memcpy(p->prompt, o->ids, (size_t)p->n_prompt * sizeof *p->prompt);
    p->frame = l->tick->frame;
    p->captured_ns = input->captured_ns;
    p->episode = input->episode;
    p->key = c->o->on_change ? tec_loop_key(l, c) : 0;
    if (c->keeps && in->state)
        memcpy(p->state, in->state, (size_t)tec_model_state(c->plan->model) * sizeof *p->state);
}

bool tec_loop_prefills(const struct tec_loop *l, const struct tec_chain *c)
{
    int64_t n = c->every;
    bool first = c->prefix.region < 0;
    if (c->o->on_change)
        return first || (l->input && tec_loop_key(l, c) != c->prefix.key);
    return first || l->tick->frame / n != c->prefix.frame / n;
}
