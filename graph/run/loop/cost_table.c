/* cost_table.c - reads a .costs file: the measured durations of launches by node and number of
 * rows.
 *
 * Runs at load. The file is checked strictly, with the row and field in each message, and sorted by
 * node and rows; a lookup returns the smallest measured point that is large enough, or the
 * largest. */
#include "graph/run/loop/cost_table.h"

#include "base/store/file.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_POINT = 1 << 20 };

static const double most_us = 1e9, most_factor = 1e3;

static enum tec_status bad(const char *where, size_t row, struct tec_error *err, const char *what,
                           const char *name)
{
    return tec_fail(err, TEC_MALFORMED, "%s: variants[%zu]: %s '%s'", where, row, what, name);
}

static enum tec_status take_us(double *out, const json_t *row, const char *field, const char *where,
                               size_t index, struct tec_error *err)
{
    const json_t *value = json_object_get(row, field);
    if (!value)
        return bad(where, index, err, "there is no", field);
    double us = json_number_value(value);
    if (!json_is_number(value) || !(us >= 0.0 && us <= most_us))
        return bad(where, index, err, "not a time in microseconds:", field);
    *out = us;
    return TEC_OK;
}

/* {} or one number under one of these. */
static const char *const point_words[] = {"batch", "decode", "percent", "tokens"};

static enum tec_status take_point(int *out, const json_t *row, const char *where, size_t index,
                                  struct tec_error *err)
{
    const json_t *point = json_object_get(row, "point");
    const json_t *rows = NULL;
    if (!json_is_object(point))
        return bad(where, index, err, "there is no table", "point");
    for (size_t i = 0; !rows && i < sizeof point_words / sizeof point_words[0]; i++)
        rows = json_object_get(point, point_words[i]);
    *out = 0;
    if (!rows)
        return TEC_OK;
    json_int_t n = json_integer_value(rows);
    if (!json_is_integer(rows) || n < 0 || n > MAX_POINT)
        return bad(where, index, err, "not a number of rows in", "point");
    *out = (int)n;
    return TEC_OK;
}

static enum tec_status take_slices(int *out, const json_t *row, const char *where, size_t index,
                                   struct tec_error *err)
{
    const json_t *slices = json_object_get(json_object_get(row, "point"), "slices");
    json_int_t n = json_integer_value(slices);
    *out = (int)n;
    if (slices && (!json_is_integer(slices) || n < 1 || n > MAX_POINT))
        return bad(where, index, err, "not a number of slices in", "point");
    return TEC_OK;
}

static enum tec_status take_steps(int *out, const json_t *row, const char *where, size_t index,
                                  struct tec_error *err)
{
    const json_t *steps = json_object_get(row, "steps");
    json_int_t n = json_integer_value(steps);
    *out = (int)n;
    if (steps && (!json_is_integer(steps) || n < 1 || n > MAX_POINT))
        return bad(where, index, err, "not a number of steps under", "steps");
    return TEC_OK;
}

static enum tec_status take_row(struct tec_cost_row *out, const json_t *row, const char *where,
                                size_t index, struct tec_arena *arena, struct tec_error *err)
{
    const char *node = json_string_value(json_object_get(row, "node"));
    if (!node || !*node)
        return bad(where, index, err, "there is no name under", "node");
    TEC_TRY(take_point(&out->point, row, where, index, err));
    TEC_TRY(take_slices(&out->slices, row, where, index, err));
    TEC_TRY(take_steps(&out->steps, row, where, index, err));
    TEC_TRY(take_us(&out->min, row, "min", where, index, err));
    TEC_TRY(take_us(&out->p50, row, "p50", where, index, err));
    TEC_TRY(take_us(&out->p99, row, "p99", where, index, err));
    TEC_TRY(take_us(&out->p999, row, "p999", where, index, err));
    TEC_TRY(take_us(&out->max, row, "max", where, index, err));
    out->n = json_integer_value(json_object_get(row, "n"));
    out->node = tec_arena_strdup(arena, node);
    return out->node ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for %s", where);
}

static int by_node(const void *a, const void *b)
{
    const struct tec_cost_row *x = a, *y = b;
    int order = strcmp(x->node, y->node);
    return order ? order : x->point - y->point;
}

static enum tec_status check_rows(const struct tec_cost_table *t, const char *where,
                                  struct tec_error *err)
{
    for (int i = 1; i < t->n_rows; i++)
        if (by_node(&t->rows[i - 1], &t->rows[i]) == 0)
            return tec_fail(err, TEC_MALFORMED, "%s: two variants of '%s' at %d rows", where,
                            t->rows[i].node, t->rows[i].point);
    return TEC_OK;
}

static enum tec_status take_factor(double *out, const json_t *json, const char *field, double least,
                                   double most, const char *where, struct tec_error *err)
{
    const json_t *value = json_object_get(json, field);
    double x = json_number_value(value);
    if (!value)
        return TEC_OK;
    if (!json_is_number(value) || !(x >= least && x <= most))
        return tec_fail(err, TEC_MALFORMED, "%s: %s must be a number from %g to %g", where, field,
                        least, most);
    *out = x;
    return TEC_OK;
}

