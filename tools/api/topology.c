/* topology.c - builds the topology that a policy sees from a pipeline's declaration, and opens a
 * policy with its parameters. */
#include "tools/api/topology.h"

#include "graph/run/engine/engine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int points(int to[TEC_MAX_AXIS], const struct tec_ints *from)
{
    int n = from->n < TEC_MAX_AXIS ? from->n : TEC_MAX_AXIS;
    for (int i = 0; i < n; i++)
        to[i] = from->item[i];
    return n;
}

enum { SLICES = 16 }; /* assumed while no model is known that would give the number */

static bool any_hard(const struct tec_pipeline *p)
{
    for (int i = 0; i < p->n_nodes; i++)
        if (!p->nodes[i].culled && p->nodes[i].deadline.kind == TEC_DEADLINE_HARD)
            return true;
    return false;
}

static void add_node(struct tec_topology *t, const struct tec_pipeline *p,
                     const struct tec_decl_node *node)
{
    if (node->culled || t->n_nodes >= TEC_MAX_NODES)
        return;
    int at = t->n_nodes++;
    t->nodes[at].model = node->chain;
    if (!tec_pipeline_in_frames(p, node) && node->kind == TEC_DECL_PREFILL)
        t->nodes[at].slices = !any_hard(p) ? 1 : p->capture.slices ? p->capture.slices : SLICES;
    t->nodes[at].name = node->name;
    t->nodes[at].kind = tec_decl_node_word(node->kind);
    t->nodes[at].partition = node->partition.name;
    t->nodes[at].deadline_us = (int64_t)llround(node->deadline.ms * 1000.0);
    t->nodes[at].hard = node->deadline.kind == TEC_DEADLINE_HARD;
    t->nodes[at].optional = node->when_policy;
}

enum tec_status tec_live_topology_of(struct tec_topology *t, const struct tec_pipeline *pipeline,
                                     int layers, int horizon, struct tec_arena *arena,
                                     struct tec_error *err)
{
    const struct tec_pipeline *p = pipeline;
    const char **inputs = TEC_NEW(arena, (size_t)p->n_inputs + 1, const char *);
    const char **kv = TEC_NEW(arena, (size_t)p->n_resources + 1, const char *);
    const char **partitions = TEC_NEW(arena, (size_t)p->n_partitions + 1, const char *);
    if (!inputs || !kv || !partitions)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for the pipeline's names");
    *t = (struct tec_topology){.inputs = inputs,
                               .kv = kv,
                               .partitions = partitions,
                               .layers = layers,
                               .horizon = horizon,
                               .period_us = (int64_t)llround(p->frame.period_ms * 1000.0),
                               .seed = (uint64_t)p->seed};
    for (int i = 0; i < p->n_nodes; i++)
        add_node(t, p, &p->nodes[p->order[i]]);
    for (int i = 0; i < p->n_inputs; i++)
        inputs[t->n_inputs++] = p->inputs[i].name;
    for (int i = 0; i < p->n_partitions; i++)
        partitions[t->n_partitions++] = p->partitions[i].name;
    for (int i = 0; i < p->n_resources; i++) {
        if (p->resources[i].kind != TEC_RESOURCE_BUFFER)
            kv[t->n_kv++] = p->resources[i].name;
        t->slots += p->resources[i].slots;
    }
    tec_engine_topology_rings(t, p);
    t->n_batch = points(t->batch, &p->capture.batch);
    t->n_k = points(t->k, &p->capture.k);
    t->n_depth = points(t->depth, &p->capture.depth);
    for (int i = 0; i < p->capture.ratio.n && i < TEC_MAX_AXIS; i++)
        t->ratio[t->n_ratio++] = p->capture.ratio.item[i];
    return TEC_OK;
}

void tec_live_topology_sample(struct tec_topology *t)
{
    static const char *const inputs[] = {"image", "state", "prompt"};
    static const char *const kv[] = {"obs", "ring", "lang"};
    static const char *const partitions[] = {"rt", "bg"};
    *t = (struct tec_topology){
        .n_nodes = 4,
        .nodes = {{"see", "prefill", NULL, 0, false, false, 0, 0, 0, 0},
                  {"act", "action", "rt", 45000, true, false, 0, 0, 0, 0},
                  {"talk", "decode", "bg", 1500000, false, false, 0, 0, 0, 0},
                  {"recall", "memory_load", NULL, 0, false, true, 0, 0, 0, 0}},
        .n_batch = 4,
        .batch = {1, 2, 4, 8},
        .n_k = 4,
        .k = {1, 2, 4, 8},
        .n_depth = 3,
        .depth = {1, 4, 7},
        .n_ratio = 3,
        .ratio = {0.25, 0.5, 1.0},
        .n_inputs = 3,
        .inputs = inputs,
        .n_kv = 3,
        .kv = kv,
        .n_rings = 1,
        .rings = {{"ring", 7}},
        .n_partitions = 2,
        .partitions = partitions,
        .slots = 8,
        .horizon = 50,
        .layers = 18,
        .period_us = 50000,
    };
}

