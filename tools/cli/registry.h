/* registry.h - the .def lists that the engine is made of, for people and tools. */
#ifndef TEC_TOOLS_CLI_REGISTRY_H
#define TEC_TOOLS_CLI_REGISTRY_H

#include "base/error.h"

#include <stdbool.h>
#include <stdio.h>

/* Print one registry: lines of aligned columns, or an array of objects. TEC_INVALID for a name that
 * is none, with what there is. */
enum tec_status tec_registry_print(const char *name, bool json, FILE *out, struct tec_error *err);

#endif
