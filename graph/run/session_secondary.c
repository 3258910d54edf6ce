/* session_secondary.c - reads the prompts of secondary chains: their texts as token ids, and which
 * pictures of an observation they see.
 *
 * Runs on the session's thread. The last texts and their ids are kept, so that an instruction that
 * stays the same from frame to frame is tokenized once. Each text has a key, so that the loop
 * notices a change without comparing texts. */
#include "graph/run/session_secondary.h"

#include "graph/run/memory.h"
#include "graph/run/session_robot.h"
#include "graph/run/session_text.h"

#include <string.h>

static enum tec_status refuse(const struct tec_secondary_reader *r, enum tec_status status,
                              const char *what, const char *name, struct tec_error *err)
{
    const struct tec_where *w = &r->node->where;
    return tec_fail(err, status, "%s:%d: '%s' reads %s '%s'", w->file ? w->file : "?", w->line,
                    r->node->name, what, name);
}

static bool reads_state(const struct tec_secondary_reader *r, const struct tec_pipeline *p)
{
    for (int i = 0; i < r->node->reads.n; i++)
        if (p->inputs[r->node->reads.item[i].index].kind == TEC_INPUT_TENSOR)
            return true;
    return false;
}

/* The template that the prefill names; else the robot's for one that reads the state, else "plain".
 */
static enum tec_status find_template(struct tec_secondary_reader *r,
                                     const struct tec_session_options *o,
                                     const struct tec_robot *robot, struct tec_arena *arena,
                                     struct tec_error *err)
{
    bool state = reads_state(r, o->pipeline);
    const char *name = r->node->template        ? r->node->template
                       : !state                 ? "plain"
                       : robot->prompt_template ? robot->prompt_template
                                                : "with_state";
    TEC_TRY(tec_session_read_template(&r->template, o->root, name, arena, err));
    int nodes[TEC_MAX_MEMORIES];
    if (r->template->memory && !tec_memory_nodes(o->pipeline, r->of->chain, nodes))
        return refuse(r, TEC_MALFORMED, "no memory, which is in its prompt template", name, err);
    if (r->template->state && !state)
        return refuse(r, TEC_MALFORMED, "no state: {state} is in prompt template", name, err);
    if (!r->template->state && state)
        return refuse(r, TEC_MALFORMED, "the state: there is no {state} in prompt template", name,
                      err);
    const char *wrong = tec_template_misplaces(r->template, r->texts.n, arena);
    if (wrong)
        return tec_fail(err, TEC_MALFORMED, "%s:%d: '%s': prompt template '%s' %s",
                        r->node->where_template.file ? r->node->where_template.file : "?",
                        r->node->where_template.line, r->node->name, name, wrong);
    if (state && !robot->state_in_prompt)
        return refuse(r, TEC_MALFORMED,
                      "the state, but the robot's prompt does not say state = true: robot",
                      robot->name, err);
    return TEC_OK;
}

/* The pictures it reads, in the order of the frames' slots. */
static enum tec_status find_views(struct tec_secondary_reader *r,
                                  const struct tec_session_options *o,
                                  const struct tec_observer *observer, struct tec_arena *arena,
                                  struct tec_error *err)
{
    int slots[TEC_MAX_CAMERAS] = {0};
    r->n_views = 0;
    for (int i = 0; i < r->node->reads.n; i++) {
        const struct tec_decl_input *in = &o->pipeline->inputs[r->node->reads.item[i].index];
        if (in->kind != TEC_INPUT_IMAGE)
            continue;
        int slot = tec_observer_slot(observer, in->name, in->slot), at = r->n_views;
        if (slot < 0)
            return refuse(r, TEC_MALFORMED, "a picture that the robot has no camera for:", in->name,
                          err);
        for (; at > 0 && slots[at - 1] > slot; at--)
            slots[at] = slots[at - 1];
        slots[at] = slot;
        r->n_views++;
    }
    for (int i = 0; i < r->n_views; i++)
        TEC_TRY(tec_session_view_init(&r->views[i], slots[i], r->of->model, i, o->model, observer,
                                      arena, err));
    return TEC_OK;
}

