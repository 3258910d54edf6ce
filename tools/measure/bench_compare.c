/* bench_compare.c - compares two reports of `tectum bench`, row by row. */
#include "tools/measure/bench_compare.h"

#include "base/escape.h"
#include "base/json_text.h"
#include "base/store/file.h"

#include <string.h>

struct comparison {
    const json_t *before, *after;
    json_t *rows, *figures, *alone;
    double worst; /* 0 = none yet */
};

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static enum tec_status open_report(json_t **out, const char *path, struct tec_heap *heap,
                                   struct tec_error *err)
{
    TEC_TRY(tec_checkpoint_json_load(out, path, heap, err));
    const json_t *rows = json_object_get(*out, "rows"), *row;
    size_t i;
    bool good = json_is_array(rows) && json_is_object(json_object_get(*out, "machine"));
    json_array_foreach(rows, i, row) good = good &&
                                            json_is_string(json_object_get(row, "policy")) &&
                                            json_is_object(json_object_get(row, "frame_us"));
    if (good)
        return TEC_OK;
    json_decref(*out);
    *out = NULL;
    return tec_fail(err, TEC_MALFORMED,
                    "%s: this is no report of `tectum bench --format json`: it has no machine and "
                    "rows with frame_us",
                    path);
}

static bool same_row(const json_t *a, const json_t *b)
{
    return strcmp(text_of(a, "policy"), text_of(b, "policy")) == 0 &&
           strcmp(text_of(a, "params"), text_of(b, "params")) == 0;
}

static const json_t *find_row(const json_t *report, const json_t *like)
{
    const json_t *row;
    size_t i;
    json_array_foreach(json_object_get(report, "rows"), i, row) if (same_row(row, like)) return row;
    return NULL;
}

/* The quantiles of one thing in both rows; `counts`: they are among those that `worst` is of. */
static void compare_times(struct comparison *c, const json_t *row, const char *of,
                          const json_t *before, const json_t *after, bool counts)
{
    static const char *const quantiles[] = {"p50", "p99", "max"};
    for (size_t q = 0; q < sizeof quantiles / sizeof quantiles[0]; q++) {
        double a = json_number_value(json_object_get(before, quantiles[q]));
        double b = json_number_value(json_object_get(after, quantiles[q]));
        if (!(a > 0.0 && b > 0.0))
            continue;
        if (counts && q < 2 && b / a > c->worst)
            c->worst = b / a;
        json_array_append_new(c->rows,
                              json_pack("{s:s, s:s, s:s, s:s, s:f, s:f, s:f}", "policy",
                                        text_of(row, "policy"), "params", text_of(row, "params"),
                                        "of", of, "quantile", quantiles[q], "before_us", a,
                                        "after_us", b, "ratio", b / a));
    }
}

static json_t *known(const json_t *object, const char *key)
{
    json_t *value = json_object_get(object, key);
    return value ? json_incref(value) : json_null();
}

static void compare_figures(struct comparison *c, const json_t *before, const json_t *after)
{
    static const char *const figures[] = {"action_hz", "tokens_s", "missed",     "refused",
                                          "shed",      "frames",   "mean_batch", "host_peak_bytes"};
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++)
        json_array_append_new(
            c->figures, json_pack("{s:s, s:s, s:s, s:o, s:o}", "policy", text_of(before, "policy"),
                                  "params", text_of(before, "params"), "of", figures[i], "before",
                                  known(before, figures[i]), "after", known(after, figures[i])));
}

static void compare_row(struct comparison *c, const json_t *before, const json_t *after)
{
    static const struct {
        const char *key, *of;
        bool counts;
    } times[] = {
        {"frame_us", "frame", true}, {"action_us", "action", true}, {"host_us", "host", false}};
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
        compare_times(c, before, times[i].of, json_object_get(before, times[i].key),
                      json_object_get(after, times[i].key), times[i].counts);
    compare_figures(c, before, after);
    const char *name;
    json_t *node;
    json_object_foreach(json_object_get(before, "nodes"), name, node)
    {
        char of[200];
        snprintf(of, sizeof of, "node %s", name);
        compare_times(c, before, of, node, json_object_get(json_object_get(after, "nodes"), name),
                      false);
    }
}

static void note_alone(struct comparison *c, const json_t *row, const char *in)
{
    json_array_append_new(c->alone, json_pack("{s:s, s:s, s:s}", "policy", text_of(row, "policy"),
                                              "params", text_of(row, "params"), "in", in));
}

/* Facts in which the two objects are not alike. */
static void note_differences(json_t *differs, const json_t *before, const json_t *after)
{
    static const char *const facts[] = {"cpu",     "cores", "device",        "tier",  "lanes",
                                        "clock",   "views", "prompt_tokens", "steps", "inputs",
                                        "horizon", "model", "dtype"};
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++) {
        json_t *a = json_object_get(before, facts[i]), *b = json_object_get(after, facts[i]);
        if (a && b && !json_equal(a, b))
            json_array_append_new(
                differs, json_pack("{s:s, s:O, s:O}", "what", facts[i], "before", a, "after", b));
    }
}

