/* check_memory.c - where a memory is: a store is a path as it stands, a server has an address that
 * is understood. */
#include "graph/load/loader.h"
#include "graph/memory/remote.h"

#include <stdlib.h>
#include <string.h>

/* What is wrong with the path of a store: it would be taken as it stands and name a folder "~" or
 * "redis:". NULL: nothing. */
static const char *wrong_store(const char *path)
{
    if (strncmp(path, "file:", 5) == 0)
        return "is a path and no URL: leave out what stands before it";
    if (strstr(path, "://") || strncmp(path, "unix:", 5) == 0)
        return "is a file, and this is an address; 'remote' names a server that shares the memory";
    if (path[0] == '~' || path[0] == '$')
        return "is a path as it stands: '~' and '$' are not expanded";
    return NULL;
}

/* Is one of these the file that a later session of the other has: its path with ".N"? The first
 * session's file is the path itself. */
static bool is_of_session(const char *file, const char *path, int sessions)
{
    size_t n = strlen(path);
    char *end = NULL;
    if (strncmp(file, path, n) != 0 || file[n] != '.' || file[n + 1] < '1' || file[n + 1] > '9')
        return false;
    long session = strtol(file + n + 1, &end, 10);
    return *end == '\0' && session < sessions;
}

/* An earlier kv.segments that has a file of resource i's; -1 = none. */
static int shares_file(const struct tec_pipeline *p, int i)
{
    const char *mine = p->resources[i].store;
    for (int j = 0; mine && j < i; j++) {
        const char *other = p->resources[j].store;
        if (other && (strcmp(mine, other) == 0 || is_of_session(mine, other, p->frame.sessions) ||
                      is_of_session(other, mine, p->frame.sessions)))
            return j;
    }
    return -1;
}

static void report(struct tec_loader *ld, int i, const char *field, const char *given,
                   const char *what)
{
    struct tec_diagnostic *d = tec_diagnostics_add(
        ld->d, TEC_E011, tec_where_field(ld, &ld->resources[i], field), "%s", what);
    if (d)
        d->secret = strchr(given, '@') != NULL;
}

void tec_check_memory(struct tec_loader *ld)
{
    const struct tec_pipeline *p = ld->pipeline;
    for (int i = 0; i < p->n_resources; i++) {
        const struct tec_remote_options options = {.address = p->resources[i].remote};
        const char *store = p->resources[i].store, *wrong = store ? wrong_store(store) : NULL;
        struct tec_error why = {TEC_OK, ""};
        if (wrong) {
            (void)tec_fail(&why, TEC_INVALID, "a memory's store %s", wrong);
            report(ld, i, "store", store, why.message);
        }
        int other = wrong ? -1 : shares_file(p, i);
        if (other >= 0) {
            (void)tec_fail(&why, TEC_INVALID, "'%s' would write a file of '%s': each has its own%s",
                           p->resources[i].name, p->resources[other].name,
                           p->frame.sessions > 1 ? ", a later session's ends in its number" : "");
            report(ld, i, "store", store, why.message);
        }
        if (tec_remote_check(&options, &why) != TEC_OK)
            report(ld, i, "remote", options.address, why.message);
    }
}
