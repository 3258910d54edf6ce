/* sampled.c - how long a capture takes, without running the whole of it.
 *
 * The layers of a model are alike: a capture has some dozens of different commands, each many
 * times. One of each is run, in the order of the list, with all lanes, and its time counts for the
 * others. Runs before the first frame, on the owner's thread; it allocates nothing. */
#include "base/clock.h"
#include "kernels/device_kind.h"

/* What takes less is run a second time: the first one also brings code and data into the caches. */
static const int64_t SHORT_NS = 5000000;

double tec_capture_work(const struct tec_capture *capture)
{
    double sum = 0.0, turns = 1.0;
    for (int i = 0; i < capture->n; i++) {
        const struct tec_capture_step *c = &capture->commands[i];
        if (c->kind == TEC_REPEAT)
            turns = *c->count;
        sum += c->kind == TEC_RUN ? c->work * turns : 0.0;
        if (c->kind == TEC_REPEAT_END)
            turns = 1.0;
    }
    return sum;
}

static int64_t run_one(struct tec_device *device, const struct tec_capture *capture, int at)
{
    struct tec_capture_step step = capture->commands[at];
    const struct tec_capture one = {.device = device,
                                    .stream = capture->stream,
                                    .commands = &step,
                                    .n = 1,
                                    .open = -1,
                                    .lanes = capture->lanes};
    int64_t ns = 0;
    for (int i = 0; i < 2 && (i == 0 || ns < SHORT_NS); i++) {
        struct tec_replay replay = {.start_ns = 0};
        device->kind->replay(device, &one, &replay);
        ns = replay.end_ns - replay.start_ns;
    }
    return ns;
}

static int64_t sample(struct tec_device *device, const struct tec_capture *capture, int at,
                      struct tec_replay_samples *s)
{
    uint64_t key = capture->commands[at].key;
    for (int i = 0; i < s->n; i++)
        if (key && s->items[i].key == key)
            return s->items[i].ns;
    int64_t ns = run_one(device, capture, at);
    s->run++;
    if (key && s->n < TEC_REPLAY_SAMPLES)
        s->items[s->n++] = (struct tec_replay_sample){key, ns};
    return ns;
}

bool tec_device_sample(struct tec_device *device, const struct tec_capture *capture,
                       struct tec_replay *r)
{
    const struct tec_clock clock = {NULL};
    struct tec_replay_samples *s = r->samples;
    int64_t now = tec_clock_now(&clock), turns = 1;
    if (device->kind->compile || capture->stream != TEC_STREAM_MAIN ||
        tec_capture_work(capture) < s->least)
        return false;
    r->start_ns = now;
    s->replays++;
    for (int i = 0; i < capture->n && !s->known; i++) {
        const struct tec_capture_step *c = &capture->commands[i];
        if (c->kind == TEC_REPEAT)
            turns = *c->count > 0 ? *c->count : 0;
        else if (c->kind == TEC_REPEAT_END)
            turns = 1;
        else if (c->kind == TEC_MARK)
            r->mark_ns[c->other] = now;
        else
            now += turns * sample(device, capture, i, s);
        s->commands += c->kind == TEC_RUN ? turns : 0;
    }
    for (int i = 0; i < capture->n && s->known; i++)
        if (capture->commands[i].kind == TEC_MARK)
            r->mark_ns[capture->commands[i].other] = now;
    r->end_ns = now;
    return true;
}
