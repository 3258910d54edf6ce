/* diagnostics.c - the list of what is wrong with a file. */
#include "graph/load/diagnostics.h"

#include "base/escape.h"
#include "base/nearest.h"

#include <stdlib.h>
#include <string.h>

struct tec_source_text {
    const char *file, *text;
    size_t n;
    int order; /* of appearance */
    struct tec_source_text *next;
};

static const struct {
    const char *name, *meaning;
    enum tec_severity severity;
} codes[] = {
#define CODE(name, severity, meaning) {#name, meaning, severity},
#include "graph/load/codes.def"
#undef CODE
};

const char *tec_code_name(enum tec_code code)
{
    return code >= 0 && code < TEC_CODES ? codes[code].name : "?";
}

const char *tec_code_meaning(enum tec_code code)
{
    return code >= 0 && code < TEC_CODES ? codes[code].meaning : "?";
}

enum tec_code tec_code_find(const char *name)
{
    for (int i = 0; i < TEC_CODES; i++)
        if (strcmp(codes[i].name, name) == 0)
            return (enum tec_code)i;
    return TEC_CODES;
}

void tec_diagnostics_init(struct tec_diagnostics *d, struct tec_heap *heap)
{
    *d = (struct tec_diagnostics){0};
    tec_arena_init(&d->arena, heap);
}

void tec_diagnostics_finish(struct tec_diagnostics *d)
{
    tec_arena_finish(&d->arena);
    d->list = NULL;
    d->sources = NULL;
    d->n = d->capacity = 0;
}

static bool is_tail(unsigned char c)
{
    return (c & 0xC0) == 0x80;
}

/* Bytes of the well-formed UTF-8 sequence at s, 0 when it is not one. */
static int sequence(const unsigned char *s)
{
    if (s[0] < 0x80)
        return 1;
    if (s[0] >= 0xC2 && s[0] <= 0xDF && is_tail(s[1]))
        return 2;
    if (s[0] >= 0xE0 && s[0] <= 0xEF && is_tail(s[1]) && is_tail(s[2]))
        return (s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xED && s[1] >= 0xA0) ? 0 : 3;
    if (s[0] >= 0xF0 && s[0] <= 0xF4 && is_tail(s[1]) && is_tail(s[2]) && is_tail(s[3]))
        return (s[0] == 0xF0 && s[1] < 0x90) || (s[0] == 0xF4 && s[1] >= 0x90) ? 0 : 4;
    return 0;
}

