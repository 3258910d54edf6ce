/* overlay.c - changes on top of a pipeline: extend() and --set. */
#include "graph/load/loader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_MERGED = 1000 }; /* members of two tables that merge: the work is their product */

static const char *name_of(const struct tec_decl_value *v)
{
    return tec_decl_value_string(v, "name");
}

static int find_named(const struct tec_decl_value *list, const char *name)
{
    for (int i = 0; i < list->n; i++) {
        const char *n = name_of(list->entries[i].value);
        if (n && strcmp(n, name) == 0)
            return i;
    }
    return -1;
}

/* Lists of things merge by name; lists of numbers or names are replaced. */
static bool is_named_list(const struct tec_decl_value *v)
{
    if (v->kind != TEC_VALUE_LIST || v->n == 0)
        return false;
    for (int i = 0; i < v->n; i++)
        if (!name_of(v->entries[i].value))
            return false;
    return true;
}

/* Help for a word that is no name of a list: the one that was probably meant. */
static void help_names(struct tec_loader *ld, struct tec_diagnostic *d, const char *word,
                       const struct tec_decl_value *list)
{
    const char *names[64];
    int n = 0;
    for (int i = 0; i < list->n && n < 64; i++)
        names[n++] = name_of(list->entries[i].value);
    tec_diagnostics_meant(ld->d, d, word, names, n);
}

static struct tec_decl_value *remove_named(struct tec_loader *ld, struct tec_decl_value *out,
                                           const struct tec_decl_entry *change)
{
    const char *name = name_of(change->value);
    int at = find_named(out, name);
    if (at < 0) {
        help_names(ld,
                   tec_diagnostics_add(ld->d, TEC_E021, tec_where_value(ld, change),
                                       "there is no '%.80s' to leave out", name),
                   name, out);
        return out;
    }
    memmove(&out->entries[at], &out->entries[at + 1],
            (size_t)(out->n - at - 1) * sizeof *out->entries);
    out->n--;
    return out;
}

static struct tec_decl_value *merge_list(struct tec_loader *ld, struct tec_decl_value *base,
                                         struct tec_decl_value *changes)
{
    struct tec_decl_value *out = tec_decl_value_copy(ld, base, base->n + changes->n);
    for (int i = 0; out && i < changes->n; i++) {
        const struct tec_decl_entry *change = &changes->entries[i];
        if (change->value->tag == TEC_CON_without) {
            out = remove_named(ld, out, change);
            continue;
        }
        int at = find_named(out, name_of(change->value));
        struct tec_decl_entry *e = &out->entries[at < 0 ? out->n : at];
        if (at < 0) {
            *e = *change;
            out->n++;
        } else {
            e->value = tec_overlay(ld, e->value, change->value);
            if (!e->value)
                return NULL;
        }
    }
    for (int i = 0; out && i < out->n; i++)
        if (out->entries[i].source == base->source || out->entries[i].item < 0)
            out->entries[i].item = out->entries[i].item < 0 ? i : out->entries[i].item;
    return out;
}

/* `model = { }` on top of a base that says `models = { one }`. */
static struct tec_decl_entry *find_target(struct tec_decl_value *out, const char *key)
{
    for (int i = 0; i < out->n; i++)
        if (strcmp(out->entries[i].key, key) == 0)
            return &out->entries[i];
    if (strcmp(key, "model") != 0)
        return NULL;
    for (int i = 0; i < out->n; i++) {
        struct tec_decl_value *v = out->entries[i].value;
        if (strcmp(out->entries[i].key, "models") == 0 && v->kind == TEC_VALUE_LIST && v->n == 1)
            return &v->entries[0];
    }
    return NULL;
}

/* A policy of another name does not inherit parameters. */
static bool replaces(const struct tec_decl_value *base, const struct tec_decl_value *change)
{
    bool tables = base->kind == TEC_VALUE_TABLE && change->kind == TEC_VALUE_TABLE;
    if (!tables || (change->tag && change->tag != base->tag))
        return true;
    if (base->tag && tec_constructors[base->tag].usage)
        return true;
    const char *was = name_of(base), *is = name_of(change);
    return base->tag == TEC_CON_use && was && is && strcmp(was, is) != 0;
}

static struct tec_decl_value *refuse(struct tec_loader *ld, const char *why)
{
    tec_diagnostics_add(ld->d, TEC_E011, (struct tec_where){.file = ld->sources[0].file}, "%s",
                        why);
    return tec_decl_value_new(ld, TEC_VALUE_BAD);
}

