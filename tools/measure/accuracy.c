/* accuracy.c - runs the same frames twice, as a pipeline says and in float32, and compares.
 *
 * One engine is open at a time, so that a model which fits once is enough. What the first run gave
 * is kept: chunks of actions by node and observation, texts by request. */
#include "tools/measure/accuracy.h"

#include "tools/record/recorded.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DRAWN_FRAMES = 8 };

/* A chunk of actions that has left. */
struct kept_chunk {
    int session, action;
    int64_t seen;
    int rows, columns;
    const double *values; /* [rows, columns] */
    bool met;
    struct kept_chunk *next;
};

/* A text, as long as it is now. */
struct kept_text {
    int session;
    int64_t request;
    int n, room;
    int *tokens;
    bool done, met;
    struct kept_text *next;
};

/* What came of one run. */
struct kept {
    struct kept_chunk *chunks, *last_chunk;
    struct kept_text *texts, *last_text;
    int64_t frames, observed;
    int n_actions;
    const char *actions[TEC_MAX_ACTIONS];
};

struct job {
    const struct tec_accuracy_options *o;
    struct tec_invocation *call;
    struct tec_arena *arena;
    struct tec_frames frames;
    struct tec_inputs *inputs[TEC_MAX_SESSIONS];
    struct tec_inputs_frame given[TEC_MAX_SESSIONS];
    struct tec_mcap_reader file;
    struct tec_recorded recorded;
};

/* --- what a run gives ------------------------------------------------------------------------- */

static enum tec_status no_memory(struct tec_error *err)
{
    return tec_fail(err, TEC_NO_MEMORY, "no memory for what a run gave");
}

static enum tec_status keep_chunk(struct job *job, struct kept *kept, int session,
                                  const struct tec_frame_left *left, struct tec_error *err)
{
    size_t n = (size_t)left->rows * (size_t)left->columns;
    struct kept_chunk *c = TEC_NEW(job->arena, 1, struct kept_chunk);
    double *values = TEC_NEW(job->arena, n + 1, double);
    if (!c || !values)
        return no_memory(err);
    if (n)
        memcpy(values, left->actions, n * sizeof *values);
    *c = (struct kept_chunk){.session = session,
                             .action = left->action,
                             .seen = left->seen,
                             .rows = left->rows,
                             .columns = left->columns,
                             .values = values};
    if (kept->last_chunk)
        kept->last_chunk->next = c;
    else
        kept->chunks = c;
    kept->last_chunk = c;
    return TEC_OK;
}

static struct kept_text *find_text(const struct kept *kept, int session, int64_t request)
{
    struct kept_text *t = kept->texts;
    while (t && (t->session != session || t->request != request))
        t = t->next;
    return t;
}

static enum tec_status keep_text(struct job *job, struct kept *kept,
                                 const struct tec_frame_text *text, struct tec_error *err)
{
    struct kept_text *t = find_text(kept, text->session, text->request);
    if (!t) {
        t = TEC_NEW(job->arena, 1, struct kept_text);
        if (!t)
            return no_memory(err);
        *t = (struct kept_text){.session = text->session, .request = text->request};
        if (kept->last_text)
            kept->last_text->next = t;
        else
            kept->texts = t;
        kept->last_text = t;
    }
    if (text->n_whole > t->room) {
        t->room = 2 * text->n_whole;
        t->tokens = TEC_NEW(job->arena, (size_t)t->room, int);
        if (!t->tokens)
            return no_memory(err);
    }
    if (text->n_whole > 0)
        memcpy(t->tokens, text->all, (size_t)text->n_whole * sizeof *t->tokens);
    t->n = text->n_whole;
    t->done = text->done;
    return TEC_OK;
}

