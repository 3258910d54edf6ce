/* session_fit.c - checks at load that a pipeline's inputs and its kv.frame fit its robot.
 *
 * What it finds would otherwise be refused in every frame. All findings are collected as
 * diagnostics with their places and the nearest name that exists, instead of stopping at the
 * first. */
#include "graph/load/pipeline_texts.h"
#include "graph/run/session/session_robot.h"

#include <string.h>

struct fit {
    struct tec_diagnostics *found;
    const struct tec_decl_robot *declared; /* NULL: the pipeline declares none */
    const struct tec_session_options *options;
    const struct tec_pipeline *pipeline;
    const struct tec_robot *robot;
};

enum { MAX_NAMES = 64 };

/* True if an input is this camera, by its name or by the slot that it is for. */
static bool is_camera(const struct tec_decl_input *in, const struct tec_robot_camera *camera)
{
    if (in->kind != TEC_INPUT_IMAGE || !camera->input)
        return false;
    return strcmp(in->name, camera->input) == 0 ||
           (in->slot && strcmp(in->slot, camera->slot) == 0);
}

/* A camera that secondary prefills alone read. */
static bool is_others(const struct fit *f, const struct tec_robot_camera *camera)
{
    bool others = false, own = false;
    for (int i = 0; i < f->pipeline->n_inputs; i++)
        if (is_camera(&f->pipeline->inputs[i], camera))
            *(tec_session_frames_read(f->options, i) ? &own : &others) = true;
    return others && !own;
}

static bool has_camera(const struct fit *f, const struct tec_robot_camera *camera)
{
    for (int i = 0; i < f->pipeline->n_inputs; i++)
        if (is_camera(&f->pipeline->inputs[i], camera))
            return true;
    return false;
}

/* Report an input that the robot needs in every frame and the pipeline does not declare. */
static void check_declared(const struct fit *f, enum tec_input_kind kind, const char *name,
                           const char *what)
{
    const struct tec_pipeline *p = f->pipeline;
    const char *names[MAX_NAMES];
    int n = 0;
    for (int i = 0; i < p->n_inputs; i++) {
        if (p->inputs[i].kind != kind || tec_pipeline_gives(p, i))
            continue;
        if (strcmp(p->inputs[i].name, name) == 0)
            return;
        if (n < MAX_NAMES)
            names[n++] = p->inputs[i].name;
    }
    struct tec_diagnostic *d =
        tec_diagnostics_add(f->found, TEC_E060, f->declared->where,
                            "%s needs %s '%s' in every frame, the pipeline has no such %s input",
                            f->robot->called, what, name, tec_load_input_word(kind));
    tec_diagnostics_meant(f->found, d, name, names, n);
}

static void check_picture(const struct fit *f, const struct tec_decl_input *in)
{
    const struct tec_robot *robot = f->robot;
    const char *names[TEC_ROBOT_MAX_CAMERAS];
    int n = 0;
    for (int i = 0; i < robot->n_cameras; i++) {
        if (is_camera(in, &robot->cameras[i]))
            return;
        if (robot->cameras[i].input)
            names[n++] = robot->cameras[i].input;
    }
    for (int i = 0; i < robot->n_ignored; i++)
        if (strcmp(robot->ignored[i], in->name) == 0)
            return;
    if (robot->unknown_cameras)
        return;
    struct tec_diagnostic *d =
        tec_diagnostics_add(f->found, TEC_E060, in->where, "input '%s': %s has no such camera",
                            in->name, robot->called);
    tec_diagnostics_meant(f->found, d, in->name, names, n);
}

