/* robot_place.c - where in a robot's own file a mistake of its description stands.
 *
 * A description is read as JSON, which has no lines. Its messages begin with the file and the place
 * of a table in it, "libero.lua: state.inputs[2]: ", and have the field in quotes; the tokens of
 * the file say where that is, as long as the file returns a table that is written out. */
#include "graph/load/loader.h"

#include <stdlib.h>
#include <string.h>

enum { LONGEST = 200 };

/* The brace of the table that the file returns, or -1. */
static int returned(const struct tec_source *s)
{
    for (int i = s->n_tokens - 2; i >= 0; i--) {
        const struct tec_token *t = &s->tokens[i], *brace = &s->tokens[i + 1];
        if (t->kind == TEC_TOKEN_NAME && t->end - t->begin == 6 &&
            memcmp(s->text + t->begin, "return", 6) == 0)
            return s->text[brace->begin] == '{' ? i + 1 : -1;
    }
    return -1;
}

/* The table at `path`, such as "state.inputs[2]", within the one that begins at `open`; -1: the
 * file does not write it out. */
static int table_at(const struct tec_source *s, int open, const char *path)
{
    char name[LONGEST];
    while (open >= 0 && *path) {
        struct tec_source_span span;
        size_t n = strcspn(path, ".[");
        if (n >= sizeof name)
            return -1;
        memcpy(name, path, n);
        name[n] = '\0';
        bool found = n == 0 || tec_source_find_key(s, open, name, 0, &span);
        if (n > 0)
            open = found && s->tokens[span.first].match == span.last ? span.first : -1;
        path += n;
        if (open >= 0 && *path == '[') {
            int at = atoi(path + 1);
            found = tec_source_find_key(s, open, NULL, at - 1, &span);
            open = found && s->tokens[span.first].match == span.last ? span.first : -1;
            path += strcspn(path, "]");
            path += *path == ']';
        }
        path += *path == '.';
    }
    return open;
}

/* What the message says: the path of a table, which may be empty, and the field, which may be "".
 */
struct said {
    char table[LONGEST], field[LONGEST];
    bool unknown; /* the name is wrong, not its value */
};

static struct said read_message(const char *text)
{
    struct said m = {"", "", strstr(text, "unknown field '") != NULL};
    size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.[]");
    if (n > 0 && n < LONGEST && text[n] == ':')
        memcpy(m.table, text, n);
    const char *quote = strchr(text, '\'');
    n = quote ? strcspn(quote + 1, "'[") : 0;
    if (n > 0 && n < LONGEST)
        memcpy(m.field, quote + 1, n);
    return m;
}

static bool find(const struct tec_source *s, const struct said *m, const char *table,
                 bool with_field, struct tec_where *where)
{
    struct tec_source_span span;
    int open = table_at(s, returned(s), table);
    if (open < 0)
        return false;
    if (!with_field) {
        *where = tec_source_where(s, open, open);
        return true;
    }
    if (!tec_source_find_key(s, open, m->field, 0, &span))
        return false;
    *where = m->unknown ? tec_source_where(s, span.key_first, span.key_last)
                        : tec_source_where(s, span.first, span.last);
    return true;
}

bool tec_loader_robot_place(struct tec_loader *ld, const struct tec_decl_robot *robot,
                            const char *message, const char *variant, struct tec_where *where)
{
    char in_variant[2 * LONGEST + 16];
    struct tec_error ignored;
    int source = robot->file ? tec_loader_add(ld, robot->file, &ignored) : -1;
    if (source < 0)
        return false;
    const struct tec_source *s = &ld->sources[source];
    struct said m = read_message(message);
    snprintf(in_variant, sizeof in_variant, "variants.%s%s%s", variant ? variant : "",
             *m.table ? "." : "", m.table);
    /* what the variant says takes the place of what stands outside */
    return (variant && *m.field && find(s, &m, in_variant, true, where)) ||
           (*m.field && find(s, &m, m.table, true, where)) || find(s, &m, m.table, false, where);
}
