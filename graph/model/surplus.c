/* surplus.c - finds the tensors of a checkpoint that its model does not read. A file of another
 * size of the same architecture has them: without a look it would run, and compute something else.
 */
#include "graph/model/surplus.h"

#include <stdio.h>
#include <string.h>

struct account {
    const struct tec_checkpoint *checkpoint;
    bool *used;          /* [tensors] */
    const char *surplus; /* the name that the nearest is wanted of; NULL: `used` is filled */
    char near[200];      /* "": none */
    size_t shared;       /* bytes of `near` that it shares */
};

static const char *name_in_model(const struct tec_checkpoint *c, const struct tec_stored *t)
{
    size_t skip = strlen(c->prefix);
    return strncmp(t->name, c->prefix, skip) == 0 ? t->name + skip : t->name;
}

/* Bytes at the begin of two names that are equal, and at their ends. Long names of a checkpoint
 * differ by a number or a word in the middle. */
static size_t alike(const char *a, const char *b)
{
    size_t na = strlen(a), nb = strlen(b), least = na < nb ? na : nb, begin = 0, end = 0;
    while (begin < least && a[begin] == b[begin])
        begin++;
    while (end < least - begin && a[na - 1 - end] == b[nb - 1 - end])
        end++;
    return begin + end;
}

static enum tec_status visit(void *user, const struct tec_expected *e, struct tec_error *err)
{
    struct account *x = user;
    (void)err;
    for (int i = 0; i < e->n_names; i++) {
        const struct tec_stored *s = tec_checkpoint_tensor(x->checkpoint, e->names[i]);
        if (!x->surplus && s)
            x->used[s - tec_tensors_at(x->checkpoint->tensors, 0)] = true;
        size_t shared = x->surplus && e->rank ? alike(x->surplus, e->names[i]) : 0;
        if (shared > x->shared) {
            x->shared = shared;
            snprintf(x->near, sizeof x->near, "%s", e->names[i]);
        }
    }
    return TEC_OK;
}

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

/* Buffers, which are computed anew; and a zero bias that GPTQ's packers write for every layer. */
static bool is_buffer(const struct tec_checkpoint *c, const char *name)
{
    static const char *const buffers[] = {".inv_freq", ".position_ids", ".num_batches_tracked"};
    char packed[512];
    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++)
        if (ends_with(name, buffers[i]))
            return true;
    size_t n = strlen(name);
    if (!ends_with(name, ".bias") || n + 8 > sizeof packed)
        return false;
    memcpy(packed, name, n - 4);
    memcpy(packed + n - 4, "qweight", 8);
    return tec_checkpoint_tensor(c, packed) != NULL;
}

/* `stored`: its name in the file, which may begin with what is before all names there. */
static enum tec_status refuse(const struct tec_model *model, struct account *x, const char *name,
                              const char *stored, struct tec_error *err)
{
    int before = (int)(name - stored);
    x->surplus = name;
    TEC_TRY(tec_model_visit(model, visit, x, err));
    return tec_fail(
        err, TEC_MALFORMED,
        "%s: model '%s' does not read tensor '%s'%s%.*s%s%s: the checkpoint is of another "
        "model or size; `tectum inspect` lists all such, `ignored` of the model's "
        "description allows one",
        x->checkpoint->path, model->name, stored,
        *x->near ? "; the nearest that it reads is '" : "", *x->near ? before : 0, stored, x->near,
        *x->near ? "'" : "");
}

enum tec_status tec_model_accounts_for(const struct tec_model *model,
                                       const struct tec_checkpoint *checkpoint,
                                       struct tec_heap *heap, struct tec_error *err)
{
    size_t n = tec_tensors_count(checkpoint->tensors);
    struct account x = {.checkpoint = checkpoint, .used = tec_heap_get(heap, n + 1)};
    if (!x.used)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for the names of tensors");
    enum tec_status status = tec_model_visit(model, visit, &x, err);
    for (size_t i = 0; status == TEC_OK && i < n; i++) {
        const char *stored = tec_tensors_at(checkpoint->tensors, i)->name;
        const char *name = name_in_model(checkpoint, tec_tensors_at(checkpoint->tensors, i));
        if (!x.used[i] && !tec_model_ignores(model, name) && !is_buffer(checkpoint, name))
            status = refuse(model, &x, name, stored, err);
    }
    tec_heap_put(heap, x.used);
    return status;
}
