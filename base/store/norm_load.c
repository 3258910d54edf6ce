/* norm_load.c - loads normalisation statistics from JSON and safetensors files, and checks them. */
#include "base/store/file.h"
#include "base/store/norm.h"
#include "base/store/safetensors.h"

#include <math.h>
#include <string.h>

enum { MAX_VALUES = 65536 };

/* Maps a statistic's name in the files to its member of struct tec_norm. */
static const struct {
    const char *name;
    size_t offset;
} stats_names[] = {
    {"mean", offsetof(struct tec_norm, mean)}, {"std", offsetof(struct tec_norm, std)},
    {"q01", offsetof(struct tec_norm, q01)},   {"q99", offsetof(struct tec_norm, q99)},
    {"min", offsetof(struct tec_norm, min)},   {"max", offsetof(struct tec_norm, max)},
    {"q10", offsetof(struct tec_norm, q10)},   {"q90", offsetof(struct tec_norm, q90)},
};

enum { N_STATS = sizeof stats_names / sizeof stats_names[0] };

static const double **place(struct tec_norm *norm, size_t i)
{
    return (const double **)(void *)((char *)norm + stats_names[i].offset);
}

/* Check that all given arrays have the same length, and set n. */
static enum tec_status set_length(struct tec_norm *norm, size_t n, const char *name,
                                  const char *where, struct tec_error *err)
{
    if (n > MAX_VALUES)
        return tec_fail(err, TEC_UNSUPPORTED, "%s: %s has %zu values; the limit is %d", where, name,
                        n, MAX_VALUES);
    if (n == 0)
        return tec_fail(err, TEC_MALFORMED, "%s: %s is empty", where, name);
    if (norm->n && norm->n != n)
        return tec_fail(err, TEC_MALFORMED, "%s: %s has %zu values, the ones before it %zu", where,
                        name, n, norm->n);
    norm->n = n;
    return TEC_OK;
}

static enum tec_status check_order(const double *low, const double *high, size_t n,
                                   const char *names, const char *where, struct tec_error *err)
{
    for (size_t i = 0; low && high && i < n; i++)
        if (high[i] < low[i])
            return tec_fail(err, TEC_MALFORMED, "%s: %s of value %zu are %g and %g: out of order",
                            where, names, i, low[i], high[i]);
    return TEC_OK;
}

/* Statistics are in the units of what a robot measures and does. A larger value is a mistake in the
 * file, and would become a wrong command. */
static enum tec_status check_size(double value, const char *name, size_t i, const char *where,
                                  struct tec_error *err)
{
    const double most = 1e6;
    if (!isfinite(value))
        return tec_fail(err, TEC_MALFORMED, "%s: %s[%zu] is not finite", where, name, i);
    if (fabs(value) > most)
        return tec_fail(err, TEC_MALFORMED, "%s: %s[%zu] is %g; statistics are within +-%g", where,
                        name, i, value, most);
    return TEC_OK;
}

/* Check that values are finite and in order, and that the arrays that the mode needs are there. */
static enum tec_status check_values(struct tec_norm *norm, const char *where, struct tec_error *err)
{
    for (size_t k = 0; k < N_STATS; k++) {
        const double *a = *place(norm, k);
        for (size_t i = 0; a && i < norm->n; i++)
            TEC_TRY(check_size(a[i], stats_names[k].name, i, where, err));
    }
    for (size_t i = 0; norm->std && i < norm->n; i++)
        if (norm->std[i] < 0.0)
            return tec_fail(err, TEC_MALFORMED, "%s: std[%zu] is %g, below 0", where, i,
                            norm->std[i]);
    TEC_TRY(check_order(norm->q01, norm->q99, norm->n, "q01 and q99", where, err));
    TEC_TRY(check_order(norm->min, norm->max, norm->n, "min and max", where, err));
    TEC_TRY(check_order(norm->q10, norm->q90, norm->n, "q10 and q90", where, err));
    const char *missing = tec_norm_missing(norm);
    if (!missing)
        return TEC_OK;
    return tec_fail(err, TEC_MALFORMED, "%s: %s normalisation needs %s, which are missing", where,
                    tec_norm_mode_name(norm->mode), missing);
}

static enum tec_status load_array(struct tec_norm *norm, size_t k, const json_t *array,
                                  const char *where, struct tec_arena *arena, struct tec_error *err)
{
    const char *name = stats_names[k].name;
    if (!json_is_array(array))
        return tec_fail(err, TEC_MALFORMED, "%s: %s is not a list of numbers", where, name);
    TEC_TRY(set_length(norm, json_array_size(array), name, where, err));
    double *values = TEC_NEW(arena, norm->n, double);
    if (!values)
        return tec_fail(err, TEC_NO_MEMORY, "%s: no memory for %zu values", where, norm->n);
    for (size_t i = 0; i < norm->n; i++) {
        const json_t *value = json_array_get(array, i);
        if (!json_is_number(value))
            return tec_fail(err, TEC_MALFORMED, "%s: %s[%zu] is not a number", where, name, i);
        values[i] = json_number_value(value);
    }
    *place(norm, k) = values;
    return TEC_OK;
}

