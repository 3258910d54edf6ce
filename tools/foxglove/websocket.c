/* websocket.c - frames of a WebSocket client put together to messages, and heads of frames to it.
 */
#include "tools/foxglove/websocket.h"

#include "base/text/base64.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

enum { FINAL = 0x80, MASKED = 0x80, RESERVED = 0x70, MASK = 4, SHA1 = 20, CONTROL_MOST = 125 };

/* --- what comes ------------------------------------------------------------------------------- */

uint8_t *tec_websocket_room(struct tec_websocket *w, size_t *n)
{
    if (w->at > 0)
        memmove(w->bytes, w->bytes + w->at, w->n - w->at);
    w->n -= w->at;
    w->at = 0;
    *n = TEC_WEBSOCKET_ROOM - w->n;
    return w->bytes + w->n;
}

struct frame {
    int opcode;
    bool last;
    uint8_t *data; /* unmasked */
    size_t n;
    int code;
};

/* Why the first two bytes of a frame, and its length, are not accepted; 0: they are. */
static int judge(const uint8_t head[2], uint64_t n)
{
    int opcode = head[0] & 15;
    bool control = opcode >= TEC_WEBSOCKET_CLOSE, last = head[0] & FINAL;
    if (head[0] & RESERVED || !(head[1] & MASKED) || opcode > TEC_WEBSOCKET_PONG ||
        (opcode > TEC_WEBSOCKET_BINARY && !control))
        return TEC_WEBSOCKET_BROKEN;
    if (control && (!last || n > CONTROL_MOST))
        return TEC_WEBSOCKET_BROKEN;
    return n > TEC_WEBSOCKET_MOST ? TEC_WEBSOCKET_TOO_LONG : 0;
}

/* The frame at the front of what was not read; false: it is not whole. */
static bool take_frame(struct tec_websocket *w, struct frame *f)
{
    uint8_t *from = w->bytes + w->at;
    size_t left = w->n - w->at;
    if (left < 2)
        return false;
    size_t short_n = from[1] & 127, more = short_n == 126 ? 2 : short_n == 127 ? 8 : 0;
    uint64_t n = more ? 0 : short_n;
    if (left < 2 + more)
        return false;
    for (size_t i = 0; i < more; i++)
        n = n << 8 | from[2 + i];
    *f = (struct frame){.opcode = from[0] & 15, .last = from[0] & FINAL, .code = judge(from, n)};
    if (f->code)
        return true;
    size_t head = 2 + more + MASK;
    if (left < head + n)
        return false;
    f->data = from + head;
    f->n = (size_t)n;
    for (size_t i = 0; i < f->n; i++)
        f->data[i] ^= f->data[(ptrdiff_t)(i % MASK) - MASK];
    w->at += head + f->n;
    return true;
}

/* Put a frame behind the message that it belongs to; returns a code as above. */
static int join(struct tec_websocket *w, const struct frame *f)
{
    bool begins = f->opcode != TEC_WEBSOCKET_CONTINUATION;
    if (begins == (w->opcode != 0)) /* another message within one, or the rest of none */
        return TEC_WEBSOCKET_BROKEN;
    if (begins) {
        w->opcode = f->opcode;
        w->message_n = 0;
    }
    if (f->n > TEC_WEBSOCKET_MOST - w->message_n)
        return TEC_WEBSOCKET_TOO_LONG;
    memcpy(w->message + w->message_n, f->data, f->n);
    w->message_n += f->n;
    return 0;
}

bool tec_websocket_next(struct tec_websocket *w, struct tec_websocket_came *came)
{
    struct frame f;
    while (take_frame(w, &f)) {
        *came = (struct tec_websocket_came){f.opcode, f.data, f.n, f.code};
        if (f.code || f.opcode >= TEC_WEBSOCKET_CLOSE)
            return true;
        came->code = join(w, &f);
        if (!came->code && !f.last)
            continue;
        *came = (struct tec_websocket_came){w->opcode, w->message, w->message_n, came->code};
        w->opcode = 0;
        return true;
    }
    return false;
}

/* --- what is sent ----------------------------------------------------------------------------- */

size_t tec_websocket_head(uint8_t head[TEC_WEBSOCKET_HEAD], enum tec_websocket_opcode opcode,
                          size_t n)
{
    size_t more = n < 126 ? 0 : n < 65536 ? 2 : 8;
    head[0] = (uint8_t)(FINAL | opcode);
    head[1] = more == 0 ? (uint8_t)n : more == 2 ? 126 : 127;
    for (size_t i = 0; i < more; i++)
        head[2 + i] = (uint8_t)((uint64_t)n >> (8 * (more - 1 - i)));
    return 2 + more;
}

void tec_websocket_accept(char accept[TEC_WEBSOCKET_ACCEPT + 1], const char *key, size_t n)
{
    char both[128];
    uint8_t sum[SHA1] = {0};
    int length = snprintf(both, sizeof both, "%.*s258EAFA5-E914-47DA-95CA-C5AB0DC85B11",
                          n < 64 ? (int)n : 64, key);
    EVP_Digest(both, (size_t)length, sum, NULL, EVP_sha1(), NULL);
    tec_base64_write(accept, sum, sizeof sum);
    accept[TEC_WEBSOCKET_ACCEPT] = '\0';
}
