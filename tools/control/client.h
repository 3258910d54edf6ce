/* client.h - the other end of a robot's control socket: one request and its answer. */
#ifndef TEC_TOOLS_CONTROL_CLIENT_H
#define TEC_TOOLS_CONTROL_CLIENT_H

#include "base/alloc.h"
#include "base/error.h"

#include <jansson.h>

/* Send the request, whose reference is taken, to the socket at `path`, and receive the answer, a
 * new reference. What the robot refuses is this call's failure, as the robot states it;
 * TEC_NOT_FOUND when there is none, TEC_TIME when it does not answer within 15 s. */
enum tec_status tec_control_ask(struct tec_heap *heap, const char *path, json_t *request,
                                json_t **answer, struct tec_error *err);

#endif