enum tec_status tec_norm_from_json(struct tec_norm *norm, const json_t *stats,
                                   enum tec_norm_mode mode, const char *where,
                                   struct tec_arena *arena, struct tec_error *err)
{
    struct tec_norm made = {.mode = mode, .convention = TEC_NORM_OPENPI, .eps = 1e-6};
    if (!json_is_object(stats))
        return tec_fail(err, TEC_MALFORMED, "%s: is not an object of mean, std, q01, q99", where);
    for (size_t k = 0; k < N_STATS; k++) {
        const json_t *array = json_object_get(stats, stats_names[k].name);
        if (array && !json_is_null(array))
            TEC_TRY(load_array(&made, k, array, where, arena, err));
    }
    TEC_TRY(check_values(&made, where, err));
    *norm = made;
    return TEC_OK;
}

static enum tec_status load_mask(struct tec_norm *norm, const json_t *array, const char *where,
                                 struct tec_arena *arena, struct tec_error *err)
{
    if (!array || json_is_null(array))
        return TEC_OK;
    if (!json_is_array(array) || json_array_size(array) != norm->n)
        return tec_fail(err, TEC_MALFORMED, "%s: mask is not a list of %zu booleans (it has %zu)",
                        where, norm->n, json_array_size(array));
    bool *mask = TEC_NEW(arena, norm->n, bool);
    if (!mask)
        return tec_fail(err, TEC_NO_MEMORY, "%s: no memory for %zu values", where, norm->n);
    for (size_t i = 0; i < norm->n; i++) {
        const json_t *value = json_array_get(array, i);
        if (!json_is_boolean(value))
            return tec_fail(err, TEC_MALFORMED, "%s: mask[%zu] is neither true nor false", where,
                            i);
        mask[i] = json_is_true(value);
    }
    norm->mask = mask;
    return TEC_OK;
}

enum tec_status tec_norm_from_dataset(struct tec_norm *norm, const json_t *stats,
                                      enum tec_norm_mode mode, double eps, const char *where,
                                      struct tec_arena *arena, struct tec_error *err)
{
    struct tec_norm made;
    if (mode != TEC_NORM_QUANTILE && mode != TEC_NORM_MIN_MAX)
        return tec_fail(err, TEC_UNSUPPORTED,
                        "%s: statistics of datasets are used in mode quantile or min_max", where);
    TEC_TRY(tec_norm_from_json(&made, stats, mode, where, arena, err));
    TEC_TRY(load_mask(&made, json_object_get(stats, "mask"), where, arena, err));
    made.convention = TEC_NORM_DATASET;
    made.eps = eps;
    *norm = made;
    return TEC_OK;
}

static enum tec_status no_key(json_t *all, const char *where, struct tec_error *err)
{
    char keys[160] = "";
    size_t used = 0;
    const char *key;
    json_t *value;
    json_object_foreach(all, key, value)
    {
        if (used + 40 < sizeof keys)
            used +=
                (size_t)snprintf(keys + used, sizeof keys - used, "%s%.30s", used ? ", " : "", key);
    }
    return tec_fail(err, TEC_NOT_FOUND, "%s: there is none; it has %s", where,
                    used ? keys : "nothing");
}

enum tec_status tec_norm_load_openpi(struct tec_norm *norm, const char *path, const char *key,
                                     enum tec_norm_mode mode, struct tec_arena *arena,
                                     struct tec_error *err)
{
    json_t *json = NULL;
    TEC_TRY(tec_checkpoint_json_load(&json, path, arena->heap, err));
    json_t *all = json_object_get(json, "norm_stats");
    const json_t *stats = json_object_get(all, key);
    const char *where = tec_arena_printf(arena, "%s: norm_stats.%s", path, key);
    enum tec_status status;
    if (!where)
        status = tec_fail(err, TEC_NO_MEMORY, "%s: no memory for its path", path);
    else if (!json_is_object(all))
        status = tec_fail(err, TEC_MALFORMED, "%s: norm_stats, an object, is missing", path);
    else if (!stats)
        status = no_key(all, where, err);
    else
        status = tec_norm_from_json(norm, stats, mode, where, arena, err);
    json_decref(json);
    return status;
}

/* Does the step normalise some observations only, and not this one? Actions are no observations. */
static bool is_left_out(const json_t *config, const char *type, const char *feature)
{
    const json_t *keys = json_object_get(config, "normalize_observation_keys"), *key;
    size_t i;
    if (!json_is_array(keys) || (type && strcmp(type, "ACTION") == 0))
        return false;
    json_array_foreach(keys, i, key)
    {
        const char *name = json_string_value(key);
        if (name && strcmp(name, feature) == 0)
            return false;
    }
    return true;
}

