/* inputs.c - the named inputs of frames: values of --input NAME=VALUE, and a file with one JSON
 * object for each frame. */
#include "tools/frames/inputs.h"

#include "base/json_text.h"
#include "base/nearest.h"
#include "graph/load/pipeline_texts.h"
#include "tools/cli/lines.h"
#include "tools/frames/random_input.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_PATH = 4096, MAX_LIST = 200 };

/* One name that may be given as an input. */
struct wanted {
    const char *name;
    enum tec_input_want want;
    bool needed;
};

/* One --input: it is read once, or in every frame if its value changes by frame. */
struct word {
    const char *name, *text;
    enum tec_input_want want;
    bool moves;
    struct tec_value value;
};

struct tec_inputs {
    struct tec_heap *heap;
    struct tec_arena arena;  /* lives as long as this structure */
    struct tec_arena moment; /* lives as long as a frame */
    const struct tec_pipeline *pipeline;
    const struct tec_session *session; /* borrowed */
    uint64_t random;                   /* seed of what is not given; 0 = nothing is drawn */
    struct tec_input_files files;
    struct wanted wanted[TEC_MAX_INPUTS];
    int n_wanted;
    struct word words[TEC_MAX_INPUTS];
    int n_words;
    const char *file, *folder;
    struct tec_lines lines;
    int pick, of; /* of lists: which entry, how many there are; of 0 and 1: lines are no lists */
    int64_t frame;
    char place[MAX_PATH];
};

static void want(struct tec_inputs *in, const char *name, enum tec_input_want kind, bool needed)
{
    if (!name)
        return;
    for (int i = 0; i < in->n_wanted; i++)
        if (strcmp(in->wanted[i].name, name) == 0)
            return;
    if (in->n_wanted < TEC_MAX_INPUTS)
        in->wanted[in->n_wanted++] = (struct wanted){name, kind, needed};
}

/* Declare the inputs of prefixes: given actions and changes of a memory are optional; prompts of
 * decode nodes and of secondary models are required if they have no default. */
static void want_of_prefixes(struct tec_inputs *in, const struct tec_pipeline *p)
{
    for (int i = 0; i < p->n_inputs; i++)
        if (tec_pipeline_gives(p, i))
            want(in, p->inputs[i].name, TEC_WANT_NUMBERS, false);
    for (int i = 0; i < p->n_inputs; i++)
        if (tec_pipeline_is_prompt(p, i))
            want(in, p->inputs[i].name, TEC_WANT_TEXT, !p->inputs[i].initial);
    for (int i = 0; i < p->n_inputs; i++)
        if (p->inputs[i].kind == TEC_INPUT_SEGMENTS)
            want(in, p->inputs[i].name, TEC_WANT_TEXT, false);
    for (int i = 0; i < p->n_nodes; i++)
        for (int k = 0; k < p->nodes[i].reads.n && !p->nodes[i].culled; k++) {
            const struct tec_decl_input *input = &p->inputs[p->nodes[i].reads.item[k].index];
            if (!tec_pipeline_in_frames(p, &p->nodes[i]) && input->kind == TEC_INPUT_TEXT &&
                input->writer == 0)
                want(in, input->name, TEC_WANT_TEXT, !input->initial);
        }
}

static void want_of_robot(struct tec_inputs *in, const struct tec_session *session)
{
    const struct tec_robot *r = tec_session_robot(session);
    const struct tec_pipeline *p = in->pipeline;
    int chain = tec_session_chain(session), texts[TEC_MAX_TEXTS];
    bool composes = tec_pipeline_composes(p, chain);
    int n = composes ? tec_pipeline_texts(p, chain, texts) : 0;
    for (int i = 0; i < r->n_cameras; i++)
        want(in, r->cameras[i].input, TEC_WANT_PICTURE, !r->cameras[i].optional);
    for (int i = 0; i < r->n_parts; i++)
        want(in, r->parts[i].input, TEC_WANT_NUMBERS, true);
    for (int i = 0; i < n; i++) {
        const struct tec_decl_input *text = &p->inputs[texts[i]];
        bool prompt = strcmp(text->name, r->prompt_input) == 0;
        if (text->writer == 0)
            want(in, text->name, TEC_WANT_TEXT, !text->initial && !(prompt && r->default_prompt));
    }
    want(in, tec_session_prompt_key(session), TEC_WANT_TEXT, !r->default_prompt && !composes);
    for (int i = 0; i < r->n_ignored; i++)
        want(in, r->ignored[i], TEC_WANT_PICTURE, false);
}

