/* request.c - reads one message of a client: the observation as named values, and the options of
 * its `tectum` map. */
#include "tools/serve/request.h"

#include "base/nearest.h"

#include <limits.h>
#include <string.h>

enum {
    MAX_NAME = TEC_REQUEST_NAME,
    MAX_DEADLINE_MS = 1000000000,
    NOISE = 1 << 16
}; /* NOISE: most of it */

#define OPTIONS \
    "seed, noise, tasks, session_id, deadline_ms, ask, obs_ts, reset, timing, texts, push"

static const char *const option_names[] = {"seed",        "noise", "tasks",  "session_id",
                                           "deadline_ms", "ask",   "obs_ts", "reset",
                                           "timing",      "texts", "push"};
enum { N_OPTIONS = sizeof option_names / sizeof option_names[0] };

/* A map that is being read; the maps around it are kept too. */
struct level {
    const char *name; /* ends in a slash; "" for the message itself */
    uint32_t left;    /* pairs left to read */
};

struct reading {
    struct tec_request_message *out;
    struct tec_msgpack r;
    struct tec_arena *arena;
    struct tec_error *err;
    int depth;
    bool asks;
    struct level levels[TEC_REQUEST_DEPTH];
};

/* Read a key below `outer` into the arena; printable ASCII and other UTF-8 bytes are allowed,
 * control bytes are not. */
static enum tec_status read_key(const char **name, struct reading *in, const char *outer)
{
    struct tec_msgpack_token key;
    TEC_TRY(tec_msgpack_next(&in->r, &key, in->err));
    if (key.kind != TEC_MSGPACK_STR && key.kind != TEC_MSGPACK_BIN)
        return tec_fail(in->err, TEC_MALFORMED, "%.80s: a key of a map is not a text",
                        outer[0] ? outer : "request");
    size_t n = strlen(outer);
    if (n + key.n > MAX_NAME)
        return tec_fail(in->err, TEC_MALFORMED, "request: a key of more than %d bytes", MAX_NAME);
    for (uint32_t i = 0; i < key.n; i++)
        if (key.data[i] < 32 || key.data[i] == 127)
            return tec_fail(in->err, TEC_MALFORMED, "request: a key with the control byte %d",
                            key.data[i]);
    const char *text =
        tec_arena_printf(in->arena, "%s%.*s", outer, (int)key.n, (const char *)key.data);
    if (!text)
        return tec_fail(in->err, TEC_NO_MEMORY, "request: no memory for a key");
    *name = text;
    return TEC_OK;
}

static enum tec_status read_seed(struct reading *in)
{
    struct tec_value value;
    struct tec_msgpack_token t;
    enum tec_numpy_found found;
    TEC_TRY(tec_msgpack_next(&in->r, &t, in->err));
    if (t.kind == TEC_MSGPACK_UINT) {
        in->out->seed = t.u;
        in->out->has_seed = true;
        return TEC_OK;
    }
    /* np.int64(7) arrives as a scalar */
    TEC_TRY(tec_numpy_read(&value, &found, &in->r, &t, "tectum.seed", 1, in->arena, in->err));
    double x = -1.0;
    if (found == TEC_NUMPY_VALUE && value.kind == TEC_VALUE_F64 && value.rank == 0)
        memcpy(&x, value.data, sizeof x);
    bool whole = x >= 0.0 && x <= 9007199254740992.0 && x == (double)(uint64_t)x;
    if (!whole && found != TEC_NUMPY_NOTHING)
        return tec_fail(in->err, TEC_INVALID, "tectum.seed: must be a whole number, 0 to 2^64 - 1");
    in->out->has_seed = whole;
    in->out->seed = whole ? (uint64_t)x : 0;
    return TEC_OK;
}

static enum tec_status read_noise(struct reading *in)
{
    struct tec_msgpack_token t;
    enum tec_numpy_found found;
    TEC_TRY(tec_msgpack_next(&in->r, &t, in->err));
    TEC_TRY(tec_numpy_read(&in->out->noise, &found, &in->r, &t, "tectum.noise", NOISE, in->arena,
                           in->err));
    if (found != TEC_NUMPY_VALUE)
        in->out->noise.name = NULL;
    if (found == TEC_NUMPY_MAP || (found == TEC_NUMPY_NOTHING && t.kind != TEC_MSGPACK_NIL))
        return tec_fail(in->err, TEC_SHAPE, "tectum.noise: must be an ndarray");
    return TEC_OK;
}