static enum tec_status take_rooms(struct tec_secondary_reader *r, struct tec_arena *arena,
                                  struct tec_error *err)
{
    TEC_TRY(tec_chain_memory_use(r->of->memory, r->template, err));
    r->rooms = TEC_NEW(arena, TEC_SESSION_SETS, struct tec_memory_prompt);
    if (!r->rooms)
        return tec_fail(err, TEC_NO_MEMORY, "%s: no memory", r->name);
    return tec_memory_rooms(r->of->memory, r->rooms, TEC_SESSION_SETS, arena, err);
}

void tec_secondary_drop(struct tec_secondary_inputs *secondary)
{
    for (int i = 0; i < secondary->n; i++) {
        struct tec_secondary_reader *r = &secondary->readers[i];
        for (int k = 0; r->rooms && k < TEC_SESSION_SETS; k++)
            tec_memory_drop(r->of->memory, &r->rooms[k]);
        for (int k = 0; k < r->n_views; k++)
            tec_session_view_drop(&r->views[k]);
    }
}

/* Tokens of a prompt: what its plan allows, and no more than its texts say that they have. A stream
 * has what pictures leave. */
static int room_of(const struct tec_secondary_reader *r, const struct tec_pipeline *p)
{
    int64_t room = 0;
    int pictures = 0;
    for (int i = 0; i < r->node->reads.n; i++)
        pictures += p->inputs[r->node->reads.item[i].index].kind == TEC_INPUT_IMAGE;
    for (int i = 0; i < r->texts.n; i++) {
        room += r->texts.each[i].input->max_tokens;
        if (r->texts.each[i].stream >= 0)
            room -= (int64_t)pictures * tec_vision_rows(&r->of->model->vision);
    }
    bool all = r->texts.n == 0 || room > r->of->max_text;
    return all ? r->of->max_text : room > 0 ? (int)room : 0;
}

static enum tec_status
init_reader(struct tec_secondary_reader *r, const struct tec_session_options *o,
            const struct tec_session_model *of, const struct tec_robot *robot,
            const struct tec_observer *observer, struct tec_arena *arena, struct tec_error *err)
{
    const struct tec_decl_chain *chain = &o->pipeline->chains[of->chain];
    r->node = chain->prefill < 0 ? NULL : &o->pipeline->nodes[chain->prefill];
    if (!r->node)
        return tec_fail(err, TEC_INVALID, "session: '%s' has no prefill", chain->name);
    r->of = of;
    r->session = o->index;
    tec_texts_init(&r->texts, o, of->chain, of->tokenizer, robot);
    r->name = r->texts.n ? r->texts.each[0].input->name : r->node->name;
    r->room = room_of(r, o->pipeline);
    r->said = TEC_NEW(arena, tec_texts_longest(&r->texts), char);
    r->ids = TEC_NEW(arena, (size_t)r->room + 1, int);
    r->n = -1;
    if (!r->said || !r->ids)
        return tec_fail(err, TEC_NO_MEMORY, "%s: no memory", r->name);
    TEC_TRY(find_template(r, o, robot, arena, err));
    TEC_TRY(find_views(r, o, observer, arena, err));
    return of->memory ? take_rooms(r, arena, err) : TEC_OK;
}

enum tec_status tec_secondary_init(struct tec_secondary_inputs *secondary,
                                   const struct tec_session_options *options,
                                   const struct tec_robot *robot,
                                   const struct tec_observer *observer, struct tec_arena *arena,
                                   struct tec_error *err)
{
    secondary->n = 0;
    for (int i = 0; i < options->n_secondary; i++)
        if (options->secondary[i].reads)
            TEC_TRY(init_reader(&secondary->readers[secondary->n++], options,
                                &options->secondary[i], robot, observer, arena, err));
    return tec_session_others(&secondary->others, options, observer, arena, err);
}

size_t tec_secondary_longest(const struct tec_secondary_inputs *secondary)
{
    size_t most = 0;
    for (int i = 0; i < secondary->n; i++) {
        size_t bytes = tec_texts_longest(&secondary->readers[i].texts);
        most = bytes > most ? bytes : most;
    }
    return most;
}