static void want_of_pipeline(struct tec_inputs *in, const struct tec_pipeline *p)
{
    static const enum tec_input_want kinds[] = {[TEC_INPUT_IMAGE] = TEC_WANT_PICTURE,
                                                [TEC_INPUT_TENSOR] = TEC_WANT_NUMBERS,
                                                [TEC_INPUT_TEXT] = TEC_WANT_TEXT,
                                                [TEC_INPUT_SEGMENTS] = TEC_WANT_TEXT};
    for (int i = 0; i < p->n_inputs; i++)
        want(in, p->inputs[i].name, kinds[p->inputs[i].kind],
             !p->inputs[i].optional && p->inputs[i].kind != TEC_INPUT_TEXT &&
                 p->inputs[i].kind != TEC_INPUT_SEGMENTS);
}

/* List the wanted names as "image, wrist_image, state, prompt". */
static const char *list_wanted(const struct tec_inputs *in, char text[MAX_LIST + 80])
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < in->n_wanted && used < MAX_LIST; i++)
        used += (size_t)snprintf(text + used, 70, "%s%.50s%s", i ? ", " : "", in->wanted[i].name,
                                 in->wanted[i].needed ? "" : " (optional)");
    return text;
}

/* Find the wanted input by NAME, or by "NAME#ids" for a text given as token ids. */
static enum tec_status find_wanted(const struct tec_inputs *in, const char *name,
                                   enum tec_input_want *kind, struct tec_error *err)
{
    const char *names[TEC_MAX_INPUTS];
    char list[MAX_LIST + 80];
    size_t n = strlen(name);
    bool ids = n > 4 && strcmp(name + n - 4, "#ids") == 0;
    for (int i = 0; i < in->n_wanted; i++) {
        const struct wanted *w = &in->wanted[i];
        bool bare = ids && w->want == TEC_WANT_TEXT && strlen(w->name) == n - 4 &&
                    strncmp(w->name, name, n - 4) == 0;
        names[i] = w->name;
        if (bare || strcmp(w->name, name) == 0) {
            *kind = bare ? TEC_WANT_IDS : w->want;
            return TEC_OK;
        }
    }
    const char *near = tec_nearest(name, names, in->n_wanted);
    return tec_fail(err, TEC_NOT_FOUND, "there is no input '%.60s'%s; the pipeline wants %s", name,
                    tec_meant(';', near).text, list_wanted(in, list));
}

static enum tec_status check_missing(const struct tec_inputs *in,
                                     const struct tec_inputs_frame *frame, struct tec_error *err)
{
    char list[MAX_LIST + 80];
    for (int i = 0; i < in->n_wanted; i++) {
        const char *name = in->wanted[i].name;
        size_t n = strlen(name);
        bool there = !in->wanted[i].needed;
        for (size_t v = 0; v < frame->n && !there; v++)
            there = strncmp(frame->values[v].name, name, n) == 0 &&
                    (frame->values[v].name[n] == '\0' ||
                     (in->wanted[i].want == TEC_WANT_TEXT &&
                      strcmp(frame->values[v].name + n, "#ids") == 0));
        if (!there)
            return tec_fail(err, TEC_NOT_FOUND, "input '%.60s' is missing; the pipeline wants %s%s",
                            name, list_wanted(in, list),
                            frame->n > 0 ? "" : ": --input, --inputs or --random-inputs gives it");
    }
    return TEC_OK;
}

static struct tec_value *slot_of(struct tec_inputs_frame *frame, const char *name)
{
    for (size_t i = 0; i < frame->n; i++)
        if (strcmp(frame->values[i].name, name) == 0)
            return &frame->values[i];
    if (frame->n == TEC_MAX_INPUTS)
        return NULL;
    frame->values[frame->n] = (struct tec_value){.name = name};
    return &frame->values[frame->n++];
}

