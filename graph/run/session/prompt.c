/* prompt.c - makes the ids of a prompt.
 *
 * Runs on the session's thread, but for what is const. The last texts and their ids are kept, so
 * that an instruction that stays the same from frame to frame is tokenized once. */
#include "graph/run/session/prompt.h"

#include "graph/run/launch/launch.h"
#include "graph/run/launch/text_input.h"
#include "graph/run/recall/memory.h"

#include <string.h>

int tec_session_prompt_room(const struct tec_chain_prompt *p)
{
    int most = p->most > p->room ? p->most : p->room;
    return 1 + (p->memory && p->frame > most ? p->frame : most);
}

enum tec_status tec_session_prompt_init(struct tec_chain_prompt *p, struct tec_arena *arena,
                                        struct tec_error *err)
{
    p->name = p->texts.n == 1 ? p->texts.each[0].input->name : p->texts.reader;
    p->said = TEC_NEW(arena, p->longest, char);
    p->ids = TEC_NEW(arena, (size_t)p->most + 1, int);
    p->n = -1;
    if (p->memory)
        p->remembered = TEC_NEW(arena, TEC_SESSION_SETS, struct tec_memory_prompt);
    if (!p->said || !p->ids || (p->memory && !p->remembered))
        return tec_fail(err, TEC_NO_MEMORY, "%s: no memory", p->name);
    if (!p->memory)
        return TEC_OK;
    TEC_TRY(tec_memory_chain_use(p->memory, p->template, err));
    return tec_memory_rooms(p->memory, p->remembered, TEC_SESSION_SETS, arena, err);
}

void tec_session_prompt_drop(struct tec_chain_prompt *p)
{
    for (int i = 0; p->remembered && i < TEC_SESSION_SETS; i++)
        tec_memory_drop(p->memory, &p->remembered[i]);
}

/* Does it read a stream? */
static bool listens(const struct tec_chain_prompt *p)
{
    for (int i = 0; i < p->texts.n; i++)
        if (p->texts.each[i].stream >= 0)
            return true;
    return false;
}

static enum tec_status fail_long(const struct tec_chain_prompt *p, size_t count,
                                 struct tec_error *err)
{
    return tec_fail(err, TEC_INVALID,
                    "%s: prompt has %zu tokens, the %s allows %d: raise max_tokens or shorten it",
                    p->name, count, p->allows, p->most);
}

/* Ids that are given for the whole prompt. */
static const struct tec_value *given_ids(const struct tec_chain_prompt *p,
                                         const struct tec_chain_prompt_parts *parts)
{
    return tec_texts_ids(&p->texts, parts->values, parts->n_values);
}

static enum tec_status take_ids(const struct tec_chain_prompt *p, const struct tec_value *given,
                                int *ids, int *n, struct tec_error *err)
{
    TEC_TRY(tec_text_count_ids(given, n, err));
    if (*n > p->most)
        return fail_long(p, (size_t)*n, err);
    memcpy(ids, given->data, given->bytes);
    return tec_text_check(p->name, ids, *n, p->model->text.vocab, "", err);
}

/* Without a tokenizer: made up ids, as many as can be, the first of which are texts' ids. */
static enum tec_status make_up(const struct tec_chain_prompt *p,
                               struct tec_chain_prompt_parts *parts, int *ids, int *n,
                               struct tec_error *err)
{
    const struct tec_text *t = &p->model->text;
    bool led = p->leads && t->bos >= 0;
    *n = p->most;
    tec_text_make_ids(*n, t->vocab, ids);
    if (led)
        ids[0] = t->bos;
    TEC_TRY(tec_texts_stand_in(&p->texts, p->streams, parts->values, parts->n_values, t->vocab, led,
                               ids, *n, parts->stood, err));
    tec_prefix_mark(p->model, ids, *n, parts->pictures);
    return TEC_OK;
}

/* --- texts ----------------------------------------------------------------------------------- */

enum tec_status tec_session_prompt_encode(const struct tec_chain_prompt *p,
                                          struct tec_template_values *values, int *ids, int *n,
                                          struct tec_arena *scratch, struct tec_error *err)
{
    size_t count = 0, most = (size_t)p->most, room = (size_t)(p->keep_last ? p->room : p->most);
    do {
        enum tec_status status =
            tec_template_encode(p->template, p->tokenizer, values, ids, room, &count, scratch, err);
        TEC_TRY(tec_context(err, status, "%s", p->name));
    } while (count > most && tec_template_cut(values, count, most));
    if (count > most && (!p->cut || (p->keep_last && count > room)))
        return fail_long(p, count, err);
    if (count > most && p->keep_last)
        memmove(ids, ids + (count - most), most * sizeof *ids);
    *n = (int)(count < most ? count : most);
    return TEC_OK;
}

