/* waiting.h - where the time of each node went: it ran, another one did, or nothing ran, and what
 * that was waited for. */
#ifndef TEC_TOOLS_RECORD_WAITING_H
#define TEC_TOOLS_RECORD_WAITING_H

#include "tools/record/flight.h"

#include <stdio.h>

/* What a moment belongs to, for a node: the first that holds. */
enum tec_waiting_kind {
    TEC_WAITING_RUNS,    /* a launch of its own */
    TEC_WAITING_OTHER,   /* a launch of another node */
    TEC_WAITING_INPUT,   /* no frame is open, one is due, its inputs are late or being prepared */
    TEC_WAITING_HOST,    /* a frame is due or open: policy, delivery, the system */
    TEC_WAITING_NO_WORK, /* no frame is due */
    TEC_WAITING_KINDS
};

/* Nanoseconds, from the tick of the first whole frame to the end of the last one. */
struct tec_waiting {
    int64_t span_ns;
    size_t frames;
    int64_t nodes[TEC_MAX_NODES][TEC_WAITING_KINDS]; /* each sums up to the span */
    int64_t all[TEC_WAITING_KINDS];                  /* of the machine: OTHER is 0 */
};

/* TEC_MALFORMED: there is no whole frame. TEC_NO_MEMORY. */
enum tec_status tec_waiting_of(struct tec_waiting *out, struct tec_flight *f,
                               struct tec_error *err);

/* A table, and an object {span_us, frames, machine, nodes [{node, runs_us, other_node_us, input_us,
 * host_us, no_work_us}]} (a new reference). */
void tec_waiting_print(FILE *out, const struct tec_flight *f, const struct tec_waiting *w);
json_t *tec_waiting_json(const struct tec_flight *f, const struct tec_waiting *w);

#endif
