/* msgpack_whole.h - for targets whose output is a message: it must be one map, and nothing behind.
 */
#ifndef TEC_TESTS_FUZZ_MSGPACK_WHOLE_H
#define TEC_TESTS_FUZZ_MSGPACK_WHOLE_H

#include "tools/record/buffer.h"
#include "tools/serve/msgpack_read.h"

#include <stdlib.h>

static inline void check(bool good)
{
    if (!good)
        abort();
}

static inline void check_whole(const struct tec_buffer *out, struct tec_error *err)
{
    struct tec_msgpack r;
    struct tec_msgpack_token map;
    tec_msgpack_open(&r, out->data, out->n);
    check(tec_msgpack_next(&r, &map, err) == TEC_OK && map.kind == TEC_MSGPACK_MAP);
    check(tec_msgpack_skip(&r, &map, err) == TEC_OK && r.at == r.end);
}

#endif
