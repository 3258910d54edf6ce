/* scenario.c - reads a scenario file, which says what happens to a simulated robot from outside;
 * doc/schedules.md lists the fields. */
#include "tools/simulate/scenario.h"

#include "base/nearest.h"
#include "base/store/file.h"

#include <math.h>
#include <string.h>

enum { MAX_LIST = 1000000 };

/* The largest number of frames, and of microseconds for one thing (17 minutes); a list of such
 * times fits into 64 bits of nanoseconds. */
static const int64_t most = 1000000000;

/* The state of reading a file. */
struct reader {
    struct tec_scenario *s;
    const char *path, *list; /* list: the name of the field */
    size_t index;
    struct tec_arena *arena;
};

static enum tec_status bad(const struct reader *r, struct tec_error *err, const char *what,
                           const char *field)
{
    return tec_fail(err, TEC_MALFORMED, "%s: %s[%zu]: %s '%s'", r->path, r->list, r->index, what,
                    field);
}

/* Read an integer from `low` to `high`. A missing field gives `otherwise`, or an error if
 * `otherwise` is below `low`. */
static enum tec_status within(const struct reader *r, const json_t *from, const char *field,
                              const int64_t bounds[2], int64_t otherwise, int64_t *out,
                              struct tec_error *err)
{
    const json_t *value = json_object_get(from, field);
    *out = otherwise;
    if (!value)
        return otherwise < bounds[0] ? bad(r, err, "there is no", field) : TEC_OK;
    *out = json_integer_value(value);
    if (!json_is_integer(value) || *out < bounds[0] || *out > bounds[1])
        return bad(r, err, "not a number in range:", field);
    return TEC_OK;
}

static enum tec_status integer(const struct reader *r, const json_t *from, const char *field,
                               int64_t low, int64_t otherwise, int64_t *out, struct tec_error *err)
{
    const int64_t bounds[2] = {low, most};
    return within(r, from, field, bounds, otherwise, out, err);
}

static enum tec_status text(const struct reader *r, const json_t *from, const char *field,
                            const char **out, struct tec_error *err)
{
    const char *value = json_string_value(json_object_get(from, field));
    *out = value ? tec_arena_strdup(r->arena, value) : NULL;
    if (json_object_get(from, field) && !value)
        return bad(r, err, "not a text:", field);
    return !value || *out ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for %s", r->path);
}

static enum tec_status session_of(const struct reader *r, const json_t *from, int *out,
                                  struct tec_error *err)
{
    const char *name = NULL;
    *out = -1;
    TEC_TRY(text(r, from, "session", &name, err));
    for (int i = 0; name && i < r->s->n_sessions; i++)
        if (strcmp(r->s->sessions[i].name, name) == 0)
            *out = i;
    return name && *out < 0 ? bad(r, err, "unknown session", name) : TEC_OK;
}

/* --- the lists ------------------------------------------------------------------------------- */

static enum tec_status read_arrival(struct reader *r, const json_t *one, struct tec_happening *h,
                                    struct tec_error *err)
{
    int64_t prio;
    TEC_TRY(integer(r, one, "max_tokens", 0, 0, &h->value, err));
    TEC_TRY(integer(r, one, "prio", 0, 0, &prio, err));
    h->prio = prio < 1000 ? (int)prio : 1000;
    return text(r, one, "node", &h->name, err);
}

static enum tec_status read_cancel(struct reader *r, const json_t *one, struct tec_happening *h,
                                   struct tec_error *err)
{
    return integer(r, one, "request", 0, -1, &h->value, err);
}

static enum tec_status read_spike(struct reader *r, const json_t *one, struct tec_happening *h,
                                  struct tec_error *err)
{
    TEC_TRY(integer(r, one, "add_us", 0, -1, &h->value, err));
    TEC_TRY(text(r, one, "node", &h->name, err));
    return h->name ? TEC_OK : bad(r, err, "there is no", "node");
}

static enum tec_status read_late(struct reader *r, const json_t *one, struct tec_happening *h,
                                 struct tec_error *err)
{
    return integer(r, one, "us", 0, -1, &h->value, err);
}

/* Read a change of instruction from a frame on, with its number of tokens where the file says
 * so. */
static enum tec_status read_instruction(struct reader *r, const json_t *one,
                                        struct tec_happening *h, struct tec_error *err)
{
    TEC_TRY(integer(r, one, "text_tokens", 1, 1, &h->value, err));
    if (!json_object_get(one, "text_tokens"))
        h->value = 0;
    return TEC_OK;
}

static enum tec_status read_costs(struct reader *r, const json_t *one, struct tec_happening *h,
                                  struct tec_error *err)
{
    const char *where = tec_arena_printf(r->arena, "%s: costs_from[%zu]", r->path, r->index);
    if (!where)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for %s", r->path);
    return tec_costs_table_take(&h->costs, json_object_get(one, "costs"), where, r->arena, err);
}

/* Read a frame without an observation, or one that resets. */
static enum tec_status read_frame(struct reader *r, const json_t *one, struct tec_happening *h,
                                  struct tec_error *err)
{
    h->frame = json_integer_value(one);
    return json_is_integer(one) && h->frame >= 0 ? TEC_OK : bad(r, err, "not a", "frame");
}

