/* session_prompt.c - the prompt of an observation: what a robot's text, texts and streams make of
 * it, and what it is when its text was made in the frame.
 *
 * Runs on the session's thread, tec_session_hear on the frame's. */
#include "graph/load/pipeline_texts.h"
#include "graph/run/launch/launch.h"
#include "graph/run/launch/text_input.h"
#include "graph/run/session/session_robot.h"
#include "graph/run/session/session_state.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

/* What the frames' prefill reads. Of a prompt whose last ids stay there are as many before the cut
 * as all bytes of its texts and of its template. */
enum tec_status tec_session_init_prompt(struct tec_session *s, struct tec_error *err)
{
    const struct tec_session_options *o = &s->options;
    const struct tec_robot *robot = s->robot;
    struct tec_chain_prompt *p = &s->prompt;
    struct tec_template *t = NULL;
    bool reads = tec_model_reads(o->model), fewer = robot->max_tokens > 0;
    fewer = fewer && robot->max_tokens < o->max_text;
    if (reads)
        TEC_TRY(tec_session_find_template(&t, o, robot, &s->arena, err));
    *p = (struct tec_chain_prompt){.model = o->model,
                                   .tokenizer = o->tokenizer,
                                   .template = t,
                                   .streams = &s->streams,
                                   .memory = o->memory,
                                   .session = o->index,
                                   .most = fewer ? robot->max_tokens : o->max_text,
                                   .allows = fewer ? "robot" : "pipeline",
                                   .frame = o->max_text,
                                   .leads = !o->memory,
                                   .always = true,
                                   .cut = robot->truncate,
                                   .keep_last = robot->keep_last};
    tec_texts_init(&p->texts, s, o->chain, o->tokenizer);
    s->composes = reads && (p->texts.n != 1 || p->texts.each[0].stream >= 0);
    s->hears = s->composes && o->edges ? 1 + tec_pipeline_heard(o->pipeline, o->chain) : 0;
    if (s->hears)
        p->waits = tec_text_edges_room(o->edges, p->texts.each[s->hears - 1].stream);
    s->text_max = 1024 + 8 * o->max_text;
    if (s->composes && tec_texts_longest(&p->texts) > (size_t)s->text_max)
        s->text_max = (int)tec_texts_longest(&p->texts);
    p->longest = (size_t)s->text_max; /* of rings that share forwards one may have longer texts */
    p->room = s->text_max + 64;
    for (int i = 0; t && i < t->n_calls; i++)
        p->room += (int)strlen(t->calls[i].text);
    p->room = p->keep_last ? p->room : 0;
    return tec_session_prompt_init(p, &s->arena, err);
}

static int count_pictures(const struct tec_session *s, const struct tec_session_set *set)
{
    int n = 0;
    for (int i = 0; i < s->options.model->n_slots; i++)
        n += set->seen.valid[i];
    return n;
}

void tec_session_fit_ids(const struct tec_session *s, int *ids, int n)
{
    const struct tec_model *m = s->options.model;
    int pictures = 0;
    for (int i = 0; i < s->robot->n_cameras; i++)
        pictures += s->robot->cameras[i].input != NULL;
    for (int i = 0; i < n && m->text.vocab > 0; i++)
        ids[i] %= m->text.vocab;
    tec_prefix_mark(m, ids, n, pictures);
}

/* Texts were cut: say so, and keep what is left for those who look at the prompt. */
static enum tec_status note_cut(struct tec_session *s, const struct tec_template_values *whole,
                                const struct tec_template_values *cut, struct tec_observation *seen,
                                struct tec_error *err)
{
    size_t bytes;
    const char *left = tec_template_join(cut, &bytes, &s->scratch);
    if (!left)
        return tec_fail(err, TEC_NO_MEMORY, "%s: no memory", s->prompt.name);
    memmove(seen->text, left, bytes);
    seen->text[bytes] = '\0';
    seen->text_bytes = bytes;
    tec_arena_rewind(&s->scratch, s->scratch_start);
    for (int i = cut->n_texts - 1; i >= 0; i--)
        if (cut->texts[i].n < whole->texts[i].n)
            snprintf(seen->warning, sizeof seen->warning,
                     "the text of stream '%.60s' is cut: the prompt has room for %zu of its %zu "
                     "bytes",
                     s->prompt.texts.each[i].input->name, cut->texts[i].n, whole->texts[i].n);
    return TEC_OK;
}

