/* replay.c - a captured list is run again: how, while it is still being tried out. */
#include "kernels/device_kind.h"

#include <string.h>

void tec_device_replay(struct tec_device *device, const struct tec_capture *capture,
                       struct tec_replay *replay)
{
    memset(replay->mark_ns, 0, sizeof replay->mark_ns);
    replay->status = TEC_OK;
    if (replay->samples && tec_device_sample(device, capture, replay)) {
        tec_device_renew(device, capture, replay); /* commands were run, and some of them twice */
        return;
    }
    if (replay->samples)
        tec_device_choose_lanes(device, capture, replay);
    device->kind->replay(device, capture, replay);
}