static enum tec_status read_tasks(struct reading *in)
{
    struct tec_msgpack_token list, t;
    TEC_TRY(tec_msgpack_next(&in->r, &list, in->err));
    bool good = list.kind == TEC_MSGPACK_ARRAY && list.n >= 1 && list.n <= 2;
    in->out->wants_actions = in->out->wants_text = false;
    for (uint32_t i = 0; good && i < list.n; i++) {
        TEC_TRY(tec_msgpack_next(&in->r, &t, in->err));
        bool action = tec_msgpack_is(&t, "action"), text = tec_msgpack_is(&t, "text");
        in->out->wants_actions |= action;
        in->out->wants_text |= text;
        good = action || text;
    }
    if (!good)
        return tec_fail(in->err, TEC_INVALID,
                        "tectum.tasks: must be a list of \"action\" and \"text\"");
    return TEC_OK;
}

/* Read a deadline of any length that a reply can be waited for. */
static enum tec_status read_deadline(struct reading *in)
{
    struct tec_value value;
    struct tec_msgpack_token t;
    enum tec_numpy_found found;
    double ms = -1.0;
    TEC_TRY(tec_msgpack_next(&in->r, &t, in->err));
    TEC_TRY(
        tec_numpy_read(&value, &found, &in->r, &t, "tectum.deadline_ms", 1, in->arena, in->err));
    if (found == TEC_NUMPY_VALUE && value.kind == TEC_VALUE_F64 && value.rank == 0)
        memcpy(&ms, value.data, sizeof ms);
    if (!(ms > 0.0) && t.kind != TEC_MSGPACK_NIL)
        return tec_fail(in->err, TEC_INVALID, "tectum.deadline_ms: must be a number above 0");
    in->out->deadline_ms = ms > 0.0 ? (ms < MAX_DEADLINE_MS ? ms : MAX_DEADLINE_MS) : 0.0;
    return TEC_OK;
}

static enum tec_status read_captured(struct reading *in)
{
    struct tec_msgpack_token t;
    TEC_TRY(tec_msgpack_next(&in->r, &t, in->err));
    if (t.kind == TEC_MSGPACK_NIL)
        return TEC_OK;
    if (t.kind != TEC_MSGPACK_UINT || t.u > INT64_MAX)
        return tec_fail(in->err, TEC_INVALID,
                        "tectum.obs_ts: must be a whole number of nanoseconds");
    in->out->captured_ns = (int64_t)t.u;
    in->out->has_captured = true;
    return TEC_OK;
}

static enum tec_status read_bool(bool *out, struct reading *in, const char *name)
{
    struct tec_msgpack_token t;
    TEC_TRY(tec_msgpack_next(&in->r, &t, in->err));
    if (t.kind != TEC_MSGPACK_BOOL && t.kind != TEC_MSGPACK_NIL)
        return tec_fail(in->err, TEC_INVALID, "tectum.%s: must be true or false", name);
    *out = t.kind == TEC_MSGPACK_BOOL && t.u;
    return TEC_OK;
}

static enum tec_status read_reset(struct reading *in)
{
    return read_bool(&in->out->reset, in, "reset");
}

static enum tec_status read_timing(struct reading *in)
{
    return read_bool(&in->out->wants_timing, in, "timing");
}

static enum tec_status read_name(const char **out, struct reading *in, const char *what)
{
    struct tec_msgpack_token t;
    TEC_TRY(tec_msgpack_next(&in->r, &t, in->err));
    if (t.kind != TEC_MSGPACK_STR || t.n > MAX_NAME || memchr(t.data, 0, t.n))
        return tec_fail(in->err, TEC_INVALID, "%s", what);
    *out = tec_arena_strndup(in->arena, (const char *)t.data, t.n);
    return *out ? TEC_OK : tec_fail(in->err, TEC_NO_MEMORY, "request: no memory for a name");
}

static enum tec_status read_session(struct reading *in)
{
    struct tec_msgpack_token t;
    const struct tec_msgpack before = in->r;
    TEC_TRY(tec_msgpack_next(&in->r, &t, in->err));
    if (t.kind == TEC_MSGPACK_NIL)
        return TEC_OK;
    in->r = before;
    return read_name(&in->out->session, in,
                     "tectum.session_id: must be a text of at most 200 bytes");
}

/* true, or a list of names. */
static enum tec_status read_streams(struct reading *in)
{
    static const char what[] = "tectum.texts: must be true, false or a list of 1 to 8 names";
    struct tec_msgpack_token t;
    TEC_TRY(tec_msgpack_next(&in->r, &t, in->err));
    bool flag = t.kind == TEC_MSGPACK_BOOL || t.kind == TEC_MSGPACK_NIL;
    bool list = t.kind == TEC_MSGPACK_ARRAY && t.n >= 1 && t.n <= TEC_REQUEST_STREAMS;
    if (!flag && !list)
        return tec_fail(in->err, TEC_INVALID, "%s", what);
    in->out->wants_streams = list || (t.kind == TEC_MSGPACK_BOOL && t.u);
    for (uint32_t i = 0; list && i < t.n; i++)
        TEC_TRY(read_name(&in->out->streams[in->out->n_streams++], in, what));
    return TEC_OK;
}

