/* peer.h - one connection of the control socket: lines in, lines out, both bounded, never waiting.
 */
#ifndef TEC_TOOLS_CONTROL_PEER_H
#define TEC_TOOLS_CONTROL_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TEC_PEER_LINE = 64 * 1024 }; /* bytes of a request, its end of line among them */

/* fd -1: nobody. A line is given out, answered and sent before the next one. */
struct tec_peer {
    int fd;
    char *in;    /* [TEC_PEER_LINE], borrowed */
    size_t n;    /* bytes in `in` */
    size_t used; /* of them, by the line that is being answered */
    char *out;   /* json_dumps' own; NULL = nothing to send */
    size_t out_n, sent;
    bool answering;   /* a line was given out and has no answer yet */
    bool leaving;     /* close when everything is sent */
    bool ended;       /* the other side sends no more */
    int64_t since_ns; /* when it last did something */
    int64_t number;   /* of the connection: this place's first is 1 */
};

void tec_peer_open(struct tec_peer *peer, int fd, int64_t now_ns);
void tec_peer_close(struct tec_peer *peer); /* nobody is allowed */

/* Take what has come and send what is left; closes when the other side is gone. */
void tec_peer_move(struct tec_peer *peer, int64_t now_ns);

/* The next whole line without its end, `n` bytes, to be answered; NULL = none yet. */
const char *tec_peer_line(struct tec_peer *peer, size_t *n);

/* The buffer is full, and there is no line in it. */
bool tec_peer_flooded(const struct tec_peer *peer);

/* Send this text, which is given (from malloc; NULL: the connection is closed), as a line. */
void tec_peer_answer(struct tec_peer *peer, char *line);

#endif
