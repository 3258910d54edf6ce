/* template.c - parses prompt templates, renders them and encodes the result to token ids.
 *
 * Parsing runs at load, encoding on the session's thread. A template is a list of calls that are
 * tokenized separately, so no token crosses the border between two of them. */
#include "graph/transform/template.h"

#include "base/nearest.h"
#include "base/text/bytes.h"
#include "base/text/unicode.h"
#include "graph/transform/fields.h"
#include "graph/transform/prompt.h"

#include <stdio.h>
#include <string.h>

static const char text_mark[] = "{text}", state_mark[] = "{state}", memory_mark[] = "{memory}";

static bool starts(const char *text, const char *mark)
{
    return strncmp(text, mark, strlen(mark)) == 0;
}

/* MARK_TEXT is all texts, MARK_TEXT + n the n-th alone. */
enum { MARK_NONE, MARK_STATE, MARK_TEXT };

static int mark_at(const char *c)
{
    static const char one[] = "{text";
    size_t n = sizeof one - 1;
    if (starts(c, state_mark))
        return MARK_STATE;
    if (starts(c, text_mark))
        return MARK_TEXT;
    bool numbered = starts(c, one) && c[n] >= '1' && c[n] <= '0' + TEC_TEMPLATE_MAX_TEXTS;
    return numbered && c[n + 1] == '}' ? MARK_TEXT + (c[n] - '0') : MARK_NONE;
}

/* Every brace must be part of a mark: a misspelt one would reach the model as text. */
static void check_marks(struct tec_fields *f, struct tec_template *t, const char *text)
{
    for (const char *c = text; c && *c; c++) {
        int mark = mark_at(c);
        t->state |= mark == MARK_STATE;
        if (mark >= MARK_TEXT)
            t->texts |= 1U << (mark - MARK_TEXT);
        if (mark != MARK_NONE)
            c = strchr(c, '}');
        else if (*c == '{' || *c == '}')
            tec_fields_fail(f, TEC_MALFORMED,
                            "'%.40s': a call knows {text}, {text1} to {text%d} and {state}, or is "
                            "{memory}",
                            c, TEC_TEMPLATE_MAX_TEXTS);
    }
}

static void check_memory(struct tec_fields *f, struct tec_template *t, int i)
{
    if (t->memory)
        tec_fields_fail(f, TEC_MALFORMED, "a prompt has one {memory}, this is a second");
    t->memory = i + 1;
    if (t->texts || t->state)
        tec_fields_fail(f, TEC_MALFORMED,
                        "what stands before {memory} is the same in every prompt: {text} and "
                        "{state} come behind it");
}

static enum tec_status read_call(struct tec_template *t, const json_t *json, int i,
                                 const char *where, struct tec_arena *arena, struct tec_error *err)
{
    static const char *const fields[] = {"text", "bos", "literal"};
    char here[220];
    snprintf(here, sizeof here, "%.180s.calls[%d]", where, i + 1);
    struct tec_fields f = tec_fields_open(json, fields, 3, here, arena, err);
    tec_fields_need(&f, "text");
    t->calls[i].text = tec_fields_string(&f, "text", NULL);
    t->calls[i].bos = tec_fields_bool(&f, "bos", false);
    t->calls[i].literal = tec_fields_bool(&f, "literal", false);
    if (t->calls[i].text && strcmp(t->calls[i].text, memory_mark) == 0)
        check_memory(&f, t, i);
    else
        check_marks(&f, t, t->calls[i].text);
    return f.status;
}

static enum tec_status read_template(struct tec_template *t, const json_t *json, const char *where,
                                     struct tec_arena *arena, struct tec_error *err)
{
    static const char *const fields[] = {"clean",  "listed",       "lower", "words",
                                         "ending", "ending_piece", "calls"};
    struct tec_fields f = tec_fields_open(json, fields, 7, where, arena, err);
    tec_fields_need(&f, "calls");
    t->clean = tec_fields_bool(&f, "clean", false);
    t->listed = tec_fields_bool(&f, "listed", false);
    t->lower = tec_fields_bool(&f, "lower", false);
    t->words = tec_fields_bool(&f, "words", false);
    t->ending = tec_fields_string(&f, "ending", NULL);
    t->ending_piece = tec_fields_string(&f, "ending_piece", NULL);
    const json_t *calls = tec_fields_list(&f, "calls", TEC_TEMPLATE_MAX_CALLS);
    t->n_calls = (int)json_array_size(calls);
    t->calls = TEC_NEW(arena, TEC_TEMPLATE_MAX_CALLS, struct tec_template_call);
    if (!t->calls)
        tec_fields_fail(&f, TEC_NO_MEMORY, "no memory for its calls");
    else if (t->n_calls == 0)
        tec_fields_fail(&f, TEC_MALFORMED, "'calls' must list at least one text");
    for (int i = 0; f.status == TEC_OK && i < t->n_calls; i++)
        f.status = read_call(t, json_array_get(calls, (size_t)i), i, where, arena, err);
    return f.status;
}

