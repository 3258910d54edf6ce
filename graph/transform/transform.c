/* transform.c - parses and runs the float64 steps that robot descriptions are made of.
 *
 * Parsing runs at load, the steps on the session's thread. A step is a pure function of one entry
 * and, perhaps, of the state's, found in a table by its kind; only `select` changes the number of
 * entries. The order of operations is that of the published code, so that results are equal to the
 * bit. */
#include "graph/transform/transform.h"

#include "graph/transform/fields.h"
#include "graph/transform/robot.h"
#include "graph/transform/rotation.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_STEPS = 64 };

/* The names lie beside each other so that they can be given as a list. */
static const char *const names[] = {
#define TRANSFORM(name, a, b, what) #name,
#include "graph/transform/transforms.def"
#undef TRANSFORM
};

static const struct {
    const char *a, *b;
} numbers[] = {
#define TRANSFORM(name, a, b, what) {a, b},
#include "graph/transform/transforms.def"
#undef TRANSFORM
};

const char *tec_transform_name(enum tec_transform_kind kind)
{
    return (unsigned)kind < TEC_N_TRANSFORMS ? names[kind] : "?";
}

/* Read the entries that the step works on: those listed, counted from 1, or all. */
static void read_at(struct tec_fields *f, struct tec_transform *step, int n_in)
{
    int n = 0;
    bool all = !tec_fields_get(f, "at");
    const double *listed = tec_fields_numbers(f, "at", TEC_ROBOT_MAX_VALUES, &n);
    if (all)
        n = n_in;
    int *at = TEC_NEW(f->arena, (size_t)n + 1, int);
    if (!at) {
        tec_fields_fail(f, TEC_NO_MEMORY, "no memory for 'at'");
        return;
    }
    for (int i = 0; i < n && f->status == TEC_OK; i++) {
        double x = all ? i + 1 : listed[i];
        if (!(x >= 1 && x <= n_in) || floor(x) != x) {
            tec_fields_fail(f, TEC_MALFORMED, "'at[%d]' is %g; entries are 1 to %d", i + 1, x,
                            n_in);
            return;
        }
        at[i] = (int)x - 1;
        for (int j = 0; j < i && step->kind != TEC_TRANSFORM_select; j++)
            if (at[j] == at[i])
                tec_fields_fail(f, TEC_MALFORMED, "'at' lists entry %d twice", at[i] + 1);
    }
    step->at = at;
    step->n_at = n;
}

/* Lists of numbers, one for each row of a chunk. */
static const double *read_rows(struct tec_fields *f, const char *name, int n_at, int *rows)
{
    const json_t *lists = tec_fields_list(f, name, TEC_ROBOT_MAX_VALUES);
    size_t n = json_array_size(lists), width = (size_t)n_at;
    if (!lists)
        return NULL;
    double *all = TEC_NEW(f->arena, n * width + 1, double);
    if (!all) {
        tec_fields_fail(f, TEC_NO_MEMORY, "no memory for '%s'", name);
        return NULL;
    }
    for (size_t row = 0; row < n && f->status == TEC_OK; row++) {
        const json_t *list = json_array_get(lists, row);
        if (json_array_size(list) != width)
            tec_fields_fail(f, TEC_MALFORMED, "'%s[%zu]' must list %d numbers", name, row + 1,
                            n_at);
        for (size_t i = 0; i < width && f->status == TEC_OK; i++) {
            const json_t *x = json_array_get(list, i);
            all[row * width + i] = json_number_value(x);
            if (!json_is_number(x) || !isfinite(all[row * width + i]))
                tec_fields_fail(f, TEC_MALFORMED, "'%s[%zu][%zu]' must be a finite number", name,
                                row + 1, i + 1);
        }
    }
    *rows = (int)n;
    return all;
}

/* A number, or a list of one for each entry that the step works on, or such lists. */
static double read_number(struct tec_fields *f, const char *name, const struct tec_transform *step,
                          bool by_row, const double **list, int *rows)
{
    int n = 0;
    const json_t *given = name ? tec_fields_get(f, name) : NULL;
    *rows = 1;
    if (!name || !json_is_array(given) || step->kind == TEC_TRANSFORM_bins)
        return name ? tec_fields_number(f, name, 0.0) : 0.0;
    if (by_row && json_is_array(json_array_get(given, 0))) {
        *list = read_rows(f, name, step->n_at, rows);
        return 0.0;
    }
    *list = tec_fields_numbers(f, name, TEC_ROBOT_MAX_VALUES, &n);
    if (f->status == TEC_OK && n != step->n_at)
        tec_fields_fail(f, TEC_MALFORMED, "'%s' lists %d numbers for %d entries", name, n,
                        step->n_at);
    return 0.0;
}

