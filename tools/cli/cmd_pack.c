/* cmd_pack.c - packed weights written ahead into the file that later starts map. */
#include "tools/cli/open_engine.h"

#include <stddef.h>

struct pack_options {
    int dtype;
    const char *out;
};

#define AT(member) offsetof(struct pack_options, member)

static const struct tec_option options[] = {
    {"dtype", 0, TEC_OPTION_WORD, "pipeline|bf16|f32",
     "what weights are rounded to; as the pipeline says", AT(dtype), 0, 0},
    {"out", 'o', TEC_OPTION_TEXT, "DIR", "the file's folder: what --weights-cache DIR says, too",
     AT(out), 0, 0},
};

static enum tec_status pack(struct tec_opened *opened, struct tec_engine_options *engine,
                            struct tec_invocation *call, struct tec_error *err)
{
    int models = 0;
    if (!engine->weight_cache || engine->random)
        return tec_fail(err, TEC_INVALID, "%s: there would be no file",
                        engine->random ? "--random-weights" : "--weights-cache off");
    TEC_TRY(tec_opened_status(tec_engine_pack(&models, engine, call->heap, err)));
    if (opened->kept < models)
        return tec_fail(err, TEC_IO, "of %d models %d have their file now", models, opened->kept);
    return TEC_OK;
}

static enum tec_status run(struct tec_invocation *call, struct tec_error *err)
{
    static const char *const dtypes[] = {NULL, "bf16", "f32"};
    const struct pack_options *o = call->options;
    const struct tec_engine_options more = {.dtype = dtypes[o->dtype]};
    struct tec_engine_options engine;
    struct tec_opened opened;
    if (o->out && call->shared.weights_cache)
        return tec_fail(err, TEC_INVALID, "--out or --weights-cache: both name the file's folder");
    if (o->out)
        call->shared.weights_cache = o->out;
    if (!call->shared.weights_cache)
        call->shared.weights_cache = "auto";
    TEC_TRY(tec_cli_open_options(&opened, &engine, call, call->args.item[0], &more, err));
    enum tec_status status = pack(&opened, &engine, call, err);
    if (call->progress)
        fputs("\r\033[K", stderr);
    tec_close_engine(&opened);
    return status;
}

const struct tec_command tec_command_pack = {
    .usage = "pack [options] FILE",
    .about =
        "FILE is a pipeline, or a checkpoint folder. Reads its models' checkpoints and writes "
        "their\n"
        "weights in the form that this machine's kernels read (tectum-*.weights): beside the\n"
        "checkpoint, or where that folder cannot be written to in XDG_CACHE_HOME/tectum. run, "
        "serve,\n"
        "bench, profile and replay use such a file where it lies there, on the CPU in place, and\n"
        "give the same bytes as without. It is as large as the weights; --device, --tier, --dtype\n"
        "and the pipeline's --set must be those of the later runs. A file that fits is only "
        "checked.\n",
    .example = "  tectum pack pipelines/pi05_libero.lua --weights my_checkpoint\n"
               "  tectum pack my_lerobot_folder --weights-cache /var/cache/robot\n",
    .takes = TEC_TAKES_PLANNED | TEC_TAKES_MODEL | TEC_TAKES_CACHE | TEC_TAKES_SET,
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .size = sizeof(struct pack_options),
    .min_args = 1,
    .max_args = 1,
    .args = "a pipeline file",
    .offers = "PIPELINE",
    .run = run,
};
