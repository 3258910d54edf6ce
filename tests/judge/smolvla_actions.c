/* smolvla_actions.c - judges cases of kind "actions" and "rtc": every tap of one raw observation on
 * its way to actions in the robot's units. */
#include "graph/model/program.h"
#include "graph/transform/guide.h"
#include "tests/judge/smolvla.h"
#include "tests/judge/taps.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

struct judge {
    struct tec_smolvla *s;
    struct tec_plan *plan;
    const struct tec_plan_part *part;
    int rows;               /* of the prefix */
    int padded, *pos;       /* rows of the padded prefix; which of the rows each is, -1 = none */
    const int *prefix_seen; /* of the rows in order: how many keys each sees */
    float *chunk;           /* [horizon, dim] */
    struct tec_action_inputs guide; /* of a case of kind rtc, else zeros */
};

static const struct tec_tap_name names[] = {
#define TAP(theirs, ours, form) {theirs, ours, NULL, TEC_TAP_##form},
#include "tests/judge/taps/smolvla.def"
#undef TAP
};

static const float *read_tap(struct judge *j, const char *name, int first, int rows, size_t *n)
{
    return tec_pi_tap(&j->s->pi, j->part, name, first, rows, n);
}

static int *ints(struct judge *j, size_t n)
{
    return TEC_NEW(j->s->pi.v->arena, n + 1, int);
}

/* --- images ----------------------------------------------------------------------------------- */

/* A picture's rows among those of all; the connector makes fewer of them. */
static const float *read_image(struct judge *j, const struct tec_tap_found *found, size_t *n)
{
    const struct tec_vision *v = &j->s->pi.model->vision;
    int rows = strcmp(found->ours, "vision.connector") == 0 ? v->tokens : v->patches;
    return found->number[0] < j->s->n_images
               ? read_tap(j, found->ours, found->number[0] * rows, rows, n)
               : NULL;
}

/* [3, height, width] of what the tower is given. */
static const float *read_pixels(struct judge *j, int image, size_t *n)
{
    const struct tec_tower *t = &j->s->pi.model->vision.towers[0];
    size_t side = (size_t)j->s->pi.model->vision.image_size, area = side * side;
    float *out = TEC_NEW(j->s->pi.v->arena, 3 * area + 1, float);
    if (image >= j->s->n_images || !out)
        return NULL;
    const float *from = j->s->seen.pictures_f32[j->s->slot[image]];
    for (size_t i = 0; i < area; i++)
        for (size_t c = 0; c < 3; c++)
            out[c * area + i] = (from[3 * i + c] - t->mean[c]) / t->std[c];
    *n = 3 * area;
    return out;
}

/* --- rows of the prefix ------------------------------------------------------------------------
 */

static const float *read_sequence(struct judge *j, const char *name, size_t *n)
{
    const float *rows = read_tap(j, name, 0, -1, n);
    size_t cols = rows ? *n / (size_t)j->rows : 0;
    float *out = TEC_NEW(j->s->pi.v->arena, *n + 1, float);
    for (int r = 0; rows && out && r < j->rows; r++)
        memcpy(out + (size_t)j->part->prefix.prefix.pos[r] * cols, rows + (size_t)r * cols,
               cols * sizeof *out);
    return rows ? out : NULL;
}

/* Lays out the prefix as LeRobot pads it, from what the case says of its images and tokens. */
static bool lay_out(struct judge *j)
{
    const struct tec_smolvla *s = j->s;
    const struct tec_vision *v = &s->pi.model->vision;
    const json_t *mask = json_object_get(s->pi.v->json, "token_mask");
    int all = (int)json_integer_value(json_object_get(s->pi.v->json, "prefix_length"));
    int at = 0, next = 0, around = v->n_before + v->n_behind;
    j->padded = all;
    j->pos = ints(j, (size_t)all);
    if (!j->pos || all < s->n_images * (v->tokens + around) + (int)json_array_size(mask) + 1)
        return false;
    for (int i = 0; i < all; i++)
        j->pos[i] = -1;
    for (int i = 0; i < s->n_images; i++)
        for (int r = 0; r < v->tokens + around; r++) {
            bool image = r >= v->n_before && r < v->n_before + v->tokens;
            j->pos[at++] = !image || s->valid[i] ? next++ : -1;
        }
    for (size_t i = 0; i < json_array_size(mask); i++)
        j->pos[at++] = json_integer_value(json_array_get(mask, i)) ? next++ : -1;
    j->pos[at] = next++;
    return next == j->rows;
}