/* `field = without "field"`: the base's field is as if it had never been written. */
static void remove_field(struct tec_loader *ld, struct tec_decl_value *out,
                         const struct tec_decl_entry *change)
{
    const char *name = name_of(change->value);
    int at = 0;
    while (at < out->n && (!out->entries[at].key || strcmp(out->entries[at].key, change->key) != 0))
        at++;
    if (name && strcmp(name, change->key) != 0) {
        struct tec_diagnostic *d =
            tec_diagnostics_add(ld->d, TEC_E021, tec_where_value(ld, change),
                                "field '%.80s' cannot leave out '%.80s'", change->key, name);
        tec_diagnostics_help(ld->d, d, "write %.80s = without \"%.80s\"", change->key, change->key);
        return;
    }
    if (at == out->n) {
        const char *keys[64];
        int n = 0;
        for (int i = 0; i < out->n && n < 64; i++)
            keys[n++] = out->entries[i].key;
        struct tec_diagnostic *d =
            tec_diagnostics_add(ld->d, TEC_E021, tec_where_value(ld, change),
                                "there is no field '%.80s' to leave out", change->key);
        tec_diagnostics_meant(ld->d, d, change->key, keys, n);
        return;
    }
    memmove(&out->entries[at], &out->entries[at + 1],
            (size_t)(out->n - at - 1) * sizeof *out->entries);
    out->n--;
}

/* Put what the merge of a field gave in its place. */
static void put_merged(struct tec_decl_entry *e, const struct tec_decl_entry *change,
                       struct tec_decl_value *merged)
{
    if (merged == change->value) {
        const char *key = e->key;
        *e = *change;
        e->key = key;
        return;
    }
    e->value = merged;
    if (strcmp(e->key, "robot") == 0) { /* judged as a whole: shown where it was changed */
        e->source = change->source;
        e->open = change->open;
        e->item = change->item;
    }
}

static struct tec_decl_value *merge_fields(struct tec_loader *ld, struct tec_decl_value *base,
                                           struct tec_decl_value *overlay)
{
    struct tec_decl_value *out = tec_decl_value_copy(ld, base, base->n + overlay->n);
    for (int i = 0; out && i < overlay->n; i++)
        if (overlay->entries[i].value->tag == TEC_CON_without)
            remove_field(ld, out, &overlay->entries[i]);
    for (int i = 0; out && i < overlay->n; i++) {
        const struct tec_decl_entry *change = &overlay->entries[i];
        if (change->value->tag == TEC_CON_without)
            continue;
        struct tec_decl_entry *e = find_target(out, change->key);
        if (!e) {
            out->entries[out->n++] = *change;
            continue;
        }
        struct tec_decl_value *merged = tec_overlay(ld, e->value, change->value);
        if (!merged)
            return NULL;
        put_merged(e, change, merged);
    }
    return out;
}

struct tec_decl_value *tec_overlay(struct tec_loader *ld, struct tec_decl_value *base,
                                   struct tec_decl_value *overlay)
{
    if (base->kind == TEC_VALUE_BAD || overlay->kind == TEC_VALUE_BAD)
        return overlay->kind == TEC_VALUE_BAD ? overlay : base;
    bool top = overlay->tag == TEC_CON_extend;
    if (overlay->kind == TEC_VALUE_LIST && overlay->n == 0 && base->kind == TEC_VALUE_TABLE)
        return base;
    if (base->n > MAX_MERGED || overlay->n > MAX_MERGED)
        return refuse(ld, "extend merges tables of at most 1000 members");
    if (is_named_list(base) && is_named_list(overlay))
        return merge_list(ld, base, overlay);
    if (!top && replaces(base, overlay))
        return overlay;
    if (base->kind != TEC_VALUE_TABLE || overlay->kind != TEC_VALUE_TABLE)
        return refuse(ld, "extend needs a file that returns a pipeline");
    return merge_fields(ld, base, overlay);
}

/* --- --set PATH=VALUE --- */

