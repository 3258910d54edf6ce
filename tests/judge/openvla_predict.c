/* openvla_predict.c - judges cases of kind "predict": a picture and a prompt to the tokens of an
 * action, one after the other, and all that lies between. */
#include "tests/judge/openvla.h"
#include "tests/judge/openvla_prepost.h"
#include "tests/judge/stage_times.h"

#include <math.h>
#include <string.h>

enum { MAX_FRAMES = 16, MAX_TOKENS = 64 };

struct judge {
    struct tec_pi *pi;
    struct tec_plan *plan;
    int n_frames;
    struct tec_pi_inputs in[MAX_FRAMES];
    struct tec_pi_request requests[MAX_FRAMES];
    const json_t *frames[MAX_FRAMES];
};

static enum tec_status read_ids(const json_t *list, int *ids, int *n, const char *what,
                                struct tec_error *err)
{
    size_t size = json_array_size(list);
    if (size < 1 || size > MAX_TOKENS)
        return tec_fail(err, TEC_MALFORMED, "the case has %zu %s; must be 1 .. %d", size, what,
                        MAX_TOKENS);
    for (size_t i = 0; i < size; i++)
        ids[i] = (int)json_integer_value(json_array_get(list, i));
    *n = (int)size;
    return TEC_OK;
}

static enum tec_status read_frame(struct judge *j, int index, struct tec_error *err)
{
    struct tec_pi_inputs *in = &j->in[index];
    char name[32];
    const char *image = json_string_value(json_object_get(j->frames[index], "image"));
    if (!image)
        return tec_fail(err, TEC_MALFORMED, "frame %d of the case has no image", index);
    snprintf(name, sizeof name, "input_ids.%d", index);
    in->o.picture[0] = tec_openvla_picture(j->pi, image, err);
    if (!in->o.picture[0])
        return err->status;
    in->o.n_pictures = 1;
    in->o.ids = tec_openvla_prompt(j->pi, name, &in->o.n_text, err);
    return in->o.ids ? TEC_OK : err->status;
}

static enum tec_status collect(struct judge *j, struct tec_error *err)
{
    const json_t *frames = json_object_get(j->pi->v->json, "frames");
    size_t n = json_array_size(frames);
    if (n < 1 || n > MAX_FRAMES)
        return tec_fail(err, TEC_UNSUPPORTED, "the case has %zu frames; this judge takes 1 .. %d",
                        n, MAX_FRAMES);
    j->n_frames = (int)n;
    for (int i = 0; i < j->n_frames; i++) {
        int ids[MAX_TOKENS];
        struct tec_pi_request *r = &j->requests[i];
        j->frames[i] = json_array_get(frames, (size_t)i);
        *r = (struct tec_pi_request){.in = &j->in[i],
                                     .region = -1,
                                     .request_slot = i,
                                     .name = tec_arena_printf(j->pi->v->arena, "frame%d.", i)};
        TEC_TRY(
            read_ids(json_object_get(j->frames[i], "action_token_ids"), ids, &r->n, "tokens", err));
        TEC_TRY(read_frame(j, i, err));
        if (j->in[i].o.n_text > j->pi->max_text)
            j->pi->max_text = j->in[i].o.n_text;
    }
    return TEC_OK;
}

/* The first row of every tap of a decode part. */
static float **keep_taps(struct tec_pi *pi, const struct tec_plan_part *part)
{
    float **rows = TEC_NEW(pi->v->arena, (size_t)part->taps.n + 1, float *);
    for (int i = 0; rows && i < part->taps.n; i++) {
        const struct tec_tap *t = &part->taps.items[i];
        rows[i] = TEC_NEW(pi->v->arena, (size_t)t->cols, float);
        if (rows[i])
            tec_device_download(pi->device, TEC_STREAM_MAIN, rows[i], t->data,
                                (size_t)t->cols * sizeof(float));
    }
    return rows;
}