/* Are these the texts that were encoded last? The state is another in every observation. */
static bool same_texts(const struct tec_chain_prompt *p, const struct tec_template_values *values)
{
    const char *at = p->said;
    bool same = p->n >= 0 && !p->template->state;
    for (int i = 0; same && i < values->n_texts; i++) {
        const struct tec_template_text *t = &values->texts[i];
        same = t->n == p->bytes[i] && memcmp(at, t->text, t->n) == 0;
        at += t->n;
    }
    return same;
}

/* Of a prompt that has been made: texts, what was left of them, ids. */
static void keep_texts(struct tec_chain_prompt *p, const struct tec_template_values *values,
                       const struct tec_template_values *left, const int *ids, int n)
{
    char *at = p->said;
    for (int i = 0; i < values->n_texts; i++) {
        p->bytes[i] = values->texts[i].n;
        p->kept[i] = left->texts[i].n;
        memcpy(at, values->texts[i].text, values->texts[i].n);
        at += values->texts[i].n;
    }
    memcpy(p->ids, ids, (size_t)n * sizeof *ids);
    p->n = n;
}

static enum tec_status read_texts(struct tec_chain_prompt *p, struct tec_template_values *said,
                                  int *ids, int *n, struct tec_arena *scratch,
                                  struct tec_error *err)
{
    const struct tec_template_values whole = *said;
    if (same_texts(p, said)) {
        for (int i = 0; i < said->n_texts; i++)
            said->texts[i].n = p->kept[i];
        memcpy(ids, p->ids, (size_t)p->n * sizeof *ids);
        *n = p->n;
        return TEC_OK;
    }
    p->n = -1;
    TEC_TRY(tec_session_prompt_encode(p, said, ids, n, scratch, err));
    keep_texts(p, &whole, said, ids, *n);
    return TEC_OK;
}

/* --- segments -------------------------------------------------------------------------------- */

/* Without a tokenizer a memory spells texts itself: those that observations give, not streams. */
static bool spelt(const struct tec_chain_prompt *p, const struct tec_chain_prompt_parts *parts)
{
    bool all = true;
    for (int i = 0; i < p->texts.n; i++)
        all &= p->texts.each[i].stream < 0 && parts->said.texts[i].n > 0;
    return p->tokenizer || all;
}

/* A text beside ids that are given finds the segments; the ids stand behind them. */
static enum tec_status recall(const struct tec_chain_prompt *p,
                              struct tec_chain_prompt_parts *parts, const struct tec_value *given,
                              int *ids, int *n, struct tec_arena *scratch, struct tec_error *err)
{
    struct tec_memory_query query = {.session = p->session,
                                     .values = parts->said,
                                     .cut = p->cut,
                                     .always = p->always && listens(p),
                                     .waits = p->waits};
    struct tec_memory_prompt *prompt = &p->remembered[parts->turn];
    for (int i = 0; i < query.values.n_texts; i++)
        query.values.texts[i].cut |= p->cut;
    if (given) {
        TEC_TRY(take_ids(p, given, ids, &query.n, err));
        query.ids = given->data; /* `ids` are written before they are read to their end */
    } else if (!spelt(p, parts)) {
        TEC_TRY(make_up(p, parts, ids, &query.n, err));
        query.ids = ids;
        query.cut = true;
    }
    enum tec_status status =
        tec_memory_prompt(p->memory, prompt, &query, ids, p->frame, scratch, err);
    *n = status == TEC_OK ? prompt->n : 0;
    return tec_context(err, status, "%s", p->name);
}

/* --- a prompt -------------------------------------------------------------------------------- */

enum tec_status tec_session_prompt_make(struct tec_chain_prompt *p,
                                        struct tec_chain_prompt_parts *parts, int *ids, int *n,
                                        struct tec_arena *scratch, struct tec_error *err)
{
    const struct tec_value *given = given_ids(p, parts);
    *n = 0;
    if (p->memory && p->applied != p->streams->observation)
        TEC_TRY(tec_memory_chain_apply(p->memory, p->session, parts->values, parts->n_values, err));
    p->applied = p->streams->observation;
    if (!parts->whole)
        return TEC_OK;
    if (p->memory)
        TEC_TRY(recall(p, parts, given, ids, n, scratch, err));
    else if (given)
        TEC_TRY(take_ids(p, given, ids, n, err));
    else if (p->tokenizer)
        TEC_TRY(read_texts(p, &parts->said, ids, n, scratch, err));
    else
        TEC_TRY(make_up(p, parts, ids, n, err));
    if (*n < 1 && listens(p)) { /* nothing has been said yet, or nothing at all */
        ids[0] = 0;
        *n = p->always;
        return TEC_OK;
    }
    if (*n < 1)
        return tec_fail(err, TEC_INVALID, "%s: the prompt has no tokens", p->name);
    return tec_text_check(p->name, ids, *n, p->model->text.vocab,
                          "; the tokenizer is another model's", err);
}