/* Put the values of --input; only those that change by frame are read anew in this frame. */
static enum tec_status put_words(struct tec_inputs *in, struct tec_inputs_frame *frame,
                                 struct tec_error *err)
{
    const struct tec_input_where where = {&in->files, NULL, in->frame, &in->moment};
    for (int i = 0; i < in->n_words; i++) {
        struct word *w = &in->words[i];
        struct tec_value *value = slot_of(frame, w->name);
        if (!value)
            return tec_fail(err, TEC_UNSUPPORTED, "more than %d inputs", TEC_MAX_INPUTS);
        if (w->moves)
            TEC_TRY(tec_context(err,
                                tec_input_words(&w->value, w->want, w->text, strlen(w->text),
                                                &where, &frame->ended, err),
                                "--input %s", w->name));
        *value = w->value;
        value->name = w->name;
    }
    return TEC_OK;
}

static enum tec_status put_member(struct tec_inputs *in, struct tec_inputs_frame *frame,
                                  const char *name, const json_t *json, struct tec_error *err)
{
    const struct tec_input_where where = {&in->files, in->folder, in->frame, &in->moment};
    enum tec_input_want kind = TEC_WANT_TEXT;
    TEC_TRY(find_wanted(in, name, &kind, err));
    struct tec_value *value = slot_of(frame, name);
    if (!value)
        return tec_fail(err, TEC_UNSUPPORTED, "more than %d inputs", TEC_MAX_INPUTS);
    enum tec_status status;
    if (json_is_string(json))
        status = tec_input_words(value, kind, json_string_value(json), json_string_length(json),
                                 &where, &frame->ended, err);
    else if (json_is_number(json) || json_is_array(json))
        status = tec_input_array(value, kind, json, &in->moment, err);
    else
        status = tec_fail(err, TEC_MALFORMED, "a value is a text, a number or an array");
    value->name = name;
    return tec_context(err, status, "%.60s", name);
}

/* Put a member that is present; its name is kept as long as the frame. */
static enum tec_status put_named(struct tec_inputs *in, struct tec_inputs_frame *frame,
                                 const char *name, const json_t *json, struct tec_error *err)
{
    if (json_is_null(json))
        return TEC_OK;
    if (!name)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a name");
    return put_member(in, frame, name, json, err);
}

/* Put the members of an inner object under its name, a slash and their own names. */
static enum tec_status put_inner(struct tec_inputs *in, struct tec_inputs_frame *frame,
                                 const char *outer, json_t *object, struct tec_error *err)
{
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        const char *name = tec_arena_printf(&in->moment, "%s/%s", outer, key);
        TEC_TRY(put_named(in, frame, name, value, err));
    }
    return TEC_OK;
}

static bool is_memory(const struct tec_inputs *in, const char *name)
{
    for (int i = 0; i < in->pipeline->n_inputs; i++)
        if (in->pipeline->inputs[i].kind == TEC_INPUT_SEGMENTS &&
            strcmp(in->pipeline->inputs[i].name, name) == 0)
            return true;
    return false;
}

/* Changes of a memory are a JSON object themselves; the session reads them as text. */
static enum tec_status put_changes(struct tec_inputs *in, struct tec_inputs_frame *frame,
                                   const char *name, const json_t *object, struct tec_error *err)
{
    char *text = tec_json_whole(object, JSON_COMPACT);
    json_t *json = text ? json_string(text) : NULL;
    enum tec_status status =
        json ? put_named(in, frame, tec_arena_strdup(&in->moment, name), json, err)
             : tec_fail(err, TEC_NO_MEMORY, "%s: no memory for its changes", name);
    json_decref(json);
    free(text); /* jansson allocated it */
    return status;
}

static enum tec_status put_object(struct tec_inputs *in, struct tec_inputs_frame *frame,
                                  json_t *object, struct tec_error *err)
{
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        if (tec_input_is_ask(key))
            TEC_TRY(tec_input_asks_read(&frame->asks, key, value, in->pipeline, err));
        else if (json_is_object(value) && is_memory(in, key))
            TEC_TRY(put_changes(in, frame, key, value, err));
        else if (json_is_object(value))
            TEC_TRY(put_inner(in, frame, key, value, err));
        else
            TEC_TRY(put_named(in, frame, tec_arena_strdup(&in->moment, key), value, err));
    }
    return TEC_OK;
}