int tec_session_stand_ins(const struct tec_session *s)
{
    int n = 1;
    for (int i = 0; s->hears && i < s->prompt.texts.n; i++) {
        const struct tec_read_text *t = &s->prompt.texts.each[i];
        n +=
            t->stream < 0 ? t->input->max_tokens : tec_text_edges_room(s->options.edges, t->stream);
    }
    return n;
}

/* The texts of a prompt that waits, or the ids that stand for them: they are an observation's,
 * which may be gone when the last one is heard. All of them, whatever the prompt of the newest text
 * had room for: the next one may be shorter. */
static enum tec_status keep_parts(const struct tec_session *s, struct tec_session_set *set,
                                  const struct tec_chain_prompt_parts *parts,
                                  const struct tec_template_values *whole, struct tec_error *err)
{
    const struct tec_chain_prompt *p = &s->prompt;
    char *to = set->texts;
    set->parts = *parts;
    set->parts.said = *whole;
    for (int i = 0; i < whole->n_texts; i++) {
        struct tec_template_text *t = &set->parts.said.texts[i];
        memcpy(to, t->text, t->n);
        t->text = to;
        to += t->n;
    }
    return p->tokenizer ? TEC_OK
                        : tec_texts_stand_in(&p->texts, p->streams, parts->values, parts->n_values,
                                             p->model->text.vocab, 0, set->stand_ins,
                                             tec_session_stand_ins(s), set->parts.stood, err);
}

/* The text of tokens of the stream that the session waits for, as much of it as a session takes. */
static enum tec_status decode_said(struct tec_session *s, const int *tokens, int n,
                                   struct tec_template_text *said, struct tec_error *err)
{
    const struct tec_read_text *read = &s->prompt.texts.each[s->hears - 1];
    const struct tec_stream_reader *r = &s->streams.readers[read->stream];
    char *text = NULL;
    TEC_TRY(tec_tokenizer_decode(r->tokenizer, tokens, (size_t)n, true, &s->late, &text, &said->n,
                                 err));
    said->text = text;
    said->cut = true;
    said->n = said->n < r->room ? said->n : r->room;
    if (said->n > read->most)
        said->n = tec_template_keeps(said->text, read->most, 1, 1);
    return TEC_OK;
}

/* The same without tokenizers: the tokens stand for the text, between what stands for others. */
static int hear_ids(struct tec_session *s, struct tec_session_set *set, const int *tokens,
                    int n_tokens)
{
    const struct tec_text *t = &s->options.model->text;
    const struct tec_chain_prompt *p = &s->prompt;
    int n = p->most, to = p->leads && t->bos >= 0, *ids = s->late_ids;
    const int *others = set->stand_ins;
    tec_text_make_ids(n, t->vocab, ids);
    if (to)
        ids[0] = t->bos;
    for (int i = 0; i < p->texts.n; i++) {
        bool heard = i == s->hears - 1;
        int more = heard ? n_tokens : set->parts.stood[i];
        for (int k = 0; k < more && to < n; k++)
            ids[to++] = heard ? tokens[k] % t->vocab : others[k];
        others += set->parts.stood[i];
    }
    tec_prefix_mark(s->options.model, ids, n, set->parts.pictures);
    return n;
}

/* Into late_ids: the prompt, or what stands behind its segments. */
static enum tec_status hear(struct tec_session *s, struct tec_session_set *set, const int *tokens,
                            int n, int *made, struct tec_error *err)
{
    const struct tec_chain_prompt *p = &s->prompt;
    struct tec_memory_query query = {.values = set->parts.said, .cut = true, .always = true};
    if (p->tokenizer)
        TEC_TRY(decode_said(s, tokens, n, &query.values.texts[s->hears - 1], err));
    else {
        *made = query.n = hear_ids(s, set, tokens, n);
        query.ids = s->late_ids;
    }
    if (p->memory)
        TEC_TRY(tec_memory_prompt_end(p->memory, &p->remembered[set->parts.turn], &query,
                                      s->late_ids, p->frame, made, &s->late, err));
    else if (p->tokenizer)
        TEC_TRY(tec_session_prompt_encode(p, &query.values, s->late_ids, made, &s->late, err));
    if (*made < 1) { /* nothing was said */
        s->late_ids[0] = 0;
        *made = 1;
    }
    return tec_text_check(p->name, s->late_ids, *made, p->model->text.vocab,
                          "; the tokenizer is another model's", err);
}

