/* adapter.c - merges a low-rank adapter into the values of a checkpoint's tensors as they are read.
 *
 * Every tensor of the adapter's file must find its place: its name says the module and which of the
 * two factors it is, or that it replaces a tensor of the base. */
#include "base/store/adapter.h"

#include "base/store/adapter_config.h"
#include "base/store/dtype.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { MAX_TENSOR_NAME = 480, WIDTH = 512 };

/* What changes one tensor of the base, seen as a matrix [rows, cols]: the product of `left`
 * [rows, rank] and `right` [rank, cols], or a tensor in its place. */
struct change {
    const char *name; /* as the base has it */
    const struct tec_stored *replacement;
    const float *left, *right;
    int64_t rows, cols, rank;
    float scale;
};

struct tec_adapter {
    const char *path;
    const struct tec_checkpoint *base;
    struct tec_heap *heap;
    struct tec_arena arena;
    struct tec_adapter_config config;
    struct tec_tensors *tensors;
    struct change *changes; /* sorted by name */
    size_t n;
};

/* The last words of the names that a layer's tensors have; the first of a pair is A. The words
 * "default" are those of files that were saved without PEFT's own function. */
static const struct {
    const char *first, *second, *of; /* of: the base's tensor of that module */
    bool embedding;
} pairs[] = {
    {".lora_A.weight", ".lora_B.weight", ".weight", false},
    {".lora_A.default.weight", ".lora_B.default.weight", ".weight", false},
    {".lora_embedding_A", ".lora_embedding_B", ".weight", true},
    {".lora_embedding_A.default", ".lora_embedding_B.default", ".weight", true},
    {NULL, ".lora_B.bias", ".bias", false},
    {NULL, ".lora_B.default.bias", ".bias", false},
};
enum { N_PAIRS = sizeof pairs / sizeof pairs[0] };

static enum tec_status no_memory(const struct tec_adapter *a, struct tec_error *err)
{
    return tec_fail(err, TEC_NO_MEMORY, "%s: no memory for its factors", a->path);
}

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = end ? strlen(end) : 0;
    return m && n > m && strcmp(s + n - m, end) == 0;
}

/* --- names --------------------------------------------------------------------------------- */

/* How alike two names are: bytes that their beginnings and their ends share. */
static size_t likeness(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b), least = n < m ? n : m, front = 0, back = 0;
    while (front < least && a[front] == b[front])
        front++;
    while (back < least - front && a[n - 1 - back] == b[m - 1 - back])
        back++;
    return front + back;
}

static const char *nearest(const struct tec_checkpoint *base, const char *name)
{
    const char *best = NULL;
    size_t most = 0;
    for (size_t i = 0; i < tec_tensors_count(base->tensors); i++) {
        const char *other = tec_tensors_at(base->tensors, i)->name;
        size_t n = likeness(name, other);
        if (n > most) {
            most = n;
            best = other;
        }
    }
    return best;
}

static enum tec_status find_base(const struct tec_adapter *a, const char *said, const char *wanted,
                                 const struct tec_stored **out, struct tec_error *err)
{
    *out = tec_checkpoint_tensor(a->base, wanted);
    if (*out)
        return TEC_OK;
    const char *near = nearest(a->base, wanted);
    return tec_fail(
        err, TEC_NOT_FOUND,
        "%s: '%.120s' changes tensor '%.120s', which %s lacks%s%.120s%s; is the adapter "
        "of another model?",
        a->path, said, wanted, a->base->path, near ? "; its nearest name is '" : "",
        near ? near : "", near ? "'" : "");
}

/* The module's name: without the wrapper's words in front, and without the last n bytes. */
static enum tec_status module_of(const struct tec_adapter *a, const char *name, size_t n,
                                 char out[MAX_TENSOR_NAME], struct tec_error *err)
{
    static const char wrapper[] = "base_model.model.";
    size_t skip = sizeof wrapper - 1, length = strlen(name) - n;
    const char *from = strncmp(name, wrapper, skip) == 0 ? name + skip : name;
    length -= (size_t)(from - name);
    if (length >= MAX_TENSOR_NAME - 16)
        return tec_fail(err, TEC_MALFORMED, "%s: the name '%.80s...' has more than %d bytes",
                        a->path, name, MAX_TENSOR_NAME - 16);
    memcpy(out, from, length);
    out[length] = '\0';
    return TEC_OK;
}

