/* observation.h - an observation as openpi's clients send it: a MessagePack map of named values. */
#ifndef TEC_TOOLS_CLIENT_OBSERVATION_H
#define TEC_TOOLS_CLIENT_OBSERVATION_H

#include "graph/transform/observer.h"
#include "tools/client/values.h"

#include <jansson.h>

/* The same value, as a text or an array. */
struct tec_client_value tec_client_value(const struct tec_value *value);

/* Add the map to `out`: the values, and `tectum` (NULL: none), the map of that name, which other
 * servers ignore. False where that is too long; `out` is failed where memory is missing. */
bool tec_client_pack(struct tec_buffer *out, const struct tec_client_value *values, size_t n,
                     const json_t *tectum);

#endif
