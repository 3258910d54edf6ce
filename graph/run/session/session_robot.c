/* session_robot.c - finds a session's robot, prompt template and statistics, and makes its
 * observer.
 *
 * Runs at load. A pipeline that names no robot gets a plain one made of its own inputs: pictures,
 * float vectors as state, one text. It is built as a description and parsed like any other, so the
 * rest of the code knows only one kind of robot. */
#include "graph/run/session/session_robot.h"

#include "base/lua.h"
#include "graph/load/pipeline_texts.h"
#include "graph/run/recall/memory.h"

#include <string.h>

const struct tec_decl_robot *tec_session_declared(const struct tec_session_options *options)
{
    const struct tec_pipeline *p = options->pipeline;
    int at = options->chain < p->n_chains ? p->chains[options->chain].robot : 0;
    return at >= 0 && at < p->n_robots ? &p->robots[at] : NULL;
}

bool tec_session_mine(const struct tec_session_options *options, int input)
{
    int robot = tec_pipeline_robot_of(options->pipeline, input);
    const struct tec_decl_robot *d = tec_session_declared(options);
    return robot < 0 || !d || d == &options->pipeline->robots[robot];
}

/* Add the file and line of the robot's description, if there is one, to an error. */
static enum tec_status at_robot(const struct tec_session_options *options, enum tec_status status,
                                struct tec_error *err)
{
    const struct tec_decl_robot *d = tec_session_declared(options);
    bool located = d && d->where.file && status != TEC_NO_MEMORY;
    return located ? tec_context(err, status, "%s:%d", d->where.file, d->where.line) : status;
}

static bool read_by(const struct tec_pipeline *p, int input, const int *chain)
{
    for (int i = 0; i < p->n_nodes; i++)
        if ((!chain || p->nodes[i].chain == *chain) && tec_decl_reads(&p->nodes[i], input))
            return true;
    return false;
}

/* Is a plain robot made of this input? Of several, the first has what no hard chain reads. */
static bool plainly_mine(const struct tec_session_options *o, int input)
{
    const struct tec_pipeline *p = o->pipeline;
    bool others = false;
    for (int c = 0; c < p->n_chains; c++)
        others |= c != o->chain && p->chains[c].in_frames && read_by(p, input, &c);
    return read_by(p, input, &o->chain) || (!others && o->chain == 0);
}

/* A picture that another chain's frames read, and a prefill that this session makes the prompts of:
 * its robot has the camera, too, whose picture is none of its frames. */
static bool lent(const struct tec_session_options *o, int input)
{
    bool lent = false;
    for (int i = 0; i < o->n_secondary; i++)
        lent |= o->secondary[i].reads && read_by(o->pipeline, input, &o->secondary[i].chain);
    return lent && !plainly_mine(o, input);
}

/* The next slot, in the model's order, that no picture input names; NULL if there is none. */
static const char *free_slot(const struct tec_session_options *o, int *next)
{
    const struct tec_model *m = o->model;
    while (*next < m->n_slots) {
        const char *slot = m->slots[(*next)++];
        bool taken = false;
        for (int i = 0; i < o->pipeline->n_inputs; i++) {
            const char *named = o->pipeline->inputs[i].slot;
            taken = taken || (named && strcmp(named, slot) == 0);
        }
        if (!taken)
            return slot;
    }
    return NULL;
}

/* Cameras for pictures that are of the robot's, or lent to it: those have the slots that are left.
 */
static enum tec_status plain_cameras(json_t *cameras, const struct tec_session_options *o,
                                     bool (*of)(const struct tec_session_options *, int), int *next,
                                     struct tec_error *err)
{
    for (int i = 0; i < o->pipeline->n_inputs; i++) {
        const struct tec_decl_input *in = &o->pipeline->inputs[i];
        if (in->kind != TEC_INPUT_IMAGE || !of(o, i))
            continue;
        const char *slot = in->slot ? in->slot : free_slot(o, next);
        if (!slot)
            return tec_where_fail(err, TEC_MALFORMED, &in->where,
                                  "input '%s': the model has %d camera slots, the pipeline more "
                                  "pictures",
                                  in->name, o->model->n_slots);
        json_t *camera = json_pack("{s:s, s:s, s:s}", "slot", slot, "input", in->name, "missing",
                                   in->optional ? "mask" : "error");
        if (json_array_append_new(cameras, camera) != 0)
            return tec_fail(err, TEC_NO_MEMORY, "input '%s': no memory", in->name);
    }
    return TEC_OK;
}

/* Pictures that another chain's robot has, which are not unknown ones; and every float vector as a
 * part of the plain robot's state. */