static enum tec_status keep_frame(struct job *job, struct kept *kept, struct tec_error *err)
{
    const struct tec_frames *f = &job->frames;
    for (int i = 0; i < f->n_sessions; i++) {
        const struct tec_frame_out *out = &f->sessions[i].out;
        kept->observed += out->observed;
        for (int k = 0; k < out->n_left; k++)
            if (out->left[k].chunk)
                TEC_TRY(keep_chunk(job, kept, i, &out->left[k], err));
        for (int k = 0; k < out->n_texts; k++)
            TEC_TRY(keep_text(job, kept, &out->texts[k], err));
    }
    kept->frames++;
    return TEC_OK;
}

/* --- the frames ------------------------------------------------------------------------------- */

static bool is_recording(const struct tec_accuracy_options *o)
{
    size_t n = o->inputs ? strlen(o->inputs) : 0;
    return n > 5 && strcmp(o->inputs + n - 5, ".mcap") == 0;
}

/* A tick of a recording, with the values that were there for it. */
static enum tec_status run_tick(struct job *job, const struct tec_recorded_frame *tick,
                                struct kept *kept, struct tec_error *err)
{
    struct tec_frames *f = &job->frames;
    const struct tec_flow *flow = tec_engine_flow(f->opened.engine, 0);
    const struct tec_frame_again *again = &tick->again;
    if (again->session != 0)
        return tec_fail(err, TEC_MALFORMED, "there is no session %d", again->session);
    if (again->noise && tick->n_noise != (size_t)flow->horizon * (size_t)flow->dim)
        return tec_fail(err, TEC_MALFORMED, "its noise is not that of this model");
    if (tick->reset != TEC_RESET_NONE)
        tec_frames_reset(f);
    tec_frames_ask(f, 0, &tick->asks);
    TEC_TRY(tec_frames_again(f, again, 1, err));
    return keep_frame(job, kept, err);
}

static enum tec_status run_recording(struct job *job, int most, struct kept *kept,
                                     struct tec_error *err)
{
    if (job->frames.n_sessions > 1)
        return tec_fail(err, TEC_UNSUPPORTED,
                        "--inputs: a recording of one session in this release, there are %d",
                        job->frames.n_sessions);
    TEC_TRY(tec_mcap_read(&job->file, job->o->inputs, err));
    tec_recorded_init(&job->recorded, &job->file, job->call->heap);
    for (bool more = true; more && kept->frames < most;) {
        enum tec_recorded_message what;
        struct tec_recorded_frame tick;
        json_t *json = NULL;
        char node[120];
        TEC_TRY(tec_recorded_next(&job->recorded, &what, &tick, &json, node, &more, err));
        json_decref(json);
        if (more && what == TEC_RECORDED_TICK)
            TEC_TRY(tec_context(err, run_tick(job, &tick, kept, err), "%.180s: frame %lld",
                                job->o->inputs, (long long)tick.again.number));
    }
    return TEC_OK;
}

static enum tec_status open_inputs(struct job *job, struct tec_error *err)
{
    static const struct tec_words none = {0};
    const struct tec_engine *e = job->frames.opened.engine;
    for (int i = 0; i < job->frames.n_sessions; i++) {
        TEC_TRY(tec_inputs_open(&job->inputs[i], e->sessions[i], job->frames.opened.pipeline, &none,
                                job->o->inputs, job->call->heap, err));
        if (!job->o->inputs)
            tec_inputs_draw(job->inputs[i], job->o->seed + (uint64_t)i);
        tec_inputs_pick(job->inputs[i], i, job->frames.n_sessions);
    }
    return TEC_OK;
}

/* Lines of a file, or what is drawn. */
static enum tec_status run_inputs(struct job *job, int most, struct kept *kept,
                                  struct tec_error *err)
{
    TEC_TRY(open_inputs(job, err));
    while (kept->frames < most) {
        struct tec_frame_given given[TEC_MAX_SESSIONS] = {0};
        for (int i = 0; i < job->frames.n_sessions; i++) {
            struct tec_inputs_frame *in = &job->given[i];
            TEC_TRY(tec_inputs_next(job->inputs[i], in, err));
            if (in->ended)
                return TEC_OK;
            given[i] = (struct tec_frame_given){in->none ? NULL : in->values, in->n};
            tec_frames_ask(&job->frames, i, &in->asks);
        }
        int failed = 0;
        TEC_TRY(tec_context(err, tec_frames_next_of_all(&job->frames, given, NULL, &failed, err),
                            "%.180s", tec_inputs_place(job->inputs[failed])));
        TEC_TRY(keep_frame(job, kept, err));
    }
    return TEC_OK;
}

