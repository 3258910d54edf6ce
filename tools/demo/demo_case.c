/* demo_case.c - recorded episodes: their inputs by name, and what the model answered. */
#include "base/store/file.h"
#include "tools/demo/demo.h"

#include <math.h>
#include <string.h>

enum tec_status tec_demo_open(struct tec_demo_case *c, const char *dir, struct tec_heap *heap,
                              struct tec_arena *arena, struct tec_error *err)
{
    const char *json = tec_arena_printf(arena, "%s/case.json", dir);
    const char *expected = tec_arena_printf(arena, "%s/expected.safetensors", dir);
    *c = (struct tec_demo_case){.dir = dir, .heap = heap, .arena = arena};
    c->inputs = tec_arena_printf(arena, "%s/inputs.safetensors", dir);
    if (!json || !expected || !c->inputs)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a path");
    enum tec_status status = tec_checkpoint_json_load(&c->json, json, heap, err);
    if (status == TEC_OK)
        status = tec_tensors_open(&c->expected, expected, heap, err);
    c->n_episodes = (int)json_array_size(json_object_get(c->json, "episodes"));
    if (status == TEC_OK && (c->n_episodes < 1 || c->n_episodes > TEC_DEMO_EPISODES))
        status = tec_fail(err, TEC_MALFORMED, "%s: must have 1 to %d episodes, has %d", json,
                          TEC_DEMO_EPISODES, c->n_episodes);
    if (status != TEC_OK)
        tec_demo_close(c);
    return status;
}

void tec_demo_close(struct tec_demo_case *c)
{
    tec_tensors_close(c->expected);
    json_decref(c->json);
    c->expected = NULL;
    c->json = NULL;
}

static const struct tec_stored *find(const struct tec_demo_case *c, const char *key,
                                     const char *what, enum tec_dtype dtype, int rank, int n)
{
    char name[128];
    snprintf(name, sizeof name, "%.60s.%s", key, what);
    const struct tec_stored *s = tec_tensors_find(c->expected, name);
    return s && s->dtype == dtype && s->rank == rank && s->shape[0] == n ? s : NULL;
}

static enum tec_status read_expected(struct tec_demo_episode *e, const struct tec_demo_case *c,
                                     struct tec_error *err)
{
    const struct tec_stored *actions = find(c, e->key, "actions", TEC_F32, 3, e->n);
    const struct tec_stored *texts = find(c, e->key, "text_ids", TEC_I32, 2, e->n);
    if (!actions || !texts)
        return tec_fail(err, TEC_MALFORMED, "%s: the recorded actions or texts of '%s' are missing",
                        c->dir, e->key);
    float *chunk = TEC_NEW(c->arena, actions->bytes / sizeof(float), float);
    int *ids = TEC_NEW(c->arena, texts->bytes / sizeof(int), int);
    if (!chunk || !ids)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for an episode");
    TEC_TRY(tec_tensors_read(c->expected, actions, 0, chunk, actions->bytes, err));
    TEC_TRY(tec_tensors_read(c->expected, texts, 0, ids, texts->bytes, err));
    e->rows = (int)actions->shape[1];
    e->columns = (int)actions->shape[2];
    e->most = (int)texts->shape[1];
    e->actions = chunk;
    e->texts = ids;
    return TEC_OK;
}

/* The rule of tests/golden/README.md. */
static void read_bounds(struct tec_demo_episode *e, const struct tec_demo_case *c)
{
    char name[128];
    snprintf(name, sizeof name, "%.60s.actions", e->key);
    const json_t *t = json_object_get(json_object_get(c->json, "tensors"), name);
    double bf16 = json_number_value(json_object_get(json_object_get(t, "err_bf16"), "max"));
    double f32 = json_number_value(json_object_get(json_object_get(t, "err_fp32"), "max"));
    e->bound_bf16 = 1.5 * bf16;
    e->bound_f32 = fmax(4.0 * f32, 2e-6 * json_number_value(json_object_get(t, "rms")));
}

enum tec_status tec_demo_episode(struct tec_demo_episode *e, const struct tec_demo_case *c, int i,
                                 struct tec_error *err)
{
    const json_t *json = json_array_get(json_object_get(c->json, "episodes"), (size_t)i);
    *e = (struct tec_demo_episode){.key = json_string_value(json_object_get(json, "key")),
                                   .instruction =
                                       json_string_value(json_object_get(json, "instruction")),
                                   .inferences = json_object_get(json, "inferences")};
    e->n = (int)json_array_size(e->inferences);
    if (!e->key || !e->instruction || e->n < 1 || e->n > TEC_DEMO_FRAMES)
        return tec_fail(err, TEC_MALFORMED, "%s: episode %d needs key, instruction, inferences",
                        c->dir, i);
    read_bounds(e, c);
    return read_expected(e, c, err);
}