static struct tec_decl_value *from_json(struct tec_loader *ld, const json_t *json,
                                        struct tec_where where)
{
    struct tec_decl_value *v = tec_decl_value_from_scalar(ld, json);
    if (v && json_is_array(json) && json_array_size(json) <= 64) {
        v->kind = TEC_VALUE_LIST;
        v->n = (int)json_array_size(json);
        v->entries = TEC_NEW(ld->scratch, (size_t)v->n + 1, struct tec_decl_entry);
        for (int i = 0; v->entries && i < v->n; i++) {
            json_t *item = json_array_get(json, (size_t)i);
            bool flat = !json_is_array(item) && !json_is_object(item);
            v->entries[i] =
                (struct tec_decl_entry){.source = -1, .open = -1, .item = i, .set = where};
            v->entries[i].value = flat ? from_json(ld, item, where) : NULL;
            if (!v->entries[i].value)
                v->entries[i].value = tec_decl_value_new(ld, TEC_VALUE_BAD);
        }
    }
    return v;
}

/* What a call takes: a number, or a name in quotes of either kind. NULL: it is neither. */
static struct tec_decl_value *parse_argument(struct tec_loader *ld, const char *text, size_t n)
{
    bool name = n > 2 && (*text == '"' || *text == '\'') && text[n - 1] == *text &&
                !memchr(text + 1, *text, n - 2);
    bool number = n > 0 && n < 11 && strspn(text, "0123456789") == n;
    if (!name && !number)
        return NULL;
    struct tec_decl_value *v = tec_decl_value_new(ld, name ? TEC_VALUE_STRING : TEC_VALUE_INT);
    if (v && name)
        v->string = tec_arena_strndup(ld->arena, text + 1, n - 2);
    else if (v)
        v->integer = strtoll(text, NULL, 10);
    return v && (number || tec_loader_has(ld, v->string)) ? v : NULL;
}

/* "every(2)", "on_change()", "on_change('goal')", as in a file. NULL: it is none. */
static struct tec_decl_value *parse_call(struct tec_loader *ld, const char *text,
                                         struct tec_where where)
{
    static const struct {
        enum tec_constructor tag;
        const char *takes; /* the key of its argument; NULL: it has none */
    } calls[] = {{TEC_CON_on_change, "name"},
                 {TEC_CON_on_request, NULL},
                 {TEC_CON_when, NULL},
                 {TEC_CON_every, "frames"}};
    size_t word = strcspn(text, "("), n = strlen(text), i = 0;
    while (i < sizeof calls / sizeof *calls &&
           (strlen(tec_constructors[calls[i].tag].word) != word ||
            strncmp(text, tec_constructors[calls[i].tag].word, word) != 0))
        i++;
    if (i == sizeof calls / sizeof *calls || n < word + 2 || text[n - 1] != ')')
        return NULL;
    bool empty = n == word + 2;
    struct tec_decl_value *argument =
        empty ? NULL : parse_argument(ld, text + word + 1, n - word - 2);
    if (!empty && (!argument || !calls[i].takes))
        return NULL;
    struct tec_decl_value *v = tec_decl_value_new(ld, TEC_VALUE_TABLE);
    struct tec_decl_entry *entry = v ? TEC_NEW(ld->scratch, 1, struct tec_decl_entry) : NULL;
    if (!entry)
        return NULL;
    *entry = (struct tec_decl_entry){
        .key = calls[i].takes, .value = argument, .source = -1, .open = -1, .set = where};
    v->tag = calls[i].tag;
    v->entries = entry;
    v->n = argument != NULL;
    return v;
}

/* JSON where it is JSON (5, true, [1, 2]), a call, else the text itself. */
static struct tec_decl_value *parse_set(struct tec_loader *ld, const char *text,
                                        struct tec_where where)
{
    json_t *json = json_loads(text, JSON_DECODE_ANY, NULL);
    struct tec_decl_value *v;
    if (json && !json_is_object(json)) {
        v = from_json(ld, json, where);
    } else if (!(v = parse_call(ld, text, where))) {
        v = tec_decl_value_new(ld, TEC_VALUE_STRING);
        if (v)
            v->string = tec_arena_strdup(ld->arena, text);
    }
    json_decref(json);
    return v;
}

struct setting {
    const char *text;  /* the whole option */
    const char *value; /* behind the = */
    struct tec_where at;
};

static struct tec_where part(const struct setting *s, const char *begin, size_t n)
{
    struct tec_where where = s->at;
    where.col = (int)(begin - s->text) + 1;
    where.end = where.col + (int)n;
    return where;
}

/* The item of a list that the path names: the longest name that fits, since names may have dots. */
static int pick(const struct tec_decl_value *list, const char *path, size_t n, size_t *used)
{
    int best = -1;
    *used = 0;
    for (int i = 0; i < list->n; i++) {
        const char *name = name_of(list->entries[i].value);
        size_t length = name ? strlen(name) : 0;
        bool fits = length > *used && length <= n && memcmp(name, path, length) == 0 &&
                    (length == n || path[length] == '.');
        if (fits) {
            best = i;
            *used = length;
        }
    }
    return best;
}