static bool order_seen(struct judge *j)
{
    const struct tec_rows *rows = &j->part->prefix.prefix;
    int *seen = ints(j, (size_t)j->rows);
    for (int r = 0; seen && r < j->rows; r++)
        seen[rows->pos[r]] = rows->visible[r];
    j->prefix_seen = seen;
    return seen != NULL;
}

static const int *read_valid(struct judge *j, size_t *n)
{
    int *out = ints(j, (size_t)j->padded);
    for (int i = 0; out && i < j->padded; i++)
        out[i] = j->pos[i] >= 0;
    *n = (size_t)j->padded;
    return out;
}

/* A padded row has the position of the last one that is not. */
static const int *read_positions(struct judge *j, size_t *n)
{
    int *out = ints(j, (size_t)j->padded), last = -1;
    for (int i = 0; out && i < j->padded; i++)
        out[i] = last = j->pos[i] >= 0 ? j->pos[i] : last;
    *n = (size_t)j->padded;
    return out;
}

static const int *read_blocks(struct judge *j, size_t *n)
{
    int *out = ints(j, (size_t)j->padded);
    for (int i = 0; out && i < j->padded; i++)
        out[i] = j->pos[i] > 0 && j->prefix_seen[j->pos[i] - 1] <= j->pos[i];
    *n = (size_t)j->padded;
    return out;
}

static const int *read_mask(struct judge *j, size_t *n)
{
    int *out = ints(j, (size_t)j->padded * (size_t)j->padded);
    for (int i = 0; out && i < j->padded; i++)
        for (int k = 0; k < j->padded; k++)
            out[(size_t)i * (size_t)j->padded + (size_t)k] =
                j->pos[i] >= 0 && j->pos[k] >= 0 && j->pos[k] < j->prefix_seen[j->pos[i]];
    *n = (size_t)j->padded * (size_t)j->padded;
    return out;
}

/* --- rows of actions ---------------------------------------------------------------------------
 */

static const int *read_suffix_blocks(struct judge *j, size_t *n)
{
    const struct tec_rows *rows = &j->part->prefix.suffix;
    int *out = ints(j, (size_t)rows->max);
    for (int r = 0; out && r < rows->max; r++)
        out[r] = r == 0 || rows->visible[r - 1] <= j->rows + r;
    *n = (size_t)rows->max;
    return out;
}

static const int *read_suffix_mask(struct judge *j, size_t *n)
{
    const struct tec_rows *rows = &j->part->prefix.suffix;
    int cols = j->padded + rows->max;
    int *out = ints(j, (size_t)rows->max * (size_t)cols);
    for (int r = 0; out && r < rows->max; r++)
        for (int k = 0; k < cols; k++) {
            int key = k < j->padded ? j->pos[k] : j->rows + k - j->padded;
            out[r * cols + k] = key >= 0 && key < rows->visible[r];
        }
    *n = (size_t)rows->max * (size_t)cols;
    return out;
}

/* The layer of the expert that reads a layer of the text; -1 = there is none. */
static int expert_layer(const struct tec_model_program *p, int layer)
{
    int at = 0;
    for (int i = p->parts[TEC_PART_OF_ACTION]; i < p->n; i++) {
        if (p->calls[i].word != TEC_WORD_attention)
            continue;
        if (p->calls[i].place == layer)
            return at;
        at++;
    }
    return -1;
}

/* Taps count the layers of the expert, the case those of the text. */
static const float *read_expert(struct judge *j, const struct tec_tap_found *found, size_t *n)
{
    char name[2 * TEC_TAP_BYTES];
    bool crossed = found->form == TEC_TAP_CROSSED;
    int layer = expert_layer(j->s->pi.model->program, found->number[crossed ? 0 : 1]);
    if (layer < 0)
        return NULL;
    if (crossed)
        snprintf(name, sizeof name, "suffix.layer%d.%s", layer, found->ours);
    else
        snprintf(name, sizeof name, "suffix.step%d.layer%d.%s", found->number[0], layer,
                 found->ours);
    return read_tap(j, name, 0, -1, n);
}

