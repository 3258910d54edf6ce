/* cmd_check.c - every error of pipeline and policy files, located. */
#include "base/byte_text.h"
#include "base/escape.h"
#include "base/json_text.h"
#include "base/nearest.h"
#include "base/store/file.h"
#include "graph/load/pipeline_texts.h"
#include "graph/load/source.h"
#include "tools/api/topology.h"
#include "tools/cli/check_budget.h"
#include "tools/cli/check_memories.h"
#include "tools/cli/check_policies.h"
#include "tools/cli/expect.h"
#include "tools/cli/open_pipeline.h"
#include "tools/frames/ring_text.h"
#include "tools/measure/accuracy.h"
#include "tools/measure/costs_file.h"
#include "tools/measure/costs_settings.h"
#include "tools/measure/measure.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_DESCRIPTION = 1 << 20 };

struct check_options {
    bool strict, accuracy;
    const char *explain, *inputs;
    int frames;
    struct tec_seed random;
    double within;
};

#define AT(member) offsetof(struct check_options, member)
static const struct tec_option options[] = {
    {"strict", 0, TEC_OPTION_FLAG, NULL, "warnings are errors", AT(strict), 0, 0},
    {"explain", 0, TEC_OPTION_TEXT, "CODE", "what a code such as E026 means", AT(explain), 0, 0},
    {"accuracy", 0, TEC_OPTION_FLAG, NULL,
     "run a pipeline twice, as it says and in float32, and compare actions and texts", AT(accuracy),
     0, 0},
    {"inputs", 0, TEC_OPTION_TEXT, "FILE",
     "of --accuracy: observations, FILE.jsonl as for run or a recording FILE.mcap; drawn without",
     AT(inputs), 0, 0},
    {"random-inputs", 0, TEC_OPTION_SEED, "SEED", "of --accuracy: what is drawn; 1", AT(random), 0,
     0},
    {"frames", 'n', TEC_OPTION_INT, "N", "of --accuracy: at most N; all of FILE, 8 that are drawn",
     AT(frames), 1, INT_MAX},
    {"within", 0, TEC_OPTION_NUMBER, "X",
     "of --accuracy: exit code 1 where an action differs by more, in the robot's units", AT(within),
     1e-12, 1e9},
};

/* The place at the beginning of a message, "FILE:LINE: "; line 0 when there is none. *rest is what
 * follows it. */
static struct tec_where place_in(const char *message, const char **rest, struct tec_arena *arena)
{
    *rest = message;
    for (const char *at = strchr(message, ':'); at; at = strchr(at + 1, ':')) {
        char *end = NULL;
        long line = at[1] >= '0' && at[1] <= '9' ? strtol(at + 1, &end, 10) : 0;
        if (line < 1 || line >= 1 << 30 || !end || *end != ':')
            continue;
        *rest = end + 1 + strspn(end + 1, " ");
        return (struct tec_where){tec_arena_strndup(arena, message, (size_t)(at - message)),
                                  (int)line, 0, 0};
    }
    return (struct tec_where){NULL, 0, 0, 0};
}

static bool is_of(const struct tec_where *where, const char *file)
{
    return where->file && strcmp(where->file, file) == 0;
}

/* Is this one of the files that the pipeline was made of, or its command line? */
static bool is_its_file(const struct tec_pipeline *p, const char *file)
{
    bool is = strcmp(file, p->file) == 0 || strcmp(file, "--set") == 0 || is_of(&p->where, file) ||
              is_of(&p->capture.where, file);
    for (int i = 0; i < p->n_robots; i++)
        is |= is_of(&p->robots[i].where, file);
    for (int i = 0; i < p->n_models; i++)
        is |= is_of(&p->models[i].where_arch, file) || is_of(&p->models[i].where_weights, file) ||
              is_of(&p->models[i].where_adapter, file);
    for (int i = 0; i < p->n_inputs; i++)
        is |= is_of(&p->inputs[i].where, file) || is_of(&p->inputs[i].where_shape, file);
    for (int i = 0; i < p->n_resources; i++)
        is |= is_of(&p->resources[i].where, file) || is_of(&p->resources[i].where_size, file);
    for (int i = 0; i < p->n_nodes; i++)
        is |= is_of(&p->nodes[i].where, file) || is_of(&p->nodes[i].where_template, file);
    return is;
}

