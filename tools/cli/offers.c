/* offers.c - says what a shell may offer as the value of an option or as an argument, from the way
 * in which the tables of options and the usage of verbs spell it. */
#include "tools/cli/offers.h"

#include <dirent.h>
#include <string.h>

enum { MAX_POLICIES = 256 };

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

struct tec_offers tec_offers_of(const struct tec_option *option, const char *policies,
                                struct tec_arena *arena)
{
    const char *value = option->value;
    if (!value || option->type == TEC_OPTION_WORD)
        return (struct tec_offers){.words = value};
    if (strcmp(option->name, "policy") == 0)
        return (struct tec_offers){.words = policies, .ends = "lua"};
    if (strcmp(option->name, "tier") == 0)
        return (struct tec_offers){.words = tiers(arena)};
    if (strcmp(value, "cpu|cuda[:N]") == 0)
        return (struct tec_offers){.words = "cpu|cuda"};
    if (strcmp(value, "auto|DIR|off") == 0)
        return (struct tec_offers){.words = "auto|off", .folders = true};
    if (strcmp(value, "DIR") == 0 || strcmp(value, "FOLDER") == 0)
        return (struct tec_offers){.folders = true};
    if (strncmp(value, "FILE.", 5) == 0 && !strpbrk(value + 5, "#|,"))
        return (struct tec_offers){.ends = value + 5};
    if (strcmp(option->name, "pipeline") == 0)
        return (struct tec_offers){.ends = "lua|json"};
    return (struct tec_offers){.ends = option->type == TEC_OPTION_TEXT ? "" : NULL};
}

struct tec_offers tec_offers_arguments(const struct tec_command *command)
{
    const char *usage = command->usage;
    bool pipeline = is_at_end(usage, " FILE") || strstr(usage, " FILE...") ||
                    strstr(usage, " FILE |") || strstr(usage, "[FILE...]");
    bool recording = strstr(usage, "FILE.mcap") != NULL;
    if (strstr(usage, "CHECKPOINT"))
        return (struct tec_offers){.folders = true};
    return (struct tec_offers){.ends = pipeline && recording ? "lua|json|mcap"
                                       : pipeline            ? "lua|json"
                                       : recording           ? "mcap"
                                                             : ""};
}

static void sort(const char **names, int n)
{
    for (int i = 1; i < n; i++)
        for (int k = i; k > 0 && strcmp(names[k - 1], names[k]) > 0; k--) {
            const char *name = names[k];
            names[k] = names[k - 1];
            names[k - 1] = name;
        }
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
    sort(names, n);
    for (int i = 0; all && i < n; i++)
        all = tec_arena_printf(arena, "%s%s%s", all, i ? "|" : "", names[i]);
    return all ? all : "";
}
