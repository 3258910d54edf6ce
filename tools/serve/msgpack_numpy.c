/* msgpack_numpy.c - reads values as openpi's clients pack them in MessagePack: ndarrays, numpy
 * scalars, nested lists, numbers and texts. */
#include "tools/serve/msgpack_numpy.h"

#include "base/text/utf8.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The entries of the map of an ndarray or a numpy scalar. */
struct packed {
    bool is_array, is_scalar;
    struct tec_msgpack_token data, dtype;
    int rank; /* -1: there was no shape */
    int64_t shape[TEC_NUMPY_RANK];
};

/* The state of reading, with what messages need. */
struct reading {
    struct tec_msgpack *r;
    const char *name;
    size_t most; /* largest number of elements that may be converted */
    struct tec_arena *arena;
    struct tec_error *err;
};

static enum tec_status read_shape(struct packed *p, const struct reading *in)
{
    struct tec_msgpack_token t;
    TEC_TRY(tec_msgpack_next(in->r, &t, in->err));
    if (t.kind != TEC_MSGPACK_ARRAY || t.n > TEC_NUMPY_RANK)
        return tec_fail(in->err, TEC_SHAPE, "%.80s: the shape of an array is 0 to %d sizes",
                        in->name, TEC_NUMPY_RANK);
    p->rank = (int)t.n;
    for (int i = 0; i < p->rank; i++) {
        TEC_TRY(tec_msgpack_next(in->r, &t, in->err));
        if (t.kind != TEC_MSGPACK_UINT || t.u > INT32_MAX)
            return tec_fail(in->err, TEC_SHAPE, "%.80s: a size of its shape is not 0 to %d",
                            in->name, INT32_MAX);
        p->shape[i] = (int64_t)t.u;
    }
    return TEC_OK;
}

static enum tec_status read_entries(struct packed *p, uint32_t n, const struct reading *in)
{
    struct tec_msgpack_token key, value;
    *p = (struct packed){.rank = -1};
    for (uint32_t i = 0; i < n; i++) {
        TEC_TRY(tec_msgpack_next(in->r, &key, in->err));
        if (tec_msgpack_is(&key, "shape")) {
            TEC_TRY(read_shape(p, in));
            continue;
        }
        TEC_TRY(tec_msgpack_skip(in->r, &key, in->err));
        TEC_TRY(tec_msgpack_next(in->r, &value, in->err));
        TEC_TRY(tec_msgpack_skip(in->r, &value, in->err));
        if (tec_msgpack_is(&key, "data"))
            p->data = value;
        else if (tec_msgpack_is(&key, "dtype"))
            p->dtype = value;
    }
    return TEC_OK;
}

/* Look ahead whether the n pairs at the reader's place are an ndarray or a scalar; the place does
 * not change. */
static enum tec_status look(struct packed *p, uint32_t n, const struct reading *in)
{
    struct tec_msgpack ahead = *in->r;
    struct tec_msgpack_token key, value;
    p->is_array = p->is_scalar = false;
    for (uint32_t i = 0; i < n; i++) {
        TEC_TRY(tec_msgpack_next(&ahead, &key, in->err));
        p->is_array |= tec_msgpack_is(&key, "__ndarray__");
        p->is_scalar |= tec_msgpack_is(&key, "__npgeneric__");
        if (p->is_array || p->is_scalar)
            break;
        TEC_TRY(tec_msgpack_skip(&ahead, &key, in->err));
        TEC_TRY(tec_msgpack_next(&ahead, &value, in->err));
        TEC_TRY(tec_msgpack_skip(&ahead, &value, in->err));
    }
    in->r->left = ahead.left; /* both looks count against the limit, so nested maps stay linear */
    return TEC_OK;
}

/* Read the type letter and the bytes of an element from a dtype such as "<f4"; false for a type
 * that is not supported. */