static enum tec_status put_line(struct tec_inputs *in, struct tec_inputs_frame *frame,
                                struct tec_error *err)
{
    json_t *line = NULL;
    TEC_TRY(tec_input_json(&line, in->lines.text, in->lines.n, err));
    enum tec_status status = TEC_OK;
    bool list = in->of > 1 && json_array_size(line) == (size_t)in->of;
    json_t *json = list ? json_array_get(line, (size_t)in->pick) : line;
    frame->none = json_is_null(json);
    if (json_is_object(json))
        status = put_object(in, frame, json, err);
    else if (in->of > 1 && json_is_array(line) && !list)
        status = tec_fail(err, TEC_MALFORMED, "a frame of %d sessions is a list of %d, not of %zu",
                          in->of, in->of, json_array_size(line));
    else if (!frame->none)
        status = tec_fail(err, TEC_MALFORMED,
                          "a frame is an object {\"NAME\": value, ...}, or null for none");
    json_decref(line);
    return status;
}

/* Read the next line that is not blank. */
static enum tec_status next_line(struct tec_inputs *in, bool *more, struct tec_error *err)
{
    do {
        TEC_TRY(tec_context(err, tec_lines_next(&in->lines, more, err), "%s", in->file));
    } while (*more && strspn(in->lines.text, " \t") == in->lines.n);
    snprintf(in->place, sizeof in->place, "%s:%lld", in->file, (long long)in->lines.number);
    return TEC_OK;
}

/* Whether the frame has a value of that name; a text may be given as token ids. */
static bool is_given(const struct tec_inputs_frame *frame, const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; i < frame->n; i++)
        if (strncmp(frame->values[i].name, name, n) == 0 &&
            (frame->values[i].name[n] == '\0' || strcmp(frame->values[i].name + n, "#ids") == 0))
            return true;
    return false;
}

/* Draw the inputs that are not given. A frame's values depend on the seed and its number alone;
 * texts and changes of a memory stay for TEXT_FRAMES frames, as instructions do. */
static enum tec_status put_random(struct tec_inputs *in, struct tec_inputs_frame *frame,
                                  struct tec_error *err)
{
    enum { TEXT_FRAMES = 10, PROMPT_TOKENS = 12, IDS_OF_ANY_MODEL = 256 };
    const uint64_t golden = UINT64_C(0x9E3779B97F4A7C15);
    const struct tec_random_sizes sizes = {tec_session_picture_side(in->session), PROMPT_TOKENS,
                                           IDS_OF_ANY_MODEL};
    struct tec_value drawn[2][TEC_MAX_INPUTS];
    int64_t texts = in->frame / TEXT_FRAMES;
    const uint64_t states[2] = {in->random + golden * (uint64_t)(in->frame + 1),
                                in->random + golden * (uint64_t)(texts + 1)};
    size_t n = 0;
    for (int i = 0; i < 2; i++) {
        uint64_t state = states[i];
        TEC_TRY(tec_random_inputs(drawn[i], TEC_MAX_INPUTS, &n, in->pipeline, in->session, sizes,
                                  &state, &in->moment, err));
    }
    for (size_t i = 0; i < n; i++) {
        enum tec_input_kind kind = in->pipeline->inputs[i].kind;
        bool text = kind == TEC_INPUT_TEXT || kind == TEC_INPUT_SEGMENTS;
        if (is_given(frame, text ? in->pipeline->inputs[i].name : drawn[text][i].name) ||
            frame->n == TEC_MAX_INPUTS || (kind == TEC_INPUT_SEGMENTS && in->frame % TEXT_FRAMES))
            continue;
        frame->values[frame->n++] = drawn[text][i];
    }
    return TEC_OK;
}

static enum tec_status read_frame(struct tec_inputs *in, struct tec_inputs_frame *frame,
                                  struct tec_error *err)
{
    bool more = true;
    TEC_TRY(put_words(in, frame, err));
    if (in->file && !frame->ended) {
        TEC_TRY(next_line(in, &more, err));
        frame->ended = !more;
        if (more)
            TEC_TRY(tec_context(err, put_line(in, frame, err), "%.180s", in->place));
    }
    if (frame->ended || frame->none)
        return TEC_OK;
    if (in->random)
        TEC_TRY(put_random(in, frame, err));
    return tec_context(err, check_missing(in, frame, err), "%.180s", in->place);
}