/* Each step is given the token that the case chose. */
static enum tec_status force(struct judge *j, int index, struct tec_openvla_run *run,
                             struct tec_error *err)
{
    const struct tec_pi_request *r = &j->requests[index];
    const struct tec_prefix_input *o = &r->in->o;
    struct tec_plan_part *part = tec_plan_part(j->plan, TEC_PART_DECODE, 1);
    int ids[MAX_TOKENS], n = 0, token, made;
    TEC_TRY(
        read_ids(json_object_get(j->frames[index], "action_token_ids"), ids, &n, "tokens", err));
    *run = (struct tec_openvla_run){.pi = j->pi,
                                    .plan = j->plan,
                                    .rows = tec_prefix_rows(j->plan, o),
                                    .steps = n,
                                    .row = TEC_NEW(j->pi->v->arena, (size_t)n, float **)};
    if (!run->row)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for %d steps", n);
    struct tec_row_state row, *rows[] = {&row};
    tec_row_start(&row, j->plan, r->region, run->rows, o->ids[o->n_text - 1], r->request_slot, n,
                  -1);
    for (int i = 0; i < n; i++) {
        struct tec_replay replay = {0};
        if (i > 0)
            row.token = ids[i - 1];
        tec_launch_decode(j->plan, part, rows, 1, 1, &token, &made, &replay);
        tec_verify_replayed(j->pi->v, j->plan, &replay);
        run->row[i] = keep_taps(j->pi, part);
        if (!run->row[i])
            return tec_fail(err, TEC_NO_MEMORY, "no memory for the taps of step %d", i);
    }
    return TEC_OK;
}

/* Every tensor that the case has of this frame. */
static void judge_tensors(struct judge *j, int index, struct tec_openvla_run *run)
{
    struct tec_pi *pi = j->pi;
    const char *prefix = j->requests[index].name;
    for (size_t i = 0; i < tec_tensors_count(pi->expected); i++) {
        const char *name = tec_tensors_at(pi->expected, i)->name;
        size_t n = 0, skip = strlen(prefix);
        if (strncmp(name, prefix, skip) != 0 || strcmp(name + skip, "action") == 0)
            continue;
        const float *got = tec_openvla_tensor(run, name + skip, &n);
        tec_pi_compare(pi, name, got, got ? n : 0, "unfused");
    }
}

/* The pixels of the first picture as a tower was given them; NULL: there is no such tap. */
static const float *read_pixels(struct judge *j, int tower)
{
    const struct tec_vision *v = &j->pi->model->vision;
    char name[32];
    size_t n;
    snprintf(name, sizeof name, v->n_towers > 1 ? "vision%d.pixels" : "vision.pixels", tower);
    return tec_pi_tap(j->pi, tec_plan_part(j->plan, TEC_PART_FRAME, 0), name, 0, v->tokens, &n);
}

/* How many of the values of `want`, [3, height, width] of the upper right of one tower's picture,
 * are others than the tower was given, which has them patch by patch. */
static size_t pixels_differ(struct judge *j, int tower, const float *want, size_t height,
                            size_t width)
{
    const struct tec_vision *v = &j->pi->model->vision;
    size_t patch = (size_t)v->patch, across = (size_t)v->image_size / patch, wrong = 0;
    size_t left = (size_t)v->image_size - width;
    const float *got = read_pixels(j, tower);
    for (size_t i = 0; got && i < 3 * height * width; i++) {
        size_t c = i / (height * width), y = i / width % height, x = left + i % width;
        size_t row = y / patch * across + x / patch;
        wrong += got[(row * 3 + c) * patch * patch + y % patch * patch + x % patch] != want[i];
    }
    return got ? wrong : 1;
}

/* The first picture as the towers read it, whole or its upper right corner, without an error:
 * [towers * 3, height, width]. */
static void judge_pixels(struct judge *j, const char *check)
{
    const struct tec_vision *v = &j->pi->model->vision;
    const struct tec_stored *t = tec_tensors_find(j->pi->expected, check);
    struct tec_error err;
    size_t wrong = 0;
    if (!t)
        return;
    size_t n = (size_t)tec_stored_count(t);
    float *want = TEC_NEW(j->pi->v->arena, n + 1, float);
    if (t->rank != 3 || t->shape[0] != 3 * v->n_towers || t->shape[1] > v->image_size ||
        t->shape[2] > v->image_size || !want ||
        tec_tensors_read_f32(j->pi->expected, t, 0, want, n, &err) != TEC_OK) {
        tec_fail(&err, TEC_SHAPE, "must be [%d, height, width] of a picture of %d", 3 * v->n_towers,
                 v->image_size);
        tec_verify_cannot(j->pi->v, check, &err);
        return;
    }
    for (int tower = 0; tower < v->n_towers; tower++)
        wrong += pixels_differ(j, tower, want + n / (size_t)v->n_towers * (size_t)tower,
                               (size_t)t->shape[1], (size_t)t->shape[2]);
    tec_verify_compared(j->pi->v, check);
    tec_verify_report(j->pi->v, check, (double)wrong, 0.0, 0.0, wrong == 0, NULL,
                      wrong ? "values differ" : NULL);
}

