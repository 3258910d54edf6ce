/* observer.c - turns the named values of an observation into pictures, state, bins and text for the
 * model.
 *
 * Runs on the session's thread, before the frame loop sees the observation. Every value is checked
 * before it is used, and a message names the key, what came and what is needed. State is processed
 * in float64 in the order of the published code and rounded to float32 once, at the end. The way
 * back from actions is in observer_act.c. */
#include "graph/transform/observer_parts.h"

#include "base/nearest.h"
#include "graph/transform/prompt.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void tec_observer_destroy(struct tec_observer *o)
{
    if (!o)
        return;
    for (int i = 0; o->pictures && i < o->robot->n_cameras; i++)
        tec_arena_finish(&o->pictures[i].arena);
    tec_arena_finish(&o->arena);
    tec_heap_put(o->heap, o);
}

static int larger(int a, int b)
{
    return a > b ? a : b;
}

static enum tec_status find_slot(struct tec_observer *o, int camera, struct tec_error *err)
{
    const struct tec_observer_needs *needs = &o->needs;
    const char *slot = o->robot->cameras[camera].slot;
    o->slot[camera] = camera;
    if (!needs->slots)
        return TEC_OK;
    for (int i = 0; i < needs->n_slots; i++)
        if (strcmp(needs->slots[i], slot) == 0) {
            o->slot[camera] = i;
            return TEC_OK;
        }
    const char *near = tec_nearest(slot, needs->slots, needs->n_slots);
    return tec_fail(err, TEC_MALFORMED, "%s: the model has no camera slot '%s'%s", o->robot->called,
                    slot, tec_meant(';', near).text);
}

static struct tec_observer_size size_of(const struct tec_observer *o, int slot)
{
    const struct tec_observer_needs *n = &o->needs;
    return n->sizes ? n->sizes[slot] : (struct tec_observer_size){n->image_h, n->image_w};
}

int tec_observer_slot(const struct tec_observer *o, const char *input, const char *slot)
{
    for (int i = 0; i < o->robot->n_cameras; i++) {
        const struct tec_robot_camera *camera = &o->robot->cameras[i];
        if (camera->input &&
            (strcmp(camera->input, input) == 0 || (slot && strcmp(camera->slot, slot) == 0)))
            return o->slot[i];
    }
    return -1;
}

static enum tec_status check_needs(const struct tec_robot *robot,
                                   const struct tec_observer_needs *needs, struct tec_error *err)
{
    if (needs->image_h < 1 || needs->image_w < 1 || needs->state_width < 0 || needs->text_max < 0)
        return tec_fail(err, TEC_INVALID, "observer: sizes must not be negative");
    if (robot->picture_h &&
        (robot->picture_h != needs->image_h || robot->picture_w != needs->image_w))
        return tec_fail(err, TEC_MALFORMED,
                        "%s: the checkpoint's pictures are %d x %d, the model takes %d x %d",
                        robot->called, robot->picture_w, robot->picture_h, needs->image_w,
                        needs->image_h);
    if (!needs->slots && needs->n_slots != robot->n_cameras)
        return tec_fail(err, TEC_MALFORMED, "%s has %d cameras, the model %d slots", robot->called,
                        robot->n_cameras, needs->n_slots);
    if (robot->n_state > needs->state_width)
        return tec_fail(err, TEC_MALFORMED, "%s has a state of %d entries, the model takes %d",
                        robot->called, robot->n_state, needs->state_width);
    if (robot->state_pad_to > needs->state_width)
        return tec_fail(err, TEC_MALFORMED, "%s: state_pad_to = %d, the model's state has %d",
                        robot->called, robot->state_pad_to, needs->state_width);
    if (robot->n_model_actions > needs->action_width)
        return tec_fail(err, TEC_MALFORMED, "%s uses %d columns of the actions, the model makes %d",
                        robot->called, robot->n_model_actions, needs->action_width);
    if (robot->n_state > 0)
        TEC_TRY(tec_robot_check_norm(robot, &needs->state_norm, "state", err));
    int flat = tec_norm_flat(&needs->state_norm, (size_t)robot->n_state);
    if (flat >= 0)
        return tec_fail(err, TEC_MALFORMED,
                        "%s: the statistics of the state have no width at entry %d, which "
                        "cannot be normalised; mask it there, or give norm.eps",
                        robot->called, flat);
    return tec_robot_check_norm(robot, &needs->action_norm, "actions", err);
}

