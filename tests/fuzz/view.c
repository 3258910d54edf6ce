/* view.c - fuzz target: any bytes as all that a client sends to the port of --view, from before the
 * handshake on: through libwebsockets, the page's requests and Foxglove's orders.
 *
 * The first byte says in how many writes the rest is sent. A second byte of 1 puts a valid
 * handshake in front, so that the rest is WebSocket frames; one of 2 makes of the rest the text of
 * one frame, an order. After each input the port must still answer within HANG_S seconds.
 */
#include "tools/record/view_own.h"

#include "tests/fuzz/connection.h"

#include <pthread.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

enum { MOST = 1 << 16, HEAD = 14 };

static const char upgrade[] = "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\n"
                              "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                              "Sec-WebSocket-Protocol: foxglove.sdk.v1\r\n"
                              "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
static const char page[] = "GET /data HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";

static struct {
    struct tec_heap heap;
    struct tec_arena arena;
    struct tec_invocation call;
    struct tec_opened opened;
    struct tec_runtime runtime; /* runs nothing: its recorder and figures are looked at */
    struct tec_view *view;
} robot;

/* What begins must begin: the reason is shown. */
static void good(enum tec_status status, const struct tec_error *err)
{
    if (status != TEC_OK)
        fprintf(stderr, "%s\n", err->message);
    need(status == TEC_OK);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    struct tec_error err = {.message = ""};
    (void)argc;
    (void)argv;
    tec_arena_init(&robot.arena, &robot.heap);
    robot.call = (struct tec_invocation){
        .verb = "fuzz", .root = ".", .heap = &robot.heap, .arena = &robot.arena, .out = stdout};
    robot.call.shared.threads = 1;
    good(
        tec_cli_open_engine(&robot.opened, &robot.call, "pipelines/demo_metaworld.lua", NULL, &err),
        &err);
    const struct tec_recording_options options = {.mode = TEC_RECORDING_FRAMES,
                                                  .opened = &robot.opened,
                                                  .recorder = &robot.runtime.recorder,
                                                  .figures = &robot.runtime.figures};
    good(tec_recorder_create(&robot.runtime.recorder, &robot.arena, &err), &err);
    good(tec_view_of_option(&robot.view, "0", NULL, NULL, &options, &err), &err);
    return 0;
}

/* The bytes as the text of one frame. */
static void send_order(int fd, const uint8_t *data, size_t n, size_t pieces)
{
    static uint8_t frame[HEAD + MOST];
    static const uint8_t no_mask[4] = {0};
    size_t at = 2;
    n = n < MOST ? n : MOST - 1;
    frame[0] = 0x81;
    frame[1] = (uint8_t)(0x80 | (n < 126 ? n : 126));
    if (n >= 126) {
        frame[at++] = (uint8_t)(n >> 8);
        frame[at++] = (uint8_t)n;
    }
    memcpy(frame + at, no_mask, sizeof no_mask);
    memcpy(frame + at + sizeof no_mask, data, n);
    send_all(fd, frame, at + sizeof no_mask + n, pieces);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[4096];
    sigset_t before;
    if (size < 2)
        return 0;
    hold_timer(&before);
    int fd = connect_here(robot.view->port);
    if (data[1] == 1 || data[1] == 2)
        send_all(fd, upgrade, sizeof upgrade - 1, 1);
    if (data[1] == 2)
        send_order(fd, data + 2, size - 2, data[0] % 8);
    else
        send_all(fd, data + 2, size - 2, data[0] % 8);
    read_for(fd, 1, text, sizeof text);
    close(fd);
    check_health(robot.view->port, page);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return 0;
}
