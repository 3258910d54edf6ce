/* cmd_inspect.c - what a checkpoint, a tokenizer or a safetensors file holds. */
#include "base/json_text.h"
#include "graph/encoder/directory.h"
#include "tools/cli/command.h"
#include "tools/cli/expect.h"
#include "tools/measure/inspect.h"

#include <string.h>

struct inspect_options {
    bool list;
    const char *model, *adapter, *embodiment;
};

#define AT(member) offsetof(struct inspect_options, member)
static const struct tec_option options[] = {
    {"list", 0, TEC_OPTION_FLAG, NULL, "every tensor: name, dtype, shape, bytes, file", AT(list), 0,
     0},
    {"model", 0, TEC_OPTION_TEXT, "NAME", "hold it against this model; recognised by itself",
     AT(model), 0, 0},
    {"adapter", 0, TEC_OPTION_TEXT, "DIR", "a LoRA adapter (PEFT) to hold against the checkpoint",
     AT(adapter), 0, 0},
    {"embodiment", 0, TEC_OPTION_TEXT, "TAG", "the robot, of a checkpoint that knows several",
     AT(embodiment), 0, 0},
};

/* What the folder of a sentence encoder says, and how many tokens a text may have by that and by
 * the model, where that is known. What contradicts it is a fact of the folder. */
static enum tec_status add_encoder(json_t *report, const struct tec_encoder_directory *d,
                                   const struct tec_text *text, struct tec_error *err)
{
    struct tec_error mine;
    int tokens = 0;
    enum tec_status status = tec_encoder_directory_limit(&tokens, d, text, &mine);
    json_t *facts = status == TEC_OK
                        ? json_pack("{s:i, s:i, s:b, s:s, s:s?}", "max_tokens", tokens, "width",
                                    d->width, "unit", d->unit, "pool",
                                    tec_encoder_pool_name(d->pool), "prompt", d->prompt)
                        : json_pack("{s:s}", "error", mine.message);
    return json_object_set_new(report, "encoder", facts) == 0
               ? TEC_OK
               : tec_fail(err, TEC_NO_MEMORY, "no memory for the report");
}

/* The report of the checkpoint includes the parts that its model names. `d`: of an encoder, or
 * NULL. */
static enum tec_status hold_against_model(struct tec_invocation *call, json_t *report,
                                          struct tec_checkpoint *c,
                                          const struct tec_encoder_directory *d,
                                          struct tec_error *err)
{
    const struct inspect_options *o = call->options;
    struct tec_model *model = NULL;
    struct tec_error mine = {0};
    TEC_TRY(tec_cli_need_root(call, err));
    struct tec_model_choice choice = {
        .root = tec_arena_printf(call->arena, "%s/pipelines/models", call->root),
        .arch = o->model,
        .checkpoint = c};
    if (o->embodiment)
        choice.overrides = json_pack("{s:s}", "embodiment", o->embodiment);
    if (!choice.root || (o->embodiment && !choice.overrides))
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a path and the robot's name");
    enum tec_status status = tec_model_open(&model, &choice, call->heap, &mine);
    json_decref(choice.overrides);
    enum tec_status own = tec_inspect_checkpoint(report, c, o->list, call->arena, err);
    if (status == TEC_OK) {
        status = own == TEC_OK ? tec_inspect_model(report, c, model, call->arena, err) : own;
        if (status == TEC_OK && d)
            status = add_encoder(report, d, &model->text, err);
        tec_model_close(model);
    } else if (own != TEC_OK) {
        return own;
    } else if (o->model || status == TEC_NO_MEMORY) {
        return tec_fail(err, status, "%s", mine.message);
    } else {
        json_object_set_new(report, "note",
                            json_string(c->layout == TEC_LAYOUT_FILE
                                            ? "no model description recognises it"
                                            : mine.message));
        status = TEC_OK; /* an unknown model is a fact of the file */
    }
    return status;
}

