/* session.c - one robot's session: turns named values into a frame's input, and chunks into robot
 * actions.
 *
 * Runs on the thread that has the observation, so that a slow picture or a hostile prompt delays
 * its own session only. Inputs are prepared in TEC_SESSION_SETS sets of buffers in turn, as the
 * loop may still read the one before. The scratch of tokenizing is reserved at create for the
 * longest text. */
#include "graph/run/session/session.h"

#include "graph/run/session/session_robot.h"
#include "graph/run/session/session_state.h"

#include <stdio.h>
#include <string.h>

static size_t pixels(const struct tec_session *s, int slot)
{
    struct tec_picture_size size = tec_model_picture(s->options.model, slot);
    return (size_t)size.h * (size_t)size.w * 3;
}

static size_t picture_bytes(const struct tec_session *s, int slot)
{
    return pixels(s, slot) * (s->options.model->vision.floats ? sizeof(float) : 1);
}

static size_t chunk_size(const struct tec_session *s)
{
    const struct tec_flow *f = &s->options.model->flow;
    return (size_t)f->horizon * (size_t)f->dim;
}

/* Room for what chunk i is pulled to, where it has a guide. */
static bool give_guide(struct tec_session *s, struct tec_session_set *set, int i)
{
    if (!s->guides[i].guide)
        return true;
    set->previous[i] = TEC_NEW(&s->arena, chunk_size(s), float);
    set->pulls[i] = TEC_NEW(&s->arena, (size_t)s->options.model->flow.horizon, float);
    return set->previous[i] && set->pulls[i];
}

static bool give_set(struct tec_session *s, struct tec_session_set *set)
{
    size_t texts = s->hears ? tec_texts_longest(&s->prompt.texts) : 1;
    const struct tec_model *m = s->options.model;
    struct tec_observation *seen = &set->seen;
    size_t slots = (size_t)m->n_slots, width = (size_t)tec_model_state(m);
    seen->pictures = TEC_NEW(&s->arena, slots, uint8_t *);
    seen->pictures_f32 = s->pictures_f32;
    seen->valid = TEC_NEW(&s->arena, slots, bool);
    seen->state = TEC_NEW(&s->arena, width, float);
    seen->state_f64 = TEC_NEW(&s->arena, width, double);
    seen->state_raw = TEC_NEW(&s->arena, width, double);
    seen->bins = TEC_NEW(&s->arena, width, int);
    seen->text = TEC_NEW(&s->arena, (size_t)s->text_max + 1, char);
    set->ids = TEC_NEW(&s->arena, (size_t)tec_session_prompt_room(&s->prompt), int);
    set->texts = TEC_NEW(&s->arena, texts, char);
    set->stand_ins = TEC_NEW(&s->arena, (size_t)tec_session_stand_ins(s), int);
    set->session = s;
    bool all = seen->pictures && seen->valid && seen->state && seen->state_f64 && seen->state_raw &&
               seen->bins && seen->text && set->ids && set->texts && set->stand_ins;
    for (int i = 0; all && i < s->n_actions; i++) {
        set->noise[i] = TEC_NEW(&s->arena, chunk_size(s), float);
        all = set->noise[i] && give_guide(s, set, i);
    }
    for (size_t i = 0; all && i < slots; i++) {
        seen->pictures[i] = tec_arena_push(&s->arena, picture_bytes(s, (int)i), 1, 64);
        all = seen->pictures[i] != NULL;
    }
    return all;
}

static bool give_floats(struct tec_session *s)
{
    size_t slots = (size_t)s->options.model->n_slots;
    if (!tec_robot_floats(s->robot))
        return true;
    s->pictures_f32 = TEC_NEW(&s->arena, slots, float *);
    for (size_t i = 0; s->pictures_f32 && i < slots; i++) {
        s->pictures_f32[i] = TEC_NEW(&s->arena, pixels(s, (int)i), float);
        if (!s->pictures_f32[i])
            return false;
    }
    return s->pictures_f32 != NULL;
}

/* An arena keeps its first block when it is rewound. */
static bool reserve(struct tec_arena *arena, size_t bytes)
{
    bool there = tec_arena_push(arena, bytes, 1, 64) != NULL;
    tec_arena_rewind(arena, (struct tec_arena_mark){arena->block, 0});
    return there;
}