static enum tec_status run_open(struct job *job, struct kept *kept, struct tec_error *err)
{
    const struct tec_frames *f = &job->frames;
    int most = job->o->frames ? job->o->frames : job->o->inputs ? INT32_MAX : DRAWN_FRAMES;
    kept->n_actions = f->n_actions;
    for (int i = 0; i < f->n_actions; i++)
        if (!(kept->actions[i] = tec_arena_strdup(job->arena, f->actions[i])))
            return no_memory(err);
    return is_recording(job->o) ? run_recording(job, most, kept, err)
                                : run_inputs(job, most, kept, err);
}

/* One run from the start. */
static enum tec_status run_once(struct job *job, bool exact, struct kept *kept,
                                struct tec_error *err)
{
    const struct tec_engine_options more = {
        .dtype = exact ? "f32" : NULL, .exact = exact, .forgets = true, .settles = true};
    enum tec_status status = tec_frames_open(&job->frames, job->call, job->o->pipeline, &more, err);
    if (status == TEC_OK)
        status = run_open(job, kept, err);
    if (status != TEC_OK && exact)
        status = tec_context(err, status, "in float32");
    for (int i = 0; i < TEC_MAX_SESSIONS; i++) {
        tec_inputs_close(job->inputs[i]);
        job->inputs[i] = NULL;
    }
    if (job->recorded.file)
        tec_recorded_finish(&job->recorded);
    tec_mcap_read_close(&job->file);
    tec_frames_close(&job->frames);
    memset(&job->frames, 0, sizeof job->frames);
    memset(&job->file, 0, sizeof job->file);
    memset(&job->recorded, 0, sizeof job->recorded);
    return status;
}

/* --- comparison ------------------------------------------------------------------------------- */