enum tec_status tec_secondary_take(const struct tec_secondary_inputs *secondary,
                                   int *ids[TEC_MAX_CHAINS], struct tec_arena *arena,
                                   struct tec_error *err)
{
    for (int i = 0; i < secondary->n; i++) {
        const struct tec_secondary_reader *r = &secondary->readers[i];
        int most = r->rooms && r->of->max_text > r->room ? r->of->max_text : r->room;
        ids[i] = TEC_NEW(arena, (size_t)most + 1, int);
        if (!ids[i])
            return tec_fail(err, TEC_NO_MEMORY, "%s: no memory", r->name);
    }
    return TEC_OK;
}

/* Are these the texts that were encoded last? */
static bool same_texts(const struct tec_secondary_reader *r,
                       const struct tec_template_values *values)
{
    const char *at = r->said;
    bool same = r->n >= 0;
    for (int i = 0; same && i < values->n_texts; i++) {
        const struct tec_template_text *t = &values->texts[i];
        same = t->n == r->bytes[i] && memcmp(at, t->text, t->n) == 0;
        at += t->n;
    }
    return same;
}

static void keep_texts(struct tec_secondary_reader *r, const struct tec_template_values *values)
{
    char *at = r->said;
    for (int i = 0; i < values->n_texts; i++) {
        r->bytes[i] = values->texts[i].n;
        memcpy(at, values->texts[i].text, values->texts[i].n);
        at += values->texts[i].n;
    }
}

/* Encode texts into the reader's ids, unless they are those that were encoded last. The state is
 * another in every observation. What may be cut is, until all fits. */
static enum tec_status encode(struct tec_secondary_reader *r,
                              const struct tec_template_values *values, struct tec_arena *scratch,
                              struct tec_error *err)
{
    struct tec_template_values shorter = *values;
    size_t count = 0, most = (size_t)r->room;
    if (!r->template->state && same_texts(r, values))
        return TEC_OK;
    r->n = -1;
    do {
        enum tec_status status = tec_template_encode(r->template, r->of->tokenizer, &shorter,
                                                     r->ids, most, &count, scratch, err);
        if (status != TEC_OK)
            return tec_context(err, status, "%s", r->name);
    } while (count > most && tec_template_cut(&shorter, count, most));
    if (count > most)
        return tec_text_long(r->name, count, r->room, err);
    keep_texts(r, values);
    r->n = (int)count;
    return TEC_OK;
}

/* The ids of a prompt without a tokenizer: those that are given, or made up ones. */
static enum tec_status make_ids(const struct tec_secondary_reader *r,
                                const struct tec_session_streams *streams,
                                const struct tec_value *values, size_t n_values, int *ids, int *n,
                                struct tec_error *err)
{
    const struct tec_value *given = tec_texts_ids(&r->texts, values, n_values);
    int vocab = r->of->model->text.vocab;
    if (given)
        return tec_text_take_ids(r->texts.each[0].input, given, ids, n, err);
    *n = r->room;
    tec_text_make_ids(r->room, vocab, ids);
    return tec_texts_stand_in(&r->texts, streams, values, n_values, vocab, 0, ids, r->room, err);
}

/* The pictures of an observation that it reads. */
static enum tec_status see(struct tec_secondary_reader *r, const struct tec_value *values,
                           size_t n_values, const struct tec_observation *seen, int turn,
                           struct tec_prefix_input *out, struct tec_error *err)
{
    for (int k = 0; k < r->n_views; k++)
        if (seen->valid[r->views[k].slot])
            TEC_TRY(tec_session_view_make(&r->views[k], values, n_values, seen, turn,
                                          &out->picture[out->n_pictures++], err));
    return TEC_OK;
}

/* The prompt of a reader as it is without a memory. */
static enum tec_status read_plain(struct tec_secondary_reader *r,
                                  const struct tec_session_streams *streams,
                                  const struct tec_value *values, size_t n_values,
                                  const struct tec_template_values *said, int *ids, int *n,
                                  struct tec_arena *scratch, struct tec_error *err)
{
    if (!r->of->tokenizer || tec_texts_ids(&r->texts, values, n_values))
        return make_ids(r, streams, values, n_values, ids, n, err);
    TEC_TRY(encode(r, said, scratch, err));
    memcpy(ids, r->ids, (size_t)r->n * sizeof *ids);
    *n = r->n;
    return TEC_OK;
}