/* Merging pairs takes the most: 192 bytes of scratch for a byte of its text, which a normaliser may
 * have made three times as long (a space becomes three bytes). */
static bool reserve_scratch(struct tec_session *s)
{
    enum { PER_BYTE = 640, FIXED = 64 << 10, PER_BIN = 8, TEMPLATE = 1024 };
    size_t longest = tec_secondary_longest(&s->secondary), text = (size_t)s->text_max;
    text = text < longest ? longest : text;
    size_t read = tec_streams_scratch(&s->streams) + FIXED;
    size_t bytes = text + PER_BIN * (size_t)s->options.model->flow.dim + TEMPLATE;
    bool reads = s->options.tokenizer != NULL;
    for (const struct tec_session *o = s->options.joined; o; o = o->next)
        bytes += PER_BIN * (size_t)o->options.model->flow.dim;
    for (int i = 0; i < s->options.n_secondary; i++)
        reads |= s->options.secondary[i].tokenizer != NULL;
    bytes = bytes * PER_BYTE + FIXED;
    s->late_ids =
        s->hears ? TEC_NEW(&s->arena, (size_t)tec_session_prompt_room(&s->prompt), int) : NULL;
    if (reads && (!reserve(&s->scratch, bytes < read ? read : bytes) ||
                  (s->hears && !reserve(&s->late, bytes + read))))
        return false;
    s->scratch_start = (struct tec_arena_mark){s->scratch.block, 0};
    return s->late_ids || !s->hears;
}

static enum tec_status give_buffers(struct tec_session *s, struct tec_error *err)
{
    bool all = give_floats(s) && reserve_scratch(s);
    for (int i = 0; i < TEC_SESSION_SETS; i++)
        all = all && give_set(s, &s->sets[i]);
    for (int i = 0; i < TEC_SESSION_SETS; i++)
        TEC_TRY(tec_session_request_prompt_take(&s->prompts, s->sets[i].prompts, &s->arena, err));
    for (int i = 0; i < TEC_SESSION_SETS; i++)
        TEC_TRY(tec_secondary_take(&s->secondary, s->sets[i].secondary, &s->arena, err));
    return all ? TEC_OK
               : tec_fail(err, TEC_NO_MEMORY, "%s: no memory for a session", s->robot->called);
}

static enum tec_status check_options(const struct tec_session_options *o, struct tec_error *err)
{
    if (!o->pipeline || !o->model || !o->root)
        return tec_fail(err, TEC_INVALID, "session: pipeline, model or root is missing");
    if (o->max_text < (int)tec_model_reads(o->model) || o->max_text > 1 << 20)
        return tec_fail(err, TEC_INVALID, "session: max_text is %d; 1 to %d tokens", o->max_text,
                        1 << 20);
    return TEC_OK;
}

/* The chain's action nodes, and the first actions that each may be given. A chain without any has
 * noise for one, too: judges look at it. */
static enum tec_status find_actions(struct tec_session *s, struct tec_error *err)
{
    const struct tec_pipeline *p = s->options.pipeline;
    for (int i = 0; i < TEC_MAX_ACTIONS; i++) {
        const struct tec_decl_node *action = tec_pipeline_action(p, i);
        if (!action || action->chain != s->options.chain)
            continue;
        TEC_TRY(tec_given_init(&s->given[s->n_actions], p, action->prefix.index, s->robot, s->plain,
                               &s->arena, err));
        TEC_TRY(tec_guiding_init(&s->guides[s->n_actions++], p, action, s->robot, s->plain,
                                 &s->arena, err));
    }
    s->n_actions += s->n_actions == 0;
    return TEC_OK;
}

static enum tec_status fill(struct tec_session *s, struct tec_error *err)
{
    const struct tec_session_options *o = &s->options;
    TEC_TRY(tec_session_find_robot(&s->robot, &s->plain, o, &s->arena, err));
    TEC_TRY(tec_session_fit(o, s->robot, s->plain, s->heap, err));
    TEC_TRY(find_actions(s, err));
    tec_session_request_prompt_init(&s->prompts, o);
    TEC_TRY(tec_streams_init(&s->streams, o, &s->arena, err));
    TEC_TRY(tec_session_init_prompt(s, err));
    TEC_TRY(
        tec_session_make_observer(&s->observer, o, s->robot, s->text_max, &s->arena, s->heap, err));
    TEC_TRY(tec_secondary_init(s, err));
    return give_buffers(s, err);
}

