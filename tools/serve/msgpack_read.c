/* msgpack_read.c - one msgpack value after the other, out of a bounded message. */
#include "tools/serve/msgpack_read.h"

#include <string.h>

void tec_msgpack_open(struct tec_msgpack *r, const void *message, size_t n)
{
    static const uint8_t nothing[1]; /* an empty message may have no memory */
    const uint8_t *bytes = n ? message : nothing;
    *r = (struct tec_msgpack){
        .begin = bytes, .at = bytes, .end = bytes + n, .left = TEC_MSGPACK_TOKENS};
}

static enum tec_status cut(const struct tec_msgpack *r, struct tec_error *err)
{
    return tec_fail(err, TEC_MALFORMED, "msgpack: the message ends inside the value at byte %zu",
                    (size_t)(r->at - r->begin));
}

/* `size` bytes after the first one, big-endian. */
static enum tec_status read_word(const struct tec_msgpack *r, int size, uint64_t *word,
                                 struct tec_error *err)
{
    if (r->end - r->at < 1 + size)
        return cut(r, err);
    *word = 0;
    for (int i = 1; i <= size; i++)
        *word = *word << 8 | r->at[i];
    return TEC_OK;
}

/* Take a head of `head` bytes and check that the rest fits: n bytes of payload, or n elements of at
 * least `each` bytes. */
static enum tec_status take(struct tec_msgpack *r, struct tec_msgpack_token *t, size_t head,
                            uint64_t n, uint64_t each, struct tec_error *err)
{
    size_t left = (size_t)(r->end - r->at);
    if (left < head || n * (each ? each : 1) > left - head)
        return cut(r, err);
    t->n = (uint32_t)n;
    t->data = r->at + head;
    r->at += head + (each ? 0 : n);
    return TEC_OK;
}

static enum tec_status number(struct tec_msgpack *r, struct tec_msgpack_token *t, int size,
                              bool is_signed, struct tec_error *err)
{
    uint64_t word = 0;
    TEC_TRY(read_word(r, size, &word, err));
    uint64_t sign = (uint64_t)1 << (8 * size - 1);
    t->kind = TEC_MSGPACK_UINT;
    t->u = word;
    if (is_signed && (word & sign)) {
        t->kind = TEC_MSGPACK_INT;
        t->i = (int64_t)(word | ~(sign | (sign - 1)));
    }
    r->at += 1 + size;
    return TEC_OK;
}

static enum tec_status real(struct tec_msgpack *r, struct tec_msgpack_token *t, int size,
                            struct tec_error *err)
{
    uint64_t word = 0;
    TEC_TRY(read_word(r, size, &word, err));
    uint32_t half = (uint32_t)word;
    float f;
    memcpy(&f, &half, sizeof f);
    memcpy(&t->f, &word, sizeof t->f);
    if (size == 4)
        t->f = (double)f;
    t->kind = TEC_MSGPACK_FLOAT;
    r->at += 1 + size;
    return TEC_OK;
}

/* A length of `size` bytes, then what it counts; EXT has a byte for its type between them. */
static enum tec_status counted(struct tec_msgpack *r, struct tec_msgpack_token *t,
                               enum tec_msgpack_kind kind, int size, struct tec_error *err)
{
    uint64_t n = 0;
    TEC_TRY(read_word(r, size, &n, err));
    t->kind = kind;
    return take(r, t, 1 + (size_t)size + (kind == TEC_MSGPACK_EXT), n,
                kind == TEC_MSGPACK_MAP     ? 2
                : kind == TEC_MSGPACK_ARRAY ? 1
                                            : 0,
                err);
}