static bool parse_dtype(const struct tec_msgpack_token *t, char *letter, size_t *size)
{
    char digits[8] = "";
    if (t->kind != TEC_MSGPACK_STR && t->kind != TEC_MSGPACK_BIN)
        return false;
    if (t->n < 3 || t->n > 9 || (t->data[0] != '<' && t->data[0] != '|' && t->data[0] != '='))
        return false;
    memcpy(digits, t->data + 2, t->n - 2);
    char *end = digits;
    unsigned long n = digits[0] >= '0' && digits[0] <= '9' ? strtoul(digits, &end, 10) : 0;
    *letter = (char)t->data[1];
    *size = (size_t)n;
    if (*end || end == digits)
        return false;
    switch (*letter) {
    case 'u':
    case 'i':
        return n == 1 || n == 2 || n == 4 || n == 8;
    case 'f':
        return n == 2 || n == 4 || n == 8;
    case 'b':
        return n == 1;
    case 'U':
        *size = 4 * (size_t)n;
        return true;
    default:
        return *letter == 'S';
    }
}

static enum tec_status fail_dtype(const struct packed *p, const struct reading *in)
{
    char text[16] = "";
    const struct tec_msgpack_token *t = &p->dtype;
    if (t->kind != TEC_MSGPACK_STR && t->kind != TEC_MSGPACK_BIN)
        return tec_fail(in->err, TEC_MALFORMED, "%.80s: an array without dtype", in->name);
    for (uint32_t i = 0; i < t->n && i < sizeof text - 1; i++)
        text[i] = (char)(t->data[i] > 32 && t->data[i] < 127 ? t->data[i] : '?');
    return tec_fail(in->err, TEC_UNSUPPORTED,
                    "%.80s: arrays of dtype '%s' are not taken; little-endian u, i, f, b or a 0-d "
                    "text is",
                    in->name, text);
}

static double half(uint16_t h)
{
    int exponent = h >> 10 & 31, fraction = h & 1023;
    double x = exponent == 0   ? ldexp((double)fraction, -24)
               : exponent < 31 ? ldexp((double)(1024 + fraction), exponent - 25)
               : fraction == 0 ? HUGE_VAL
                               : (double)NAN;
    return h & 0x8000U ? -x : x;
}

/* Read one little-endian element of any alignment. */
static double element(const uint8_t *at, char letter, size_t size)
{
    uint64_t word = 0;
    memcpy(&word, at, size);
    if (letter == 'f')
        return half((uint16_t)word);
    if (letter == 'b')
        return word ? 1.0 : 0.0;
    uint64_t sign = (uint64_t)1 << (8 * size - 1);
    if (letter == 'i' && (word & sign))
        return (double)(int64_t)(word | ~(sign | (sign - 1)));
    return (double)word;
}

static enum tec_status no_memory(const struct reading *in)
{
    return tec_fail(in->err, TEC_NO_MEMORY, "%.80s: no memory for it", in->name);
}

static enum tec_status convert(struct tec_value *out, const struct packed *p, char letter,
                               size_t size, size_t n, const struct reading *in)
{
    if (n > in->most)
        return tec_fail(in->err, TEC_UNSUPPORTED,
                        "%.80s: %zu elements to convert, at most %zu are; send u1, f4 or f8",
                        in->name, n, in->most);
    double *x = TEC_NEW(in->arena, n + 1, double);
    if (!x)
        return no_memory(in);
    for (size_t i = 0; i < n; i++)
        x[i] = element(p->data.data + i * size, letter, size);
    out->kind = TEC_VALUE_F64;
    out->data = x;
    out->bytes = n * sizeof *x;
    return TEC_OK;
}

/* "prompt#ids" is in place of the text of "prompt": token ids. */
static bool is_ids(const char *name)
{
    size_t n = strlen(name);
    return n > 4 && strcmp(name + n - 4, "#ids") == 0;
}

static enum tec_status fail_id(const struct reading *in, size_t number)
{
    return tec_fail(in->err, TEC_SHAPE, "%.80s: token id %zu is no whole number of 32 bits",
                    in->name, number);
}

/* Token ids stay whole numbers, of any width or in a list; a double has every one of 32 bits, and
 * what it rounds is out of their range. */
static enum tec_status keep_ids(struct tec_value *out, const double *x, size_t n,
                                const struct reading *in)
{
    int32_t *ids = TEC_NEW(in->arena, n + 1, int32_t);
    if (!ids)
        return no_memory(in);
    for (size_t i = 0; i < n; i++) {
        if (!(x[i] >= INT32_MIN && x[i] <= INT32_MAX) || x[i] != floor(x[i]))
            return fail_id(in, i + 1);
        ids[i] = (int32_t)x[i];
    }
    out->kind = TEC_VALUE_I32;
    out->data = ids;
    out->bytes = n * sizeof *ids;
    return TEC_OK;
}

