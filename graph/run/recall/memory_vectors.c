/* memory_vectors.c - says what makes a memory's vectors and counts its tokens, and what becomes of
 * a file that has another encoder's or tokenizer's.
 *
 * Runs while a memory is opened. A hash of all that the encoder is stands in the store's file;
 * where that has another one, or none, the store asks for the vectors of its texts, and this says
 * so. It also says where keys and values were of other weights. */
#include "base/store/find.h"
#include "graph/run/recall/memory_own.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

/* So many texts take a while with a model: that is said before, too. */
enum { MANY = 500, PATH_SHOWN = 60, PROMPT_SHOWN = 24 };

enum tec_status tec_memory_open_encoder(struct tec_encoder **out, const struct tec_decl_resource *r,
                                        const char *root, enum tec_tier tier, struct tec_heap *heap,
                                        struct tec_error *err)
{
    struct tec_arena arena;
    const char *path = r->encoder;
    *out = NULL;
    if (!path)
        return TEC_OK;
    tec_arena_init(&arena, heap);
    enum tec_status status =
        tec_context(err, tec_find_path(&path, path, root, &arena, err), "encoder");
    const struct tec_encoder_options e = {.path = path,
                                          .models =
                                              tec_arena_printf(&arena, "%s/pipelines/models", root),
                                          .device = {.kind = "cpu", .threads = 1, .tier = tier}};
    if (status == TEC_OK && !e.models)
        status = tec_fail(err, TEC_NO_MEMORY, "no memory for a path");
    if (status == TEC_OK)
        status = tec_encoder_open(out, &e, heap, err);
    tec_arena_finish(&arena);
    return status;
}

static void name_words(struct tec_log_encoder *own)
{
    static const char what[] = "signed hashes of words, 256 numbers"; /* as embed_words does it */
    XXH128_hash_t h = XXH3_128bits(what, sizeof what);
    *own = (struct tec_log_encoder){.id = {h.low64, h.high64}, .name = "none: the texts' words"};
}

/* The first byte of a character, of UTF-8. */
static bool begins(char c)
{
    return ((unsigned char)c & 0xc0) != 0x80;
}

enum tec_status tec_memory_name_encoder(struct tec_memory_shared *s, struct tec_error *err)
{
    const char *path = s->of->resource->encoder;
    struct tec_log_encoder *own = &s->own;
    if (!s->encoder) {
        name_words(own);
        return TEC_OK;
    }
    const char *prompt = tec_encoder_prompt(s->encoder);
    size_t n = strlen(path), from = n > PATH_SHOWN ? n - PATH_SHOWN : 0;
    int shown = prompt ? (int)strnlen(prompt, PROMPT_SHOWN) : 0;
    while (!begins(path[from])) /* of a cut path; the NUL begins, too */
        from++;
    while (shown > 0 && !begins(prompt[shown]))
        shown--;
    *own = (struct tec_log_encoder){.id = {0, 0}};
    snprintf(own->name, sizeof own->name, "%s%s, %s%s%.*s%s", from ? "..." : "", path + from,
             tec_encoder_pooling(s->encoder), prompt ? ", prompt \"" : "", shown,
             prompt ? prompt : "", prompt ? "\"" : "");
    return tec_encoder_identity(s->encoder, own->id, err);
}

enum tec_status tec_memory_renew(void *memory, const char *text, size_t bytes, float *out,
                                 struct tec_error *err)
{
    struct tec_memory *m = memory;
    TEC_TRY(tec_memory_embed(m, text, bytes, err));
    memcpy(out, m->embedding, (size_t)m->dim * sizeof *out);
    return TEC_OK;
}

/* No trouble, but told as such a line is. */
static void tell(const struct tec_memory *m, const char *line)
{
    if (m->options.trouble)
        m->options.trouble(m->options.user, line);
}

void tec_memory_renewed(void *memory, const struct tec_store_vectors *what)
{
    const struct tec_memory *m = memory;
    const struct tec_log_encoder *own = &m->shared->own, *was = what->was;
    bool known = was->id[0] || was->id[1];
    char line[TEC_MEMORY_TEXT + 256], whose[TEC_LOG_NAME + 80] = "an encoder that it does not name";
    if (known)
        snprintf(whose, sizeof whose, "the encoder '%s' (%016llx)", was->name,
                 (unsigned long long)was->id[0]);
    int n = snprintf(
        line, sizeof line,
        "memory '%.32s': %.150s has vectors of %s, the pipeline's is '%s' (%016llx): ", m->name,
        tec_memory_shown(m), whose, own->name, (unsigned long long)own->id[0]);
    size_t room = sizeof line - (size_t)n;
    if (!what->done) {
        snprintf(line + n, room, "those of its %u texts are made anew", what->texts);
        if (what->texts >= MANY && m->shared->encoder)
            tell(m, line);
        return;
    }
    if (what->texts == 0)
        return;
    if (what->changed)
        snprintf(line + n, room, "%u of %u were another's and were made anew; %sgroups stay",
                 what->changed, what->texts, what->kv_stay ? "keys, values and " : "");
    else if (what->unwritten)
        snprintf(line + n, room, "all %u are that one's, which cannot be written (%.200s)",
                 what->texts, what->unwritten);
    else
        snprintf(line + n, room, "all %u are that one's, and the file says so now", what->texts);
    tell(m, line);
}

void tec_memory_retrained(void *memory, uint32_t segments)
{
    const struct tec_memory *m = memory;
    char line[TEC_MEMORY_TEXT];
    snprintf(line, sizeof line,
             "memory '%.32s': %.150s has keys and values of other weights or roundings of this "
             "model, or names none: those of %u segments are computed again; texts stay",
             m->name, tec_memory_shown(m), segments);
    tell(m, line);
}

enum tec_status tec_memory_count_tokens(void *memory, const char *text, size_t bytes,
                                        uint32_t *tokens, struct tec_error *err)
{
    struct tec_memory *m = memory;
    size_t n = 0;
    TEC_TRY(tec_memory_encode(m, text, bytes, m->ids, (size_t)m->input->tokens_each, &n, err));
    *tokens = n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
    return TEC_OK;
}

void tec_memory_counted(void *memory, uint32_t texts, uint32_t changed, uint32_t dropped)
{
    const struct tec_memory *m = memory;
    char line[TEC_MEMORY_TEXT], keys[80] = "";
    if (dropped)
        snprintf(keys, sizeof keys, "keys and values of %u segments are computed again, ", dropped);
    snprintf(line, sizeof line,
             "memory '%.32s': %.150s %s: %stokens were counted anew, which are others for %u of %u "
             "texts; texts stay",
             m->name, tec_memory_shown(m),
             m->start ? "has not this tokenizer's numbers of tokens"
                      : "was written with a tokenizer of other rules, or names none",
             keys, changed, texts);
    tell(m, line);
}
