/* checks.c - a list of checks, each ok or not with a sentence, and its output as text and JSON. */
#include "tools/policy/checks.h"

#include "base/escape.h"
#include "base/json_text.h"

#include <jansson.h>
#include <stdlib.h>

enum tec_status tec_checks_add(struct tec_checks *checks, bool ok, const char *name,
                               const char *detail, struct tec_error *err)
{
    if (checks->n >= TEC_MAX_CHECKS)
        return tec_fail(err, TEC_INVALID, "more than %d checks", TEC_MAX_CHECKS);
    struct tec_check *check = TEC_NEW(checks->arena, 1, struct tec_check);
    const char *own_name = tec_arena_strdup(checks->arena, name);
    const char *own_detail = tec_arena_strdup(checks->arena, detail);
    if (!check || !own_name || !own_detail)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for check %d", checks->n + 1);
    *check = (struct tec_check){.name = own_name, .detail = own_detail, .ok = ok};
    if (checks->last)
        checks->last->next = check;
    else
        checks->first = check;
    checks->last = check;
    checks->n++;
    checks->failed += !ok;
    return TEC_OK;
}

/* Print one check; names and details come from test files and policies, so they are escaped. */
static void print_check(const struct tec_check *check, FILE *out)
{
    fputs(check->ok ? "ok    " : "FAIL  ", out);
    tec_escape_print(out, check->name);
    fputs(*check->detail ? ": " : "", out);
    tec_escape_print(out, check->detail);
    fputc('\n', out);
}

void tec_checks_print(const struct tec_checks *checks, bool failed_only, FILE *out)
{
    for (const struct tec_check *check = checks->first; check; check = check->next)
        if (!check->ok || !failed_only)
            print_check(check, out);
}

enum tec_status tec_checks_json(const struct tec_checks *checks, FILE *out, struct tec_error *err)
{
    json_t *list = json_array();
    bool good = list != NULL;
    for (const struct tec_check *check = checks->first; check && good; check = check->next)
        good = json_array_append_new(list, json_pack("{s:o, s:b, s:o}", "name",
                                                     tec_json_shown(check->name), "ok", check->ok,
                                                     "detail", tec_json_shown(check->detail))) == 0;
    json_t *all = good ? json_pack("{s:b, s:O}", "ok", checks->failed == 0, "checks", list) : NULL;
    char *text = all ? tec_json_whole(all, JSON_ENSURE_ASCII) : NULL;
    json_decref(list);
    json_decref(all);
    if (!text)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for the report of %d checks", checks->n);
    fprintf(out, "%s\n", text);
    free(text);
    return TEC_OK;
}