/* Can the prompt of segments be asked for with texts? Else with ids, given or made up. */
static bool spelt(const struct tec_secondary_reader *r, const struct tec_value *values,
                  size_t n_values)
{
    bool all = true;
    for (int i = 0; i < r->texts.n; i++)
        all &= r->texts.each[i].stream < 0 &&
               tec_text_find(values, n_values, r->texts.each[i].input->name, "");
    return (r->of->tokenizer || all) && !tec_texts_ids(&r->texts, values, n_values);
}

/* A prompt of segments. */
static enum tec_status recall(struct tec_secondary_reader *r,
                              const struct tec_session_streams *streams,
                              const struct tec_value *values, size_t n_values,
                              const struct tec_template_values *said, int turn, int *ids,
                              struct tec_chain_input *in, struct tec_arena *scratch,
                              struct tec_error *err)
{
    struct tec_memory_query query = {.session = r->session, .values = *said};
    struct tec_memory_prompt *room = &r->rooms[turn];
    if (!spelt(r, values, n_values)) {
        TEC_TRY(read_plain(r, streams, values, n_values, said, ids, &query.n, scratch, err));
        query.ids = ids;
        query.cut = !tec_texts_ids(&r->texts, values, n_values); /* then they were made up */
    }
    enum tec_status status =
        tec_memory_prompt(r->of->memory, room, &query, ids, r->of->max_text, scratch, err);
    in->prefix.n_text = status == TEC_OK ? room->n : 0;
    in->memory = room;
    return tec_context(err, status, "%s", r->name);
}

/* The prompt of a reader; n_text stays 0 where a stream has no text yet. Changes of its memory are
 * done whether there is one or not. */
static enum tec_status read_prompt(struct tec_secondary_reader *r,
                                   const struct tec_session_streams *streams,
                                   const struct tec_value *values, size_t n_values,
                                   const struct tec_observation *seen, int turn, int *ids,
                                   struct tec_chain_input *in, struct tec_arena *scratch,
                                   struct tec_error *err)
{
    struct tec_template_values said = {.bins = seen->bins, .n_bins = seen->n_bins};
    bool whole = true;
    if (r->rooms)
        TEC_TRY(tec_chain_memory_apply(r->of->memory, r->session, values, n_values, err));
    TEC_TRY(tec_texts_read(&r->texts, streams, values, n_values, &said, in, &whole, err));
    if (!whole)
        return TEC_OK;
    return r->rooms ? recall(r, streams, values, n_values, &said, turn, ids, in, scratch, err)
                    : read_plain(r, streams, values, n_values, &said, ids, &in->prefix.n_text,
                                 scratch, err);
}

static enum tec_status check_ids(const struct tec_secondary_reader *r,
                                 const struct tec_prefix_input *p, struct tec_error *err)
{
    if (p->n_text < 1)
        return tec_fail(err, TEC_INVALID, "%s: the prompt has no tokens", r->name);
    return tec_text_check(r->name, p->ids, p->n_text, r->of->model->text.vocab, err);
}

enum tec_status tec_secondary_read(struct tec_secondary_inputs *secondary,
                                   const struct tec_session_streams *streams,
                                   const struct tec_value *values, size_t n_values,
                                   const struct tec_observation *seen, int turn,
                                   int *const ids[TEC_MAX_CHAINS],
                                   struct tec_chain_input out[TEC_MAX_CHAINS],
                                   struct tec_arena *scratch, struct tec_error *err)
{
    for (int i = 0; i < secondary->n; i++) {
        struct tec_secondary_reader *r = &secondary->readers[i];
        struct tec_chain_input *in = &out[r->of->chain];
        in->prefix = (struct tec_prefix_input){.ids = ids[i]};
        TEC_TRY(read_prompt(r, streams, values, n_values, seen, turn, ids[i], in, scratch, err));
        if (in->reads[0].stream && in->prefix.n_text == 0)
            continue; /* there is no text yet */
        TEC_TRY(check_ids(r, &in->prefix, err));
        TEC_TRY(see(r, values, n_values, seen, turn, &in->prefix, err));
    }
    return TEC_OK;
}
