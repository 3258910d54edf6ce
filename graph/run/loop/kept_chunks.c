/* kept_chunks.c - chunks of action nodes that do not run in every frame (spawn = every(n)).
 *
 * Frame thread. In a frame in which such a node does not run, the robot goes on with what it has:
 * the newest chunk leaves again, from the row of this frame on. It is of its own observation, so
 * its age grows.
 *
 * Which row that is follows from the observations that the robot has given since, not from how
 * often the chunk has left: the robot moves on at a tick that opened no frame, and in a frame that
 * left the node out. A chunk that is used up then does not leave, but the node runs. */
#include "graph/run/loop/kept_chunks.h"
#include "graph/run/loop/prefix.h"

#include <string.h>

static const struct tec_flow *flow_of(const struct tec_loop *l, int action)
{
    return &l->chains[l->o.actions[action].chain].plan->model->flow;
}

static size_t chunk_size(const struct tec_flow *f)
{
    return (size_t)f->horizon * (size_t)f->dim;
}

/* That of the session whose turn it is. */
static struct tec_kept_chunk *place_of(const struct tec_loop *l, int action)
{
    int session = l->tick->session;
    return &l->kept[action * TEC_MAX_TICKING +
                    (session >= 0 && session < TEC_MAX_TICKING ? session : 0)];
}

enum tec_status tec_kept_chunks_create(struct tec_loop *l, struct tec_error *err)
{
    size_t n = (size_t)l->o.n_actions * TEC_MAX_TICKING;
    bool any = false, ok = true;
    for (int a = 0; a < l->o.n_actions; a++)
        any |= l->o.actions[a].every > 1;
    if (!any)
        return TEC_OK;
    l->kept = TEC_NEW(&l->arena, n, struct tec_kept_chunk);
    for (size_t i = 0; l->kept && ok && i < n; i++) {
        int action = (int)(i / TEC_MAX_TICKING);
        l->kept[i] = (struct tec_kept_chunk){.left = 0};
        if (l->o.actions[action].every < 2)
            continue;
        l->kept[i].chunk = TEC_NEW(&l->arena, chunk_size(flow_of(l, action)) + 1, float);
        ok = l->kept[i].chunk != NULL;
    }
    return l->kept && ok ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for chunks");
}

void tec_kept_chunks_keep(struct tec_loop *l, int action, int64_t seen, int64_t captured_ns)
{
    if (l->o.actions[action].every < 2)
        return;
    struct tec_kept_chunk *k = place_of(l, action);
    const float *chunk = l->chains[l->o.actions[action].chain].chunk;
    k->left = 1;
    k->first = tec_tick_observation(l->tick);
    k->episode = l->input->episode;
    k->seen = seen;
    k->captured_ns = captured_ns;
    memcpy(k->chunk, chunk, chunk_size(flow_of(l, action)) * sizeof *chunk);
}

const struct tec_kept_chunk *tec_kept_chunk_of(const struct tec_loop *l, int action)
{
    const struct tec_action *a = &l->o.actions[action];
    const struct tec_chain *c = &l->chains[a->chain];
    if (a->every < 2 || !l->input)
        return NULL;
    const struct tec_kept_chunk *k = place_of(l, action);
    int64_t over = tec_kept_chunk_over(l, k);
    bool newer = a->with_prefix && (tec_loop_prefills(l, c) || c->prefix.frame != k->seen);
    bool lasts = k->left > 0 && k->episode == l->input->episode && over > 0 && over < a->every;
    return lasts && !newer ? k : NULL;
}

int64_t tec_kept_chunk_over(const struct tec_loop *l, const struct tec_kept_chunk *k)
{
    return tec_tick_observation(l->tick) - k->first;
}

const struct tec_kept_chunk *tec_kept_chunk_leave(struct tec_loop *l, int action)
{
    const struct tec_flow *f = flow_of(l, action);
    struct tec_kept_chunk *k = place_of(l, action);
    float *out = l->chains[l->o.actions[action].chain].chunk;
    int64_t over = tec_kept_chunk_over(l, k) * l->o.actions[action].rows;
    for (int i = 0; i < f->horizon; i++) {
        int64_t from = i + over < f->horizon ? i + over : f->horizon - 1;
        memcpy(out + (ptrdiff_t)i * f->dim, k->chunk + from * f->dim, (size_t)f->dim * sizeof *out);
    }
    l->record.actions[action].over = (int)(over < f->horizon ? over : f->horizon);
    k->left++;
    return k;
}

void tec_kept_chunks_reset(struct tec_loop *l)
{
    for (int i = 0; l->kept && i < l->o.n_actions * TEC_MAX_TICKING; i++)
        l->kept[i].left = 0;
}
