/* handshake.c - fuzz target: any bytes as all that a client sends, from before the handshake on,
 * through libwebsockets and the connection thread.
 *
 * The first byte says in how many writes the rest is sent; a second byte of 1 puts a valid
 * handshake in front, so that the rest is WebSocket frames. After each input the server must still
 * answer /healthz within HANG_S seconds: a thread that hangs is found, not only one that crashes.
 */
#include "tools/serve/net.h"

#include "tests/fuzz/connection.h"

#include <pthread.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

enum { REPLY = 1 << 12, MAX_MESSAGE = 1 << 20, PLACES = 4 };

static const char upgrade[] = "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n"
                              "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                              "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

static struct {
    struct tec_heap heap;
    struct tec_arena arena;
    struct tec_exchange exchange;
    struct tec_runtime engine; /* runs nothing */
    struct tec_net net;
    int port;
} server;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    struct tec_error err;
    struct tec_listener listener = {.is_door = false};
    (void)argc;
    (void)argv;
    tec_arena_init(&server.arena, &server.heap);
    server.engine.bell = &server.engine.work;
    need(tec_listen_bind(&listener, "127.0.0.1", 0, "--port", &err) == TEC_OK);
    need(tec_exchange_init(&server.exchange, 2 * PLACES, &server.engine, REPLY, &server.arena,
                           &err) == TEC_OK);
    need(tec_listen_start(&listener, &server.port, &err) == TEC_OK);
    const struct tec_net_options options = {.exchange = &server.exchange,
                                            .heap = &server.heap,
                                            .listener = listener,
                                            .max_message = MAX_MESSAGE,
                                            .max_connections = PLACES,
                                            .stall_s = 5};
    need(tec_net_start(&server.net, &options, &err) == TEC_OK);
    return 0;
}

/* The engine's side: every request is answered with a sentence. */
static void answer_jobs(void)
{
    for (int job; (job = tec_exchange_take(&server.exchange)) >= 0;) {
        struct tec_job *j = &server.exchange.jobs[job];
        int open = TEC_JOB_OPEN;
        if (atomic_compare_exchange_strong(&j->answer, &open, TEC_JOB_BY_ENGINE)) {
            memcpy(j->reply, "no", 2);
            j->reply_n = 2;
            j->failed = true;
            j->lost = false;
        }
        tec_exchange_return(&server.exchange, job);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[4096];
    sigset_t before;
    if (size < 2)
        return 0;
    hold_timer(&before);
    int fd = connect_here(server.port);
    if (data[1] == 1)
        send_all(fd, upgrade, sizeof upgrade - 1, 1);
    send_all(fd, data + 2, size - 2, data[0] % 8);
    read_for(fd, 1, text, sizeof text);
    answer_jobs();
    read_for(fd, 1, text, sizeof text);
    close(fd);
    check_health(server.port, "GET /healthz HTTP/1.1\r\n\r\n");
    answer_jobs();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return 0;
}
