/* npy.c - the head of such a file is a Python dictionary of three members, as text. */
#include "tools/gateway/npy.h"

#include <stdio.h>
#include <string.h>

enum { AXES = 8, MOST_LENGTH = 1 << 28, MOST_TEXT = 1000 };

static const char magic[6] = "\x93NUMPY";

enum tec_status tec_npy_squeeze(struct tec_client_value *out, const int64_t *shape, int axes,
                                int rank, struct tec_error *err)
{
    while (axes > rank && shape[0] == 1) {
        shape++;
        axes--;
    }
    if (axes > rank)
        return tec_fail(err, TEC_SHAPE,
                        "an array of %d axes, the first %lld long; the robot takes one observation "
                        "of %d axes at a time",
                        axes, (long long)shape[0], rank);
    out->rank = axes;
    for (int i = 0; i < axes; i++)
        out->shape[i] = shape[i];
    return TEC_OK;
}

/* What follows 'NAME': in the dictionary; NULL: there is none. */
static const char *member(const char *text, const char *name)
{
    char key[24];
    snprintf(key, sizeof key, "'%s'", name);
    const char *at = strstr(text, key);
    if (!at)
        return NULL;
    at += strlen(key);
    at += strspn(at, " ");
    return *at == ':' ? at + 1 + strspn(at + 1, " ") : NULL;
}

/* "(1, 7)": the number of axes, -1 = this is none. */
static int read_shape(const char *at, int64_t shape[AXES])
{
    int axes = 0;
    if (!at || *at++ != '(')
        return -1;
    for (at += strspn(at, " "); *at != ')'; at += strspn(at, " ")) {
        int64_t n = 0;
        if (axes == AXES || *at < '0' || *at > '9')
            return -1;
        for (; *at >= '0' && *at <= '9' && n <= MOST_LENGTH; at++)
            n = n * 10 + (*at - '0');
        at += strspn(at, " ");
        if (n > MOST_LENGTH || (*at != ',' && *at != ')'))
            return -1;
        at += *at == ',';
        shape[axes++] = n;
    }
    return axes;
}

/* "'<f4'": the text between the quotes. */
static char *read_type(const char *at, struct tec_arena *arena)
{
    if (!at || *at != '\'')
        return NULL;
    return tec_arena_strndup(arena, at + 1, strcspn(at + 1, "'"));
}

enum tec_status tec_npy_read(struct tec_client_value *out, const uint8_t *data, size_t n, int rank,
                             struct tec_arena *arena, struct tec_error *err)
{
    int64_t shape[AXES] = {0};
    size_t head = 10, length = 0;
    if (n >= 10 && memcmp(data, magic, sizeof magic) == 0 && data[6] == 1)
        length = data[8] | (size_t)data[9] << 8;
    else if (n >= 12 && memcmp(data, magic, sizeof magic) == 0 && data[6] <= 3) {
        length = data[8] | (size_t)data[9] << 8 | (size_t)data[10] << 16 | (size_t)data[11] << 24;
        head = 12;
    }
    if (length == 0 || length > n - head || length > MOST_TEXT)
        return tec_fail(err, TEC_MALFORMED, "this is no array of NumPy (.npy)");
    const char *text = tec_arena_strndup(arena, (const char *)data + head, length);
    if (!text)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for an array's head");
    const char *order = member(text, "fortran_order");
    int axes = read_shape(member(text, "shape"), shape);
    out->kind = TEC_CLIENT_ARRAY;
    out->dtype = read_type(member(text, "descr"), arena);
    out->data = data + head + length;
    out->bytes = n - head - length;
    if (!out->dtype || axes < 0 || !order)
        return tec_fail(err, TEC_MALFORMED, "the head of this .npy array is not understood");
    if (strncmp(order, "False", 5) != 0)
        return tec_fail(err, TEC_MALFORMED,
                        "this array is column-major; send np.ascontiguousarray");
    return tec_npy_squeeze(out, shape, axes, rank, err);
}

void tec_npy_head(uint8_t head[TEC_NPY_HEAD], const int64_t *shape, int axes)
{
    char text[TEC_NPY_HEAD + 1];
    int n = snprintf(text, sizeof text, "{'descr': '<f4', 'fortran_order': False, 'shape': (");
    for (int i = 0; i < axes; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%lld%s", (long long)shape[i],
                      i + 1 < axes ? ", "
                      : axes == 1  ? ","
                                   : "");
    n += snprintf(text + n, sizeof text - (size_t)n, "), }");
    memcpy(head, magic, sizeof magic);
    head[6] = 1;
    head[7] = 0;
    head[8] = TEC_NPY_HEAD - 10;
    head[9] = 0;
    memset(head + 10, ' ', TEC_NPY_HEAD - 10);
    memcpy(head + 10, text, (size_t)n);
    head[TEC_NPY_HEAD - 1] = '\n';
}