static const float *read_time(struct judge *j, int step, size_t *n)
{
    const struct tec_timed *t = j->plan->timed[0];
    int i = 0;
    while (i < t->program->n && t->program->calls[i].word != TEC_WORD_waves)
        i++;
    *n = i < t->program->n ? (size_t)t->program->calls[i].cols : 0;
    float *out = TEC_NEW(j->s->pi.v->arena, *n + 1, float);
    if (!*n || step >= t->steps || !out)
        return NULL;
    tec_device_download(t->device, TEC_STREAM_MAIN, out, tec_timed_row(t, i, step),
                        *n * sizeof *out);
    return out;
}

/* The state as normalised: what comes behind that is undone by computing it again. */
static const float *read_state(struct judge *j, bool padded, size_t *n)
{
    const struct tec_smolvla *s = j->s;
    size_t all = (size_t)s->robot->n_state;
    *n = padded ? (size_t)tec_model_state(s->pi.model) : all;
    if (padded)
        return s->seen.state;
    double *x = TEC_NEW(s->pi.v->arena, all + 1, double);
    float *out = TEC_NEW(s->pi.v->arena, all + 1, float);
    if (!x || !out)
        return NULL;
    tec_norm_apply(&s->state_norm, s->seen.state_raw, all, x);
    for (size_t i = 0; i < all; i++)
        out[i] = (float)x[i];
    return out;
}

/* --- comparing ---------------------------------------------------------------------------------
 */

static const float *find_floats(struct judge *j, const struct tec_tap_found *found, size_t *n)
{
    int h = j->s->pi.model->flow.horizon;
    switch (found->form) {
    case TEC_TAP_IMAGE:
        return read_image(j, found, n);
    case TEC_TAP_PIXELS:
        return read_pixels(j, found->number[0], n);
    case TEC_TAP_SEQUENCE:
        return read_sequence(j, found->ours, n);
    case TEC_TAP_CROSSED:
    case TEC_TAP_EXPERT:
        return read_expert(j, found, n);
    case TEC_TAP_TIME:
        return read_time(j, found->number[0], n);
    case TEC_TAP_STEPS:
    case TEC_TAP_STEPS_FROM_NOISE:
        return tec_pi_steps(&j->s->pi, j->plan, found->ours,
                            found->form == TEC_TAP_STEPS_FROM_NOISE ? j->s->noise : NULL, n);
    case TEC_TAP_STATE_NORMALISED:
    case TEC_TAP_STATE_PADDED:
        return read_state(j, found->form == TEC_TAP_STATE_PADDED, n);
    case TEC_TAP_ROWS:
        return read_tap(j, found->ours, 0, -1, n);
    case TEC_TAP_CHUNK:
        *n = (size_t)h * (size_t)j->s->robot->n_model_actions;
        return tec_smolvla_actions(j->s, j->chunk, h);
    case TEC_TAP_ROBOT_ACTIONS:
        *n = (size_t)h * (size_t)j->s->robot->n_actions;
        return tec_smolvla_robot_actions(j->s, j->chunk, h);
    default:
        return NULL;
    }
}

/* The prompt's tokens, or which there are; those behind them only pad and are the case's. */
static const int *read_tokens(struct judge *j, const int *want, size_t n_want, bool mask, size_t *n)
{
    const struct tec_prefix_input *o = &j->s->prefix;
    int *out = ints(j, n_want + (size_t)o->n_text);
    *n = (size_t)o->n_text > n_want ? (size_t)o->n_text : n_want;
    for (size_t i = 0; out && i < *n; i++) {
        bool there = i < (size_t)o->n_text;
        out[i] = mask ? there : there ? o->ids[i] : want[i];
    }
    return out;
}

static const int *read_patch_positions(struct judge *j, size_t *n)
{
    const struct tec_vision *v = &j->s->pi.model->vision;
    int *out = ints(j, (size_t)v->patches);
    const struct tec_model_call *grid = v->towers[0].program->calls;
    while (grid->word != TEC_WORD_grid)
        grid++;
    for (int i = 0; out && i < v->patches; i++)
        out[i] = tec_model_grid_row(grid->side, v->patches, i);
    *n = (size_t)v->patches;
    return out;
}