enum tec_status tec_session_create(struct tec_session **out,
                                   const struct tec_session_options *options, struct tec_heap *heap,
                                   struct tec_error *err)
{
    TEC_TRY(check_options(options, err));
    struct tec_session *s = tec_heap_get(heap, sizeof *s);
    if (!s)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a session");
    s->options = *options;
    s->heap = heap;
    tec_arena_init(&s->arena, heap);
    tec_arena_init(&s->scratch, heap);
    tec_arena_init(&s->late, heap);
    enum tec_status status = fill(s, err);
    if (status != TEC_OK) {
        tec_session_destroy(s);
        return status;
    }
    *out = s;
    return TEC_OK;
}

/* The raw states of a set stand one behind the other, those of the first in front. */
enum tec_status tec_session_join(struct tec_session *session, struct tec_session *other,
                                 struct tec_error *err)
{
    struct tec_session *last = session;
    while (last->next)
        last = last->next;
    last->next = other;
    other->first_state = last->first_state + tec_model_state(last->options.model);
    for (int i = 0; i < TEC_SESSION_SETS; i++) {
        double *all = TEC_NEW(&session->arena, (size_t)tec_session_state(session) + 1, double);
        if (!all)
            return tec_fail(err, TEC_NO_MEMORY, "no memory for a session");
        for (struct tec_session *s = session; s; s = s->next)
            s->sets[i].seen.state_raw = all + s->first_state;
    }
    return TEC_OK;
}

int tec_session_state(const struct tec_session *session)
{
    int n = 0;
    for (; session; session = session->next)
        n += tec_model_state(session->options.model);
    return n;
}

struct tec_session *tec_session_of(struct tec_session *session, int chain)
{
    while (session && session->options.chain != chain)
        session = session->next;
    return session;
}

const struct tec_session *tec_session_next(const struct tec_session *session)
{
    return session->next;
}

int tec_session_chain(const struct tec_session *session)
{
    return session->options.chain;
}

static void destroy(struct tec_session *session)
{
    tec_session_prompt_drop(&session->prompt);
    tec_secondary_drop(&session->secondary);
    tec_observer_destroy(session->observer);
    tec_arena_finish(&session->scratch);
    tec_arena_finish(&session->late);
    tec_arena_finish(&session->arena);
    tec_heap_put(session->heap, session);
}

void tec_session_drop_prompts(struct tec_session *session)
{
    for (; session; session = session->next) {
        tec_session_prompt_drop(&session->prompt);
        tec_secondary_drop_prompts(&session->secondary);
    }
}

void tec_session_destroy(struct tec_session *session)
{
    while (session) {
        struct tec_session *next = session->next;
        destroy(session);
        session = next;
    }
}

/* A frame may have rows for fewer pictures than the model has slots. */
static enum tec_status check_pictures(const struct tec_session *s,
                                      const struct tec_session_set *set, struct tec_error *err)
{
    int n = 0, most = s->options.max_pictures;
    for (int i = 0; i < s->options.model->n_slots; i++)
        n += set->seen.valid[i] && !s->secondary.others[i];
    if (most > 0 && n > most)
        return tec_fail(err, TEC_INVALID,
                        "%s: %d pictures, the pipeline's kv.frame has room for %d beside the "
                        "prompt: raise its tokens by %d",
                        s->robot->called, n, most,
                        (n - most) * tec_vision_rows(&s->options.model->vision));
    return TEC_OK;
}

/* What each action node starts from: `noise`, or where that is NULL a draw of its own. Given
 * actions take the place of the first rows'; the noise of the others does not depend on how many
 * there are. */
static enum tec_status start_actions(struct tec_session *s, struct tec_session_set *set,
                                     const float *noise, int64_t frame, const int *n_fixed,
                                     struct tec_error *err)
{
    for (int i = 0; i < s->n_actions; i++) {
        if (noise)
            memcpy(set->noise[i], noise, chunk_size(s) * sizeof *noise);
        else
            tec_noise(s->options.seed, tec_noise_of_action(i), frame, set->noise[i], chunk_size(s));
        TEC_TRY(tec_guiding_start(&s->guides[i], s->observer, set->seen.state_raw,
                                  &s->options.model->flow, set->previous[i], set->pulls[i], err));
        if (n_fixed[i] == 0)
            continue;
        enum tec_status status = tec_robot_undo(s->observer, s->given[i].actions, n_fixed[i],
                                                set->seen.state_raw, set->noise[i], err);
        TEC_TRY(tec_context(err, status, "%s", s->given[i].input->name));
    }
    return TEC_OK;
}

