/* adapter_config.h - what adapter_config.json says; between the files of the adapter. */
#ifndef TEC_BASE_STORE_ADAPTER_CONFIG_H
#define TEC_BASE_STORE_ADAPTER_CONFIG_H

#include "base/alloc.h"
#include "base/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct tec_adapter_config {
    json_t *json; /* owned */
    int64_t rank;
    double alpha;
    bool root_scaled; /* alpha / sqrt(rank) */
    bool transposed;  /* weights are [in, out] */
};

/* Read and check the file at `path`; TEC_UNSUPPORTED names what is not merged. */
enum tec_status tec_adapter_config_read(struct tec_adapter_config *c, const char *path,
                                        struct tec_heap *heap, struct tec_error *err);
void tec_adapter_config_finish(struct tec_adapter_config *c);

/* The rank that a module's factors must have, and the scale of their product. */
int64_t tec_adapter_config_rank(const struct tec_adapter_config *c, const char *module);
double tec_adapter_config_scale(const struct tec_adapter_config *c, const char *module);

#endif
