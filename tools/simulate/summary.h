/* summary.h - what a simulated run came to: quantiles, rates, counts. */
#ifndef TEC_TOOLS_SIMULATE_SUMMARY_H
#define TEC_TOOLS_SIMULATE_SUMMARY_H

#include "base/arena.h"
#include "graph/run/loop/loop.h"

#include <jansson.h>
#include <stdio.h>

/* Microseconds of one kind; grows in the arena. */
struct tec_series {
    int64_t n, room;
    int64_t *us;
};

struct tec_summary {
    struct tec_arena *arena;
    bool out_of_memory;
    int horizon;
    const struct tec_loop_options *loop;
    struct tec_summary_action { /* of each action node */
        int64_t releases, late;
        struct tec_series age;
    } actions[TEC_MAX_ACTIONS];
    int64_t frames, skipped, missed, tokens, rows, launches;
    int64_t left_out; /* actions that frames left out */
    int64_t finished, refused, shed, cancelled, from_ns, to_ns;
    bool ring;              /* actions come from one: */
    int64_t filling, lives; /* frames in which it fills; most frames that an action is old */
    int64_t causes[TEC_CAUSES];
    struct tec_series frame, language;
};

/* `loop` is borrowed. */
void tec_summary_init(struct tec_summary *s, int horizon, const struct tec_loop_options *loop,
                      struct tec_arena *arena);
void tec_summary_event(struct tec_summary *s, const struct tec_event *event);

/* Chunks of all action nodes that left after their deadlines. */
int64_t tec_summary_late(const struct tec_summary *s);

/* One row as `bench` has it, with further counts. Percentiles by nearest rank. */
json_t *tec_summary_json(struct tec_summary *s);
void tec_summary_print(struct tec_summary *s, const char *policy, FILE *out);

#endif
