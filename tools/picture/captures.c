/* captures.c - why each capture of a pipeline is there. */
#include "tools/picture/captures.h"

#include "base/byte_text.h"
#include "base/escape.h"
#include "base/json_text.h"
#include "graph/load/pipeline_texts.h"

#include <string.h>

/* One capture, and what is told of it. */
struct shown {
    const struct tec_engine *engine;
    const struct tec_pipeline *pipeline;
    int chain;
    const struct tec_plan *plan;
    const struct tec_plan_part *part;
    struct tec_arena *arena;
    const char *name, *why;
    const struct tec_decl_node *nodes[TEC_MAX_NODES]; /* that its launches compute */
    int n_nodes;
    struct tec_where where; /* what asks for it */
};

/* Whether launches of the part compute the node; an action node is the `action`-th of its chain. */
static bool computes(const struct shown *c, const struct tec_decl_node *n, int action)
{
    const struct tec_plan_spec *spec = &c->plan->spec;
    bool acts = n->kind == TEC_DECL_ACTION, prefill = n->kind == TEC_DECL_PREFILL;
    bool decode = n->kind == TEC_DECL_DECODE, ring = decode && tec_pipeline_rings(c->pipeline, n);
    switch (c->part->kind) {
    case TEC_PART_FRAME:
        return prefill || (acts && action == spec->frame_action);
    case TEC_PART_PREFIX:
        return prefill;
    case TEC_PART_DECODE:
        return spec->request_slots ? decode && !ring : ring;
    case TEC_PART_VERIFY:
        return decode && n->draft.tokens > 0;
    case TEC_PART_PACKED:
        return prefill || ring;
    case TEC_PART_SHIFT:
        return ring;
    case TEC_PART_RECALL:
    case TEC_PART_RECALL_BRANCH:
        return n->kind == TEC_DECL_MEMORY_LOAD || prefill;
    case TEC_PART_REMEMBER:
        return n->kind == TEC_DECL_MEMORY_LOAD || n->kind == TEC_DECL_REMEMBER;
    case TEC_PART_SCORE:
        return n->kind == TEC_DECL_SCORE;
    case TEC_PART_ACTION:
        return acts && action == c->part->action;
    case TEC_PART_ENCODE:
        break;
    }
    return false;
}

/* Whether the capture is of a draft, whose steps are for texts of another chain's nodes. */
static bool is_drafts(const struct shown *c, const struct tec_decl_node *n)
{
    return n->kind == TEC_DECL_DECODE && tec_pipeline_draft(c->pipeline, n) == c->chain;
}

/* Chains of rings may share a plan, and so its captures. */
static void find_nodes(struct shown *c)
{
    const struct tec_pipeline *p = c->pipeline;
    int action = 0;
    for (int i = 0; i < p->n_nodes; i++) {
        const struct tec_decl_node *n = &p->nodes[i];
        if (c->part->kind == TEC_PART_DECODE && is_drafts(c, n))
            c->nodes[c->n_nodes++] = n;
        if (n->chain != c->chain &&
            (n->chain < 0 || c->engine->chains[n->chain].joins != 1 + c->chain))
            continue;
        if (computes(c, n, action))
            c->nodes[c->n_nodes++] = n;
        action += n->kind == TEC_DECL_ACTION;
    }
    if (c->n_nodes)
        c->where = c->nodes[0]->where;
    if (c->part->kind == TEC_PART_DECODE && p->capture.where.file)
        c->where = p->capture.where;
}