static void check_tensor(const struct fit *f, const struct tec_decl_input *in)
{
    const struct tec_robot *robot = f->robot;
    const char *names[MAX_NAMES];
    const struct tec_robot_part *part = NULL;
    int n = 0;
    for (int i = 0; i < robot->n_parts; i++) {
        if (strcmp(robot->parts[i].input, in->name) == 0)
            part = &robot->parts[i];
        if (n < MAX_NAMES)
            names[n++] = robot->parts[i].input;
    }
    if (!part) {
        struct tec_diagnostic *d = tec_diagnostics_add(f->found, TEC_E060, in->where,
                                                       "input '%s' is no part of the state of %s",
                                                       in->name, robot->called);
        tec_diagnostics_meant(f->found, d, in->name, names, n);
    } else if (in->shape.n != 1 || in->shape.item[0] != part->size) {
        tec_diagnostics_add(f->found, TEC_E060, in->where_shape,
                            "input '%s': shape must be { %d }, that is what %s has", in->name,
                            part->size, robot->called);
    } else if (in->dtype != TEC_DECL_F32 && in->dtype != TEC_DECL_F64) {
        tec_diagnostics_add(f->found, TEC_E060, in->where,
                            "input '%s' is %s, a state is f32 or f64", in->name,
                            tec_decl_dtype_word(in->dtype));
    }
}

static void check_inputs(const struct fit *f)
{
    const struct tec_pipeline *p = f->pipeline;
    const struct tec_robot *robot = f->robot;
    for (int i = 0; i < p->n_inputs; i++) {
        if (!tec_session_mine(f->options, i))
            continue;
        if (p->inputs[i].kind == TEC_INPUT_IMAGE)
            check_picture(f, &p->inputs[i]);
        else if (p->inputs[i].kind == TEC_INPUT_TENSOR && !tec_pipeline_gives(p, i))
            check_tensor(f, &p->inputs[i]);
    }
    for (int i = 0; i < robot->n_cameras; i++)
        if (robot->cameras[i].input && !robot->cameras[i].optional &&
            !has_camera(f, &robot->cameras[i]))
            check_declared(f, TEC_INPUT_IMAGE, robot->cameras[i].input, "camera");
    for (int i = 0; i < robot->n_parts; i++)
        check_declared(f, TEC_INPUT_TENSOR, robot->parts[i].input, "part of the state");
    if (!tec_pipeline_composes(p, f->options->chain) && tec_model_reads(f->options->model))
        check_declared(f, TEC_INPUT_TEXT, robot->prompt_input, "text");
}

/* Finds the resource that declares the rows of the chain's prefix. */
static const struct tec_decl_resource *rows_of(const struct tec_pipeline *p, int chain)
{
    int prefill = p->chains[chain].prefill;
    return prefill >= 0 && p->nodes[prefill].writes.index >= 0
               ? &p->resources[p->nodes[prefill].writes.index]
               : NULL;
}

static void check_room(const struct fit *f)
{
    const struct tec_decl_resource *rows = rows_of(f->pipeline, f->options->chain);
    int room = f->options->max_pictures, tokens = tec_vision_rows(&f->options->model->vision);
    int always = 0, all = 0;
    for (int i = 0; i < f->robot->n_cameras; i++) {
        const struct tec_robot_camera *camera = &f->robot->cameras[i];
        bool needed = camera->input && !camera->optional;
        if (is_others(f, camera))
            continue;
        always += needed;
        all += needed || has_camera(f, camera);
    }
    if (room < 1 || all <= room || !rows || !tokens)
        return;
    bool wrong = always > room;
    int n = wrong ? always : all;
    struct tec_diagnostic *d = tec_diagnostics_add(
        f->found, wrong ? TEC_E060 : TEC_W106, rows->where_size,
        "%s sends %s%d pictures of %d tokens, '%s' has room for %d beside the prompt",
        f->robot->called, wrong ? "" : "up to ", n, tokens, rows->name, room);
    tec_diagnostics_help(f->found, d, "raise its tokens by %d, and those of what shares it",
                         (all - room) * tokens);
    if (f->declared && f->declared->where.file)
        tec_diagnostics_also(f->found, d, f->declared->where, "the robot's cameras");
}

