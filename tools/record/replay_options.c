/* replay_options.c - takes over the options of a recording, its pipeline and its policy. */
#include "tools/record/replay_options.h"

#include "base/json_text.h"
#include "tools/cli/open_engine.h"

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static enum tec_status find_about(json_t **about, struct tec_mcap_reader *file,
                                  struct tec_error *err)
{
    struct tec_mcap_message m;
    *about = NULL;
    while (!*about && tec_mcap_next(file, &m))
        if (tec_mcap_is(m.topic, "/tectum/recording"))
            *about = json_loadb((const char *)m.data, m.n, 0, NULL);
    if (json_is_object(*about)) {
        tec_mcap_rewind(file);
        return TEC_OK;
    }
    json_decref(*about);
    return tec_fail(err, TEC_MALFORMED, "%s: %s%s", file->path,
                    file->damage[0] ? file->damage : "this is no recording of tectum",
                    ": it has no message /tectum/recording");
}

static enum tec_status write_file(const char *path, struct tec_mcap_name data,
                                  struct tec_error *err)
{
    FILE *out = fopen(path, "wxe");
    bool whole = out && fwrite(data.text, 1, data.n, out) == data.n;
    whole = out && fclose(out) == 0 && whole;
    return whole ? TEC_OK : tec_fail(err, TEC_IO, "%s: %s", path, strerror(errno));
}

/* The policy's file has its name, by which it is known. */
static void name_policy(struct tec_replay_source *s, const char *name)
{
    char plain[64];
    size_t n = 0;
    for (; name && name[n] && n + 1 < sizeof plain; n++)
        plain[n] = (char)(isalnum((unsigned char)name[n]) || name[n] == '_' ? name[n] : '_');
    plain[n] = '\0';
    snprintf(s->policy, sizeof s->policy, "%s/%s.lua", s->folder, n ? plain : "policy");
}

/* Was another policy asked for (--policy) than that of the pipeline? Then the pipeline's parameters
 * were not its. */
static bool other_policy(const json_t *about, const json_t *policy)
{
    const char *own = json_string_value(json_object_get(policy, "name"));
    const char *asked =
        json_string_value(json_object_get(json_object_get(about, "options"), "policy"));
    return asked && strcmp(asked, own ? own : "default") != 0;
}

/* The pipeline, which asks for its policy under the name of the recorded file, so that parameters
 * stay with it. */
static enum tec_status write_pipeline(struct tec_replay_source *s, const json_t *about,
                                      struct tec_mcap_name data, const char *path,
                                      struct tec_error *err)
{
    json_t *form = json_loadb(data.text, data.n, 0, NULL);
    json_t *policy = json_object_get(form, "policy");
    if (!json_is_object(form)) {
        json_decref(form);
        return tec_fail(err, TEC_MALFORMED, "%s: its pipeline.json is no JSON object", path);
    }
    if (json_is_object(policy) && other_policy(about, policy))
        json_object_del(policy, "params");
    if (s->policy[0] && json_is_object(policy))
        json_object_set_new(policy, "name", json_string(s->policy));
    enum tec_status status = tec_json_write(s->pipeline, form, JSON_INDENT(2), err);
    json_decref(form);
    return status;
}

static enum tec_status make_folder(struct tec_replay_source *s, struct tec_error *err)
{
    const char *folder = getenv("TMPDIR");
    snprintf(s->folder, sizeof s->folder, "%s/tectum-replay-XXXXXX",
             folder && strlen(folder) < 32 ? folder : P_tmpdir);
    if (mkdtemp(s->folder))
        return TEC_OK;
    enum tec_status status = tec_fail(err, TEC_IO, "%s: %s", s->folder, strerror(errno));
    s->folder[0] = '\0';
    return status;
}

