/* describe.c - a pipeline's inputs and actions as JSON, for the first message of a connection. */
#include "tools/serve/describe.h"
#include "graph/load/pipeline_texts.h"

#include <string.h>

/* [height, width, 3], with null for sides of any length. */
static int add_picture(json_t *list, const struct tec_session *session, const char *name,
                       bool required)
{
    struct tec_picture_size size = tec_session_picture_size(session, name);
    return json_array_append_new(
        list, json_pack("{s:s,s:s,s:s,s:[o,o,i],s:b}", "name", name, "kind", "image", "dtype",
                        "uint8", "shape", size.h ? json_integer(size.h) : json_null(),
                        size.w ? json_integer(size.w) : json_null(), 3, "required", required));
}

static int add_text(json_t *list, const char *name, bool required)
{
    return json_array_append_new(
        list, json_pack("{s:s,s:s,s:b}", "name", name, "kind", "text", "required", required));
}

/* [n] of a state; of rows that may go along, any number up to the declared one. */
static int add_numbers(json_t *list, const char *name, const char *kind, const int64_t *shape,
                       int rank, bool required)
{
    json_t *sides = json_array();
    int bad = 0;
    for (int i = 0; i < rank; i++)
        bad |= json_array_append_new(sides, json_integer(shape[i]));
    return bad | json_array_append_new(list, json_pack("{s:s,s:s,s:s,s:o,s:b}", "name", name,
                                                       "kind", kind, "dtype", "float32", "shape",
                                                       sides, "required", required));
}

static bool is_prompt(const struct tec_robot *robot, const char *name)
{
    return strcmp(robot->prompt_input, name) == 0;
}

static int add_robot(json_t *list, const struct tec_pipeline *p, const struct tec_session *session)
{
    int texts[TEC_MAX_TEXTS];
    const struct tec_robot *robot = tec_session_robot(session);
    int bad = 0;
    for (int i = 0; i < robot->n_cameras; i++)
        if (robot->cameras[i].input)
            bad |= add_picture(list, session, robot->cameras[i].input, !robot->cameras[i].optional);
    for (int i = 0; i < robot->n_parts; i++)
        bad |= add_numbers(list, robot->parts[i].input, "state",
                           (const int64_t[]){robot->parts[i].size}, 1, true);
    int chain = tec_session_chain(session), n = tec_pipeline_texts(p, chain, texts);
    const char *prompt = tec_session_prompt_key(session);
    if (!tec_pipeline_composes(p, chain))
        return prompt ? bad | add_text(list, prompt, !robot->default_prompt) : bad;
    for (int i = 0; i < n; i++) {
        const struct tec_decl_input *in = &p->inputs[texts[i]];
        bool known = in->initial || (is_prompt(robot, in->name) && robot->default_prompt);
        if (!in->writer)
            bad |= add_text(list, in->name, !known);
    }
    return bad;
}

/* What a node is given besides the observation: a prefix, what is left of a chunk, a delay. */
static bool goes_along(const struct tec_pipeline *p, int input)
{
    for (int i = 0; i < p->n_nodes; i++) {
        const struct tec_decl_node *n = &p->nodes[i];
        if ((n->prefix.name && n->prefix.index == input) ||
            (n->guide.weight > 0.0 &&
             (n->guide.previous.index == input || n->guide.delays.index == input)))
            return true;
    }
    return false;
}

static int add_declared(json_t *list, const struct tec_pipeline *p,
                        const struct tec_session *session)
{
    int64_t shape[TEC_MAX_RANK];
    bool by_robot = tec_session_robot(session) != NULL;
    int bad = 0;
    for (int i = 0; i < p->n_inputs; i++) {
        const struct tec_decl_input *in = &p->inputs[i];
        bool along = goes_along(p, i);
        if (in->writer || (by_robot && !along))
            continue;
        if (in->kind == TEC_INPUT_IMAGE)
            bad |= add_picture(list, session, in->name, !in->optional);
        if (in->kind == TEC_INPUT_TEXT)
            bad |= add_text(list, in->name, !in->initial);
        for (int k = 0; in->kind == TEC_INPUT_TENSOR && k < in->shape.n; k++)
            shape[k] = in->shape.item[k];
        if (in->kind == TEC_INPUT_TENSOR)
            bad |=
                add_numbers(list, in->name, along ? "along" : "state", shape, in->shape.n, !along);
    }
    return bad;
}

json_t *tec_serve_describe(const struct tec_pipeline *pipeline, const struct tec_session *session,
                           const char *actions, int rows, int columns)
{
    const struct tec_robot *robot = tec_session_robot(session);
    json_t *list = json_array(), *made = NULL;
    json_t *all = json_pack("{s:s}", "pipeline", pipeline->name);
    int bad = !list || !all;
    if (!bad && pipeline->n_robots <= 1) {
        bad |= robot ? add_robot(list, pipeline, session) : 0;
        bad |= add_declared(list, pipeline, session);
        bad |= json_object_set(all, "inputs", list);
    }
    if (!bad && rows > 0 && columns > 0) {
        made = json_pack("{s:s,s:i,s:i,s:s}", "name", actions, "rows", rows, "columns", columns,
                         "dtype", "float64");
        if (robot && robot->rate_hz > 0.0)
            bad |= json_object_set_new(made, "rate_hz", json_real(robot->rate_hz));
        if (robot && robot->execute > 0)
            bad |= json_object_set_new(made, "execute", json_integer(robot->execute));
        bad |= json_object_set(all, "actions", made);
    }
    json_decref(made);
    json_decref(list);
    if (!bad)
        return all;
    json_decref(all);
    return NULL;
}