static enum tec_status plain_others(json_t *ignored, json_t *parts,
                                    const struct tec_session_options *o, struct tec_error *err)
{
    for (int i = 0; i < o->pipeline->n_inputs; i++) {
        const struct tec_decl_input *in = &o->pipeline->inputs[i];
        bool mine = plainly_mine(o, i),
             vector = in->kind == TEC_INPUT_TENSOR && in->shape.n == 1 &&
                      (in->dtype == TEC_DECL_F32 || in->dtype == TEC_DECL_F64);
        bool other = in->kind == TEC_INPUT_IMAGE && !mine && !lent(o, i);
        if ((other && json_array_append_new(ignored, json_string(in->name)) != 0) ||
            (vector && mine &&
             json_array_append_new(parts, json_pack("{s:s, s:i}", "input", in->name, "size",
                                                    in->shape.item[0])) != 0))
            return tec_fail(err, TEC_NO_MEMORY, "input '%s': no memory", in->name);
    }
    return TEC_OK;
}

bool tec_session_frames_read(const struct tec_session_options *o, int input)
{
    return read_by(o->pipeline, input, &o->chain) || !read_by(o->pipeline, input, NULL);
}

static const struct tec_decl_input *find_text(const struct tec_session_options *o)
{
    const struct tec_pipeline *p = o->pipeline;
    const struct tec_decl_input *own = NULL; /* a prompt of a decode node, where nothing else is */
    for (int i = p->n_inputs - 1; i >= 0; i--)
        if (p->inputs[i].kind == TEC_INPUT_TEXT && tec_pipeline_is_prompt(p, i))
            own = &p->inputs[i];
    for (int i = 0; i < p->n_inputs; i++)
        if (p->inputs[i].kind == TEC_INPUT_TEXT && !tec_pipeline_is_prompt(p, i) &&
            tec_session_frames_read(o, i))
            return &p->inputs[i];
    return own;
}

static enum tec_status make_plain(struct tec_robot **out, const struct tec_session_options *o,
                                  struct tec_arena *arena, struct tec_error *err)
{
    const struct tec_decl_input *text = find_text(o);
    json_t *cameras = json_array(), *parts = json_array(), *ignored = json_array();
    json_t *robot = json_pack(
        "{s:s, s:O, s:O, s:{s:O}, s:{s:i}, s:{s:s}, s:{s:s, s:s*}}", "name", "plain", "cameras",
        cameras, "ignore", ignored, "state", "inputs", parts, "actions", "size",
        o->model->flow.dim > 0 ? o->model->flow.dim : 1, "norm", "mode", "none", "prompt", "input",
        text ? text->name : "prompt", "default", text ? text->initial : NULL);
    int next = 0;
    enum tec_status status = robot ? plain_cameras(cameras, o, plainly_mine, &next, err)
                                   : tec_fail(err, TEC_NO_MEMORY, "no memory for a robot");
    if (status == TEC_OK)
        status = plain_cameras(cameras, o, lent, &next, err);
    if (status == TEC_OK)
        status = plain_others(ignored, parts, o, err);
    if (status == TEC_OK)
        status = tec_robot_parse(out, robot, NULL, o->pipeline->file, arena, err);
    if (status == TEC_OK) {
        (*out)->called = "the pipeline";
        (*out)->blind = true;
    }
    json_decref(robot);
    json_decref(cameras);
    json_decref(ignored);
    json_decref(parts);
    return status;
}

static enum tec_status load(struct tec_robot **out, const struct tec_session_options *o,
                            struct tec_arena *arena, struct tec_error *err)
{
    const char *root = tec_arena_printf(arena, "%s/pipelines/robots", o->root);
    const char *file = o->checkpoint->robots ? "experiment" : "lerobot";
    const char *path = root ? tec_arena_printf(arena, "%s/%s.lua", root, file) : NULL;
    if (!path)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a robot");
    return tec_robot_load(out, path, root, NULL, NULL, o->checkpoint, arena, err);
}

/* Name one of several robots. A text that is of no robot's name is the prompt of all that read it.
 */
static enum tec_status name_robot(struct tec_robot *robot, const struct tec_session_options *o,
                                  const char *name, struct tec_arena *arena, struct tec_error *err)
{
    const struct tec_pipeline *p = o->pipeline;
    int prefill = p->chains[o->chain].prefill;
    TEC_TRY(tec_robot_name(robot, name, arena, err));
    for (int k = 0; prefill >= 0 && k < p->nodes[prefill].reads.n; k++) {
        const struct tec_decl_input *in = &p->inputs[p->nodes[prefill].reads.item[k].index];
        if (in->kind == TEC_INPUT_TEXT && !in->writer &&
            tec_pipeline_robot_of(p, (int)(in - p->inputs)) < 0)
            robot->prompt_input = in->name;
    }
    return TEC_OK;
}