static double number_of(const double *list, int rows, const struct tec_transform *step, int row,
                        int i)
{
    row = row < rows ? row : rows - 1;
    return list[(size_t)row * (size_t)step->n_at + (size_t)i];
}

struct tec_transform tec_transform_of(const struct tec_transform *step, int row, int i)
{
    struct tec_transform one = *step;
    one.a = step->as ? number_of(step->as, step->a_rows, step, row, i) : step->a;
    one.b = step->bs ? number_of(step->bs, step->b_rows, step, row, i) : step->b;
    return one;
}

int tec_transform_adds(const struct tec_transform *step, int i)
{
    double of = step->as ? step->as[i] : step->a;
    return of > 0.0 ? (int)of - 1 : step->at[i];
}

/* The numbers of every entry, in every row that has its own. */
static void check_rows(struct tec_fields *f, const struct tec_transform *step)
{
    int rows = step->a_rows > step->b_rows ? step->a_rows : step->b_rows;
    bool linkage = step->kind == TEC_TRANSFORM_linkage;
    for (int i = 0; i < rows * step->n_at && f->status == TEC_OK; i++) {
        const struct tec_transform one = tec_transform_of(step, i / step->n_at, i % step->n_at);
        if (linkage && !(one.a > 0.0 && one.b > 0.0))
            tec_fields_fail(f, TEC_MALFORMED, "horn and arm must be greater than 0");
        else if (!linkage && !(one.a < one.b))
            tec_fields_fail(f, TEC_MALFORMED, "low = %g must be less than high = %g", one.a, one.b);
    }
}

/* The entries of the state that are added. */
static void check_added(struct tec_fields *f, const struct tec_transform *step, int n_state)
{
    for (int i = 0; i < step->n_at && f->status == TEC_OK; i++) {
        const struct tec_transform one = tec_transform_of(step, 0, i);
        if (n_state == 0)
            tec_fields_fail(f, TEC_MALFORMED, "add_state is for actions only");
        else if (tec_fields_get(f, "of") && !(one.a >= 1.0 && floor(one.a) == one.a))
            tec_fields_fail(f, TEC_MALFORMED, "'of' is %g; entries are 1 to %d", one.a, n_state);
        else if (one.a > n_state || tec_transform_adds(step, i) >= n_state)
            tec_fields_fail(f, TEC_MALFORMED, "entry %d: the state has %d",
                            one.a > n_state ? (int)fmin(one.a, 1e9) : step->at[i] + 1, n_state);
    }
}

static void read_step(struct tec_fields *f, struct tec_transform *step, int n_in, int n_state)
{
    const char *a = numbers[step->kind].a, *b = numbers[step->kind].b;
    read_at(f, step, n_in);
    bool bins = step->kind == TEC_TRANSFORM_bins, adds = step->kind == TEC_TRANSFORM_add_state;
    if (a && !bins && !adds)
        tec_fields_need(f, a);
    if (b && !bins)
        tec_fields_need(f, b);
    if (bins && !tec_fields_get(f, a) != !tec_fields_get(f, b))
        tec_fields_fail(f, TEC_MALFORMED, "bins needs both numbers, vocabulary and bins, or none");
    step->a = read_number(f, a, step, n_state > 0 && !adds, &step->as, &step->a_rows);
    step->b = read_number(f, b, step, n_state > 0, &step->bs, &step->b_rows);
    if (step->kind == TEC_TRANSFORM_linkage || (a && strcmp(a, "low") == 0))
        check_rows(f, step);
    if (bins && f->status == TEC_OK && tec_fields_get(f, a))
        f->status = tec_transform_check_bins(step, f->where, f->err);
    if (step->kind == TEC_TRANSFORM_select && step->n_at == 0)
        tec_fields_fail(f, TEC_MALFORMED, "select keeps nothing; list entries in 'at'");
    if (adds)
        check_added(f, step, n_state);
}

/* Rotations work on groups of so many entries; others on one. */
static int group_of(enum tec_transform_kind kind)
{
    if (kind == TEC_TRANSFORM_axis_angle_rpy)
        return 3;
    return kind == TEC_TRANSFORM_quaternion_6d || kind == TEC_TRANSFORM_rpy_6d ? 6 : 1;
}