static enum tec_status write_files(struct tec_replay_source *s, const struct tec_mcap_reader *file,
                                   const json_t *about, struct tec_error *err)
{
    struct tec_mcap_name pipeline, policy;
    TEC_TRY(make_folder(s, err));
    TEC_TRY(tec_mcap_attachment(file, "pipeline.json", &pipeline, err));
    TEC_TRY(tec_mcap_attachment(file, "policy.lua", &policy, err));
    if (!pipeline.text)
        return tec_fail(err, TEC_MALFORMED, "%s: it has no attachment pipeline.json", file->path);
    if (policy.text) {
        name_policy(s, json_string_value(json_object_get(about, "policy")));
        TEC_TRY(write_file(s->policy, policy, err));
    }
    snprintf(s->pipeline, sizeof s->pipeline, "%s/pipeline.json", s->folder);
    return write_pipeline(s, about, pipeline, file->path, err);
}

/* --- options ---------------------------------------------------------------------------------- */

static const char *text_of(struct tec_invocation *call, const json_t *from, const char *name)
{
    const char *text = json_string_value(json_object_get(from, name));
    return text ? tec_arena_strdup(call->arena, text) : NULL;
}

static void take_seed(struct tec_seed *seed, const json_t *from, const char *name)
{
    const char *text = json_string_value(json_object_get(from, name));
    if (text && !seed->given)
        *seed = (struct tec_seed){true, strtoull(text, NULL, 10)};
}

static void take_text(struct tec_invocation *call, const char **to, const json_t *from,
                      const char *name)
{
    if (!*to)
        *to = text_of(call, from, name);
}

/* The pipeline has --set applied already: that is not taken over. */
static void take_options(struct tec_replay_source *s, struct tec_invocation *call,
                         const json_t *about)
{
    const json_t *from = json_object_get(about, "options");
    struct tec_shared *to = &call->shared;
    const json_t *params = json_object_get(from, "param");
    const char *size = json_string_value(json_object_get(from, "size"));
    bool given = to->weights || to->random_weights.given;
    take_text(call, &to->tokenizer, from, "tokenizer");
    take_text(call, &to->embodiment, from, "embodiment");
    take_seed(&to->seed, from, "seed");
    if (!given) {
        take_text(call, &to->weights, from, "weights");
        take_text(call, &to->adapter, from, "adapter");
        take_seed(&to->random_weights, from, "random_weights");
    }
    /* of random weights, also of another seed than the recording's */
    for (int i = 0; size && i < 3 && to->random_weights.given; i++)
        if (to->size < 0 && strcmp(size, tec_size_names[i]) == 0)
            to->size = i;
    size_t n = json_array_size(params);
    const char **item =
        n && !to->policy && !to->param.n ? TEC_NEW(call->arena, n, const char *) : NULL;
    for (size_t i = 0; item && i < n; i++) {
        const char *word = json_string_value(json_array_get(params, i));
        item[i] = tec_arena_strdup(call->arena, word ? word : "");
    }
    if (item)
        to->param = (struct tec_words){(int)n, item};
    if (!to->policy && json_is_string(json_object_get(from, "policy")))
        to->policy = s->policy[0] ? s->policy : text_of(call, from, "policy");
    s->dtype = text_of(call, about, "dtype");
    s->hash = text_of(call, about, "hash");
    s->weights = text_of(call, about, "weights");
    json_int_t actions = json_integer_value(json_object_get(about, "tick_actions"));
    s->actions = actions > 0 && actions < INT32_MAX ? (int)actions : 0;
}

/* What random weights are called in messages. */
enum { DRAWN = 60 };
static void name_drawn(char out[DRAWN], uint64_t seed, const char *size)
{
    snprintf(out, DRAWN, "random of seed %llu, %.10s", (unsigned long long)seed, size);
}

/* The recording's weights, into `drawn` where they were random; NULL: it does not say. */
static const char *recorded_weights(const struct tec_replay_source *s, char drawn[DRAWN])
{
    const json_t *options = json_object_get(s->about, "options");
    const char *seed = json_string_value(json_object_get(options, "random_weights"));
    const char *size = json_string_value(json_object_get(options, "size"));
    if (!seed)
        return s->weights ? s->weights : s->hash;
    name_drawn(drawn, strtoull(seed, NULL, 10), size ? size : "?");
    return drawn;
}