static enum tec_status fail_unknown(const json_t *templates, const char *name, const char *where,
                                    struct tec_error *err)
{
    enum { MOST = 128 };
    const char *names[MOST];
    int n = 0;
    json_t *all = tec_json_iterable(templates);
    for (void *it = json_object_iter(all); it && n < MOST; it = json_object_iter_next(all, it))
        names[n++] = json_object_iter_key(it);
    const char *near = tec_nearest(name, names, n);
    return tec_fail(err, TEC_NOT_FOUND, "%s: no prompt template '%.60s'%s", where, name,
                    tec_meant(';', near).text);
}

enum tec_status tec_template_parse(struct tec_template **out, const json_t *templates,
                                   const char *name, const char *where, struct tec_arena *arena,
                                   struct tec_error *err)
{
    const json_t *json = json_object_get(templates, name);
    char here[220];
    if (!json)
        return fail_unknown(templates, name, where, err);
    struct tec_template *t = TEC_NEW(arena, 1, struct tec_template);
    const char *mine = tec_arena_strdup(arena, name);
    if (!t || !mine)
        return tec_fail(err, TEC_NO_MEMORY, "%s: no memory for a template", where);
    t->name = mine;
    snprintf(here, sizeof here, "%.140s: %.60s", where, name);
    TEC_TRY(read_template(t, json, here, arena, err));
    *out = t;
    return TEC_OK;
}

static void add_text(struct tec_bytes *out, const struct tec_template *t, const char *text,
                     size_t n, struct tec_arena *arena)
{
    if (t->clean)
        text = tec_prompt_clean(text, n, &n, arena);
    if (t->listed && text)
        text = tec_prompt_listed(text, n, &n, arena);
    out->failed |= !text;
    size_t ending = t->ending ? strlen(t->ending) : 0;
    if (out->failed)
        return;
    struct tec_bytes lower;
    tec_bytes_init(&lower, arena, 0);
    if (t->lower && n > 0) {
        tec_unicode_lower(&lower, text, n);
        text = lower.at;
        n = lower.n;
        out->failed |= lower.failed;
    }
    if (t->words && !out->failed)
        text = tec_prompt_words(text, n, &n, arena);
    out->failed |= !text;
    if (out->failed)
        return;
    tec_bytes_add(out, text, n);
    if (ending > n || (ending && memcmp(text + n - ending, t->ending, ending) != 0))
        tec_bytes_add(out, t->ending, ending);
}

static void add_state(struct tec_bytes *out, const int *bins, int n_bins)
{
    char number[16];
    for (int i = 0; i < n_bins; i++) {
        int n = snprintf(number, sizeof number, "%s%d", i ? " " : "", bins[i]);
        tec_bytes_add(out, number, (size_t)n);
    }
}

const char *tec_template_misplaces(const struct tec_template *t, int n, struct tec_arena *arena)
{
    bool all = t->texts & 1U;
    for (int i = n + 1; i <= TEC_TEMPLATE_MAX_TEXTS; i++)
        if (t->texts >> i & 1U)
            return tec_arena_printf(arena, "has {text%d}, but %d text%s read", i, n,
                                    n == 1 ? " is" : "s are");
    if (n == 0 && all)
        return "has {text}, but no text is read";
    for (int i = 1; i <= n; i++)
        if (!all && !(t->texts >> i & 1U))
            return tec_arena_printf(arena, "has neither {text} nor {text%d}, which is read", i);
    return NULL;
}

const char *tec_template_join(const struct tec_template_values *values, size_t *bytes,
                              struct tec_arena *arena)
{
    struct tec_bytes all;
    *bytes = values->n_texts ? values->texts[0].n : 0;
    if (values->n_texts < 2)
        return values->n_texts ? values->texts[0].text : "";
    tec_bytes_init(&all, arena, 0);
    for (int i = 0; i < values->n_texts; i++) {
        if (all.n > 0 && values->texts[i].n > 0)
            tec_bytes_add(&all, "\n", 1);
        tec_bytes_add(&all, values->texts[i].text, values->texts[i].n);
    }
    *bytes = all.n;
    return all.failed ? NULL : all.at ? all.at : "";
}

size_t tec_template_keeps(const char *text, size_t bytes, size_t count, size_t most)
{
    size_t kept = bytes - bytes / 8 - (bytes > 0);
    if (count > 2 * most)
        kept = bytes / 2;
    while (kept > 0 && ((unsigned char)text[kept] & 0xC0U) == 0x80U)
        kept--;
    return kept;
}

bool tec_template_cut(struct tec_template_values *values, size_t count, size_t most)
{
    for (int i = values->n_texts - 1; i >= 0; i--) {
        struct tec_template_text *t = &values->texts[i];
        if (!t->cut || t->n == 0)
            continue;
        t->n = tec_template_keeps(t->text, t->n, count, most);
        return true;
    }
    return false;
}