enum tec_status tec_session_find_robot(struct tec_robot **out, bool *plain,
                                       const struct tec_session_options *options,
                                       struct tec_arena *arena, struct tec_error *err)
{
    const struct tec_pipeline *p = options->pipeline;
    const struct tec_decl_robot *d = tec_session_declared(options);
    const struct tec_checkpoint *c = options->checkpoint;
    enum tec_status status;
    *plain = false;
    if (d && d->description) {
        const char *where = d->path ? d->path : p->file;
        status = tec_robot_parse(out, d->description, p->robot_variant, where, arena, err);
        if (status == TEC_OK)
            status = tec_robot_take(*out, c, err);
    } else if (d && d->path) {
        status = tec_robot_load(out, d->path, d->root, d->shipped, p->robot_variant, c, arena, err);
    } else if (c && (c->robots || (c->layout == TEC_LAYOUT_LEROBOT && c->preprocessor))) {
        status = load(out, options, arena, err);
    } else {
        *plain = true;
        status = make_plain(out, options, arena, err);
    }
    if (status == TEC_OK && d && d->name)
        status = name_robot(*out, options, d->name, arena, err);
    if (status == TEC_OK && !c)
        (*out)->norm = TEC_NORM_NONE;
    return at_robot(options, status, err);
}

enum tec_status tec_session_read_template(struct tec_template **out, const char *root,
                                          const char *name, struct tec_arena *arena,
                                          struct tec_error *err)
{
    const char *folder = tec_arena_printf(arena, "%s/pipelines/models", root);
    const char *path = folder ? tec_arena_printf(arena, "%s/prompts.lua", folder) : NULL;
    json_t *templates = NULL;
    if (!path)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a prompt template");
    TEC_TRY(tec_lua_read(&templates, path, folder, arena->heap, err));
    enum tec_status status = tec_template_parse(out, templates, name, path, arena, err);
    json_decref(templates);
    return status;
}

/* The chain's prefill that names its template; NULL: the robot does, or nobody. */
static const struct tec_decl_node *find_naming(const struct tec_pipeline *p, int chain)
{
    for (int i = 0; i < p->n_nodes; i++)
        if (p->nodes[i].kind == TEC_DECL_PREFILL && p->nodes[i].template &&
            p->nodes[i].chain == chain)
            return &p->nodes[i];
    return NULL;
}

static enum tec_status check_template(const struct tec_template *t,
                                      const struct tec_session_options *o,
                                      const struct tec_robot *robot, struct tec_arena *arena,
                                      struct tec_error *err)
{
    bool memory = tec_pipeline_remembers(o->pipeline, o->chain);
    int texts[TEC_MAX_TEXTS], n = tec_pipeline_texts(o->pipeline, o->chain, texts);
    const char *wrong = tec_template_misplaces(t, n, arena);
    if (wrong)
        return tec_fail(err, TEC_MALFORMED, "%s: prompt template '%s' %s", robot->called, t->name,
                        wrong);
    if (t->state && !robot->state_in_prompt)
        return tec_fail(err, TEC_MALFORMED,
                        "%s: prompt template '%s' has {state}, but the robot's prompt does not "
                        "say state = true",
                        robot->called, t->name);
    if (t->memory && !memory)
        return tec_fail(err, TEC_MALFORMED,
                        "prompt template '%s' has {memory}, but the pipeline has no memory_load "
                        "node",
                        t->name);
    return TEC_OK;
}

enum tec_status tec_session_find_template(struct tec_template **out,
                                          const struct tec_session_options *options,
                                          const struct tec_robot *robot, struct tec_arena *arena,
                                          struct tec_error *err)
{
    const struct tec_pipeline *p = options->pipeline;
    const struct tec_decl_node *node = find_naming(p, options->chain);
    const char *name = node                     ? node->template
                       : robot->prompt_template ? robot->prompt_template
                       : robot->state_in_prompt ? "with_state"
                                                : "plain";
    enum tec_status status = tec_session_read_template(out, options->root, name, arena, err);
    if (status == TEC_OK)
        status = check_template(*out, options, robot, arena, err);
    if (!node || status == TEC_NO_MEMORY)
        return at_robot(options, status, err);
    const struct tec_where *at = &node->where_template;
    return tec_context(err, status, "%s:%d", at->file ? at->file : "?", at->line);
}

/* Match the pictures of a LeRobot checkpoint, which are named as in its data set, to the model's
 * slots in order. */
