/* pi.c - what the judges of flow-matching models share: it opens and plans a checkpoint, reads the
 * inputs of a case, and compares results within the case's bounds. */
#include "tests/judge/pi.h"

#include "graph/model/program.h"
#include "tests/judge/taps.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *tec_pi_path(const struct tec_pi *pi, const char *name)
{
    const char *path = tec_arena_printf(pi->v->arena, "%s/%s", pi->v->dir, name);
    return path ? path : "";
}

static enum tec_status open_device(struct tec_pi *pi, struct tec_error *err)
{
    return tec_device_open(&pi->device, &pi->v->device, pi->v->heap, err);
}

enum tec_status tec_pi_open(struct tec_pi *pi, struct tec_verify *v, const char *path,
                            const char *mask, struct tec_error *err)
{
    *pi = (struct tec_pi){.v = v};
    if (!path)
        path = json_string_value(json_object_get(v->json, "checkpoint"));
    if (!path)
        return tec_fail(err, TEC_MALFORMED, "%s/case.json: no checkpoint", v->dir);
    json_t *overrides = mask ? json_pack("{s:s}", "mask", mask) : NULL;
    enum tec_status status = tec_pi_open_beside(pi, v, path, NULL, overrides, err);
    json_decref(overrides);
    return status;
}

enum tec_status tec_pi_open_beside(struct tec_pi *pi, struct tec_verify *v, const char *path,
                                   const char *beside, json_t *overrides, struct tec_error *err)
{
    *pi = (struct tec_pi){.v = v};
    const json_t *config = json_object_get(v->json, "config");
    TEC_TRY(open_device(pi, err));
    const struct tec_checkpoint_source from = {.path = tec_pi_path(pi, path),
                                               .adapter = v->adapter};
    TEC_TRY(tec_checkpoint_open_source(&pi->checkpoint, &from, v->heap, err));
    if (json_object_get(v->json, "config_overrides"))
        json_object_update(pi->checkpoint->config, json_object_get(v->json, "config_overrides"));
    const struct tec_model_choice choice = {
        .root = tec_verify_shipped(v, "models"),
        .arch = json_string_value(json_object_get(overrides, "arch")),
        .overrides = overrides,
        .checkpoint = pi->checkpoint,
        .beside = beside ? tec_pi_path(pi, beside) : NULL};
    TEC_TRY(tec_model_open(&pi->model, &choice, v->heap, err));
    pi->tensors = json_object_get(v->json, "tensors");
    pi->max_text = (int)json_integer_value(json_object_get(config, "max_token_len"));
    if (pi->max_text < 1)
        pi->max_text = pi->model->text.max_tokens;
    const struct tec_weights_options options = {.model = pi->model,
                                                .source = {.checkpoint = pi->checkpoint},
                                                .device = pi->device,
                                                .bf16 = strcmp(v->dtype, "bf16") == 0,
                                                .quantize = v->quantize,
                                                .quantize_head = v->quantize_head,
                                                .language = true};
    return tec_weights_load(&pi->weights, &options, v->heap, err);
}

void tec_pi_keep_times(struct tec_model *model)
{
    for (int i = 0; model->program && i < model->program->n; i++) {
        struct tec_model_call *c = &model->program->calls[i];
        if (c->timed && !c->name)
            c->name = "time";
    }
}

/* Norms are scaled by columns of what a layer of its own makes of the time. */
int tec_pi_modulation(const struct tec_model_program *p, int norm)
{
    for (int i = p->parts[TEC_PART_OF_ACTION]; i < p->n; i++)
        if (p->calls[i].scale >= 0 && norm-- == 0)
            return p->calls[p->calls[i].scale].in[0];
    return -1;
}

int tec_pi_modulations(const struct tec_model_program *p)
{
    int n = 0;
    while (tec_pi_modulation(p, n) >= 0)
        n++;
    return n;
}

void tec_pi_finish(struct tec_pi *pi)
{
    tec_tensors_close(pi->inputs);
    tec_tensors_close(pi->expected);
    json_decref(pi->sibling);
    tec_weights_close(pi->weights);
    tec_model_close(pi->model);
    tec_checkpoint_close(pi->checkpoint);
    tec_device_close(pi->device);
}

/* Find the bounds in the case, or in the case whose inputs it shares. */
static void find_bounds(struct tec_pi *pi, const char *inputs)
{
    char dir[1024];
    const char *slash = strrchr(inputs, '/');
    if (pi->tensors || !slash || (size_t)(slash - inputs) >= sizeof dir)
        return;
    memcpy(dir, inputs, (size_t)(slash - inputs));
    dir[slash - inputs] = '\0';
    const char *path = tec_arena_printf(pi->v->arena, "%s/%s/case.json", pi->v->dir, dir);
    pi->sibling = path ? json_load_file(path, JSON_REJECT_DUPLICATES, NULL) : NULL;
    pi->tensors = json_object_get(pi->sibling, "tensors");
}

