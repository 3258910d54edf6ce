/* recorder.h - the flight recorder: what the frame loop told last, kept in memory all the time, so
 * that a late frame can be looked into after it has happened.
 *
 * The frame thread writes events of 32 bytes into a ring that overwrites its oldest; any other
 * thread copies the newest ones out while it goes on. Nothing here locks, waits or, after create,
 * allocates. Words (reasons, resources, streams) are kept once, in a table that only grows. */
#ifndef TEC_GRAPH_LIVE_RECORDER_H
#define TEC_GRAPH_LIVE_RECORDER_H

#include "base/arena.h"
#include "base/error.h"
#include "graph/run/launch/events.h"

#include <stdatomic.h>

enum {
    TEC_FLIGHT_EVENTS = 1 << 16,
    TEC_FLIGHT_WORDS = 255,
    TEC_FLIGHT_WORD = 48,
    TEC_FLIGHT_NEAR = 64,
    TEC_FLIGHT_FIXED = 256,
    TEC_FLIGHT_FIGURES = 8
};

/* Kinds beside those of enum tec_event_kind, which has left these numbers out. */
enum tec_flight_kind {
    /* Behind the end of a frame: a number of its record. */
    TEC_FLIGHT_FIGURE = TEC_EVENT_FRAME_END + 1,
    TEC_FLIGHT_NOTE,    /* a policy's note on its decision: `what`, `value` */
    TEC_FLIGHT_DECIDED, /* behind a plan: what a line of the policy has decided */
    TEC_FLIGHT_SEAM,    /* behind a release: how it joins the chunk before */
    TEC_FLIGHT_KINDS = TEC_EVENTS
};

enum tec_flight_decided {
    TEC_DECIDED_DECODE,
    TEC_DECIDED_PAUSE,
    TEC_DECIDED_SHED,
    TEC_DECIDED_NODE, /* something about a node: that it runs, its priority, its memory */
    TEC_DECIDED_SKIP  /* an optional node is left out */
};

/* One event, by the kind of it:
 *
 *   kind               value               more                 count       what       node
 *   FRAME              tick, ns            deadline, us; -1
 *   CANCEL SHED        request             tokens                           reason     its
 *   ARRIVE ADMIT
 *   REFUSE
 *   INPUT              late, ns
 *   PLAN               snapped             rows                 launches
 *   KV                 request             tokens               word of kv  operation  by
 *   START              request             rows, 1000s: padded  steps       launch     its
 *   END                start, ns           rows, 1000s: padded  steps       launch     its
 *   RELEASE            tick, ns            slack, us                                   its
 *   LEFT_OUT                                                                reason     its
 *   TOKENS FINISH      request             made in all          new         reason     its
 *   VERSION READ       request             frames old                       stream     reader
 *   UNREAD             request                                              stream     writer
 *   FRAME_END          opened, ns          overrun, us          in flight   cause
 *   FIGURE             the number                                           its name: planner_us
 *                      host_us tokens rows slack_us age_us,
 *                      and where they are not 0 waited_us stood_us
 *   NOTE               bits of a double    word of a text; flag: a number   the note   line
 *   DECIDED            first request; -1   line                 k           file       its
 *                      lane: requests, flag: enum tec_flight_decided
 *   SEAM               observation, ns     bits of a float: jump                       its   */
struct tec_flight_event {
    int64_t t_ns;
    int64_t value;
    int32_t frame; /* low bits of its number */
    int32_t more;
    uint8_t kind, session, lane;
    uint8_t what; /* 1 + index of a word; 0 = none */
    int16_t node; /* index into the topology; -1 = none */
    uint8_t flag; /* CANCEL: was alive; RELEASE, LEFT_OUT: late; FRAME_END: missed */
    uint8_t count;
};

/* Owned by the caller of create, as long as its arena. */
struct tec_recorder {
    _Atomic uint64_t (*ring)[4]; /* [TEC_FLIGHT_EVENTS] the words of events */
    _Atomic uint64_t written;    /* events so far */
    _Atomic int n_words;
    char (*words)[TEC_FLIGHT_WORD]; /* [TEC_FLIGHT_WORDS] */
    int n_nodes; /* that decisions are about; the most there can be, unless it is set */
    /* The frame thread's: by a text's address, its word last time; the same of texts that do not
     * change, with the address; the words of causes and of figures. */
    uint8_t near[TEC_FLIGHT_NEAR];
    struct {
        const char *text;
        uint8_t word;
    } fixed[TEC_FLIGHT_FIXED];
    uint8_t causes[TEC_CAUSES], figures[TEC_FLIGHT_FIGURES];
};

/* TEC_NO_MEMORY. The ring takes 2 MiB. */
enum tec_status tec_recorder_create(struct tec_recorder *r, struct tec_arena *arena,
                                    struct tec_error *err);

/* Frame thread: keep an event of the loop; a recorder without a ring keeps nothing. */
void tec_recorder_emit(struct tec_recorder *r, const struct tec_event *event);

/* Frame thread, behind the event of a chunk that leaves: by how much it jumps from the one before,
 * in the model's numbers. */
void tec_recorder_seam(struct tec_recorder *r, const struct tec_event *release, float jump);

/* Any thread: copy events from number `from` on, at most `room`; *from becomes the number of the
 * first that was copied, later than asked for where the ring has overwritten those before. Returns
 * how many. */
size_t tec_recorder_copy(const struct tec_recorder *r, uint64_t *from,
                         struct tec_flight_event *events, size_t room);

/* Any thread: a word of an event's `what`; "" for none. */
const char *tec_recorder_word(const struct tec_recorder *r, int what);

/* "frame", "start", ...: the names of doc/schedules.md, and "figure", "note", "decided", "seam". */
const char *tec_recorder_kind(int kind);

#endif