enum tec_status tec_inputs_next(struct tec_inputs *in, struct tec_inputs_frame *frame,
                                struct tec_error *err)
{
    tec_arena_finish(&in->moment);
    frame->ended = frame->none = false;
    frame->n = 0;
    frame->asks.n_asks = frame->asks.n_cancels = 0;
    enum tec_status status = read_frame(in, frame, err);
    in->frame++;
    return status;
}

const char *tec_inputs_place(const struct tec_inputs *in)
{
    return in->place;
}

bool tec_inputs_endless(const struct tec_inputs *in)
{
    bool moves = in->file != NULL;
    for (int i = 0; i < in->n_words; i++)
        moves |= in->words[i].moves;
    return !moves;
}

static enum tec_status add_word(struct tec_inputs *in, const char *text, struct tec_error *err)
{
    const char *equals = strchr(text, '=');
    if (!equals || equals == text)
        return tec_fail(err, TEC_INVALID, "--input: '%s' is not NAME=VALUE", text);
    if (in->n_words == TEC_MAX_INPUTS)
        return tec_fail(err, TEC_INVALID, "--input: more than %d", TEC_MAX_INPUTS);
    struct word *w = &in->words[in->n_words++];
    w->name = tec_arena_strndup(&in->arena, text, (size_t)(equals - text));
    w->text = tec_arena_strdup(&in->arena, equals + 1);
    if (!w->name || !w->text)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for an input");
    for (int i = 0; i + 1 < in->n_words; i++)
        if (strcmp(in->words[i].name, w->name) == 0)
            return tec_fail(err, TEC_INVALID, "--input %s: given twice", w->name);
    const struct tec_input_where where = {&in->files, NULL, 0, &in->arena};
    TEC_TRY(tec_context(err, find_wanted(in, w->name, &w->want, err), "--input"));
    w->moves = w->text[0] == '@' && tec_input_moves(w->text);
    if (w->moves)
        return TEC_OK;
    return tec_context(
        err, tec_input_words(&w->value, w->want, w->text, strlen(w->text), &where, NULL, err),
        "--input %s", w->name);
}

static enum tec_status open_file(struct tec_inputs *in, const char *file, struct tec_error *err)
{
    in->file = tec_arena_strdup(&in->arena, file);
    const char *slash = strrchr(file, '/');
    in->folder = slash ? tec_arena_strndup(&in->arena, file, (size_t)(slash - file) + 1) : "";
    if (!in->file || !in->folder)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a path");
    in->lines.heap = in->heap;
    return tec_context(err, tec_lines_open(&in->lines, file, err), "--inputs");
}

enum tec_status tec_inputs_open(struct tec_inputs **out, const struct tec_session *session,
                                const struct tec_pipeline *pipeline, const struct tec_words *words,
                                const char *file, struct tec_heap *heap, struct tec_error *err)
{
    struct tec_inputs *in = tec_heap_get(heap, sizeof *in);
    enum tec_status status = TEC_OK;
    if (!in)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for inputs");
    in->heap = in->files.heap = heap;
    in->pipeline = pipeline;
    in->session = session;
    tec_arena_init(&in->arena, heap);
    tec_arena_init(&in->moment, heap);
    snprintf(in->place, sizeof in->place, "--input");
    want_of_prefixes(in, pipeline);
    for (const struct tec_session *s = session; s; s = tec_session_next(s))
        if (tec_session_robot(s))
            want_of_robot(in, s);
        else
            want_of_pipeline(in, pipeline);
    for (int i = 0; words && i < words->n && status == TEC_OK; i++)
        status = add_word(in, words->item[i], err);
    if (file && status == TEC_OK)
        status = open_file(in, file, err);
    if (status != TEC_OK) {
        tec_inputs_close(in);
        return status;
    }
    *out = in;
    return TEC_OK;
}

void tec_inputs_draw(struct tec_inputs *in, uint64_t seed)
{
    in->random = 2 * seed + 1;
}

void tec_inputs_pick(struct tec_inputs *in, int at, int n)
{
    in->pick = at;
    in->of = n;
}

void tec_inputs_close(struct tec_inputs *in)
{
    if (!in)
        return;
    FILE *file = in->lines.in;
    tec_lines_finish(&in->lines);
    if (file)
        fclose(file);
    tec_input_files_finish(&in->files);
    tec_arena_finish(&in->moment);
    tec_arena_finish(&in->arena);
    tec_heap_put(in->heap, in);
}
