/* open_engine.c - opens what a verb that runs frames works with: the pipeline, the engine, the
 * policy with its fallback, and a canary. */
#include "tools/cli/open_engine.h"

#include "base/json_text.h"
#include "base/thread.h"
#include "graph/load/pipeline_texts.h"
#include "tools/api/topology.h"
#include "tools/measure/costs_file.h"
#include "tools/measure/costs_settings.h"

#include <string.h>

/* Load the pipeline; print what is wrong with the file, and if asked what it is warned of, as
 * `check` does, but on stderr. */
static enum tec_status load(struct tec_opened *out, const char *path, bool warns,
                            struct tec_error *err)
{
    struct tec_diagnostics d;
    tec_diagnostics_init(&d, out->call->heap);
    enum tec_status status = tec_cli_load_pipeline(&out->pipeline, out->call, path, &d, err);
    if (status == TEC_OK && warns) {
        tec_pipeline_check_policy(out->pipeline, out->call->shared.policy, &d);
        tec_pipeline_check_dtype(out->pipeline, out->more.dtype, &d);
    }
    if (status != TEC_OK ? d.n_errors > 0 : warns)
        tec_diagnostics_print(&d, TEC_PRINT_TEXT, stderr);
    tec_diagnostics_finish(&d);
    return status;
}

enum tec_status tec_opened_status(enum tec_status status)
{
    return status == TEC_INVALID ? TEC_MALFORMED : status;
}

static void show_progress(void *user, const char *what, int64_t done, int64_t total)
{
    const struct tec_opened *o = user;
    if (!o->call->progress)
        return;
    if (total > 1)
        fprintf(stderr, "\r\033[K%s: %s %3.0f %%", o->call->verb, what,
                100.0 * (double)done / (double)total);
    else
        fprintf(stderr, "\r\033[K%s: %s", o->call->verb, what);
    fflush(stderr);
}

static void say_trouble(void *user, const char *line)
{
    const struct tec_opened *o = user;
    tec_say(o->call, "%s", line);
}

static void pass_release(void *user, int action, const float *chunk,
                         const struct tec_frame_record *record)
{
    const struct tec_opened *o = user;
    o->more.released(o->more.user, action, chunk, record);
}

static void pass_loss(void *user, int session, int64_t seen, int64_t captured_ns)
{
    const struct tec_opened *o = user;
    o->more.lost(o->more.user, session, seen, captured_ns);
}

static enum tec_status pass_prepared(void *user, struct tec_session *session, struct tec_error *err)
{
    struct tec_opened *o = user;
    enum tec_status status = o->more.prepared(o->more.prepared_user, session, err);
    o->unprepared = status != TEC_OK;
    return status;
}

/* Without the option files that are there are used, and none is made: one has the size of the
 * model. */
static const struct tec_weight_cache *cache_of(struct tec_opened *o)
{
    const char *word = o->call->shared.weights_cache;
    bool automatic = word && strcmp(word, "auto") == 0;
    if (word && strcmp(word, "off") == 0)
        return NULL;
    o->cache = (struct tec_weight_cache){.written = word != NULL,
                                         .folder = automatic ? NULL : word,
                                         .user = o->call->cache,
                                         .program = TECTUM_VERSION,
                                         .say = say_trouble,
                                         .self = o,
                                         .fits = &o->kept};
    return &o->cache;
}

/* The seed of the noise; random weights have a seed of their own, which is then used for the noise
 * too. */
static uint64_t seed_of(const struct tec_shared *s, const struct tec_pipeline *p)
{
    if (s->random_weights.given)
        return s->random_weights.value;
    return s->seed.given ? s->seed.value : (uint64_t)p->seed;
}

static enum tec_status open_options(struct tec_opened *out, struct tec_engine_options *options,
                                    struct tec_invocation *call, const char *path,
                                    const struct tec_engine_options *more, bool warns,
                                    struct tec_error *err)
{
    const struct tec_shared *s = &call->shared;
    *out = (struct tec_opened){.call = call};
    if (more)
        out->more = *more;
    TEC_TRY(tec_thread_check_first(err)); /* kernels run on it */
    TEC_TRY(load(out, path, warns, err));
    *options = (struct tec_engine_options){.pipeline = out->pipeline,
                                           .root = call->root,
                                           .weights = s->weights,
                                           .adapter = s->adapter,
                                           .random = s->random_weights.given,
                                           .seed = seed_of(s, out->pipeline),
                                           .size = tec_shared_size(s),
                                           .dtype = out->more.dtype,
                                           .exact = out->more.exact,
                                           .tokenizer = s->tokenizer,
                                           .hub = call->hub,
                                           .weight_cache = cache_of(out),
                                           .forgets = out->more.forgets,
                                           .starts = out->more.starts,
                                           .n_starts = out->more.n_starts,
                                           .saturated = out->more.saturated,
                                           .actions = out->more.actions,
                                           .settles = out->more.settles,
                                           .interpret = out->more.interpret,
                                           .prepared = out->more.prepared ? pass_prepared : NULL,
                                           .prepared_user = out,
                                           .progress = show_progress,
                                           .released = out->more.released ? pass_release : NULL,
                                           .lost = out->more.lost ? pass_loss : NULL,
                                           .events = out->more.events,
                                           .shares = out->more.shares,
                                           .others = out->more.others,
                                           .trouble = say_trouble,
                                           .user = out};
    return TEC_OK;
}

