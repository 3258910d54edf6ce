/* session_stream.c - turns the newest finished text of a stream into bytes for a prompt.
 *
 * Runs on the session's thread. A text is decoded once, with the tokenizer of the model that said
 * it; the reader's template and tokenizer make the prompt of it, as of any text. */
#include "graph/run/session_stream.h"
#include "graph/load/pipeline_texts.h"

#include <string.h>

enum { BYTES_A_TOKEN = 64 };

/* The tokenizer of a chain's model. */
static const struct tec_tokenizer *tokenizer_of(const struct tec_session_options *o, int chain)
{
    for (int i = 0; i < o->n_secondary; i++)
        if (o->secondary[i].chain == chain)
            return o->secondary[i].tokenizer;
    return o->tokenizer;
}

static bool read_by(const struct tec_pipeline *p, int stream, int chain)
{
    int at[TEC_MAX_TEXTS], n = tec_pipeline_texts(p, chain, at);
    for (int i = 0; i < n; i++)
        if (at[i] == p->n_inputs + stream)
            return true;
    return false;
}

static enum tec_status check_tokenizers(const struct tec_session_options *o,
                                        const struct tec_stream_reader *r, int stream,
                                        struct tec_error *err)
{
    const struct tec_pipeline *p = o->pipeline;
    for (int m = 0; m < p->n_chains && !r->tokenizer; m++)
        if (read_by(p, stream, m) && tokenizer_of(o, m))
            return tec_fail(err, TEC_NOT_FOUND,
                            "%s:%d: stream '%s' cannot be read: model '%s' has no tokenizer",
                            r->input->where.file ? r->input->where.file : "?", r->input->where.line,
                            r->input->name,
                            p->models[p->nodes[r->input->writer - 1].model.index].name);
    return TEC_OK;
}

enum tec_status tec_streams_init(struct tec_session_streams *streams,
                                 const struct tec_session_options *o, struct tec_arena *arena,
                                 struct tec_error *err)
{
    const struct tec_pipeline *p = o->pipeline;
    streams->n = o->edges ? p->n_streams : 0;
    streams->readers = TEC_NEW(arena, (size_t)streams->n + 1, struct tec_stream_reader);
    if (!streams->readers)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for streams of text");
    for (int i = 0; i < streams->n; i++) {
        struct tec_stream_reader *r = &streams->readers[i];
        r->input = &p->inputs[p->n_inputs + i];
        r->tokenizer = tokenizer_of(o, p->nodes[r->input->writer - 1].chain);
        TEC_TRY(check_tokenizers(o, r, i, err));
        r->room = ((size_t)tec_text_edges_room(o->edges, i) + 1) * BYTES_A_TOKEN;
        r->text = TEC_NEW(arena, r->room, char);
        if (!r->text)
            return tec_fail(err, TEC_NO_MEMORY, "%s: no memory", r->input->name);
    }
    return TEC_OK;
}

size_t tec_streams_scratch(const struct tec_session_streams *streams)
{
    size_t most = 0;
    for (int i = 0; i < streams->n; i++)
        if (streams->readers[i].room > most)
            most = streams->readers[i].room;
    return most;
}

static enum tec_status decode(struct tec_stream_reader *r, struct tec_arena *scratch,
                              struct tec_error *err)
{
    const struct tec_text_version *v = r->version;
    char *text = NULL;
    size_t bytes = 0;
    TEC_TRY(tec_context(err,
                        tec_tokenizer_decode(r->tokenizer, v->tokens, (size_t)v->n, true, scratch,
                                             &text, &bytes, err),
                        "%s", r->input->name));
    r->bytes = bytes < r->room ? bytes : r->room;
    memcpy(r->text, text, r->bytes);
    return TEC_OK;
}

enum tec_status tec_streams_take(struct tec_session_streams *streams, struct tec_text_edges *edges,
                                 int session, int64_t episode, struct tec_arena *scratch,
                                 struct tec_error *err)
{
    for (int i = 0; i < streams->n; i++) {
        struct tec_stream_reader *r = &streams->readers[i];
        r->version = tec_text_edges_newest(edges, i, session, episode);
        if (!r->version || !r->tokenizer || r->version->number == r->number)
            continue;
        struct tec_arena_mark mark = tec_arena_mark(scratch);
        enum tec_status status = decode(r, scratch, err);
        tec_arena_rewind(scratch, mark);
        TEC_TRY(status);
        r->number = r->version->number;
    }
    return TEC_OK;
}

bool tec_streams_text(const struct tec_session_streams *streams, int stream, const char **text,
                      size_t *bytes, struct tec_text_read *read)
{
    const struct tec_stream_reader *r = &streams->readers[stream];
    const char *initial = r->input->initial ? r->input->initial : "";
    *read = (struct tec_text_read){.stream = 1 + stream, .request = -1};
    *text = r->version ? r->text : initial;
    *bytes = r->version ? r->bytes : strlen(initial);
    if (!r->version)
        return r->input->initial != NULL;
    read->request = r->version->request;
    read->frame = r->version->frame;
    read->born_ns = r->version->born_ns;
    return true;
}

int tec_streams_ids(const struct tec_session_streams *streams, int stream, int vocab, int *ids,
                    int n)
{
    const struct tec_text_version *v = streams->readers[stream].version;
    int i = 0;
    for (; v && i < v->n && i < n; i++)
        ids[i] = v->tokens[i] % vocab;
    return i;
}

int64_t tec_streams_number(const struct tec_session_streams *streams, int stream)
{
    const struct tec_text_version *v = streams->readers[stream].version;
    return v ? v->number : 0;
}