/* The tokens that this dtype's plan must choose: all, and in bf16 those up to the first where the
 * model's own bf16 run chose another. */
static int tokens_that_count(const struct judge *j, int index)
{
    const json_t *ids = json_object_get(j->frames[index], "action_token_ids");
    const json_t *bf16 = json_object_get(j->frames[index], "action_token_ids_bf16");
    int n = j->requests[index].n, same = 0;
    if (strcmp(j->pi->v->dtype, "bf16") != 0 || !bf16)
        return n;
    while (same < n &&
           json_equal(json_array_get(ids, (size_t)same), json_array_get(bf16, (size_t)same)))
        same++;
    return same;
}

static void judge_tokens(struct judge *j, int index)
{
    struct tec_pi *pi = j->pi;
    struct tec_pi_request *r = &j->requests[index];
    int want[MAX_TOKENS], at_once[MAX_TOKENS], single[MAX_TOKENS], beside[MAX_TOKENS], n = 0;
    struct tec_error err;
    if (read_ids(json_object_get(j->frames[index], "action_token_ids"), want, &n, "tokens", &err) !=
        TEC_OK)
        return;
    tec_pi_free(pi, r, NULL, n, at_once);
    tec_pi_free(pi, r, NULL, 1, single);
    size_t count = (size_t)tokens_that_count(j, index), bytes = (size_t)n * sizeof(int);
    tec_verify_ids(pi->v, tec_arena_printf(pi->v->arena, "%saction_token_ids", r->name), at_once,
                   count, want, count);
    tec_pi_same(pi, tec_arena_printf(pi->v->arena, "%stokens.k1_equals_once", r->name), single,
                at_once, bytes);
    if (j->n_frames == 1)
        return;
    tec_pi_free(pi, r, &j->requests[(index + 1) % j->n_frames], n, beside);
    tec_pi_same(pi, tec_arena_printf(pi->v->arena, "%stokens.batched_equals_alone", r->name),
                beside, at_once, bytes);
}

static enum tec_status judge_case(struct judge *j, struct tec_error *err)
{
    TEC_TRY(tec_pi_open_tensors(j->pi, err));
    TEC_TRY(collect(j, err));
    int request_slots = j->n_frames > 2 ? j->n_frames : 2;
    TEC_TRY(tec_pi_plan(j->pi, &j->plan, 0, request_slots, MAX_TOKENS, true, err));
    for (int i = 0; i < j->n_frames; i++) {
        struct tec_openvla_run run;
        j->requests[i].plan = j->plan;
        TEC_TRY(tec_pi_prefill(j->pi, &j->requests[i], 0, 0, err));
        TEC_TRY(force(j, i, &run, err));
        if (i == 0) {
            judge_pixels(j, "pixel_values");
            judge_pixels(j, "pixel_values_corner");
        }
        judge_tensors(j, i, &run);
    }
    for (int i = 0; i < j->n_frames; i++)
        judge_tokens(j, i);
    return TEC_OK;
}

enum tec_status tec_verify_openvla_predict(struct tec_verify *v, struct tec_error *err)
{
    struct tec_pi pi;
    struct judge j = {.pi = &pi};
    enum tec_status status = tec_pi_open(&pi, v, "checkpoint", NULL, err);
    if (status == TEC_OK)
        status = judge_case(&j, err);
    if (status == TEC_OK)
        tec_verify_openvla_prepost(v, pi.checkpoint, pi.inputs, pi.expected);
    tec_plan_destroy(j.plan);
    tec_pi_finish(&pi);
    return status;
}
