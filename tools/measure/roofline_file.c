/* roofline_file.c - reads a machine of a roofline from a file. */
#include "tools/measure/roofline_file.h"

#include "base/escape.h"
#include "base/store/file.h"

#include <stddef.h>
#include <string.h>

enum { MOST_NAME = 40, MOST_TEXT = 120 };

/* A number of an object: where it goes and what it may be. */
struct field {
    const char *name;
    size_t at;
    bool whole; /* an int; else a double */
    double least, most;
};

static const struct field rates[] = {
    {"bf16_tflops", offsetof(struct tec_peak, bf16), false, 1e-3, 1e6},
    {"f32_tflops", offsetof(struct tec_peak, f32), false, 1e-3, 1e6},
    {"memory_gbs", offsetof(struct tec_peak, memory), false, 1e-2, 1e6},
    {"boundary_us", offsetof(struct tec_peak, boundary), false, 0.0, 1e4},
};
enum { RATES = sizeof rates / sizeof rates[0] };

static const struct field facts[] = {
    {"capability", offsetof(struct tec_chip, capability), true, 80, 199},
    {"processors", offsetof(struct tec_chip, processors), true, 1, 1024},
    {"mhz", offsetof(struct tec_chip, mhz), true, 100, 10000},
    {"threads", offsetof(struct tec_chip, threads), true, 1024, 4096},
    {"shared_kib", offsetof(struct tec_chip, shared), true, 64, 4096},
    {"l2_mib", offsetof(struct tec_chip, l2), true, 1, 4096},
    {"l2_gbs", offsetof(struct tec_chip, l2_rate), true, 1, 1000000},
};
enum { FACTS = sizeof facts / sizeof facts[0] };

static const char *const own[] = {"name",       "title",       "bf16_tflops", "f32_tflops",
                                  "memory_gbs", "boundary_us", "from",        "chip"};
enum { OWN = sizeof own / sizeof own[0] };

struct reading {
    const char *path;
    struct tec_arena *arena;
    struct tec_error *err;
};

/* --- values ----------------------------------------------------------------------------------- */

static enum tec_status read_number(const struct reading *r, const json_t *object, const char *in,
                                   const struct field *f, void *out)
{
    const json_t *json = json_object_get(object, f->name);
    double number = json_number_value(json);
    bool good = f->whole ? json_is_integer(json) : json_is_number(json);
    if (!good || !(number >= f->least && number <= f->most))
        return tec_fail(r->err, TEC_MALFORMED, "%s: %s%s%s: %s, from %g to %g", r->path, in,
                        f->name, json ? "" : " is missing",
                        f->whole ? "a whole number" : "a number", f->least, f->most);
    if (f->whole)
        *(int *)(void *)((char *)out + f->at) = (int)number;
    else
        *(double *)(void *)((char *)out + f->at) = number;
    return TEC_OK;
}

/* A text of the file, fit for a terminal; `none` where there is none, NULL: there must be one. */
static enum tec_status read_text(const struct reading *r, const json_t *object, const char *in,
                                 const char *name, const char *none, const char **out)
{
    const json_t *json = json_object_get(object, name);
    const char *text = json ? json_string_value(json) : none;
    char shown[4 * MOST_TEXT + 1];
    if (!text || !*text || strlen(text) > MOST_TEXT)
        return tec_fail(r->err, TEC_MALFORMED, "%s: %s%s%s: a text of at most %d bytes", r->path,
                        in, name, json ? "" : " is missing", MOST_TEXT);
    tec_escape(shown, sizeof shown, text);
    *out = tec_arena_strdup(r->arena, shown);
    return *out ? TEC_OK : tec_fail(r->err, TEC_NO_MEMORY, "no memory for a machine");
}

