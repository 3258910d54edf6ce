/* open_pipeline.c - loads the pipeline file of a verb, with --set applied. */
#include "tools/cli/open_pipeline.h"

#include "base/json_text.h"
#include "tools/cli/expect.h"

static enum tec_status load(struct tec_pipeline **out, struct tec_invocation *call,
                            const char *path, bool any, struct tec_diagnostics *d,
                            struct tec_error *err)
{
    TEC_TRY(tec_expect_pipeline(path, err));
    TEC_TRY(tec_cli_need_root(call, err));
    struct tec_load_options options = {
        .path = path,
        .shown = call->shown,
        .any = any,
        .adapter = call->shared.adapter,
        .hub = call->hub,
        .bare = call->shared.random_weights.given,
        .root = tec_arena_printf(call->arena, "%s/pipelines", call->root),
        .set = call->shared.set.item,
        .n_set = call->shared.set.n,
        .embodiment = call->shared.embodiment};
    if (!options.root)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a path");
    enum tec_status status = tec_pipeline_load(out, &options, call->heap, d, err);
    if (status == TEC_NO_MEMORY || (!tec_json_refused() && !d->out_of_memory))
        return status;
    if (status == TEC_OK) {
        tec_pipeline_free(*out); /* it may be incomplete: memory was refused */
        *out = NULL;
    }
    return tec_fail(err, TEC_NO_MEMORY, "%s: no memory to read it", path);
}

enum tec_status tec_cli_load_pipeline(struct tec_pipeline **out, struct tec_invocation *call,
                                      const char *path, struct tec_diagnostics *d,
                                      struct tec_error *err)
{
    return load(out, call, path, false, d, err);
}

enum tec_status tec_cli_open_pipeline(struct tec_pipeline **out, struct tec_invocation *call,
                                      const char *path, bool any, struct tec_error *err)
{
    struct tec_diagnostics d;
    tec_diagnostics_init(&d, call->heap);
    enum tec_status status = load(out, call, path, any, &d, err);
    tec_diagnostics_finish(&d);
    return status;
}