static const char *format_text(struct tec_diagnostics *d, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

static const char *format_text(struct tec_diagnostics *d, const char *format, va_list args)
{
    char line[512], shown[512];
    vsnprintf(line, sizeof line, format, args);
    tec_escape(shown, sizeof shown, line); /* a hostile file's names and strings are in it */
    const char *copy = tec_arena_strdup(&d->arena, shown);
    d->out_of_memory |= copy == NULL;
    return copy ? copy : "out of memory";
}

static bool grow(struct tec_diagnostics *d)
{
    if (d->n >= TEC_MAX_DIAGNOSTICS)
        return false;
    if (d->n < d->capacity)
        return true;
    int capacity = d->capacity ? d->capacity * 2 : 8;
    struct tec_diagnostic *list = TEC_NEW(&d->arena, (size_t)capacity, struct tec_diagnostic);
    if (!list) {
        d->out_of_memory = true;
        return false;
    }
    if (d->n > 0)
        memcpy(list, d->list, (size_t)d->n * sizeof *list);
    d->list = list;
    d->capacity = capacity;
    return true;
}

static bool is_at(const struct tec_diagnostic *entry, enum tec_code code, struct tec_where at)
{
    return entry->code == code && entry->where.line == at.line && entry->where.col == at.col &&
           entry->where.file && at.file && strcmp(entry->where.file, at.file) == 0;
}

/* A loop of the file may make the same mistake at the same place again and again. */
static bool repeats(const struct tec_diagnostics *d, enum tec_code code, struct tec_where at,
                    const char *message)
{
    const struct tec_diagnostic *last = d->n ? &d->list[d->n - 1] : NULL;
    return last && is_at(last, code, at) && strcmp(last->message, message) == 0;
}

void tec_diagnostics_take_back(struct tec_diagnostics *d, enum tec_code code,
                               struct tec_where where)
{
    int i = d->n - 1;
    while (i >= 0 && !is_at(&d->list[i], code, where))
        i--;
    if (i < 0)
        return;
    if (d->list[i].severity == TEC_ERROR)
        d->n_errors--;
    else
        d->n_warnings--;
    memmove(&d->list[i], &d->list[i + 1], (size_t)(d->n - i - 1) * sizeof d->list[0]);
    d->n--;
}

struct tec_diagnostic *tec_diagnostics_add(struct tec_diagnostics *d, enum tec_code code,
                                           struct tec_where where, const char *format, ...)
{
    enum tec_severity severity = codes[code].severity;
    struct tec_arena_mark mark = tec_arena_mark(&d->arena);
    va_list args;
    va_start(args, format);
    const char *message = format_text(d, format, args);
    va_end(args);
    if (repeats(d, code, where, message)) {
        tec_arena_rewind(&d->arena, mark);
        return &d->list[d->n - 1];
    }
    if (severity == TEC_ERROR)
        d->n_errors++;
    else
        d->n_warnings++;
    if (!grow(d))
        return NULL;
    if (where.file)
        where.file = tec_arena_strdup(&d->arena, where.file);
    d->list[d->n] = (struct tec_diagnostic){
        .where = where, .severity = severity, .code = code, .message = message};
    return &d->list[d->n++];
}

void tec_diagnostics_help(struct tec_diagnostics *d, struct tec_diagnostic *entry,
                          const char *format, ...)
{
    if (!entry)
        return;
    va_list args;
    va_start(args, format);
    entry->help = format_text(d, format, args);
    va_end(args);
}

const char *tec_diagnostics_meant(struct tec_diagnostics *d, struct tec_diagnostic *entry,
                                  const char *word, const char *const *names, int n)
{
    const char *near = tec_nearest(word, names, n);
    if (near)
        tec_diagnostics_help(d, entry, "did you mean '%s'?", near);
    return near;
}

void tec_diagnostics_also(struct tec_diagnostics *d, struct tec_diagnostic *entry,
                          struct tec_where where, const char *format, ...)
{
    if (!entry || entry->n_also >= TEC_MAX_ALSO)
        return;
    if (where.file)
        where.file = tec_arena_strdup(&d->arena, where.file);
    va_list args;
    va_start(args, format);
    entry->also[entry->n_also].where = where;
    entry->also[entry->n_also++].message = format_text(d, format, args);
    va_end(args);
}

static const struct tec_source_text *find_source(const struct tec_diagnostics *d, const char *file)
{
    for (const struct tec_source_text *s = d->sources; s; s = s->next)
        if (file && strcmp(s->file, file) == 0)
            return s;
    return NULL;
}

void tec_diagnostics_source(struct tec_diagnostics *d, const char *file, const char *text, size_t n)
{
    if (find_source(d, file))
        return;
    struct tec_source_text *source = TEC_NEW(&d->arena, 1, struct tec_source_text);
    char *name = tec_arena_strdup(&d->arena, file);
    char *copy = tec_arena_strndup(&d->arena, text, n);
    if (!source || !name || !copy) {
        d->out_of_memory = true;
        return;
    }
    *source = (struct tec_source_text){.file = name,
                                       .text = copy,
                                       .n = n,
                                       .order = d->sources ? d->sources->order + 1 : 0,
                                       .next = d->sources};
    d->sources = source;
}

struct sorted {
    struct tec_diagnostic entry;
    int file, index;
};

static int compare(const void *a, const void *b)
{
    const struct sorted *x = a, *y = b;
    int differ = x->file - y->file;
    if (!differ)
        differ = x->entry.where.line - y->entry.where.line;
    if (!differ)
        differ = x->entry.where.col - y->entry.where.col;
    if (!differ)
        differ = (int)x->entry.code - (int)y->entry.code;
    return differ ? differ : x->index - y->index;
}

void tec_diagnostics_sort(struct tec_diagnostics *d)
{
    struct tec_arena_mark mark = tec_arena_mark(&d->arena);
    struct sorted *list = d->n ? TEC_NEW(&d->arena, (size_t)d->n, struct sorted) : NULL;
    if (!list)
        return;
    for (int i = 0; i < d->n; i++) {
        const struct tec_source_text *s = find_source(d, d->list[i].where.file);
        list[i] = (struct sorted){d->list[i], s ? s->order : 1 << 20, i};
    }
    qsort(list, (size_t)d->n, sizeof *list, compare);
    for (int i = 0; i < d->n; i++)
        d->list[i] = list[i].entry;
    tec_arena_rewind(&d->arena, mark);
}

/* The bytes of a line of a source, without its end. */
static bool find_line(const struct tec_source_text *s, int line, const char **text, int *n)
{
    size_t at = 0;
    for (int i = 1; i < line; i++) {
        const char *end = memchr(s->text + at, '\n', s->n - at);
        if (!end)
            return false;
        at = (size_t)(end - s->text) + 1;
    }
    const char *end = memchr(s->text + at, '\n', s->n - at);
    size_t length = end ? (size_t)(end - s->text) - at : s->n - at;
    if (length > 0 && s->text[at + length - 1] == '\r')
        length--;
    *text = s->text + at;
    *n = length > 400 ? 400 : (int)length; /* a line longer than that helps nobody */
    return true;
}

static void print_excerpt(const struct tec_source_text *s, struct tec_where w, int gutter,
                          FILE *out)
{
    const char *text;
    int n;
    if (!s || w.line < 1 || !find_line(s, w.line, &text, &n))
        return;
    fprintf(out, "%*s |\n%*d | ", gutter, "", gutter, w.line);
    for (int i = 0; i < n;) { /* a column each, for the mark below: no escapes */
        size_t plain = text[i] == '\t' ? 1 : tec_escape_plain(text + i, (size_t)(n - i));
        fwrite(plain ? text + i : "?", 1, plain ? plain : 1, out);
        i += plain ? (int)plain : 1;
        while (!plain && i < n && is_tail((unsigned char)text[i]))
            i++;
    }
    fputc('\n', out);
    if (w.col < 1 || w.col > n + 1)
        return;
    fprintf(out, "%*s | ", gutter, "");
    for (int i = 0; i < w.col - 1; i++) {
        if (!is_tail((unsigned char)text[i]))
            fputc(text[i] == '\t' ? '\t' : ' ', out);
    }
    int end = w.end > w.col ? w.end : w.col + 1;
    for (int i = w.col - 1; i < end - 1 && (i < n || i == w.col - 1); i++)
        if (i >= n || !is_tail((unsigned char)text[i]))
            fputc('^', out);
    fputc('\n', out);
}

static void print_place(struct tec_where w, FILE *out)
{
    tec_escape_print(out, w.file ? w.file : "?");
    if (w.line > 0)
        fprintf(out, ":%d", w.line);
    if (w.line > 0 && w.col > 0)
        fprintf(out, ":%d", w.col);
}

static void print_text(const struct tec_diagnostics *d, const struct tec_diagnostic *e, FILE *out)
{
    char digits[16];
    int gutter = snprintf(digits, sizeof digits, "%d", e->where.line > 0 ? e->where.line : 1);
    fprintf(out, "%s[%s]: %s\n%*s--> ", e->severity == TEC_ERROR ? "error" : "warning",
            codes[e->code].name, e->message, gutter, "");
    print_place(e->where, out);
    fputc('\n', out);
    if (!e->secret)
        print_excerpt(find_source(d, e->where.file), e->where, gutter, out);
    for (int i = 0; i < e->n_also; i++) {
        fprintf(out, "%*s = also: ", gutter, "");
        struct tec_where place = e->also[i].where;
        place.col = 0;
        print_place(place, out);
        fprintf(out, " %s\n", e->also[i].message);
    }
    if (e->help)
        fprintf(out, "%*s = help: %s\n", gutter, "", e->help);
}

static void print_string(const char *s, FILE *out)
{
    fputc('"', out);
    for (const unsigned char *c = (const unsigned char *)s; *c;) {
        int n = sequence(c);
        if (*c == '"' || *c == '\\')
            fprintf(out, "\\%c", *c);
        else if (n == 0 || *c < 0x20)
            fprintf(out, "\\u%04x", n ? *c : 0xFFFD);
        else
            fwrite(c, 1, (size_t)n, out);
        c += n ? n : 1;
    }
    fputc('"', out);
}

static void print_json(const struct tec_diagnostic *e, FILE *out)
{
    fputs("{\"file\": ", out);
    print_string(e->where.file ? e->where.file : "", out);
    fprintf(out, ", \"line\": %d, \"col\": %d, \"end\": %d, \"severity\": \"%s\", \"code\": \"%s\"",
            e->where.line, e->where.col, e->where.end,
            e->severity == TEC_ERROR ? "error" : "warning", codes[e->code].name);
    fputs(", \"message\": ", out);
    print_string(e->message, out);
    fputs(", \"help\": ", out);
    if (e->help)
        print_string(e->help, out);
    else
        fputs("null", out);
    fputs(", \"also\": [", out);
    for (int i = 0; i < e->n_also; i++) {
        fputs(i ? ", {\"file\": " : "{\"file\": ", out);
        print_string(e->also[i].where.file ? e->also[i].where.file : "", out);
        fprintf(out, ", \"line\": %d, \"message\": ", e->also[i].where.line);
        print_string(e->also[i].message, out);
        fputc('}', out);
    }
    fputs("]}\n", out);
}

/* Workflow commands need % and line ends escaped, in properties : and , too. */
static void print_escaped(const char *s, bool property, FILE *out)
{
    for (; *s; s++) {
        if (*s == '%' || *s == '\n' || *s == '\r' || (property && (*s == ':' || *s == ',')))
            fprintf(out, "%%%02X", (unsigned char)*s);
        else
            fputc(*s, out);
    }
}

static void print_github(const struct tec_diagnostic *e, FILE *out)
{
    char file[4096];
    tec_escape(file, sizeof file, e->where.file ? e->where.file : "");
    fprintf(out, "::%s file=", e->severity == TEC_ERROR ? "error" : "warning");
    print_escaped(file, true, out);
    if (e->where.line > 0)
        fprintf(out, ",line=%d", e->where.line);
    if (e->where.col > 0)
        fprintf(out, ",col=%d", e->where.col);
    fprintf(out, ",title=%s::", codes[e->code].name);
    print_escaped(e->message, false, out);
    if (e->help) {
        fputs(" (", out);
        print_escaped(e->help, false, out);
        fputc(')', out);
    }
    fputc('\n', out);
}

void tec_diagnostics_print(const struct tec_diagnostics *d, enum tec_diagnostics_format format,
                           FILE *out)
{
    for (int i = 0; i < d->n; i++) {
        if (format == TEC_PRINT_JSON) {
            print_json(&d->list[i], out);
        } else if (format == TEC_PRINT_GITHUB) {
            print_github(&d->list[i], out);
        } else {
            if (i > 0)
                fputc('\n', out);
            print_text(d, &d->list[i], out);
        }
    }
    int lost = d->n_errors + d->n_warnings - d->n;
    if (lost > 0 && format == TEC_PRINT_TEXT)
        fprintf(out, "\nand %d more\n", lost);
}

bool tec_only_refused(const struct tec_diagnostics *d)
{
    int refused = 0;
    for (int i = 0; i < d->n; i++)
        refused += d->list[i].code >= TEC_E070 && d->list[i].code <= TEC_E072;
    return refused == d->n_errors;
}

enum tec_status tec_diagnostics_first(const struct tec_diagnostics *d, const char *path,
                                      struct tec_error *err)
{
    enum tec_status status = tec_only_refused(d) ? TEC_UNSUPPORTED : TEC_MALFORMED;
    for (int i = 0; i < d->n; i++) {
        const struct tec_diagnostic *e = &d->list[i];
        if (e->severity != TEC_ERROR)
            continue;
        return tec_fail(err, status, "%s:%d:%d: %s (%d error%s in all)",
                        e->where.file ? e->where.file : path, e->where.line, e->where.col,
                        e->message, d->n_errors, d->n_errors == 1 ? "" : "s");
    }
    return tec_fail(err, TEC_MALFORMED, "%s: %d errors", path, d->n_errors);
}

/* --- sentences with a place ------------------------------------------------------------------ */

enum tec_status tec_where_fail(struct tec_error *err, enum tec_status status,
                               const struct tec_where *where, const char *format, ...)
{
    char text[sizeof err->message];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return tec_fail(err, status, "%s:%d: %s", where->file ? where->file : "?", where->line, text);
}

enum tec_status tec_where_context(struct tec_error *err, enum tec_status status,
                                  const struct tec_where *where, const char *format, ...)
{
    char text[sizeof err->message];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return tec_context(err, status, "%s:%d: %s", where->file ? where->file : "?", where->line,
                       text);
}
