/* websocket.h - the server's side of a WebSocket connection (RFC 6455), over bytes: messages out of
 * the frames that a client sent, and the head of a frame to it. It touches no socket. */
#ifndef TEC_TOOLS_FOXGLOVE_WEBSOCKET_H
#define TEC_TOOLS_FOXGLOVE_WEBSOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TEC_WEBSOCKET_MOST = 64 << 10,                /* bytes of a client's message */
    TEC_WEBSOCKET_ROOM = TEC_WEBSOCKET_MOST + 14, /* of a frame with its head */
    TEC_WEBSOCKET_HEAD = 10,                      /* bytes in front of what is sent, at most */
    TEC_WEBSOCKET_ACCEPT = 28                     /* characters of the answer to a key */
};

enum tec_websocket_opcode {
    TEC_WEBSOCKET_CONTINUATION = 0,
    TEC_WEBSOCKET_TEXT = 1,
    TEC_WEBSOCKET_BINARY = 2,
    TEC_WEBSOCKET_CLOSE = 8,
    TEC_WEBSOCKET_PING = 9,
    TEC_WEBSOCKET_PONG = 10
};

/* Codes with which a connection is closed. */
enum tec_websocket_code {
    TEC_WEBSOCKET_AWAY = 1001,
    TEC_WEBSOCKET_BROKEN = 1002, /* what came is no frame of a client */
    TEC_WEBSOCKET_POLICY = 1008,
    TEC_WEBSOCKET_TOO_LONG = 1009
};

/* Set the two pointers, the rest is zeroed. */
struct tec_websocket {
    uint8_t *bytes;   /* [TEC_WEBSOCKET_ROOM] as they came */
    uint8_t *message; /* [TEC_WEBSOCKET_MOST] of one that comes in several frames */
    size_t n, at;     /* bytes, and what of them has been read */
    size_t message_n;
    int opcode; /* of the message that is not whole yet; 0: there is none */
};

/* A message that is whole, or a control frame. */
struct tec_websocket_came {
    int opcode;          /* TEXT, BINARY, CLOSE, PING or PONG */
    const uint8_t *data; /* [n], until the next call */
    size_t n;
    int code; /* not 0: it is none; the connection is to be closed with this code */
};

/* Where the next bytes go, at most *n, which is never 0 behind a `next` that returned false. The
 * caller adds to w->n what it has put there. */
uint8_t *tec_websocket_room(struct tec_websocket *w, size_t *n);

/* The next of what has come; false: more bytes have to come first. Not after one with a code. */
bool tec_websocket_next(struct tec_websocket *w, struct tec_websocket_came *came);

/* The head of a frame of n bytes that is a whole message; returns how long the head is. */
size_t tec_websocket_head(uint8_t head[TEC_WEBSOCKET_HEAD], enum tec_websocket_opcode opcode,
                          size_t n);

/* The answer to a handshake's key of n characters, with a NUL. */
void tec_websocket_accept(char accept[TEC_WEBSOCKET_ACCEPT + 1], const char *key, size_t n);

#endif