/* The texts that a mark stands for. */
static void add_marked(struct tec_bytes *out, const struct tec_template *t, int mark,
                       const struct tec_template_values *v, struct tec_arena *arena)
{
    size_t n = 0;
    int at = mark - MARK_TEXT - 1;
    const char *text = at < 0 ? tec_template_join(v, &n, arena) : "";
    if (at >= 0 && at < v->n_texts) {
        text = v->texts[at].text;
        n = v->texts[at].n;
    }
    out->failed |= !text;
    if (text)
        add_text(out, t, text, n, arena);
}

enum tec_status tec_template_render(const char **out, size_t *bytes, const struct tec_template *t,
                                    int i, const struct tec_template_values *values,
                                    struct tec_arena *arena, struct tec_error *err)
{
    struct tec_bytes result;
    tec_bytes_init(&result, arena, 0);
    for (const char *c = t->calls[i].text; *c; c++) {
        int mark = mark_at(c);
        if (mark >= MARK_TEXT)
            add_marked(&result, t, mark, values, arena);
        else if (mark == MARK_STATE)
            add_state(&result, values->bins, values->n_bins);
        else
            tec_bytes_add(&result, c, 1);
        if (mark != MARK_NONE)
            c = strchr(c, '}');
    }
    if (result.failed)
        return tec_fail(err, TEC_NO_MEMORY, "prompt '%s': no memory for its text", t->name);
    *out = result.at ? result.at : "";
    *bytes = result.n;
    return TEC_OK;
}

static enum tec_status encode_call(const struct tec_template *t, int i,
                                   const struct tec_tokenizer *tokenizer,
                                   const struct tec_template_values *v, int *ids, size_t capacity,
                                   size_t *count, struct tec_arena *scratch, struct tec_error *err)
{
    const struct tec_encode how = {.literal = t->calls[i].literal};
    const char *text = NULL;
    size_t n = 0, begin = t->calls[i].bos;
    int bos = tec_tokenizer_bos(tokenizer);
    if (begin && bos < 0)
        return tec_fail(err, TEC_INVALID, "prompt '%s': the tokenizer has no begin token", t->name);
    if (begin && capacity > 0)
        ids[0] = bos;
    TEC_TRY(tec_template_render(&text, &n, t, i, v, scratch, err));
    size_t room = capacity > begin ? capacity - begin : 0;
    enum tec_status status = tec_tokenizer_encode(
        tokenizer, text, n, how, room ? ids + begin : NULL, room, count, scratch, err);
    *count += begin;
    return tec_context(err, status, "prompt '%s'", t->name);
}

/* If the ids did not fit, the last of them is unknown. The piece is then counted as if it were
 * missing, which is at most one too many. */
static enum tec_status end_ids(const struct tec_template *t, const struct tec_tokenizer *tokenizer,
                               int *ids, size_t capacity, size_t *count, struct tec_error *err)
{
    int piece = tec_tokenizer_id(tokenizer, t->ending_piece, strlen(t->ending_piece));
    if (piece < 0)
        return tec_fail(err, TEC_INVALID, "prompt '%s': the tokenizer has no piece '%.40s'",
                        t->name, t->ending_piece);
    if (*count > 0 && *count <= capacity && ids[*count - 1] == piece)
        return TEC_OK;
    if (*count < capacity)
        ids[*count] = piece;
    ++*count;
    return TEC_OK;
}

enum tec_status tec_template_encode_calls(const struct tec_template *t, int from, int to,
                                          const struct tec_tokenizer *tokenizer,
                                          const struct tec_template_values *values, int *ids,
                                          size_t capacity, size_t *count, struct tec_arena *scratch,
                                          struct tec_error *err)
{
    struct tec_arena_mark mark = tec_arena_mark(scratch);
    enum tec_status status = TEC_OK;
    size_t have = 0;
    for (int i = from; i < to && status == TEC_OK; i++) {
        size_t room = have < capacity ? capacity - have : 0, n = 0;
        status =
            encode_call(t, i, tokenizer, values, room ? ids + have : NULL, room, &n, scratch, err);
        have += n;
        tec_arena_rewind(scratch, mark);
    }
    *count = have;
    return status;
}

enum tec_status tec_template_encode(const struct tec_template *t,
                                    const struct tec_tokenizer *tokenizer,
                                    const struct tec_template_values *values, int *ids,
                                    size_t capacity, size_t *count, struct tec_arena *scratch,
                                    struct tec_error *err)
{
    if (t->memory)
        return tec_fail(err, TEC_INVALID,
                        "prompt '%s' has {memory}, but the pipeline has no memory_load node",
                        t->name);
    TEC_TRY(tec_template_encode_calls(t, 0, t->n_calls, tokenizer, values, ids, capacity, count,
                                      scratch, err));
    return t->ending_piece ? end_ids(t, tokenizer, ids, capacity, count, err) : TEC_OK;
}
