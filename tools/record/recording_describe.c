/* recording_describe.c - the front of a recording: what ran, on what, of which pipeline and policy.
 */
#include "tools/record/recording_own.h"

#include "base/json_text.h"
#include "tools/api/topology.h"
#include "tools/measure/machine.h"
#include "tools/picture/drawing.h"

#include <stdlib.h>
#include <string.h>

#ifndef TECTUM_VERSION
#define TECTUM_VERSION "unknown"
#endif

/* What Foxglove asks of a channel of JSON objects. */
static const char any_object[] = "{\"type\":\"object\"}";

int tec_recording_channel(struct tec_mcap_writer *file, const char *topic)
{
    const struct tec_mcap_channel channel = {.topic = topic,
                                             .encoding = "json",
                                             .schema = topic,
                                             .schema_encoding = "jsonschema",
                                             .schema_text = any_object};
    return tec_mcap_channel(file, &channel);
}

void tec_recording_json(struct tec_mcap_writer *file, int channel, int64_t sequence,
                        uint64_t time_ns, json_t *json)
{
    char *text = tec_json_whole(json, JSON_COMPACT | JSON_REAL_PRECISION(17));
    json_decref(json);
    if (text)
        tec_mcap_message(file, channel, (uint32_t)sequence, time_ns, text, strlen(text));
    else if (file->status == TEC_OK)
        file->status = TEC_NO_MEMORY;
    free(text);
}

static json_t *shown(const char *text)
{
    return text ? tec_json_shown(text) : json_null();
}

static json_t *words(const struct tec_words *list)
{
    json_t *all = json_array();
    for (int i = 0; i < list->n; i++)
        json_array_append_new(all, tec_json_shown(list->item[i]));
    return all;
}

static json_t *seed(const struct tec_seed *s)
{
    char digits[32];
    snprintf(digits, sizeof digits, "%llu", (unsigned long long)s->value);
    return s->given ? json_string(digits) : json_null(); /* 64 bits: no number of JSON */
}

/* The options that decide what the same frames give: replay takes them over. */
static json_t *options_json(const struct tec_shared *s)
{
    return json_pack("{s:o, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:i}", "weights",
                     shown(s->weights), "adapter", shown(s->adapter), "random_weights",
                     seed(&s->random_weights), "size", tec_shared_size(s), "tokenizer",
                     shown(s->tokenizer), "set", words(&s->set), "param", words(&s->param),
                     "embodiment", shown(s->embodiment), "policy", shown(s->policy), "seed",
                     seed(&s->seed), "device", shown(s->device), "tier", shown(s->tier), "threads",
                     s->threads);
}

static json_t *nodes_json(const struct tec_topology *t)
{
    json_t *all = json_array();
    for (int i = 0; i < t->n_nodes; i++)
        json_array_append_new(all, json_pack("{s:s, s:s, s:I, s:b}", "name", t->nodes[i].name,
                                             "kind", t->nodes[i].kind, "deadline_us",
                                             (json_int_t)t->nodes[i].deadline_us, "hard",
                                             (int)t->nodes[i].hard));
    return all;
}

/* Chunks of each action node: their rows, and the time from one to the next (0: not known). */
static json_t *chunks_json(const struct tec_engine *e)
{
    const struct tec_loop_options *o = tec_loop_settings(e->loop);
    json_t *all = json_array();
    for (int i = 0; i < o->n_actions; i++) {
        const struct tec_flow *flow = tec_engine_flow(e, i);
        json_array_append_new(
            all, json_pack("{s:s, s:i, s:I}", "node", o->actions[i].name, "rows",
                           flow && flow->dim > 0 ? (int)tec_engine_chunk(e, i) / flow->dim : 0,
                           "row_us", (json_int_t)(tec_seam_row_ns(e, i) / 1000)));
    }
    return all;
}

static json_t *names_json(const struct tec_loop_options *o, bool actions)
{
    json_t *all = json_array();
    for (int i = 0; i < (actions ? o->n_actions : o->n_decoders); i++)
        json_array_append_new(all, json_string(actions ? o->actions[i].name : o->decoders[i].name));
    return all;
}