/* Marks around the pictures, and around as many absent ones as the model has them for. */
static void surround(const struct tec_vision *v, int slots, struct tec_prefix_input *prefix)
{
    int absent = slots - prefix->n_pictures;
    if (v->n_before + v->n_behind == 0)
        return;
    prefix->n_around = prefix->n_pictures + (absent < v->blanks ? absent : v->blanks);
    prefix->around = (1U << prefix->n_pictures) - 1U;
}

static void point(struct tec_session *s, const struct tec_session_set *set, int n_text,
                  const int *n_fixed, struct tec_chain_input *input)
{
    input->prefix = (struct tec_prefix_input){.n_text = n_text, .ids = set->ids};
    for (int i = 0; i < s->n_actions; i++) {
        input->noise[i] = set->noise[i];
        input->n_fixed[i] = n_fixed[i];
        input->previous[i] = set->previous[i];
        input->pulls[i] = set->pulls[i];
        input->n_previous[i] = s->guides[i].n;
    }
    input->state = set->seen.state;
    input->memory = s->prompt.memory ? &s->prompt.remembered[s->turn] : NULL;
    if (s->hears)
        input->maker = (struct tec_prompt_maker){tec_session_hear, &s->sets[s->turn]};
    for (int i = 0; i < s->options.model->n_slots; i++)
        if (set->seen.valid[i] && !s->secondary.others[i])
            input->prefix.picture[input->prefix.n_pictures++] = set->seen.pictures[i];
    surround(&s->options.model->vision, s->options.model->n_slots, &input->prefix);
    input->prefix.state = set->seen.state;
}

void tec_session_reset(struct tec_session *session)
{
    for (; session; session = session->next)
        session->episode++;
}

void tec_session_resume(struct tec_session *session)
{
    for (; session; session = session->next)
        session->episode--;
}

void tec_session_use(struct tec_session *session, int set)
{
    for (; session; session = session->next)
        session->turn = set;
}

/* Take the newest texts of streams. A prompt that is made of texts goes to the observer. */
static enum tec_status take_texts(struct tec_session *s, const struct tec_value *values, size_t n,
                                  struct tec_template_values *said, struct tec_chain_input *in,
                                  struct tec_error *err)
{
    bool whole; /* those of frames have defaults */
    size_t bytes = 0;
    enum tec_status status = tec_streams_take(&s->streams, s->options.edges, s->options.index,
                                              s->episode, &s->scratch, err);
    tec_arena_rewind(&s->scratch, s->scratch_start);
    if (status != TEC_OK || !s->composes)
        return status;
    TEC_TRY(tec_texts_read(&s->prompt.texts, &s->streams, values, n, said, in, &whole, err));
    const char *text = tec_template_join(said, &bytes, &s->scratch);
    if (!text)
        return tec_fail(err, TEC_NO_MEMORY, "%s: no memory", s->prompt.texts.reader);
    tec_observer_say(s->observer, text, bytes);
    return TEC_OK;
}

/* Prepare the session's part of an observation. */
static enum tec_status observe(struct tec_session *s, const struct tec_value *values, size_t n,
                               const float *noise, struct tec_frame_input *out, int64_t frame,
                               struct tec_error *err)
{
    struct tec_session_set *set = &s->sets[s->turn];
    struct tec_chain_input *own = &out->chains[s->options.chain];
    struct tec_chain_prompt_parts parts = {.values = values, .n_values = n};
    int n_text = 0, n_fixed[TEC_MAX_ACTIONS] = {0};
    for (int i = 0; i < s->n_actions; i++)
        TEC_TRY(tec_given_read(&s->given[i], values, n, &n_fixed[i], err));
    for (int i = 0; i < s->n_actions; i++)
        TEC_TRY(tec_guiding_read(&s->guides[i], values, n, err));
    TEC_TRY(take_texts(s, values, n, &parts.said, own, err));
    TEC_TRY(tec_robot_observe(s->observer, values, n, &set->seen, err));
    TEC_TRY(check_pictures(s, set, err));
    TEC_TRY(tec_session_make_prompt(s, &parts, set, &n_text, own, err));
    enum tec_status status = tec_session_request_prompt_read(
        &s->prompts, values, n, (size_t)s->text_max, set->prompts, out->prompts, &s->scratch, err);
    if (status == TEC_OK)
        status = tec_secondary_read(s, values, n, out->chains, err);
    tec_arena_rewind(&s->scratch, s->scratch_start);
    TEC_TRY(status);
    tec_session_give_pictures(s, set);
    TEC_TRY(start_actions(s, set, noise, frame, n_fixed, err));
    point(s, set, n_text, n_fixed, own);
    return tec_prefix_check_marks(s->options.model, &own->prefix, err);
}

