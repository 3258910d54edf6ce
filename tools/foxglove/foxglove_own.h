/* foxglove_own.h - what keeps Foxglove's clients shares with what makes its messages. */
#ifndef TEC_TOOLS_FOXGLOVE_FOXGLOVE_OWN_H
#define TEC_TOOLS_FOXGLOVE_FOXGLOVE_OWN_H

#include "tools/foxglove/client.h"
#include "tools/foxglove/foxglove.h"
#include "tools/foxglove/values.h"
#include "tools/record/buffer.h"

enum { TEC_FOXGLOVE_TEXTS_KEPT = 32, TEC_FOXGLOVE_SAID = 1024 };

/* A text that is not whole yet. */
struct tec_foxglove_text {
    bool used;
    int64_t request, frame; /* frame: when it was heard last */
    int decoder, session;
    size_t n;
    char said[TEC_FOXGLOVE_SAID];
};

struct tec_foxglove {
    struct tec_foxglove_options o;
    const struct tec_engine *engine;
    struct tec_heap *heap;
    struct tec_arena arena;
    struct tec_foxglove_values values;

    /* Not the frame thread's. */
    json_t *about, *info;
    struct tec_foxglove_client clients[TEC_FOXGLOVE_CLIENTS];
    struct tec_clock clock;
    bool looked_at;     /* somebody has subscribed to something */
    int64_t wall_ns;    /* add to the frame clock: the wall's */
    int64_t flight_ns;  /* when the flight recorder was read last */
    int64_t frames_ns;  /* end of the newest frame that was told */
    uint64_t events;    /* number of the first event that was not told */
    int64_t counted_ns; /* when the counters were told last */
    struct tec_foxglove_text texts[TEC_FOXGLOVE_TEXTS_KEPT];
};

/* messages.c: forget what has happened so far, when somebody begins to look; then, again and again:
 * tell what is new. */
void tec_foxglove_forget(struct tec_foxglove *f);
void tec_foxglove_tell(struct tec_foxglove *f, int64_t now_ns);

/* flight_messages.c: what the flight recorder has more. */
void tec_foxglove_tell_flight(struct tec_foxglove *f, int64_t now_ns);

/* publish.c: whether anybody has subscribed to a channel; a message of it, whose reference is
 * taken. */
bool tec_foxglove_wants(const struct tec_foxglove *f, int channel);
void tec_foxglove_publish(struct tec_foxglove *f, int channel, int64_t t_ns, json_t *message);
/* A line of the log; `warns`: something is wrong. */
void tec_foxglove_log(struct tec_foxglove *f, int64_t t_ns, bool warns, const char *name,
                      const char *text);

#endif
