/* net_rescue.c - replies that leave although the connection thread does not come round.
 *
 * That thread holds `turn` in every event of the library's. Where it hangs in the library itself,
 * the turn is free, and the guard's thread may do for the slots what their own thread would: take
 * back what the engine has done, make the replies that are due, and send them. It does so past the
 * library, of which nothing is touched: a reply is one WebSocket frame on the connection's
 * descriptor. */
#include "tools/serve/net_rescue.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>

/* Write the header of one unmasked, whole frame (RFC 6455, 5.2); returns its bytes. */
static size_t frame_header(unsigned char header[10], bool is_text, size_t n)
{
    header[0] = is_text ? 0x81 : 0x82;
    if (n < 126) {
        header[1] = (unsigned char)n;
        return 2;
    }
    size_t bytes = n < 65536 ? 2 : 8;
    header[1] = bytes == 2 ? 126 : 127;
    for (size_t i = 0; i < bytes; i++)
        header[2 + i] = (unsigned char)(n >> (8 * (bytes - 1 - i)));
    return 2 + bytes;
}

/* Send an answered slot's reply. If the socket does not take all of it at once it cannot be
 * completed here: the connection is closed, so that its client notices. */
static void send_past(struct tec_net *net, struct tec_slot *slot)
{
    struct tec_job *job = &slot->exchange->jobs[slot->job];
    struct tec_net_alarm *alarm = &net->alarms[slot->job];
    unsigned char header[10];
    struct iovec parts[2] = {{header, frame_header(header, job->failed, job->reply_n)},
                             {job->reply, job->reply_n}};
    const struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    size_t all = parts[0].iov_len + parts[1].iov_len;
    ssize_t sent = sendmsg(alarm->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    net->stats.rescued++;
    if (sent != (ssize_t)all || job->failed)
        shutdown(alarm->fd, SHUT_RDWR);
    tec_watch_sent(&alarm->watch, tec_clock_now(&net->clock));
}

bool tec_net_rescue(struct tec_net *net)
{
    if (pthread_mutex_trylock(&net->turn) != 0)
        return false;
    if (atomic_load(&net->stopping)) {
        pthread_mutex_unlock(&net->turn);
        return false;
    }
    int job;
    while ((job = tec_exchange_collect(net->options.exchange)) >= 0)
        tec_watch_collected(&net->alarms[job].watch, tec_clock_now(&net->clock));
    for (int i = 0; i < net->options.exchange->n; i++) {
        struct tec_slot *slot = &net->slots[i];
        tec_watch_look(&net->alarms[i].watch, tec_clock_now(&net->clock));
        if (slot->connection && slot->greeted && !slot->closing && !slot->pushing &&
            slot->state == TEC_SLOT_ANSWERED)
            send_past(net, slot);
    }
    pthread_mutex_unlock(&net->turn);
    return true;
}