static enum tec_status match_slots(const struct tec_session_options *o,
                                   const struct tec_robot *robot, struct tec_observer_needs *needs,
                                   struct tec_error *err)
{
    const struct tec_model *m = o->model;
    const struct tec_checkpoint *c = o->checkpoint;
    needs->slots = m->slots;
    needs->n_slots = m->n_slots;
    for (int i = 0; i < robot->n_cameras; i++)
        for (int k = 0; k < m->n_slots; k++)
            if (strcmp(robot->cameras[i].slot, m->slots[k]) == 0)
                return TEC_OK;
    if (!c || c->layout != TEC_LAYOUT_LEROBOT)
        return TEC_OK;
    if (robot->n_cameras > m->n_slots)
        return tec_fail(err, TEC_UNSUPPORTED,
                        "%s: the checkpoint has %d pictures, the model %d slots", robot->called,
                        robot->n_cameras, m->n_slots);
    needs->slots = NULL;
    needs->n_slots = robot->n_cameras;
    return TEC_OK;
}

/* Find the statistics; an error names the robot's file and the checkpoint. */
static enum tec_status find_norms(struct tec_observer_needs *needs, const struct tec_checkpoint *c,
                                  const struct tec_robot *robot, struct tec_arena *arena,
                                  struct tec_error *err)
{
    TEC_TRY(tec_robot_agree(robot, c, arena, err));
    TEC_TRY(tec_robot_norms(robot, c, NULL, &needs->state_norm, &needs->action_norm, arena, err));
    enum tec_status status = TEC_OK;
    if (robot->n_state > 0)
        status = tec_robot_check_norm(robot, &needs->state_norm, "state", err);
    if (status == TEC_OK)
        status = tec_robot_check_norm(robot, &needs->action_norm, "actions", err);
    return tec_context(err, status, "%s, %s", robot->where, c->root);
}

static enum tec_status make_observer(struct tec_observer **out, const struct tec_session_options *o,
                                     const struct tec_robot *robot, int text_max,
                                     struct tec_arena *arena, struct tec_heap *heap,
                                     struct tec_error *err)
{
    const struct tec_model *m = o->model;
    /* A model of text alone has neither pictures nor actions: nothing of these sizes is ever made.
     */
    int side = m->vision.image_size > 0 ? m->vision.image_size : 1;
    struct tec_observer_size sizes[TEC_MAX_CAMERAS];
    for (int i = 0; i < m->n_slots; i++) {
        struct tec_picture_size size = tec_model_picture(m, i);
        sizes[i] = (struct tec_observer_size){size.h, size.w};
    }
    struct tec_observer_needs needs = {.image_h = side,
                                       .image_w = side,
                                       .sizes = tec_model_asks(m) ? sizes : NULL,
                                       .state_width = tec_model_state(m),
                                       .action_width = m->flow.dim > 0 ? m->flow.dim : 1,
                                       .tokens = {m->tokens.vocab, m->tokens.bins, m->text.eos},
                                       .text_max = text_max,
                                       .text_optional = !o->tokenizer,
                                       .text_unread = !tec_model_reads(o->model)};
    TEC_TRY(match_slots(o, robot, &needs, err));
    if (o->checkpoint)
        TEC_TRY(find_norms(&needs, o->checkpoint, robot, arena, err));
    return tec_observer_create(out, robot, &needs, heap, err);
}

enum tec_status tec_session_make_observer(struct tec_observer **out,
                                          const struct tec_session_options *options,
                                          const struct tec_robot *robot, int text_max,
                                          struct tec_arena *arena, struct tec_heap *heap,
                                          struct tec_error *err)
{
    return at_robot(options, make_observer(out, options, robot, text_max, arena, heap, err), err);
}

enum tec_status tec_session_others(bool **out, const struct tec_session_options *options,
                                   const struct tec_observer *observer, struct tec_arena *arena,
                                   struct tec_error *err)
{
    const struct tec_pipeline *p = options->pipeline;
    bool *others = TEC_NEW(arena, (size_t)options->model->n_slots + 1, bool);
    if (!others)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for pictures");
    for (int pass = 0; pass < 2; pass++) /* a camera that the frames read stays theirs */
        for (int i = 0; i < p->n_inputs; i++) {
            const struct tec_decl_input *in = &p->inputs[i];
            bool picture = in->kind == TEC_INPUT_IMAGE;
            int slot = picture ? tec_observer_slot(observer, in->name, in->slot) : -1;
            if (slot >= 0 && tec_session_frames_read(options, i) == (pass == 1))
                others[slot] = pass == 0;
        }
    *out = others;
    return TEC_OK;
}
