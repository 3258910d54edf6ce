/* cmd_profile.c - what every variant of a pipeline costs, into a file that others start from. */
#include "base/json_text.h"
#include "base/out_file.h"
#include "tools/measure/machine.h"
#include "tools/measure/profile_ops.h"
#include "tools/record/flight_source.h"
#include "tools/record/waiting.h"

enum { MAX_FRAMES = 1000000 };

struct profile_options {
    const char *out, *flame, *csv;
    int frames, rounds, prompt, dtype;
    bool ops, layers, waiting;
};

#define AT(member) offsetof(struct profile_options, member)
static const struct tec_option options[] = {
    {"frames", 'n', TEC_OPTION_INT, "N", "samples of each variant; 300", AT(frames), 1, MAX_FRAMES},
    {"rounds", 0, TEC_OPTION_INT, "N", "that they are taken in, and compared; 3", AT(rounds), 1,
     1000},
    {"prompt-tokens", 0, TEC_OPTION_INT, "N", "of the observation; as many as fit", AT(prompt), 1,
     4096},
    {"dtype", 0, TEC_OPTION_WORD, "pipeline|bf16|f32",
     "what weights and caches are rounded to; as the pipeline says", AT(dtype), 0, 0},
    {"ops", 0, TEC_OPTION_FLAG, NULL, "where the time of each launch goes, op by op", AT(ops), 0,
     0},
    {"layers", 0, TEC_OPTION_FLAG, NULL, "the same by layer; with --ops by both", AT(layers), 0, 0},
    {"flame", 0, TEC_OPTION_TEXT, "FILE.svg", "a flame graph of ops in layers in nodes", AT(flame),
     0, 0},
    {"csv", 0, TEC_OPTION_TEXT, "FILE.csv", "the times of ops or layers as a table", AT(csv), 0, 0},
    {"waiting", 0, TEC_OPTION_FLAG, NULL,
     "of a recording: what nodes waited for while they did not run", AT(waiting), 0, 0},
    {"out", 'o', TEC_OPTION_TEXT, "FILE.costs", "the measured costs, whole or not at all", AT(out),
     0, 0},
};

static enum tec_status write_costs(const struct tec_profile *p, const char *path,
                                   struct tec_error *err)
{
    struct tec_out_file out = {.file = NULL};
    json_t *costs = tec_profile_costs(p);
    enum tec_status status = tec_outfile_file_open(&out, path, err);
    if (status == TEC_OK) {
        status =
            tec_json_print(out.file, costs, JSON_INDENT(1) | JSON_REAL_PRECISION(9), "costs", err);
    }
    if (status == TEC_OK)
        status = tec_outfile_file_keep(&out, err);
    tec_outfile_file_drop(&out);
    json_decref(costs);
    return status;
}

static enum tec_status report(const struct tec_profile *p, const char *path, struct tec_error *err)
{
    if (path)
        TEC_TRY(write_costs(p, path, err));
    if (p->call->shared.format == TEC_FORMAT_JSON) {
        json_t *json = tec_profile_json(p);
        enum tec_status status = tec_json_print(
            p->call->out, json, JSON_INDENT(1) | JSON_REAL_PRECISION(9), "a report", err);
        json_decref(json);
        return status;
    }
    tec_profile_print(p, p->call->out);
    if (path)
        fprintf(p->call->out, "wrote %s (%d variants)\n", path, p->n_variants);
    return TEC_OK;
}

/* --- ops and layers ------------------------------------------------------------------------- */

static enum tec_status write_flame(struct tec_profile *p, const char *path, struct tec_error *err)
{
    const struct tec_profile_ops_options both = {.both = true, .passes = p->rounds};
    struct tec_profiled_ops *ops = TEC_NEW(p->call->arena, 1, struct tec_profiled_ops);
    const char *text = NULL;
    char title[160];
    size_t n = 0;
    if (!ops)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a flame graph");
    TEC_TRY(tec_profile_time_ops(ops, p, &both, err));
    snprintf(title, sizeof title, "%.80s: %.2f ms a launch of each part", p->opened.pipeline->name,
             ops->sum_us / 1e3);
    TEC_TRY(tec_profile_flame(ops, title, &text, &n, p->call->arena, err));
    return tec_context(err, tec_outfile_file_write(path, text, n, err), "--flame");
}

static enum tec_status write_csv(const struct tec_profiled_ops *ops, const char *path,
                                 struct tec_error *err)
{
    struct tec_out_file out = {.file = NULL};
    TEC_TRY(tec_context(err, tec_outfile_file_open(&out, path, err), "--csv"));
    tec_profile_ops_csv(ops, out.file);
    enum tec_status status = tec_outfile_file_keep(&out, err);
    tec_outfile_file_drop(&out);
    return status;
}

static enum tec_status profile_ops(struct tec_profile *p, const struct profile_options *o,
                                   struct tec_error *err)
{
    const struct tec_profile_ops_options how = {
        .layers = o->layers && !o->ops, .both = o->layers && o->ops, .passes = p->rounds};
    struct tec_profiled_ops *ops = TEC_NEW(p->call->arena, 1, struct tec_profiled_ops);
    if (!ops)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for the times of ops");
    TEC_TRY(tec_profile_time_ops(ops, p, &how, err));
    if (o->flame)
        TEC_TRY(write_flame(p, o->flame, err));
    if (o->csv)
        TEC_TRY(write_csv(ops, o->csv, err));
    if (p->call->shared.format == TEC_FORMAT_TEXT) {
        tec_profile_print_ops(ops, p->call->out);
        return TEC_OK;
    }
    json_t *json = tec_profile_ops_json(ops);
    enum tec_status status =
        tec_json_print(p->call->out, json, JSON_INDENT(1) | JSON_REAL_PRECISION(9), "times", err);
    json_decref(json);
    return status;
}

