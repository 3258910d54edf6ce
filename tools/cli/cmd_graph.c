/* cmd_graph.c - a pipeline as a picture; the registries. */
#include "base/store/file.h"
#include "tools/api/topology.h"
#include "tools/cli/open_pipeline.h"
#include "tools/cli/registry.h"
#include "tools/measure/measure.h"
#include "tools/measure/modelled.h"
#include "tools/picture/commands.h"
#include "tools/picture/drawing.h"
#include "tools/record/cadence.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum kind { DOT, SVG, HTML, MERMAID, JSON, TEXT };

struct graph_options {
    int type;
    bool compiled, commands, kernels;
    const char *list, *roofline, *costs, *recording;
    int pictures, prompt, made;
};

enum { MAX_SIZE = 1000000 };

#define AT(member) offsetof(struct graph_options, member)
static const struct tec_option options[] = {
    {"type", 'T', TEC_OPTION_WORD, "dot|svg|html|mermaid|json|text",
     "language of the picture; dot. svg needs Graphviz", AT(type), 0, 0},
    {"compiled", 0, TEC_OPTION_FLAG, NULL, "with the captured parts, their commands and bytes",
     AT(compiled), 0, 0},
    {"commands", 0, TEC_OPTION_FLAG, NULL, "the commands of every captured part, a line each",
     AT(commands), 0, 0},
    {"list", 0, TEC_OPTION_TEXT, "ops|kernels|nodes|hooks|status|passes|tiers|verbs|machines",
     "a registry", AT(list), 0, 0},
    {"roofline", 0, TEC_OPTION_TEXT, "MACHINE|FILE.json,...",
     "work and predicted times of the captured parts; machines are in --list machines, or files",
     AT(roofline), 0, 0},
    {"kernels", 0, TEC_OPTION_FLAG, NULL,
     "of the roofline: a line for each kernel that is modelled, with its grid and waves",
     AT(kernels), 0, 0},
    {"costs", 0, TEC_OPTION_TEXT, "FILE.costs",
     "what nodes took, of `tectum profile`; html: as heat", AT(costs), 0, 0},
    {"recording", 0, TEC_OPTION_TEXT, "FILE.mcap", "what nodes took in a recording; html: as heat",
     AT(recording), 0, 0},
    {"pictures", 0, TEC_OPTION_INT, "N", "of the roofline: cameras; as many as there are",
     AT(pictures), 1, MAX_SIZE},
    {"prompt-tokens", 0, TEC_OPTION_INT, "N", "of the roofline; as many as fit", AT(prompt), 1,
     MAX_SIZE},
    {"made", 0, TEC_OPTION_INT, "N", "of the roofline: tokens that requests have made; 0", AT(made),
     0, MAX_SIZE},
};

/* The child: dot reads `in` and writes to our standard output. */
static void exec_dot(int in)
{
    char program[] = "dot", type[] = "-Tsvg";
    char *const argv[] = {program, type, NULL};
    signal(SIGPIPE, SIG_DFL);
    if (dup2(in, 0) == 0)
        execvp("dot", argv);
    _exit(127);
}

static enum tec_status run_dot(FILE *source, struct tec_error *err)
{
    int state = 0;
    pid_t child = fork();
    if (child == 0)
        exec_dot(fileno(source));
    if (child < 0)
        return tec_fail(err, TEC_IO, "dot cannot be started: %s", strerror(errno));
    while (waitpid(child, &state, 0) < 0)
        if (errno != EINTR)
            return tec_fail(err, TEC_IO, "dot was lost: %s", strerror(errno));
    if (WIFEXITED(state) && WEXITSTATUS(state) == 0)
        return TEC_OK;
    if (WIFEXITED(state) && WEXITSTATUS(state) == 127)
        return tec_fail(err, TEC_NOT_FOUND,
                        "-T svg needs Graphviz, whose program 'dot' is not here: apt-get install "
                        "graphviz, or use -T html");
    if (WIFSIGNALED(state) && WTERMSIG(state) == SIGPIPE)
        return TEC_OK; /* our reader went away */
    return tec_fail(err, TEC_IO, "dot failed; -T dot prints what it was given");
}

