/* session_prompt.c - makes the prompt of an observation: its text through the template and the
 * tokenizer, ids that were given, or the segments of a memory.
 *
 * Runs on the session's thread. Scratch of tokenizing is the session's, reserved at create. */
#include "graph/run/launch.h"
#include "graph/run/session_state.h"
#include "graph/run/session_text.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

/* Tokens that the plan and the robot allow. */
static int allowed(const struct tec_session *s)
{
    int robot = s->robot->max_tokens;
    return robot > 0 && robot < s->options.max_text ? robot : s->options.max_text;
}

static enum tec_status fail_long(const struct tec_session *s, size_t count, struct tec_error *err)
{
    int most = allowed(s);
    return tec_fail(err, TEC_INVALID,
                    "%s: prompt has %zu tokens, the %s allows %d: raise max_tokens or shorten it",
                    s->robot->prompt_input, count,
                    most < s->options.max_text ? "robot" : "pipeline", most);
}

static enum tec_status check_vocabulary(const struct tec_session *s, const int *ids, int n,
                                        const char *why, struct tec_error *err)
{
    int vocab = s->options.model->text.vocab;
    for (int i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= vocab)
            return tec_fail(err, TEC_INVALID, "%s: token %d is %d, the model's vocabulary has %d%s",
                            s->robot->prompt_input, i + 1, ids[i], vocab, why);
    return TEC_OK;
}

static enum tec_status check_ids(const struct tec_session *s, const struct tec_value *value,
                                 struct tec_error *err)
{
    if (value->kind != TEC_VALUE_I32 || value->rank != 1 || value->shape[0] < 1 ||
        (uint64_t)value->shape[0] > SIZE_MAX / sizeof(int) ||
        value->bytes != (size_t)value->shape[0] * sizeof(int))
        return tec_fail(err, TEC_SHAPE, "%s: token ids are i32 [n], at least one", value->name);
    if (value->shape[0] > allowed(s))
        return fail_long(s, (size_t)value->shape[0], err);
    return check_vocabulary(s, value->data, (int)value->shape[0], "", err);
}

static int take_ids(const struct tec_value *ids, struct tec_session_set *set)
{
    memcpy(set->ids, ids->data, ids->bytes);
    return (int)ids->shape[0];
}

/* Without a tokenizer, the longest prompt that is allowed (for measurements). How many ids. */
static int begin_ids(const struct tec_session *s, struct tec_session_set *set)
{
    const struct tec_text *t = &s->options.model->text;
    int n = allowed(s);
    tec_text_make_ids(n, t->vocab, set->ids);
    if (t->bos >= 0)
        set->ids[0] = t->bos;
    return n;
}

static void mark_pictures(const struct tec_session *s, struct tec_session_set *set, int n)
{
    int pictures = 0;
    for (int i = 0; i < s->options.model->n_slots; i++)
        pictures += set->seen.valid[i];
    tec_prefix_mark(s->options.model, set->ids, n, pictures);
}

