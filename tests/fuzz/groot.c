/* groot.c - fuzz target: any bytes as a message of GR00T's protocol. What is accepted must be a
 * request that the server can read. */
#include "tools/gateway/groot.h"
#include "tests/fuzz/msgpack_whole.h"
#include "tools/serve/request.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct tec_robot_camera cameras[] = {{.slot = "base", .input = "video.front"}};
static struct tec_robot_part parts[] = {{.input = "state.arm", .size = 3},
                                        {.input = "state.hand", .size = 1}};
static const struct tec_robot robot = {
    .cameras = cameras, .n_cameras = 1, .parts = parts, .n_parts = 2, .prompt_input = "prompt"};
static const struct tec_key key;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct tec_request_message read;
    static const struct tec_groot_robot all = {{&robot, NULL}, 16, &key};
    struct tec_heap heap = {.limit = (size_t)1 << 30};
    struct tec_buffer out = {.heap = &heap};
    struct tec_groot_asked asked;
    struct tec_arena arena;
    struct tec_error err = {.status = TEC_OK};
    uint8_t *copy = malloc(size + 1); /* of its own size, so that reading behind it is found */
    check(copy);
    memcpy(copy, data, size);
    tec_arena_init(&arena, &heap);
    switch (tec_groot_request(&out, &asked, &all, copy, size, "groot 1 0", &arena, &err)) {
    case TEC_GROOT_GET_ACTION:
        check_whole(&out, &err);
        tec_serve_request_read(&read, out.data, out.n, &arena, &err);
        break;
    case TEC_GROOT_REFUSED:
        check(err.status != TEC_OK && err.message[0]);
        break;
    default:
        check(out.n == 0);
    }
    tec_buffer_finish(&out);
    tec_arena_finish(&arena);
    free(copy);
    check(heap.live == 0);
    return 0;
}