/* Is this the description of a model that is shipped? */
static bool is_description(const struct tec_invocation *call, const char *file)
{
    size_t n = strlen(call->root);
    static const char folder[] = "/pipelines/models/";
    return strncmp(file, call->root, n) == 0 && strncmp(file + n, folder, strlen(folder)) == 0;
}

/* The option that a word's message is about, "has no option 'KEY'" or "KEY must be ..."; "" = none.
 */
static const char *option_of(const char *message, struct tec_arena *arena)
{
    static const char unknown[] = "has no option '";
    bool quoted = strncmp(message, unknown, strlen(unknown)) == 0;
    const char *key = message + (quoted ? strlen(unknown) : 0);
    key = tec_arena_strndup(arena, key, strcspn(key, quoted ? "'" : " :"));
    return key ? key : "";
}

/* Shows the line of a description that a message "word: ..." is about, and the word in it, or the
 * option of the word. */
static void mark_word(struct tec_diagnostics *d, struct tec_where *where, const char *message,
                      struct tec_arena *arena)
{
    struct tec_source source = {.file = where->file};
    struct tec_error unread;
    uint64_t bytes = 0;
    int fd = -1;
    if (tec_path_open(where->file, &fd, &bytes, &unread) != TEC_OK)
        return;
    char *text = bytes <= MAX_DESCRIPTION ? TEC_NEW(arena, (size_t)bytes + 1, char) : NULL;
    size_t n = strcspn(message, ": ");
    const char *word = tec_arena_strndup(arena, message, n);
    bool read = text && tec_path_read(fd, where->file, 0, text, (size_t)bytes, &unread) == TEC_OK;
    close(fd);
    source.text = text;
    source.n = (size_t)bytes;
    if (!read || !word)
        return;
    tec_diagnostics_source(d, where->file, text, (size_t)bytes);
    if (!tec_source_lex(&source, arena))
        return;
    *where = tec_source_where_option(&source, where->line, word,
                                     option_of(message + n + strspn(message + n, ": "), arena));
    const char *quoted = strchr(message, '\''); /* a word that there is not */
    quoted = quoted ? tec_arena_strndup(arena, quoted + 1, strcspn(quoted + 1, "'")) : NULL;
    if (!where->col && quoted)
        *where = tec_source_where_name(&source, where->line, quoted);
}

/* A policy's failure as a diagnostic. */
static void report_policy(struct tec_diagnostics *d, const char *path, const char *message,
                          struct tec_arena *arena)
{
    const char *rest;
    struct tec_where where = place_in(message, &rest, arena);
    where.file = path;
    tec_diagnostics_add(d, TEC_E001, where, "%s", rest);
}

