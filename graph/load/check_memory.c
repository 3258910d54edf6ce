/* check_memory.c - where a memory is: a store is a path as it stands, a server has an address that
 * is understood. */
#include "graph/load/loader.h"
#include "graph/memory/remote.h"

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
        if (tec_remote_check(&options, &why) != TEC_OK)
            report(ld, i, "remote", options.address, why.message);
    }
}
