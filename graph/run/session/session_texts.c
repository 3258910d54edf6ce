/* session_texts.c - reads the texts that a prompt is made of, for the frames' and for secondary
 * prefills.
 *
 * Runs on the session's thread. Which of them are cut where they do not fit is said here: what
 * another node made must not stop its reader, what a client gives is refused. */
#include "graph/run/session/session_texts.h"

#include "graph/load/pipeline_texts.h"
#include "graph/run/launch/text_input.h"
#include "graph/run/session/session_state.h"

#include <string.h>
#include <xxhash.h>

_Static_assert((int)TEC_MAX_TEXTS == (int)TEC_TEMPLATE_MAX_TEXTS, "a template places all texts");

void tec_texts_init(struct tec_session_texts *texts, const struct tec_session *session, int chain,
                    const struct tec_tokenizer *tokenizer)
{
    const struct tec_pipeline *p = session->options.pipeline;
    int at[TEC_MAX_TEXTS];
    *texts =
        (struct tec_session_texts){.tokenizer = tokenizer, .n = tec_pipeline_texts(p, chain, at)};
    if (p->chains[chain].prefill >= 0)
        texts->reader = p->nodes[p->chains[chain].prefill].name;
    for (int i = 0; i < texts->n; i++) {
        const struct tec_decl_input *in = &p->inputs[at[i]];
        const struct tec_robot *robot = tec_session_whose(session, at[i])->robot;
        bool prompt = strcmp(in->name, robot->prompt_input) == 0;
        texts->each[i] = (struct tec_read_text){
            .input = in,
            .initial = in->initial || !prompt ? in->initial : robot->default_prompt,
            .stream = session->options.edges && in->writer ? at[i] - p->n_inputs : -1,
            .most = 1024 + 8 * (size_t)in->max_tokens};
    }
}

size_t tec_texts_longest(const struct tec_session_texts *texts)
{
    size_t n = 1024;
    for (int i = 0; i < texts->n; i++)
        n = texts->each[i].most + (i > 0 ? n + 1 : 0);
    return n;
}

const struct tec_value *tec_texts_ids(const struct tec_session_texts *texts,
                                      const struct tec_value *values, size_t n_values)
{
    bool only = texts->n == 1 && texts->each[0].stream < 0;
    return only ? tec_text_find(values, n_values, texts->each[0].input->name, "#ids") : NULL;
}

static enum tec_status read_input(const struct tec_session_texts *texts,
                                  const struct tec_read_text *r, const struct tec_value *values,
                                  size_t n_values, struct tec_template_text *said, uint64_t *key,
                                  struct tec_error *err)
{
    const char *name = r->input->name;
    const struct tec_value *value = tec_text_find(values, n_values, name, "");
    const struct tec_value *ids = tec_text_find(values, n_values, name, "#ids");
    if (ids && texts->tokenizer && texts->n > 1)
        return tec_fail(err, TEC_INVALID, "%s: '%s' reads several texts: give it as a text",
                        ids->name, texts->reader);
    *said = (struct tec_template_text){.text = ""};
    if (value || (!ids && texts->tokenizer))
        TEC_TRY(tec_text_of(r->input, value, r->initial, r->most, "a prefill reads it", &said->text,
                            &said->n, err));
    *key = ids                         ? XXH3_64bits_withSeed(ids->data, ids->bytes, 1)
           : value || texts->tokenizer ? XXH3_64bits_withSeed(said->text, said->n, 0)
                                       : 0;
    return TEC_OK;
}

static bool read_stream(const struct tec_session_texts *texts, const struct tec_read_text *r,
                        const struct tec_session_streams *streams, struct tec_template_text *said,
                        uint64_t *key, struct tec_text_read *read)
{
    bool there = tec_streams_text(streams, r->stream, &said->text, &said->n, read);
    said->cut = true;
    if (said->n > r->most)
        said->n = tec_template_keeps(said->text, r->most, 1, 1);
    *key = texts->tokenizer ? XXH3_64bits_withSeed(said->text, said->n, 0)
                            : (uint64_t)tec_streams_number(streams, r->stream);
    return there;
}

enum tec_status tec_texts_read(const struct tec_session_texts *texts,
                               const struct tec_session_streams *streams,
                               const struct tec_value *values, size_t n_values,
                               struct tec_template_values *said, struct tec_chain_input *in,
                               bool *whole, struct tec_error *err)
{
    int n_reads = 0;
    *whole = true;
    said->n_texts = texts->n;
    for (int i = 0; i < texts->n; i++) {
        const struct tec_read_text *r = &texts->each[i];
        struct tec_template_text *text = &said->texts[i];
        uint64_t *key = &in->keys[1 + i];
        if (r->stream >= 0)
            *whole &= read_stream(texts, r, streams, text, key, &in->reads[n_reads++]);
        else
            TEC_TRY(read_input(texts, r, values, n_values, text, key, err));
    }
    tec_texts_key(in, texts->n);
    return TEC_OK;
}

void tec_texts_key(struct tec_chain_input *in, int n)
{
    in->keys[0] = n == 1 ? in->keys[1] : XXH3_64bits(in->keys + 1, (size_t)n * sizeof *in->keys);
}

enum tec_status tec_texts_stand_in(const struct tec_session_texts *texts,
                                   const struct tec_session_streams *streams,
                                   const struct tec_value *values, size_t n_values, int vocab,
                                   int first, int *ids, int n, int stood[TEC_MAX_TEXTS],
                                   struct tec_error *err)
{
    for (int i = 0; i < texts->n; i++) {
        const struct tec_read_text *r = &texts->each[i];
        const struct tec_value *v =
            r->stream < 0 ? tec_text_find(values, n_values, r->input->name, "#ids") : NULL;
        int given = 0;
        stood[i] = 0;
        if (r->stream >= 0)
            stood[i] = tec_streams_ids(streams, r->stream, vocab, ids + first, n - first);
        first += stood[i];
        if (!v)
            continue;
        TEC_TRY(tec_text_count_ids(v, &given, err));
        if (given > r->input->max_tokens)
            return tec_text_long(r->input->name, (size_t)given, r->input->max_tokens, err);
        given = given < n - first ? given : n - first;
        memcpy(ids + first, v->data, (size_t)given * sizeof *ids);
        stood[i] = given;
        first += given;
    }
    return TEC_OK;
}
