/* texts.c - edges of text within the loop: versions that requests leave, and what prefills read.
 *
 * A frame's input says which version its prompt is of; the loop only records it, since the text was
 * read when the input was made. Of a prefill that waits for a text of its frame the prompt is made
 * again when that is finished; where none can be made of it, the prompt of the observation stays,
 * which is of the text before. */
#include "graph/run/loop/texts.h"
#include "graph/run/loop/tell.h"

#include <string.h>

#include <xxhash.h>

void tec_loop_post_text(struct tec_loop *l, const struct tec_request *r, int64_t at_ns)
{
    int stream = l->o.decoders[r->decoder].stream - 1;
    const struct tec_utterance *t = &l->texts[r->text];
    if (stream < 0 || !l->o.edges)
        return;
    const struct tec_text_version version = {
        .episode = r->episode,
        .request = r->id,
        .frame = r->born_frame,
        .born_ns = r->born_ns,
        .finished_ns = at_ns,
        .n = atomic_load_explicit(&t->count, memory_order_relaxed),
        .tokens = t->tokens};
    if (!tec_text_edges_post(l->o.edges, stream, r->session, &version))
        return;
    tec_loop_tell(l, (struct tec_event){.kind = TEC_EVENT_VERSION,
                                        .what = tec_text_edges_name(l->o.edges, stream),
                                        .node = -1,
                                        .request = r->id,
                                        .tokens = version.n,
                                        .t_ns = at_ns});
}

unsigned tec_loop_news(struct tec_text_given *given, const struct tec_chain_input *input,
                       int64_t episode)
{
    bool first = !given->seen || given->episode != episode;
    unsigned news = 0;
    for (int i = 0; i <= TEC_MAX_TEXTS; i++)
        news |= first || given->keys[i] != input->keys[i] ? 1U << i : 0U;
    given->seen = true;
    given->episode = episode;
    memcpy(given->keys, input->keys, sizeof given->keys);
    return news;
}

static void tell_read(struct tec_loop *l, int node, const struct tec_text_read *read)
{
    struct tec_frame_record *record = &l->record;
    if (record->n_reads == TEC_MAX_READS)
        return;
    bool text = read->request >= 0;
    struct tec_read_record *r = &record->reads[record->n_reads++];
    *r = (struct tec_read_record){.node = tec_loop_node_name(l, node),
                                  .stream = tec_text_edges_name(l->o.edges, read->stream - 1),
                                  .request = read->request,
                                  .frame = text ? read->frame : -1,
                                  .age_us = text ? (record->start_ns - read->born_ns) / 1000 : -1};
    tec_loop_tell(l, (struct tec_event){.kind = TEC_EVENT_READ,
                                        .what = r->stream,
                                        .node = node,
                                        .request = r->request,
                                        .frames = text ? (int)(record->frame - r->frame) : 0,
                                        .t_ns = tec_loop_now(l),
                                        .since_ns = text ? read->born_ns : 0});
}

static void tell_unread(struct tec_loop *l, const struct tec_unread *unread)
{
    int d = 0;
    if (!tec_text_edges_unread(l->o.edges, unread->stream, l->tick->session, unread->request))
        return;
    while (d < l->o.n_decoders - 1 && l->o.decoders[d].stream != unread->stream + 1)
        d++;
    tec_loop_tell(l, (struct tec_event){.kind = TEC_EVENT_UNREAD,
                                        .what = tec_text_edges_name(l->o.edges, unread->stream),
                                        .from = unread->why,
                                        .node = l->o.decoders[d].node,
                                        .request = unread->request,
                                        .t_ns = tec_loop_now(l)});
}

void tec_loop_tell_unread(struct tec_loop *l)
{
    if (l->input && l->input->unread.why)
        tell_unread(l, &l->input->unread);
}

void tec_loop_tell_reads(struct tec_loop *l, const struct tec_chain *c,
                         const struct tec_text_read *reads)
{
    for (int i = 0; l->o.edges && i < TEC_MAX_TEXTS && reads[i].stream; i++)
        tell_read(l, c->prefill_node, &reads[i]);
}

void tec_loop_read_text(struct tec_loop *l, const struct tec_chain *c)
{
    if (l->input)
        tec_loop_tell_reads(l, c, tec_chain_input(l, c, l->input)->reads);
}

/* By its tokens, as a text of an observation has a key by its bytes. */
static void set_key(uint64_t keys[1 + TEC_MAX_TEXTS], int text, const struct tec_text_version *v)
{
    keys[1 + text] = XXH3_64bits(v->tokens, (size_t)v->n * sizeof *v->tokens);
    keys[0] = XXH3_64bits(keys + 1, TEC_MAX_TEXTS * sizeof *keys);
}

/* The newest text that a chain waits for in its frame. */
static const struct tec_text_version *heard(const struct tec_loop *l, const struct tec_chain *c)
{
    return tec_text_edges_last(l->o.edges, c->o->hears - 1, l->tick->session, l->input->episode);
}

uint64_t tec_loop_key(const struct tec_loop *l, const struct tec_chain *c)
{
    const struct tec_text_version *v = c->late && l->o.edges ? heard(l, c) : NULL;
    uint64_t keys[1 + TEC_MAX_TEXTS];
    memcpy(keys, l->input->chains[tec_chain_index(l, c)].keys, sizeof keys);
    if (v)
        set_key(keys, c->o->hears_at, v);
    return keys[c->o->on_text];
}

const struct tec_chain_input *tec_loop_hear(struct tec_loop *l, struct tec_chain *c)
{
    if (!c->late || !l->o.edges)
        return NULL;
    const struct tec_chain_input *in = &l->input->chains[tec_chain_index(l, c)];
    const struct tec_text_version *v = heard(l, c);
    struct tec_late_input *late = &c->late[tec_own_session(l)];
    int at = 0;
    while (at < TEC_MAX_TEXTS - 1 && in->reads[at].stream != c->o->hears)
        at++;
    struct tec_text_read *read = &late->in.reads[at];
    bool newer = v && (v->request != in->reads[at].request || v->born_ns != in->reads[at].born_ns);
    struct tec_error err;
    int n = !newer           ? 0
            : in->maker.make ? in->maker.make(in->maker.self, v->tokens, v->n, &err)
                             : in->prefix.n_text;
    if (newer && n < 1 && in->maker.make)
        tell_unread(l, &(struct tec_unread){err.message, c->o->hears - 1, v->request});
    *late = (struct tec_late_input){.opened = l->n_opened, .in = *in};
    if (v)
        set_key(late->in.keys, c->o->hears_at, v);
    if (n > 0) {
        late->in.prefix.n_text = n;
        read->request = v->request;
        read->frame = v->frame;
        read->born_ns = v->born_ns;
    }
    tec_loop_read_text(l, c);
    return &late->in;
}