static void init_picture(const struct tec_observer *o, int camera, struct tec_observer_size size,
                         struct tec_picture *p)
{
    const struct tec_robot *robot = o->robot;
    *p = (struct tec_picture){
        .camera = &robot->cameras[camera],
        .out_h = size.h,
        .out_w = size.w,
        .as_float = tec_robot_floats(robot),
        .fit = robot->resize == TEC_RESIZE_LEROBOT_CORNER ? TEC_FIT_CORNER : TEC_FIT_CENTRED,
        .resizes = robot->resize != TEC_RESIZE_NONE,
        .reshapes = robot->resize >= TEC_RESIZE_RESHAPE,
        .reshape = {.kind = robot->reshape, .edge = robot->edge, .middle = robot->middle}};
    memcpy(p->reshape.fill, robot->fill, sizeof p->reshape.fill);
    tec_arena_init(&p->arena, o->heap);
}

void tec_observer_picture(const struct tec_observer *o, int slot, struct tec_observer_size size,
                          struct tec_picture *picture)
{
    int camera = 0;
    while (camera < o->robot->n_cameras - 1 &&
           (o->slot[camera] != slot || !o->robot->cameras[camera].input))
        camera++;
    init_picture(o, camera, size, picture);
}

static enum tec_status fill(struct tec_observer *o, struct tec_error *err)
{
    const struct tec_robot *robot = o->robot;
    size_t n = (size_t)robot->n_cameras;
    size_t width =
        (size_t)larger(tec_transforms_width(&robot->state), tec_transforms_width(&robot->actions));
    width = (size_t)larger((int)width, tec_transforms_width(&robot->decode));
    width = (size_t)larger((int)width, tec_transforms_width(&robot->normalised));
    size_t bins = (size_t)larger(robot->n_state, robot->state_pad_to);
    o->x = TEC_NEW(&o->arena, width + 1, double);
    o->scratch = TEC_NEW(&o->arena, width + 1, double);
    o->act_x = TEC_NEW(&o->arena, width + 1, double);
    o->act_scratch = TEC_NEW(&o->arena, width + 1, double);
    o->binned = TEC_NEW(&o->arena, bins + 1, double);
    o->slot = TEC_NEW(&o->arena, n + 1, int);
    struct tec_picture *pictures = TEC_NEW(&o->arena, n + 1, struct tec_picture);
    if (!o->x || !o->scratch || !o->act_x || !o->act_scratch || !o->binned || !o->slot || !pictures)
        return tec_fail(err, TEC_NO_MEMORY, "%s: no memory for a session", robot->called);
    for (int i = 0; i < robot->n_cameras; i++)
        TEC_TRY(find_slot(o, i, err));
    for (size_t i = 0; i < n; i++)
        init_picture(o, (int)i, size_of(o, o->slot[i]), &pictures[i]);
    o->pictures = pictures;
    bool declared = robot->limits.min || robot->limits.max;
    if (!declared && !robot->unlimited)
        TEC_TRY(tec_limits_trained(&o->trained, &o->needs.action_norm, robot->n_model_actions,
                                   robot->limits.on, &o->arena, err));
    return tec_observer_fill_decode(o, err);
}

/* Slots' sizes are the caller's until create has returned. */
static enum tec_status keep_sizes(struct tec_observer *o, struct tec_error *err)
{
    size_t n = (size_t)o->needs.n_slots;
    if (!o->needs.sizes)
        return TEC_OK;
    struct tec_observer_size *sizes = TEC_NEW(&o->arena, n + 1, struct tec_observer_size);
    if (!sizes)
        return tec_fail(err, TEC_NO_MEMORY, "%s: no memory for a session", o->robot->called);
    memcpy(sizes, o->needs.sizes, n * sizeof *sizes);
    o->needs.sizes = sizes;
    return TEC_OK;
}

enum tec_status tec_observer_create(struct tec_observer **out, const struct tec_robot *robot,
                                    const struct tec_observer_needs *needs, struct tec_heap *heap,
                                    struct tec_error *err)
{
    TEC_TRY(check_needs(robot, needs, err));
    struct tec_observer *o = tec_heap_get(heap, sizeof *o);
    if (!o)
        return tec_fail(err, TEC_NO_MEMORY, "%s: no memory for a session", robot->called);
    o->heap = heap;
    o->robot = robot;
    o->needs = *needs;
    tec_arena_init(&o->arena, heap);
    enum tec_status status = keep_sizes(o, err);
    if (status == TEC_OK)
        status = fill(o, err);
    if (status != TEC_OK) {
        tec_observer_destroy(o);
        return status;
    }
    *out = o;
    return TEC_OK;
}