static enum tec_status print_svg(const struct tec_drawing *drawing, FILE *out,
                                 struct tec_error *err)
{
    FILE *source = tmpfile();
    if (!source)
        return tec_fail(err, TEC_IO, "no temporary file: %s", strerror(errno));
    tec_graph_dot(drawing, source);
    bool bad = fflush(source) != 0 || ferror(source) || lseek(fileno(source), 0, SEEK_SET) != 0;
    fflush(out);
    enum tec_status status =
        bad ? tec_fail(err, TEC_IO, "a temporary file cannot be written") : run_dot(source, err);
    fclose(source);
    return status;
}

static enum tec_status print(struct tec_invocation *call, const struct tec_drawing *drawing,
                             struct tec_error *err)
{
    const struct graph_options *o = call->options;
    switch ((enum kind)o->type) {
    case DOT:
        tec_graph_dot(drawing, call->out);
        return TEC_OK;
    case SVG:
        return print_svg(drawing, call->out, err);
    case HTML:
        return tec_graph_html(drawing, call->arena, call->out, err);
    case MERMAID:
        tec_graph_mermaid(drawing, call->out);
        return TEC_OK;
    case JSON:
        return tec_graph_json(drawing, call->out, err);
    case TEXT:
        tec_graph_text(drawing, call->out);
        return TEC_OK;
    }
    return TEC_OK;
}

static void say_measured(const struct tec_invocation *call, const struct tec_pipeline *pipeline,
                         enum tec_measured_by by)
{
    const char *weights = pipeline->models[tec_pipeline_main(pipeline)].weights;
    if (by == TEC_MEASURED_FULL && weights)
        tec_say(call, "no checkpoint '%s' here: measured the model's full size", weights);
    else if (by == TEC_MEASURED_FULL)
        tec_say(call, "the pipeline names no checkpoint: measured the model's full size");
}

static enum tec_status predict(struct tec_invocation *call, const struct tec_pipeline *pipeline,
                               struct tec_error *err)
{
    const struct graph_options *o = call->options;
    struct tec_roofline roofline = {
        .pipeline = pipeline,
        .size = {.pictures = o->pictures, .text = o->prompt, .made = o->made}};
    struct tec_engine *engine = NULL;
    enum tec_measured_by by;
    TEC_TRY(tec_roofline_choose(&roofline, o->roofline, call->arena, call->heap, err));
    TEC_TRY(tec_measure_plan(&engine, &by, call, pipeline, true, err));
    say_measured(call, pipeline, by);
    roofline.plan = engine->plan;
    enum tec_status status = tec_roofline_make(&roofline, call->arena, err);
    if (status == TEC_OK && o->type == JSON)
        status = tec_roofline_json(&roofline, call->arena, call->out, err);
    else if (status == TEC_OK)
        tec_roofline_print(&roofline, call->out);
    if (status == TEC_OK && o->type != JSON)
        status = tec_modelled_print(&roofline, o->kernels, call->arena, call->out, err);
    tec_engine_close(engine);
    return status;
}

static enum tec_status list_commands(struct tec_invocation *call,
                                     const struct tec_pipeline *pipeline, struct tec_error *err)
{
    struct tec_engine *engine = NULL;
    enum tec_measured_by by;
    TEC_TRY(tec_measure_plan(&engine, &by, call, pipeline, false, err));
    say_measured(call, pipeline, by);
    tec_commands_print(engine, call->out);
    tec_engine_close(engine);
    return TEC_OK;
}

/* --- heat ------------------------------------------------------------------------------------- */

static enum tec_status heat_of_recording(struct tec_drawing *d, struct tec_invocation *call,
                                         const char *path, struct tec_error *err)
{
    struct tec_flight f;
    struct tec_cadence c;
    TEC_TRY(tec_flight_open(&f, path, call->heap, err));
    enum tec_status status = tec_cadence_of(&c, &f, 0.0, err);
    struct tec_heat *heat = TEC_NEW(call->arena, TEC_MAX_NODES, struct tec_heat);
    if (status == TEC_OK && !heat)
        status = tec_fail(err, TEC_NO_MEMORY, "no memory for a drawing");
    for (int i = 0; status == TEC_OK && i < f.n_nodes; i++)
        if (c.nodes[i].launches)
            heat[d->n_heat++] = (struct tec_heat){
                tec_arena_strdup(call->arena, f.nodes[i]), (double)c.nodes[i].p50_us / 1e3,
                (double)c.nodes[i].p99_us / 1e3, c.nodes[i].share};
    d->heat = heat;
    tec_flight_close(&f);
    return status;
}

