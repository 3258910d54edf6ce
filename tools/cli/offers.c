/* offers.c - says what a shell may offer as the value of an option or as an argument, from the way
 * in which the tables of options and of verbs spell it. */
#include "tools/cli/offers.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_POLICIES = 256 };

static const char machines[] =
#define PEAK(name, ...) "|" #name
#include "tools/measure/peaks.def"
#undef PEAK
    ;

static bool is_at_end(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static const char *tiers(struct tec_arena *arena)
{
    const char *all = "";
    for (int i = 0; all && i < TEC_TIER_COUNT; i++)
        if (tec_tier_runs_here((enum tec_tier)i))
            all = tec_arena_printf(arena, "%s%s%s", all, *all ? "|" : "",
                                   tec_tier_name((enum tec_tier)i));
    return all;
}

static void add_ending(struct tec_offers *o, const char *end, size_t n, struct tec_arena *arena)
{
    o->ends = tec_arena_printf(arena, "%s%s%.*s", o->ends ? o->ends : "", o->ends ? "|" : "",
                               (int)n, end);
}

/* What one of the words of a value stands for: FILE and PATH for any file, FILE.mcap for files that
 * end so, PIPELINE for its files, DIR and FOLDER for folders, MACHINE for the names of a
 * roofline's; another in capitals for something that is no file, and one in small letters for
 * itself. */
static void add_word(struct tec_offers *o, const char *word, size_t n, struct tec_arena *arena)
{
    static const char pipelines[] = "lua|json";
    size_t bare = strcspn(word, "#,["); /* FILE.json,... and cuda[:N] */
    n = bare < n ? bare : n;
    bool file =
        (n == 4 && strncmp(word, "FILE", n) == 0) || (n == 4 && strncmp(word, "PATH", n) == 0);
    bool folder =
        (n == 3 && strncmp(word, "DIR", n) == 0) || (n == 6 && strncmp(word, "FOLDER", n) == 0);
    if (n > 5 && strncmp(word, "FILE.", 5) == 0)
        add_ending(o, word + 5, n - 5, arena);
    else if (n == 8 && strncmp(word, "PIPELINE", 8) == 0)
        add_ending(o, pipelines, strlen(pipelines), arena);
    else if (file)
        o->ends = "";
    else if (folder)
        o->folders = true;
    else if (n == 7 && strncmp(word, "MACHINE", n) == 0)
        o->words = machines + 1;
    else if (n && word[0] >= 'a' && word[0] <= 'z')
        o->words = tec_arena_printf(arena, "%s%s%.*s", o->words ? o->words : "",
                                    o->words ? "|" : "", (int)n, word);
}

/* What a value may be that is spelled so, "FILE.mcap|DIR". */
static struct tec_offers spelled(const char *value, struct tec_arena *arena)
{
    struct tec_offers o = {0};
    for (const char *word = value; *word; word += *word == '|') {
        size_t n = strcspn(word, "|");
        add_word(&o, word, n, arena);
        word += n;
    }
    return o;
}

struct tec_offers tec_offers_of(const struct tec_option *option, const char *policies,
                                struct tec_arena *arena)
{
    const char *value = option->value;
    if (!value || option->type == TEC_OPTION_WORD)
        return (struct tec_offers){.words = value};
    if (option->type != TEC_OPTION_TEXT)
        return (struct tec_offers){0};
    if (strcmp(option->name, "policy") == 0)
        return (struct tec_offers){.words = policies, .ends = "lua"};
    if (strcmp(option->name, "tier") == 0)
        return (struct tec_offers){.words = tiers(arena)};
    if (strcmp(option->name, "pipeline") == 0)
        return spelled("PIPELINE", arena);
    return spelled(value, arena);
}

struct tec_offers tec_offers_arguments(const struct tec_command *command, const char *policies,
                                       struct tec_arena *arena)
{
    static const char named[] = "POLICY|";
    const char *offers = command->offers ? command->offers : "";
    struct tec_offers o = spelled(offers, arena);
    if (strncmp(offers, named, sizeof named - 1) == 0)
        o.words = policies;
    return o;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char *tec_offers_policies(const char *root, struct tec_arena *arena)
{
    const char *names[MAX_POLICIES], *all = "";
    const char *path = root ? tec_arena_printf(arena, "%s/policies", root) : NULL;
    DIR *dir = path ? opendir(path) : NULL;
    int n = 0;
    for (struct dirent *e; dir && n < MAX_POLICIES && (e = readdir(dir));) {
        size_t length = strlen(e->d_name);
        bool plain = strspn(e->d_name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                       "0123456789_-.") == length;
        const char *name = plain && is_at_end(e->d_name, ".lua") && length > 4
                               ? tec_arena_strndup(arena, e->d_name, length - 4)
                               : NULL;
        if (name)
            names[n++] = name;
    }
    if (dir)
        closedir(dir);
    qsort(names, (size_t)n, sizeof names[0], by_name);
    for (int i = 0; all && i < n; i++)
        all = tec_arena_printf(arena, "%s%s%s", all, i ? "|" : "", names[i]);
    return all ? all : "";
}
