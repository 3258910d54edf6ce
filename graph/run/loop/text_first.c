/* text_first.c - hard texts, which a hard node waits for or which have a hard deadline: made to
 * their ends in the frame that they are born in. Those that a node waits for come before it. The
 * others come behind all actions of their chain, and behind the chains that are due no later than
 * they are, so that language delays no action that is due before it.
 *
 * They are rows of launches like other texts, but no decision is asked about them. Where a model
 * proposes their tokens, its prefill comes before them, whole. */
#include "graph/run/loop/text_first.h"
#include "graph/run/loop/acting.h"
#include "graph/run/loop/own_frames.h"
#include "graph/run/loop/slices.h"
#include "graph/run/loop/soft.h"

/* Is it one that the chain makes then, and of a session of this frame? */
static bool is_due(const struct tec_loop *l, const struct tec_request *r, const struct tec_chain *c,
                   int of)
{
    int who = tec_loop_place(l, r);
    return who >= 0 && (l->n_own < 2 || l->own[who].input) && !r->ended && tec_loop_awaits(l, r) &&
           tec_chain_of(l, r) == c && l->o.decoders[r->decoder].behind == (of == TEC_TEXTS_BEHIND);
}

/* The next rows of one launch, behind those that the decision has ordered: as many as the largest
 * captured batch takes, of those with drafts one node's, a ranking alone. Returns how many, *k the
 * steps that the longest needs. */
static int next_rows(struct tec_loop *l, const struct tec_scheduled *it, int *k)
{
    int n = 0, draft = -1, largest = tec_plan_batch(it->chain->plan);
    *k = 1;
    for (int i = 0; i < l->n_live && n < largest; i++) {
        const struct tec_request *r = &l->requests[i];
        bool ranks = l->o.decoders[r->decoder].tree != NULL;
        int own = tec_loop_drafts(l, r->decoder) ? r->decoder : -1;
        if (!is_due(l, r, it->chain, it->of) || (n && (ranks || own != draft)))
            continue;
        draft = own;
        int left = r->row.left + r->row.waiting;
        l->order[l->n_order + n++] = i;
        *k = left > *k ? left : *k;
        if (ranks)
            break;
    }
    return n;
}

/* New ones stand on their session's prefix. */
static void store(struct tec_loop *l, const struct tec_scheduled *it)
{
    for (int i = 0; i < l->n_live; i++)
        if (is_due(l, &l->requests[i], it->chain, it->of) && !l->requests[i].stored)
            tec_loop_store(l, i);
}

/* Once a frame: those that are waited for when the first action that waits is about to run, or none
 * has. */
static bool next_text(struct tec_loop *l, struct tec_scheduled *it)
{
    struct tec_chain *c = it->chain;
    int k;
    if (it->at == 0) {
        bool *said = it->of == TEC_TEXTS_BEHIND ? &c->behind : &c->said;
        if (*said || (it->of >= 0 && !tec_loop_runs_late(l, c, it->of)))
            return false;
        *said = true;
        store(l, it);
    }
    int n = next_rows(l, it, &k);
    if (n > 0)
        tec_loop_fill_rows(l, it, l->n_order, n, k);
    return n > 0;
}

void tec_loop_add_texts(struct tec_loop *l, struct tec_chain *c, int who, int of)
{
    for (int i = 0; i < l->n_live; i++)
        if (is_due(l, &l->requests[i], c, of))
            tec_slices_first(l, l->requests[i].draft.pending);
    tec_schedule_add(l, &tec_scheduled_text, c, who, of);
    if (l->text_keys)
        tec_schedule_add(l, &tec_scheduled_keys, c, 0, 0);
}

const struct tec_scheduled_kind tec_scheduled_text = {
    .next = next_text, .launch = tec_loop_launch_rows, .settle = tec_loop_settle_rows};