/* Of each node the first row: a frame's prefill and action; of a decode a step of one request. */
static enum tec_status heat_of_costs(struct tec_drawing *d, struct tec_invocation *call,
                                     const char *path, struct tec_error *err)
{
    json_t *file = NULL;
    TEC_TRY(tec_checkpoint_json_load_reals(&file, path, call->heap, err));
    const json_t *rows = json_object_get(file, "variants");
    struct tec_heat *heat = TEC_NEW(call->arena, TEC_MAX_NODES, struct tec_heat);
    for (size_t i = 0; heat && i < json_array_size(rows) && d->n_heat < TEC_MAX_NODES; i++) {
        const json_t *row = json_array_get(rows, i);
        const char *node = json_string_value(json_object_get(row, "node"));
        bool known = !node;
        for (int k = 0; k < d->n_heat && node; k++)
            known |= strcmp(heat[k].node, node) == 0;
        if (!known)
            heat[d->n_heat++] =
                (struct tec_heat){tec_arena_strdup(call->arena, node),
                                  json_number_value(json_object_get(row, "p50")) / 1e3,
                                  json_number_value(json_object_get(row, "p99")) / 1e3, -1.0};
    }
    d->heat = heat;
    bool any = d->n_heat > 0;
    json_decref(file);
    return any ? TEC_OK
               : tec_fail(err, TEC_MALFORMED,
                          "%s: it has no list 'variants': a cost file is made with `tectum profile "
                          "-o`",
                          path);
}

/* The commands of every part, as --commands prints them. */
static enum tec_status take_commands(struct tec_drawing *d, struct tec_invocation *call,
                                     const struct tec_pipeline *pipeline, struct tec_error *err)
{
    struct tec_engine *engine = NULL;
    enum tec_measured_by by;
    char *text = NULL;
    size_t n = 0;
    TEC_TRY(tec_measure_plan(&engine, &by, call, pipeline, false, err));
    FILE *out = open_memstream(&text, &n);
    if (out)
        tec_commands_print(engine, out);
    bool whole = out && fclose(out) == 0;
    d->commands = whole ? tec_arena_strdup(call->arena, text) : NULL;
    free(text);
    tec_engine_close(engine);
    return d->commands ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for a drawing");
}

/* Where there is no page that colours nodes, a line in each of them. */
static enum tec_status write_heat(const struct tec_drawing *d, struct tec_arena *arena,
                                  struct tec_error *err)
{
    for (int i = 0; i < d->n_heat; i++) {
        const char *line = tec_arena_printf(arena, "p50 %.3g ms, p99 %.3g ms", d->heat[i].p50_ms,
                                            d->heat[i].p99_ms);
        if (!line)
            return tec_fail(err, TEC_NO_MEMORY, "no memory for a drawing");
        for (int k = 0; k < d->n_items; k++) {
            struct tec_item *item = &d->items[k];
            if (item->kind == TEC_ITEM_NODE && item->n_lines < TEC_ITEM_LINES &&
                strcmp(item->name, d->heat[i].node) == 0)
                item->lines[item->n_lines++] = line;
        }
    }
    return TEC_OK;
}

static enum tec_status add_measured(struct tec_drawing *d, struct tec_invocation *call,
                                    const struct tec_pipeline *pipeline, struct tec_error *err)
{
    const struct graph_options *o = call->options;
    if (o->recording)
        TEC_TRY(tec_context(err, heat_of_recording(d, call, o->recording, err), "--recording"));
    if (o->costs)
        TEC_TRY(tec_context(err, heat_of_costs(d, call, o->costs, err), "--costs"));
    if (o->type != HTML)
        return write_heat(d, call->arena, err);
    return o->compiled ? take_commands(d, call, pipeline, err) : TEC_OK;
}

/* The picture is of the pipeline with the policy of --policy, which must fit it. */
static enum tec_status take_policy(struct tec_invocation *call, struct tec_pipeline *pipeline,
                                   struct tec_error *err)
{
    const struct tec_shared *s = &call->shared;
    struct tec_topology topology;
    struct tec_policy *policy = NULL;
    if (!s->policy && !s->param.n)
        return TEC_OK;
    TEC_TRY(tec_live_topology_of(&topology, pipeline, 0, 0, call->arena, err));
    TEC_TRY(tec_open_policy(&policy, pipeline, s->policy, call->root, &topology, s->param.item,
                            s->param.n, call->heap, err));
    pipeline->policy.name =
        tec_arena_strdup(call->arena, policy ? tec_policy_name(policy) : "default");
    tec_policy_close(policy);
    return pipeline->policy.name ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for a name");
}