/* Requests of a launch that take this capture: more than the next smaller one holds. */
static const char *why_decode(const struct shown *c)
{
    const struct tec_plan_spec *s = &c->plan->spec;
    const char *steps = "";
    int least = 1, batch = c->part->batch;
    if (!s->request_slots)
        return "a ring: observations in flight go on where none comes in";
    for (int i = 0; i < s->n_batches; i++)
        if (s->batches[i] < batch)
            least = s->batches[i] + 1;
    if (c->pipeline->capture.k.n && s->max_k > 1)
        steps = tec_arena_printf(c->arena, ", %d steps at most", s->max_k);
    const char *of = c->n_nodes && is_drafts(c, c->nodes[0]) ? "a draft's launches" : "launches";
    if (least == batch)
        return tec_arena_printf(c->arena, "capture.batch %d: %s of %d request%s%s", batch, of,
                                batch, batch > 1 ? "s" : "", steps ? steps : "");
    return tec_arena_printf(c->arena, "capture.batch %d: %s of %d to %d requests%s", batch, of,
                            least, batch, steps ? steps : "");
}

static const char *why_prefix(const struct shown *c)
{
    if (c->plan->spec.apart)
        return "a ring: the prefill of an observation, a launch of its own";
    if (!c->plan->spec.secondary && !c->plan->spec.request_slots)
        return "a frame that leaves out an action, and in which others act (when = policy())";
    if (!c->plan->spec.secondary)
        return "a request that a policy gives a prefill of its own (D:unshare)";
    if (!c->part->slices)
        return "requests of this model wait for a prefill of their own";
    return tec_arena_printf(c->arena,
                            "requests of this model wait for a prefill of their own; in %d "
                            "slices, some a frame (D:slices)",
                            c->part->n_slices);
}

static const char *why_frame(const struct shown *c)
{
    if (c->part->batch > 1)
        return tec_arena_printf(c->arena, "capture.sessions %d: observations of several sessions",
                                c->part->batch);
    return c->n_nodes > 1 ? "every observation: what always runs together is one capture"
                          : "every observation";
}

static const char *why_part(const struct shown *c)
{
    switch (c->part->kind) {
    case TEC_PART_FRAME:
        return why_frame(c);
    case TEC_PART_PREFIX:
        return why_prefix(c);
    case TEC_PART_DECODE:
        return why_decode(c);
    case TEC_PART_VERIFY:
        return tec_arena_printf(
            c->arena, "a draft: of %d request%s the next token and %d that were proposed",
            c->part->batch, c->part->batch > 1 ? "s" : "", c->plan->spec.draft_tokens);
    case TEC_PART_PACKED:
        return "a ring: a new observation in one launch with those in flight";
    case TEC_PART_SHIFT:
        return "interpreted, a ring with shift = \"device_copy\": sequences move from stage to "
               "stage";
    case TEC_PART_RECALL:
        return tec_arena_printf(c->arena,
                                "a memory: a prompt of remembered segments; in %d pieces, between "
                                "which keys and values come in",
                                c->part->n_slices);
    case TEC_PART_RECALL_BRANCH:
        return "a memory: the same prompt in a piece a layer, its importance in a branch";
    case TEC_PART_REMEMBER:
        return "a memory: segments computed by themselves, to be kept";
    case TEC_PART_SCORE:
        return "score nodes: a tree of the texts that are ranked";
    case TEC_PART_ACTION:
        return "an action node that goes with no prefill: a launch of its own";
    case TEC_PART_ENCODE:
        break;
    }
    return "texts to vectors";
}

static enum tec_status show(struct shown *c, const struct tec_engine *engine, int chain, int part,
                            struct tec_arena *arena, struct tec_error *err)
{
    const struct tec_pipeline *p = engine->options.pipeline;
    *c = (struct shown){.engine = engine, .pipeline = p, .chain = chain, .arena = arena};
    c->plan = engine->chains[chain].plan;
    c->part = &c->plan->parts[part];
    c->where = p->where;
    c->name = chain ? tec_arena_printf(arena, "%s/%s", p->chains[chain].name, c->part->name)
                    : c->part->name;
    find_nodes(c);
    c->why = why_part(c);
    if (c->part->beside && c->why)
        c->why = tec_arena_printf(arena, "%s; once more, to run beside the frame", c->why);
    return c->name && c->why ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for a capture");
}

