/* memory_load.c - memory segments into a frame; declared and checked, not built in this release. */
#include "graph/nodes/node.h"

static enum tec_status lower(struct tec_lower *l, struct tec_error *err)
{
    (void)l;
    return tec_fail(err, TEC_UNSUPPORTED,
                    "memory_load nodes are read and checked, but this release cannot run them");
}

const struct tec_node_kind tec_node_memory_load = {
    .name = "memory_load", .text = "memory segments into keys and values", .lower = lower};
