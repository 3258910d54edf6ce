/* cmd_expand.c - the canonical JSON form of a pipeline file. */
#include "base/json_text.h"
#include "tools/cli/open_pipeline.h"

struct expand_options {
    bool compact;
};

static const struct tec_option options[] = {
    {"compact", 0, TEC_OPTION_FLAG, NULL, "on one line", offsetof(struct expand_options, compact),
     0, 0},
};

static enum tec_status run(struct tec_invocation *call, struct tec_error *err)
{
    const struct expand_options *o = call->options;
    struct tec_pipeline *pipeline = NULL;
    json_t *form = NULL;
    TEC_TRY(tec_cli_open_pipeline(&pipeline, call, call->args.item[0], true, err));
    enum tec_status status = tec_pipeline_expand(&form, pipeline, err);
    if (status == TEC_OK) {
        status = tec_json_print(call->out, form, o->compact ? JSON_COMPACT : JSON_INDENT(2),
                                "the form", err);
        json_decref(form);
    }
    tec_pipeline_free(pipeline);
    return status;
}

const struct tec_command tec_command_expand = {
    .usage = "expand [options] FILE",
    .about =
        "Defaults are filled in, overlays and --set applied, the robot inlined. check and run\n"
        "accept the form in place of the file.\n",
    .example = "  tectum expand pipelines/pi05_aloha.lua > pi05_aloha.json\n",
    .takes = TEC_TAKES_FORMAT | TEC_TAKES_SET,
    .format = TEC_FORMAT_JSON,
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .size = sizeof(struct expand_options),
    .min_args = 1,
    .max_args = 1,
    .args = "a pipeline file",
    .offers = "PIPELINE",
    .run = run,
};