static void print(const struct shown *c, FILE *out)
{
    fprintf(out, "\n%-20s %5d commands  ", c->name, tec_capture_commands(c->part->capture));
    for (int i = 0; i < c->n_nodes; i++) {
        fputs(i ? ", " : "", out);
        tec_escape_print(out, c->nodes[i]->name);
    }
    fprintf(out, "\n    %s\n", c->why);
    if (c->where.file) {
        fputs("    asked for at ", out);
        tec_escape_print(out, c->where.file);
        fprintf(out, ":%d\n", c->where.line);
    }
}

/* What differs from frame to frame without a capture of its own. */
static void print_data(const struct tec_pipeline *p, FILE *out)
{
    fputs("\nNo captures of their own, a replay reads them: lengths of prompts, cameras that are "
          "there,\nlive requests",
          out);
    for (int i = 0; i < p->capture.k.n; i++)
        fprintf(out, "%s%d", i ? ", " : "; k ", p->capture.k.item[i]);
    fputc('\n', out);
}

/* Every capture, told in whole before anything is printed. */
static enum tec_status show_all(struct shown **out, int *n, const struct tec_engine *engine,
                                struct tec_arena *arena, struct tec_error *err)
{
    size_t room = 0;
    *n = 0;
    for (int i = 0; i < engine->n_chains; i++)
        room += engine->chains[i].joins ? 0 : (size_t)engine->chains[i].plan->n_parts;
    *out = TEC_NEW(arena, room, struct shown);
    if (!*out)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for captures");
    for (int i = 0; i < engine->n_chains; i++)
        for (int k = 0; !engine->chains[i].joins && k < engine->chains[i].plan->n_parts; k++)
            TEC_TRY(show(&(*out)[(*n)++], engine, i, k, arena, err));
    return TEC_OK;
}

enum tec_status tec_captures_text(const struct tec_engine *engine, struct tec_arena *arena,
                                  FILE *out, struct tec_error *err)
{
    struct shown *all;
    int n;
    int64_t bytes = 0;
    char text[24];
    TEC_TRY(show_all(&all, &n, engine, arena, err));
    for (int i = 0; i < engine->n_chains; i++)
        bytes += engine->chains[i].joins ? 0 : engine->chains[i].plan->bytes.captures;
    tec_escape_print(out, engine->options.pipeline->name);
    fprintf(out, ": %d part%s, captured for the points that change a shape; captures take %s\n", n,
            n == 1 ? "" : "s", tec_byte_text(text, bytes));
    for (int i = 0; i < n; i++)
        print(&all[i], out);
    print_data(engine->options.pipeline, out);
    return TEC_OK;
}

static json_t *json_of(const struct shown *c)
{
    json_t *nodes = json_array();
    for (int i = 0; i < c->n_nodes; i++)
        json_array_append_new(nodes, tec_json_shown(c->nodes[i]->name));
    json_t *one =
        json_pack("{s:o, s:o, s:s, s:i, s:I}", "part", tec_json_shown(c->name), "nodes", nodes,
                  "why", c->why, "commands", tec_capture_commands(c->part->capture), "activations",
                  (json_int_t)c->part->program.planned);
    if (one && c->where.file) {
        json_object_set_new(one, "file", tec_json_shown(c->where.file));
        json_object_set_new(one, "line", json_integer(c->where.line));
    }
    if (one && c->part->slices)
        json_object_set_new(one, "slices", json_integer(c->part->n_slices));
    return one;
}

enum tec_status tec_captures_json(json_t **out, const struct tec_engine *engine,
                                  struct tec_arena *arena, struct tec_error *err)
{
    struct shown *all;
    int n;
    TEC_TRY(show_all(&all, &n, engine, arena, err));
    json_t *list = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(list, json_of(&all[i]));
    *out = json_pack("{s:o, s:o}", "pipeline", tec_json_shown(engine->options.pipeline->name),
                     "captures", list);
    return *out ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for captures");
}