/* Take words of the file that may be left out: NULL then. */
static enum tec_status take_words(struct tec_cost_table *out, const json_t *json, const char *where,
                                  struct tec_arena *arena, struct tec_error *err)
{
    const struct {
        const char *field, **to;
    } words[] = {{"pipeline", &out->pipeline}, {"device", &out->device}, {"tier", &out->tier}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        const char *word = json_string_value(json_object_get(json, words[i].field));
        *words[i].to = word ? tec_arena_strdup(arena, word) : NULL;
        if (word && !*words[i].to)
            return tec_fail(err, TEC_NO_MEMORY, "no memory for %s", where);
    }
    json_int_t threads = json_integer_value(json_object_get(json, "threads"));
    out->threads = threads > 0 && threads < 1 << 20 ? (int)threads : 0;
    return TEC_OK;
}

/* Take the words of the pipeline; a file without them says nothing. */
static enum tec_status take_settings(struct tec_cost_table *out, const json_t *json,
                                     const char *where, struct tec_arena *arena,
                                     struct tec_error *err)
{
    json_t *settings = json_object_get(json, "settings"), *value;
    const char *name;
    size_t n = json_object_size(settings);
    if (settings && (!json_is_object(settings) || n > TEC_MAX_COST_SETTINGS))
        return tec_fail(err, TEC_MALFORMED, "%s: settings must be a table of up to %d words", where,
                        TEC_MAX_COST_SETTINGS);
    out->settings = TEC_NEW(arena, n + 1, struct tec_cost_setting);
    if (!out->settings)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for %s", where);
    json_object_foreach(settings, name, value)
    {
        struct tec_cost_setting *to = &out->settings[out->n_settings++];
        if (!json_is_string(value))
            return tec_fail(err, TEC_MALFORMED, "%s: settings: not a word under '%.80s'", where,
                            name);
        to->name = tec_arena_strdup(arena, name);
        to->word = tec_arena_strdup(arena, json_string_value(value));
        if (!to->name || !to->word)
            return tec_fail(err, TEC_NO_MEMORY, "no memory for %s", where);
    }
    return TEC_OK;
}

enum tec_status tec_costs_table_take(struct tec_cost_table *out, const json_t *json,
                                     const char *where, struct tec_arena *arena,
                                     struct tec_error *err)
{
    const json_t *rows = json_object_get(json, "variants");
    const char *unit = json_string_value(json_object_get(json, "unit"));
    size_t n = json_array_size(rows);
    *out = (struct tec_cost_table){0};
    if (json_integer_value(json_object_get(json, "schema")) != 1)
        return tec_fail(err, TEC_MALFORMED, "%s: not a cost file of schema 1", where);
    if (unit && strcmp(unit, "us") != 0)
        return tec_fail(err, TEC_MALFORMED, "%s: unit '%.20s'; costs are in us", where, unit);
    if (!json_is_array(rows) || n == 0 || n > TEC_MAX_COST_ROWS)
        return tec_fail(err, TEC_MALFORMED, "%s: variants must be a list of 1 to %d rows", where,
                        TEC_MAX_COST_ROWS);
    TEC_TRY(take_factor(&out->contention, json, "contention", 1.0, most_factor, where, err));
    TEC_TRY(
        take_factor(&out->copy_bytes_per_us, json, "copy_bytes_per_us", 0.0, most_us, where, err));
    TEC_TRY(take_words(out, json, where, arena, err));
    TEC_TRY(take_settings(out, json, where, arena, err));
    out->rows = TEC_NEW(arena, n, struct tec_cost_row);
    if (!out->rows)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for %s", where);
    for (size_t i = 0; i < n; i++)
        TEC_TRY(take_row(&out->rows[i], json_array_get(rows, i), where, i, arena, err));
    out->n_rows = (int)n;
    qsort(out->rows, n, sizeof out->rows[0], by_node);
    return check_rows(out, where, err);
}

enum tec_status tec_costs_table_read(struct tec_cost_table *out, const char *path,
                                     struct tec_arena *arena, struct tec_error *err)
{
    json_t *json = NULL;
    TEC_TRY(tec_checkpoint_json_load(&json, path, arena->heap, err));
    enum tec_status status = tec_costs_table_take(out, json, path, arena, err);
    json_decref(json);
    return status;
}

const struct tec_cost_row *tec_costs_table_row(const struct tec_cost_table *table, const char *node,
                                               int rows)
{
    const struct tec_cost_row *best = NULL;
    for (int i = 0; i < table->n_rows; i++) {
        const struct tec_cost_row *r = &table->rows[i];
        bool of_node =
            r->node[0] == node[0] && strcmp(r->node, node) == 0; /* most begin otherwise */
        if (of_node && (!best || best->point < rows))
            best = r;
    }
    return best;
}

double tec_costs_row_share(const struct tec_cost_row *row, int slices)
{
    return (double)(row->slices > 1 ? row->slices : 1) / (slices > 1 ? slices : 1);
}

double tec_costs_row_us(const struct tec_cost_row *row, double q)
{
    return q <= 0.5 ? row->p50 : q <= 0.99 ? row->p99 : q <= 0.999 ? row->p999 : row->max;
}