/* The entries that each list may hold; `frame` and `session` are read for all but reset. */
static const struct list {
    const char *name;
    size_t offset;
    enum tec_status (*read)(struct reader *r, const json_t *one, struct tec_happening *h,
                            struct tec_error *err);
} lists[] = {
    {"arrivals", offsetof(struct tec_scenario, arrivals), read_arrival},
    {"cancel", offsetof(struct tec_scenario, cancel), read_cancel},
    {"spikes", offsetof(struct tec_scenario, spikes), read_spike},
    {"late", offsetof(struct tec_scenario, late), read_late},
    {"instruction", offsetof(struct tec_scenario, instruction), read_instruction},
    {"costs_from", offsetof(struct tec_scenario, costs_from), read_costs},
    {"reset", offsetof(struct tec_scenario, reset), read_frame},
    {"missing", offsetof(struct tec_scenario, missing), read_frame},
};

enum { N_LISTS = sizeof lists / sizeof lists[0] };

static enum tec_status take_list(struct reader *r, const json_t *list, struct tec_happenings *to,
                                 size_t room, struct tec_error *err)
{
    if (list && !json_is_array(list))
        return tec_fail(err, TEC_MALFORMED, "%s: %s must be a list", r->path, r->list);
    if (json_array_size(list) > MAX_LIST)
        return tec_fail(err, TEC_MALFORMED, "%s: more than %d %s", r->path, MAX_LIST, r->list);
    to->item = TEC_NEW(r->arena, room + 1, struct tec_happening);
    return to->item ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for %s", r->path);
}

static enum tec_status read_list(struct reader *r, const json_t *json, const struct list *list,
                                 struct tec_error *err)
{
    struct tec_happenings *to = (struct tec_happenings *)(void *)((char *)r->s + list->offset);
    const json_t *from = json_object_get(json, list->name);
    r->list = list->name;
    TEC_TRY(take_list(r, from, to, json_array_size(from), err));
    for (r->index = 0; r->index < json_array_size(from); r->index++) {
        const json_t *one = json_array_get(from, r->index);
        struct tec_happening *h = &to->item[to->n++];
        h->session = -1;
        if (json_is_object(one)) {
            TEC_TRY(integer(r, one, "frame", 0, -1, &h->frame, err));
            TEC_TRY(session_of(r, one, &h->session, err));
        }
        TEC_TRY(list->read(r, one, h, err));
    }
    return TEC_OK;
}

/* Read [{ "frame": 3, "k": 4 }]: every field but `frame` is a parameter. */
static enum tec_status read_params(struct reader *r, const json_t *json, struct tec_error *err)
{
    const json_t *from = json_object_get(json, "params");
    size_t room = 0;
    r->list = "params";
    for (size_t i = 0; i < json_array_size(from); i++)
        room += json_object_size(json_array_get(from, i));
    TEC_TRY(take_list(r, from, &r->s->params, room, err));
    for (r->index = 0; r->index < json_array_size(from); r->index++) {
        json_t *one = json_array_get(from, r->index), *value;
        const char *name;
        int64_t frame;
        TEC_TRY(integer(r, one, "frame", 0, -1, &frame, err));
        json_object_foreach(one, name, value)
        {
            if (strcmp(name, "frame") == 0)
                continue;
            if (!json_is_number(value))
                return bad(r, err, "not a number:", name);
            r->s->params.item[r->s->params.n++] =
                (struct tec_happening){.frame = frame,
                                       .session = -1,
                                       .name = tec_arena_strdup(r->arena, name),
                                       .number = json_number_value(value)};
        }
    }
    return TEC_OK;
}

/* Read { "request": n }: the n-th token of that request ends it. */
static enum tec_status read_eos(struct reader *r, const json_t *json, struct tec_error *err)
{
    json_t *from = json_object_get(json, "eos"), *value;
    const char *name;
    if (from && !json_is_object(from))
        return tec_fail(err, TEC_MALFORMED, "%s: eos must be a table of requests", r->path);
    r->list = "eos";
    TEC_TRY(take_list(r, NULL, &r->s->eos, json_object_size(from), err));
    json_object_foreach(from, name, value)
    {
        char *end;
        long long request = strtoll(name, &end, 10);
        if (*end || end == name || request < 0 || !json_is_integer(value) ||
            json_integer_value(value) < 1)
            return tec_fail(err, TEC_MALFORMED, "%s: eos: '%.40s' is not a request and its tokens",
                            r->path, name);
        r->s->eos.item[r->s->eos.n++] =
            (struct tec_happening){.frame = request, .value = json_integer_value(value)};
    }
    return TEC_OK;
}

