/* memory_text.c - prints what a pipeline's memories did, as text for people and as JSON for
 * programs. */
#include "tools/frames/memory_text.h"

#include "base/json_text.h"

static void print_line(FILE *out, const struct tec_memory_counts *before, struct tec_memory *memory,
                       bool named)
{
    const struct tec_memory_counts c = tec_memory_counts(memory);
    int64_t full = c.rows_full - before->rows_full;
    fprintf(out, "  memory%s%s: %u remembered", named ? " " : "",
            named ? tec_memory_name(memory) : "", c.store.segments);
    if (c.prompts > before->prompts || c.segments > before->segments)
        fprintf(out, ", %lld in the prompt, %lld without kept keys",
                (long long)(c.segments - before->segments),
                (long long)(c.missing - before->missing));
    if (full > 0) /* of a prompt of several memories the first one counts them */
        fprintf(out, ", %.0f %% of rows", 100.0 * (double)(c.rows - before->rows) / (double)full);
    if (c.whole > before->whole)
        fputs(", computed whole", out);
}

void tec_frame_memory_count(const struct tec_engine *engine, int session,
                            struct tec_memory_counts *out)
{
    for (int i = 0; i < engine->n_memories; i++)
        out[i] = tec_memory_counts(tec_memory_of(engine->memories[i], session));
}

void tec_frame_memory_line(FILE *out, const struct tec_engine *engine, int session,
                           const struct tec_memory_counts *before)
{
    for (int i = 0; i < engine->n_memories; i++)
        print_line(out, &before[i], tec_memory_of(engine->memories[i], session),
                   engine->n_memories > 1);
}

/* What `of` makes of a session's only memory, or of each by its name; null without any. */
static json_t *of_each(const struct tec_engine *engine, int session,
                       json_t *(*of)(struct tec_memory *memory))
{
    int n = engine ? engine->n_memories : 0;
    if (n < 2)
        return n ? of(tec_memory_of(engine->memories[0], session)) : json_null();
    json_t *all = json_object();
    for (int i = 0; i < n; i++)
        json_object_set_new(all, tec_memory_name(engine->memories[i]),
                            of(tec_memory_of(engine->memories[i], session)));
    return all;
}

/* The name of a damaged segment; if that is unknown its number, or null. */
static json_t *segment_json(const struct tec_memory_damage *d)
{
    if (d->segment[0])
        return tec_json_shown(d->segment);
    return d->serial ? json_integer((json_int_t)d->serial) : json_null();
}

static json_t *damaged_json(struct tec_memory *memory)
{
    struct tec_memory_damages d;
    json_t *first = json_array();
    const char *file = tec_memory_file(memory);
    tec_memory_damages(memory, &d);
    for (int i = 0; i < TEC_MEMORY_DAMAGES && i < d.n; i++)
        json_array_append_new(
            first, json_pack("{s:I, s:I, s:o, s:o}", "offset", (json_int_t)d.first[i].offset,
                             "bytes", (json_int_t)d.first[i].bytes, "segment",
                             segment_json(&d.first[i]), "what", tec_json_shown(d.first[i].what)));
    return json_pack("{s:I, s:o, s:o}", "records", (json_int_t)d.n, "file",
                     file ? tec_json_shown(file) : json_null(), "first", first);
}

static json_t *state_json(struct tec_memory *memory)
{
    char trouble[TEC_MEMORY_TEXT];
    tec_memory_trouble(memory, trouble);
    return json_pack("{s:I, s:o, s:b, s:o}", "stored", (json_int_t)tec_memory_stored(memory),
                     "damaged", damaged_json(memory), "writable", (int)!tec_memory_fails(memory),
                     "trouble", tec_json_shown(trouble));
}

json_t *tec_frame_memory_state_json(const struct tec_engine *engine)
{
    if (!engine || engine->n_memories == 0 || engine->n_sessions < 2)
        return of_each(engine, 0, state_json);
    json_t *all = json_array();
    for (int i = 0; i < engine->n_sessions; i++)
        json_array_append_new(all, of_each(engine, i, state_json));
    return all;
}

static void say_state(struct tec_memory *memory, struct tec_invocation *call)
{
    struct tec_memory_damages d;
    tec_memory_damages(memory, &d);
    if (d.n > 0)
        tec_say(call, "%s: %lld damaged part%s could not be used, the first at byte %lld (%s%s%s)",
                tec_memory_file(memory), (long long)d.n, d.n == 1 ? "" : "s",
                (long long)d.first[0].offset, d.first[0].segment, d.first[0].segment[0] ? ": " : "",
                d.first[0].what);
    if (tec_memory_fails(memory))
        tec_say(call, "%s cannot be written: changes since then are lost at the end",
                tec_memory_file(memory));
}

void tec_frame_memory_say_state(const struct tec_engine *engine, struct tec_invocation *call)
{
    for (int i = 0; i < engine->n_memories; i++)
        for (int s = 0; s < engine->n_sessions; s++)
            say_state(tec_memory_of(engine->memories[i], s), call);
}

static json_t *counts_json(struct tec_memory *memory)
{
    const struct tec_memory_counts c = tec_memory_counts(memory);
    char trouble[TEC_MEMORY_TEXT];
    tec_memory_trouble(memory, trouble);
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:{s:I, s:I, s:I, "
                     "s:I}, s:o, s:b, s:o}",
                     "prompts", (json_int_t)c.prompts, "segments", (json_int_t)c.segments,
                     "missing", (json_int_t)c.missing, "whole", (json_int_t)c.whole, "late",
                     (json_int_t)c.store.remote.late, "rows", (json_int_t)c.rows, "rows_full",
                     (json_int_t)c.rows_full, "waited_us", (json_int_t)(c.waited_ns / 1000),
                     "choose_us", (json_int_t)(c.choose_ns / 1000), "remembered_tokens",
                     (json_int_t)c.remembered_tokens, "stored", (json_int_t)c.store.segments,
                     "loaded_bytes", "ram", (json_int_t)c.prefetch.bytes[TEC_KEPT_RAM], "file",
                     (json_int_t)c.prefetch.bytes[TEC_KEPT_FILE], "remote",
                     (json_int_t)c.prefetch.bytes[TEC_KEPT_REMOTE], "gpu", (json_int_t)c.held_bytes,
                     "damaged", damaged_json(memory), "writable", (int)!tec_memory_fails(memory),
                     "trouble", tec_json_shown(trouble));
}

/* With what was taken over from other sessions' memories. */
static json_t *shared_json(struct tec_memory *memory)
{
    json_t *json = counts_json(memory);
    json_object_set_new(json, "shared", json_integer((json_int_t)tec_memory_counts(memory).shared));
    return json;
}

json_t *tec_frame_memory_json(const struct tec_engine *engine, int session)
{
    return of_each(engine, session, engine->n_sessions > 1 ? shared_json : counts_json);
}