static enum tec_status inspect_checkpoint(struct tec_invocation *call, json_t *report,
                                          const char *path, const struct tec_encoder_directory *d,
                                          struct tec_error *err)
{
    struct tec_checkpoint *c = NULL;
    const struct inspect_options *o = call->options;
    const struct tec_checkpoint_source from = {
        .path = path, .adapter = o->adapter, .hub = call->hub, .robot = o->embodiment};
    TEC_TRY(tec_checkpoint_open_source(&c, &from, call->heap, err));
    enum tec_status status = hold_against_model(call, report, c, d, err);
    tec_checkpoint_close(c);
    return status;
}

/* A sentence encoder: what its modules say, and its checkpoint. Modules that do not run here are a
 * fact of the folder. */
static enum tec_status inspect_encoder(struct tec_invocation *call, json_t *report,
                                       const char *path, struct tec_error *err)
{
    struct tec_encoder_directory d;
    struct tec_error mine;
    enum tec_status status = tec_encoder_directory_read(&d, path, call->heap, call->arena, &mine);
    if (status == TEC_OK) {
        TEC_TRY(add_encoder(report, &d, NULL, err));
        return inspect_checkpoint(call, report, d.checkpoint, &d, err);
    }
    if (json_object_set_new(report, "encoder", json_pack("{s:s}", "error", mine.message)) != 0)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for the report");
    return inspect_checkpoint(call, report, path, NULL, err);
}

/* vocab.json and vocab.txt are tokenizers by their name alone. */
static bool is_vocabulary(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    return strcmp(name, "vocab.json") == 0 || strcmp(name, "vocab.txt") == 0;
}

static enum tec_status inspect(struct tec_invocation *call, json_t *report, const char *path,
                               struct tec_error *err)
{
    enum tec_path_kind kind = tec_path_kind(path);
    if (tec_encoder_directory_is(path))
        return inspect_encoder(call, report, path, err);
    if (kind == TEC_PATH_CHECKPOINT || kind == TEC_PATH_SAFETENSORS)
        return inspect_checkpoint(call, report, path, NULL, err);
    if (kind == TEC_PATH_TOKENIZER || (kind == TEC_PATH_UNKNOWN && is_vocabulary(path)))
        return tec_inspect_tokenizer_alone(report, path, call->heap, err);
    if (kind == TEC_PATH_MEMORY)
        return tec_inspect_memory(report, path, call->heap, call->arena, err);
    return tec_expect(path, "a checkpoint, tokenizer or safetensors file", err);
}

static enum tec_status run(struct tec_invocation *call, struct tec_error *err)
{
    json_t *report = json_object();
    if (!report)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for the report");
    int64_t refused = atomic_load(&call->heap->refused);
    enum tec_status status = inspect(call, report, call->args.item[0], err);
    bool whole = !tec_json_refused() && atomic_load(&call->heap->refused) == refused;
    if (status == TEC_OK && !whole) /* it would lack what could not be read */
        status = tec_fail(err, TEC_NO_MEMORY, "no memory for the report");
    if (status == TEC_OK && call->shared.format == TEC_FORMAT_JSON)
        status = tec_json_print(call->out, report, JSON_COMPACT, "the report", err);
    else if (status == TEC_OK)
        tec_inspect_print(report, call->out);
    json_decref(report);
    return status;
}

const struct tec_command tec_command_inspect = {
    .usage = "inspect [options] PATH",
    .about = "PATH is a checkpoint (openpi, lerobot or hf layout), a sentence encoder, a\n"
             ".safetensors file, a tokenizer or a memory's store. Only headers are read, of a "
             "store its\n"
             "texts, too. The hash covers headers and sizes.\n",
    .example = "  tectum inspect tests/golden/demo/episodes/checkpoint\n",
    .takes = TEC_TAKES_FORMAT,
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .size = sizeof(struct inspect_options),
    .min_args = 1,
    .max_args = 1,
    .args = "a checkpoint, tokenizer or safetensors file",
    .offers = "FILE",
    .run = run,
};
