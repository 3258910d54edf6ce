/* tectum_text.c - the public interface: what requests say, piece by piece. */
#include "base/clock.h"
#include "tools/api/live.h"

#include <stdio.h>
#include <string.h>

_Static_assert(sizeof((struct tectum_piece *)NULL)->text > TEC_DETOKENIZER_BYTES, "a token fits");

static const struct tec_clock wall = {NULL};

static struct tec_live_text *text_of(struct tectum *t, int64_t request, int decoder)
{
    const struct tec_tokenizer *tokenizer = tec_engine_tokenizer(t->engine, decoder);
    struct tec_live_text *oldest = &t->texts[0];
    for (int i = 0; i < t->n_texts; i++) {
        if (t->texts[i].request == request)
            return &t->texts[i];
        if (t->texts[i].request < oldest->request)
            oldest = &t->texts[i];
    }
    oldest->request = request;
    if (tokenizer)
        tec_detokenizer_init(&oldest->decoder, tokenizer, true);
    return oldest;
}

/* The decode node of that index among the pipeline's. */
static const char *node_name(const struct tectum *t, int decoder)
{
    const struct tec_topology *topology = &t->engine->topology;
    for (int i = 0; i < topology->n_nodes; i++)
        if (tec_topology_decodes(topology, i) && decoder-- == 0)
            return topology->nodes[i].name;
    return "";
}

static void make_piece(struct tectum *t, const struct tec_live_event *e, struct tectum_piece *piece)
{
    struct tec_live_text *text = text_of(t, e->request, e->decoder);
    size_t room = sizeof piece->text - 1, n = 0;
    *piece = (struct tectum_piece){
        .request = e->request, .observation = e->observation, .token = e->token};
    snprintf(piece->node, sizeof piece->node, "%s", node_name(t, e->decoder));
    if (tec_engine_tokenizer(t->engine, e->decoder))
        n = e->reason ? tec_detokenizer_flush(&text->decoder, piece->text, room)
                      : tec_detokenizer_push(&text->decoder, e->token, piece->text, room);
    piece->bytes = n <= room ? n : 0;
    if (!e->reason)
        return;
    piece->truncated = e->lost;
    snprintf(piece->reason, sizeof piece->reason, "%s", e->reason);
    text->request = -1;
}

enum tectum_status tectum_read(struct tectum *t, int64_t timeout_ns, struct tectum_piece *piece,
                               struct tectum_error *err)
{
    struct tec_error lost;
    if (!t || !piece)
        return tec_live_fail(err, TEC_INVALID, "tectum_read: an engine and a piece are needed");
    for (int64_t until = tec_live_end(timeout_ns);;) {
        struct tec_live_event event;
        uint32_t seen = atomic_load(&t->said.rings);
        pthread_mutex_lock(&t->text_lock);
        bool got = tec_spsc_pop(&t->events, &event);
        if (got)
            make_piece(t, &event, piece);
        pthread_mutex_unlock(&t->text_lock);
        if (got)
            return TECTUM_OK;
        if (tec_engine_failure(t->engine, &lost) != TEC_OK)
            return tec_live_convert(err, &lost);
        if (tec_clock_now(&wall) >= until)
            return tec_live_fail(err, TEC_TIME, "no text yet");
        tec_bell_wait(&t->said, seen, until);
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

/* Under the lock. What is too much for the caller stays. */
static bool take_ranking(struct tec_live_rankings *r, int64_t from, struct tectum_ranked *ranked,
                         size_t room, struct tectum_ranking *out)
{
    if (tec_triple_take(&r->box))
        r->taken = r->places[r->box.reading].request;
    const struct tec_live_ranking *place = &r->places[r->box.reading];
    if (r->taken < 0 || r->taken < from)
        return false;
    *out = (struct tectum_ranking){place->request, place->observation, place->n};
    for (int i = 0; i < place->n && (size_t)place->n <= room; i++)
        ranked[i] = (struct tectum_ranked){place->items[i].index, place->items[i].likely};
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
        uint32_t seen = atomic_load(&t->said.rings);
        pthread_mutex_lock(&t->text_lock);
        bool got = take_ranking(&t->rankings[d], from, ranked, room, ranking);
        pthread_mutex_unlock(&t->text_lock);
        if (got && (size_t)ranking->n > room)
            return tec_live_fail(err, TEC_INVALID,
                                 "tectum_ranking: there are more candidates than room");
        if (got)
            return TECTUM_OK;
        if (tec_engine_failure(t->engine, &lost) != TEC_OK)
            return tec_live_convert(err, &lost);
        if (tec_clock_now(&wall) >= until)
            return tec_live_fail(err, TEC_TIME, "no ranking yet");
        tec_bell_wait(&t->said, seen, until);
    }
}