enum tec_status tec_pi_open_tensors(struct tec_pi *pi, struct tec_error *err)
{
    const char *inputs = json_string_value(json_object_get(pi->v->json, "same_inputs_as"));
    if (!inputs)
        inputs = "inputs.safetensors";
    else if (!strstr(inputs, ".safetensors")) /* a folder */
        inputs = tec_arena_printf(pi->v->arena, "%s/inputs.safetensors", inputs);
    if (!inputs)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a path");
    find_bounds(pi, inputs);
    TEC_TRY(tec_tensors_open(&pi->inputs, tec_pi_path(pi, inputs), pi->v->heap, err));
    return tec_tensors_open(&pi->expected, tec_pi_path(pi, "expected.safetensors"), pi->v->heap,
                            err);
}

enum tec_status tec_pi_plan(struct tec_pi *pi, struct tec_plan **plan, int steps, int request_slots,
                            int new_tokens, bool taps, struct tec_error *err)
{
    const struct tec_model *m = pi->model;
    const struct tec_plan_spec spec = {
        .frame_tokens = m->n_slots * tec_vision_rows(&m->vision) + pi->max_text + tec_head_rows(m),
        .text_tokens = pi->max_text,
        .positions = pi->positions,
        .penalty = pi->penalty,
        .segments = pi->segments,
        .segment_tokens = pi->segment_tokens,
        .n_actions = steps > 0,
        .actions = {{.steps = steps, .fixed = pi->fixed, .guidance = pi->guidance}},
        .request_slots = request_slots,
        .new_tokens = new_tokens,
        .isolated = request_slots > 0,
        .n_batches = request_slots > 1 ? 2 : 1,
        .batches = {1, request_slots},
        .max_k = new_tokens,
        .round = pi->v->round,
        .taps = taps,
        .whole = taps};
    const struct tec_plan_inputs in = {.spec = &spec,
                                       .model = m,
                                       .weights = pi->weights,
                                       .source = {.checkpoint = pi->checkpoint},
                                       .device = pi->device};
    return tec_plan_create(plan, &in, pi->v->heap, err);
}

/* Read a named input of exactly that many bytes as stored; on failure return NULL and report it. */
static void *read_input(struct tec_pi *pi, const char *prefix, const char *name,
                        enum tec_dtype dtype, size_t *bytes, struct tec_error *err)
{
    const char *full = tec_arena_printf(pi->v->arena, "%s%s", prefix, name);
    const struct tec_stored *t = full ? tec_tensors_find(pi->inputs, full) : NULL;
    void *p = t ? tec_arena_push(pi->v->arena, t->bytes + 1, 1, 16) : NULL;
    if (!p || t->dtype != dtype) {
        tec_fail(err, TEC_NOT_FOUND, "inputs: no %s tensor '%s'", tec_dtype_name(dtype),
                 full ? full : name);
        return NULL;
    }
    *bytes = t->bytes;
    return tec_tensors_read(pi->inputs, t, 0, p, t->bytes, err) == TEC_OK ? p : NULL;
}

/* A picture's bytes as the model reads them: as they are, or as floats in 0 .. 1. */
static const uint8_t *as_read(const struct tec_pi *pi, const uint8_t *picture, size_t n)
{
    if (!pi->model->vision.floats)
        return picture;
    float *wide = TEC_NEW(pi->v->arena, n, float);
    for (size_t i = 0; wide && i < n; i++)
        wide[i] = (float)picture[i] / 255.0F;
    return (const uint8_t *)wide;
}

static enum tec_status read_pictures(struct tec_pi *pi, const char *prefix,
                                     struct tec_pi_inputs *in, struct tec_error *err)
{
    const struct tec_model *m = pi->model;
    size_t size = (size_t)m->vision.image_size, want = size * size * 3, n;
    char name[128];
    for (int s = 0; s < m->n_slots; s++) {
        snprintf(name, sizeof name, "image_mask.%s", m->slots[s]);
        const unsigned char *mask = read_input(pi, prefix, name, TEC_BOOL, &n, err);
        if (!mask)
            return err->status;
        in->camera_valid[s] = mask[0] != 0;
        if (!in->camera_valid[s])
            continue;
        snprintf(name, sizeof name, "image.%s", m->slots[s]);
        const uint8_t *picture = read_input(pi, prefix, name, TEC_U8, &n, err);
        if (!picture || n != want)
            return tec_fail(err, TEC_SHAPE, "inputs: '%s' must hold %zu bytes", name, want);
        in->slot_row[s] = in->o.n_pictures;
        in->o.picture[in->o.n_pictures] = as_read(pi, picture, n);
        if (!in->o.picture[in->o.n_pictures++])
            return tec_fail(err, TEC_NO_MEMORY, "inputs: no memory for '%s'", name);
    }
    return TEC_OK;
}