static const struct tec_value *find_value(const struct tec_value *values, size_t n,
                                          const char *name)
{
    for (size_t i = 0; name && i < n; i++)
        if (strcmp(values[i].name, name) == 0)
            return &values[i];
    return NULL;
}

/* Fail because a value that the robot must send is missing; name the given key most like it. */
static enum tec_status fail_absent(const struct tec_robot *robot, const char *what, const char *key,
                                   const struct tec_value *values, size_t n, struct tec_error *err)
{
    const char *names[64];
    size_t known = n < 64 ? n : 64;
    for (size_t i = 0; i < known; i++)
        names[i] = values[i].name;
    const char *near = tec_nearest(key, names, (int)known);
    return tec_fail(err, TEC_NOT_FOUND, "%s: %s needs this %s in every request%s%.80s%s", key,
                    robot->called, what, near ? "; there is '" : "", near ? near : "",
                    near ? "'" : "");
}

/* Fail because no camera at all came, though each of them may be missing: it would drive blind. */
static enum tec_status fail_blind(const struct tec_robot *robot, const struct tec_value *values,
                                  size_t n, struct tec_error *err)
{
    const char *names[TEC_ROBOT_MAX_CAMERAS], *near = NULL, *key = "";
    char all[400] = "";
    int cameras = 0;
    for (int i = 0; i < robot->n_cameras; i++)
        if (robot->cameras[i].input)
            names[cameras++] = robot->cameras[i].input;
    for (int i = 0, at = 0; i < cameras && at < (int)sizeof all; i++)
        at += snprintf(all + at, sizeof all - (size_t)at, "%s%.80s", i ? ", " : "", names[i]);
    for (size_t i = 0; i < n && !near; i++) {
        key = values[i].name;
        near = tec_nearest(key, names, cameras);
    }
    return tec_fail(err, TEC_NOT_FOUND, "%s needs a picture in every request, %s%s%s%.80s%s%.80s%s",
                    robot->called, cameras > 1 ? "at least one of " : "", all,
                    near ? "; there is '" : "", near ? key : "", near ? "' (did you mean '" : "",
                    near ? near : "", near ? "'?)" : "");
}

static bool is_known(const struct tec_robot *robot, const char *name)
{
    for (int i = 0; i < robot->n_cameras; i++)
        if (robot->cameras[i].input && strcmp(robot->cameras[i].input, name) == 0)
            return true;
    for (int i = 0; i < robot->n_ignored; i++)
        if (strcmp(robot->ignored[i], name) == 0)
            return true;
    for (int i = 0; i < robot->n_parts; i++)
        if (strcmp(robot->parts[i].input, name) == 0)
            return true;
    return false;
}

static enum tec_status check_unknown(const struct tec_robot *robot, const struct tec_value *values,
                                     size_t n, struct tec_error *err)
{
    const char *names[TEC_ROBOT_MAX_CAMERAS];
    for (int i = 0; i < robot->n_cameras; i++)
        names[i] = robot->cameras[i].input;
    for (size_t i = 0; i < n && !robot->unknown_cameras; i++) {
        if (values[i].kind == TEC_VALUE_TEXT || values[i].rank < 3 ||
            strncmp(values[i].name, robot->prefix, strlen(robot->prefix)) != 0 ||
            is_known(robot, values[i].name))
            continue;
        const char *near = tec_nearest(values[i].name, names, robot->n_cameras);
        return tec_fail(err, TEC_NOT_FOUND, "%.100s: %s has no such camera%s", values[i].name,
                        robot->called, tec_meant(';', near).text);
    }
    return TEC_OK;
}

/* Two cameras whose sizes have changed places since the first request were plugged in crosswise. */
static void warn_swapped(const struct tec_observer *o, struct tec_observation *out)
{
    for (int i = 0; i < o->robot->n_cameras; i++)
        for (int j = 0; j < i; j++) {
            const struct tec_picture *a = &o->pictures[i], *b = &o->pictures[j];
            bool differ = a->first_h != b->first_h || a->first_w != b->first_w;
            if (a->h && b->h && differ && a->h == b->first_h && a->w == b->first_w &&
                b->h == a->first_h && b->w == a->first_w)
                snprintf(out->warning, sizeof out->warning,
                         "%.60s and %.60s have exchanged their sizes: cameras swapped?",
                         b->camera->input, a->camera->input);
        }
}