/* Read the code points of a 0-d <U array or the bytes of an |S one; zeros at the end are
 * padding. */
static enum tec_status read_text(struct tec_value *out, const struct packed *p, char letter,
                                 const struct reading *in)
{
    const uint8_t *at = p->data.data;
    size_t unit = letter == 'U' ? 4 : 1, n = p->data.n / unit, used = 0;
    if (p->rank != 0)
        return tec_fail(in->err, TEC_UNSUPPORTED, "%.80s: an array of texts; one text is taken",
                        in->name);
    char *text = TEC_NEW(in->arena, n * unit + 1, char);
    if (!text)
        return no_memory(in);
    for (size_t i = 0; i < n; i++) {
        uint32_t code = at[i * unit];
        if (unit == 4)
            memcpy(&code, at + 4 * i, 4);
        if (unit == 4 && (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)))
            return tec_fail(in->err, TEC_MALFORMED, "%.80s: character %zu is no code point",
                            in->name, i + 1);
        if (unit == 4)
            used += tec_utf8_put(text + used, code);
        else
            text[used++] = (char)code;
    }
    while (used > 0 && text[used - 1] == '\0')
        used--;
    *out = (struct tec_value){.name = in->name, .data = text, .bytes = used};
    return TEC_OK;
}

static enum tec_status read_array(struct tec_value *out, const struct packed *p,
                                  const struct reading *in)
{
    char letter = 0;
    size_t size = 0, n = 1, bytes = 0;
    if (!parse_dtype(&p->dtype, &letter, &size))
        return fail_dtype(p, in);
    if (p->rank < 0)
        return tec_fail(in->err, TEC_MALFORMED, "%.80s: an array without shape", in->name);
    bool fits = p->data.kind == TEC_MSGPACK_BIN || p->data.kind == TEC_MSGPACK_STR;
    for (int i = 0; fits && i < p->rank; i++)
        fits = !__builtin_mul_overflow(n, (size_t)p->shape[i], &n);
    fits = fits && !__builtin_mul_overflow(n, size, &bytes) && bytes == p->data.n;
    if (!fits)
        return tec_fail(in->err, TEC_SHAPE, "%.80s: %u bytes of data do not make its shape",
                        in->name, p->data.n);
    if (letter == 'U' || letter == 'S')
        return read_text(out, p, letter, in);
    *out = (struct tec_value){.name = in->name, .rank = p->rank, .data = p->data.data};
    memcpy(out->shape, p->shape, sizeof out->shape);
    out->bytes = bytes;
    out->kind = letter == 'u' ? TEC_VALUE_U8 : size == 4 ? TEC_VALUE_F32 : TEC_VALUE_F64;
    bool ids = (letter == 'u' || letter == 'i') && is_ids(in->name);
    bool as_is = (letter == 'u' && size == 1) || (letter == 'f' && size >= 4);
    if (as_is && !ids)
        return TEC_OK;
    TEC_TRY(convert(out, p, letter, size, n, in));
    return ids ? keep_ids(out, out->data, n, in) : TEC_OK;
}

static enum tec_status put_number(struct tec_value *out, double x, const struct reading *in)
{
    double *kept = TEC_NEW(in->arena, 1, double);
    if (!kept)
        return no_memory(in);
    *kept = x;
    *out = (struct tec_value){
        .name = in->name, .kind = TEC_VALUE_F64, .data = kept, .bytes = sizeof x};
    return TEC_OK;
}

/* Read a token that is a value by itself. */
static enum tec_status read_plain(struct tec_value *out, const struct tec_msgpack_token *t,
                                  const struct reading *in)
{
    double x = 0.0;
    if (tec_msgpack_number(t, &x))
        return put_number(out, x, in);
    if (t->kind != TEC_MSGPACK_STR && t->kind != TEC_MSGPACK_BIN)
        return tec_fail(in->err, TEC_MALFORMED, "%.80s: no number and no text", in->name);
    *out = (struct tec_value){.name = in->name, .data = t->data, .bytes = t->n};
    return TEC_OK;
}

/* Find the shape of nested lists from their first elements; *numbers tells whether the innermost
 * first element is a number. */
