/* session_secondary.c - reads the prompts of secondary chains: one text of an observation each, as
 * token ids, and which of its pictures they see.
 *
 * Runs on the session's thread. The last text and its ids are kept, so that an instruction that
 * stays the same from frame to frame is tokenized once. Each prompt has a key, so that the loop
 * notices a change without comparing texts. */
#include "graph/run/session_secondary.h"

#include "graph/run/memory.h"
#include "graph/run/session_robot.h"
#include "graph/run/session_text.h"

#include <string.h>
#include <xxhash.h>

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
        return tec_fail(err, TEC_NO_MEMORY, "%s: no memory", r->input->name);
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
    r->stream = o->edges ? tec_pipeline_stream(o->pipeline, of->chain) : -1;
    r->input = NULL;
    for (int i = r->node->reads.n - 1; i >= 0; i--) {
        const struct tec_decl_input *in = &o->pipeline->inputs[r->node->reads.item[i].index];
        r->input = in->kind == TEC_INPUT_TEXT ? in : r->input;
    }
    if (!r->input)
        return tec_fail(err, TEC_INVALID, "session: '%s' has no prefill of one text", chain->name);
    int pictures = 0, vision = tec_vision_rows(&r->of->model->vision);
    for (int i = 0; i < r->node->reads.n; i++)
        pictures += o->pipeline->inputs[r->node->reads.item[i].index].kind == TEC_INPUT_IMAGE;
    int room = r->input->max_tokens - pictures * vision;
    r->room = room > 0 ? (size_t)room : 0;
    r->text_max = 1024 + 8 * (size_t)r->input->max_tokens;
    r->text = TEC_NEW(arena, r->text_max, char);
    r->ids = TEC_NEW(arena, (size_t)r->input->max_tokens, int);
    r->n = -1;
    if (!r->text || !r->ids)
        return tec_fail(err, TEC_NO_MEMORY, "%s: no memory", r->input->name);
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
    for (int i = 0; i < secondary->n; i++)
        if (secondary->readers[i].text_max > most)
            most = secondary->readers[i].text_max;
    return most;
}

enum tec_status tec_secondary_take(const struct tec_secondary_inputs *secondary,
                                   int *ids[TEC_MAX_CHAINS], struct tec_arena *arena,
                                   struct tec_error *err)
{
    for (int i = 0; i < secondary->n; i++) {
        const struct tec_secondary_reader *r = &secondary->readers[i];
        int most = r->input->max_tokens;
        most = r->rooms && r->of->max_text > most ? r->of->max_text : most;
        ids[i] = TEC_NEW(arena, (size_t)most, int);
        if (!ids[i])
            return tec_fail(err, TEC_NO_MEMORY, "%s: no memory", secondary->readers[i].input->name);
    }
    return TEC_OK;
}

/* Encode a text into the reader's ids, unless it is the text that was encoded last. The state is
 * another in every observation. */
static enum tec_status encode(struct tec_secondary_reader *r, const char *text, size_t bytes,
                              const struct tec_observation *seen, struct tec_arena *scratch,
                              struct tec_error *err)
{
    const struct tec_template_values values = {text, bytes, seen->bins, seen->n_bins};
    size_t count = 0, most = (size_t)r->input->max_tokens;
    if (!r->template->state && r->n >= 0 && bytes == r->bytes && memcmp(text, r->text, bytes) == 0)
        return TEC_OK;
    r->n = -1;
    enum tec_status status = tec_template_encode(r->template, r->of->tokenizer, &values, r->ids,
                                                 most, &count, scratch, err);
    if (status != TEC_OK)
        return tec_context(err, status, "%s", r->input->name);
    if (count > most)
        return tec_text_long(r->input, count, err);
    memcpy(r->text, text, bytes);
    r->bytes = bytes;
    r->n = (int)count;
    return TEC_OK;
}