/* Parameter values: those of the file come first, those of the command line come last and win. */
struct values {
    struct tec_param_value item[2 * TEC_MAX_PARAMS];
    char names[TEC_MAX_PARAMS][32];
    int n, n_names;
};

static enum tec_status set_value(struct values *values, const char *name, double value,
                                 struct tec_error *err)
{
    for (int i = 0; i < values->n; i++)
        if (strcmp(values->item[i].name, name) == 0) {
            values->item[i].value = value;
            return TEC_OK;
        }
    if (values->n >= 2 * TEC_MAX_PARAMS)
        return tec_fail(err, TEC_INVALID, "a policy has at most %d parameters", TEC_MAX_PARAMS);
    values->item[values->n++] = (struct tec_param_value){name, value};
    return TEC_OK;
}

static enum tec_status from_file(struct values *values, const json_t *params, struct tec_error *err)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)params, name, value)
    {
        /* the policy tells of what is no number, beside what else is wrong */
        double number = json_is_number(value) ? json_number_value(value) : (double)NAN;
        TEC_TRY(set_value(values, name, number, err));
    }
    return TEC_OK;
}

static enum tec_status from_words(struct values *values, const char *const *words, int n,
                                  struct tec_error *err)
{
    for (int i = 0; i < n; i++) {
        const char *equals = strchr(words[i], '=');
        size_t length = equals ? (size_t)(equals - words[i]) : 0;
        char *end = NULL;
        double value = equals ? strtod(equals + 1, &end) : 0.0;
        if (length == 0 || length >= sizeof values->names[0] || values->n_names >= TEC_MAX_PARAMS ||
            end == equals + 1 || *end || !isfinite(value))
            return tec_fail(err, TEC_INVALID, "--param: '%s' is not NAME=NUMBER", words[i]);
        char *name = values->names[values->n_names++];
        memcpy(name, words[i], length);
        name[length] = '\0';
        TEC_TRY(set_value(values, name, value, err));
    }
    return TEC_OK;
}

struct tec_policy_limits tec_live_guard_limits(const struct tec_pipeline *pipeline)
{
    const struct tec_decl_guard *guard = &pipeline->guard;
    return (struct tec_policy_limits){.soft_us = guard->soft_us,
                                      .hard_us = guard->hard_us,
                                      .heap = (size_t)guard->heap,
                                      .strikes = guard->strikes,
                                      .window_frames = guard->window_frames};
}

/* FOLDER/NAME, without the folder that is the current one; false: it is too long. */
static bool join(char out[TEC_POLICY_PATH], const char *folder, int length, const char *name)
{
    bool here = length == 0 || (length == 1 && folder[0] == '.');
    int n = snprintf(out, TEC_POLICY_PATH, "%.*s%s%s", here ? 0 : length, folder,
                     here || folder[length - 1] == '/' ? "" : "/", name);
    return n > 0 && n < TEC_POLICY_PATH;
}

enum tec_status tec_live_own_policy(char out[TEC_POLICY_PATH], const struct tec_pipeline *pipeline,
                                    const char *name, const char *root, struct tec_error *err)
{
    const char *file = pipeline->path ? pipeline->path : "", *slash = strrchr(file, '/');
    int length = slash ? (int)(slash - file) + (slash == file) : 0;
    bool beside = tec_policy_is_path(name) && name[0] != '/', fits;
    if (!(fits = join(out, file, beside ? length : 0, name)) || !beside || access(out, F_OK) == 0)
        return fits ? TEC_OK : tec_fail(err, TEC_INVALID, "a policy's path is too long");
    if (root && join(out, root, (int)strlen(root), name) && access(out, F_OK) == 0)
        return TEC_OK;
    return tec_fail(err, TEC_NOT_FOUND,
                    "there is no policy '%.100s' in %.*s%s%s: its path begins beside the pipeline",
                    name, length ? length : 1, length ? file : ".", root ? " or " : "",
                    root ? root : "");
}

static const char *own_name(const struct tec_pipeline *pipeline)
{
    return pipeline->policy.name ? pipeline->policy.name : "default";
}

