/* memory_said.c - what was said becomes segments: a finished text waits for the next observation,
 * and is put before that one's changes.
 *
 * The frame thread leaves token ids in a triple buffer for each remember node: a text that nobody
 * has taken yet is replaced by a newer one. A consumer takes them under the memory's lock, with
 * tec_memory_apply; so a prompt has what was said in the frames before it, and a run on one thread
 * gives the same prompts every time. Keys and values of the segment are computed as any other's,
 * when a frame leaves time. A text that no segment can hold is trouble, and no failure of the
 * observation: the older text stays. */
#include "graph/run/recall/memory_own.h"

#include <stdio.h>
#include <string.h>

enum { ID_BYTES = 12 }; /* of a token's number, where there is no tokenizer */

static bool remembers(const struct tec_memory *m, const struct tec_decl_node *n)
{
    return n->kind == TEC_DECL_REMEMBER && !n->culled && n->memory.index == m->node->from.index;
}

enum tec_status tec_memory_make_said(struct tec_memory *m, struct tec_error *err)
{
    const struct tec_pipeline *p = m->options.pipeline;
    m->said_room = m->input->tokens_each;
    m->said = TEC_NEW(&m->arena, (size_t)p->n_nodes + 1, struct tec_memory_said);
    for (int i = 0; m->said && i < p->n_nodes; i++) {
        if (!remembers(m, &p->nodes[i]))
            continue;
        struct tec_memory_said *s = &m->said[m->n_said++];
        s->node = &p->nodes[i];
        tec_triple_init(&s->triple);
        for (int k = 0; k < TEC_TRIPLE_PLACES; k++) {
            s->place[k].ids = TEC_NEW(&m->arena, (size_t)m->said_room, int);
            if (!s->place[k].ids)
                return tec_fail(err, TEC_NO_MEMORY, "no memory for what '%s' reads", s->node->name);
        }
    }
    return m->said ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for what is said");
}

void tec_memory_said(struct tec_memory *m, int node, const struct tec_tokenizer *tokenizer,
                     const int *ids, int n)
{
    struct tec_memory_said *s = m->said;
    while (s < m->said + m->n_said && s->node != &m->options.pipeline->nodes[node])
        s++;
    if (s == m->said + m->n_said)
        return;
    struct tec_said_text *text = &s->place[s->triple.writing];
    text->n = n;
    text->tokenizer = tokenizer;
    memcpy(text->ids, ids, (size_t)(n < m->said_room ? n : m->said_room) * sizeof *ids);
    tec_triple_post(&s->triple);
}

/* Without a tokenizer a token is the word that its number is. */
static enum tec_status read_text(struct tec_memory *m, const struct tec_said_text *said,
                                 char **text, size_t *bytes, struct tec_error *err)
{
    *bytes = 0;
    if (said->n > m->said_room)
        return tec_fail(err, TEC_INVALID, "it has %d tokens, a segment at most %d", said->n,
                        m->said_room);
    if (said->tokenizer)
        return tec_tokenizer_decode(said->tokenizer, said->ids, (size_t)said->n, true, &m->scratch,
                                    text, bytes, err);
    size_t room = (size_t)said->n * ID_BYTES + 1;
    *text = TEC_NEW(&m->scratch, room, char);
    if (!*text)
        return tec_fail(err, TEC_NO_MEMORY, "no memory to read it");
    for (int i = 0; i < said->n; i++)
        *bytes += (size_t)snprintf(*text + *bytes, room - *bytes, "%d ", said->ids[i]);
    return TEC_OK;
}

/* A text without a character says nothing: what was said before it stays. */
static enum tec_status put(struct tec_memory *m, const struct tec_memory_said *s, bool *done,
                           struct tec_error *err)
{
    struct tec_groups_change change;
    char *text = NULL;
    size_t bytes = 0, tokens = 0, most = (size_t)m->input->tokens_each;
    uint32_t segment;
    TEC_TRY(read_text(m, &s->place[s->triple.reading], &text, &bytes, err));
    if (bytes == 0)
        return TEC_OK;
    if (bytes > m->segment_bytes)
        return tec_fail(err, TEC_INVALID, "it has %zu bytes, a segment at most %zu", bytes,
                        m->segment_bytes);
    TEC_TRY(tec_memory_encode(m, text, bytes, m->ids, most, &tokens, err));
    if (tokens < 1 || tokens > most)
        return tec_fail(err, TEC_INVALID, "it has %zu tokens, a segment 1 to %zu", tokens, most);
    TEC_TRY(tec_memory_embed(m, text, bytes, err));
    *done = true;
    return tec_store_put(m->store, tec_pipeline_key(s->node), text, bytes, (uint32_t)tokens,
                         m->embedding, &segment, &change, err);
}

int tec_memory_take_said(struct tec_memory *m, struct tec_error *why)
{
    int taken = 0;
    for (int i = 0; i < m->n_said; i++) {
        struct tec_memory_said *s = &m->said[i];
        struct tec_error err = {TEC_OK, ""};
        bool done = false;
        if (!tec_triple_take(&s->triple))
            continue;
        struct tec_arena_mark mark = tec_arena_mark(&m->scratch);
        enum tec_status status = put(m, s, &done, &err);
        tec_arena_rewind(&m->scratch, mark);
        taken += done;
        if (status != TEC_OK)
            tec_fail(why, status, "'%s' does not remember: %.400s", s->node->name, err.message);
    }
    return taken;
}