static enum tec_status observe_cameras(struct tec_observer *o, const struct tec_value *values,
                                       size_t n, struct tec_observation *out, struct tec_error *err)
{
    const struct tec_robot *robot = o->robot;
    bool as_float = tec_robot_floats(robot), sees = false, has_eyes = false;
    TEC_TRY(check_unknown(robot, values, n, err));
    for (int i = 0; i < o->needs.n_slots; i++)
        out->valid[i] = false;
    for (int i = 0; i < robot->n_cameras; i++) {
        const struct tec_robot_camera *camera = &robot->cameras[i];
        const struct tec_value *value = find_value(values, n, camera->input);
        int slot = o->slot[i];
        if (!value && camera->input && !camera->optional)
            return fail_absent(robot, "camera", camera->input, values, n, err);
        sees |= value != NULL;
        has_eyes |= camera->input != NULL;
        if (!value)
            continue;
        TEC_TRY(tec_picture_run(&o->pictures[i], value, as_float ? NULL : out->pictures[slot],
                                as_float ? out->pictures_f32[slot] : NULL, err));
        out->valid[slot] = true;
    }
    if (has_eyes && !sees && !robot->blind)
        return fail_blind(robot, values, n, err);
    for (int i = 0; i < o->needs.n_slots; i++) {
        struct tec_observer_size size = size_of(o, i);
        size_t pixels = (size_t)size.h * (size_t)size.w * 3;
        if (!out->valid[i] && as_float)
            memset(out->pictures_f32[i], 0, pixels * sizeof(float));
        else if (!out->valid[i])
            memset(out->pictures[i], 0, pixels);
    }
    warn_swapped(o, out);
    return TEC_OK;
}

/* What no robot is in, in its units and normalised; and how far an entry that never moved while the
 * statistics were taken may be from where it was. */
static const double largest = 1e6, largest_normalised = 1e4, near = 10.0;

/* One part of the state, widened to float64. */
static enum tec_status read_part(const struct tec_robot_part *part, const struct tec_value *value,
                                 double *x, struct tec_error *err)
{
    char shape[120];
    size_t size = tec_value_size(value->kind), n = (size_t)part->size;
    bool fits =
        value->rank == 1 ? value->shape[0] == part->size : value->rank == 0 && part->size == 1;
    if (!fits || (value->kind != TEC_VALUE_F32 && value->kind != TEC_VALUE_F64))
        return tec_fail(err, TEC_SHAPE, "%s: must be %d float values, is %s", part->input,
                        part->size, tec_value_shape(value, shape, sizeof shape));
    if (value->bytes != n * size)
        return tec_fail(err, TEC_SHAPE, "%s: %zu bytes do not make %s", part->input, value->bytes,
                        tec_value_shape(value, shape, sizeof shape));
    for (size_t i = 0; i < n; i++) {
        const unsigned char *at = (const unsigned char *)value->data + i * size;
        float f;
        if (size == sizeof f) {
            memcpy(&f, at, sizeof f);
            x[i] = (double)f;
        } else {
            memcpy(&x[i], at, sizeof x[i]);
        }
        if (!isfinite(x[i]))
            return tec_fail(err, TEC_INVALID, "%s: entry %zu is %s", part->input, i + 1,
                            isnan(x[i]) ? "NaN" : "infinite");
        if (fabs(x[i]) > largest)
            return tec_fail(err, TEC_INVALID, "%s: entry %zu is %g; a state is within +-%g",
                            part->input, i + 1, x[i], largest);
    }
    return TEC_OK;
}

static void warn_norm(const struct tec_observer *o, struct tec_observation *out)
{
    int far = 0, n = o->robot->n_state;
    for (int i = 0; i < n; i++)
        far += !(fabs(out->state_f64[i]) <= 5.0);
    if (2 * far > n)
        snprintf(out->warning, sizeof out->warning,
                 "%d of %d state entries lie beyond +-5 when normalised: norm stats do not fit "
                 "this robot or mode",
                 far, n);
}

/* Refuse a state far outside the statistics. x: as measured, after the steps; y: normalised. */
static enum tec_status check_normalised(struct tec_observer *o, const double *x, const double *y,
                                        struct tec_error *err)
{
    size_t n = (size_t)o->robot->n_state;
    double *middle = o->scratch;
    memset(middle, 0, n * sizeof *middle);
    tec_norm_undo(&o->needs.state_norm, middle, n, middle);
    for (size_t i = 0; i < n; i++)
        if (!(fabs(y[i]) <= largest_normalised) && fabs(x[i] - middle[i]) > near)
            return tec_fail(err, TEC_INVALID,
                            "%s: entry %zu of its state is %g, normalised %g: the statistics know "
                            "nothing like it",
                            o->robot->called, i + 1, x[i], y[i]);
    return TEC_OK;
}