/* The model's slot that a picture is put into; -1: none is known, or all have one size. */
static int slot_of(const struct fit *f, const struct tec_decl_input *in)
{
    const struct tec_model *m = f->options->model;
    for (int i = 0; i < f->robot->n_cameras && tec_model_asks(m); i++)
        for (int s = 0; s < m->n_slots && is_camera(in, &f->robot->cameras[i]); s++)
            if (strcmp(m->slots[s], f->robot->cameras[i].slot) == 0)
                return s;
    return tec_model_asks(m) || !m->n_slots ? -1 : 0;
}

/* A picture is made as large as the model sees it, or refused by a robot that does not resize; the
 * robot says which may be missing. */
static void check_sizes(const struct fit *f, const struct tec_decl_input *in)
{
    const struct tec_model *m = f->options->model;
    int slot = slot_of(f, in);
    struct tec_picture_size size = {in->h, in->w};
    if (slot >= 0)
        size = tec_model_picture(m, slot);
    bool refused = f->robot->resize == TEC_RESIZE_NONE && tec_model_asks(m);
    if (f->options->full && (in->h != size.h || in->w != size.w))
        tec_diagnostics_add(f->found, refused ? TEC_E060 : TEC_W110,
                            tec_decl_place(&in->places, in->h != size.h ? "h" : "w", in->where),
                            "input '%s' is %d x %d, model '%s' sees pictures of %d x %d: %s",
                            in->name, in->w, in->h, m->name, size.w, size.h,
                            refused ? "others are refused" : "they are made so");
    for (int i = 0; in->optional && i < f->robot->n_cameras; i++)
        if (is_camera(in, &f->robot->cameras[i]) && !f->robot->cameras[i].optional)
            tec_diagnostics_add(f->found, TEC_W110,
                                tec_decl_place(&in->places, "optional", in->where),
                                "input '%s' is optional, but %s needs it: a request without it is "
                                "refused",
                                in->name, f->robot->called);
}

/* The node that makes the chain's actions; NULL = none. */
static const struct tec_decl_node *actor_of(const struct fit *f)
{
    const struct tec_pipeline *p = f->pipeline;
    for (int i = 0; i < p->n_nodes; i++)
        if (!p->nodes[i].culled && p->nodes[i].kind == TEC_DECL_ACTION &&
            p->nodes[i].chain == f->options->chain)
            return &p->nodes[i];
    return tec_pipeline_ring_of(p, f->options->chain);
}

/* No chunk has the rows that the robot would execute of it. */
static void check_execute(const struct fit *f)
{
    int rows = f->robot->execute, horizon = f->options->model->flow.horizon;
    if (!f->options->full || !actor_of(f) || f->robot->ensembles || horizon < 1 || rows <= horizon)
        return;
    tec_diagnostics_add(
        f->found, TEC_E060,
        f->declared && f->declared->where.file ? f->declared->where : actor_of(f)->where,
        "%s executes %d actions of a chunk: a chunk has %d", f->robot->called, rows, horizon);
}

/* Warn if the robot has executed its actions before the next ones can come. */
static void check_rate(const struct fit *f)
{
    const struct tec_decl_node *actor = actor_of(f);
    int rows = f->robot->execute ? f->robot->execute : f->options->model->flow.horizon;
    const struct tec_decl_frame *frame = &f->pipeline->frame;
    double rate = f->robot->rate_hz, period = frame->period_ms;
    if (actor && rate > 0.0 && rows > 0 && rows * 1000.0 / rate < period - 0.5)
        tec_diagnostics_add(
            f->found, TEC_W111, tec_decl_place(&frame->places, "period_ms", frame->where),
            "%s executes %d action%s at %g Hz in %g ms, the next observation is "
            "due after %g ms",
            f->robot->called, rows, rows == 1 ? "" : "s", rate, rows * 1000.0 / rate, period);
}