/* The heads 0xc0 to 0xdf. */
static enum tec_status by_head(struct tec_msgpack *r, struct tec_msgpack_token *t, uint8_t head,
                               struct tec_error *err)
{
    switch (head) {
    case 0xc0:
    case 0xc2:
    case 0xc3:
        t->kind = head == 0xc0 ? TEC_MSGPACK_NIL : TEC_MSGPACK_BOOL;
        t->u = head == 0xc3;
        r->at++;
        return TEC_OK;
    case 0xc4:
    case 0xc5:
    case 0xc6:
        return counted(r, t, TEC_MSGPACK_BIN, 1 << (head - 0xc4), err);
    case 0xc7:
    case 0xc8:
    case 0xc9:
        return counted(r, t, TEC_MSGPACK_EXT, 1 << (head - 0xc7), err);
    case 0xca:
    case 0xcb:
        return real(r, t, head == 0xca ? 4 : 8, err);
    case 0xcc:
    case 0xcd:
    case 0xce:
    case 0xcf:
        return number(r, t, 1 << (head - 0xcc), false, err);
    case 0xd0:
    case 0xd1:
    case 0xd2:
    case 0xd3:
        return number(r, t, 1 << (head - 0xd0), true, err);
    case 0xd9:
    case 0xda:
    case 0xdb:
        return counted(r, t, TEC_MSGPACK_STR, 1 << (head - 0xd9), err);
    case 0xdc:
    case 0xdd:
        return counted(r, t, TEC_MSGPACK_ARRAY, head == 0xdc ? 2 : 4, err);
    case 0xde:
    case 0xdf:
        return counted(r, t, TEC_MSGPACK_MAP, head == 0xde ? 2 : 4, err);
    default:
        break;
    }
    if (head == 0xc1)
        return tec_fail(err, TEC_MALFORMED, "msgpack: byte %zu is 0xc1, which no value begins with",
                        (size_t)(r->at - r->begin));
    t->kind = TEC_MSGPACK_EXT; /* 0xd4 to 0xd8: type, then 1, 2, 4, 8, 16 bytes */
    return take(r, t, 2, (uint64_t)1 << (head - 0xd4), 0, err);
}

enum tec_status tec_msgpack_next(struct tec_msgpack *r, struct tec_msgpack_token *t,
                                 struct tec_error *err)
{
    *t = (struct tec_msgpack_token){.kind = TEC_MSGPACK_NIL};
    if (r->at == r->end)
        return cut(r, err);
    if (r->left-- <= 0)
        return tec_fail(err, TEC_MALFORMED,
                        "msgpack: more than %d values in one message; send arrays as ndarray",
                        TEC_MSGPACK_TOKENS);
    uint8_t head = *r->at;
    if (head >= 0xc0 && head < 0xe0)
        return by_head(r, t, head, err);
    if (head < 0x80 || head >= 0xe0) {
        t->kind = head < 0x80 ? TEC_MSGPACK_UINT : TEC_MSGPACK_INT;
        t->u = head;
        t->i = (int64_t)head - 256;
        r->at++;
        return TEC_OK;
    }
    t->kind = head < 0x90 ? TEC_MSGPACK_MAP : head < 0xa0 ? TEC_MSGPACK_ARRAY : TEC_MSGPACK_STR;
    if (t->kind == TEC_MSGPACK_STR)
        return take(r, t, 1, head & 31U, 0, err);
    return take(r, t, 1, head & 15U, t->kind == TEC_MSGPACK_MAP ? 2 : 1, err);
}

/* The number of tokens at the next level that belong to this one. */
static uint64_t children(const struct tec_msgpack_token *t)
{
    return t->kind == TEC_MSGPACK_MAP     ? 2 * (uint64_t)t->n
           : t->kind == TEC_MSGPACK_ARRAY ? t->n
                                          : 0;
}

enum tec_status tec_msgpack_skip(struct tec_msgpack *r, const struct tec_msgpack_token *token,
                                 struct tec_error *err)
{
    struct tec_msgpack_token t;
    for (uint64_t pending = children(token); pending > 0; pending--) {
        TEC_TRY(tec_msgpack_next(r, &t, err));
        pending += children(&t);
    }
    return TEC_OK;
}

bool tec_msgpack_is(const struct tec_msgpack_token *t, const char *text)
{
    size_t n = strlen(text);
    return (t->kind == TEC_MSGPACK_STR || t->kind == TEC_MSGPACK_BIN) && t->n == n &&
           memcmp(t->data, text, n) == 0;
}

bool tec_msgpack_number(const struct tec_msgpack_token *t, double *x)
{
    switch (t->kind) {
    case TEC_MSGPACK_BOOL:
    case TEC_MSGPACK_UINT:
        *x = (double)t->u;
        return true;
    case TEC_MSGPACK_INT:
        *x = (double)t->i;
        return true;
    case TEC_MSGPACK_FLOAT:
        *x = t->f;
        return true;
    default:
        return false;
    }
}