int tec_session_hear(void *self, const int *tokens, int n, struct tec_error *err)
{
    struct tec_session_set *set = self;
    struct tec_session *s = set->session;
    struct tec_memory_prompt *segments =
        s->prompt.memory ? &s->prompt.remembered[set->parts.turn] : NULL;
    int made = 0, at = segments ? segments->query : 0;
    struct tec_arena_mark mark = tec_arena_mark(&s->late);
    enum tec_status status = hear(s, set, tokens, n, &made, err);
    tec_arena_rewind(&s->late, mark);
    if (status != TEC_OK) {
        tec_streams_refuse(&s->streams.readers[s->prompt.texts.each[s->hears - 1].stream], status,
                           err);
        return 0;
    }
    memcpy(set->ids + at, s->late_ids, (size_t)made * sizeof *set->ids);
    if (segments)
        segments->n = at + made;
    return set->heard = at + made;
}

/* The robot's text is the only one. Its key is of the text or the ids as they are given: what a
 * template adds, such as the state, does not change it. */
static void say_one(const struct tec_session *s, const struct tec_observation *seen,
                    struct tec_chain_prompt_parts *parts, struct tec_chain_input *in)
{
    const char *name = s->robot->prompt_input;
    const struct tec_value *ids = tec_text_find(parts->values, parts->n_values, name, "#ids");
    bool spelt = !ids || tec_text_find(parts->values, parts->n_values, name, "");
    parts->said.texts[0] =
        (struct tec_template_text){.text = seen->text, .n = spelt ? seen->text_bytes : 0};
    parts->said.n_texts = 1;
    in->keys[1] = ids ? XXH3_64bits_withSeed(ids->data, ids->bytes, 1)
                      : XXH3_64bits_withSeed(seen->text, seen->text_bytes, 0);
    tec_texts_key(in, 1);
}

/* Without a tokenizer a text decides nothing: ids stand for it, the same for any. */
static void note_unread(const struct tec_session *s, const struct tec_chain_prompt_parts *parts,
                        struct tec_observation *seen)
{
    const struct tec_chain_prompt *p = &s->prompt;
    if (p->tokenizer || p->memory || seen->warning[0] ||
        tec_texts_ids(&p->texts, parts->values, parts->n_values))
        return;
    for (size_t i = 0; i < parts->n_values; i++) {
        const struct tec_value *v = &parts->values[i];
        bool read = strcmp(v->name, s->robot->prompt_input) == 0;
        for (int k = 0; k < p->texts.n; k++)
            read |=
                p->texts.each[k].stream < 0 && strcmp(v->name, p->texts.each[k].input->name) == 0;
        if (read && v->kind == TEC_VALUE_TEXT && v->bytes > 0)
            snprintf(seen->warning, sizeof seen->warning,
                     "%.60s: there is no tokenizer, so made-up ids stand for the text: any other "
                     "gives the same actions",
                     v->name);
    }
}

enum tec_status tec_session_make_prompt(struct tec_session *s, struct tec_chain_prompt_parts *parts,
                                        struct tec_session_set *set, int *n,
                                        struct tec_chain_input *in, struct tec_error *err)
{
    set->heard = 0;
    if (!tec_model_reads(s->options.model))
        return TEC_OK; /* no tokens, and always the same keys */
    if (!s->composes)
        say_one(s, &set->seen, parts, in);
    parts->said.bins = set->seen.bins;
    parts->said.n_bins = set->seen.n_bins;
    parts->pictures = count_pictures(s, set);
    parts->turn = s->turn;
    parts->whole = true; /* those of frames have defaults */
    const struct tec_template_values whole = parts->said;
    enum tec_status status =
        tec_session_prompt_make(&s->prompt, parts, set->ids, n, &s->scratch, err);
    tec_arena_rewind(&s->scratch, s->scratch_start);
    TEC_TRY(status);
    note_unread(s, parts, &set->seen);
    if (s->hears)
        TEC_TRY(keep_parts(s, set, parts, &whole, err));
    for (int i = 0; i < whole.n_texts; i++)
        if (parts->said.texts[i].n < whole.texts[i].n)
            return note_cut(s, &whole, &parts->said, &set->seen, err);
    return TEC_OK;
}
