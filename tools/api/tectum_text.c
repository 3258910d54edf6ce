/* tectum_text.c - the public interface: what requests say, piece by piece. */
#include "base/clock.h"
#include "tools/api/live.h"

#include <stdio.h>
#include <string.h>

_Static_assert(sizeof((struct tectum_piece *)NULL)->text > TEC_DETOKENIZER_BYTES, "a token fits");

static const struct tec_clock wall = {NULL};

/* The decode node of that index among the pipeline's. */
static const char *node_name(const struct tectum *t, int decoder)
{
    const struct tec_topology *topology = &t->engine->topology;
    for (int i = 0; i < topology->n_nodes; i++)
        if (tec_topology_decodes(topology, i) && decoder-- == 0)
            return topology->nodes[i].name;
    return "";
}

/* Under the lock. */
static bool take_piece(struct tectum *t, struct tectum_piece *piece)
{
    struct tec_transcript_event e;
    size_t bytes = 0;
    struct tectum_piece new = {.request = -1};
    if (!tec_transcript_read(&t->transcript, &e, new.text, sizeof new.text - 1, &bytes))
        return false;
    new.request = e.request;
    new.observation = e.observation;
    new.token = e.token;
    new.bytes = bytes;
    snprintf(new.node, sizeof new.node, "%s", node_name(t, e.decoder));
    if (e.ends) {
        new.truncated = e.lost;
        snprintf(new.reason, sizeof new.reason, "%s", e.reason);
    }
    *piece = new;
    return true;
}

enum tectum_status tectum_read(struct tectum *t, int64_t timeout_ns, struct tectum_piece *piece,
                               struct tectum_error *err)
{
    struct tec_error lost;
    if (!t || !piece)
        return tec_live_fail(err, TEC_INVALID, "tectum_read: an engine and a piece are needed");
    for (int64_t until = tec_live_end(timeout_ns);;) {
        uint32_t seen = atomic_load(&t->transcript.said.rings);
        pthread_mutex_lock(&t->transcript.lock);
        bool got = take_piece(t, piece);
        pthread_mutex_unlock(&t->transcript.lock);
        if (got)
            return TECTUM_OK;
        if (tec_engine_failure(t->engine, &lost) != TEC_OK)
            return tec_live_convert(err, &lost);
        if (tec_clock_now(&wall) >= until)
            return tec_live_fail(err, TEC_TIME, "no text yet");
        tec_bell_wait(&t->transcript.said, seen, until);
    }
}

/* The decoder that ranks, by name; -1 = there is none. */
static int ranker_of(const struct tectum *t, const char *node)
{
    const struct tec_loop_options *o = tec_loop_settings(t->engine->loop);
    for (int d = 0; d < o->n_decoders; d++)
        if (o->decoders[d].tree && (!node || strcmp(o->decoders[d].name, node) == 0))
            return d;
    return -1;
}

const char *tectum_candidate(const struct tectum *t, const char *node, int index)
{
    int d = t ? ranker_of(t, node) : -1;
    if (d < 0)
        return NULL;
    const char *name = tec_loop_settings(t->engine->loop)->decoders[d].name;
    const struct tec_decl_node *n = &t->pipeline->nodes[tec_pipeline_find_node(t->pipeline, name)];
    return index >= 0 && index < n->choices.n ? n->choices.item[index] : NULL;
}

int64_t tectum_unread(const struct tectum *t, struct tectum_error *first)
{
    const char *why = t ? tec_runtime_unread(&t->live->runtime) : NULL;
    if (first)
        *first = (struct tectum_error){.status = why ? TECTUM_INVALID : TECTUM_OK};
    if (first && why)
        snprintf(first->message, sizeof first->message, "%s", why);
    return why ? atomic_load(&t->live->runtime.figures.unread) : 0;
}

/* Under the lock. What is too much for the caller stays. */
static bool take_ranking(struct tectum *t, int decoder, int64_t from, struct tectum_ranked *ranked,
                         size_t room, struct tectum_ranking *out)
{
    const struct tec_transcript_ranking *r = tec_transcript_ranking(&t->transcript, decoder, from);
    if (!r)
        return false;
    *out = (struct tectum_ranking){r->request, r->observation, r->n};
    for (int i = 0; i < r->n && (size_t)r->n <= room; i++)
        ranked[i] = (struct tectum_ranked){r->items[i].index, r->items[i].likely};
    return true;
}

enum tectum_status tectum_ranking(struct tectum *t, const char *node, int64_t from,
                                  int64_t timeout_ns, struct tectum_ranked *ranked, size_t room,
                                  struct tectum_ranking *ranking, struct tectum_error *err)
{
    struct tec_error lost;
    int d = t ? ranker_of(t, node) : -1;
    if (!t || !ranking || (room > 0 && !ranked))
        return tec_live_fail(err, TEC_INVALID,
                             "tectum_ranking: an engine, room and a ranking are "
                             "needed");
    if (d < 0)
        return tec_live_fail(err, TEC_NOT_FOUND, "tectum_ranking: there is no such score node");
    for (int64_t until = tec_live_end(timeout_ns);;) {
        uint32_t seen = atomic_load(&t->transcript.said.rings);
        pthread_mutex_lock(&t->transcript.lock);
        bool got = take_ranking(t, d, from, ranked, room, ranking);
        pthread_mutex_unlock(&t->transcript.lock);
        if (got && (size_t)ranking->n > room)
            return tec_live_fail(err, TEC_INVALID,
                                 "tectum_ranking: there are more candidates than room");
        if (got)
            return TECTUM_OK;
        if (tec_engine_failure(t->engine, &lost) != TEC_OK)
            return tec_live_convert(err, &lost);
        if (tec_clock_now(&wall) >= until)
            return tec_live_fail(err, TEC_TIME, "no ranking yet");
        tec_bell_wait(&t->transcript.said, seen, until);
    }
}