static enum tec_status parse_step(struct tec_transform *step, const json_t *json, int n_in,
                                  int n_state, const char *where, struct tec_arena *arena,
                                  struct tec_error *err)
{
    const char *op = json_string_value(json_object_get(json, "op"));
    const char *fields[] = {"op", "at", NULL, NULL};
    size_t n_fields = 2;
    int kind = -1;
    for (int i = 0; op && i < TEC_N_TRANSFORMS; i++)
        if (strcmp(names[i], op) == 0)
            kind = i;
    if (kind >= 0 && numbers[kind].a)
        fields[n_fields++] = numbers[kind].a;
    if (kind >= 0 && numbers[kind].b)
        fields[n_fields++] = numbers[kind].b;
    if (kind < 0) { /* say so before complaining of its fields */
        const char *const only[] = {"op"};
        json_t *head = json_pack("{s:O*}", "op", json_object_get(json, "op"));
        struct tec_fields f = tec_fields_open(head, only, 1, where, arena, err);
        tec_fields_need(&f, "op");
        tec_fields_word(&f, "op", names, TEC_N_TRANSFORMS, 0);
        json_decref(head);
        return f.status;
    }
    struct tec_fields f = tec_fields_open(json, fields, n_fields, where, arena, err);
    step->kind = (enum tec_transform_kind)kind;
    read_step(&f, step, n_in, n_state);
    if (f.status == TEC_OK && step->n_at % group_of(step->kind) != 0)
        tec_fields_fail(&f, TEC_MALFORMED, "%s works on %d entries at a time, not on %d", op,
                        group_of(step->kind), step->n_at);
    return f.status;
}

enum tec_status tec_transforms_parse(struct tec_transforms *out, const json_t *json, int n_in,
                                     int n_state, const char *where, struct tec_arena *arena,
                                     struct tec_error *err)
{
    size_t n = json_array_size(json);
    *out = (struct tec_transforms){.n_in = n_in, .n_out = n_in};
    if (json && (!json_is_array(json) || n > MAX_STEPS))
        return tec_fail(err, TEC_MALFORMED, "%s: must be a list of at most %d steps", where,
                        MAX_STEPS);
    out->steps = TEC_NEW(arena, n + 1, struct tec_transform);
    if (!out->steps)
        return tec_fail(err, TEC_NO_MEMORY, "%s: no memory for %zu steps", where, n);
    for (size_t i = 0; i < n; i++) {
        char here[220];
        snprintf(here, sizeof here, "%.180s[%zu]", where, i + 1);
        TEC_TRY(parse_step(&out->steps[i], json_array_get(json, i), out->n_out, n_state, here,
                           arena, err));
        if (out->steps[i].kind == TEC_TRANSFORM_select)
            out->n_out = out->steps[i].n_at;
        out->n++;
    }
    return TEC_OK;
}

bool tec_transform_has_bin(const struct tec_transform *step, double x)
{
    return x >= step->a - step->b && x < step->a && floor(x) == x;
}

const struct tec_transform *tec_transforms_bins(const struct tec_transforms *t)
{
    for (int i = 0; i < t->n; i++)
        if (t->steps[i].kind == TEC_TRANSFORM_bins)
            return &t->steps[i];
    return NULL;
}

enum tec_status tec_transform_check_bins(const struct tec_transform *step, const char *where,
                                         struct tec_error *err)
{
    double vocabulary = step->a, bins = step->b;
    if (bins >= 2.0 && bins <= vocabulary && vocabulary <= 1 << 24 && floor(bins) == bins &&
        floor(vocabulary) == vocabulary)
        return TEC_OK;
    return tec_fail(err, TEC_MALFORMED,
                    "%s: bins = %g of vocabulary = %g: must be whole numbers, 2 <= bins <= "
                    "vocabulary <= 2^24",
                    where, bins, vocabulary);
}

int tec_transforms_width(const struct tec_transforms *t)
{
    int width = t->n_in;
    for (int i = 0; i < t->n; i++)
        if (t->steps[i].kind == TEC_TRANSFORM_select && t->steps[i].n_at > width)
            width = t->steps[i].n_at;
    return width;
}

/* The steps, one entry at a time; what select does is done by tec_transforms_run. */
static double tec_transform_select(const struct tec_transform *t, double x, double state)
{
    (void)t, (void)state;
    return x;
}

static double tec_transform_multiply(const struct tec_transform *t, double x, double state)
{
    (void)state;
    return x * t->a;
}

static double tec_transform_shift(const struct tec_transform *t, double x, double state)
{
    (void)state;
    return x + t->a;
}

static double tec_transform_unit_to_range(const struct tec_transform *t, double x, double state)
{
    (void)state;
    return x * (t->b - t->a) + t->a;
}

static double tec_transform_range_to_unit(const struct tec_transform *t, double x, double state)
{
    (void)state;
    return (x - t->a) / (t->b - t->a);
}

