/* verify.c - runs a golden case with the judge of its kind, and reports each comparison as text or
 * JSON. */
#include "tests/judge/verify.h"

#include "base/json_text.h"

#include <math.h>
#include <string.h>

static const struct {
    const char *family, *kind;
    enum tec_status (*run)(struct tec_verify *v, struct tec_error *err);
} kinds[] = {
#define VERIFY(family, kind, run) {family, kind, tec_verify_##run},
#include "tests/judge/verify.def"
#undef VERIFY
};

static void print_json(const struct tec_verify *v, const char *check, double max_abs, double rms,
                       double bound, bool ok, const char *tap, const char *note)
{
    json_t *line = json_pack("{s:s, s:s, s:o, s:o, s:o, s:b}", "case", v->dir, "check", check,
                             "max_abs", isfinite(max_abs) ? json_real(max_abs) : json_null(), "rms",
                             isfinite(rms) ? json_real(rms) : json_null(), "bound",
                             json_real(bound), "ok", ok);
    if (line && tap)
        json_object_set_new(line, "tap", json_string(tap));
    if (line && note)
        json_object_set_new(line, "note", json_string(note));
    tec_json_print(v->out, line, JSON_COMPACT, "a check", NULL);
    json_decref(line);
}

static void print(const struct tec_verify *v, const char *check, double max_abs, double rms,
                  double bound, bool ok, const char *tap, const char *note)
{
    if (!v->out)
        return;
    if (!v->text) {
        print_json(v, check, max_abs, rms, bound, ok, tap, note);
        return;
    }
    fprintf(v->out, "%-6s %s: %s  max %.3g  rms %.3g  bound %.3g%s%s\n", ok ? "ok" : "NOT OK",
            v->dir, check, max_abs, rms, bound, note ? "  " : "", note ? note : "");
}

const char *tec_verify_shipped(const struct tec_verify *v, const char *name)
{
    const char *path = tec_arena_printf(v->arena, "%s/pipelines/%s", v->root ? v->root : ".", name);
    return path ? path : "";
}

void tec_verify_report(struct tec_verify *v, const char *check, double max_abs, double rms,
                       double bound, bool ok, const char *tap, const char *note)
{
    v->checks++;
    v->failed += !ok;
    print(v, check, max_abs, rms, bound, ok, tap, note);
}

void tec_verify_unjudged(struct tec_verify *v, const char *check, const char *why)
{
    v->unjudged++;
    tec_verify_compared(v, check);
    print(v, check, 0.0, 0.0, 0.0, true, NULL, why);
}

void tec_verify_cannot(struct tec_verify *v, const char *check, const struct tec_error *err)
{
    tec_verify_compared(v, check);
    tec_verify_report(v, check, 1.0, 0.0, 0.0, false, NULL, err->message);
}

void tec_verify_not_compared(struct tec_verify *v, const char *tensor, const char *why)
{
    v->not_compared++;
    print(v, tensor, 0.0, 0.0, 0.0, true, NULL, why);
}

void tec_verify_part(struct tec_verify *v, const char *tensor, size_t n, size_t of, const char *why)
{
    tec_verify_compared(v, tensor);
    if (n >= of)
        return;
    v->in_part++;
    if (v->out && v->text)
        fprintf(v->out, "part   %s: %s  %zu of %zu values compared: %s\n", v->dir, tensor, n, of,
                why);
    if (!v->out || v->text)
        return;
    json_t *line = json_pack("{s:s, s:s, s:f, s:f, s:f, s:b, s:I, s:I, s:s}", "case", v->dir,
                             "check", tensor, "max_abs", 0.0, "rms", 0.0, "bound", 0.0, "ok", 1,
                             "compared", (json_int_t)n, "values", (json_int_t)of, "note", why);
    tec_json_print(v->out, line, JSON_COMPACT, "a check", NULL);
    json_decref(line);
}

/* The bounds of a tensor, as "Bounds" in tests/golden/README.md says. */
static void bounds(const struct tec_verify *v, const json_t *tensor, double *max, double *rms)
{
    bool bf16 = strcmp(v->dtype, "bf16") == 0;
    const json_t *e = json_object_get(tensor, bf16 ? "err_bf16" : "err_fp32");
    double e_max = json_number_value(json_object_get(e, "max"));
    double e_rms = json_number_value(json_object_get(e, "rms"));
    if (bf16) {
        *max = 1.5 * e_max;
        *rms = 1.5 * e_rms;
        return;
    }
    *max = fmax(4.0 * e_max, 2e-6 * json_number_value(json_object_get(tensor, "rms")));
    *rms = 4.0 * e_rms;
}

void tec_verify_floats(struct tec_verify *v, const char *check, const float *got, const float *want,
                       size_t n, const json_t *tensor, const char *tap)
{
    double max = 0.0, sum = 0.0, max_bound = 0.0, rms_bound = 0.0;
    bounds(v, tensor, &max_bound, &rms_bound);
    for (size_t i = 0; i < n; i++) {
        double d = fabs((double)got[i] - (double)want[i]);
        if (!(d <= max)) /* written so that a NaN is kept */
            max = d;
        sum += d * d;
    }
    double rms = n ? sqrt(sum / (double)n) : 0.0;
    tec_verify_report(v, check, max, rms, max_bound, max <= max_bound && rms <= rms_bound, tap,
                      max <= max_bound && !(rms <= rms_bound) ? "rms beyond its bound" : NULL);
}

void tec_verify_ids(struct tec_verify *v, const char *check, const int *got, size_t n_got,
                    const int *want, size_t n_want)
{
    size_t n = n_got < n_want ? n_got : n_want, wrong = n_got + n_want - 2 * n;
    for (size_t i = 0; i < n; i++)
        wrong += got[i] != want[i];
    tec_verify_report(v, check, (double)wrong, 0.0, 0.0, wrong == 0, NULL, NULL);
}

static enum tec_status dispatch(struct tec_verify *v, struct tec_error *err)
{
    const char *family = json_string_value(json_object_get(v->json, "family"));
    const char *kind = json_string_value(json_object_get(v->json, "kind"));
    if (!family || !kind)
        return tec_fail(err, TEC_MALFORMED, "%s/case.json: no family or kind", v->dir);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i].family, family) == 0 && strcmp(kinds[i].kind, kind) == 0)
            return kinds[i].run(v, err);
    return tec_fail(err, TEC_UNSUPPORTED, "%s: no judge for family '%s', kind '%s'", v->dir, family,
                    kind);
}

enum tec_status tec_verify_case(struct tec_verify *v, const char *dir, struct tec_error *err)
{
    struct tec_error mine;
    json_error_t where = {.line = 0};
    const char *path = tec_arena_printf(v->arena, "%s/case.json", dir);
    v->dir = dir;
    v->compared = json_object();
    v->json = path ? json_load_file(path, JSON_REJECT_DUPLICATES, &where) : NULL;
    enum tec_status status =
        !v->json ? tec_fail(&mine, TEC_IO, "%s/case.json: line %d: %s", dir, where.line, where.text)
                 : dispatch(v, &mine);
    if (status != TEC_OK) {
        tec_verify_cannot(v, "case", &mine);
        if (err)
            *err = mine;
    } else {
        tec_verify_expected(v);
    }
    json_decref(v->json);
    json_decref(v->compared);
    v->json = v->compared = NULL;
    return status;
}
