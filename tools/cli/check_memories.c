/* check_memories.c - opens the sentence encoders that a pipeline's memories name, and looks at
 * where their files are to be; says where one is wrong. */
#include "tools/cli/check_memories.h"

#include "graph/memory/log.h"
#include "graph/run/recall/memory.h"

#include <string.h>

static enum tec_status check_encoder(struct tec_invocation *call, const struct tec_decl_resource *r,
                                     struct tec_diagnostics *d, struct tec_error *err)
{
    struct tec_encoder *encoder = NULL;
    struct tec_device_options named;
    struct tec_error mine = {0};
    int64_t refused = atomic_load(&call->heap->refused);
    TEC_TRY(tec_cli_device_named(call, &named, err));
    enum tec_status status =
        tec_memory_open_encoder(&encoder, r, call->root, named.tier, call->heap, &mine);
    tec_encoder_close(encoder);
    if (status == TEC_NO_MEMORY && atomic_load(&call->heap->refused) != refused)
        return tec_fail(err, status, "%s", mine.message);
    if (status != TEC_OK)
        tec_diagnostics_add(d, TEC_E011, r->where_encoder.file ? r->where_encoder : r->where,
                            "memory '%s': %s", r->name, mine.message);
    return TEC_OK;
}

/* That its file can be where it is to be, and that what is there is a store: a run would find out
 * after the weights are read. A folder that is not here may be on the robot. */
static void check_store(const struct tec_decl_resource *r, struct tec_diagnostics *d)
{
    struct tec_error mine = {0};
    struct tec_log_key key;
    uint32_t format;
    enum tec_status status = tec_log_place(r->store, &mine);
    if (status == TEC_OK && tec_log_look(r->store, &key, &format, &mine) == TEC_MALFORMED)
        status = TEC_MALFORMED;
    if (status == TEC_OK)
        return;
    struct tec_diagnostic *entry = tec_diagnostics_add(
        d, status == TEC_NOT_FOUND ? TEC_W120 : TEC_E011,
        r->where_store.file ? r->where_store : r->where, "memory '%s': %s", r->name, mine.message);
    if (entry)
        entry->secret = strchr(r->store, '@') != NULL;
}

enum tec_status tec_cli_check_memories(struct tec_invocation *call, const struct tec_pipeline *p,
                                       struct tec_diagnostics *d, struct tec_error *err)
{
    for (int i = 0; i < p->n_resources; i++) {
        bool loaded = false;
        for (int n = 0; n < p->n_nodes; n++)
            loaded |= p->nodes[n].kind == TEC_DECL_MEMORY_LOAD && !p->nodes[n].culled &&
                      p->nodes[n].from.index == i;
        if (loaded && p->resources[i].store)
            check_store(&p->resources[i], d);
        if (!loaded || !p->resources[i].encoder)
            continue;
        TEC_TRY(tec_cli_need_root(call, err));
        TEC_TRY(check_encoder(call, &p->resources[i], d, err));
    }
    return TEC_OK;
}