static enum tec_status make_ids(const struct tec_session *s, const struct tec_value *values,
                                size_t n_values, struct tec_session_set *set, int *n,
                                struct tec_error *err)
{
    const struct tec_text *t = &s->options.model->text;
    *n = begin_ids(s, set);
    if (s->composes)
        TEC_TRY(tec_texts_stand_in(&s->texts, &s->streams, values, n_values, t->vocab, t->bos >= 0,
                                   set->ids, *n, err));
    mark_pictures(s, set, *n);
    return TEC_OK;
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

static enum tec_status encode_text(const struct tec_session *s,
                                   const struct tec_template_values *values, int *ids,
                                   size_t *count, struct tec_arena *scratch, struct tec_error *err)
{
    struct tec_arena_mark mark = tec_arena_mark(scratch);
    size_t room = (size_t)(s->robot->keep_last ? s->ids_room : allowed(s));
    enum tec_status status = tec_template_encode(s->template, s->options.tokenizer, values, ids,
                                                 room, count, scratch, err);
    tec_arena_rewind(scratch, mark);
    return tec_context(err, status, "%s", s->robot->prompt_input);
}

/* Texts were cut: say so, and keep what is left for those who look at the prompt. */
static enum tec_status note_cut(struct tec_session *s, const struct tec_template_values *whole,
                                const struct tec_template_values *cut, struct tec_observation *seen,
                                struct tec_error *err)
{
    size_t bytes;
    const char *left = tec_template_join(cut, &bytes, &s->scratch);
    if (!left)
        return tec_fail(err, TEC_NO_MEMORY, "%s: no memory", s->robot->prompt_input);
    memmove(seen->text, left, bytes);
    seen->text[bytes] = '\0';
    seen->text_bytes = bytes;
    tec_arena_rewind(&s->scratch, s->scratch_start);
    for (int i = cut->n_texts - 1; i >= 0; i--)
        if (cut->texts[i].n < whole->texts[i].n)
            snprintf(seen->warning, sizeof seen->warning,
                     "the text of stream '%.60s' is cut: the prompt has room for %zu of its %zu "
                     "bytes",
                     s->texts.each[i].input->name, cut->texts[i].n, whole->texts[i].n);
    return TEC_OK;
}

/* A stream's text is cut until it fits: what another node says must not stop the frames. Values
 * become what is left. */
static enum tec_status encode(const struct tec_session *s, struct tec_template_values *values,
                              int *ids, int *n, struct tec_arena *scratch, struct tec_error *err)
{
    size_t count = 0, most = (size_t)allowed(s);
    bool last = s->robot->keep_last;
    TEC_TRY(encode_text(s, values, ids, &count, scratch, err));
    while (count > most && tec_template_cut(values, count, most))
        TEC_TRY(encode_text(s, values, ids, &count, scratch, err));
    if (count > most && (!s->robot->truncate || (last && count > (size_t)s->ids_room)))
        return fail_long(s, count, err);
    if (count > most && last)
        memmove(ids, ids + (count - most), most * sizeof *ids);
    *n = (int)(count < most ? count : most);
    return TEC_OK;
}

static enum tec_status encode_seen(struct tec_session *s, const struct tec_template_values *values,
                                   struct tec_session_set *set, int *n, struct tec_error *err)
{
    struct tec_template_values left = *values;
    TEC_TRY(encode(s, &left, set->ids, n, &s->scratch, err));
    for (int i = 0; i < left.n_texts; i++)
        if (left.texts[i].n < values->texts[i].n)
            return note_cut(s, values, &left, &set->seen, err);
    return TEC_OK;
}

/* The text of tokens of the stream that the session waits for, as much of it as a session takes. */
static enum tec_status decode_said(struct tec_session *s, const int *tokens, int n,
                                   struct tec_template_text *said, struct tec_error *err)
{
    const struct tec_read_text *read = &s->texts.each[0];
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

/* The same without tokenizers: the tokens stand for the text. */
static int hear_ids(const struct tec_session *s, struct tec_session_set *set, const int *tokens,
                    int n_tokens)
{
    const struct tec_text *t = &s->options.model->text;
    int n = begin_ids(s, set), first = t->bos >= 0;
    for (int i = 0; i < n_tokens && first + i < n; i++)
        set->ids[first + i] = tokens[i] % t->vocab;
    mark_pictures(s, set, n);
    return set->heard = n;
}

int tec_session_hear(void *self, const int *tokens, int n)
{
    struct tec_session_set *set = self;
    struct tec_session *s = set->session;
    struct tec_template_values values = {
        .n_texts = 1, .bins = set->seen.bins, .n_bins = set->seen.n_bins};
    int made = 0;
    if (!s->options.tokenizer)
        return hear_ids(s, set, tokens, n);
    struct tec_arena_mark mark = tec_arena_mark(&s->late);
    enum tec_status status = decode_said(s, tokens, n, &values.texts[0], NULL);
    if (status == TEC_OK)
        status = encode(s, &values, s->late_ids, &made, &s->late, NULL);
    if (status == TEC_OK)
        status = check_vocabulary(s, s->late_ids, made, "", NULL);
    tec_arena_rewind(&s->late, mark);
    if (status != TEC_OK)
        return 0;
    memcpy(set->ids, s->late_ids, (size_t)made * sizeof *set->ids);
    return set->heard = made;
}

/* Key of the given text or ids; what a template adds, such as the state, does not change it. */
static uint64_t key_of(const struct tec_value *ids, const struct tec_observation *seen)
{
    return ids ? XXH3_64bits_withSeed(ids->data, ids->bytes, 1)
               : XXH3_64bits_withSeed(seen->text, seen->text_bytes, 0);
}

/* Apply changes of the memory, then retrieve segments for the query. `ids` (NULL = none) are the
 * query; a text given beside them is used to find the segments. */
static enum tec_status recall(struct tec_session *s, const struct tec_value *values,
                              size_t n_values, const struct tec_template_values *said,
                              const struct tec_value *ids, struct tec_session_set *set, int *n,
                              struct tec_error *err)
{
    struct tec_memory_query query = {.session = s->options.index,
                                     .values = *said,
                                     .ids = ids ? ids->data : NULL,
                                     .n = ids ? (int)ids->shape[0] : 0,
                                     .cut = s->robot->truncate};
    struct tec_memory_prompt *prompt = &s->remembered[s->turn];
    if (ids && !tec_text_find(values, n_values, s->robot->prompt_input, ""))
        query.values.texts[0].n = 0;
    for (int i = 0; i < query.values.n_texts; i++)
        query.values.texts[i].cut |= s->robot->truncate;
    for (int i = 0; i < s->texts.n; i++)
        query.cut |= s->texts.each[i].stream >= 0;
    TEC_TRY(tec_chain_memory_apply(s->options.memory, s->options.index, values, n_values, err));
    enum tec_status status = tec_memory_prompt(s->options.memory, prompt, &query, set->ids,
                                               s->options.max_text, &s->scratch, err);
    tec_arena_rewind(&s->scratch, s->scratch_start);
    *n = prompt->n;
    return tec_context(err, status, "%s", s->robot->prompt_input);
}

/* The robot's text is the only one. */
static void say_one(const struct tec_observation *seen, const struct tec_value *ids,
                    struct tec_template_values *said, struct tec_chain_input *in)
{
    said->texts[0] = (struct tec_template_text){.text = seen->text, .n = seen->text_bytes};
    said->n_texts = 1;
    in->keys[1] = key_of(ids, seen);
    tec_texts_key(in, 1);
}

/* What another node says, be it nothing, must not stop the frames. */
static bool reads_stream(const struct tec_session *s)
{
    for (int i = 0; i < s->texts.n; i++)
        if (s->texts.each[i].stream >= 0)
            return true;
    return false;
}

enum tec_status tec_session_make_prompt(struct tec_session *s, const struct tec_value *values,
                                        size_t n_values, struct tec_template_values *said,
                                        struct tec_session_set *set, int *n,
                                        struct tec_chain_input *in, struct tec_error *err)
{
    set->heard = 0;
    if (!tec_model_reads(s->options.model))
        return TEC_OK; /* no tokens, and always the same keys */
    const struct tec_value *ids =
        s->composes ? NULL : tec_robot_prompt_ids(s->robot, values, n_values);
    if (ids)
        TEC_TRY(check_ids(s, ids, err));
    if (!s->composes)
        say_one(&set->seen, ids, said, in);
    said->bins = set->seen.bins;
    said->n_bins = set->seen.n_bins;
    if (s->options.memory)
        TEC_TRY(recall(s, values, n_values, said, ids, set, n, err));
    else if (ids)
        *n = take_ids(ids, set);
    else if (s->options.tokenizer)
        TEC_TRY(encode_seen(s, said, set, n, err));
    else
        TEC_TRY(make_ids(s, values, n_values, set, n, err));
    if (*n < 1 && reads_stream(s)) { /* nothing has been said yet, or nothing at all */
        set->ids[0] = 0;
        *n = 1;
    }
    if (*n < 1)
        return tec_fail(err, TEC_INVALID, "%s: the prompt has no tokens", s->robot->prompt_input);
    return check_vocabulary(s, set->ids, *n, "; the tokenizer is another model's", err);
}