/* The chunk of the same observation; runs are alike, so it is mostly where the search begins. */
static struct kept_chunk *meet_chunk(const struct kept *in, const struct kept_chunk *of,
                                     struct kept_chunk *from)
{
    struct kept_chunk *c = from ? from : in->chunks;
    for (int turn = 0; turn < 2; turn++, c = in->chunks)
        for (; c; c = c->next)
            if (!c->met && c->session == of->session && c->action == of->action &&
                c->seen == of->seen && c->columns == of->columns)
                return c;
    return NULL;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* A pair of chunks of an action: rows that both have. */
struct pair {
    const struct kept_chunk *one, *exact;
    int rows;
    struct pair *next;
};

static void compare_element(struct tec_accuracy_element *out, const struct pair *pairs, int column,
                            double *sizes)
{
    size_t n = 0;
    *out = (struct tec_accuracy_element){.low = (double)INFINITY, .high = -(double)INFINITY};
    for (const struct pair *p = pairs; p; p = p->next)
        for (int r = 0; r < p->rows; r++) {
            double want = p->exact->values[r * p->exact->columns + column];
            double size = fabs(p->one->values[r * p->one->columns + column] - want);
            sizes[n++] = size;
            out->rms += size * size;
            out->low = want < out->low ? want : out->low;
            out->high = want > out->high ? want : out->high;
        }
    qsort(sizes, n, sizeof *sizes, by_size);
    out->rms = sqrt(out->rms / (double)n);
    out->largest = sizes[n - 1];
    out->p99 = sizes[(n * 99 + 99) / 100 - 1];
}

static enum tec_status compare_action(struct tec_accuracy_action *out, struct kept *one,
                                      struct kept *exact, int action, struct tec_arena *arena,
                                      struct tec_error *err)
{
    struct pair *pairs = NULL;
    struct kept_chunk *at = NULL;
    *out = (struct tec_accuracy_action){.node = one->actions[action]};
    for (struct kept_chunk *c = one->chunks; c; c = c->next) {
        struct kept_chunk *with = c->action == action ? meet_chunk(exact, c, at) : NULL;
        if (!with)
            continue;
        int rows = c->rows < with->rows ? c->rows : with->rows;
        struct pair *p = TEC_NEW(arena, 1, struct pair);
        if (!p)
            return no_memory(err);
        *p = (struct pair){c, with, rows, pairs};
        pairs = p;
        at = with->next;
        c->met = with->met = true;
        out->n_elements = c->columns;
        out->chunks++;
        out->rows += rows;
    }
    if (out->rows == 0)
        return TEC_OK;
    out->elements = TEC_NEW(arena, (size_t)out->n_elements, struct tec_accuracy_element);
    double *sizes = TEC_NEW(arena, (size_t)out->rows, double);
    if (!out->elements || !sizes)
        return no_memory(err);
    for (int i = 0; i < out->n_elements; i++)
        compare_element(&out->elements[i], pairs, i, sizes);
    return TEC_OK;
}

/* Tokens place by place; of a text that has not ended in both, as far as both are. */
static void compare_text(struct tec_accuracy *out, const struct kept_text *a,
                         const struct kept_text *b)
{
    bool done = a->done && b->done;
    int less = a->n < b->n ? a->n : b->n, more = a->n > b->n ? a->n : b->n, equal = 0;
    for (int i = 0; i < less; i++)
        equal += a->tokens[i] == b->tokens[i];
    out->texts++;
    out->texts_equal += equal == (done ? more : less);
    out->tokens += done ? more : less;
    out->tokens_equal += equal;
}

static enum tec_status compare(struct tec_accuracy *out, struct kept *one, struct kept *exact,
                               struct tec_arena *arena, struct tec_error *err)
{
    *out = (struct tec_accuracy){
        .frames = one->frames, .observed = one->observed, .n_actions = one->n_actions};
    for (int i = 0; i < one->n_actions; i++)
        TEC_TRY(compare_action(&out->actions[i], one, exact, i, arena, err));
    for (struct kept_text *t = one->texts; t; t = t->next) {
        struct kept_text *with = find_text(exact, t->session, t->request);
        if (!with)
            continue;
        t->met = with->met = true;
        compare_text(out, t, with);
    }
    const struct kept *both[] = {one, exact};
    for (int i = 0; i < 2; i++) {
        for (const struct kept_chunk *c = both[i]->chunks; c; c = c->next)
            out->alone += !c->met;
        for (const struct kept_text *t = both[i]->texts; t; t = t->next)
            out->alone += !t->met;
    }
    return TEC_OK;
}

enum tec_status tec_accuracy_run(struct tec_accuracy *out, struct tec_invocation *call,
                                 const struct tec_accuracy_options *options,
                                 struct tec_arena *arena, struct tec_error *err)
{
    struct kept one = {0}, exact = {0};
    struct job *job = TEC_NEW(arena, 1, struct job);
    if (!job)
        return no_memory(err);
    memset(job, 0, sizeof *job);
    job->o = options;
    job->call = call;
    job->arena = arena;
    TEC_TRY(run_once(job, false, &one, err));
    TEC_TRY(run_once(job, true, &exact, err));
    return compare(out, &one, &exact, arena, err);
}

double tec_accuracy_largest(const struct tec_accuracy *a)
{
    double most = 0.0;
    for (int i = 0; i < a->n_actions; i++)
        for (int k = 0; a->actions[i].elements && k < a->actions[i].n_elements; k++)
            if (!(a->actions[i].elements[k].largest <= most)) /* a NaN is the largest */
                most = a->actions[i].elements[k].largest;
    return most;
}

bool tec_accuracy_whole(const struct tec_accuracy *a)
{
    bool whole = a->n_actions > 0 || a->texts > 0;
    for (int i = 0; i < a->n_actions; i++)
        whole &= a->actions[i].rows > 0;
    return whole;
}
