/* draw.h - an observation that fits what a server says of its inputs, and means nothing. */
#ifndef TEC_TOOLS_PROBE_DRAW_H
#define TEC_TOOLS_PROBE_DRAW_H

#include "graph/transform/observer.h"

#include <msgpack.h>

/* Draw a value for every input that the server's first message says it requires (doc/serve.md:
 * `tectum`, `inputs`): pictures of random bytes, 224 pixels where a side may be of any length;
 * numbers from -1 to 1; a text of three words. `seed` decides all of them. values [room], of which
 * *n are there; they live in `arena`. The message is a stranger's. TEC_UNSUPPORTED: it says nothing
 * of inputs, or names one of a kind nobody knows or too large a one; TEC_MALFORMED; TEC_NO_MEMORY.
 */
enum tec_status tec_probe_draw(struct tec_value *values, size_t room, size_t *n,
                               const msgpack_object *metadata, uint64_t seed,
                               struct tec_arena *arena, struct tec_error *err);

#endif