/* What the costs were measured with that is otherwise here. */
static void tell_costs(const struct tec_invocation *call, const struct tec_engine_options *options,
                       const struct tec_pipeline *pipeline)
{
    const char *path = call->shared.costs;
    tec_profile_costs_steps(call, options->costs, pipeline, path);
    tec_profile_costs_settings_say(call, options->costs, pipeline, options->dtype, path);
}

static enum tec_status open_here(struct tec_opened *out, struct tec_engine_options *options,
                                 struct tec_invocation *call, const char *path,
                                 const struct tec_engine_options *more, bool warns,
                                 struct tec_error *err)
{
    TEC_TRY(open_options(out, options, call, path, more, warns, err));
    enum tec_status status = tec_cli_device_choice(call, &options->device, err);
    if (status == TEC_OK)
        status = tec_profile_costs_open(&options->costs, call, out->pipeline, err);
    if (status == TEC_OK && options->costs)
        tell_costs(call, options, out->pipeline);
    if (status != TEC_OK)
        tec_close_engine(out);
    return status;
}

enum tec_status tec_cli_open_options(struct tec_opened *out, struct tec_engine_options *options,
                                     struct tec_invocation *call, const char *path,
                                     const struct tec_engine_options *more, struct tec_error *err)
{
    return open_here(out, options, call, path, more, false, err);
}

enum tec_status tec_cli_open_simulated(struct tec_opened *out, struct tec_engine_options *options,
                                       struct tec_invocation *call, const char *path,
                                       const struct tec_engine_options *more, struct tec_error *err)
{
    struct tec_device_options named;
    TEC_TRY(tec_cli_device_named(call, &named, err));
    TEC_TRY(open_options(out, options, call, path, more, false, err));
    options->device = (struct tec_device_options){
        .kind = "cpu", .tier = tec_tier_best(), .threads = call->shared.threads, .spin_us = -1};
    return TEC_OK;
}

enum tec_status tec_cli_open_engine(struct tec_opened *out, struct tec_invocation *call,
                                    const char *path, const struct tec_engine_options *more,
                                    struct tec_error *err)
{
    struct tec_engine_options options;
    TEC_TRY(open_here(out, &options, call, path, more, call->warns, err));
    enum tec_status status = tec_engine_open(&out->engine, &options, call->heap, err);
    if (tec_json_refused() && status != TEC_NO_MEMORY) /* a description may be incomplete */
        status = tec_fail(err, TEC_NO_MEMORY, "%s: no memory to read what it names", path);
    if (!out->unprepared)
        status = tec_opened_status(status);
    if (call->progress)
        fputs("\r\033[K", stderr);
    if (status == TEC_OK)
        tec_cli_device_note(call);
    else
        tec_close_engine(out);
    return status;
}

void tec_close_engine(struct tec_opened *o)
{
    tec_engine_close(o->engine);
    tec_canary_destroy(o->canary);
    tec_policy_close(o->policy);
    tec_policy_close(o->fallback);
    tec_pipeline_free(o->pipeline);
    o->engine = NULL;
    o->canary = NULL;
    o->policy = o->fallback = NULL;
    o->pipeline = NULL;
}

enum tec_status tec_use_policy(struct tec_opened *o, const char *name, struct tec_error *err)
{
    const struct tec_shared *s = &o->call->shared;
    struct tec_policy *policy = NULL;
    if (!name)
        name = s->policy;
    if (!o->fallback)
        TEC_TRY(tec_open_fallback(&o->fallback, o->pipeline, o->call->root, &o->engine->topology,
                                  o->call->heap, err));
    enum tec_status status =
        tec_open_policy(&policy, o->pipeline, name, o->call->root, &o->engine->topology,
                        s->param.item, s->param.n, o->call->heap, err);
    if (status != TEC_OK)
        return name || s->param.n ? status : tec_opened_status(status);
    tec_policy_set_fallback(policy, o->fallback);
    struct tec_planner planner = tec_policy_planner(policy);
    tec_loop_set_planner(o->engine->loop, &planner);
    tec_policy_close(o->policy);
    o->policy = policy;
    return TEC_OK;
}

enum tec_status tec_use_canary(struct tec_opened *o,
                               void (*closing)(void *user, struct tec_policy *policy), void *user,
                               struct tec_error *err)
{
    const struct tec_canary_options options = {.topology = &o->engine->topology,
                                               .root = o->call->root,
                                               .limits = tec_live_guard_limits(o->pipeline),
                                               .fallback = o->fallback,
                                               .closing = closing,
                                               .user = user};
    TEC_TRY(tec_canary_create(&o->canary, &options, o->policy, o->call->heap, err));
    struct tec_planner planner = tec_canary_planner(o->canary);
    tec_loop_set_planner(o->engine->loop, &planner);
    o->policy = NULL;
    return TEC_OK;
}

struct tec_policy *tec_cli_policy_in_use(const struct tec_opened *o)
{
    return o->canary ? tec_canary_policy(o->canary) : o->policy;
}

const char *tec_used_policy(const struct tec_opened *o)
{
    const struct tec_policy *policy = tec_cli_policy_in_use(o);
    return policy ? tec_policy_name(policy) : "default";
}

char *tec_used_params(struct tec_arena *arena, const struct tec_policy *policy, const char *before)
{
    char *text = tec_arena_strdup(arena, before);
    const struct tec_param *p;
    for (int i = 0; text && policy && (p = tec_policy_param(policy, i)); i++)
        text = tec_arena_printf(arena, "%s%s%s=%g", text, *text ? "," : "", p->name, p->value);
    return text;
}