/* Read a whole number of at most 2^31 - 1; numpy's arrive as scalars. */
static enum tec_status read_count(int *out, struct reading *in, const char *name, int low)
{
    struct tec_value value;
    struct tec_msgpack_token t;
    enum tec_numpy_found found;
    double x = -1.0;
    TEC_TRY(tec_msgpack_next(&in->r, &t, in->err));
    TEC_TRY(tec_numpy_read(&value, &found, &in->r, &t, name, 1, in->arena, in->err));
    if (found == TEC_NUMPY_VALUE && value.kind == TEC_VALUE_F64 && value.rank == 0)
        memcpy(&x, value.data, sizeof x);
    if (!(x >= low && x <= INT_MAX) || x != (double)(int)x)
        return tec_fail(in->err, TEC_INVALID, "%s: must be a whole number, %d to %d", name, low,
                        INT_MAX);
    *out = (int)x;
    return TEC_OK;
}

static enum tec_status read_node(struct reading *in)
{
    return read_name(&in->out->ask.node, in, "tectum.ask.node: must be the name of a decode node");
}

/* Read {node, max_tokens, prio}, each optional. */
static enum tec_status read_ask(struct reading *in)
{
    static const char *const names[] = {"node", "max_tokens", "prio"};
    struct tec_msgpack_token map;
    const char *name = "";
    unsigned seen = 0;
    TEC_TRY(tec_msgpack_next(&in->r, &map, in->err));
    if (map.kind != TEC_MSGPACK_MAP)
        return tec_fail(in->err, TEC_INVALID,
                        "tectum.ask: must be a map of node, max_tokens, prio");
    for (uint32_t i = 0; i < map.n; i++) {
        int k = 0;
        TEC_TRY(read_key(&name, in, ""));
        while (k < 3 && strcmp(name, names[k]) != 0)
            k++;
        if (k == 3)
            return tec_fail(in->err, TEC_NOT_FOUND,
                            "tectum.ask.%.60s: there are node, max_tokens, prio", name);
        if (seen & 1U << k)
            return tec_fail(in->err, TEC_MALFORMED, "tectum.ask.%s: given twice", name);
        seen |= 1U << k;
        TEC_TRY(k == 0   ? read_node(in)
                : k == 1 ? read_count(&in->out->ask.max_tokens, in, "tectum.ask.max_tokens", 1)
                         : read_count(&in->out->ask.prio, in, "tectum.ask.prio", 0));
    }
    in->asks = true;
    return TEC_OK;
}

static enum tec_status read_push(struct reading *in)
{
    return read_bool(&in->out->push, in, "push");
}

static enum tec_status read_options(struct reading *in)
{
    enum tec_status (*const read[])(struct reading *) = {
        read_seed,     read_noise, read_tasks,  read_session, read_deadline, read_ask,
        read_captured, read_reset, read_timing, read_streams, read_push};
    struct tec_msgpack_token map;
    const char *name = "";
    TEC_TRY(tec_msgpack_next(&in->r, &map, in->err));
    if (in->out->extended)
        return tec_fail(in->err, TEC_MALFORMED, "tectum: given twice");
    if (map.kind != TEC_MSGPACK_MAP)
        return tec_fail(in->err, TEC_INVALID, "tectum: must be a map of " OPTIONS);
    in->out->extended = true;
    unsigned seen = 0;
    for (uint32_t i = 0; i < map.n; i++) {
        int k = 0;
        TEC_TRY(read_key(&name, in, ""));
        while (k < N_OPTIONS && strcmp(name, option_names[k]) != 0)
            k++;
        if (k == N_OPTIONS) {
            const char *near = tec_nearest(name, option_names, N_OPTIONS);
            return tec_fail(in->err, TEC_NOT_FOUND, "tectum.%.60s: there is no such key%s%s%s",
                            name, near ? "; did you mean '" : "", near ? near : "",
                            near ? "'?" : "; there are " OPTIONS);
        }
        if (seen & 1U << k)
            return tec_fail(in->err, TEC_MALFORMED, "tectum.%s: given twice", name);
        seen |= 1U << k;
        TEC_TRY(read[k](in));
    }
    in->out->wants_text |= in->asks; /* an ask wants text, whatever `tasks` says */
    return TEC_OK;
}