/* The pipeline's picture, for the page of frames; NULL without memory, and the page has none. */
static json_t *graph_json(const struct tec_opened *opened)
{
    struct tec_drawing drawing;
    struct tec_arena arena;
    struct tec_error err;
    json_t *json = NULL;
    tec_arena_init(&arena, opened->call->heap);
    if (tec_drawing_make(&drawing, opened->pipeline, &arena, &err) == TEC_OK)
        json = tec_graph_shapes(&drawing, &arena, &err);
    tec_arena_finish(&arena);
    return json;
}

json_t *tec_recording_about(const struct tec_opened *opened, enum tec_recording_mode mode,
                            int64_t wall_ns)
{
    static const char *const modes[] = {"frames", "paced", "served"};
    const struct tec_engine *e = opened->engine;
    const struct tec_invocation *call = opened->call;
    const struct tec_loop_options *o = tec_loop_settings(e->loop);
    bool trained = e->checkpoint && !e->options.random;
    json_t *json = json_pack(
        "{s:i, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:s, s:I, s:i, s:I, s:o, s:o, s:o}",
        "schema", 1, "version", TECTUM_VERSION, "verb", call->verb, "mode", modes[mode], "pipeline",
        shown(opened->pipeline->name), "path", shown(call->args.n ? call->args.item[0] : NULL),
        "root", shown(call->root), "hash", shown(trained ? e->checkpoint->hash : NULL), "policy",
        shown(tec_used_policy(opened)), "device", tec_device_computes(e->device), "period_us",
        (json_int_t)e->topology.period_us, "sessions", e->n_sessions, "wall_ns",
        (json_int_t)wall_ns, "nodes", nodes_json(&e->topology), "actions", names_json(o, true),
        "decoders", names_json(o, false));
    json_object_set_new(json, "options", options_json(&call->shared));
    json_object_set_new(json, "chunks", chunks_json(e));
    json_object_set_new(json, "graph", graph_json(opened));
    json_object_set_new(json, "machine", tec_machine_json(e->device));
    json_object_set_new(json, "commit", json_string(tec_machine_commit()));
    json_object_set_new(json, "dtype", shown(e->options.dtype));
    char content[TEC_HASH_TEXT];
    bool known = trained && tec_checkpoint_content(e->checkpoint, content, NULL) == TEC_OK;
    json_object_set_new(json, "weights", shown(known ? content : NULL));
    json_object_set_new(json, "tick_actions", json_integer(e->options.actions));
    return json;
}

/* The policy's source, where it is a file of this machine: what loads is what was found then. */
static void attach_policy(struct tec_mcap_writer *file, const struct tec_opened *opened,
                          uint64_t now)
{
    enum { MOST = 1 << 20 };
    const struct tec_invocation *call = opened->call;
    const char *name = call->shared.policy, *declared = opened->pipeline->policy.name;
    struct tec_error none; /* a policy that runs has a path */
    char own[TEC_POLICY_PATH], path[TEC_POLICY_PATH];
    if (!name && declared &&
        tec_live_own_policy(own, opened->pipeline, declared, call->root, &none) == TEC_OK)
        name = own;
    char *text = name ? malloc(MOST) : NULL;
    if (text && tec_policy_path(path, name, call->root, &none) != TEC_OK)
        path[0] = '\0';
    FILE *from = text ? fopen(path, "re") : NULL;
    size_t n = from ? fread(text, 1, MOST, from) : 0;
    if (n > 0 && n < MOST)
        tec_mcap_attach(file, "policy.lua", "text/x-lua", text, n, now);
    if (from)
        fclose(from);
    free(text);
}

enum tec_status tec_recording_describe(struct tec_mcap_writer *file,
                                       const struct tec_opened *opened,
                                       enum tec_recording_mode mode, int64_t wall_ns,
                                       struct tec_error *err)
{
    static const struct tec_clock clock = {NULL};
    uint64_t now = (uint64_t)(tec_clock_now(&clock) + wall_ns);
    json_t *form = NULL;
    TEC_TRY(tec_pipeline_expand(&form, opened->pipeline, err));
    char *text = tec_json_whole(form, JSON_INDENT(2));
    json_decref(form);
    if (!text)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a recording");
    tec_mcap_attach(file, "pipeline.json", "application/json", text, strlen(text), now);
    free(text);
    attach_policy(file, opened, now);
    int channel = tec_recording_channel(file, "/tectum/recording");
    tec_recording_json(file, channel, 0, now, tec_recording_about(opened, mode, wall_ns));
    return tec_mcap_status(file, err);
}
