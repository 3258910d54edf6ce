/* robot_place.c - where in a robot's own file a mistake of its description stands.
 *
 * A description is read as JSON, which has no lines. Its messages begin with the file and the place
 * of a table in it, "libero.lua: state.inputs[2]: ", and have the field in quotes; the tokens of
 * the file say where that is, as long as the file returns a table that is written out. */
#include "graph/load/loader.h"

#include <stdlib.h>
#include <string.h>

enum { LONGEST = 200 };

/* The brace of the table that the file returns: its last tokens are `return { ... }`. Or -1. */
static int returned(const struct tec_source *s)
{
    int open = s->n_tokens ? s->tokens[s->n_tokens - 1].match : -1;
    const struct tec_token *t = open > 0 ? &s->tokens[open - 1] : NULL;
    bool whole = t && t->kind == TEC_TOKEN_NAME && t->end - t->begin == 6 &&
                 memcmp(s->text + t->begin, "return", 6) == 0;
    return whole && s->text[s->tokens[open].begin] == '{' ? open : -1;
}

/* The table of that key, or without one the n-th from 0, in the table that begins at `open`; -1:
 * the file does not write it out. */
static int table_in(const struct tec_source *s, int open, const char *key, int n)
{
    struct tec_source_span span;
    bool found = open >= 0 && tec_source_find_key(s, open, key, n, &span);
    return found && s->tokens[span.first].match == span.last ? span.first : -1;
}

/* The table at `path`, such as "state.inputs[2]", within the one that begins at `open`; or -1. */
static int table_at(const struct tec_source *s, int open, const char *path)
{
    char name[LONGEST];
    while (open >= 0 && *path) {
        size_t n = strcspn(path, ".[");
        if (n >= sizeof name)
            return -1;
        memcpy(name, path, n);
        name[n] = '\0';
        if (n > 0)
            open = table_in(s, open, name, 0);
        path += n;
        if (*path == '[') {
            open = table_in(s, open, NULL, atoi(path + 1) - 1);
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

/* The field of the message in the table that begins at `open`; the table itself without one. */
static bool find(const struct tec_source *s, const struct said *m, int open, bool with_field,
                 struct tec_where *where)
{
    struct tec_source_span span;
    if (open < 0)
        return false;
    if (!with_field) {
        *where = tec_source_where(s, open, open);
        return true;
    }
    if (!*m->field || !tec_source_find_key(s, open, m->field, 0, &span))
        return false;
    *where = m->unknown ? tec_source_where(s, span.key_first, span.key_last)
                        : tec_source_where(s, span.first, span.last);
    return true;
}

bool tec_loader_robot_place(struct tec_loader *ld, const struct tec_decl_robot *robot,
                            const char *message, const char *variant, struct tec_where *where)
{
    struct tec_error ignored;
    int source = -1;
    if (robot->file)
        tec_loader_add(ld, robot->file, &source, &ignored);
    if (source < 0)
        return false;
    const struct tec_source *s = &ld->sources[source];
    const struct said m = read_message(message);
    int outer = returned(s), variants = table_in(s, outer, "variants", 0);
    int own = variant ? table_in(s, variants, variant, 0) : -1;
    if (variant && own < 0)
        return false; /* what the variant says, in the place of what stands outside, is not known */
    int in_own = own < 0 ? -1 : table_at(s, own, m.table), at = table_at(s, outer, m.table);
    return find(s, &m, in_own, true, where) || find(s, &m, at, true, where) ||
           find(s, &m, at, false, where);
}