static enum tec_status add_value(struct reading *in, const struct tec_value *value)
{
    struct tec_request_message *out = in->out;
    for (size_t i = 0; i < out->n; i++)
        if (strcmp(out->values[i].name, value->name) == 0)
            return tec_fail(in->err, TEC_MALFORMED, "%.80s: given twice", value->name);
    if (out->n == TEC_MAX_INPUTS)
        return tec_fail(in->err, TEC_UNSUPPORTED, "request: more than %d values", TEC_MAX_INPUTS);
    out->inner[out->n] = in->depth > 1;
    out->values[out->n++] = *value;
    return TEC_OK;
}

static enum tec_status enter(struct reading *in, const char *name, uint32_t n)
{
    const char *outer = name[0] ? tec_arena_printf(in->arena, "%s/", name) : name;
    if (!outer)
        return tec_fail(in->err, TEC_NO_MEMORY, "request: no memory for a key");
    if (in->depth == TEC_REQUEST_DEPTH)
        return tec_fail(in->err, TEC_UNSUPPORTED, "%.80s: maps more than %d deep", name,
                        TEC_REQUEST_DEPTH);
    in->levels[in->depth++] = (struct level){outer, n};
    return TEC_OK;
}

static enum tec_status read_pair(struct reading *in, const char *outer)
{
    struct tec_msgpack_token t;
    struct tec_value value;
    enum tec_numpy_found found;
    const char *name = "";
    TEC_TRY(read_key(&name, in, outer));
    if (in->depth == 1 && strcmp(name, "tectum") == 0)
        return read_options(in);
    TEC_TRY(tec_msgpack_next(&in->r, &t, in->err));
    TEC_TRY(
        tec_numpy_read(&value, &found, &in->r, &t, name, TEC_NUMPY_CONVERTED, in->arena, in->err));
    if (found == TEC_NUMPY_MAP)
        return enter(in, name, t.n);
    return found == TEC_NUMPY_VALUE ? add_value(in, &value) : TEC_OK;
}

static void clear(struct tec_request_message *out)
{
    out->n = 0;
    out->extended = out->has_seed = out->wants_text = out->has_captured = out->reset = false;
    out->wants_timing = out->wants_streams = out->push = false;
    out->n_streams = 0;
    out->session = NULL;
    out->wants_actions = true;
    out->deadline_ms = 0.0;
    out->noise = (struct tec_value){.name = NULL};
    out->ask.node = NULL;
    out->ask.max_tokens = out->ask.prio = 0;
}

enum tec_status tec_serve_request_options(struct tec_request_message *out, const void *message,
                                          size_t n, struct tec_arena *arena, struct tec_error *err)
{
    struct reading in = {.out = out, .arena = arena, .err = err};
    struct tec_msgpack_token map, t;
    clear(out);
    tec_msgpack_open(&in.r, message, n);
    TEC_TRY(tec_msgpack_next(&in.r, &map, err));
    if (map.kind != TEC_MSGPACK_MAP)
        return TEC_OK;
    for (uint32_t i = 0; i < map.n; i++) {
        TEC_TRY(tec_msgpack_next(&in.r, &t, err));
        if (tec_msgpack_is(&t, "tectum"))
            return read_options(&in);
        TEC_TRY(tec_msgpack_skip(&in.r, &t, err)); /* a key that is none: told by the other one */
        TEC_TRY(tec_msgpack_next(&in.r, &t, err));
        TEC_TRY(tec_msgpack_skip(&in.r, &t, err));
    }
    return TEC_OK;
}

enum tec_status tec_serve_request_read(struct tec_request_message *out, const void *message,
                                       size_t n, struct tec_arena *arena, struct tec_error *err)
{
    struct reading in = {.out = out, .arena = arena, .err = err};
    struct tec_msgpack_token t;
    clear(out);
    tec_msgpack_open(&in.r, message, n);
    TEC_TRY(tec_msgpack_next(&in.r, &t, err));
    if (t.kind != TEC_MSGPACK_MAP)
        return tec_fail(err, TEC_MALFORMED, "request: an observation is a map of named values");
    TEC_TRY(enter(&in, "", t.n));
    while (in.depth > 0) {
        struct level *level = &in.levels[in.depth - 1];
        if (level->left == 0) {
            in.depth--;
            continue;
        }
        level->left--;
        TEC_TRY(read_pair(&in, level->name));
    }
    if (in.r.at != in.r.end)
        return tec_fail(err, TEC_MALFORMED, "request: %zu bytes follow the observation",
                        (size_t)(in.r.end - in.r.at));
    return TEC_OK;
}