/* Between two chunks of a node that does not run in every frame the robot carries out the first. */
static void check_rests(const struct fit *f)
{
    const struct tec_pipeline *p = f->pipeline;
    int rows = f->options->actions > 0 ? f->options->actions : f->robot->execute;
    int horizon = f->options->model->flow.horizon;
    for (int i = 0; i < p->n_nodes; i++) {
        const struct tec_decl_node *n = &p->nodes[i];
        int64_t every = tec_pipeline_acts_every(p, n);
        if (n->culled || n->chain != f->options->chain || every < 2)
            continue;
        if (f->robot->ensembles)
            tec_diagnostics_add(f->found, TEC_E060, n->where,
                                "'%s' runs every %lld frames, but %s takes means of the chunks of "
                                "all frames",
                                n->name, (long long)every, f->robot->called);
        else if (!rows || every * rows > horizon)
            tec_diagnostics_add(
                f->found, TEC_E060, n->where,
                rows ? "'%s' runs every %lld frames, in which %s carries out %d actions each: a "
                       "chunk has %d"
                     : "'%s' runs every %lld frames, but the description of %s does not say with "
                       "execute how many actions it carries out a frame",
                n->name, (long long)every, f->robot->called, rows, horizon);
    }
}

bool tec_session_repeats(const struct tec_decl_deadline *d)
{
    return !d || d->on_miss == TEC_MISS_HOLD || d->on_miss == TEC_MISS_LAST_CHUNK;
}

/* Warn if a late frame repeats relative commands: repeating a change of position keeps the robot
 * moving. */
static void check_hold(const struct fit *f)
{
    const struct tec_decl_node *actor = actor_of(f);
    if (!actor || actor->deadline.kind != TEC_DEADLINE_HARD || !f->robot->relative ||
        !tec_session_repeats(&actor->deadline) || actor->deadline.limit > 0)
        return;
    const struct tec_decl_deadline *due = &actor->deadline;
    struct tec_diagnostic *d =
        tec_diagnostics_add(f->found, TEC_W108, tec_decl_place(&due->places, "on_miss", due->where),
                            "commands of %s are changes: '%s' repeats them when it is late, and "
                            "the robot goes on moving",
                            f->robot->called, actor->name);
    tec_diagnostics_help(f->found, d,
                         "it stops after 3 misses in a row; say so with limit = 3, or how many, or "
                         "on_miss = \"zeros\" or \"decay\"");
}

static void check(struct tec_diagnostics *found, const struct tec_session_options *options,
                  const struct tec_robot *robot, bool plain)
{
    const struct tec_pipeline *p = options->pipeline;
    const struct fit f = {.found = found,
                          .declared = tec_session_declared(options),
                          .options = options,
                          .pipeline = p,
                          .robot = robot};
    if (!plain && !options->again && f.declared && f.declared->where.file)
        check_inputs(&f);
    for (int i = 0; i < p->n_inputs && !options->again; i++)
        if (p->inputs[i].kind == TEC_INPUT_IMAGE && tec_session_mine(options, i))
            check_sizes(&f, &p->inputs[i]);
    check_room(&f);
    check_hold(&f);
    check_execute(&f);
    check_rate(&f);
    check_rests(&f);
}

enum tec_status tec_session_fit(const struct tec_session_options *options,
                                const struct tec_robot *robot, bool plain, struct tec_heap *heap,
                                struct tec_error *err)
{
    struct tec_diagnostics d;
    enum tec_status status = TEC_OK;
    if (options->found) {
        check(options->found, options, robot, plain);
        return TEC_OK;
    }
    tec_diagnostics_init(&d, heap);
    check(&d, options, robot, plain);
    if (d.n_errors)
        status = tec_diagnostics_first(&d, options->pipeline->file, err);
    else if (d.out_of_memory)
        status = tec_fail(err, TEC_NO_MEMORY, "no memory to check the inputs");
    tec_diagnostics_finish(&d);
    return status;
}
