/* cmd_init.c - the pipeline that a checkpoint describes, as a file to edit. */
#include "base/out_file.h"
#include "base/store/kind.h"
#include "graph/load/derive.h"
#include "tools/cli/command.h"
#include "tools/cli/expect.h"

#include <unistd.h>

struct init_options {
    const char *out, *embodiment;
    struct tec_seed random;
};

static const struct tec_option options[] = {
    {"out", 'o', TEC_OPTION_TEXT, "FILE", "write to this file, which must not be there yet",
     offsetof(struct init_options, out), 0, 0},
    {"embodiment", 0, TEC_OPTION_TEXT, "TAG", "the robot, of a checkpoint that knows several",
     offsetof(struct init_options, embodiment), 0, 0},
    {"random-weights", 0, TEC_OPTION_SEED, "SEED",
     "the folder may lack its weights, for runs with the same option",
     offsetof(struct init_options, random), 0, 0},
};

static enum tec_status derive(struct tec_invocation *call, const char *path, const char **text,
                              size_t *n, struct tec_error *err)
{
    const char *root = tec_arena_printf(call->arena, "%s/pipelines", call->root);
    struct tec_diagnostics d;
    if (!root)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a path");
    tec_diagnostics_init(&d, call->heap);
    const struct init_options *o = call->options;
    const struct tec_checkpoint_source from = {
        .path = path, .hub = call->hub, .robot = o->embodiment, .bare = o->random.given};
    enum tec_status status = tec_pipeline_derive(text, n, &from, root, call->arena, &d, err);
    if (status != TEC_NO_MEMORY)
        tec_diagnostics_print(&d, TEC_PRINT_TEXT, stderr);
    tec_diagnostics_finish(&d);
    return status;
}

/* A file that is there may hold somebody's changes. */
static enum tec_status write_file(const char *path, const char *text, size_t n,
                                  struct tec_error *err)
{
    if (access(path, F_OK) == 0)
        return tec_fail(err, TEC_IO, "%s: is there already, and may have been edited: name another",
                        path);
    return tec_outfile_file_write(path, text, n, err);
}

static enum tec_status run(struct tec_invocation *call, struct tec_error *err)
{
    const struct init_options *o = call->options;
    const char *path = call->args.item[0], *text = NULL;
    size_t n = 0;
    if (tec_path_kind(path) != TEC_PATH_CHECKPOINT)
        return tec_expect(path, "a checkpoint folder", err);
    TEC_TRY(tec_cli_need_root(call, err));
    TEC_TRY(derive(call, path, &text, &n, err));
    if (o->out)
        return write_file(o->out, text, n, err);
    fwrite(text, 1, n, call->out); /* the stream knows whether it could */
    return TEC_OK;
}

const struct tec_command tec_command_init = {
    .usage = "init [options] CHECKPOINT",
    .about =
        "CHECKPOINT is a folder as LeRobot saves it, or one with experiment_cfg/metadata.json.\n"
        "run, serve, check and graph take the folder too, and do with it what they do with\n"
        "this file.\n",
    .example = "  tectum init my_checkpoint -o my_robot.lua\n"
               "  tectum init tests/golden/pi/pi05_odd_lerobot/checkpoint\n",
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .size = sizeof(struct init_options),
    .min_args = 1,
    .max_args = 1,
    .args = "a checkpoint folder",
    .offers = "DIR",
    .run = run,
};