/* Take a word and what lies before its end out of a name, where it is in it. */
static void drop(char *name, const char *word)
{
    char *at = strstr(name, word);
    if (at)
        memmove(at, at + strlen(word), strlen(at + strlen(word)) + 1);
}

/* --- factors ------------------------------------------------------------------------------- */

static void print_shape(char text[128], const struct tec_stored *s)
{
    size_t n = 0;
    text[0] = '\0';
    for (int i = 0; i < s->rank && n < 100; i++)
        n += (size_t)snprintf(text + n, 128 - n, "%s%lld", i ? ", " : "", (long long)s->shape[i]);
}

/* The header was checked from left to right: only of a tensor with values is the product known to
 * fit. */
static int64_t columns(const struct tec_stored *s)
{
    int64_t n = s->bytes > 0;
    for (int i = 1; i < s->rank && n; i++)
        n *= s->shape[i];
    return n;
}

/* The values of a factor, [rows, columns]; transposed, [columns, rows]. */
static enum tec_status read_factor(struct tec_adapter *a, const struct tec_stored *s,
                                   bool transposed, const float **out, struct tec_error *err)
{
    size_t rows = s->rank ? (size_t)s->shape[0] : 1, cols = (size_t)columns(s), n = rows * cols;
    float *x = TEC_NEW(&a->arena, n + 1, float), *y = x;
    if (!x)
        return no_memory(a, err);
    TEC_TRY(tec_tensors_read_f32(a->tensors, s, 0, x, n, err));
    if (transposed && rows > 1 && cols > 1) {
        y = TEC_NEW(&a->arena, n + 1, float);
        if (!y)
            return no_memory(a, err);
        for (size_t i = 0; i < rows; i++)
            for (size_t j = 0; j < cols; j++)
                y[j * rows + i] = x[i * cols + j];
    }
    *out = y;
    return TEC_OK;
}

static enum tec_status fail_shapes(const struct tec_adapter *a, const struct tec_stored *first,
                                   const struct tec_stored *second, const struct tec_stored *base,
                                   bool transposed, struct tec_error *err)
{
    char x[128], y[128], z[128];
    print_shape(x, first);
    print_shape(y, second);
    print_shape(z, base);
    return tec_fail(err, TEC_SHAPE,
                    "%s: '%.120s' [%s] and '%.120s' [%s] do not make a change of tensor '%.120s' "
                    "[%s] of %s%s",
                    a->path, first->name, x, second->name, y, base->name, z, a->base->path,
                    transposed ? ", which the product is transposed for" : "");
}

/* A [rank, in] and B [out, rank] for a weight [out, in], or, transposed, [in, out]. */
static bool pair_fits(const struct tec_stored *first, const struct tec_stored *second,
                      const struct tec_stored *base, bool transposed)
{
    if (first->rank < 2 || second->rank < 2 || base->rank < 2)
        return false;
    int64_t in = columns(first), out = second->shape[0];
    int64_t rows = base->shape[0], cols = columns(base);
    return first->shape[0] == columns(second) && rows == (transposed ? in : out) &&
           cols == (transposed ? out : in);
}

static enum tec_status check_rank(const struct tec_adapter *a, const struct tec_stored *first,
                                  const char *module, struct tec_error *err)
{
    int64_t said = tec_adapter_config_rank(&a->config, module);
    if (first->shape[0] == said)
        return TEC_OK;
    return tec_fail(err, TEC_SHAPE,
                    "%s: '%.120s' has rank %lld, adapter_config.json says %lld (r or rank_pattern)",
                    a->path, first->name, (long long)first->shape[0], (long long)said);
}