static const int *find_ints(struct judge *j, const struct tec_tap_found *found, const int *want,
                            size_t n_want, size_t *n)
{
    switch (found->form) {
    case TEC_TAP_TOKENS:
    case TEC_TAP_TOKEN_MASK:
        return read_tokens(j, want, n_want, found->form == TEC_TAP_TOKEN_MASK, n);
    case TEC_TAP_PATCH_POSITIONS:
        return read_patch_positions(j, n);
    case TEC_TAP_VALID:
        return read_valid(j, n);
    case TEC_TAP_POSITIONS:
        return read_positions(j, n);
    case TEC_TAP_PREFIX_BLOCKS:
        return read_blocks(j, n);
    case TEC_TAP_PREFIX_MASK:
        return read_mask(j, n);
    case TEC_TAP_SUFFIX_BLOCKS:
        return read_suffix_blocks(j, n);
    case TEC_TAP_SUFFIX_MASK:
        return read_suffix_mask(j, n);
    case TEC_TAP_SUFFIX_POSITIONS:
        *n = (size_t)j->part->prefix.suffix.max;
        return j->part->prefix.suffix.pos;
    default:
        return NULL;
    }
}

static void judge_ints(struct judge *j, const struct tec_stored *t, const struct tec_tap_found *f)
{
    struct tec_pi *pi = &j->s->pi;
    size_t n_want = t->bytes / sizeof(int), n = 0;
    int *want = ints(j, n_want);
    const int *got = NULL;
    if (want && tec_tensors_read(pi->expected, t, 0, want, t->bytes, NULL) == TEC_OK)
        got = find_ints(j, f, want, n_want, &n);
    tec_verify_ids(pi->v, t->name, got, got ? n : 0, want, n_want);
    tec_verify_part(pi->v, t->name,
                    f->form == TEC_TAP_TOKENS ? (size_t)j->s->prefix.n_text : n_want, n_want,
                    "the others only pad, and the engine does not make them");
}

/* Every expected tensor of an image, or every other one. */
static void judge_all(struct judge *j, bool images)
{
    struct tec_pi *pi = &j->s->pi;
    for (size_t i = 0; i < tec_tensors_count(pi->expected); i++) {
        const struct tec_stored *t = tec_tensors_at(pi->expected, i);
        struct tec_tap_found found;
        size_t n = 0;
        bool known = tec_tap_find(names, sizeof names / sizeof names[0], t->name, &found);
        if ((strncmp(t->name, "image", 5) == 0) != images)
            continue;
        if (known && t->dtype == TEC_I32) {
            judge_ints(j, t, &found);
            continue;
        }
        const float *got = known ? find_floats(j, &found, &n) : NULL;
        tec_pi_compare(pi, t->name, got, got ? n : 0, "unfused");
    }
}

static enum tec_status make_plan(struct judge *j, bool taps, struct tec_plan **plan,
                                 struct tec_error *err)
{
    return tec_pi_plan(&j->s->pi, plan, j->s->pi.model->flow.steps, 0, 0, taps, err);
}

/* The plan without taps and with the last layer's shortcut gives the same chunk. */
static enum tec_status judge_fused(struct judge *j, struct tec_error *err)
{
    const struct tec_flow *f = &j->s->pi.model->flow;
    struct tec_plan *plan = NULL;
    size_t n = (size_t)f->horizon * (size_t)f->dim;
    float *chunk = TEC_NEW(j->s->pi.v->arena, n, float);
    TEC_TRY(make_plan(j, false, &plan, err));
    if (chunk) {
        tec_smolvla_run(j->s, plan, &j->s->prefix, &j->guide, chunk);
        tec_pi_same(&j->s->pi, "actions.fused_equals_unfused", chunk, j->chunk, n * sizeof *chunk);
    }
    tec_plan_destroy(plan);
    return TEC_OK;
}

/* A schedule by LeRobot's word. */
static enum tec_status schedule_of(enum tec_guide_schedule *out, const char *word,
                                   struct tec_error *err)
{
    static const char *const words[] = {
#define GUIDE(name, text, what) text,
#include "graph/transform/guides.def"
#undef GUIDE
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcasecmp(word, words[i]) == 0) {
            *out = (enum tec_guide_schedule)i;
            return TEC_OK;
        }
    return tec_fail(err, TEC_INVALID, "rtc: '%.40s' is no schedule", word);
}