static enum tec_status check_policy_file(struct tec_invocation *call, const char *path,
                                         struct tec_diagnostics *d, struct tec_error *err)
{
    struct tec_topology topology;
    struct tec_policy *policy = NULL;
    struct tec_error mine = {0};
    const char *name = strchr(path, '/') ? path : tec_arena_printf(call->arena, "./%s", path);
    TEC_TRY(tec_cli_need_root(call, err));
    if (!name)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a path");
    tec_live_topology_sample(&topology);
    int64_t refused = atomic_load(&call->heap->refused);
    enum tec_status status =
        tec_policy_open(&policy, name, call->root, &topology, &(struct tec_policy_limits){0}, NULL,
                        0, call->heap, &mine);
    if (status == TEC_NO_MEMORY && atomic_load(&call->heap->refused) != refused)
        return tec_fail(err, status, "%s", mine.message);
    if (status != TEC_OK)
        report_policy(d, path, mine.message, call->arena);
    else if (call->shared.format == TEC_FORMAT_TEXT) {
        tec_escape_print(call->out, path);
        fprintf(call->out, ": ok  policy %s, version %d\n", tec_policy_name(policy),
                tec_policy_version(policy));
        for (int i = 0; tec_policy_param(policy, i); i++) {
            const struct tec_param *param = tec_policy_param(policy, i);
            fprintf(call->out, "  %s = %g, %g to %g\n", param->name, param->def, param->min,
                    param->max);
        }
    }
    tec_policy_close(policy);
    return TEC_OK;
}

/* The result of measuring: a sentence, and the numbers if they are known. */
struct plan_text {
    const char *text;
    bool known;
    struct tec_measured measured;
};

/* Report a pipeline without errors. */
static void say_ok(struct tec_invocation *call, const char *path, const struct tec_pipeline *p,
                   const struct plan_text *plan)
{
    int captures =
        plan->known && p->n_chains > 1 ? plan->measured.captures : tec_pipeline_captures(p);
    tec_escape_print(call->out, path);
    fputs(": ok  ", call->out);
    if (p->n_models > 1)
        fprintf(call->out, "%d models, ", p->n_models);
    fprintf(call->out, "%d input%s, %d resource%s, %d node%s, %d capture%s; %s\n", p->n_inputs,
            p->n_inputs == 1 ? "" : "s", p->n_resources, p->n_resources == 1 ? "" : "s", p->n_nodes,
            p->n_nodes == 1 ? "" : "s", captures, captures == 1 ? "" : "s",
            plan->text ? plan->text : "");
    for (int i = 0; plan->known && p->n_chains > 1 && i < plan->measured.parts; i++)
        if (plan->measured.slices[i])
            fprintf(call->out, "  %s in %d slices\n", plan->measured.part_names[i],
                    plan->measured.slices[i]);
    tec_frame_ring_text(p, plan->known ? &plan->measured : NULL, call->out);
}

/* Put the measured sizes into a sentence. */
static void say_plan(struct plan_text *plan, struct tec_invocation *call,
                     const struct tec_pipeline *pipeline, enum tec_measured_by by)
{
    const struct tec_measured *m = &plan->measured;
    bool absent = by == TEC_MEASURED_FULL;
    const char *unseen = !m->robot ? "not looked at: robot, inputs, template, statistics, tokenizer"
                         : absent  ? "not looked at: statistics, tokenizer"
                                   : NULL;
    char captures[24], budget[24];
    plan->known = true;
    plan->text = tec_arena_printf(
        call->arena, "captures take %s; device plan %s%s%s%s%s%s%s",
        tec_byte_text(captures, m->bytes.captures), tec_measure_text(&m->bytes, call->arena),
        pipeline->memory.device ? "; budget " : "",
        pipeline->memory.device ? tec_byte_text(budget, pipeline->memory.device) : "",
        tec_measure_host_text(m, pipeline, call->arena),
        absent   ? " (full size: the checkpoint is not here; "
        : unseen ? " ("
                 : "",
        unseen ? unseen : "", unseen ? ")" : "");
}

/* Is this where a robot is declared? What fails there is that it does not fit model or checkpoint.
 */
static bool is_robots(const struct tec_pipeline *p, const struct tec_where *where)
{
    for (int i = 0; i < p->n_robots; i++)
        if (is_of(&p->robots[i].where, where->file) && p->robots[i].where.line == where->line)
            return true;
    return false;
}

/* Judge why the pipeline could not be measured: an error of the file, or a file that is not here.
 */
