/* lanes.c - how many lanes a small capture is replayed with: found out by trying, in the warm-up.
 *
 * Lanes meet behind each command that others wait for. Where a command takes a microsecond, or
 * another program holds one of the processors, more lanes make a replay longer. What a capture
 * computes is the same with any number of lanes. A replay may be repeated where what it changes of
 * its inputs is uploaded again: rows of requests would else go on beyond their keys and values. */
#include "kernels/device_kind.h"

/* A capture gets all lanes, untried, above so many FLOP and bytes, and after a try where one lane
 * takes longer than so many ns. */
static const double SMALL_WORK = 2e9;
static const int64_t SMALL_NS = 50000000;

/* Tries of a number of lanes, and of what takes under a few ms more of them, as another program
 * that runs for a moment spoils some. */
enum { TRIES = 2, SHORT_TRIES = 5 };
static const int64_t SHORT_NS = 5000000;

/* The shortest replay with so many lanes, in ns. */
static int64_t try_lanes(struct tec_device *device, const struct tec_capture *capture,
                         struct tec_replay *replay, int lanes)
{
    int64_t best = INT64_MAX;
    *capture->lanes = lanes;
    for (int i = 0; i < (best < SHORT_NS ? SHORT_TRIES : TRIES); i++) {
        device->kind->replay(device, capture, replay);
        tec_device_renew(device, capture, replay);
        int64_t ns = replay->end_ns - replay->start_ns;
        best = ns < best ? ns : best;
    }
    return best;
}

/* Lanes are doubled as long as that makes a replay a fifth shorter. */
static int choose(struct tec_device *device, const struct tec_capture *capture,
                  struct tec_replay *replay)
{
    int64_t best = try_lanes(device, capture, replay, 1);
    if (best > SMALL_NS)
        return device->lanes;
    for (int lanes = 1, more; lanes < device->lanes; lanes = more) {
        more = 2 * lanes < device->lanes ? 2 * lanes : device->lanes;
        int64_t ns = try_lanes(device, capture, replay, more);
        if (ns > best - best / 5)
            return lanes;
        best = ns;
    }
    return device->lanes;
}

void tec_device_choose_lanes(struct tec_device *device, const struct tec_capture *capture,
                             struct tec_replay *replay)
{
    if (!device->chooses || capture->stream != TEC_STREAM_MAIN || *capture->lanes)
        return;
    bool small = tec_capture_work(capture) <= SMALL_WORK;
    *capture->lanes = small ? choose(device, capture, replay) : device->lanes;
}