/* Find the mode of a feature in a normalizer step: `features` gives its type, `norm_map` the mode
 * of that type. */
static enum tec_status step_mode(struct tec_norm *norm, const json_t *config, const char *feature,
                                 struct tec_error *err)
{
    static const struct {
        const char *name;
        enum tec_norm_mode mode;
    } modes[] = {{"IDENTITY", TEC_NORM_NONE},
                 {"MEAN_STD", TEC_NORM_MEAN_STD},
                 {"QUANTILES", TEC_NORM_QUANTILE},
                 {"QUANTILE10", TEC_NORM_QUANTILE10},
                 {"MIN_MAX", TEC_NORM_MIN_MAX}};
    const json_t *entry = json_object_get(json_object_get(config, "features"), feature);
    const char *type = json_string_value(json_object_get(entry, "type"));
    const json_t *eps = json_object_get(config, "eps");
    norm->eps = eps ? json_number_value(eps) : 1e-8;
    if (eps && !(json_is_number(eps) && norm->eps >= 0.0 && norm->eps < 1.0))
        return tec_fail(err, TEC_MALFORMED, "normalizer step: eps is not a number from 0 to 1");
    if (!entry && strcmp(feature, "action") == 0)
        type = "ACTION"; /* the reference unnormalises actions whether they are listed or not */
    if ((!entry && !type) || is_left_out(config, type, feature))
        return TEC_OK;
    if (!type)
        return tec_fail(err, TEC_MALFORMED, "normalizer step: features.%s has no type", feature);
    const json_t *map = json_object_get(config, "norm_map");
    const char *mode = json_string_value(json_object_get(map, type));
    if (!mode && !json_object_get(map, type))
        return TEC_OK; /* as in the reference, a missing entry means IDENTITY */
    for (size_t i = 0; mode && i < sizeof modes / sizeof modes[0]; i++) {
        if (strcmp(modes[i].name, mode) == 0) {
            norm->mode = modes[i].mode;
            return TEC_OK;
        }
    }
    return tec_fail(err, TEC_UNSUPPORTED,
                    "normalizer step: norm_map.%s is '%.40s'; known are IDENTITY, MEAN_STD, "
                    "QUANTILES, QUANTILE10, MIN_MAX",
                    type, mode ? mode : "not a string");
}

static enum tec_status load_tensor(struct tec_norm *norm, size_t k, const struct tec_tensors *state,
                                   const struct tec_stored *s, struct tec_arena *arena,
                                   struct tec_error *err)
{
    const char *file = tec_tensors_file(state, s->file);
    bool vector = s->rank <= 1;
    for (int i = 1; i < s->rank; i++) /* those of pictures are [channels, 1, 1] */
        vector = s->shape[i] == 1 && (vector || i == 1);
    bool real = s->dtype == TEC_F32 || s->dtype == TEC_F64 || s->dtype == TEC_F16 ||
                s->dtype == TEC_BF16; /* of a model that normalised in its own type */
    if (!vector || !real)
        return tec_fail(err, TEC_SHAPE, "%s: tensor '%.80s' is not a vector of floats", file,
                        s->name);
    TEC_TRY(set_length(norm, (size_t)tec_stored_count(s), s->name, file, err));
    double *values = TEC_NEW(arena, norm->n, double);
    float *read = TEC_NEW(arena, norm->n, float);
    if (!values || !read)
        return tec_fail(err, TEC_NO_MEMORY, "%s: no memory for %zu values", file, norm->n);
    TEC_TRY(tec_tensors_read_f32(state, s, 0, read, norm->n, err));
    for (size_t i = 0; i < norm->n; i++)
        values[i] = (double)read[i];
    *place(norm, k) = values;
    return TEC_OK;
}

enum tec_status tec_norm_load_lerobot(struct tec_norm *norm, const json_t *step,
                                      const struct tec_tensors *state, const char *feature,
                                      struct tec_arena *arena, struct tec_error *err)
{
    struct tec_norm made = {.convention = TEC_NORM_LEROBOT};
    const char *where = "normalizer step";
    TEC_TRY(step_mode(&made, json_object_get(step, "config"), feature, err));
    for (size_t k = 0; state && k < N_STATS; k++) {
        const char *name = tec_arena_printf(arena, "%s.%s", feature, stats_names[k].name);
        if (!name)
            return tec_fail(err, TEC_NO_MEMORY, "no memory for the statistics of %s", feature);
        const struct tec_stored *s = tec_tensors_find(state, name);
        if (s) {
            where = tec_arena_printf(arena, "%s: %s", tec_tensors_file(state, s->file), feature);
            TEC_TRY(load_tensor(&made, k, state, s, arena, err));
        }
    }
    made.wanted = made.mode != TEC_NORM_NONE;
    if (made.n == 0)
        made.mode = TEC_NORM_NONE;
    TEC_TRY(check_values(&made, where ? where : feature, err));
    *norm = made;
    return TEC_OK;
}
