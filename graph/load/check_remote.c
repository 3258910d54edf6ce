/* check_remote.c - a server that a memory is shared through has an address that is understood. */
#include "graph/load/loader.h"
#include "graph/memory/remote.h"

#include <string.h>

void tec_check_remote(struct tec_loader *ld)
{
    const struct tec_pipeline *p = ld->pipeline;
    for (int i = 0; i < p->n_resources; i++) {
        const struct tec_remote_options options = {.address = p->resources[i].remote};
        struct tec_error why = {TEC_OK, ""};
        if (tec_remote_check(&options, &why) == TEC_OK)
            continue;
        struct tec_diagnostic *d = tec_diagnostics_add(
            ld->d, TEC_E011, tec_where_field(ld, &ld->resources[i], "remote"), "%s", why.message);
        if (d)
            d->secret = strchr(options.address, '@') != NULL;
    }
}