/* A fact of both reports, or of one; others, such as lists, are none. */
static void add_fact(json_t *facts, const char *what, const json_t *before, const json_t *after)
{
    json_t *a = json_object_get(before, what), *b = json_object_get(after, what);
    if (!json_is_object(a) && !json_is_array(a) && !json_is_object(b) && !json_is_array(b))
        json_array_append_new(facts, json_pack("{s:s, s:o, s:o}", "what", what, "before",
                                               known(before, what), "after", known(after, what)));
}

static json_t *all_facts(const struct comparison *c)
{
    static const char *const own[] = {"command", "commit", "model", "dtype"};
    static const char *const parts[] = {"machine", "measured"};
    json_t *facts = json_array(), *value;
    const char *what;
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        add_fact(facts, own[i], c->before, c->after);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        json_t *a = json_object_get(c->before, parts[i]), *b = json_object_get(c->after, parts[i]);
        json_object_foreach(a, what, value) add_fact(facts, what, a, b);
        json_object_foreach(b, what, value) if (!json_object_get(a, what))
            add_fact(facts, what, a, b);
    }
    return facts;
}

static void compare_all(struct comparison *c)
{
    const json_t *row;
    size_t i;
    json_array_foreach(json_object_get(c->before, "rows"), i, row)
    {
        const json_t *other = find_row(c->after, row);
        if (other)
            compare_row(c, row, other);
        else
            note_alone(c, row, "before");
    }
    json_array_foreach(json_object_get(c->after, "rows"), i, row) if (!find_row(c->before, row))
        note_alone(c, row, "after");
}

static json_t *differences(const struct comparison *c)
{
    static const char *const parts[] = {"machine", "measured"};
    json_t *differs = json_array();
    note_differences(differs, c->before, c->after);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        note_differences(differs, json_object_get(c->before, parts[i]),
                         json_object_get(c->after, parts[i]));
    return differs;
}

enum tec_status tec_bench_compare(json_t **out, const char *before, const char *after,
                                  struct tec_heap *heap, struct tec_error *err)
{
    json_t *a = NULL, *b = NULL;
    *out = NULL;
    enum tec_status status = open_report(&a, before, heap, err);
    if (status == TEC_OK)
        status = open_report(&b, after, heap, err);
    if (status == TEC_OK) {
        struct comparison c = {a, b, .rows = json_array(), .figures = json_array(),
                               .alone = json_array()};
        compare_all(&c);
        *out = json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "before", before, "after",
                         after, "differs", differences(&c), "rows", c.rows, "figures", c.figures,
                         "alone", c.alone, "facts", all_facts(&c), "worst",
                         c.worst > 0.0 ? json_real(c.worst) : json_null());
        if (!*out)
            status = tec_fail(err, TEC_NO_MEMORY, "no memory for the comparison");
    }
    json_decref(a);
    json_decref(b);
    return status;
}

static void print_value(const json_t *value, FILE *out)
{
    if (json_is_string(value))
        tec_escape_print(out, json_string_value(value));
    else
        fprintf(out, "%g", json_number_value(value));
}

/* A policy, and a thing, are named on the first of their lines. */
static void print_rows(const json_t *rows, FILE *out)
{
    const json_t *item, *last = NULL;
    size_t i;
    json_array_foreach(rows, i, item)
    {
        char name[64], row[64];
        bool again = last && same_row(item, last);
        bool same = again && strcmp(text_of(item, "of"), text_of(last, "of")) == 0;
        snprintf(name, sizeof name, "%s %s", text_of(item, "policy"), text_of(item, "params"));
        tec_escape(row, sizeof row, name);
        fprintf(out, "%-24s %-16s %-4s %12.3f %12.3f %15.3f\n", again ? "" : row,
                same ? "" : text_of(item, "of"), text_of(item, "quantile"),
                json_number_value(json_object_get(item, "before_us")) / 1e3,
                json_number_value(json_object_get(item, "after_us")) / 1e3,
                json_number_value(json_object_get(item, "ratio")));
        last = item;
    }
}

void tec_bench_compare_print(const json_t *comparison, FILE *out)
{
    const json_t *item;
    size_t i;
    fprintf(out, "before: %s\nafter:  %s\n", text_of(comparison, "before"),
            text_of(comparison, "after"));
    json_array_foreach(json_object_get(comparison, "differs"), i, item)
    {
        fprintf(out, "not alike: %s is ", text_of(item, "what"));
        print_value(json_object_get(item, "before"), out);
        fputs(" before and ", out);
        print_value(json_object_get(item, "after"), out);
        fputs(" after\n", out);
    }
    fprintf(out, "\n%-24s %-16s %-4s %12s %12s %15s\n", "policy", "of", "", "before ms", "after ms",
            "after / before");
    print_rows(json_object_get(comparison, "rows"), out);
    json_array_foreach(json_object_get(comparison, "alone"), i, item)
        fprintf(out, "%s %s: only %s\n", text_of(item, "policy"), text_of(item, "params"),
                text_of(item, "in"));
}
