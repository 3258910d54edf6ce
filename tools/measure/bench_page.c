/* bench_page.c - two reports of `tectum bench` as one page: where they were measured, and each
 * row's times and figures side by side. */
#include "base/json_text.h"
#include "base/out_file.h"
#include "tools/measure/bench_compare.h"
#include "tools/picture/sides.h"

#include <string.h>

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* A value, in heavy letters where both sides do not have the same. */
static json_t *cell_of(const json_t *item, const char *side, bool mark)
{
    json_t *value = json_object_get(item, side);
    return json_pack("{s:O, s:b}", "text", value, "mark", (int)mark);
}

static void put_facts(const json_t *facts, FILE *out)
{
    json_t *heads = json_pack("[s, s, s]", "", "before", "after"), *rows = json_array();
    const json_t *item;
    size_t i;
    json_array_foreach(facts, i, item)
    {
        bool mark = !json_equal(json_object_get(item, "before"), json_object_get(item, "after"));
        json_array_append_new(rows, json_pack("[s, o, o]", text_of(item, "what"),
                                              cell_of(item, "before", mark),
                                              cell_of(item, "after", mark)));
    }
    tec_sides_table(out, "Where and how", heads, rows, "The reports do not say.");
    json_decref(heads);
    json_decref(rows);
}

static json_t *ms_cell(double us, double most_us)
{
    char text[32];
    snprintf(text, sizeof text, "%.3f ms", us / 1e3);
    return json_pack("{s:s, s:f}", "text", text, "bar", most_us > 0.0 ? us / most_us : 0.0);
}

static bool same_row(const json_t *a, const json_t *b)
{
    return strcmp(text_of(a, "policy"), text_of(b, "policy")) == 0 &&
           strcmp(text_of(a, "params"), text_of(b, "params")) == 0;
}

/* Times of one row; bars are to the scale of the longest of one thing. */
static void add_times(json_t *rows, const json_t *times, const json_t *like, double worst)
{
    const json_t *item, *other;
    size_t i, k;
    json_array_foreach(times, i, item)
    {
        double a = json_number_value(json_object_get(item, "before_us"));
        double b = json_number_value(json_object_get(item, "after_us"));
        double ratio = json_number_value(json_object_get(item, "ratio")), most = 0.0;
        if (!same_row(item, like))
            continue;
        json_array_foreach(times, k,
                           other) if (same_row(item, other) &&
                                      strcmp(text_of(item, "of"), text_of(other, "of")) == 0)
        {
            double x = json_number_value(json_object_get(other, "before_us"));
            double y = json_number_value(json_object_get(other, "after_us"));
            most = x > most ? x : most;
            most = y > most ? y : most;
        }
        json_array_append_new(rows, json_pack("[s, s, o, o, {s:f, s:b}]", text_of(item, "of"),
                                              text_of(item, "quantile"), ms_cell(a, most),
                                              ms_cell(b, most), "text", ratio, "mark",
                                              (int)(worst > 1.0 && ratio >= worst)));
    }
}

/* Another figure: a number as it is, after / before where that is one. */
static void add_figures(json_t *rows, const json_t *figures, const json_t *like)
{
    const json_t *item;
    size_t i;
    json_array_foreach(figures, i, item)
    {
        const json_t *a = json_object_get(item, "before"), *b = json_object_get(item, "after");
        double before = json_number_value(a), after = json_number_value(b);
        bool real = json_is_real(a) && json_is_real(b) && before > 0.0;
        if (same_row(item, like))
            json_array_append_new(rows, json_pack("[s, s, O, O, o]", text_of(item, "of"), "", a, b,
                                                  real ? json_real(after / before) : json_null()));
    }
}

static void put_row(const json_t *comparison, const json_t *like, FILE *out)
{
    char heading[400];
    json_t *heads = json_pack("[s, s, s, s, s]", "of", "", "before", "after", "after / before");
    json_t *rows = json_array();
    snprintf(heading, sizeof heading, "%s %s", text_of(like, "policy"), text_of(like, "params"));
    add_times(rows, json_object_get(comparison, "rows"), like,
              json_number_value(json_object_get(comparison, "worst")));
    add_figures(rows, json_object_get(comparison, "figures"), like);
    tec_sides_table(out, heading, heads, rows, "");
    json_decref(heads);
    json_decref(rows);
}

static void put_alone(const json_t *alone, FILE *out)
{
    json_t *heads = json_pack("[s, s, s]", "policy", "parameters", "only in"), *rows = json_array();
    const json_t *item;
    size_t i;
    json_array_foreach(alone, i, item)
        json_array_append_new(rows, json_pack("[s, s, s]", text_of(item, "policy"),
                                              text_of(item, "params"), text_of(item, "in")));
    tec_sides_table(out, "Rows of one report alone", heads, rows, "There are none.");
    json_decref(heads);
    json_decref(rows);
}

static void put_page(const json_t *comparison, FILE *out)
{
    const json_t *item, *last = NULL, *worst = json_object_get(comparison, "worst");
    char words[2600];
    size_t i;
    snprintf(words, sizeof words, "before: %.1000s, after: %.1000s. ",
             text_of(comparison, "before"), text_of(comparison, "after"));
    if (json_is_number(worst))
        snprintf(words + strlen(words), sizeof words - strlen(words),
                 "The p50 or p99 of frames or actions that grew most is %.3f of what it was; above "
                 "1 is slower.",
                 json_number_value(worst));
    tec_sides_begin(out, "Two benchmarks", words);
    json_array_foreach(json_object_get(comparison, "figures"), i, item)
    {
        if (!last || !same_row(last, item)) /* a row's figures follow each other */
            put_row(comparison, item, out);
        last = item;
    }
    put_alone(json_object_get(comparison, "alone"), out);
    put_facts(json_object_get(comparison, "facts"), out);
    tec_sides_end(out);
}

enum tec_status tec_bench_compare_page(const json_t *comparison, const char *path,
                                       struct tec_error *err)
{
    struct tec_out_file out = {0};
    TEC_TRY(tec_outfile_file_open(&out, path, err));
    put_page(comparison, out.file);
    if (!tec_json_refused())
        return tec_outfile_file_keep(&out, err);
    tec_outfile_file_drop(&out);
    return tec_fail(err, TEC_NO_MEMORY, "no memory for a page");
}