static enum tec_status add_pair(struct tec_adapter *a, int pair, const char *module,
                                const struct tec_stored *first, const struct tec_stored *second,
                                const struct tec_stored *base, struct tec_error *err)
{
    struct change *c = &a->changes[a->n];
    bool transposed = pairs[pair].embedding || a->config.transposed;
    if (!pair_fits(first, second, base, transposed))
        return fail_shapes(a, first, second, base, transposed, err);
    TEC_TRY(check_rank(a, first, module, err));
    *c = (struct change){.name = base->name,
                         .rows = base->shape[0],
                         .cols = columns(base),
                         .rank = first->shape[0],
                         .scale = (float)tec_adapter_config_scale(&a->config, module)};
    const struct tec_stored *left = transposed ? first : second;
    const struct tec_stored *right = transposed ? second : first;
    TEC_TRY(read_factor(a, left, transposed, &c->left, err));
    TEC_TRY(read_factor(a, right, transposed, &c->right, err));
    a->n++;
    return TEC_OK;
}

/* What a bias of B adds to the layer's bias: one column. */
static enum tec_status add_bias(struct tec_adapter *a, const char *module,
                                const struct tec_stored *second, const struct tec_stored *base,
                                struct tec_error *err)
{
    static const float one[1] = {1.0F};
    struct change *c = &a->changes[a->n];
    if (second->rank != 1 || base->rank != 1 || second->shape[0] != base->shape[0])
        return fail_shapes(a, second, second, base, false, err);
    *c = (struct change){.name = base->name,
                         .right = one,
                         .rows = base->shape[0],
                         .cols = 1,
                         .rank = 1,
                         .scale = (float)tec_adapter_config_scale(&a->config, module)};
    TEC_TRY(read_factor(a, second, false, &c->left, err));
    a->n++;
    return TEC_OK;
}

static enum tec_status add_replacement(struct tec_adapter *a, const struct tec_stored *stored,
                                       struct tec_error *err)
{
    char name[MAX_TENSOR_NAME] = "", is[128], must[128];
    const struct tec_stored *base;
    TEC_TRY(module_of(a, stored->name, 0, name, err));
    drop(name, "modules_to_save.default.");
    drop(name, "modules_to_save.");
    drop(name, "base_layer.");
    TEC_TRY(find_base(a, stored->name, name, &base, err));
    bool same = stored->rank == base->rank;
    for (int i = 0; same && i < base->rank; i++)
        same = stored->shape[i] == base->shape[i];
    print_shape(is, stored);
    print_shape(must, base);
    if (!same)
        return tec_fail(err, TEC_SHAPE, "%s: '%.120s' [%s] replaces tensor '%.120s' [%s] of %s",
                        a->path, stored->name, is, base->name, must, a->base->path);
    a->changes[a->n++] =
        (struct change){.name = base->name, .replacement = stored, .rows = 1, .rank = 0};
    return TEC_OK;
}

/* --- the file ------------------------------------------------------------------------------ */

/* The other tensor of a pair. */
static const struct tec_stored *partner(const struct tec_adapter *a, const char *name,
                                        const char *end, const char *other)
{
    char text[MAX_TENSOR_NAME + 64];
    size_t n = strlen(name) - strlen(end);
    if (n >= MAX_TENSOR_NAME)
        return NULL;
    snprintf(text, sizeof text, "%.*s%s", (int)n, name, other);
    return tec_tensors_find(a->tensors, text);
}

/* A pair is added when its second tensor comes; its first one only looks for it. */
static enum tec_status add_factor(struct tec_adapter *a, int pair, bool is_second,
                                  const struct tec_stored *stored, struct tec_error *err)
{
    char module[MAX_TENSOR_NAME], name[MAX_TENSOR_NAME + 16];
    const char *end = is_second ? pairs[pair].second : pairs[pair].first;
    const char *other = is_second ? pairs[pair].first : pairs[pair].second;
    const struct tec_stored *base, *with = other ? partner(a, stored->name, end, other) : NULL;
    TEC_TRY(module_of(a, stored->name, strlen(end), module, err));
    if (other && !with)
        return tec_fail(err, TEC_MALFORMED, "%s: '%.120s' has no partner '...%s' in the file",
                        a->path, stored->name, other);
    if (!is_second)
        return TEC_OK;
    snprintf(name, sizeof name, "%s%s", module, pairs[pair].of);
    TEC_TRY(find_base(a, stored->name, name, &base, err));
    return other ? add_pair(a, pair, module, with, stored, base, err)
                 : add_bias(a, module, stored, base, err);
}

