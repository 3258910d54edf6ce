/* engine_sessions.c - the sessions of an engine: one for each chain that is in frames, joined.
 *
 * Runs at load. An action's robot is that of its chain's session; with several, buffers that are
 * for any of them have room for the largest. */
#include "graph/load/pipeline_texts.h"
#include "graph/run/engine/engine_own.h"

#include <string.h>

/* The first chain in frames of a robot. */
static int first_of(const struct tec_pipeline *p, int robot)
{
    for (int i = 0; i < p->n_chains; i++)
        if (p->chains[i].in_frames && p->chains[i].robot == robot)
            return i;
    return 0;
}

/* The chain in frames whose session makes the prompts of another chain: the first of its robot. Of
 * several robots it is the last of these, as it observes when the others have. */
static int reader_of(const struct tec_pipeline *p, int chain)
{
    int last = 0;
    for (int r = 0; r < TEC_MAX_ROBOTS; r++)
        if ((p->chains[chain].robots >> r & 1U) && first_of(p, r) > last)
            last = first_of(p, r);
    return last;
}

static struct tec_session_options session_options(const struct tec_engine *e, int chain, int index)
{
    int robot = e->options.pipeline->chains[chain].robot;
    const struct tec_engine_options *o = &e->options;
    const struct tec_engine_chain *c = &e->chains[chain];
    struct tec_session_options s = {.pipeline = o->pipeline,
                                    .chain = chain,
                                    .model = c->of->model,
                                    .checkpoint = c->of->checkpoint,
                                    .edges = e->edges,
                                    .tokenizer = c->of->tokenizer,
                                    .memory = c->memory,
                                    .root = o->root,
                                    .max_text = c->spec.text_tokens,
                                    .max_pictures = c->pictures,
                                    .seed = o->seed,
                                    .index = index,
                                    .actions = o->actions,
                                    .full = !o->size || strcmp(o->size, "full") == 0,
                                    .found = index ? NULL : o->found,
                                    .again = index > 0 || first_of(o->pipeline, robot) != chain,
                                    .joined = e->sessions[index]};
    for (int i = 0; i < e->n_chains; i++)
        if (i != chain)
            s.secondary[s.n_secondary++] = (struct tec_session_model){
                .chain = i,
                .reads = !o->pipeline->chains[i].in_frames && reader_of(o->pipeline, i) == chain,
                .model = e->chains[i].of->model,
                .tokenizer = e->chains[i].of->tokenizer,
                .max_text = e->chains[i].spec.text_tokens,
                .follows = 1 + tec_pipeline_follows(o->pipeline, i),
                .memory = e->chains[i].memory};
    return s;
}

/* One for each chain that is in frames. */
static enum tec_status open_session(struct tec_engine *e, int index, struct tec_error *err)
{
    struct tec_session **first = &e->sessions[index];
    for (int i = 0; i < e->n_chains; i++) {
        const struct tec_session_options o = session_options(e, i, index);
        struct tec_session *session = NULL;
        if (!e->options.pipeline->chains[i].in_frames)
            continue;
        TEC_TRY(tec_session_create(&session, &o, e->heap, err));
        if (!*first)
            *first = session;
        else
            TEC_TRY(tec_session_join(*first, session, err));
    }
    return TEC_OK;
}

/* Tokens of the longest text that a node leaves: of a ranking the longest candidate. */
static int longest_text(const struct tec_engine *e, const struct tec_decl_node *n)
{
    const struct tec_choice *choice = tec_choices_of(&e->chains[n->chain].choices, n);
    int most = n->max_tokens;
    for (int i = 0; choice && i < choice->tree.n_texts; i++)
        most = choice->tree.texts[i].n > most ? choice->tree.texts[i].n : most;
    return most;
}

enum tec_status tec_engine_make_edges(struct tec_engine *e, int sessions, struct tec_error *err)
{
    const struct tec_pipeline *p = e->options.pipeline;
    int *tokens = TEC_NEW(&e->arena, (size_t)p->n_streams + 1, int);
    if (p->n_streams == 0 || e->edges)
        return TEC_OK;
    if (!tokens)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for streams of text");
    for (int i = 0; i < p->n_streams; i++)
        tokens[i] = longest_text(e, &p->nodes[p->inputs[p->n_inputs + i].writer - 1]);
    return tec_text_edges_create(&e->edges, p, tokens, sessions, &e->arena, err);
}

/* Robots of one kind draw the same noise, each as if it were alone. */
enum tec_status tec_engine_open_sessions(struct tec_engine *e, struct tec_error *err)
{
    e->n_sessions = e->options.pipeline->frame.sessions;
    TEC_TRY(tec_engine_make_edges(e, e->n_sessions, err));
    for (int i = 0; i < e->n_sessions; i++) {
        TEC_TRY(open_session(e, i, err));
        e->session = e->sessions[0];
    }
    return TEC_OK;
}

static int chain_of(const struct tec_engine *e, int action)
{
    const struct tec_decl_node *n = tec_pipeline_action(e->options.pipeline, action);
    return n && n->chain >= 0 ? n->chain : 0;
}

struct tec_session *tec_engine_session_at(const struct tec_engine *e, int i, int action)
{
    struct tec_session *s = tec_session_of(e->sessions[i], chain_of(e, action));
    return s ? s : e->sessions[i];
}

struct tec_session *tec_engine_session(const struct tec_engine *e, int action)
{
    return tec_engine_session_at(e, 0, action);
}

const struct tec_flow *tec_engine_flow(const struct tec_engine *e, int action)
{
    return &e->chains[chain_of(e, action)].of->model->flow;
}

size_t tec_engine_chunk(const struct tec_engine *e, int action)
{
    const struct tec_flow *f = tec_engine_flow(e, action);
    return (size_t)f->horizon * (size_t)f->dim;
}

struct tec_action_room tec_engine_room(const struct tec_engine *e)
{
    struct tec_action_room most = {.chunk = tec_engine_chunk(e, 0),
                                   .rows = tec_session_rows(e->session),
                                   .columns = tec_session_columns(e->session)};
    for (int i = 1; i < TEC_MAX_ACTIONS && tec_pipeline_action(e->options.pipeline, i); i++) {
        const struct tec_session *s = tec_engine_session(e, i);
        size_t chunk = tec_engine_chunk(e, i);
        int rows = tec_session_rows(s), columns = tec_session_columns(s);
        most.chunk = chunk > most.chunk ? chunk : most.chunk;
        most.rows = rows > most.rows ? rows : most.rows;
        most.columns = columns > most.columns ? columns : most.columns;
    }
    return most;
}