/* The chunk that a case of kind rtc is guided by, padded as its rows are shorter; its weights. */
static enum tec_status read_guide(struct judge *j, struct tec_error *err)
{
    struct tec_smolvla *s = j->s;
    const json_t *rtc = json_object_get(s->pi.v->json, "rtc");
    const json_t *want = json_object_get(rtc, "weights"), *word;
    const struct tec_flow *f = &s->pi.model->flow;
    size_t n = 0, cols = (size_t)s->robot->n_model_actions, rows = (size_t)f->horizon;
    if (!rtc || !json_is_true(json_object_get(rtc, "enabled")))
        return TEC_OK;
    const float *left = tec_smolvla_floats(s, "", "prev_chunk_left_over", &n);
    float *previous = TEC_NEW(s->pi.v->arena, (n / cols + 1) * (size_t)f->dim, float);
    float *pulls = TEC_NEW(s->pi.v->arena, rows, float);
    enum tec_guide_schedule schedule = TEC_GUIDE_zeros;
    word = json_object_get(rtc, "prefix_attention_schedule");
    if (!left || !previous || !pulls || !json_is_string(word))
        return tec_fail(err, TEC_NOT_FOUND, "the case has no prev_chunk_left_over, or no schedule");
    TEC_TRY(schedule_of(&schedule, json_string_value(word), err));
    for (size_t i = 0; i < n; i++)
        previous[i / cols * (size_t)f->dim + i % cols] = left[i];
    const json_t *horizon = json_object_get(rtc, "execution_horizon_argument");
    if (!json_is_integer(horizon))
        horizon = json_object_get(rtc, "execution_horizon");
    int delay = (int)json_integer_value(json_object_get(rtc, "inference_delay"));
    tec_guide_pulls(schedule, delay, (int)json_integer_value(horizon), (int)(n / cols), (int)rows,
                    pulls);
    double worst = json_array_size(want) == rows ? 0.0 : 1.0;
    for (size_t i = 0; i < rows; i++)
        worst = fmax(worst, fabs((double)pulls[i] - json_number_value(json_array_get(want, i))));
    tec_verify_report(s->pi.v, "rtc.weights", worst, 0.0, 1e-6, worst <= 1e-6, NULL, NULL);
    s->pi.guidance = (float)json_number_value(json_object_get(rtc, "max_guidance_weight"));
    j->guide = (struct tec_action_inputs){
        .previous = previous, .pulls = pulls, .n_previous = (int)(n / cols)};
    return TEC_OK;
}

/* Pictures are judged in a run that sees all of them: the engine leaves masked ones out. */
static enum tec_status judge_case(struct judge *j, struct tec_error *err)
{
    struct tec_smolvla *s = j->s;
    const struct tec_flow *f = &s->pi.model->flow;
    const char *task = json_string_value(json_object_get(s->pi.v->json, "task"));
    TEC_TRY(tec_smolvla_read(s, "", task, err));
    TEC_TRY(read_guide(j, err));
    TEC_TRY(make_plan(j, true, &j->plan, err));
    TEC_TRY(tec_prefix_check(j->plan, &s->prefix, err));
    TEC_TRY(tec_prefix_check(j->plan, &s->all, err));
    j->part = &j->plan->parts[0];
    j->chunk = TEC_NEW(s->pi.v->arena, (size_t)f->horizon * (size_t)f->dim, float);
    if (!j->chunk)
        return tec_fail(err, TEC_NO_MEMORY, "no memory to judge with");
    tec_smolvla_run(s, j->plan, &s->all, &j->guide, NULL);
    judge_all(j, true);
    tec_smolvla_run(s, j->plan, &s->prefix, &j->guide, j->chunk);
    j->rows = tec_prefix_rows(j->plan, &s->prefix);
    if (!order_seen(j) || !lay_out(j))
        return tec_fail(err, TEC_INVALID, "%d rows are not those of the case's images and tokens",
                        j->rows);
    judge_all(j, false);
    return judge_fused(j, err);
}

enum tec_status tec_verify_smolvla_actions(struct tec_verify *v, struct tec_error *err)
{
    struct tec_smolvla s;
    struct judge j = {.s = &s};
    enum tec_status status = tec_smolvla_open(&s, v, err);
    if (status == TEC_OK)
        tec_pi_keep_times(s.pi.model);
    if (status == TEC_OK)
        status = judge_case(&j, err);
    tec_plan_destroy(j.plan);
    tec_smolvla_finish(&s);
    return status;
}
