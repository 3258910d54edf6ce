/* tokenizers_case.c - what the judges of tokenizer cases share: it reads their files, encodes
 * texts, and counts right and wrong entries. */
#include "tests/judge/tokenizers_case.h"

#include <string.h>
#include <unistd.h>

const char *tec_case_path(struct tec_verify *v, const char *name)
{
    return tec_arena_printf(v->arena, "%s/%s", v->dir, name);
}

bool tec_case_has(struct tec_verify *v, const char *name)
{
    const char *path = tec_case_path(v, name);
    return path && access(path, R_OK) == 0;
}

json_t *tec_case_json(struct tec_verify *v, const char *name)
{
    const char *path = tec_case_path(v, name);
    return path ? json_load_file(path, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL) : NULL;
}

int *tec_case_ids(struct tec_verify *v, const json_t *list, size_t *n)
{
    *n = json_array_size(list);
    int *ids = json_is_array(list) ? TEC_NEW(v->arena, *n, int) : NULL;
    for (size_t i = 0; ids && i < *n; i++) {
        const json_t *id = json_array_get(list, i);
        if (!json_is_integer(id))
            return NULL;
        ids[i] = (int)json_integer_value(id);
    }
    return ids;
}

bool tec_case_same(const int *a, size_t n_a, const int *b, size_t n_b)
{
    return n_a == n_b && (n_a == 0 || (a && b && memcmp(a, b, n_a * sizeof *a) == 0));
}

enum tec_status tec_case_encode(struct tec_verify *v, const struct tec_tokenizer *t,
                                const char *text, size_t n, struct tec_encode how, int **ids,
                                size_t *n_ids)
{
    struct tec_error err;
    TEC_TRY(tec_tokenizer_encode(t, text, n, how, NULL, 0, n_ids, v->arena, &err));
    *ids = TEC_NEW(v->arena, *n_ids, int);
    if (!*ids)
        return TEC_NO_MEMORY;
    return tec_tokenizer_encode(t, text, n, how, *ids, *n_ids, n_ids, v->arena, &err);
}

void tec_tally_add(struct tec_tally *tally, int index, bool good)
{
    if (!good && tally->wrong == 0)
        tally->first = index;
    tally->wrong += !good;
    tally->n++;
}

void tec_tally_report(struct tec_verify *v, const char *check, const struct tec_tally *tally)
{
    const char *note = NULL;
    if (tally->n == 0)
        note = "nothing to compare";
    else if (tally->wrong)
        note = tec_arena_printf(v->arena, "%d of %d, first at %d", tally->wrong, tally->n,
                                tally->first);
    tec_verify_report(v, check, (double)tally->wrong, 0.0, 0.0, tally->wrong == 0 && tally->n > 0,
                      NULL, note);
}
