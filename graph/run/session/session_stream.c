/* session_stream.c - turns the newest finished text of a stream into bytes for a prompt.
 *
 * Runs on the session's thread. A text is decoded once, with the tokenizer of the model that said
 * it; the reader's template and tokenizer make the prompt of it, as of any text. */
#include "graph/run/session/session_stream.h"
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
    int at = p->chains[chain].prefill, writer = p->inputs[p->n_inputs + stream].writer - 1;
    return at >= 0 && tec_pipeline_reads_text(p, &p->nodes[at], &p->nodes[writer]);
}

static enum tec_status check_tokenizers(const struct tec_session_options *o,
                                        const struct tec_stream_reader *r, int stream,
                                        struct tec_error *err)
{
    const struct tec_pipeline *p = o->pipeline;
    for (int m = 0; m < p->n_chains && !r->tokenizer; m++)
        if (read_by(p, stream, m) && tokenizer_of(o, m))
            return tec_where_fail(err, TEC_NOT_FOUND, &r->input->where,
                                  "stream '%s' cannot be read: model '%s' has no tokenizer",
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
        r->text_before = TEC_NEW(arena, r->tokenizer ? r->room : 1, char);
        if (!r->text || !r->text_before)
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

static void swap(struct tec_stream_reader *r)
{
    struct tec_text_version of = r->of;
    char *text = r->text;
    size_t bytes = r->bytes;
    r->of = r->before;
    r->text = r->text_before;
    r->bytes = r->bytes_before;
    r->before = of;
    r->text_before = text;
    r->bytes_before = bytes;
}

static enum tec_status decode(struct tec_stream_reader *r, const struct tec_text_version *v,
                              struct tec_arena *scratch, struct tec_error *err)
{
    char *text = NULL;
    size_t bytes = 0;
    TEC_TRY(tec_context(err,
                        tec_tokenizer_decode(r->tokenizer, v->tokens, (size_t)v->n, true, scratch,
                                             &text, &bytes, err),
                        "%s", r->input->name));
    if (!r->fresh) { /* else it was never a prompt's */
        swap(r);
        r->before.n = 0; /* of a text before there are only bytes */
    }
    r->of = *v;
    r->bytes = bytes < r->room ? bytes : r->room;
    memcpy(r->text, text, r->bytes);
    r->fresh = true;
    r->refused = 0;
    return TEC_OK;
}

/* The text that is there, if it is of the episode. */
static const struct tec_text_version *there(const struct tec_stream_reader *r, int64_t episode)
{
    return r->of.number > 0 && r->of.episode == episode ? &r->of : NULL;
}

enum tec_status tec_streams_take(struct tec_session_streams *streams, struct tec_text_edges *edges,
                                 int session, int64_t episode, struct tec_arena *scratch,
                                 struct tec_error *err)
{
    for (int i = 0; i < streams->n && !streams->trying; i++) {
        struct tec_stream_reader *r = &streams->readers[i];
        const struct tec_text_version *v = tec_text_edges_newest(edges, i, session, episode);
        if (v && r->tokenizer && v->number != r->of.number && v->number != r->refused) {
            struct tec_arena_mark mark = tec_arena_mark(scratch);
            enum tec_status status = decode(r, v, scratch, err);
            tec_arena_rewind(scratch, mark);
            TEC_TRY(status);
        }
        if (v && v->number == r->of.number)
            r->of = *v;
        else
            r->of.n = 0;
        r->version = r->tokenizer ? there(r, episode) : v;
    }
    return TEC_OK;
}

bool tec_streams_turn_back(struct tec_session_streams *streams, int stream, int64_t episode)
{
    bool any = false;
    streams->trying = false;
    for (int i = 0; i < streams->n; i++) {
        struct tec_stream_reader *r = &streams->readers[i];
        if (r->fresh && (i == stream || stream < 0)) {
            r->turned = !r->turned;
            swap(r);
            r->version = there(r, episode);
            any = true;
        }
        streams->trying |= r->turned;
    }
    return any;
}

void tec_streams_refuse(const struct tec_stream_reader *r, enum tec_status status,
                        struct tec_error *err)
{
    tec_where_context(err, status, &r->input->where,
                      "no prompt is made of the text of '%s', the one before stays",
                      r->input->name);
}

int tec_streams_settle(struct tec_session_streams *streams)
{
    int first = -1;
    for (int i = 0; i < streams->n; i++) {
        struct tec_stream_reader *r = &streams->readers[i];
        if (r->turned && first < 0) {
            first = i;
            r->refused = r->before.number;
        }
        r->fresh = r->turned = false;
    }
    streams->trying = false;
    return first;
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
