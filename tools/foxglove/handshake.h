/* handshake.h - who may look at a robot through the port of its page: the request with which a
 * program of Foxglove's protocol asks for a WebSocket, judged and answered. */
#ifndef TEC_TOOLS_FOXGLOVE_HANDSHAKE_H
#define TEC_TOOLS_FOXGLOVE_HANDSHAKE_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the head of a request asks for a WebSocket at all. `head` ends with a NUL. */
bool tec_foxglove_asks(const char *head);

/* Judge such a request. Accepted: its answer is in `answer`, and NULL is returned; else a sentence
 * for who asked. A web page may connect if it is of this machine, a file, or of `origin`, as
 * "https://robots.example.com"; NULL: of no other. */
const char *tec_foxglove_answer(const char *head, const char *origin, char *answer, size_t room);

#endif
