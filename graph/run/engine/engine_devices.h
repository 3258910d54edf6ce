/* engine_devices.h - the devices of an engine's models: the run's, and those that `where` names
 * besides. */
#ifndef TEC_GRAPH_RUN_ENGINE_ENGINE_DEVICES_H
#define TEC_GRAPH_RUN_ENGINE_ENGINE_DEVICES_H

#include "graph/run/engine/engine.h"

/* Open the run's device and what the models' `where` names besides, each once; `measure`: to count
 * memory alone. A device of `where` that is not here is passed over, which is reported in
 * options.found (W109) where that is given. TEC_DEVICE, located: none of those is here.
 * TEC_UNSUPPORTED, located: the frames' model is elsewhere and has partitions. */
enum tec_status tec_engine_open_devices(struct tec_engine *engine, bool measure,
                                        struct tec_error *err);
void tec_engine_close_devices(struct tec_engine *engine);

/* Returns the place of a model's device among those of the engine: 0 is the run's. */
int tec_engine_device_of(const struct tec_engine *engine, const struct tec_engine_model *model);

#endif