static enum tec_status read_text(struct tec_secondary_reader *r, const struct tec_value *value,
                                 const struct tec_observation *seen, int *ids, int *n,
                                 uint64_t *key, struct tec_arena *scratch, struct tec_error *err)
{
    const char *text;
    size_t bytes;
    if (!r->of->tokenizer) {
        *n = tec_text_make_ids(r->input, r->of->model->text.vocab, ids);
        *key = value ? XXH3_64bits_withSeed(value->data, value->bytes, 0) : 0;
        return TEC_OK;
    }
    TEC_TRY(tec_text_of(r->input, value, r->text_max, "a prefill reads it", &text, &bytes, err));
    TEC_TRY(encode(r, text, bytes, seen, scratch, err));
    memcpy(ids, r->ids, (size_t)r->n * sizeof *ids);
    *n = r->n;
    *key = XXH3_64bits_withSeed(text, bytes, 0);
    return TEC_OK;
}

/* Encode a version of a stream, once; it is cut until it fits. */
static enum tec_status encode_version(struct tec_secondary_reader *r, const char *text,
                                      size_t bytes, int64_t number,
                                      const struct tec_observation *seen, struct tec_arena *scratch,
                                      struct tec_error *err)
{
    if (!r->template->state && r->n >= 0 && r->number == number)
        return TEC_OK;
    size_t count = 0, most = r->room;
    if (bytes > r->text_max)
        bytes = tec_streams_cut(text, r->text_max, 1, 1);
    r->n = -1;
    do {
        bytes = count > most ? tec_streams_cut(text, bytes, count, most) : bytes;
        const struct tec_template_values values = {text, bytes, seen->bins, seen->n_bins};
        enum tec_status status = tec_template_encode(r->template, r->of->tokenizer, &values, r->ids,
                                                     most, &count, scratch, err);
        if (status != TEC_OK)
            return tec_context(err, status, "%s", r->input->name);
    } while (count > most && bytes > 0);
    if (count > most)
        return tec_text_long(r->input, count, err);
    r->number = number;
    r->n = (int)count;
    return TEC_OK;
}