static enum tec_status judge_failure(struct tec_invocation *call,
                                     const struct tec_pipeline *pipeline, enum tec_measured_by by,
                                     enum tec_status status, const char *message,
                                     struct tec_diagnostics *d, struct plan_text *plan,
                                     struct tec_error *err)
{
    const char *rest;
    struct tec_where where = place_in(message, &rest, call->arena);
    bool described = where.file && is_description(call, where.file);
    bool located = described || (where.file && is_its_file(pipeline, where.file));
    bool outside = status == TEC_DEVICE || status == TEC_NO_MEMORY || status == TEC_INVALID;
    if (!located && (call->shared.weights || call->shared.adapter || outside))
        return tec_fail(err, status, "%s", message);
    if (status == TEC_UNSUPPORTED && !located) {
        plan->text = tec_arena_printf(call->arena,
                                      "not measured: %s; not looked at: bytes, robot, inputs and "
                                      "template",
                                      message);
        return TEC_OK;
    }
    if (described)
        mark_word(d, &where, rest, call->arena);
    enum tec_code code = status == TEC_UNSUPPORTED                ? TEC_E070
                         : located && is_robots(pipeline, &where) ? TEC_E060
                                                                  : TEC_E011;
    struct tec_diagnostic *entry = tec_diagnostics_add(d, code, located ? where : pipeline->where,
                                                       "%s", located ? rest : message);
    const char *weights =
        pipeline->n_models ? pipeline->models[tec_pipeline_main(pipeline)].weights : NULL;
    if (by == TEC_MEASURED_FULL && status != TEC_NOT_FOUND)
        tec_diagnostics_help(
            d, entry,
            "the checkpoint '%.100s' is not here: this is the model's description; "
            "name one with --weights DIR",
            weights ? weights : "");
    return TEC_OK;
}

static enum tec_status measure(struct tec_invocation *call, const struct tec_pipeline *pipeline,
                               struct tec_diagnostics *d, struct plan_text *plan,
                               struct tec_error *err)
{
    struct tec_error mine = {0};
    enum tec_measured_by by = TEC_MEASURED_FULL;
    const struct tec_where *named = NULL;
    int64_t refused = atomic_load(&call->heap->refused);
    enum tec_status status = tec_measure_named(&named, call, pipeline, &mine);
    if (status != TEC_OK && status != TEC_NO_MEMORY) { /* what else does not fit follows from it */
        tec_diagnostics_add(d, TEC_E011, *named, "weights: %s", mine.message);
        return TEC_OK;
    }
    if (status == TEC_OK)
        status = tec_measure(&plan->measured, &by, call, pipeline, d, &mine);
    if (status == TEC_NO_MEMORY && atomic_load(&call->heap->refused) != refused)
        return tec_fail(err, status, "%s",
                        mine.message); /* the machine has none: no file is wrong */
    if (status != TEC_OK)
        return judge_failure(call, pipeline, by, status, mine.message, d, plan, err);
    say_plan(plan, call, pipeline, by);
    return TEC_OK;
}

static enum tec_status check_plan(struct tec_invocation *call, const struct tec_pipeline *pipeline,
                                  struct tec_diagnostics *d, struct plan_text *plan,
                                  struct tec_error *err)
{
    enum tec_status status = measure(call, pipeline, d, plan, err);
    if (status == TEC_OK && plan->known) {
        tec_cli_check_budget(d, pipeline, &plan->measured);
    }
    return status;
}

static enum tec_status judge_costs(struct tec_invocation *call, const struct tec_pipeline *pipeline,
                                   const struct tec_cost_table *costs, struct tec_diagnostics *d,
                                   struct tec_error *err)
{
    int *steps = TEC_NEW(call->arena, (size_t)pipeline->n_nodes + 1, int);
    if (!steps)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for steps");
    tec_measure_steps(steps, call, pipeline);
    tec_profile_costs_check(d, costs, pipeline, steps, call->shared.costs);
    tec_profile_costs_settings_check(d, costs, pipeline, call->shared.costs);
    return TEC_OK;
}

