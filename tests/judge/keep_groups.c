/* keep_groups.c - judges the static-dynamic construction: the whole state after every operation. */
#include "graph/memory/groups.h"
#include "tests/judge/tokenizers_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { MAX_SEGMENTS = 256, MAX_DIM = 64 };

/* A segment's handle is the number of its name in `names`. */
struct trace {
    struct tec_groups *groups;
    int dim;
    uint32_t n;
    const char *names[MAX_SEGMENTS];
    float query[MAX_DIM], embedding[MAX_DIM];
};

static uint32_t handle(struct trace *t, const char *name)
{
    uint32_t i = 0;
    while (i < t->n && strcmp(t->names[i], name) != 0)
        i++;
    if (i == t->n && t->n < MAX_SEGMENTS)
        t->names[t->n++] = name;
    return i;
}

static void read_embedding(const struct trace *t, const json_t *op, float *to)
{
    const json_t *from = json_object_get(op, "emb");
    for (int i = 0; i < t->dim; i++)
        to[i] = (float)json_number_value(json_array_get(from, (size_t)i));
}

static json_t *name_list(const struct trace *t, uint32_t segment, uint32_t n)
{
    json_t *list = json_array();
    for (; n > 0 && segment != TEC_NO_SEGMENT; segment = tec_groups_next(t->groups, segment), n--)
        json_array_append_new(list, json_string(t->names[segment]));
    return list;
}

static json_t *group_list(const struct trace *t)
{
    json_t *list = json_array();
    struct tec_group_view g;
    for (bool more = tec_groups_each(t->groups, NULL, &g); more;
         more = tec_groups_each(t->groups, &g, &g))
        json_array_append_new(list, json_pack("{s:I, s:s, s:o, s:I}", "id", (json_int_t)g.id,
                                              "state", g.is_static ? "static" : "dynamic",
                                              "members", name_list(t, g.first, g.members),
                                              "changed", (json_int_t)g.changed));
    return list;
}

/* Adds what a query of up to `most` retrieves, and all that it could have. */
static enum tec_status query(struct trace *t, const json_t *op, json_t *to, struct tec_error *err)
{
    static const char most[] = "max_segments";
    struct tec_candidate ranked[MAX_SEGMENTS];
    uint32_t segments[MAX_SEGMENTS], n = 0;
    int64_t wanted = json_integer_value(json_object_get(op, most));
    json_t *retrieved = json_array(), *scores = json_array();
    json_object_set_new(to, "retrieved", retrieved);
    json_object_set_new(to, "scores", scores);
    if (wanted < 0 || wanted > MAX_SEGMENTS)
        return tec_fail(err, TEC_MALFORMED, "%s is out of range", most);
    read_embedding(t, op, t->query);
    TEC_TRY(tec_groups_query(t->groups, t->query, (uint32_t)wanted, segments, &n, err));
    for (uint32_t i = 0; i < n; i++)
        json_array_append_new(retrieved, json_string(t->names[segments[i]]));
    TEC_TRY(tec_groups_rank(t->groups, t->query, ranked, &n, err));
    for (uint32_t i = 0; i < n; i++)
        json_array_append_new(scores,
                              json_pack("[f, o]", ranked[i].score,
                                        name_list(t, ranked[i].segment, ranked[i].segments)));
    return TEC_OK;
}

static enum tec_status change_segment(struct trace *t, const json_t *op, const char *what,
                                      struct tec_groups_change *change, struct tec_error *err)
{
    const char *text = json_string_value(json_object_get(op, "text"));
    const char *name = json_string_value(json_object_get(op, "id"));
    if (!name || !text != (strcmp(what, "delete") == 0))
        return tec_fail(err, TEC_MALFORMED, "operation %s without id or text", what);
    uint32_t segment = handle(t, name);
    if (!text)
        return tec_groups_remove(t->groups, segment, change, err);
    XXH128_hash_t hash = XXH3_128bits(text, strlen(text));
    struct tec_segment_input given = {
        .embedding = t->embedding,
        .tokens = (uint32_t)json_integer_value(json_object_get(op, "tokens")),
        .text = {hash.low64, hash.high64}};
    read_embedding(t, op, t->embedding);
    return strcmp(what, "add") == 0 ? tec_groups_add(t->groups, segment, &given, change, err)
                                    : tec_groups_update(t->groups, segment, &given, change, err);
}

