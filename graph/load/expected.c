/* expected.c - what a field takes, in words, and the mistake of a value that is something else
 * (E011). */
#include "graph/load/loader.h"

#include <stdio.h>
#include <string.h>

/* "one of hold, stop". */
static const char *expected_words(struct tec_loader *ld, const struct tec_field *f)
{
    char words[200] = "";
    for (const struct tec_word *w = f->words; w->word; w++) {
        size_t n = strlen(words);
        snprintf(words + n, sizeof words - n, "%s%s%s", n ? ", " : "", w->word,
                 f->type == TEC_FIELD_WORD ? "" : " { }");
    }
    const char *text =
        tec_arena_printf(ld->scratch, "%s%s", f->words[1].word ? "one of " : "", words);
    return text ? text : "something else";
}

/* Those that no range and no word belongs to. */
static const char *const expected[TEC_FIELD_THINGS + 1] = {
    [TEC_FIELD_NAME] = "a name (letters, digits and _ - . /)",
    [TEC_FIELD_STRING] = "a text in quotes",
    [TEC_FIELD_BOOL] = "true or false",
    [TEC_FIELD_BYTES] = "a number of bytes, such as \"9GiB\" or \"512KiB\"",
    [TEC_FIELD_REF] = "the name of a declared thing",
    [TEC_FIELD_REFS] = "a list of names",
    [TEC_FIELD_TEXTS] = "a list of texts in quotes",
    [TEC_FIELD_STOPS] = "a text in quotes, or a list of them",
    [TEC_FIELD_OUT] =
        "the name of a buffer, stream \"name\" or stream { name = ..., default = ... }",
    [TEC_FIELD_SPAWN] = "every(n), on_change(), on_change(\"value\") or on_request()",
    [TEC_FIELD_WHEN] = "policy()",
    [TEC_FIELD_OBJECT] = "a table",
    [TEC_FIELD_ROBOT] = "the path of a robot description, or a table",
    [TEC_FIELD_ROBOTS] =
        "a table of robot descriptions by name, { left = \"robots/libero.lua\", ... }",
};

/* "an integer from 1 to 64", for messages. */
const char *tec_set_expected(struct tec_loader *ld, const struct tec_field *f)
{
    const char *text = expected[f->type];
    if (f->type == TEC_FIELD_INT || f->type == TEC_FIELD_INT64)
        text = f->min >= f->max
                   ? tec_arena_printf(ld->scratch, "%.0f", f->min)
                   : tec_arena_printf(ld->scratch, "an integer from %.0f to %.0f", f->min, f->max);
    else if (f->type == TEC_FIELD_NUMBER)
        text = tec_arena_printf(ld->scratch, "a number from %g to %.12g", f->min, f->max);
    else if (f->type == TEC_FIELD_SHAPE)
        text = tec_arena_printf(ld->scratch, "a list of 1 to %d sizes from %.0f to %.0f",
                                TEC_MAX_RANK, f->min, f->max);
    else if (f->type == TEC_FIELD_AXIS)
        text = tec_arena_printf(ld->scratch, "an ascending list of integers from %.0f to %.0f",
                                f->min, f->max);
    else if (f->type == TEC_FIELD_RATIOS)
        text = tec_arena_printf(ld->scratch, "an ascending list of numbers from %g to %g", f->min,
                                f->max);
    if (!text && f->words)
        return expected_words(ld, f);
    return text ? text : "something else";
}

/* How --set has a list: as JSON, whose quotes the shell takes unless they stand in others. */
static const char *const lists[TEC_FIELD_THINGS + 1] = {
    [TEC_FIELD_REFS] = "[\"a\", \"b\"]",  [TEC_FIELD_TEXTS] = "[\"a\", \"b\"]",
    [TEC_FIELD_STOPS] = "[\"a\", \"b\"]", [TEC_FIELD_SHAPE] = "[1, 2]",
    [TEC_FIELD_AXIS] = "[1, 2]",          [TEC_FIELD_RATIOS] = "[0.5, 1]",
};

/* Of --set, where a table was written, or a list otherwise than as JSON. */
static void hint_at_fields(struct tec_loader *ld, struct tec_diagnostic *d,
                           const struct tec_field *f, const struct tec_decl_value *v,
                           const char *set)
{
    if (lists[f->type])
        tec_diagnostics_help(ld->d, d, "--set takes a list as JSON: --set '%.*s=%s'",
                             (int)strcspn(set, "="), set, lists[f->type]);
    else if (v->kind == TEC_VALUE_STRING && v->string && strchr(v->string, '{'))
        tec_diagnostics_help(ld->d, d,
                             "--set takes no table, but each of its fields: --set %.*s.FIELD=VALUE",
                             (int)strcspn(set, "="), set);
}

/* Of a field that takes one of some words: the one that was probably meant. */
static void hint_at_word(struct tec_loader *ld, struct tec_diagnostic *d, const struct tec_field *f,
                         const struct tec_decl_value *v)
{
    enum { MOST = 32 };
    const char *names[MOST];
    int n = 0;
    if (f->type != TEC_FIELD_WORD || v->kind != TEC_VALUE_STRING || !v->string)
        return;
    for (const struct tec_word *w = f->words; w->word && n < MOST; w++)
        names[n++] = w->word;
    tec_diagnostics_meant(ld->d, d, v->string, names, n);
}

struct tec_diagnostic *tec_set_wrong(struct tec_loader *ld, const struct tec_field *f,
                                     const struct tec_decl_entry *e)
{
    if (e->value->kind == TEC_VALUE_BAD)
        return NULL;
    struct tec_where where = tec_where_value(ld, e);
    struct tec_diagnostic *d =
        tec_diagnostics_add(ld->d, TEC_E011, where, "field '%s' of %s must be %s, is %s", f->name,
                            tec_constructors[f->owner].word, tec_set_expected(ld, f),
                            tec_decl_value_describe(ld, e->value));
    hint_at_word(ld, d, f, e->value);
    if (where.file && strcmp(where.file, "--set") == 0)
        hint_at_fields(ld, d, f, e->value, ld->options->set[where.line - 1]);
    return d;
}
