/* channels.h - what a client of Foxglove's protocol can subscribe to: those of channels.def, and
 * one for each action node and each node that speaks. */
#ifndef TEC_TOOLS_FOXGLOVE_CHANNELS_H
#define TEC_TOOLS_FOXGLOVE_CHANNELS_H

#include "graph/run/engine/engine.h"

#include <jansson.h>

/* A client knows a channel by one more than its index here. */
enum tec_foxglove_channel {
#define CHANNEL(name, topic, schema, properties) TEC_FOXGLOVE_##name,
#include "tools/foxglove/channels.def"
#undef CHANNEL
    TEC_FOXGLOVE_ACTIONS, /* and the following: by the loop's action nodes */
    TEC_FOXGLOVE_TEXTS = TEC_FOXGLOVE_ACTIONS + TEC_MAX_ACTIONS, /* by its decoders */
    TEC_FOXGLOVE_CHANNELS = TEC_FOXGLOVE_TEXTS + TEC_MAX_DECODERS
};

/* Whether this engine has it. */
bool tec_foxglove_has(const struct tec_engine *engine, int64_t channel);

/* The message that tells a client of all of them; a new reference. */
json_t *tec_foxglove_advertise(const struct tec_engine *engine);

#endif
