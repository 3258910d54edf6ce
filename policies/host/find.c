/* find.c - finds the file that a policy's name means (policies/NAME.lua or a path) and loads it, or
 * refuses with a suggestion. */
#include "base/nearest.h"
#include "policies/host/host.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

enum { MAX_LISTED = 64 };

bool tec_policy_is_path(const char *name)
{
    size_t n = strlen(name);
    return strchr(name, '/') || (n > 4 && strcmp(name + n - 4, ".lua") == 0);
}

static enum tec_status no_such_policy(const char *name, const char *folder, struct tec_error *err)
{
    char names[MAX_LISTED][64];
    const char *list[MAX_LISTED], *near = NULL;
    int n = 0;
    DIR *dir = opendir(folder);
    if (!dir)
        return tec_fail(err, TEC_NOT_FOUND, "no policy '%.80s': there is no folder %.200s", name,
                        folder);
    for (struct dirent *e; n < MAX_LISTED && (e = readdir(dir));) {
        size_t length = strlen(e->d_name);
        if (length < 5 || length >= sizeof names[0] || !tec_policy_is_path(e->d_name))
            continue;
        memcpy(names[n], e->d_name, length - 4);
        names[n][length - 4] = '\0';
        list[n] = names[n];
        n++;
    }
    closedir(dir);
    near = tec_nearest(name, list, n);
    return tec_fail(err, TEC_NOT_FOUND, "no policy '%.80s' in %.200s%s", name, folder,
                    tec_meant(',', near).text);
}

/* root/policies, as it is written in messages. */
static bool find_folder(char folder[400], const char *root)
{
    bool here = !root || !*root || strcmp(root, ".") == 0;
    return snprintf(folder, 400, "%s%spolicies", here ? "" : root, here ? "" : "/") < 400;
}

enum tec_status tec_policy_path(char path[TEC_POLICY_PATH], const char *name, const char *root,
                                struct tec_error *err)
{
    char folder[400];
    int n = TEC_POLICY_PATH;
    if (!*name)
        return tec_fail(err, TEC_INVALID, "a policy's name is empty");
    if (tec_policy_is_path(name))
        n = snprintf(path, TEC_POLICY_PATH, "%s", name);
    else if (find_folder(folder, root))
        n = snprintf(path, TEC_POLICY_PATH, "%s/%s.lua", folder, name);
    return n < TEC_POLICY_PATH
               ? TEC_OK
               : tec_fail(err, TEC_INVALID, "the path of policy '%.80s' is too long", name);
}

enum tec_status tec_host_load_file(struct tec_policy *policy, const char *name, const char *root,
                                   struct tec_error *err)
{
    char path[TEC_POLICY_PATH], folder[400];
    TEC_TRY(tec_policy_path(path, name, root, err));
    const char *last = strrchr(path, '/');
    tec_host_copy_text(policy->source, sizeof policy->source, last ? last + 1 : path);
    enum tec_status status = tec_lua_load_file(policy->lua, path, NULL, err);
    bool unknown =
        status == TEC_NOT_FOUND && !tec_policy_is_path(name) && find_folder(folder, root);
    return unknown ? no_such_policy(name, folder, err) : status;
}
