/* misses.c - writes the flight recorder into a file after a frame has missed, and on SIGUSR1. */
#include "tools/control/control.h"

#include <string.h>

enum { MAX_DUMPS = 16, AT_ONCE = 256 };
/* A dump is written a little after its miss, so that it shows what followed; another one not sooner
 * than this. */
static const int64_t after_ns = 500000000, between_ns = 10000000000;

static bool path_of(const struct tec_control *c, const char *why, int64_t frame, char path[4096])
{
    const char *folder = c->options.dump_dir, *socket = c->options.path;
    const char *prefix = folder && c->options.prefix ? c->options.prefix : "";
    return (folder || socket) && snprintf(path, 4096, "%s%s%s%s%lld.mcap", folder ? folder : socket,
                                          folder ? "/" : ".", prefix, why, (long long)frame) < 4096;
}

static void write_dump(struct tec_control *c, const char *why, int64_t frame)
{
    char path[4096];
    struct tec_error err = {.message = ""};
    if (!c->program || !path_of(c, why, frame, path))
        tec_say(c->call, "give --dump-dir DIR to have the flight recorder written");
    else if (tec_recording_dump(path, c->program, c->options.recorder, c->options.mode, 0, &err) !=
             TEC_OK)
        tec_say(c->call, "the flight recorder is not written: %s", err.message);
    else
        tec_say(c->call, "the flight recorder is in %s: tectum explain, tectum trace", path);
}

/* Note the newest frame that missed; returns the number of the newest frame. */
static void look(struct tec_control *c, int64_t now)
{
    struct tec_flight_event events[AT_ONCE];
    for (size_t n = AT_ONCE; n == AT_ONCE;) {
        n = tec_recorder_copy(c->options.recorder, &c->flight.next, events, AT_ONCE);
        c->flight.next += n;
        for (size_t i = 0; i < n; i++) {
            if (events[i].kind != TEC_EVENT_FRAME_END)
                continue;
            c->flight.frame = events[i].frame;
            if (!events[i].flag || c->flight.due_ns)
                continue;
            c->flight.missed = events[i].frame;
            c->flight.due_ns = now + after_ns;
        }
    }
}

void tec_control_look_for_misses(struct tec_control *c)
{
    int64_t now = tec_clock_now(&c->clock);
    if (!c->options.recorder)
        return;
    look(c, now);
    if (c->flight.due_ns == 0 || (now < c->flight.due_ns && !c->ended))
        return;
    bool soon = c->flight.written_ns && now - c->flight.written_ns < between_ns;
    if (c->options.dump_dir && c->flight.dumps < MAX_DUMPS && !soon) {
        write_dump(c, "miss-frame", c->flight.missed);
        c->flight.written_ns = now;
        c->flight.dumps++;
    }
    c->flight.due_ns = 0;
}

void tec_control_dump_flight(struct tec_control *c)
{
    if (c->options.recorder)
        write_dump(c, "recorder-frame", c->flight.frame);
}
