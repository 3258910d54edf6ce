#include "graph/transform/template.h"

#include "base/nearest.h"
#include "graph/transform/fields.h"

#include <stdio.h>
#include <string.h>

static const char text_mark[] = "{text}", state_mark[] = "{state}";

static bool starts(const char *text, const char *mark)
{
    return strncmp(text, mark, strlen(mark)) == 0;
}

/* Every brace must be part of a mark: a misspelt one would reach the model as text. */
static void check_marks(struct tec_fields *f, struct tec_template *t, const char *text)
{
    for (const char *c = text; c && *c; c++) {
        if (starts(c, state_mark))
            t->state = true;
        if (starts(c, text_mark) || starts(c, state_mark))
            c = strchr(c, '}');
        else if (*c == '{' || *c == '}')
            tec_fields_fail(f, TEC_MALFORMED, "'%.40s': a call knows {text} and {state}", c);
    }
}

static enum tec_status read_call(struct tec_template *t, const json_t *json, int i,
                                 const char *where, struct tec_arena *arena, struct tec_error *err)
{
    static const char *const fields[] = {"text", "bos"};
    char here[220];
    snprintf(here, sizeof here, "%.180s.calls[%d]", where, i + 1);
    struct tec_fields f = tec_fields_open(json, fields, 2, here, arena, err);
    tec_fields_need(&f, "text");
    t->calls[i].text = tec_fields_string(&f, "text", NULL);
    t->calls[i].bos = tec_fields_bool(&f, "bos", false);
    check_marks(&f, t, t->calls[i].text);
    return f.status;
}

static enum tec_status read_template(struct tec_template *t, const json_t *json, const char *where,
                                     struct tec_arena *arena, struct tec_error *err)
{
    static const char *const fields[] = {"clean", "ending", "calls"};
    struct tec_fields f = tec_fields_open(json, fields, 3, where, arena, err);
    tec_fields_need(&f, "calls");
    t->clean = tec_fields_bool(&f, "clean", false);
    t->ending = tec_fields_string(&f, "ending", NULL);
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
    const char *names[64];
    int n = 0;
    json_t *all = tec_json_iterable(templates);
    for (void *it = json_object_iter(all); it && n < 64; it = json_object_iter_next(all, it))
        names[n++] = json_object_iter_key(it);
    const char *near = tec_nearest(name, names, n);
    return tec_fail(err, TEC_NOT_FOUND, "%s: no prompt template '%.60s'%s%s%s", where, name,
                    near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
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

/* Bytes of the white space character at text, 0 when it is none: Python's str.isspace. All of them
 * lie in the BMP, so three bytes are enough. */
static size_t space_at(const char *text, size_t n)
{
    const unsigned char *c = (const unsigned char *)text;
    if (n >= 1 && (c[0] == ' ' || (c[0] >= 0x09 && c[0] <= 0x0d) || (c[0] >= 0x1c && c[0] <= 0x1f)))
        return 1;
    if (n >= 2 && c[0] == 0xc2 && (c[1] == 0x85 || c[1] == 0xa0))
        return 2;
    if (n < 3 || (c[0] & 0xf0) != 0xe0 || (c[1] & 0xc0) != 0x80 || (c[2] & 0xc0) != 0x80)
        return 0;
    unsigned code = (unsigned)(c[0] & 0xf) << 12 | (unsigned)(c[1] & 0x3f) << 6 | (c[2] & 0x3f);
    bool is_space = code == 0x1680 || (code >= 0x2000 && code <= 0x200a) || code == 0x2028 ||
                    code == 0x2029 || code == 0x202f || code == 0x205f || code == 0x3000;
    return is_space ? 3 : 0;
}

static void strip(const char **text, size_t *n)
{
    size_t width;
    while ((width = space_at(*text, *n)) > 0) {
        *text += width;
        *n -= width;
    }
    for (width = 1; width <= 3; width++)
        if (*n >= width && space_at(*text + *n - width, width) == width) {
            *n -= width;
            width = 0; /* start over with the shorter text */
        }
}

/* Where rendered text goes; counts beyond the room too. */
struct sink {
    char *out;
    size_t room, bytes;
};

static void put(struct sink *sink, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++, sink->bytes++)
        if (sink->bytes < sink->room)
            sink->out[sink->bytes] = text[i];
}

static void put_text(struct sink *sink, const struct tec_template *t, const char *text, size_t n)
{
    if (t->clean) {
        strip(&text, &n);
        for (size_t i = 0; i < n; i++)
            put(sink, text[i] == '_' || text[i] == '\n' ? " " : text + i, 1);
    } else {
        put(sink, text, n);
    }
    size_t ending = t->ending ? strlen(t->ending) : 0;
    if (ending > n || (ending && memcmp(text + n - ending, t->ending, ending) != 0))
        put(sink, t->ending, ending);
}

static void put_state(struct sink *sink, const int32_t *bins, int n_bins)
{
    char number[16];
    for (int i = 0; i < n_bins; i++) {
        int n = snprintf(number, sizeof number, "%s%d", i ? " " : "", (int)bins[i]);
        put(sink, number, (size_t)n);
    }
}

enum tec_status tec_template_render(const struct tec_template *t, int i, const char *text, size_t n,
                                    const int32_t *bins, int n_bins, char *out, size_t room,
                                    size_t *bytes, struct tec_error *err)
{
    struct sink sink = {out, room, 0};
    for (const char *c = t->calls[i].text; *c; c++) {
        bool is_text = starts(c, text_mark), is_state = starts(c, state_mark);
        if (is_text)
            put_text(&sink, t, text, n);
        else if (is_state)
            put_state(&sink, bins, n_bins);
        else
            put(&sink, c, 1);
        if (is_text || is_state)
            c = strchr(c, '}');
    }
    *bytes = sink.bytes;
    if (sink.bytes <= room)
        return TEC_OK;
    return tec_fail(err, TEC_INVALID, "prompt '%s': %zu bytes, there is room for %zu", t->name,
                    sink.bytes, room);
}