enum tec_status tec_pi_read(struct tec_pi *pi, const char *prefix, struct tec_pi_inputs *in,
                            struct tec_error *err)
{
    *in = (struct tec_pi_inputs){.o = {.n_pictures = 0}};
    size_t n_ids, n_mask, n;
    const int *ids = read_input(pi, prefix, "tokens", TEC_I32, &n_ids, err);
    const unsigned char *mask =
        ids ? read_input(pi, prefix, "token_mask", TEC_BOOL, &n_mask, err) : NULL;
    in->noise = mask ? read_input(pi, prefix, "noise", TEC_F32, &n, err) : NULL;
    in->state = in->noise ? read_input(pi, prefix, "state", TEC_F32, &n, err) : NULL;
    if (!in->state)
        return err->status;
    in->o.state = in->state; /* of a prompt that has a row of it */
    int *kept = TEC_NEW(pi->v->arena, n_mask, int);
    for (size_t i = 0; kept && i < n_mask && i < n_ids / sizeof(int); i++)
        if (mask[i])
            kept[in->o.n_text++] = ids[i];
    in->o.ids = kept;
    return read_pictures(pi, prefix, in, err);
}

static void compare(struct tec_pi *pi, const char *check, const float *got, size_t n, bool last,
                    const char *tap)
{
    struct tec_error err;
    const struct tec_stored *t = tec_tensors_find(pi->expected, check);
    const json_t *bounds = json_object_get(pi->tensors, check);
    size_t want = 1;
    for (int i = 0; t && i < t->rank; i++)
        want *= (size_t)t->shape[i];
    if (!t || !bounds || !n || (last ? want < n : want != n)) {
        tec_fail(&err, TEC_SHAPE, "expected holds %zu values, the engine made %zu%s", t ? want : 0,
                 n, bounds ? "" : "; no bounds in the case");
        tec_verify_cannot(pi->v, check, &err);
        return;
    }
    float *values = TEC_NEW(pi->v->arena, n, float);
    if (!values || tec_tensors_read_f32(pi->expected, t, want - n, values, n, &err) != TEC_OK) {
        tec_verify_cannot(pi->v, check, &err);
        return;
    }
    tec_verify_floats(pi->v, check, got, values, n, bounds, tap);
    tec_verify_part(pi->v, check, n, want, "the engine does not make the first ones");
}

void tec_pi_compare(struct tec_pi *pi, const char *check, const float *got, size_t n,
                    const char *tap)
{
    compare(pi, check, got, n, false, tap);
}

void tec_pi_compare_last(struct tec_pi *pi, const char *check, const float *got, size_t n,
                         const char *tap)
{
    compare(pi, check, got, n, true, tap);
}

int tec_pi_live(struct tec_pi *pi, const struct tec_tap *tap)
{
    int live = tap->rows;
    if (tap->live)
        tec_device_download(pi->device, TEC_STREAM_MAIN, &live, tap->live, sizeof live);
    return live;
}

float *tec_pi_tap(struct tec_pi *pi, const struct tec_plan_part *part, const char *name, int first,
                  int rows, size_t *n)
{
    for (int i = 0; i < part->taps.n; i++) {
        const struct tec_tap *t = &part->taps.items[i];
        if (strcmp(t->name, name) != 0)
            continue;
        int live = tec_pi_live(pi, t), take = rows >= 0 ? rows : live - first;
        float *out = TEC_NEW(pi->v->arena, (size_t)take * (size_t)t->cols, float);
        for (int r = 0; out && r < take; r++)
            tec_device_download(pi->device, TEC_STREAM_MAIN, out + (size_t)r * (size_t)t->cols,
                                t->data + (size_t)(first + r) * (size_t)t->ld,
                                (size_t)t->cols * sizeof(float));
        *n = (size_t)take * (size_t)t->cols;
        return out;
    }
    return NULL;
}

float *tec_pi_steps(struct tec_pi *pi, const struct tec_plan *plan, const char *tap,
                    const float *noise, size_t *n)
{
    const struct tec_flow *f = &pi->model->flow;
    int first = noise ? 1 : 0, end = plan->spec.actions[0].steps + first;
    size_t chunk = (size_t)f->horizon * (size_t)f->dim, one = 0;
    float *out = TEC_NEW(pi->v->arena, (size_t)end * chunk, float);
    if (out && noise)
        memcpy(out, noise, chunk * sizeof *out);
    for (int s = first; out && s < end; s++) {
        char name[TEC_TAP_BYTES + 16];
        snprintf(name, sizeof name, "%s%d", tap, s);
        const float *values = tec_pi_tap(pi, &plan->parts[0], name, 0, f->horizon, &one);
        if (!values || one != chunk)
            return NULL;
        memcpy(out + (size_t)s * chunk, values, chunk * sizeof *out);
    }
    *n = (size_t)end * chunk;
    return out;
}

void tec_pi_same(struct tec_pi *pi, const char *check, const void *a, const void *b, size_t bytes)
{
    const unsigned char *x = a, *y = b;
    size_t wrong = 0;
    for (size_t i = 0; i < bytes; i++)
        wrong += x[i] != y[i];
    tec_verify_report(pi->v, check, (double)wrong, 0.0, 0.0, wrong == 0, NULL,
                      wrong ? "bytes differ" : NULL);
}
