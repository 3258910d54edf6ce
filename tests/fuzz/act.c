/* act.c - fuzz target: any bytes as the body of POST /act, and, behind a NUL, as the server's
 * reply. What is accepted must be a request that the server can read, and a reply must be JSON. */
#include "tools/gateway/act.h"
#include "tests/fuzz/msgpack_whole.h"
#include "tools/serve/request.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct tec_robot_camera cameras[] = {{.slot = "base", .input = "observation/image"},
                                            {.slot = "none"},
                                            {.slot = "wrist", .input = "images/wrist"}};
static struct tec_robot_part part = {.input = "observation/state", .size = 4};
static const char *ignored[] = {"images/other"};
static const struct tec_robot robot = {.cameras = cameras,
                                       .n_cameras = 3,
                                       .parts = &part,
                                       .n_parts = 1,
                                       .ignored = ignored,
                                       .n_ignored = 1,
                                       .prompt_input = "prompt"};

static void request(const uint8_t *data, size_t size, struct tec_heap *heap,
                    struct tec_arena *arena)
{
    static struct tec_request_message read;
    const struct tec_gateway_names names = {&robot, "bridge_orig"};
    struct tec_buffer out = {.heap = heap};
    struct tec_act_asked asked;
    struct tec_error err = {.status = TEC_OK};
    enum tec_status status =
        tec_act_request(&out, &asked, &names, data, size, "act 127.0.0.1", arena, &err);
    check(status == TEC_OK || (err.status == status && err.message[0]));
    if (status == TEC_OK) { /* the server may refuse values, but no MessagePack */
        check_whole(&out, &err);
        check(asked.session[0]);
        tec_serve_request_read(&read, out.data, out.n, arena, &err);
    }
    tec_buffer_finish(&out);
}

static void reply(uint8_t *data, size_t size, struct tec_heap *heap, struct tec_arena *arena)
{
    const struct tec_act_asked asked = {.encoded = size % 2};
    const struct tec_buffer in = {.data = data, .n = size};
    struct tec_buffer out = {.heap = heap};
    struct tec_gateway_answer told;
    struct tec_error err;
    if (tec_act_reply(&out, &told, &asked, &in, arena, &err) == TEC_OK) {
        json_t *json = json_loadb((char *)out.data, out.n, JSON_DECODE_ANY, NULL);
        check(json && strlen(told.source) < sizeof told.source);
        check(json_is_string(json) == asked.encoded);
        json_decref(json);
    }
    tec_buffer_finish(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tec_heap heap = {.limit = (size_t)1 << 30};
    struct tec_arena arena;
    uint8_t *copy = malloc(size + 1); /* of its own size, so that reading behind it is found */
    check(copy);
    memcpy(copy, data, size);
    tec_arena_init(&arena, &heap);
    if (size && copy[0] == 0)
        reply(copy + 1, size - 1, &heap, &arena);
    else
        request(copy, size, &heap, &arena);
    tec_arena_finish(&arena);
    free(copy);
    check(heap.live == 0);
    return 0;
}