static enum tec_status profile(struct tec_profile *p, const struct profile_options *o,
                               struct tec_error *err)
{
    static const char *const dtypes[] = {NULL, "bf16", "f32"};
    const struct tec_engine_options more = {
        .dtype = dtypes[o->dtype], .saturated = true, .forgets = true};
    const struct tec_seed *seed = &p->call->shared.seed;
    TEC_TRY(tec_cli_open_engine(&p->opened, p->call, p->call->args.item[0], &more, err));
    TEC_TRY(tec_profile_prepare(p, seed->given ? seed->value : 1, err));
    if (o->ops || o->layers || o->flame || o->csv)
        return profile_ops(p, o, err);
    p->load_before = tec_machine_load();
    tec_profile_run(p);
    p->load_after = tec_machine_load();
    return report(p, o->out, err);
}

/* --- a recording ------------------------------------------------------------------------------ */

static enum tec_status report_waiting(struct tec_invocation *call, struct tec_error *err)
{
    struct tec_flight f;
    struct tec_waiting w;
    TEC_TRY(tec_flight_of_call(&f, call, NULL, 0.0, err));
    enum tec_status status = tec_waiting_of(&w, &f, err);
    if (status == TEC_OK && call->shared.format == TEC_FORMAT_TEXT) {
        tec_waiting_print(call->out, &f, &w);
    } else if (status == TEC_OK) {
        json_t *json = tec_waiting_json(&f, &w);
        status = tec_json_print(call->out, json, JSON_INDENT(1) | JSON_REAL_PRECISION(12),
                                "the times of nodes", err);
        json_decref(json);
    }
    tec_flight_close(&f);
    return status;
}

static enum tec_status run(struct tec_invocation *call, struct tec_error *err)
{
    const struct profile_options *o = call->options;
    if (o->waiting && (o->ops || o->layers || o->flame || o->csv || o->out || o->frames ||
                       o->rounds || o->prompt))
        return tec_fail(err, TEC_INVALID, "--waiting reads a recording and measures nothing");
    if (o->waiting)
        return report_waiting(call, err);
    struct tec_profile *p = TEC_NEW(call->arena, 1, struct tec_profile);
    if (!p)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a measurement");
    p->call = call;
    p->frames = o->frames ? o->frames : 300;
    bool ops = o->ops || o->layers || o->flame || o->csv;
    p->rounds = o->rounds ? o->rounds : ops ? 9 : 3;
    p->rounds = p->rounds < p->frames ? p->rounds : p->frames;
    p->prompt_tokens = o->prompt;
    if (ops && (o->out || o->frames))
        return tec_fail(err, TEC_INVALID,
                        "--ops, --layers, --flame, --csv time calls, not variants: without %s",
                        o->out ? "--out" : "--frames");
    enum tec_status status = profile(p, o, err);
    tec_profile_finish_memories(p);
    tec_energy_card_close(&p->card);
    tec_close_engine(&p->opened);
    return status;
}

const struct tec_command tec_command_profile = {
    .usage = "profile [options] FILE | profile --waiting FILE.mcap",
    .about =
        "Every variant of the pipeline on this machine: prefill and action, a private "
        "prefill, one\n"
        "decode step at each captured batch (the captured k take turns); of a ring its "
        "launches\n"
        "with each number of rows, and its copies; of a memory the recall of a prompt at each\n"
        "captured ratio, and a launch of what is to be kept. Variants take turns, with\n"
        "all cameras and the longest prompt. run, bench, serve and check take the file with\n"
        "--costs; simulate runs on it. Where joules are counted, JSON has energy of a turn.\n"
        "With --ops or --layers the calls of each launch are timed one by one instead, --rounds\n"
        "times (9): a table, or JSON {ops [{node, part, stage, op, layer, calls, us, share, "
        "gflops,\n"
        "gbs, of_roof, roof_us}], parts [{part, launch_us, sum_us}], frame_us, sum_us, roof}.\n"
        "of_roof is the least time at the rates measured in the same run over the time taken.\n"
        "On a GPU its own clock times them: calls that are one kernel have the first one's time, "
        "the\n"
        "others 0, and no roof is measured.\n"
        "With --waiting FILE.mcap is a recording, or a dump of the flight recorder: of each "
        "node's\n"
        "time how much it ran, another node did, and nothing did because inputs were late, for "
        "the\n"
        "host's sake (a frame is due or open), or because there was no work. JSON {span_us, "
        "frames,\n"
        "machine, nodes [{node, runs_us, other_node_us, input_us, host_us, no_work_us}]}.\n",
    .example = "  tectum profile pipelines/demo_metaworld.lua -o robot.costs\n"
               "  tectum check pipelines/demo_metaworld.lua --costs robot.costs\n"
               "  tectum profile pipelines/pi05_droid.lua --random-weights 1 --frames 20\n"
               "  tectum profile pipelines/demo_metaworld.lua --ops --flame demo.svg\n"
               "  tectum profile --waiting robot.mcap\n",
    .takes = TEC_TAKES_FORMAT | TEC_TAKES_DEVICE | TEC_TAKES_MODEL | TEC_TAKES_SET |
             TEC_TAKES_CACHE | TEC_TAKES_SEED,
    .format = TEC_FORMAT_TEXT,
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .size = sizeof(struct profile_options),
    .min_args = 1,
    .max_args = 1,
    .args = "a pipeline file, or with --waiting a recording",
    .offers = "PIPELINE|FILE.mcap",
    .run = run,
};