static enum tec_status list_shape(struct tec_value *out, bool *numbers, struct tec_msgpack ahead,
                                  struct tec_msgpack_token t, const struct reading *in)
{
    double x;
    for (out->rank = 0; t.kind == TEC_MSGPACK_ARRAY; out->rank++) {
        if (out->rank == TEC_NUMPY_RANK)
            return tec_fail(in->err, TEC_SHAPE, "%.80s: lists more than %d deep", in->name,
                            TEC_NUMPY_RANK);
        out->shape[out->rank] = t.n;
        if (t.n > 0)
            TEC_TRY(tec_msgpack_next(&ahead, &t, in->err));
        else
            t = (struct tec_msgpack_token){.kind = TEC_MSGPACK_UINT};
    }
    *numbers = tec_msgpack_number(&t, &x);
    return TEC_OK;
}

/* Read the tokens of nested lists in order; each position says whether a row begins or a number
 * stands there. */
static enum tec_status read_list(struct tec_value *out, enum tec_numpy_found *found,
                                 const struct tec_msgpack_token *token, const struct reading *in)
{
    struct tec_msgpack_token t;
    bool numbers = false, ids = is_ids(in->name);
    size_t n = 1, at[TEC_NUMPY_RANK + 1] = {0}, used = 0;
    *out = (struct tec_value){.name = in->name, .kind = TEC_VALUE_F64};
    TEC_TRY(list_shape(out, &numbers, *in->r, *token, in));
    if (!numbers) {
        *found = TEC_NUMPY_NOTHING;
        return tec_msgpack_skip(in->r, token, in->err);
    }
    for (int i = 0; i < out->rank; i++)
        if (__builtin_mul_overflow(n, (size_t)out->shape[i], &n) || n > TEC_MSGPACK_TOKENS)
            return tec_fail(in->err, TEC_SHAPE, "%.80s: too long a list; send an ndarray",
                            in->name);
    if (n > in->most)
        return tec_fail(in->err, TEC_SHAPE, "%.80s: a list of %zu numbers, at most %zu are taken",
                        in->name, n, in->most);
    double *x = TEC_NEW(in->arena, n + 1, double);
    if (!x)
        return no_memory(in);
    for (int depth = 1; depth > 0;) {
        if (at[depth] == (size_t)out->shape[depth - 1]) {
            at[depth--] = 0;
            continue;
        }
        at[depth]++;
        TEC_TRY(tec_msgpack_next(in->r, &t, in->err));
        bool row =
            t.kind == TEC_MSGPACK_ARRAY && depth < out->rank && t.n == (uint64_t)out->shape[depth];
        if (row)
            depth++;
        else if (depth < out->rank || used == n || !tec_msgpack_number(&t, &x[used++]))
            return tec_fail(in->err, TEC_MALFORMED,
                            "%.80s: a list of numbers, or of such lists of one length, is taken",
                            in->name);
        else if (ids && t.kind != TEC_MSGPACK_UINT && t.kind != TEC_MSGPACK_INT)
            return fail_id(in, used); /* 5.0 and true are numbers, but no ids */
    }
    out->data = x;
    out->bytes = n * sizeof *x;
    return ids ? keep_ids(out, x, n, in) : TEC_OK;
}

enum tec_status tec_numpy_read(struct tec_value *out, enum tec_numpy_found *found,
                               struct tec_msgpack *r, const struct tec_msgpack_token *token,
                               const char *name, size_t most, struct tec_arena *arena,
                               struct tec_error *err)
{
    const struct reading in = {r, name, most, arena, err};
    struct packed p;
    *found = TEC_NUMPY_VALUE;
    switch (token->kind) {
    case TEC_MSGPACK_NIL:
    case TEC_MSGPACK_EXT:
        *found = TEC_NUMPY_NOTHING;
        return TEC_OK;
    case TEC_MSGPACK_ARRAY:
        return read_list(out, found, token, &in);
    case TEC_MSGPACK_MAP:
        break;
    default:
        return read_plain(out, token, &in);
    }
    TEC_TRY(look(&p, token->n, &in));
    if (!p.is_array && !p.is_scalar) {
        *found = TEC_NUMPY_MAP;
        return TEC_OK;
    }
    bool is_array = p.is_array;
    TEC_TRY(read_entries(&p, token->n, &in));
    return is_array ? read_array(out, &p, &in) : read_plain(out, &p.data, &in);
}