static bool find_file(struct stat *of, const char *name, const char *root)
{
    char path[TEC_POLICY_PATH];
    struct tec_error unseen;
    return tec_policy_path(path, name, root, &unseen) == TEC_OK && stat(path, of) == 0;
}

/* Is it the pipeline's own policy: the same word, or the same file, whichever path leads to it? */
static bool is_own(const struct tec_pipeline *pipeline, const char *name, const char *root)
{
    char own[TEC_POLICY_PATH];
    struct stat a, b;
    struct tec_error unseen;
    if (strcmp(name, own_name(pipeline)) == 0)
        return true;
    return tec_live_own_policy(own, pipeline, own_name(pipeline), root, &unseen) == TEC_OK &&
           find_file(&a, own, root) && find_file(&b, name, root) && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

/* What a policy is opened with. */
struct opening {
    const struct tec_pipeline *pipeline;
    const char *path, *root;
    const struct tec_topology *topology;
    struct tec_heap *heap;
    struct tec_policy_limits limits;
};

static double value_of(const struct values *values, const char *name)
{
    for (int i = 0; i < values->n; i++)
        if (strcmp(values->item[i].name, name) == 0)
            return values->item[i].value;
    return 0.0;
}

/* Does the policy take the words? Where it cannot be opened without any of them, they are not to
 * blame. */
static bool takes_words(const struct opening *o, const struct values *values)
{
    struct tec_policy *bare = NULL;
    struct tec_error unsaid;
    if (tec_policy_open(&bare, o->path, o->root, o->topology, &o->limits, NULL, 0, o->heap,
                        &unsaid) != TEC_OK)
        return true;
    bool takes = true;
    for (int i = 0; i < values->n_names; i++)
        takes &= tec_policy_set_param(bare, values->names[i], value_of(values, values->names[i]),
                                      &unsaid) == TEC_OK;
    tec_policy_close(bare);
    return takes;
}

/* A value is wrong: is it one of the words, or one of the file, whose policy --set may have
 * replaced? */
static enum tec_status blame(const struct opening *o, const struct values *values,
                             struct tec_error *err)
{
    struct tec_error why = {.message = ""};
    if (err)
        why = *err;
    if (values->n_names && !takes_words(o, values))
        return TEC_INVALID;
    if (!tec_live_policy_is_set(o->pipeline))
        return tec_fail(err, TEC_MALFORMED, "%s", why.message);
    return tec_fail(err, TEC_MALFORMED,
                    "%s; --set policy.name keeps the parameters of the file, --policy %.60s does "
                    "not",
                    why.message, own_name(o->pipeline));
}

bool tec_live_policy_is_set(const struct tec_pipeline *pipeline)
{
    const char *file = pipeline->policy.where_name.file;
    return file && strcmp(file, "--set") == 0;
}

enum tec_status tec_open_policy(struct tec_policy **out, const struct tec_pipeline *pipeline,
                                const char *name, const char *root,
                                const struct tec_topology *topology, const char *const *words,
                                int n_words, struct tec_heap *heap, struct tec_error *err)
{
    struct values values = {.n = 0};
    char path[TEC_POLICY_PATH];
    const struct opening o = {
        pipeline, name ? name : path, root, topology, heap, tec_live_guard_limits(pipeline)};
    if (!name || is_own(pipeline, name, root))
        TEC_TRY(from_file(&values, pipeline->policy.params, err));
    TEC_TRY(from_words(&values, words, n_words, err));
    if (!name)
        TEC_TRY(tec_live_own_policy(path, pipeline, own_name(pipeline), root, err));
    enum tec_status status =
        tec_policy_open(out, o.path, root, topology, &o.limits, values.item, values.n, heap, err);
    return status == TEC_INVALID && values.n ? blame(&o, &values, err) : status;
}

enum tec_status tec_open_fallback(struct tec_policy **out, const struct tec_pipeline *pipeline,
                                  const char *root, const struct tec_topology *topology,
                                  struct tec_heap *heap, struct tec_error *err)
{
    const char *name = pipeline->guard.fallback;
    char path[TEC_POLICY_PATH];
    *out = NULL;
    if (!name || strcmp(name, "default") == 0)
        return TEC_OK;
    enum tec_status status = tec_live_own_policy(path, pipeline, name, root, err);
    if (status == TEC_OK)
        status = tec_open_policy(out, pipeline, path, root, topology, NULL, 0, heap, err);
    return tec_context(err, status, "guard.fallback");
}