static enum tec_status check_pipeline(struct tec_invocation *call, const char *path,
                                      struct tec_diagnostics *d, struct tec_error *err)
{
    struct tec_pipeline *pipeline = NULL;
    enum tec_status status = tec_cli_load_pipeline(&pipeline, call, path, d, err);
    if (status != TEC_OK && status != TEC_NO_MEMORY && d->n_errors > 0)
        return TEC_OK;
    TEC_TRY(status);
    struct plan_text plan = {.known = false};
    const struct tec_cost_table *costs = NULL;
    status = tec_cli_check_policies(call, pipeline, d, err);
    if (status == TEC_OK)
        status = tec_cli_check_memories(call, pipeline, d, err);
    if (status == TEC_OK)
        status = check_plan(call, pipeline, d, &plan, err);
    if (status == TEC_OK)
        status = tec_profile_costs_open(&costs, call, pipeline, err);
    if (costs)
        status = judge_costs(call, pipeline, costs, d, err);
    if (status == TEC_OK && tec_json_refused())
        status = tec_fail(err, TEC_NO_MEMORY, "%s: no memory to check it", path);
    if (status == TEC_OK && d->n_errors == 0 && call->shared.format == TEC_FORMAT_TEXT)
        say_ok(call, path, pipeline, &plan);
    tec_pipeline_free(pipeline);
    return status;
}

/* Of a pipeline without errors: how far it is from float32. */
static enum tec_status compare(struct tec_invocation *call, const char *path, struct tec_error *err)
{
    const struct check_options *o = call->options;
    const struct tec_accuracy_options of = {path, o->inputs, o->frames,
                                            o->random.given ? o->random.value : 1};
    struct tec_accuracy found;
    TEC_TRY(tec_accuracy_run(&found, call, &of, call->arena, err));
    call->wrong |= o->within > 0.0 && !tec_accuracy_holds(&found, o->within);
    return tec_accuracy_print(&found, call, o->within, err);
}

static enum tec_status check_file(struct tec_invocation *call, const char *path,
                                  struct tec_error *err)
{
    static const enum tec_diagnostics_format formats[] = {
        [TEC_FORMAT_TEXT] = TEC_PRINT_TEXT,
        [TEC_FORMAT_JSON] = TEC_PRINT_JSON,
        [TEC_FORMAT_GITHUB] = TEC_PRINT_GITHUB,
    };
    const struct check_options *o = call->options;
    struct tec_diagnostics d;
    tec_diagnostics_init(&d, call->heap);
    enum tec_status status;
    if (tec_path_kind(path) == TEC_PATH_POLICY)
        status = check_policy_file(call, path, &d, err);
    else
        status = check_pipeline(call, path, &d, err);
    if (tec_json_refused() || d.out_of_memory) /* what was found then need not be so */
        status = tec_fail(err, TEC_NO_MEMORY, "%s: no memory to check it", path);
    tec_diagnostics_sort(&d);
    if (status != TEC_NO_MEMORY)
        tec_diagnostics_print(&d, formats[call->shared.format], call->out);
    bool wrong = d.n_errors > 0 || (o->strict && d.n_warnings > 0);
    call->wrong |= wrong;
    tec_diagnostics_finish(&d);
    if (status == TEC_OK && o->accuracy && !wrong)
        return compare(call, path, err);
    return status;
}

static enum tec_status explain(struct tec_invocation *call, const char *name, struct tec_error *err)
{
    enum tec_code code = tec_code_find(name);
    const char *names[TEC_CODES];
    for (int i = 0; i < TEC_CODES; i++)
        names[i] = tec_code_name((enum tec_code)i);
    const char *near = code == TEC_CODES ? tec_nearest(name, names, TEC_CODES) : NULL;
    if (code == TEC_CODES)
        return tec_fail(err, TEC_INVALID,
                        "--explain: no code is named '%.40s'; %s%s%sthey are %s to %s", name,
                        near ? "did you mean '" : "", near ? near : "", near ? "'? " : "",
                        tec_code_name(0), tec_code_name(TEC_CODES - 1));
    fprintf(call->out, "%s: %s\n", tec_code_name(code), tec_code_meaning(code));
    return TEC_OK;
}

