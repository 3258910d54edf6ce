/* random_input.c - values of declared inputs that mean nothing. */
#include "tools/frames/random_input.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* A linear congruential generator modulo 2^64 (Knuth's constants). */
#define FACTOR UINT64_C(6364136223846793005)
#define STEP UINT64_C(1442695040888963407)

static uint32_t drawn(uint64_t state)
{
    return (uint32_t)(state >> 33);
}

static uint32_t draw(uint64_t *state)
{
    *state = *state * FACTOR + STEP;
    return drawn(*state);
}

/* The lowest bytes of n draws. A draw waits for the product of the one before, so LANES states go
 * on beside each other, each by LANES draws at once: x * factor + step. */
static void draw_bytes(uint64_t *state, uint8_t *to, size_t n)
{
    enum { LANES = 8 };
    uint64_t lane[LANES], factor = 1, step = 0;
    size_t whole = n / LANES * LANES;
    for (int l = 0; l < LANES && whole > 0; l++) {
        factor *= FACTOR;
        step = step * FACTOR + STEP;
        draw(state);
        lane[l] = *state;
    }
    for (size_t i = 0; i < whole; i += LANES) {
        *state = lane[LANES - 1];
        for (int l = 0; l < LANES; l++) {
            to[i + (size_t)l] = (uint8_t)drawn(lane[l]);
            lane[l] = lane[l] * factor + step;
        }
    }
    for (size_t i = whole; i < n; i++)
        to[i] = (uint8_t)draw(state);
}

static bool random_picture(struct tec_value *v, const struct tec_decl_input *in, int side,
                           uint64_t *state, struct tec_arena *arena)
{
    int h = side ? side : in->h, w = side ? side : in->w;
    size_t n = (size_t)h * (size_t)w * 3;
    uint8_t *pixels = TEC_NEW(arena, n, uint8_t);
    if (pixels)
        draw_bytes(state, pixels, n);
    *v = (struct tec_value){in->name, TEC_VALUE_U8, 3, {h, w, 3}, pixels, n};
    return pixels;
}

static bool random_numbers(struct tec_value *v, const struct tec_decl_input *in, uint64_t *state,
                           struct tec_arena *arena)
{
    size_t n = 1;
    v->kind = TEC_VALUE_F32;
    for (v->rank = 0; v->rank < in->shape.n && v->rank < 4; v->rank++)
        n *= (size_t)(v->shape[v->rank] = in->shape.item[v->rank]);
    float *numbers = TEC_NEW(arena, n, float);
    for (size_t i = 0; numbers && i < n; i++)
        numbers[i] = (float)(draw(state) % 2001) / 1000.0F - 1.0F;
    v->data = numbers;
    v->bytes = n * sizeof(float);
    return numbers;
}

static bool random_prompt(struct tec_value *v, const struct tec_decl_input *in,
                          const struct tec_session *session, struct tec_random_sizes sizes,
                          uint64_t *state, struct tec_arena *arena)
{
    int vocab = sizes.vocab;
    size_t n =
        (size_t)(sizes.prompt_tokens < in->max_tokens ? sizes.prompt_tokens : in->max_tokens);
    int *ids = TEC_NEW(arena, n, int);
    for (size_t i = 0; ids && i < n; i++)
        ids[i] = vocab > 3 ? 3 + (int)(draw(state) % (uint32_t)(vocab - 3)) : 0;
    if (ids && session)
        tec_session_fit_ids(session, ids, (int)n);
    v->name = tec_arena_printf(arena, "%s#ids", in->name);
    v->kind = TEC_VALUE_I32;
    v->rank = 1;
    v->shape[0] = (int64_t)n;
    v->data = ids;
    v->bytes = n * sizeof(int);
    return ids && v->name;
}

static const char *draw_word(uint64_t *state)
{
    static const char *const words[] = {"cup", "fork", "sink", "shelf", "apple", "open", "clean"};
    return words[draw(state) % 7];
}

/* Two words, where ids cannot be given. */
static bool random_words(struct tec_value *v, uint64_t *state, struct tec_arena *arena)
{
    const char *first = draw_word(state), *second = draw_word(state);
    const char *text = tec_arena_printf(arena, "%s %s", first, second);
    *v = (struct tec_value){.name = v->name, .kind = TEC_VALUE_TEXT, .data = text};
    v->bytes = text ? strlen(text) : 0;
    return text;
}

/* A few segments of a memory. A text has no more bytes than a segment has tokens, so that it fits
 * whatever the tokenizer makes of it. */
