#include "graph/transform/prompt.h"

#include "base/text/bytes.h"
#include "base/text/unicode.h"
#include "base/text/utf8.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Bytes of the white-space character at s; 0 when it is none. */
static size_t space_at(const char *s, size_t n)
{
    enum tec_utf8 what;
    size_t bytes = tec_utf8_scan(s, n, &what);
    if (what != TEC_UTF8_GOOD)
        return 0;
    uint32_t code = tec_utf8_get(s, &bytes);
    bool space = (tec_unicode_class(code) & TEC_CLASS_SPACE) || (code >= 0x1C && code <= 0x1F);
    return space ? bytes : 0;
}

/* Bytes of the white-space character that ends at s + n, n > 0; 0 when it is none. */
static size_t space_before(const char *s, size_t n)
{
    size_t bytes = 1;
    while (bytes < 4 && bytes < n && ((unsigned char)s[n - bytes] & 0xC0) == 0x80)
        bytes++;
    return space_at(s + n - bytes, bytes) == bytes ? bytes : 0;
}

char *tec_prompt_clean(const char *text, size_t n, size_t *n_out, struct tec_arena *arena)
{
    size_t bytes;
    while (n && (bytes = space_at(text, n))) {
        text += bytes;
        n -= bytes;
    }
    while (n && (bytes = space_before(text, n)))
        n -= bytes;
    char *clean = tec_arena_strndup(arena, text, n);
    for (size_t i = 0; clean && i < n; i++)
        if (clean[i] == '_' || clean[i] == '\n')
            clean[i] = ' ';
    *n_out = n;
    return clean;
}

void tec_prompt_state_bins(const double *state, int n, int *bins)
{
    for (int i = 0; i < n; i++) {
        double bin = floor(state[i] * 128.0) + 128.0;
        bins[i] = !(bin < 255.0) ? 255 : bin > -1.0 ? (int)bin : -1;
    }
}

static void add_state(struct tec_bytes *text, const double *state, int n)
{
    for (int i = 0; i < n; i++) {
        char number[16];
        int bin;
        tec_prompt_state_bins(state + i, 1, &bin);
        int size = snprintf(number, sizeof number, "%s%d", i ? " " : "", bin);
        tec_bytes_add(text, number, (size_t)size);
    }
}

/* What the parts are made of. */
struct building {
    const struct tec_prompt_template *how;
    const struct tec_tokenizer *tokenizer;
    struct tec_span task;
    const double *state;
    int n_state;
    int *ids;
    size_t n_needed;
    struct tec_arena *scratch;
};

static void add_part(const struct building *b, const struct tec_prompt_part *part,
                     struct tec_bytes *text)
{
    struct tec_span clean;
    switch (part->kind) {
    case TEC_PROMPT_LITERAL:
        tec_bytes_add(text, part->text, strlen(part->text));
        break;
    case TEC_PROMPT_CLEAN:
        clean.at = tec_prompt_clean(b->task.at, b->task.n, &clean.n, b->scratch);
        text->failed |= !clean.at;
        tec_bytes_add(text, clean.at, clean.n);
        break;
    case TEC_PROMPT_RAW:
        tec_bytes_add(text, b->task.at, b->task.n);
        break;
    case TEC_PROMPT_LINE:
        tec_bytes_add(text, b->task.at, b->task.n);
        if (b->task.n == 0 || b->task.at[b->task.n - 1] != '\n')
            tec_bytes_add(text, "\n", 1);
        break;
    case TEC_PROMPT_STATE:
        add_state(text, b->state, b->n_state);
        break;
    }
}

static enum tec_status encode(struct building *b, const struct tec_bytes *text,
                              struct tec_error *err)
{
    size_t most = (size_t)b->how->max_tokens, count;
    size_t room = b->n_needed < most ? most - b->n_needed : 0;
    if (text->failed)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for the text of a prompt");
    TEC_TRY(tec_tokenizer_encode(b->tokenizer, text->at ? text->at : "", text->n, b->how->how,
                                 room ? b->ids + b->n_needed : NULL, room, &count, b->scratch,
                                 err));
    b->n_needed += count;
    return TEC_OK;
}

static enum tec_status build(struct building *b, struct tec_error *err)
{
    struct tec_bytes text;
    int bos = tec_tokenizer_bos(b->tokenizer);
    if (b->how->bos && bos < 0)
        return tec_fail(err, TEC_INVALID, "prompt: the tokenizer has no bos token");
    if (b->how->bos && b->how->max_tokens > 0)
        b->ids[0] = bos;
    b->n_needed = b->how->bos;
    tec_bytes_init(&text, b->scratch, 0);
    for (int i = 0; i < b->how->n_parts; i++) {
        if (b->how->parts[i].apart && i > 0) {
            TEC_TRY(encode(b, &text, err));
            tec_bytes_init(&text, b->scratch, 0);
        }
        add_part(b, &b->how->parts[i], &text);
    }
    return encode(b, &text, err);
}

enum tec_status tec_prompt_build(const struct tec_prompt_template *how,
                                 const struct tec_tokenizer *tokenizer, const char *task,
                                 size_t n_task, const double *state, int n_state, int *ids,
                                 struct tec_prompt *out, struct tec_arena *scratch,
                                 struct tec_error *err)
{
    if (!how || !tokenizer || !ids || !out || (!task && n_task) || (!state && n_state) ||
        n_state < 0 || how->max_tokens < 0)
        return tec_fail(err, TEC_INVALID, "prompt: an argument is missing or negative");
    struct tec_arena_mark mark = tec_arena_mark(scratch);
    struct building b = {.how = how,
                         .tokenizer = tokenizer,
                         .task = {task, n_task},
                         .state = state,
                         .n_state = n_state,
                         .ids = ids,
                         .scratch = scratch};
    enum tec_status status = build(&b, err);
    tec_arena_rewind(scratch, mark);
    TEC_TRY(tec_context(err, status, "prompt"));
    out->n_needed = (int)b.n_needed;
    out->n_valid = out->n_needed < how->max_tokens ? out->n_needed : how->max_tokens;
    for (int i = out->n_valid; i < how->max_tokens; i++)
        ids[i] = how->pad;
    return TEC_OK;
}