static enum tec_status read_sessions(struct reader *r, const json_t *json, struct tec_error *err)
{
    const json_t *from = json_object_get(json, "sessions");
    r->list = "sessions";
    if ((from && !json_is_array(from)) || json_array_size(from) > TEC_MAX_SESSIONS)
        return tec_fail(err, TEC_MALFORMED, "%s: sessions must be a list of at most %d", r->path,
                        TEC_MAX_SESSIONS);
    for (r->index = 0; r->index < json_array_size(from); r->index++) {
        const json_t *one = json_array_get(from, r->index);
        struct tec_scenario_session *s = &r->s->sessions[r->index];
        int64_t every;
        TEC_TRY(text(r, one, "name", &s->name, err));
        if (!s->name)
            return bad(r, err, "there is no", "name");
        TEC_TRY(integer(r, one, "period_us", 1, 0, &s->period_us, err));
        TEC_TRY(integer(r, one, "offset_us", 0, 0, &s->offset_us, err));
        TEC_TRY(integer(r, one, "deadline_us", -1, -1, &s->deadline_us, err));
        TEC_TRY(integer(r, one, "spawn_every", -1, -1, &every, err));
        s->spawn_every = every > INT32_MAX ? INT32_MAX : (int)every;
        r->s->n_sessions++;
    }
    return TEC_OK;
}

/* --- the file -------------------------------------------------------------------------------- */

void tec_scenario_default(struct tec_scenario *scenario)
{
    *scenario = (struct tec_scenario){.frames = 100, .until_us = INT64_MAX};
}

static enum tec_status check_fields(const json_t *json, const char *path, struct tec_error *err)
{
    static const char *const known[] = {
        "schema",  "clock",  "frames",  "until_us",    "arrivals",   "eos",
        "cancel",  "spikes", "late",    "costs_from",  "params",     "sessions",
        "handout", "reset",  "missing", "instruction", "text_tokens"};
    const char *name;
    json_t *value;
    enum { N = sizeof known / sizeof known[0] };
    json_object_foreach((json_t *)(uintptr_t)json, name, value)
    {
        bool found = false;
        for (int i = 0; i < N; i++)
            found = found || strcmp(known[i], name) == 0;
        if (found)
            continue;
        const char *near = tec_nearest(name, known, N);
        return tec_fail(err, TEC_MALFORMED, "%s: unknown field '%.40s'%s", path, name,
                        tec_meant(',', near).text);
    }
    return TEC_OK;
}

static enum tec_status read_clock(struct reader *r, const json_t *json, struct tec_error *err)
{
    const char *clock = json_string_value(json_object_get(json, "clock"));
    const json_t *handout = json_object_get(json, "handout");
    static const int64_t ends[2] = {1, 1000000000000}; /* 11 days */
    int64_t actions, dims, text_tokens;
    r->list = "scenario";
    if (clock && strcmp(clock, "saturated") != 0 && strcmp(clock, "paced") != 0)
        return tec_fail(err, TEC_MALFORMED, "%s: clock '%.40s' is not saturated or paced", r->path,
                        clock);
    r->s->paced = clock && strcmp(clock, "paced") == 0;
    TEC_TRY(within(r, json, "until_us", ends, INT64_MAX, &r->s->until_us, err));
    int64_t otherwise = r->s->until_us == INT64_MAX ? 100 : INT64_MAX;
    TEC_TRY(integer(r, json, "frames", 0, otherwise, &r->s->frames, err));
    TEC_TRY(integer(r, json, "text_tokens", 1, 1, &text_tokens, err));
    r->s->text_tokens = json_object_get(json, "text_tokens") ? text_tokens : 0;
    if (!handout)
        return TEC_OK;
    TEC_TRY(integer(r, handout, "actions", 1, 0, &actions, err));
    TEC_TRY(integer(r, handout, "dims", 1, 0, &dims, err));
    r->s->output_actions = actions < 4096 ? (int)actions : 4096;
    r->s->output_dims = dims < 4096 ? (int)dims : 4096;
    return TEC_OK;
}

static enum tec_status read_all(struct reader *r, const json_t *json, struct tec_error *err)
{
    TEC_TRY(check_fields(json, r->path, err));
    if (json_integer_value(json_object_get(json, "schema")) != 1)
        return tec_fail(err, TEC_MALFORMED, "%s: not a scenario of schema 1", r->path);
    TEC_TRY(read_clock(r, json, err));
    TEC_TRY(read_sessions(r, json, err));
    TEC_TRY(read_params(r, json, err));
    TEC_TRY(read_eos(r, json, err));
    for (int i = 0; i < N_LISTS; i++)
        TEC_TRY(read_list(r, json, &lists[i], err));
    return TEC_OK;
}

enum tec_status tec_scenario_take(struct tec_scenario *out, const json_t *json, const char *path,
                                  struct tec_arena *arena, struct tec_error *err)
{
    struct reader r = {.s = out, .path = path, .arena = arena};
    tec_scenario_default(out);
    return read_all(&r, json, err);
}

enum tec_status tec_scenario_read(struct tec_scenario *out, const char *path,
                                  struct tec_arena *arena, struct tec_error *err)
{
    json_t *json = NULL;
    TEC_TRY(tec_checkpoint_json_load(&json, path, arena->heap, err));
    enum tec_status status = tec_scenario_take(out, json, path, arena, err);
    json_decref(json);
    return status;
}
