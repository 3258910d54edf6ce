/* text_edges.c - keeps finished texts for the prefills that read them: a triple buffer a stream and
 * session, so that neither the frame thread nor a session ever waits. */
#include "graph/run/launch/text_edges.h"

#include "base/triple.h"

#include <string.h>

/* `last` and `unread` are the writer's, `places[triple.reading]` the reader's. */
struct edge {
    struct tec_triple triple;
    struct tec_text_version last, places[TEC_TRIPLE_PLACES];
    int64_t unread; /* 1 + the request of which was told last that no prompt can be made */
};

struct tec_text_edges {
    const struct tec_pipeline *pipeline;
    int streams, sessions;
    int *room; /* [streams] tokens */
    struct edge *edges;
};

static struct edge *edge_of(struct tec_text_edges *e, int stream, int session)
{
    int at = session >= 0 && session < e->sessions ? session : 0;
    return &e->edges[stream * e->sessions + at];
}

static bool give_room(struct edge *edge, int tokens, struct tec_arena *arena)
{
    bool all = true;
    tec_triple_init(&edge->triple);
    edge->last.request = -1;
    for (int i = 0; i < TEC_TRIPLE_PLACES; i++) {
        edge->places[i].tokens = TEC_NEW(arena, (size_t)tokens + 1, int);
        all = all && edge->places[i].tokens;
    }
    return all;
}

enum tec_status tec_text_edges_create(struct tec_text_edges **out,
                                      const struct tec_pipeline *pipeline, const int *tokens,
                                      int sessions, struct tec_arena *arena, struct tec_error *err)
{
    struct tec_text_edges *e = TEC_NEW(arena, 1, struct tec_text_edges);
    size_t n = (size_t)pipeline->n_streams * (size_t)sessions;
    int *room = TEC_NEW(arena, (size_t)pipeline->n_streams + 1, int);
    struct edge *edges = TEC_NEW(arena, n + 1, struct edge);
    if (!e || !room || !edges)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for streams of text");
    *e = (struct tec_text_edges){pipeline, pipeline->n_streams, sessions, room, edges};
    for (int s = 0; s < e->streams; s++) {
        room[s] = tokens[s];
        for (int i = 0; i < sessions; i++)
            if (!give_room(edge_of(e, s, i), tokens[s], arena))
                return tec_fail(err, TEC_NO_MEMORY, "stream '%s': no memory for its text",
                                tec_text_edges_name(e, s));
    }
    *out = e;
    return TEC_OK;
}

const char *tec_text_edges_name(const struct tec_text_edges *e, int stream)
{
    return e->pipeline->inputs[e->pipeline->n_inputs + stream].name;
}

int tec_text_edges_room(const struct tec_text_edges *e, int stream)
{
    return e->room[stream];
}

bool tec_text_edges_post(struct tec_text_edges *e, int stream, int session,
                         const struct tec_text_version *version)
{
    struct edge *edge = edge_of(e, stream, session);
    const struct tec_text_version *last = &edge->last;
    if (version->episode < last->episode ||
        (version->episode == last->episode && version->request < last->request))
        return false;
    struct tec_text_version *place = &edge->places[edge->triple.writing];
    int *tokens = place->tokens;
    *place = *version;
    place->tokens = tokens;
    place->n = version->n < e->room[stream] ? version->n : e->room[stream];
    place->number = last->number + 1;
    memcpy(tokens, version->tokens, (size_t)place->n * sizeof *tokens);
    edge->last = *place;
    tec_triple_post(&edge->triple);
    return true;
}

const struct tec_text_version *tec_text_edges_last(const struct tec_text_edges *e, int stream,
                                                   int session, int64_t episode)
{
    int at = session >= 0 && session < e->sessions ? session : 0;
    const struct tec_text_version *last = &e->edges[stream * e->sessions + at].last;
    return last->request >= 0 && last->episode == episode ? last : NULL;
}

bool tec_text_edges_unread(struct tec_text_edges *e, int stream, int session, int64_t request)
{
    struct edge *edge = edge_of(e, stream, session);
    bool told = edge->unread == request + 1;
    edge->unread = request + 1;
    return !told;
}

void tec_text_edges_restart(struct tec_text_edges *e)
{
    for (int i = 0; i < e->streams * e->sessions; i++) {
        e->edges[i].last.request = -1;
        e->edges[i].unread = 0;
    }
}

const struct tec_text_version *tec_text_edges_newest(struct tec_text_edges *e, int stream,
                                                     int session, int64_t episode)
{
    struct edge *edge = edge_of(e, stream, session);
    tec_triple_take(&edge->triple);
    const struct tec_text_version *newest = &edge->places[edge->triple.reading];
    return newest->number > 0 && newest->episode == episode ? newest : NULL;
}