static enum tec_status add(struct tec_adapter *a, const struct tec_stored *stored,
                           struct tec_error *err)
{
    if (tec_to_f32(stored->dtype, NULL, NULL, 0, err) != TEC_OK)
        return tec_fail(err, TEC_UNSUPPORTED,
                        "%s: '%.120s' is %s; factors must be F32, BF16 or F16", a->path,
                        stored->name, tec_dtype_name(stored->dtype));
    for (int i = 0; i < N_PAIRS; i++) {
        if (ends_with(stored->name, pairs[i].second))
            return add_factor(a, i, true, stored, err);
        if (ends_with(stored->name, pairs[i].first))
            return add_factor(a, i, false, stored, err);
    }
    if (strstr(stored->name, "lora_"))
        return tec_fail(err, TEC_UNSUPPORTED,
                        "%s: '%.120s' is no factor that is merged; these end in lora_A.weight, "
                        "lora_B.weight, lora_embedding_A and lora_embedding_B",
                        a->path, stored->name);
    return add_replacement(a, stored, err);
}

static int compare(const void *x, const void *y)
{
    const struct change *a = x, *b = y;
    return strcmp(a->name, b->name);
}

static enum tec_status sort(struct tec_adapter *a, struct tec_error *err)
{
    if (a->n == 0)
        return tec_fail(err, TEC_MALFORMED, "%s: adapter_model.safetensors changes no tensor",
                        a->path);
    qsort(a->changes, a->n, sizeof *a->changes, compare);
    for (size_t i = 1; i < a->n; i++)
        if (strcmp(a->changes[i - 1].name, a->changes[i].name) == 0)
            return tec_fail(err, TEC_MALFORMED,
                            "%s: tensor '%.120s' of the base is changed twice; an adapter has one "
                            "pair of factors, or one replacement, for each",
                            a->path, a->changes[i].name);
    return TEC_OK;
}

static enum tec_status open_into(struct tec_adapter *a, const char *dir, struct tec_error *err)
{
    a->path = tec_arena_strdup(&a->arena, dir);
    const char *config = tec_arena_printf(&a->arena, "%s/adapter_config.json", dir);
    const char *file = tec_arena_printf(&a->arena, "%s/adapter_model.safetensors", dir);
    if (!a->path || !config || !file)
        return tec_fail(err, TEC_NO_MEMORY, "%s: no memory for paths", dir);
    TEC_TRY(tec_adapter_config_read(&a->config, config, a->heap, err));
    TEC_TRY(tec_tensors_open(&a->tensors, file, a->heap, err));
    size_t n = tec_tensors_count(a->tensors);
    a->changes = TEC_NEW(&a->arena, n + 1, struct change);
    if (!a->changes)
        return no_memory(a, err);
    for (size_t i = 0; i < n; i++)
        TEC_TRY(add(a, tec_tensors_at(a->tensors, i), err));
    return sort(a, err);
}

enum tec_status tec_adapter_open(struct tec_adapter **out, const char *dir,
                                 const struct tec_checkpoint *base, struct tec_error *err)
{
    struct tec_adapter *a = tec_heap_get(base->heap, sizeof *a);
    *out = NULL;
    if (!a)
        return tec_fail(err, TEC_NO_MEMORY, "%s: no memory for its description", dir);
    *a = (struct tec_adapter){.base = base, .heap = base->heap};
    tec_arena_init(&a->arena, a->heap);
    enum tec_status status = open_into(a, dir, err);
    if (status == TEC_OK)
        *out = a;
    else
        tec_adapter_close(a);
    return status;
}