static enum tec_status draw(struct tec_invocation *call, const struct tec_pipeline *pipeline,
                            struct tec_error *err)
{
    const struct graph_options *o = call->options;
    struct tec_drawing drawing;
    struct tec_measured measured;
    enum tec_measured_by by;
    TEC_TRY(tec_drawing_make(&drawing, pipeline, call->arena, err));
    if (o->compiled) {
        TEC_TRY(tec_measure(&measured, &by, call, pipeline, NULL, err));
        drawing.measured = &measured;
        say_measured(call, pipeline, by);
    }
    TEC_TRY(add_measured(&drawing, call, pipeline, err));
    return print(call, &drawing, err);
}

static enum tec_status run(struct tec_invocation *call, struct tec_error *err)
{
    struct graph_options *o = call->options;
    struct tec_pipeline *pipeline = NULL;
    bool json = call->shared.format == TEC_FORMAT_JSON;
    if (o->list && call->args.n > 0)
        return tec_fail(err, TEC_INVALID, "--list takes no pipeline file");
    if (o->list)
        return tec_registry_print(o->list, json, call->out, err);
    if (call->args.n == 0 && o->roofline)
        return tec_fail(
            err, TEC_INVALID,
            "a pipeline file is missing: '%.200s' is what --roofline takes for machines; "
            "tectum graph --roofline MACHINE,... FILE, machines are in --list machines",
            o->roofline);
    if (call->args.n == 0)
        return tec_fail(err, TEC_INVALID, "a pipeline file is missing: tectum %s",
                        tec_command_graph.usage);
    if (json && o->type == DOT)
        o->type = JSON;
    if (!o->roofline && (o->pictures || o->prompt || o->made || o->kernels))
        return tec_fail(err, TEC_INVALID,
                        "--pictures, --prompt-tokens, --made and --kernels need --roofline");
    if ((call->shared.policy || call->shared.param.n) && (o->roofline || o->commands))
        return tec_fail(err, TEC_INVALID,
                        "--policy, --param: of a picture; launches are the same with every policy");
    if (o->roofline && o->type != DOT && o->type != TEXT && o->type != JSON)
        return tec_fail(err, TEC_INVALID, "--roofline prints text or json");
    if ((o->costs || o->recording) && (o->roofline || o->commands || (o->costs && o->recording)))
        return tec_fail(err, TEC_INVALID, "--costs or --recording, one of them: of a picture");
    bool any = !o->roofline && !o->commands && !o->compiled;
    TEC_TRY(tec_cli_open_pipeline(&pipeline, call, call->args.item[0], any, err));
    enum tec_status status = take_policy(call, pipeline, err);
    if (status == TEC_OK)
        status = o->roofline   ? predict(call, pipeline, err)
                 : o->commands ? list_commands(call, pipeline, err)
                               : draw(call, pipeline, err);
    tec_pipeline_free(pipeline);
    return status;
}

const struct tec_command tec_command_graph = {
    .usage = "graph [options] FILE",
    .about = "Boxes are nodes, cylinders key-value resources, pink has a hard deadline; a dashed\n"
             "arrow reads the previous frame, a dotted one shares a prefix without a copy.\n",
    .example = "  tectum graph -T svg pipelines/pi05_aloha.lua > pi05_aloha.svg\n"
               "  tectum graph -T html --compiled --costs robot.costs robot.lua > robot.html\n"
               "  tectum graph -T text --compiled pipelines/demo_metaworld.lua\n"
               "  tectum graph --roofline h200,orin --random-weights 1 --pictures 2 "
               "pipelines/pi05_libero.lua\n"
               "  tectum graph --list ops\n",
    .takes =
        TEC_TAKES_FORMAT | TEC_TAKES_SET | TEC_TAKES_POLICY | TEC_TAKES_MODEL | TEC_TAKES_PLANNED,
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .size = sizeof(struct graph_options),
    .min_args = 0,
    .max_args = 1,
    .args = "a pipeline file",
    .offers = "PIPELINE",
    .run = run,
};
