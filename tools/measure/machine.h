/* machine.h - what a measurement must say of where it ran. */
#ifndef TEC_TOOLS_MEASURE_MACHINE_H
#define TEC_TOOLS_MEASURE_MACHINE_H

#include "kernels/device.h"

#include <jansson.h>
#include <stdio.h>

/* {cpu, cores, kernel, governor, device, tier, lanes}; "unknown" where the system does not say. */
json_t *tec_machine_json(const struct tec_device *device);

/* The machine as one line of text. */
void tec_machine_print(const struct tec_device *device, FILE *out);

/* Runnable processes, averaged over a minute; -1 when unknown. */
double tec_machine_load(void);

/* The revision this was configured from, or "unknown". */
const char *tec_machine_commit(void);

#endif