static enum tec_status observe_state(struct tec_observer *o, const struct tec_value *values,
                                     size_t n, struct tec_observation *out, struct tec_error *err)
{
    const struct tec_robot *robot = o->robot;
    double *x = o->x;
    for (int i = 0, at = 0; i < robot->n_parts; at += robot->parts[i++].size) {
        const struct tec_value *value = find_value(values, n, robot->parts[i].input);
        if (!value)
            return fail_absent(robot, "part of the state", robot->parts[i].input, values, n, err);
        TEC_TRY(read_part(&robot->parts[i], value, x + at, err));
    }
    tec_transforms_run(&robot->state, 0, x, NULL, o->scratch);
    for (int i = 0; i < robot->n_state; i++) {
        if (!isfinite(x[i]))
            return tec_fail(err, TEC_INVALID, "%s: entry %d of its state is not finite",
                            robot->called, i + 1);
        out->state_raw[i] = x[i];
    }
    tec_norm_apply(&o->needs.state_norm, x, (size_t)robot->n_state, out->state_f64);
    TEC_TRY(check_normalised(o, x, out->state_f64, err));
    /* openpi adds deltas to the state that it gets back from the normalised one: the last bit. */
    if (o->needs.state_norm.convention == TEC_NORM_OPENPI)
        tec_norm_undo(&o->needs.state_norm, out->state_f64, (size_t)robot->n_state, out->state_raw);
    tec_transforms_run(&robot->normalised, 0, out->state_f64, NULL, o->scratch);
    for (int i = robot->n_state; i < o->needs.state_width; i++)
        out->state_f64[i] = 0.0;
    for (int i = 0; i < o->needs.state_width; i++)
        out->state[i] = (float)out->state_f64[i];
    out->n_bins = robot->state_in_prompt ? larger(robot->n_state, robot->state_pad_to) : 0;
    memcpy(o->binned, out->state_f64, (size_t)robot->n_state * sizeof *o->binned);
    tec_prompt_state_bins(o->binned, out->n_bins, out->bins);
    warn_norm(o, out);
    return TEC_OK;
}

/* Is the prompt given as token ids? Then it needs no text. */
static bool gives_ids(const struct tec_robot *robot, const struct tec_value *values, size_t n)
{
    size_t length = strlen(robot->prompt_input);
    for (size_t i = 0; i < n; i++)
        if (strncmp(values[i].name, robot->prompt_input, length) == 0 &&
            strcmp(values[i].name + length, "#ids") == 0)
            return true;
    return false;
}

void tec_observer_say(struct tec_observer *o, const char *text, size_t bytes)
{
    o->said = text;
    o->said_bytes = bytes;
}

static void put_text(struct tec_observation *out, const char *text, size_t bytes)
{
    if (text && bytes > 0)
        memcpy(out->text, text, bytes);
    out->text[bytes] = '\0';
    out->text_bytes = bytes;
}

static enum tec_status observe_text(struct tec_observer *o, const struct tec_value *values,
                                    size_t n, struct tec_observation *out, struct tec_error *err)
{
    const struct tec_robot *robot = o->robot;
    if (o->said) {
        size_t most = (size_t)o->needs.text_max;
        put_text(out, o->said, o->said_bytes < most ? o->said_bytes : most);
        return TEC_OK;
    }
    if (o->needs.text_unread) {
        put_text(out, "", 0);
        return TEC_OK;
    }
    const struct tec_value *value = find_value(values, n, robot->prompt_input);
    if (value && value->kind != TEC_VALUE_TEXT)
        return tec_fail(err, TEC_SHAPE, "%s: must be a text", robot->prompt_input);
    const char *text = value ? value->data : robot->default_prompt;
    if (!text && (o->needs.text_optional || gives_ids(robot, values, n)))
        text = "";
    if (!value && !text)
        return fail_absent(robot, "text (there is no default)", robot->prompt_input, values, n,
                           err);
    size_t bytes = value ? value->bytes : strlen(text);
    if (bytes > (size_t)o->needs.text_max)
        return tec_fail(err, TEC_INVALID, "%s: %zu bytes; at most %d are taken",
                        robot->prompt_input, bytes, o->needs.text_max);
    put_text(out, text, bytes);
    return TEC_OK;
}

enum tec_status tec_robot_observe(struct tec_observer *o, const struct tec_value *values,
                                  size_t n_values, struct tec_observation *out,
                                  struct tec_error *err)
{
    out->warning[0] = '\0';
    TEC_TRY(observe_text(o, values, n_values, out, err));
    TEC_TRY(observe_cameras(o, values, n_values, out, err));
    return observe_state(o, values, n_values, out, err);
}
