/* websocket.c - the server's side of a WebSocket as the page of a robot has it: frames of a client,
 * in whatever pieces they come, and handshakes. */
#include "tools/foxglove/websocket.h"
#include "tests/tap.h"
#include "tools/foxglove/handshake.h"

#include <stdio.h>
#include <string.h>

static uint8_t bytes[TEC_WEBSOCKET_ROOM], message[TEC_WEBSOCKET_MOST], sent[2 * TEC_WEBSOCKET_ROOM];
static size_t n_sent;

/* Append a frame as a client makes it. `first`: opcode, and 128 of the last frame of a message. */
static void frame(uint8_t first, const void *data, size_t n)
{
    static const uint8_t mask[4] = {0x37, 0xfa, 0x21, 0x3d};
    uint8_t *at = sent + n_sent;
    size_t head = n < 126 ? 2 : n < 65536 ? 4 : 10;
    at[0] = first;
    at[1] = 0x80 | (n < 126 ? (uint8_t)n : n < 65536 ? 126 : 127);
    for (size_t i = 2; i < head; i++)
        at[i] = (uint8_t)((uint64_t)n >> (8 * (head - 1 - i)));
    memcpy(at + head, mask, 4);
    for (size_t i = 0; i < n; i++)
        at[head + 4 + i] = ((const uint8_t *)data)[i] ^ mask[i % 4];
    n_sent += head + 4 + n;
}

/* Give what was sent in pieces of `step` bytes, and write what comes of it: an opcode and the
 * first characters, or a code. */
static const char *come(size_t step)
{
    static char all[400];
    struct tec_websocket w = {.bytes = bytes, .message = message};
    struct tec_websocket_came came;
    size_t at = 0, n = 0, room;
    all[0] = '\0';
    while (at < n_sent) {
        uint8_t *to = tec_websocket_room(&w, &room);
        REQUIRE(room > 0);
        size_t some = n_sent - at < step ? n_sent - at : step;
        some = some < room ? some : room;
        memcpy(to, sent + at, some);
        w.n += some;
        at += some;
        while (tec_websocket_next(&w, &came)) {
            if (came.code) {
                snprintf(all + n, sizeof all - n, "[%d]", came.code);
                return all;
            }
            n += (size_t)snprintf(all + n, sizeof all - n, "%d:%.*s:%zu ", came.opcode,
                                  came.n < 20 ? (int)came.n : 20, (const char *)came.data, came.n);
        }
    }
    return all;
}

TEST(frames_become_messages_in_whatever_pieces_they_come)
{
    static uint8_t longest[TEC_WEBSOCKET_MOST], longer[200];
    const size_t steps[] = {1, 3, 1000, sizeof sent};
    memset(longest, 'x', sizeof longest);
    memset(longer, 'y', sizeof longer);
    n_sent = 0;
    frame(0x81, "whole", 5);
    frame(0x01, "in ", 3);
    frame(0x89, "ping", 4);
    frame(0x00, "", 0);
    frame(0x80, "three", 5);
    frame(0x82, longer, sizeof longer);
    frame(0x82, longest, sizeof longest);
    frame(0x88, "\x03\xe8", 2);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        CHECK_STR(come(steps[i]), "1:whole:5 9:ping:4 1:in three:8 2:yyyyyyyyyyyyyyyyyyyy:200 "
                                  "2:xxxxxxxxxxxxxxxxxxxx:65536 8:\x03\xe8:2 ");
}

TEST(what_is_no_frame_of_a_client_has_a_code)
{
    static uint8_t half[TEC_WEBSOCKET_MOST / 2 + 1];
    const struct {
        uint8_t first;
        size_t n;
        const char *code;
    } alone[] = {{0xc1, 1, "[1002]"},   {0x83, 1, "[1002]"},
                 {0x8b, 1, "[1002]"},   {0x09, 1, "[1002]"},
                 {0x89, 126, "[1002]"}, {0x80, 1, "[1002]"},
                 {0x00, 1, "[1002]"},   {0x81, TEC_WEBSOCKET_MOST + 1, "[1009]"}};
    for (size_t i = 0; i < sizeof alone / sizeof alone[0]; i++) {
        n_sent = 0;
        frame(alone[i].first, sent + TEC_WEBSOCKET_ROOM, alone[i].n);
        CHECK_STR(come(100), alone[i].code);
    }
    n_sent = 0;
    frame(0x01, half, sizeof half);
    frame(0x80, half, sizeof half);
    CHECK_STR(come(sizeof sent), "[1009]");
    n_sent = 0;
    frame(0x01, "a", 1);
    frame(0x81, "b", 1);
    CHECK_STR(come(1), "[1002]");
    n_sent = 0;
    frame(0x81, "a", 1);
    sent[1] &= 0x7f; /* not masked */
    CHECK_STR(come(1), "[1002]");
}

TEST(a_head_says_how_long_the_frame_is)
{
    uint8_t head[TEC_WEBSOCKET_HEAD];
    CHECK(tec_websocket_head(head, TEC_WEBSOCKET_TEXT, 125) == 2 && head[0] == 0x81 &&
          head[1] == 125);
    CHECK(tec_websocket_head(head, TEC_WEBSOCKET_BINARY, 126) == 4 && head[0] == 0x82 &&
          head[1] == 126 && head[2] == 0 && head[3] == 126);
    CHECK(tec_websocket_head(head, TEC_WEBSOCKET_BINARY, 65536) == 10 && head[1] == 127 &&
          head[7] == 1 && head[8] == 0 && head[9] == 0);
}

#define ASKS "GET / HTTP/1.1\r\nHost: localhost:1\r\nupgrade: WebSocket\r\n"
#define KEYED "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
#define SPEAKS "Sec-WebSocket-Protocol: x, foxglove.sdk.v1\r\n"

TEST(a_handshake_is_answered_as_the_rules_say)
{
    char answer[512] = "";
    const char *good = ASKS "Connection: keep-alive, Upgrade\r\n" KEYED SPEAKS "\r\n";
    const char *bad[] = {ASKS KEYED SPEAKS "\r\n",
                         ASKS "Connection: Upgrade\r\n" SPEAKS "Sec-WebSocket-Version: 13\r\n\r\n",
                         ASKS "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n" SPEAKS
                              "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZ?==\r\n\r\n",
                         ASKS "Connection: Upgrade\r\n" KEYED "\r\n",
                         ASKS "Connection: Upgrade\r\n" KEYED SPEAKS "Origin: http://x\r\n\r\n"};
    CHECK(tec_foxglove_asks(good) && !tec_foxglove_asks("GET / HTTP/1.1\r\n\r\n"));
    CHECK(tec_foxglove_answer(good, NULL, answer, sizeof answer) == NULL);
    CHECK(strstr(answer, "\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n") != NULL);
    CHECK(strstr(answer, "\r\nSec-WebSocket-Protocol: foxglove.sdk.v1\r\n\r\n") != NULL);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK(tec_foxglove_answer(bad[i], NULL, answer, sizeof answer) != NULL);
    CHECK(tec_foxglove_answer(bad[4], "http://x", answer, sizeof answer) == NULL);
}

TAP_MAIN