static struct tec_decl_entry *unknown_item(struct tec_loader *ld, const struct setting *s,
                                           const struct tec_decl_value *list, const char *path)
{
    size_t length = strcspn(path, ".=");
    char word[101];
    snprintf(word, sizeof word, "%.*s", (int)(length > 100 ? 100 : length), path);
    struct tec_diagnostic *d = tec_diagnostics_add(ld->d, TEC_E021, part(s, path, length),
                                                   "there is nothing called '%s'", word);
    help_names(ld, d, word, list);
    return NULL;
}

/* The entry for the next piece of the path in a copy of *v; made when it is not there. */
static struct tec_decl_entry *descend(struct tec_loader *ld, const struct setting *s,
                                      struct tec_decl_value *v, const char *path, size_t *used)
{
    size_t n = (size_t)(s->value - 1 - path);
    if (v->kind == TEC_VALUE_LIST && v->n > 0) {
        int i = pick(v, path, n, used);
        return i < 0 ? unknown_item(ld, s, v, path) : &v->entries[i];
    }
    *used = strcspn(path, ".=");
    char *key = tec_arena_strndup(ld->arena, path, *used);
    if (!key)
        return NULL;
    struct tec_decl_entry *e = v->kind == TEC_VALUE_TABLE ? find_target(v, key) : NULL;
    if (e)
        return e;
    v->kind = TEC_VALUE_TABLE;
    e = &v->entries[v->n++];
    *e = (struct tec_decl_entry){
        .key = key, .source = -1, .open = -1, .item = -1, .set = part(s, path, *used)};
    return e;
}

/* Copies what is on the way, since values may be used twice. Bounded by the length of the path. */
static struct tec_decl_value *apply(struct tec_loader *ld, const struct setting *s,
                                    struct tec_decl_value *root)
{
    const char *path = s->text;
    struct tec_decl_value *out = tec_decl_value_copy(ld, root, root->n + 1), *v = out;
    for (int depth = 0; v && depth < 16; depth++) {
        size_t used = 0;
        struct tec_decl_entry *e = descend(ld, s, v, path, &used);
        if (!e)
            return out;
        path += used;
        if (*path == '=') {
            e->set = part(s, s->value, strlen(s->value));
            e->value = parse_set(ld, s->value, e->set);
            return e->value ? out : NULL;
        }
        path++;
        bool table =
            e->value && (e->value->kind == TEC_VALUE_TABLE || e->value->kind == TEC_VALUE_LIST);
        if (!table) {
            e->set = part(s, path - 1 - used, used);
            e->value = tec_decl_value_new(ld, TEC_VALUE_TABLE);
        }
        if (e->value)
            e->value = tec_decl_value_copy(ld, e->value, e->value->n + 1);
        v = e->value;
    }
    return v ? out : NULL;
}

/* All options as the lines of one text, so that errors can show them. */
static void keep_text(struct tec_loader *ld)
{
    const struct tec_load_options *o = ld->options;
    size_t size = 1;
    for (int i = 0; i < o->n_set; i++)
        size += strlen(o->set[i]) + 1;
    char *text = tec_arena_push(ld->scratch, size, 1, 1);
    size_t used = 0;
    for (int i = 0; text && i < o->n_set; i++)
        used += (size_t)snprintf(text + used, size - used, "%s\n", o->set[i]);
    if (text)
        tec_diagnostics_source(ld->d, "--set", text, used);
}

struct tec_decl_value *tec_overlay_set(struct tec_loader *ld, struct tec_decl_value *root)
{
    if (ld->options->n_set > 0)
        keep_text(ld);
    for (int i = 0; root && i < ld->options->n_set; i++) {
        const char *text = ld->options->set[i], *equals = strchr(text, '=');
        struct tec_where at = {.file = "--set", .line = i + 1};
        if (!equals || equals == text || strlen(text) > 4000) {
            struct tec_diagnostic *d = tec_diagnostics_add(
                ld->d, TEC_E011, at, "'%.100s' is not of the form PATH=VALUE", text);
            tec_diagnostics_help(ld->d, d, "for example --set nodes.act.steps=5");
            continue;
        }
        if (root->kind != TEC_VALUE_TABLE)
            break;
        struct setting s = {.text = text, .value = equals + 1, .at = at};
        root = apply(ld, &s, root);
    }
    return root;
}
