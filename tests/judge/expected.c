/* expected.c - sees to it that every tensor that a case expects is compared, or is named in a table
 * with the reason why it is not. */
#include "base/store/safetensors.h"
#include "tests/judge/verify.h"

#include <fnmatch.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *family, *kind, *pattern, *why;
} passed_over[] = {
#define NOT_COMPARED(family, kind, pattern, why) {family, kind, pattern, "not compared: " why},
#include "tests/judge/not_compared.def"
#undef NOT_COMPARED
};

void tec_verify_compared(struct tec_verify *v, const char *tensor)
{
    json_object_set_new(v->compared, tensor, json_true());
}

/* Why a tensor of this case is passed over; NULL: it is not. */
static const char *reason(const struct tec_verify *v, const char *tensor)
{
    const char *family = json_string_value(json_object_get(v->json, "family"));
    const char *kind = json_string_value(json_object_get(v->json, "kind"));
    for (size_t i = 0; i < sizeof passed_over / sizeof passed_over[0]; i++)
        if (strcmp(passed_over[i].family, family) == 0 && strcmp(passed_over[i].kind, kind) == 0 &&
            fnmatch(passed_over[i].pattern, tensor, 0) == 0)
            return passed_over[i].why;
    return NULL;
}

void tec_verify_expected(struct tec_verify *v)
{
    struct tec_tensors *expected = NULL;
    struct tec_error err;
    const char *path = tec_arena_printf(v->arena, "%s/expected.safetensors", v->dir);
    if (path && access(path, F_OK) != 0)
        return;
    if (!path || tec_tensors_open(&expected, path, v->heap, &err) != TEC_OK) {
        if (!path)
            tec_fail(&err, TEC_NO_MEMORY, "no memory for a path");
        tec_verify_cannot(v, "expected.safetensors", &err);
        return;
    }
    for (size_t i = 0; i < tec_tensors_count(expected); i++) {
        const char *name = tec_tensors_at(expected, i)->name;
        const char *why = json_object_get(v->compared, name) ? NULL : reason(v, name);
        if (why) {
            tec_verify_not_compared(v, name, why);
        } else if (!json_object_get(v->compared, name)) {
            tec_fail(&err, TEC_UNSUPPORTED, "nobody compares %s", name);
            tec_verify_cannot(v, name, &err);
        }
    }
    tec_tensors_close(expected);
}
