/* websocket.c - fuzz target: any bytes as what a client of the page's WebSocket sends, in pieces of
 * the first byte's size; and as the head of its handshake. */
#include "tools/foxglove/websocket.h"
#include "tools/foxglove/handshake.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t bytes[TEC_WEBSOCKET_ROOM], message[TEC_WEBSOCKET_MOST];

static void need(bool good)
{
    if (!good)
        abort();
}

static void frames(const uint8_t *data, size_t size, size_t step)
{
    struct tec_websocket w = {.bytes = bytes, .message = message};
    struct tec_websocket_came came = {.code = 0};
    for (size_t at = 0, room; at < size && !came.code;) {
        uint8_t *to = tec_websocket_room(&w, &room);
        need(room > 0);
        size_t some = size - at < step ? size - at : step;
        some = some < room ? some : room;
        memcpy(to, data + at, some);
        w.n += some;
        at += some;
        while (!came.code && tec_websocket_next(&w, &came))
            need(came.code || (came.n <= TEC_WEBSOCKET_MOST && came.opcode > 0));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char head[4096], answer[512];
    if (size < 1)
        return 0;
    frames(data + 1, size - 1, 1 + (size_t)data[0]);
    size_t n = size - 1 < sizeof head - 1 ? size - 1 : sizeof head - 1;
    memcpy(head, data + 1, n);
    head[n] = '\0';
    tec_foxglove_asks(head);
    if (!tec_foxglove_answer(head, data[0] & 1 ? "http://x" : NULL, answer, sizeof answer))
        need(strstr(answer, "\r\n\r\n") != NULL);
    return 0;
}