/* One operation; `to` gets everything that the case expects of one. */
static enum tec_status operate(struct trace *t, const json_t *op, json_t *to, struct tec_error *err)
{
    const char *what = json_string_value(json_object_get(op, "op"));
    struct tec_groups_change step, change = {.group = TEC_NO_GROUP, .demoted = TEC_NO_GROUP};
    if (!what)
        return tec_fail(err, TEC_MALFORMED, "an operation without a name");
    int64_t now = json_integer_value(json_object_get(op, "step"));
    TEC_TRY(tec_groups_step(t->groups, now, &step, err));
    json_t *promoted = json_array(), *demoted = json_array();
    json_object_set_new(to, "promoted", promoted);
    json_object_set_new(to, "demoted", demoted);
    for (uint32_t i = 0; i < step.n_promoted; i++)
        json_array_append_new(promoted, json_integer((json_int_t)step.promoted[i]));
    if (strcmp(what, "query") == 0)
        TEC_TRY(query(t, op, to, err));
    else if (strcmp(what, "tick") != 0)
        TEC_TRY(change_segment(t, op, what, &change, err));
    if (change.demoted != TEC_NO_GROUP)
        json_array_append_new(demoted, json_integer((json_int_t)change.demoted));
    json_object_set_new(to, "invalidated", json_integer(step.invalidated + change.invalidated));
    json_object_set_new(to, "computed", json_integer(step.computed + change.computed));
    json_object_set_new(to, "group",
                        change.group == TEC_NO_GROUP ? json_null()
                                                     : json_integer((json_int_t)change.group));
    json_object_set_new(to, "groups", group_list(t));
    return TEC_OK;
}

/* Equal, scores within their six printed decimals. */
static bool same(const json_t *want, const json_t *got)
{
    if (json_is_real(want) || json_is_real(got))
        return fabs(json_number_value(want) - json_number_value(got)) <= 1.5e-6;
    if (!json_is_array(want))
        return json_equal(want, got) != 0;
    bool equal = json_is_array(got) && json_array_size(want) == json_array_size(got);
    for (size_t i = 0; equal && i < json_array_size(want); i++)
        equal = same(json_array_get(want, i), json_array_get(got, i));
    return equal;
}

static void judge(struct tec_verify *v, size_t i, const json_t *op, const json_t *want,
                  const json_t *got)
{
    const char *what = json_string_value(json_object_get(op, "op")), *wrong = NULL, *field;
    const char *check =
        tec_arena_printf(v->arena, "operation %zu (%s)", i, what ? what : "without a name");
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)want, field, value)
    {
        if (!same(value, json_object_get(got, field)))
            wrong = field;
    }
    if (!wrong && json_object_size(want) != json_object_size(got))
        wrong = "the fields";
    tec_verify_report(v, check ? check : "operation", wrong ? 1.0 : 0.0, 0.0, 0.0, !wrong, NULL,
                      wrong);
}

static void judge_totals(struct tec_verify *v, const struct trace *t, const json_t *want)
{
    struct tec_groups_totals totals = tec_groups_totals(t->groups);
    const int64_t got[] = {totals.invalidated, totals.computed, totals.promotions,
                           totals.demotions};
    const json_t *sums = json_object_get(want, "totals");
    const int64_t wanted[] = {json_integer_value(json_object_get(sums, "invalidated")),
                              json_integer_value(json_object_get(sums, "computed")),
                              json_integer_value(json_object_get(v->json, "promotions")),
                              json_integer_value(json_object_get(v->json, "demotions"))};
    static const char *const names[] = {"invalidated", "computed", "promotions", "demotions"};
    for (size_t i = 0; i < 4; i++)
        tec_verify_report(v, names[i], fabs((double)(got[i] - wanted[i])), 0.0, 0.0,
                          got[i] == wanted[i], NULL, NULL);
}

static enum tec_status judge_all(struct tec_verify *v, struct trace *t, const json_t *in,
                                 const json_t *want, struct tec_error *err)
{
    const json_t *ops = json_object_get(in, "ops"), *after = json_object_get(want, "after");
    size_t n = json_array_size(ops);
    t->dim = (int)json_array_size(json_object_get(json_array_get(ops, 0), "emb"));
    if (n == 0 || json_array_size(after) != n || t->dim < 1 || t->dim > MAX_DIM)
        return tec_fail(err, TEC_MALFORMED, "%s: operations and states do not match", v->dir);
    struct tec_groups_options options = {
        .dim = t->dim,
        .max_segments = MAX_SEGMENTS,
        .threshold = json_number_value(json_object_get(in, "cosine_threshold")),
        .stable_steps = json_integer_value(json_object_get(in, "stable_steps"))};
    TEC_TRY(tec_groups_create(&t->groups, &options, v->heap, err));
    for (size_t i = 0; i < n; i++) {
        const json_t *op = json_array_get(ops, i);
        json_t *got = json_object();
        enum tec_status status = operate(t, op, got, err);
        if (status == TEC_OK)
            judge(v, i, op, json_array_get(after, i), got);
        json_decref(got);
        if (status != TEC_OK)
            return tec_context(err, status, "operation %zu", i);
    }
    judge_totals(v, t, want);
    return TEC_OK;
}

enum tec_status tec_verify_keep_groups(struct tec_verify *v, struct tec_error *err)
{
    struct trace *t = TEC_NEW(v->arena, 1, struct trace);
    json_t *in = tec_case_json(v, "inputs.json"), *want = tec_case_json(v, "expected.json");
    enum tec_status status;
    if (!t)
        status = tec_fail(err, TEC_NO_MEMORY, "%s: no memory", v->dir);
    else
        status = judge_all(v, t, in, want, err);
    if (t)
        tec_groups_destroy(t->groups);
    json_decref(in);
    json_decref(want);
    return status;
}