enum tec_status tec_replay_source_weights(struct tec_replay_source *s, struct tec_invocation *call,
                                          const struct tec_checkpoint *weights,
                                          struct tec_error *err)
{
    char content[TEC_HASH_TEXT], drawn[2][DRAWN];
    const char *was = recorded_weights(s, drawn[0]), *is = drawn[1];
    const struct tec_shared *now = &call->shared;
    name_drawn(drawn[1], now->random_weights.value, tec_shared_size(now));
    if (weights)
        is = weights->hash;
    if (weights && s->weights) {
        TEC_TRY(tec_checkpoint_content(weights, content, err));
        is = content;
    }
    s->others = NULL;
    if (!was || strcmp(was, is) == 0)
        return TEC_OK;
    s->others = tec_arena_printf(call->arena,
                                 "the weights are others than the recording's (%s, %s)", is, was);
    return s->others ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for a replay");
}

/* A word of --set that the recording was made with, too. */
static bool was_set(const json_t *about, const char *word)
{
    const json_t *words = json_object_get(json_object_get(about, "options"), "set"), *one;
    size_t i;
    json_array_foreach(words, i, one)
    {
        if (json_is_string(one) && strcmp(json_string_value(one), word) == 0)
            return true;
    }
    return false;
}

enum tec_status tec_replay_source_tell(const struct tec_replay_source *s,
                                       const struct tec_invocation *call, bool differs,
                                       enum tec_status status, struct tec_error *err)
{
    const struct tec_words *set = &call->shared.set;
    if (status != TEC_OK)
        return s->others ? tec_context(err, status, "%s", s->others) : status;
    if (s->others)
        tec_say(call, "%s", s->others);
    for (int i = 0; i < set->n && differs; i++)
        if (!was_set(s->about, set->item[i]))
            tec_say(call, "the recording was made without --set %s", set->item[i]);
    return TEC_OK;
}

/* Is a word of --set "nodes.NAME.spawn=..." of that node? */
static bool sets_trigger(const char *word, const char *node)
{
    static const char nodes[] = "nodes.", spawn[] = ".spawn";
    size_t n = node ? strlen(node) : 0, front = strlen(nodes), behind = strlen(spawn);
    return n && strncmp(word, nodes, front) == 0 && strncmp(word + front, node, n) == 0 &&
           strncmp(word + front + n, spawn, behind) == 0 &&
           strchr(".=", word[front + n + behind]) != NULL;
}

/* Before the engine reads weights. */
static enum tec_status check_triggers(const struct tec_replay_source *s,
                                      struct tec_invocation *call, struct tec_error *err)
{
    struct tec_opened opened = {.call = NULL};
    struct tec_engine_options unused;
    enum tec_status status = TEC_OK;
    if (call->shared.set.n == 0)
        return TEC_OK;
    TEC_TRY(tec_cli_open_simulated(&opened, &unused, call, s->pipeline, NULL, err));
    const struct tec_pipeline *p = opened.pipeline;
    for (int i = 0; status == TEC_OK && i < call->shared.set.n; i++)
        for (int k = 0; status == TEC_OK && k < p->n_nodes; k++)
            if (tec_decl_makes_text(&p->nodes[k]) &&
                sets_trigger(call->shared.set.item[i], p->nodes[k].name))
                status =
                    tec_fail(err, TEC_INVALID,
                             "--set nodes.%.60s.spawn: a replay's texts begin where they began in "
                             "the recording; other triggers need a run of their own",
                             p->nodes[k].name);
    tec_close_engine(&opened);
    return status;
}

enum tec_status tec_replay_source_open(struct tec_replay_source *s, struct tec_invocation *call,
                                       struct tec_mcap_reader *file, struct tec_error *err)
{
    json_t *about = NULL;
    *s = (struct tec_replay_source){.folder = ""};
    TEC_TRY(find_about(&about, file, err));
    enum tec_status status = write_files(s, file, about, err);
    call->shown = tec_arena_printf(call->arena, "%s:pipeline.json", file->path);
    if (status == TEC_OK)
        take_options(s, call, about);
    s->about = about;
    return status == TEC_OK ? check_triggers(s, call, err) : status;
}

void tec_replay_source_close(struct tec_replay_source *s)
{
    json_decref(s->about);
    tec_replay_memories_close(s);
    if (s->pipeline[0])
        unlink(s->pipeline);
    if (s->policy[0])
        unlink(s->policy);
    if (s->folder[0])
        rmdir(s->folder);
}
