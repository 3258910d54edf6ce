/* choose_device.h - which device a name means, and which one without a name. */
#ifndef TEC_TOOLS_API_CHOOSE_DEVICE_H
#define TEC_TOOLS_API_CHOOSE_DEVICE_H

#include "kernels/device.h"

/* Set kind and index from "cpu", "cuda" or "cuda:N". NULL: the first GPU where one can be used,
 * else the CPU, and where this build could use one `note` says in words why it does not; else it is
 * empty. TEC_DEVICE: no such device here; TEC_INVALID: no device has such a name. */
enum tec_status tec_choose_device(struct tec_device_options *choice, const char *name,
                                  char note[200], struct tec_error *err);

/* Set kind and index from such a word alone, whether this build and this machine have the device or
 * not. TEC_INVALID for any other word, with the nearest. */
enum tec_status tec_choose_device_named(struct tec_device_options *choice, const char *name,
                                        struct tec_error *err);

#endif
