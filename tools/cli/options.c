/* options.c - parses command lines strictly: tables of options in, members of structs out, and one
 * clear error line on failure. */
#include "tools/cli/options.h"

#include "base/number.h"

#include "base/nearest.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_OPTIONS = 64, MAX_WORDS = 64 };

struct parse {
    const struct tec_option_group *groups;
    int n_groups;
    struct tec_arena *arena;
    tec_options_others *others; /* may be NULL */
    const struct tec_option *seen[MAX_OPTIONS];
    int n_seen;
};

static enum tec_status append(struct tec_words *words, const char *word, struct tec_arena *arena,
                              struct tec_error *err)
{
    if ((words->n & (words->n + 1)) == 0) { /* the room for 0, 1, 3, 7, ... is full */
        const char **item = TEC_NEW(arena, 2 * (size_t)words->n + 1, const char *);
        if (!item)
            return tec_fail(err, TEC_NO_MEMORY, "no memory for the command line");
        if (words->n)
            memcpy(item, words->item, (size_t)words->n * sizeof *item);
        words->item = item;
    }
    words->item[words->n++] = word;
    return TEC_OK;
}

enum tec_status tec_options_word(int *index, const char *words, const char *word, const char *what,
                                 struct tec_arena *arena, struct tec_error *err)
{
    const char *names[MAX_WORDS];
    int n = 0;
    char *list = tec_arena_printf(arena, "%s", words), *rest = NULL;
    if (!list)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for the command line");
    for (char *one = strtok_r(list, "|", &rest); one && n < MAX_WORDS;
         one = strtok_r(NULL, "|", &rest)) {
        *index = n;
        if (strcmp(one, word) == 0)
            return TEC_OK;
        names[n++] = one;
    }
    const char *near = tec_nearest(word, names, n);
    size_t shown = strlen(words) - (n && words[strlen(words) - 1] == '|');
    return tec_fail(err, TEC_INVALID, "%s'%s' is none of %.*s%s%s%s", what, word, (int)shown, words,
                    near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static enum tec_status store_int(const struct tec_option *o, const char *value, int *to,
                                 struct tec_error *err)
{
    int64_t x;
    if (!tec_number_parse(value, &x))
        return tec_fail(err, TEC_INVALID, "--%s: '%s' is not a whole number", o->name, value);
    if ((double)x < o->low || (double)x > o->high)
        return tec_fail(err, TEC_INVALID, "--%s: %s is outside %.0f to %.0f", o->name, value,
                        o->low, o->high);
    *to = (int)x;
    return TEC_OK;
}

static enum tec_status store_number(const struct tec_option *o, const char *value, double *to,
                                    struct tec_error *err)
{
    char *end;
    double x = strtod(value, &end);
    if (end == value || *end || !isfinite(x))
        return tec_fail(err, TEC_INVALID, "--%s: '%s' is not a number", o->name, value);
    if (x < o->low || x > o->high)
        return tec_fail(err, TEC_INVALID, "--%s: %s is outside %g to %g", o->name, value, o->low,
                        o->high);
    *to = x;
    return TEC_OK;
}

static enum tec_status store_seed(const struct tec_option *o, const char *value,
                                  struct tec_seed *to, struct tec_error *err)
{
    char *end;
    errno = 0;
    unsigned long long x = strtoull(value, &end, 0);
    if (errno || end == value || *end || *value == '-' || *value == ' ')
        return tec_fail(err, TEC_INVALID, "--%s: '%s' is not a seed: a whole number from 0 on",
                        o->name, value);
    *to = (struct tec_seed){true, x};
    return TEC_OK;
}

static enum tec_status store(const struct parse *p, const struct tec_option *o, void *member,
                             const char *value, struct tec_error *err)
{
    switch (o->type) {
    case TEC_OPTION_FLAG:
        *(bool *)member = true;
        return TEC_OK;
    case TEC_OPTION_TEXT:
        *(const char **)member = value;
        return TEC_OK;
    case TEC_OPTION_WORD:
        return tec_options_word(member, o->value, value,
                                tec_arena_printf(p->arena, "--%s: ", o->name), p->arena, err);
    case TEC_OPTION_INT:
        return store_int(o, value, member, err);
    case TEC_OPTION_SEED:
        return store_seed(o, value, member, err);
    case TEC_OPTION_NUMBER:
        return store_number(o, value, member, err);
    case TEC_OPTION_LIST:
        return append(member, value, p->arena, err);
    }
    return TEC_OK;
}

/* Find the option that the n bytes at `name`, or `letter`, spell. */
static const struct tec_option *find(const struct parse *p, const char *name, size_t n, char letter,
                                     void **member)
{
    for (int g = 0; g < p->n_groups; g++)
        for (int i = 0; i < p->groups[g].n; i++) {
            const struct tec_option *o = &p->groups[g].options[i];
            bool same = letter ? o->letter == letter
                               : strlen(o->name) == n && strncmp(o->name, name, n) == 0;
            if (same) {
                *member = (char *)p->groups[g].into + o->offset;
                return o;
            }
        }
    return NULL;
}

static enum tec_status unknown(const struct parse *p, const char *word, struct tec_error *err)
{
    const char *names[MAX_OPTIONS];
    char bare[64], takers[256] = "";
    int n = 0;
    for (int g = 0; g < p->n_groups; g++)
        for (int i = 0; i < p->groups[g].n && n < MAX_OPTIONS; i++)
            names[n++] = p->groups[g].options[i].name;
    const char *start = word + strspn(word, "-");
    snprintf(bare, sizeof bare, "%.*s", (int)strcspn(start, "="), start);
    if (p->others && word[1] == '-')
        p->others(bare, takers, sizeof takers);
    if (takers[0]) /* spelled right, so no other name is meant */
        return tec_fail(err, TEC_INVALID, "--%s has no meaning here; it is an option of %s", bare,
                        takers);
    const char *near = tec_nearest(bare, names, n);
    if (near)
        return tec_fail(err, TEC_INVALID, "unknown option '%s'; did you mean '--%s'?", word, near);
    return tec_fail(err, TEC_INVALID, "unknown option '%s'; --help lists what there is", word);
}

/* Parse the option at argv[*at]; its value may be the next word. */
static enum tec_status parse_one(struct parse *p, int argc, char *const *argv, int *at,
                                 struct tec_error *err)
{
    const char *word = argv[*at];
    bool is_long = word[1] == '-';
    const char *name = word + 2;
    size_t n = is_long ? strcspn(name, "=") : 1;
    void *member = NULL;
    const struct tec_option *o = find(p, name, n, (char)(is_long ? 0 : word[1]), &member);
    if (!o)
        return unknown(p, word, err);
    const char *value = NULL;
    if (is_long)
        value = name[n] == '=' ? name + n + 1 : NULL;
    else if (word[2])
        value = word + 2 + (word[2] == '=');
    if (o->type == TEC_OPTION_FLAG && value)
        return tec_fail(err, TEC_INVALID, "--%s takes no value", o->name);
    if (o->type != TEC_OPTION_FLAG && !value) {
        if (*at + 1 >= argc)
            return tec_fail(err, TEC_INVALID, "--%s needs a value: %s", o->name, o->value);
        value = argv[++*at];
    }
    for (int i = 0; i < p->n_seen && o->type != TEC_OPTION_LIST; i++)
        if (p->seen[i] == o)
            return tec_fail(err, TEC_INVALID, "--%s is given twice", o->name);
    if (p->n_seen < MAX_OPTIONS && o->type != TEC_OPTION_LIST)
        p->seen[p->n_seen++] = o;
    return store(p, o, member, value, err);
}

enum tec_status tec_options_parse(const struct tec_option_group *groups, int n_groups, int argc,
                                  char *const *argv, struct tec_words *args,
                                  tec_options_others *others, struct tec_arena *arena,
                                  struct tec_error *err)
{
    struct parse p = {.groups = groups, .n_groups = n_groups, .arena = arena, .others = others};
    bool ended = false;
    for (int i = 0; i < argc; i++) {
        const char *word = argv[i];
        if (!ended && strcmp(word, "--") == 0)
            ended = true;
        else if (ended || word[0] != '-' || !word[1])
            TEC_TRY(append(args, word, arena, err));
        else
            TEC_TRY(parse_one(&p, argc, argv, &i, err));
    }
    return TEC_OK;
}

/* Spell an option for the help, as "--format text|json", in at most `size` bytes; returns the
 * length. */
static int spell(const struct tec_option *o, char *text, size_t size)
{
    char letter[8] = "";
    if (o->letter)
        snprintf(letter, sizeof letter, "-%c, ", o->letter);
    return snprintf(text, size, "%s--%s%s%s", letter, o->name, o->value ? " " : "",
                    o->value ? o->value : "");
}

void tec_options_help(const struct tec_option_group *groups, int n_groups, FILE *out)
{
    for (int g = 0; g < n_groups; g++) {
        if (groups[g].n == 0)
            continue;
        fprintf(out, "\n%s\n", groups[g].title);
        for (int i = 0; i < groups[g].n; i++) {
            char text[96];
            int n = spell(&groups[g].options[i], text, sizeof text);
            if (n > 30)
                fprintf(out, "  %s\n  %-30s  %s\n", text, "", groups[g].options[i].help);
            else
                fprintf(out, "  %-30s  %s\n", text, groups[g].options[i].help);
        }
    }
}
