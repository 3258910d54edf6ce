/* zmtp.c - fuzz target: any bytes as what a client of ZeroMQ's sends: the handshake and messages.
 */
#include "tools/gateway/zmtp.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Behind a handshake that is right where the first byte says so, which random bytes seldom find. */
static void greet(int fd)
{
    static const uint8_t greeting[64] = {0xff, [9] = 0x7f, 3, 0, 'N', 'U', 'L', 'L'};
    static const char ready[] = "\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03REQ";
    if (send(fd, greeting, sizeof greeting, 0) < 0 || send(fd, ready, sizeof ready - 1, 0) < 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { MOST = 4096, PATIENCE = 1000000000 };
    struct tec_heap heap = {.limit = 1 << 24};
    struct tec_buffer out = {.heap = &heap};
    struct tec_zmtp z;
    int fd[2];
    if (size < 1 || size > MOST || socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd) != 0)
        return 0;
    if (data[0] & 1)
        greet(fd[1]);
    if (send(fd[1], data + 1, size - 1, 0) < 0)
        abort();
    shutdown(fd[1], SHUT_WR);
    bool open = tec_zmtp_open(&z, fd[0], PATIENCE);
    while (open && tec_zmtp_wait(&z, PATIENCE) &&
           tec_zmtp_receive(&z, data[0] & 2 ? NULL : &out, MOST, PATIENCE))
        if (out.n > MOST || !tec_zmtp_send(&z, out.data, out.n, PATIENCE))
            break;
    tec_buffer_finish(&out);
    close(fd[0]);
    close(fd[1]);
    if (heap.live != 0)
        abort();
    return 0;
}