/* Law of cosines for a slider driven by a horn through an arm; the order of operations is that of
 * openpi's aloha_policy.py, so that results are equal to the bit. At x = 0 the quotient is infinite
 * and is clipped (NaN when horn = arm stays one). */
static double tec_transform_linkage(const struct tec_transform *t, double x, double state)
{
    (void)state;
    double horn = t->a, arm = t->b;
    double sine = (horn * horn + x * x - arm * arm) / (2.0 * horn * x);
    return asin(sine < -1.0 ? -1.0 : sine > 1.0 ? 1.0 : sine);
}

static double tec_transform_clamp(const struct tec_transform *t, double x, double state)
{
    (void)state;
    return x < t->a ? t->a : x > t->b ? t->b : x;
}

static double tec_transform_round(const struct tec_transform *t, double x, double state)
{
    (void)t, (void)state;
    return rint(x);
}

static double tec_transform_add_state(const struct tec_transform *t, double x, double state)
{
    (void)t;
    return x + state;
}

static double tec_transform_single(const struct tec_transform *t, double x, double state)
{
    (void)t, (void)state;
    return (double)(float)x;
}

static double tec_transform_sign(const struct tec_transform *t, double x, double state)
{
    (void)t, (void)state;
    return x > 0.0 ? 1.0 : x < 0.0 ? -1.0 : x; /* of NaN it is NaN, as numpy's */
}

static double tec_transform_sine(const struct tec_transform *t, double x, double state)
{
    (void)t, (void)state;
    return sin(x);
}

static double tec_transform_cosine(const struct tec_transform *t, double x, double state)
{
    (void)t, (void)state;
    return cos(x);
}

/* What rotations do is done by turn. */
static double tec_transform_quaternion_6d(const struct tec_transform *t, double x, double state)
{
    (void)t, (void)state;
    return x;
}

static double tec_transform_rpy_6d(const struct tec_transform *t, double x, double state)
{
    (void)t, (void)state;
    return x;
}

static double tec_transform_axis_angle_rpy(const struct tec_transform *t, double x, double state)
{
    (void)t, (void)state;
    return x;
}

/* The groups of a rotation. */
static void turn(const struct tec_transform *step, double *x)
{
    int group = group_of(step->kind);
    for (int i = 0; i + group <= step->n_at; i += group) {
        double from[6], to[6];
        for (int k = 0; k < group; k++)
            from[k] = x[step->at[i + k]];
        if (step->kind == TEC_TRANSFORM_quaternion_6d)
            tec_rotation_quaternion_6d(from, to);
        else if (step->kind == TEC_TRANSFORM_rpy_6d)
            tec_rotation_rpy_6d(from, to);
        else
            tec_rotation_axis_angle_rpy(from, to);
        for (int k = 0; k < group; k++)
            x[step->at[i + k]] = to[k];
    }
}

/* Edge i of numpy's linspace(-1, 1, bins): a product and a sum, each rounded; the last is exact. */
static double edge(double i, double bins)
{
    double step = 2.0 / (bins - 1.0), along = i * step;
    return i == bins - 1.0 ? 1.0 : along + -1.0;
}

static double tec_transform_bins(const struct tec_transform *t, double x, double state)
{
    (void)state;
    if (!isfinite(x))
        return x;
    double i = floor(t->a - x - 1.0), last = t->b - 2.0;
    i = i < 0.0 ? 0.0 : i > last ? last : i;
    return (edge(i, t->b) + edge(i + 1.0, t->b)) / 2.0;
}

static double (*const functions[])(const struct tec_transform *t, double x, double state) = {
#define TRANSFORM(name, a, b, what) tec_transform_##name,
#include "graph/transform/transforms.def"
#undef TRANSFORM
};

void tec_transforms_run(const struct tec_transforms *t, int row, double *x, const double *state,
                        double *scratch)
{
    for (int i = 0; i < t->n; i++) {
        const struct tec_transform *step = &t->steps[i];
        if (step->kind == TEC_TRANSFORM_select) {
            for (int j = 0; j < step->n_at; j++)
                scratch[j] = x[step->at[j]];
            memcpy(x, scratch, (size_t)step->n_at * sizeof *x);
            continue;
        }
        if (group_of(step->kind) > 1) {
            turn(step, x);
            continue;
        }
        bool wants_state = step->kind == TEC_TRANSFORM_add_state;
        for (int j = 0; j < step->n_at; j++) {
            const struct tec_transform one = tec_transform_of(step, row, j);
            x[step->at[j]] = functions[step->kind](
                &one, x[step->at[j]], wants_state ? state[tec_transform_adds(step, j)] : 0.0);
        }
    }
}