/* The same, but what another node has said stops nobody: where no prompt can be made of a text that
 * is new, the one before is read. Each such text is tried alone, so that it is known which one it
 * is; then all of them. */
static enum tec_status observe_or_keep(struct tec_session *s, const struct tec_value *values,
                                       size_t n, const float *noise, struct tec_frame_input *out,
                                       int64_t frame, struct tec_error *err)
{
    struct tec_session_streams *streams = &s->streams;
    struct tec_error first, later = {.message = ""};
    streams->observation++;
    enum tec_status status = observe(s, values, n, noise, out, frame, &first), why = status;
    bool said = why == TEC_INVALID || why == TEC_MALFORMED;
    for (int i = 0; said && status != TEC_OK && i <= streams->n; i++) {
        int stream = i < streams->n ? i : -1;
        if (!tec_streams_turn_back(streams, stream, s->episode))
            continue;
        status = observe(s, values, n, noise, out, frame, &later);
        if (status != TEC_OK)
            tec_streams_turn_back(streams, stream, s->episode);
    }
    if (status != TEC_OK) {
        if (err)
            *err = later.message[0] ? later : first;
        return status;
    }
    int stream = tec_streams_settle(streams);
    if (stream >= 0) {
        const struct tec_stream_reader *r = &streams->readers[stream];
        tec_streams_refuse(r, why, &first);
        memcpy(s->sets[s->turn].why, first.message, sizeof first.message);
        out->unread = (struct tec_unread){s->sets[s->turn].why, stream, r->before.request};
    }
    return TEC_OK;
}

/* Nobody's turn moves before all parts are there. */
enum tec_status tec_session_observe(struct tec_session *session, const struct tec_value *values,
                                    size_t n, const float *noise, int64_t frame,
                                    int64_t captured_ns, struct tec_frame_input *input,
                                    char warning[200], struct tec_error *err)
{
    struct tec_frame_input made = {.captured_ns = captured_ns, .episode = session->episode};
    for (struct tec_session *s = session; s; s = s->next)
        TEC_TRY(observe_or_keep(s, values, n, chunk_size(s) == chunk_size(session) ? noise : NULL,
                                &made, frame, err));
    for (struct tec_session *s = session; s; s = s->next)
        tec_secondary_follow(&s->secondary, made.chains);
    if (warning)
        warning[0] = '\0';
    for (struct tec_session *s = session; s; s = s->next) {
        const struct tec_session_set *set = &s->sets[s->turn];
        if (warning && !warning[0])
            memcpy(warning, set->seen.warning, sizeof set->seen.warning);
        s->last = set;
        s->turn = (s->turn + 1) % TEC_SESSION_SETS;
    }
    *input = made;
    return TEC_OK;
}

int tec_session_act_on(struct tec_session *session, const double *state_raw, const float *chunk,
                       double *out, struct tec_beyond *beyond)
{
    return tec_robot_act(session->observer, chunk, session->options.model->flow.horizon,
                         state_raw + session->first_state, out, beyond);
}

void tec_session_judge(const struct tec_session *session, const float *chunk, int row, char *out,
                       size_t room)
{
    const struct tec_flow *f = &session->options.model->flow;
    int at = 0;
    const float *of = chunk + (ptrdiff_t)row * f->dim;
    if (row >= f->horizon || tec_robot_judge_ids(session->observer, of, &at) != TEC_IDS_ENDED)
        snprintf(out, room, "is not finite");
    else
        snprintf(out, room, "ended early: token %d of %d is id %d, the end of the text", at + 1,
                 f->dim, (int)of[at]);
}
