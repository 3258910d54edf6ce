/* recording_own.h - what the files of a recording share: the ring of bytes between frame thread and
 * writer, and the items in it. */
#ifndef TEC_TOOLS_RECORD_RECORDING_OWN_H
#define TEC_TOOLS_RECORD_RECORDING_OWN_H

#include "tools/record/recording.h"

enum tec_recorded_kind {
    TEC_ITEM_INPUTS,
    TEC_ITEM_TICK,
    TEC_ITEM_LEFT,
    TEC_ITEM_DECIDED,
    TEC_ITEM_FRAME
};

/* In front of each item; `bytes` follow. */
struct tec_item_head {
    uint32_t kind, bytes;
    int64_t t_ns;
};

/* INPUTS: this, and for each value the next one, its name and its data. */
struct tec_item_inputs {
    int64_t number;
    int session, n;
};
struct tec_item_value {
    int kind, rank;
    int64_t shape[4];
    uint64_t bytes;
    uint64_t name_bytes;
};

struct tec_item_ask {
    int decoder, max_tokens, prio;
};

/* TICK: this, and noise [noise_n]. */
struct tec_item_tick {
    int64_t number, frame, ahead, counted, tick_ns;
    int session, noise_n, n_asks, n_cancels, reset;
    unsigned spawn, mute;
    bool observed, rests;
    struct tec_item_ask asks[TEC_MAX_ASKS];
    int64_t cancels[TEC_MAX_ASKS];
};

/* LEFT: this, the chunk [chunk_n] and the robot's actions [rows, columns]. */
struct tec_item_left {
    int64_t frame, seen, release_ns, age_us;
    int action, session, chunk_n, rows, columns;
    bool late;
};

/* DECIDED: this, and what it counts, as tec_recording_decided_parts says. */
struct tec_item_decided {
    int64_t frame;
    int session, n_late, n_refused, n_evicted, n_rows, n_nodes, n_recompute, n_seg;
    int depth[TEC_MAX_RINGS];
    char policy[TEC_DECIDED_POLICY];
};

/* FRAME: this, and its launches. */
struct tec_item_frame {
    int64_t frame, tick_ns, start_ns, end_ns, planner_ns, host_ns, overrun_us, age_us, slack_us;
    int session, cause, tokens, rows, in_flight, snapped, refused, shed, n_launches;
    bool missed, failed;
    char policy[64];
};

/* One producer, one consumer. */
struct tec_byte_ring {
    uint8_t *data;
    size_t size;                 /* a power of two */
    _Atomic uint64_t head, tail; /* consumer's, producer's; bytes since the start */
};

struct tec_recording {
    struct tec_recording_options o;
    struct tec_heap *heap;
    struct tec_arena arena;
    struct tec_byte_ring ring;
    uint64_t at;          /* the frame thread's: the end of the item that it puts in */
    _Atomic int64_t lost; /* items that found no room */
    _Atomic bool over;    /* the file has ended: nothing more is taken */
    _Atomic bool closing;
    pthread_t thread;
    bool started;
    struct tec_transcript texts;
    struct tec_clock clock;
    struct tec_deciding deciding; /* the frame thread's */

    /* The writer's. */
    struct tec_mcap_writer file;
    int64_t wall_ns;                  /* add to the frame clock: the wall's */
    int64_t flushed_ns;               /* when the last chunk was ended */
    uint64_t flight;                  /* number of the next event of the flight recorder */
    int n_words;                      /* of its table that have been written */
    uint8_t *item;                    /* room for one */
    int ticks, frames, words, events; /* channels */
    int decisions;                    /* likewise */
    struct tec_decided decided;       /* the item's */
    int safety;                       /* channel; of a robot that can be stopped */
    uint32_t stops, resets;           /* that have been written */
    int not_begun;                    /* channel; where they are counted */
    int64_t n_not_begun;              /* that have been written */
    int actions[TEC_MAX_ACTIONS], decoders[TEC_MAX_DECODERS];
    int n_inputs;
    struct {
        char topic[160];
        int session, channel;
    } inputs[TEC_MAX_INPUTS];
    bool told;
};

/* recording_describe.c: the messages and attachments at the front of a file. */
enum tec_status tec_recording_describe(struct tec_mcap_writer *file,
                                       const struct tec_opened *opened,
                                       enum tec_recording_mode mode, int64_t wall_ns,
                                       struct tec_error *err);
/* recording_memory.c: what memories hold before the first frame, with their files of so many bytes
 * together; a line on stderr of each that is not held. */
enum { TEC_RECORDED_MEMORY = 16 << 20 };
void tec_recording_memories(struct tec_mcap_writer *file, const struct tec_opened *opened,
                            uint64_t time_ns);
/* What a recording says of itself; a new reference. */
json_t *tec_recording_about(const struct tec_opened *opened, enum tec_recording_mode mode,
                            int64_t wall_ns);
/* A channel of JSON objects. */
int tec_recording_channel(struct tec_mcap_writer *file, const char *topic);
/* A JSON value as a message; takes the reference. */
void tec_recording_json(struct tec_mcap_writer *file, int channel, int64_t sequence,
                        uint64_t time_ns, json_t *json);

/* recording_write.c: one item into the file. */
void tec_recording_put_item(struct tec_recording *r, const struct tec_item_head *head);
/* What the flight recorder has more. `words`, `events`: channels. */
void tec_recording_put_flight(struct tec_mcap_writer *file, const struct tec_recorder *from,
                              uint64_t *next, int *n_words, int words, int events, int64_t wall_ns,
                              int64_t since_ns);
/* Stops and resets since the last look. */
void tec_recording_put_stops(struct tec_recording *r);
/* Misses without a frame, where there are more since the last look. */
void tec_recording_put_not_begun(struct tec_recording *r);
/* New tokens and ends of texts. */
void tec_recording_put_texts(struct tec_recording *r);

/* recording_decided.c: what an item of a frame's decisions has behind its front, where it lies in
 * `d`: bytes in all. And such an item into the file. */
enum { TEC_DECIDED_PARTS = 8 };
struct tec_item_part {
    void *at;
    size_t n;
};
size_t tec_recording_decided_parts(struct tec_item_part parts[TEC_DECIDED_PARTS],
                                   struct tec_decided *d, const struct tec_item_decided *item);
void tec_recording_put_decided(struct tec_recording *r, uint64_t time_ns);

/* recording_value.c: an input's value as a message: of a channel as `tec_value_channel` says. */
bool tec_recording_is_image(const struct tec_value *value);
void tec_recording_image(struct tec_buffer *out, const struct tec_value *value, uint64_t time_ns);
json_t *tec_recording_value(const struct tec_value *value);
/* Element i of a value that is no text. */
double tec_recording_number(const struct tec_value *value, size_t i);

#endif