void tec_adapter_close(struct tec_adapter *a)
{
    if (!a)
        return;
    tec_tensors_close(a->tensors);
    tec_adapter_config_finish(&a->config);
    tec_arena_finish(&a->arena);
    tec_heap_put(a->heap, a);
}

/* --- values -------------------------------------------------------------------------------- */

static const struct change *find(const struct tec_adapter *a, const char *name)
{
    const struct change key = {.name = name};
    return bsearch(&key, a->changes, a->n, sizeof *a->changes, compare);
}

/* All changes, behind a hash of the tensors. */
static uint64_t add_changes(const struct tec_adapter *a, uint64_t hash)
{
    for (size_t i = 0; i < a->n; i++) {
        const struct change *c = &a->changes[i];
        uint32_t scale;
        memcpy(&scale, &c->scale, sizeof scale);
        size_t left = (size_t)(c->rows * c->rank), right = (size_t)(c->rank * c->cols);
        const uint64_t of[] = {hash,
                               XXH3_64bits(c->name, strlen(c->name)),
                               (uint64_t)c->rows,
                               (uint64_t)c->rank,
                               (uint64_t)c->cols,
                               scale,
                               c->left ? XXH3_64bits(c->left, left * sizeof(float)) : 0,
                               c->right ? XXH3_64bits(c->right, right * sizeof(float)) : 0};
        hash = XXH3_64bits(of, sizeof of);
    }
    return hash;
}

uint64_t tec_adapter_identity(const struct tec_adapter *a)
{
    return add_changes(a, tec_tensors_identity(a->tensors));
}

enum tec_status tec_adapter_content(const struct tec_adapter *a, uint64_t whole, uint64_t out[2],
                                    struct tec_error *err)
{
    TEC_TRY(tec_tensors_content(a->tensors, whole, out, a->heap, err));
    out[0] = add_changes(a, out[0]);
    return TEC_OK;
}

bool tec_adapter_changes(const struct tec_adapter *a, const char *name)
{
    return find(a, name) != NULL;
}

/* Columns col .. col + n - 1 of a row: the sum over the rank first, as a product of matrices has
 * it. */
static void change_row(const struct change *c, int64_t row, int64_t col, size_t n, float *x)
{
    float sum[WIDTH];
    for (size_t at = 0, step; at < n; at += step) {
        step = n - at < WIDTH ? n - at : WIDTH;
        memset(sum, 0, step * sizeof *sum);
        for (int64_t j = 0; j < c->rank; j++) {
            float left = c->left[row * c->rank + j];
            const float *right = c->right + j * c->cols + col + (int64_t)at;
            for (size_t i = 0; i < step; i++)
                sum[i] += left * right[i];
        }
        for (size_t i = 0; i < step; i++)
            x[at + i] += c->scale * sum[i];
    }
}

enum tec_status tec_adapter_apply(const struct tec_adapter *a, const struct tec_stored *stored,
                                  uint64_t first, float *values, size_t n, struct tec_error *err)
{
    const struct change *c = find(a, stored->name);
    if (!c)
        return TEC_OK;
    if (c->replacement)
        return tec_tensors_read_f32(a->tensors, c->replacement, first, values, n, err);
    for (size_t done = 0, step; done < n; done += step) {
        int64_t at = (int64_t)(first + done), col = at % c->cols;
        step = (size_t)(c->cols - col) < n - done ? (size_t)(c->cols - col) : n - done;
        change_row(c, at / c->cols, col, step, values + done);
    }
    return TEC_OK;
}

struct tec_adapter_facts tec_adapter_facts(const struct tec_adapter *a)
{
    struct tec_adapter_facts facts = {.path = a->path};
    for (size_t i = 0; i < a->n; i++) {
        facts.replaced += a->changes[i].replacement != NULL;
        facts.changed += a->changes[i].replacement == NULL;
        facts.rank = a->changes[i].rank > facts.rank ? a->changes[i].rank : facts.rank;
    }
    tec_tensors_hash(a->tensors, facts.hash);
    return facts;
}