static enum tec_status run(struct tec_invocation *call, struct tec_error *err)
{
    const struct check_options *o = call->options;
    enum tec_status worst = TEC_OK;
    if (o->explain)
        return explain(call, o->explain, err);
    const struct tec_shared *s = &call->shared;
    if (!o->accuracy && (o->inputs || o->frames || o->random.given || o->within > 0.0 ||
                         s->seed.given || s->spin_us >= 0 || s->patience_ms))
        return tec_fail(err, TEC_INVALID,
                        "--inputs, --random-inputs, --frames, --within, --seed, --spin-us, "
                        "--patience-ms: need --accuracy");
    if (o->inputs && o->random.given)
        return tec_fail(err, TEC_INVALID, "--inputs or --random-inputs");
    if (o->accuracy && (call->args.n != 1 || tec_path_kind(call->args.item[0]) == TEC_PATH_POLICY))
        return tec_fail(err, TEC_INVALID, "--accuracy: of one pipeline");
    if (call->args.n == 0)
        return tec_fail(err, TEC_INVALID, "a pipeline or policy file is missing: tectum %s",
                        tec_command_check.usage);
    for (int i = 0; i < call->args.n; i++) {
        struct tec_error mine = {0};
        enum tec_status status = check_file(call, call->args.item[i], &mine);
        if (status == TEC_OK)
            continue;
        if (worst != TEC_OK) /* every file is told of, the last one by the caller */
            tec_say(call, "%s", err->message);
        *err = mine;
        worst = status;
    }
    return worst;
}

const struct tec_command tec_command_check = {
    .usage = "check [options] FILE...",
    .about =
        "Every error of every file at once, each with its place and a code. Exit code 1 when\n"
        "there is any. FILE is a pipeline, a policy, or a folder as LeRobot saves it.\n"
        "With --accuracy a pipeline without errors is run over observations twice, as it says\n"
        "and with weights, keys and values in float32: for each element of an action the\n"
        "largest difference, the 99th percentile and rms in the robot's units, and the share of\n"
        "equal tokens. JSON: a line {accuracy: {frames, observed, actions [{node, chunks, rows,\n"
        "elements [{largest, p99, rms, low, high}]}], texts {compared, equal}, tokens\n"
        "{compared, equal, share}, alone}} behind those of check. The exit code is 0 whatever\n"
        "it finds, with --within X 1 where an action differs by more than X (without actions: a\n"
        "text); JSON has then bound {within, largest, holds}, largest null without actions.\n",
    .example =
        "  tectum check pipelines/pi05_aloha.lua policies/oxygen.lua\n"
        "  tectum check --costs robot.costs pipelines/pi05_aloha.lua\n"
        "  tectum check --set frame.period_ms=33 pipelines/pi05_aloha.lua\n"
        "  tectum check --explain E026\n"
        "  tectum check --accuracy --set model.quantize=int8 pipelines/demo_metaworld.lua \\\n"
        "    --inputs pipelines/checkpoints/metaworld/episodes/button.jsonl\n",
    .takes = TEC_TAKES_FORMAT | TEC_TAKES_GITHUB | TEC_TAKES_SET | TEC_TAKES_POLICY |
             TEC_TAKES_MODEL | TEC_TAKES_DEVICE | TEC_TAKES_COSTS | TEC_TAKES_SEED,
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .size = sizeof(struct check_options),
    .min_args = 0,
    .max_args = -1,
    .args = "a pipeline or policy file",
    .offers = "PIPELINE",
    .run = run,
};
