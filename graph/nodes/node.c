/* node.c - the list of node kinds, made from nodes.def.
 *
 * A line there without a file that defines its kind is a link error that names it. */
#include "graph/nodes/node.h"

#include <string.h>

const struct tec_node_kind *const tec_node_kinds[TEC_NODE_COUNT] = {
#define NODE(name, text) [TEC_NODE_##name] = &tec_node_##name,
#include "graph/nodes/nodes.def"
#undef NODE
};

static const struct tec_node_kind *named(const char *kind)
{
    static const struct tec_node_kind none;
    for (int i = 0; i < TEC_NODE_COUNT; i++)
        if (strcmp(tec_node_kinds[i]->name, kind) == 0)
            return tec_node_kinds[i];
    return &none;
}

bool tec_node_timed(const char *kind)
{
    return named(kind)->timed;
}

bool tec_node_says(const char *kind)
{
    return named(kind)->says;
}

bool tec_node_recalls(const char *kind)
{
    return named(kind)->recalls;
}