/* The newest text of a stream; *n stays 0 where there is none. */
static enum tec_status read_stream(struct tec_secondary_reader *r,
                                   const struct tec_session_streams *streams,
                                   const struct tec_observation *seen, int *ids, int *n,
                                   uint64_t *key, struct tec_text_read *read,
                                   struct tec_arena *scratch, struct tec_error *err)
{
    const char *text;
    size_t bytes;
    *n = 0;
    *key = 0;
    if (!tec_streams_text(streams, r->stream, &text, &bytes, read))
        return TEC_OK;
    if (!r->of->tokenizer) {
        int vocab = r->of->model->text.vocab;
        *n = tec_text_make_ids(r->input, vocab, ids);
        *n = *n < (int)r->room ? *n : (int)r->room;
        tec_streams_ids(streams, r->stream, vocab, 0, ids, *n);
        *key = (uint64_t)tec_streams_number(streams, r->stream);
        return TEC_OK;
    }
    int64_t number = tec_streams_number(streams, r->stream);
    TEC_TRY(encode_version(r, text, bytes, number, seen, scratch, err));
    memcpy(ids, r->ids, (size_t)r->n * sizeof *ids);
    *n = r->n;
    *key = XXH3_64bits_withSeed(text, bytes, 0);
    return TEC_OK;
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

/* The prompt of a reader as it is without a memory: ids, *n 0 where there is no text yet. */
static enum tec_status
read_plain(struct tec_secondary_reader *r, const struct tec_session_streams *streams,
           const struct tec_value *values, size_t n_values, const struct tec_observation *seen,
           int *ids, struct tec_chain_input *in, struct tec_arena *scratch, struct tec_error *err)
{
    const char *name = r->input->name;
    const struct tec_value *given = tec_text_find(values, n_values, name, "#ids");
    int *n = &in->prefix.n_text;
    if (r->stream >= 0)
        return read_stream(r, streams, seen, ids, n, &in->key, &in->read, scratch, err);
    if (!given)
        return read_text(r, tec_text_find(values, n_values, name, ""), seen, ids, n, &in->key,
                         scratch, err);
    TEC_TRY(tec_text_take_ids(r->input, given, ids, n, err));
    in->key = XXH3_64bits_withSeed(given->data, given->bytes, 1);
    return TEC_OK;
}

/* What the prompt of segments asks for: a text, or ids that were given or, without a tokenizer,
 * made up. False: a stream has no text yet. */
static enum tec_status ask(struct tec_secondary_reader *r,
                           const struct tec_session_streams *streams,
                           const struct tec_value *values, size_t n_values,
                           const struct tec_observation *seen, int *ids, struct tec_chain_input *in,
                           struct tec_memory_query *q, struct tec_arena *scratch,
                           struct tec_error *err)
{
    const char *name = r->input->name, *text = "";
    const struct tec_value *said = tec_text_find(values, n_values, name, "");
    bool given = r->stream < 0 && tec_text_find(values, n_values, name, "#ids");
    size_t bytes = 0;
    if (r->stream >= 0 && !tec_streams_text(streams, r->stream, &text, &bytes, &in->read))
        return TEC_OK;
    if (r->stream < 0 && (said || (!given && r->of->tokenizer)))
        TEC_TRY(tec_text_of(r->input, said, r->text_max, "a prefill reads it", &text, &bytes, err));
    *q = (struct tec_memory_query){.session = r->session,
                                   .values = {text, bytes, seen->bins, seen->n_bins},
                                   .cut = r->stream >= 0};
    in->prefix.n_text = 1;
    in->key = XXH3_64bits_withSeed(text, bytes, 0);
    if (!given && (r->of->tokenizer || (r->stream < 0 && said)))
        return TEC_OK;
    TEC_TRY(read_plain(r, streams, values, n_values, seen, ids, in, scratch, err));
    q->ids = ids;
    q->n = in->prefix.n_text;
    return TEC_OK;
}

/* A prompt of segments. Changes of the memory are done whether there is a text or not. */
static enum tec_status recall(struct tec_secondary_reader *r,
                              const struct tec_session_streams *streams,
                              const struct tec_value *values, size_t n_values,
                              const struct tec_observation *seen, int turn, int *ids,
                              struct tec_chain_input *in, struct tec_arena *scratch,
                              struct tec_error *err)
{
    struct tec_memory_query query = {.n = 0};
    struct tec_memory_prompt *room = &r->rooms[turn];
    TEC_TRY(tec_chain_memory_apply(r->of->memory, r->session, values, n_values, err));
    TEC_TRY(ask(r, streams, values, n_values, seen, ids, in, &query, scratch, err));
    if (in->prefix.n_text == 0)
        return TEC_OK;
    enum tec_status status =
        tec_memory_prompt(r->of->memory, room, &query, ids, r->of->max_text, scratch, err);
    in->prefix.n_text = status == TEC_OK ? room->n : 0;
    in->memory = room;
    return tec_context(err, status, "%s", r->input->name);
}

static enum tec_status check_ids(const struct tec_secondary_reader *r,
                                 const struct tec_prefix_input *p, struct tec_error *err)
{
    if (p->n_text < 1)
        return tec_fail(err, TEC_INVALID, "%s: the prompt has no tokens", r->input->name);
    return tec_text_check(r->input, p->ids, p->n_text, r->of->model->text.vocab, err);
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
        if (r->rooms)
            TEC_TRY(recall(r, streams, values, n_values, seen, turn, ids[i], in, scratch, err));
        else
            TEC_TRY(read_plain(r, streams, values, n_values, seen, ids[i], in, scratch, err));
        if (r->stream >= 0 && in->prefix.n_text == 0)
            continue; /* there is no text yet */
        TEC_TRY(check_ids(r, &in->prefix, err));
        TEC_TRY(see(r, values, n_values, seen, turn, &in->prefix, err));
    }
    return TEC_OK;
}
