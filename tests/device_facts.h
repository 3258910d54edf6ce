/* device_facts.h - what tests look at inside of a device. */
#ifndef TEC_TESTS_DEVICE_FACTS_H
#define TEC_TESTS_DEVICE_FACTS_H

#include "kernels/device_kind.h"

/* Device memory that is taken now. */
static inline int64_t device_bytes_of(const struct tec_device *device)
{
    return atomic_load(&device->memory.bytes);
}

/* CPU only: the table behind its replays. NULL on others. */
static inline const struct tec_kernels *device_kernels_of(const struct tec_device *device)
{
    return device->kernels;
}

#endif
