/* schedules_schedule.c - judges simulated schedules: every golden event must appear, in its order,
 * with every golden field equal; times within 1 us, other real numbers within 1e-6 of their size.
 */
#include "base/json_text.h"
#include "tests/judge/verify.h"
#include "tools/api/root.h"
#include "tools/simulate/simulate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LINE = 1 << 20, MAX_PARAMS = 32 };

static bool equal(const json_t *want, const json_t *got, bool time);

static bool equal_numbers(const json_t *want, const json_t *got, bool time)
{
    double a = json_number_value(want), b = json_number_value(got);
    if (json_is_integer(want) && json_is_integer(got))
        return llabs(json_integer_value(want) - json_integer_value(got)) <= (time ? 1 : 0);
    return fabs(a - b) <= 1e-6 * fmax(1.0, fmax(fabs(a), fabs(b)));
}

/* Times are named "..._us" or "us". */
static bool is_time(const char *field)
{
    size_t n = strlen(field);
    return n >= 2 && strcmp(field + n - 2, "us") == 0 && (n == 2 || field[n - 3] == '_');
}

static bool equal_fields(const json_t *want, const json_t *got)
{
    const char *field;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)want, field, value)
    {
        if (!equal(value, json_object_get(got, field), is_time(field)))
            return false;
    }
    return true;
}

static bool equal(const json_t *want, const json_t *got, bool time)
{
    if (!got)
        return false;
    if (json_is_number(want) && json_is_number(got))
        return equal_numbers(want, got, time);
    if (json_typeof(want) != json_typeof(got))
        return false;
    if (json_is_object(want)) /* of notes: no other keys */
        return json_object_size(want) == json_object_size(got) && equal_fields(want, got);
    if (!json_is_array(want))
        return json_equal(want, got) != 0;
    bool same = json_array_size(want) == json_array_size(got);
    for (size_t i = 0; same && i < json_array_size(want); i++)
        same = equal(json_array_get(want, i), json_array_get(got, i), time);
    return same;
}

/* Lines of text as objects; the caller releases. */
static json_t *read_lines(FILE *in, struct tec_arena *arena)
{
    json_t *all = json_array();
    char *line = tec_arena_push(arena, MAX_LINE, 1, 1);
    while (line && fgets(line, MAX_LINE, in)) {
        json_t *one = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
        if (!one || json_array_append_new(all, one) != 0) {
            json_decref(all);
            return NULL;
        }
    }
    return all;
}

static void report(struct tec_verify *v, size_t found, size_t events, const json_t *missing)
{
    char note[400] = "", *text = missing ? tec_json_whole(missing, JSON_COMPACT) : NULL;
    if (text)
        snprintf(note, sizeof note, "event %zu does not appear: %.300s", found, text);
    free(text);
    tec_verify_report(v, "events", (double)(events - found), 0.0, 0.0, found == events, NULL,
                      text ? note : NULL);
}

static void compare(struct tec_verify *v, const json_t *want, const json_t *got)
{
    size_t at = 0, events = json_array_size(want), found = 0;
    for (; found < events; found++) {
        while (at < json_array_size(got) &&
               !equal_fields(json_array_get(want, found), json_array_get(got, at)))
            at++;
        if (at++ == json_array_size(got))
            break;
    }
    report(v, found, events, json_array_get(want, found));
}

/* The words of `params`, and the policy: a file beside the case's folder, or a name. */
static enum tec_status fill_call(const struct tec_verify *v, struct tec_invocation *call,
                                 struct tec_error *err)
{
    const char *policy = json_string_value(json_object_get(v->json, "policy")), *name;
    const char **words = TEC_NEW(v->arena, MAX_PARAMS, const char *);
    json_t *value;
    *call = (struct tec_invocation){
        .verb = "verify", .heap = v->heap, .arena = v->arena, .out = stdout};
    call->shared.device = "cpu";
    call->shared.spin_us = -1;
    call->shared.policy = policy;
    if (!words || !policy)
        return tec_fail(err, TEC_MALFORMED, "%s/case.json: no policy", v->dir);
    if (strchr(policy, '/'))
        call->shared.policy = tec_arena_printf(v->arena, "%s/../%s", v->dir, policy);
    json_object_foreach(json_object_get(v->json, "params"), name, value)
    {
        if (call->shared.param.n == MAX_PARAMS || !json_is_number(value))
            return tec_fail(err, TEC_MALFORMED, "%s/case.json: params: '%.40s'", v->dir, name);
        words[call->shared.param.n++] =
            tec_arena_printf(v->arena, "%s=%.17g", name, json_number_value(value));
    }
    call->shared.param.item = words;
    return tec_root_find(&call->root, NULL, v->arena, err);
}

static enum tec_status simulate(struct tec_verify *v, FILE *trace, struct tec_error *err)
{
    struct tec_invocation call;
    struct tec_simulation *s = TEC_NEW(v->arena, 1, struct tec_simulation);
    const struct tec_simulation_options o = {
        .pipeline = tec_arena_printf(v->arena, "%s/pipeline.lua", v->dir),
        .costs = tec_arena_printf(v->arena, "%s/costs.json", v->dir),
        .scenario = tec_arena_printf(v->arena, "%s/scenario.json", v->dir),
        .trace = trace};
    if (!s || !o.pipeline || !o.costs || !o.scenario)
        return tec_fail(err, TEC_NO_MEMORY, "%s: no memory for a simulation", v->dir);
    TEC_TRY(fill_call(v, &call, err));
    TEC_TRY(tec_simulation_open(s, &call, &o, err));
    enum tec_status status = tec_simulation_run(s, err);
    tec_simulation_close(s);
    return status;
}

enum tec_status tec_verify_schedules_schedule(struct tec_verify *v, struct tec_error *err)
{
    const char *path = tec_arena_printf(v->arena, "%s/expected.jsonl", v->dir);
    FILE *expected = path ? fopen(path, "re") : NULL, *trace = tmpfile();
    json_t *want = expected ? read_lines(expected, v->arena) : NULL, *got = NULL;
    enum tec_status status = TEC_OK;
    if (!want || !trace)
        status = tec_fail(err, TEC_IO, "%s/expected.jsonl: cannot be read", v->dir);
    if (status == TEC_OK)
        status = simulate(v, trace, err);
    if (status == TEC_OK) {
        rewind(trace);
        got = read_lines(trace, v->arena);
        compare(v, want, got);
    }
    json_decref(want);
    json_decref(got);
    if (expected)
        fclose(expected);
    if (trace)
        fclose(trace);
    return status;
}