static bool random_segments(struct tec_value *v, int tokens_each, uint64_t *state,
                            struct tec_arena *arena)
{
    enum { SEGMENTS = 6, ROOM = 1024, SENTENCE = 28 };
    char *text = tec_arena_push(arena, ROOM, 1, 1);
    size_t n = 0;
    for (int u = 0; text && u < SEGMENTS; u++) {
        const char *said[3] = {NULL};
        for (int w = 2; w >= 0; w--)
            said[w] = draw_word(state);
        n += (size_t)snprintf(text + n, ROOM - n, "%s\"segment%d\": \"", u ? ", " : "{\"put\": {",
                              u);
        if (tokens_each < SENTENCE)
            n += (size_t)snprintf(text + n, ROOM - n, "%.*s\\n\"",
                                  tokens_each > 2 ? tokens_each - 2 : 1, said[0]);
        else
            n += (size_t)snprintf(text + n, ROOM - n, "%s is %s by the %s\\n\"", said[0], said[1],
                                  said[2]);
    }
    if (text)
        n += (size_t)snprintf(text + n, ROOM - n, "}}");
    *v = (struct tec_value){.name = v->name, .kind = TEC_VALUE_TEXT, .data = text, .bytes = n};
    return text;
}

/* The robot whose input it is; NULL = the pipeline's inputs are nobody's. And its session. */
static const struct tec_robot *robot_of(const struct tec_session *session, const char *input,
                                        int *side, const struct tec_session **of)
{
    const struct tec_robot *robot = NULL;
    for (; session && !robot; session = tec_session_next(session)) {
        robot = tec_session_robot(session);
        if (robot && strncmp(input, robot->prefix, strlen(robot->prefix)) != 0)
            robot = NULL;
        *side = tec_session_picture_side(session);
        *of = robot ? session : NULL;
    }
    return robot;
}

/* Name the picture after its slot, so that the robot takes it for the camera of that slot. */
static const char *name_of(const struct tec_decl_input *in, const struct tec_robot *robot)
{
    for (int i = 0; robot && in->slot && i < robot->n_cameras; i++)
        if (robot->cameras[i].input && strcmp(robot->cameras[i].slot, in->slot) == 0)
            return robot->cameras[i].input;
    return in->name;
}

/* A draw of its own for each named robot, so that what it sees is the same without the others. */
static void begin_draws(const struct tec_pipeline *p, uint64_t state,
                        uint64_t draws[TEC_MAX_ROBOTS + 1])
{
    for (int r = 0; r <= p->n_robots; r++) {
        const char *name = r < p->n_robots ? p->robots[r].name : "";
        draws[r] = state;
        for (; *name; name++)
            draws[r] = (draws[r] ^ (unsigned char)*name) * UINT64_C(0x100000001B3);
    }
}

enum tec_status tec_random_inputs(struct tec_value *values, size_t room, size_t *n,
                                  const struct tec_pipeline *pipeline,
                                  const struct tec_session *session, struct tec_random_sizes sizes,
                                  uint64_t *state, struct tec_arena *arena, struct tec_error *err)
{
    enum { OF_ANY_MODEL = 256 };
    *n = 0;
    bool named = pipeline->n_robots > 0 && pipeline->robots[0].name;
    uint64_t draws[TEC_MAX_ROBOTS + 1], *shared = state;
    if (named)
        begin_draws(pipeline, *state, draws);
    if (pipeline->n_models > 1 && sizes.vocab > OF_ANY_MODEL)
        sizes.vocab = OF_ANY_MODEL;
    for (int i = 0; i < pipeline->n_inputs && *n < room; i++) {
        const struct tec_decl_input *in = &pipeline->inputs[i];
        struct tec_value *v = &values[*n];
        int model_side = 0, of = tec_pipeline_robot_of(pipeline, i);
        const struct tec_session *whose = NULL;
        const struct tec_robot *robot = robot_of(session, in->name, &model_side, &whose);
        int side = robot && robot->resize == TEC_RESIZE_NONE && sizes.side ? model_side : 0;
        state = named ? &draws[of < 0 ? pipeline->n_robots : of] : shared;
        *v = (struct tec_value){.name = in->name};
        bool spelt = in->kind == TEC_INPUT_TEXT && tec_session_spells(session, in->name);
        bool made = in->kind == TEC_INPUT_SEGMENTS
                        ? random_segments(v, in->tokens_each, state, arena)
                    : in->kind == TEC_INPUT_IMAGE  ? random_picture(v, in, side, state, arena)
                    : in->kind == TEC_INPUT_TENSOR ? random_numbers(v, in, state, arena)
                    : spelt                        ? random_words(v, state, arena)
                            : random_prompt(v, in, whose ? whose : session, sizes, state, arena);
        if (!made)
            return tec_fail(err, TEC_NO_MEMORY, "no memory for random inputs");
        if (in->kind == TEC_INPUT_IMAGE)
            v->name = name_of(in, robot);
        ++*n;
    }
    if (named)
        draw(shared);
    return TEC_OK;
}
