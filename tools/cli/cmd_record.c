/* cmd_record.c - frames run, and all that came in, was decided and left kept in a recording. */
#include "tools/cli/run.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const struct tec_option options[] = {TEC_RUN_ROWS};

/* "robot.mcap" of "pipelines/robot.lua", "so100.mcap" of the folder "checkpoints/so100/"; NULL
 * without memory. */
static const char *name_of(const struct tec_invocation *call)
{
    static const char *const endings[] = {".lua", ".json"};
    const char *path = call->args.item[0];
    char *folder = strcmp(path, ".") == 0 || strcmp(path, "..") == 0 ? realpath(path, NULL) : NULL;
    if (folder)
        path = tec_arena_strdup(call->arena, folder);
    free(folder);
    if (!path)
        return NULL;
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/')
        end--;
    size_t begin = end;
    while (begin > 0 && path[begin - 1] != '/')
        begin--;
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        size_t n = strlen(endings[i]);
        if (end - begin > n && strncmp(path + end - n, endings[i], n) == 0)
            end -= n;
    }
    return tec_arena_printf(call->arena, "%.*s.mcap", (int)(end - begin), path + begin);
}

static enum tec_status run(struct tec_invocation *call, struct tec_error *err)
{
    struct tec_run_options *o = call->options;
    struct stat there;
    bool named = o->seen.file != NULL;
    if (!named)
        o->seen.file = name_of(call);
    if (!o->seen.file)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for the name of a recording");
    if (!named && lstat(o->seen.file, &there) == 0)
        return tec_fail(err, TEC_INVALID, "%s is there already; name the recording with --record",
                        o->seen.file);
    TEC_TRY(tec_cli_run(call, err));
    if (stat(o->seen.file, &there) == 0)
        tec_say(call, "%s: %.1f MiB; `tectum replay %s` runs it again", o->seen.file,
                (double)there.st_size / (1 << 20), o->seen.file);
    return TEC_OK;
}

const struct tec_command tec_command_record = {
    .usage = "record [options] FILE",
    .about =
        "Runs the pipeline FILE as `run` does, with its options and its output, and keeps inputs,\n"
        "arrivals, decisions and results in a recording: --record FILE.mcap, or without it one of\n"
        "FILE's name in the current folder, which must not be there yet. Inputs are given as\n"
        "`run --help` says. `replay` runs it again, `explain`, `trace` and `top` read it. A server "
        "is recorded by `serve --record`.\n",
    .example = "  tectum record pipelines/demo_metaworld.lua --random-inputs 1 -n 20\n"
               "  tectum replay demo_metaworld.mcap --policy isolated --diff\n",
    .takes = TEC_RUN_TAKES,
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .size = sizeof(struct tec_run_options),
    .min_args = 1,
    .max_args = 1,
    .args = "a pipeline file",
    .offers = "PIPELINE",
    .run = run,
};