/* Only what is listed. */
static enum tec_status check_names(const struct reading *r, json_t *object, const char *in,
                                   const char *const *names, int n)
{
    const char *name;
    json_t *value;
    json_object_foreach(object, name, value)
    {
        bool known = false;
        for (int i = 0; i < n; i++)
            known = known || strcmp(names[i], name) == 0;
        char shown[120];
        tec_escape(shown, sizeof shown, name);
        if (!known)
            return tec_fail(r->err, TEC_MALFORMED, "%s: %s%s: a machine has no such field; %s",
                            r->path, in, shown, "doc/roofline.md lists them");
    }
    return TEC_OK;
}

/* --- a machine -------------------------------------------------------------------------------- */

static enum tec_status read_name(const struct reading *r, const json_t *json, struct tec_peak *peak)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    TEC_TRY(read_text(r, json, "", "name", NULL, &peak->name));
    size_t n = strlen(peak->name);
    if (n > MOST_NAME || strspn(peak->name, letters) != n)
        return tec_fail(r->err, TEC_MALFORMED,
                        "%s: name: at most %d letters, digits, '.', '_' and '-'", r->path,
                        MOST_NAME);
    for (int i = 0; i < tec_n_peaks; i++)
        if (strcmp(tec_peaks[i].name, peak->name) == 0)
            return tec_fail(r->err, TEC_MALFORMED,
                            "%s: name: '%s' is a machine that is built in; take another name",
                            r->path, peak->name);
    return TEC_OK;
}

static enum tec_status read_from(const struct reading *r, json_t *from, struct tec_peak *peak)
{
    const char *names[RATES];
    for (int i = 0; i < RATES; i++)
        names[i] = rates[i].name;
    if (from && !json_is_object(from))
        return tec_fail(r->err, TEC_MALFORMED, "%s: from: an object of texts", r->path);
    TEC_TRY(check_names(r, from, "from.", names, RATES));
    for (int i = 0; i < RATES; i++)
        TEC_TRY(read_text(r, from, "from.", names[i], "not said", &peak->from[i]));
    return TEC_OK;
}

static enum tec_status read_chip(const struct reading *r, json_t *json, struct tec_peak *peak)
{
    const char *names[FACTS];
    struct tec_chip *chip = TEC_NEW(r->arena, 1, struct tec_chip);
    if (!chip)
        return tec_fail(r->err, TEC_NO_MEMORY, "no memory for a machine");
    for (int i = 0; i < FACTS; i++)
        names[i] = facts[i].name;
    if (!json_is_object(json))
        return tec_fail(r->err, TEC_MALFORMED, "%s: chip: an object of numbers", r->path);
    TEC_TRY(check_names(r, json, "chip.", names, FACTS));
    for (int i = 0; i < FACTS; i++)
        TEC_TRY(read_number(r, json, "chip.", &facts[i], chip));
    chip->name = peak->name;
    peak->chip = chip;
    return TEC_OK;
}

static enum tec_status read_machine(const struct reading *r, json_t *json, struct tec_peak *peak)
{
    json_t *chip = json_object_get(json, "chip");
    TEC_TRY(check_names(r, json, "", own, OWN));
    TEC_TRY(read_name(r, json, peak));
    TEC_TRY(read_text(r, json, "", "title", peak->name, &peak->title));
    for (int i = 0; i < RATES; i++)
        TEC_TRY(read_number(r, json, "", &rates[i], peak));
    TEC_TRY(read_from(r, json_object_get(json, "from"), peak));
    return chip ? read_chip(r, chip, peak) : TEC_OK;
}

enum tec_status tec_roofline_read(const struct tec_peak **out, const char *path,
                                  struct tec_arena *arena, struct tec_heap *heap,
                                  struct tec_error *err)
{
    const struct reading r = {path, arena, err};
    struct tec_peak *peak = TEC_NEW(arena, 1, struct tec_peak);
    json_t *json = NULL;
    if (!peak)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a machine");
    TEC_TRY(tec_checkpoint_json_load(&json, path, heap, err));
    enum tec_status status = read_machine(&r, json, peak);
    json_decref(json);
    *out = peak;
    return status;
}
