/* draw.c - draws an observation from a seed, by the kinds and shapes that a server names. */
#include "tools/probe/draw.h"

#include "tools/probe/object.h"

#include <string.h>

enum { SIDE = 224, NAME = 200, MOST_VALUES = 1 << 24 };

/* Of an observation, all its inputs together: a server may ask for more than there is. */
enum { MOST_BYTES = 64 << 20 };

static uint32_t next(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33);
}

/* The shape of an input, sides of any length as `any`; and how many values that are. */
static enum tec_status read_shape(struct tec_value *v, const msgpack_object *input, int any,
                                  size_t *count, struct tec_error *err)
{
    const msgpack_object *shape = tec_probe_member(input, "shape");
    if (!shape || shape->type != MSGPACK_OBJECT_ARRAY || shape->via.array.size > 4)
        return tec_fail(err, TEC_MALFORMED, "input '%s' has no shape of at most 4 sides", v->name);
    *count = 1;
    for (v->rank = 0; v->rank < (int)shape->via.array.size; v->rank++) {
        const msgpack_object *side = &shape->via.array.ptr[v->rank];
        uint64_t n = side->type == MSGPACK_OBJECT_NIL                ? (uint64_t)any
                     : side->type == MSGPACK_OBJECT_POSITIVE_INTEGER ? side->via.u64
                                                                     : 0;
        if (n < 1 || n > MOST_VALUES || *count > MOST_VALUES / n)
            return tec_fail(err, TEC_UNSUPPORTED,
                            "input '%s': side %d of its shape must be 1 or more, of at most %d "
                            "values in all",
                            v->name, v->rank + 1, MOST_VALUES);
        v->shape[v->rank] = (int64_t)n;
        *count *= n;
    }
    return TEC_OK;
}

static enum tec_status draw_picture(struct tec_value *v, const msgpack_object *input,
                                    uint64_t *state, struct tec_arena *arena, struct tec_error *err)
{
    size_t n = 0;
    TEC_TRY(read_shape(v, input, SIDE, &n, err));
    uint8_t *pixels = TEC_NEW(arena, n, uint8_t);
    if (!pixels)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for input '%s'", v->name);
    for (size_t i = 0; i < n; i++)
        pixels[i] = (uint8_t)next(state);
    v->kind = TEC_VALUE_U8;
    v->data = pixels;
    v->bytes = n;
    return TEC_OK;
}

static enum tec_status draw_numbers(struct tec_value *v, const msgpack_object *input,
                                    uint64_t *state, struct tec_arena *arena, struct tec_error *err)
{
    size_t n = 0;
    TEC_TRY(read_shape(v, input, 1, &n, err));
    float *numbers = TEC_NEW(arena, n, float);
    if (!numbers)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for input '%s'", v->name);
    for (size_t i = 0; i < n; i++)
        numbers[i] = (float)(next(state) % 2001) / 1000.0F - 1.0F;
    v->kind = TEC_VALUE_F32;
    v->data = numbers;
    v->bytes = n * sizeof *numbers;
    return TEC_OK;
}

static enum tec_status draw_text(struct tec_value *v, uint64_t *state, struct tec_arena *arena,
                                 struct tec_error *err)
{
    static const char *const verbs[] = {"lift", "push", "turn", "open"};
    static const char *const things[] = {"cup", "fork", "drawer", "apple"};
    const char *verb = verbs[next(state) % 4];
    const char *text = tec_arena_printf(arena, "%s the %s", verb, things[next(state) % 4]);
    if (!text)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for input '%s'", v->name);
    v->kind = TEC_VALUE_TEXT;
    v->data = text;
    v->bytes = strlen(text);
    return TEC_OK;
}

static enum tec_status draw(struct tec_value *v, const msgpack_object *input, uint64_t *state,
                            struct tec_arena *arena, struct tec_error *err)
{
    const msgpack_object *name = tec_probe_member(input, "name");
    const msgpack_object *kind = tec_probe_member(input, "kind");
    if (!name || name->type != MSGPACK_OBJECT_STR || name->via.str.size > NAME)
        return tec_fail(err, TEC_MALFORMED, "an input has no name of at most %d bytes", NAME);
    *v =
        (struct tec_value){.name = tec_arena_strndup(arena, name->via.str.ptr, name->via.str.size)};
    if (!v->name)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for the name of an input");
    if (tec_probe_is(kind, "image"))
        return draw_picture(v, input, state, arena, err);
    if (tec_probe_is(kind, "state") || tec_probe_is(kind, "along"))
        return draw_numbers(v, input, state, arena, err);
    if (tec_probe_is(kind, "text"))
        return draw_text(v, state, arena, err);
    return tec_fail(err, TEC_UNSUPPORTED, "input '%s' is of a kind that is not known", v->name);
}

/* Pictures are always given: where each of them may be missing, not all may. */
static bool is_left_out(const msgpack_object *input)
{
    const msgpack_object *required = tec_probe_member(input, "required");
    bool optional = required && required->type == MSGPACK_OBJECT_BOOLEAN && !required->via.boolean;
    return optional && !tec_probe_is(tec_probe_member(input, "kind"), "image");
}

enum tec_status tec_probe_draw(struct tec_value *values, size_t room, size_t *n,
                               const msgpack_object *metadata, uint64_t seed,
                               struct tec_arena *arena, struct tec_error *err)
{
    const msgpack_object *inputs = tec_probe_member(tec_probe_member(metadata, "tectum"), "inputs");
    size_t bytes = 0;
    *n = 0;
    if (!inputs || inputs->type != MSGPACK_OBJECT_ARRAY)
        return tec_fail(err, TEC_UNSUPPORTED,
                        "the server does not say what its inputs are: send it the observation of a "
                        "recording, with --recording FILE.mcap");
    for (uint32_t i = 0; i < inputs->via.array.size; i++) {
        const msgpack_object *input = &inputs->via.array.ptr[i];
        if (is_left_out(input))
            continue;
        if (*n == room)
            return tec_fail(err, TEC_UNSUPPORTED, "the server has more than %zu inputs", room);
        TEC_TRY(draw(&values[(*n)++], input, &seed, arena, err));
        bytes += values[*n - 1].bytes;
        if (bytes > MOST_BYTES)
            return tec_fail(err, TEC_UNSUPPORTED,
                            "the server's inputs take more than %d MiB an observation; with input "
                            "'%s' it is %zu",
                            MOST_BYTES >> 20, values[*n - 1].name, bytes >> 20);
    }
    return TEC_OK;
}
