/* values.h - actions and texts on their way from the frame thread to those who look at a robot.
 *
 * The frame thread copies a chunk into a ring of places that were taken at the start, and only
 * while somebody wants chunks; texts likewise. What finds no place is left out. It neither locks,
 * waits nor allocates. One reader. */
#ifndef TEC_TOOLS_FOXGLOVE_VALUES_H
#define TEC_TOOLS_FOXGLOVE_VALUES_H

#include "base/ring.h"
#include "graph/live/transcript.h"
#include "tools/record/recording.h"

/* A chunk that has left. */
struct tec_foxglove_chunk {
    int64_t frame, release_ns, age_us; /* age -1: unknown */
    int action, session, rows, columns;
    bool late;
    bool is_robot; /* in the robot's units: doubles; else the model's: floats */
    union {
        double robot[1];
        float model[1];
    } values; /* [rows, columns] */
};

struct tec_foxglove_values {
    const struct tec_engine *engine;          /* borrowed */
    size_t bytes;                             /* of the values of a chunk, at most */
    struct tec_foxglove_chunk *given, *taken; /* the frame thread's, the reader's */
    struct tec_ring chunks;
    _Atomic bool wanted;
    struct tec_transcript texts;
};

/* Everything comes from the arena. TEC_NO_MEMORY. `finish` also without `init` having succeeded,
 * where *v is zeroed before. */
enum tec_status tec_foxglove_values_init(struct tec_foxglove_values *v,
                                         const struct tec_engine *engine, struct tec_arena *arena,
                                         struct tec_error *err);
void tec_foxglove_values_finish(struct tec_foxglove_values *v);

/* Frame thread: a chunk has left; a frame, or its first session's part, has ended. */
void tec_foxglove_values_left(struct tec_foxglove_values *v, const struct tec_recorded_chunk *left);
void tec_foxglove_values_told(struct tec_foxglove_values *v);

/* Reader: whether it takes chunks, and texts, from now on; at first neither. */
void tec_foxglove_values_want(struct tec_foxglove_values *v, bool chunks, bool texts);

/* Reader: the next chunk, until the next call; NULL: there is none. */
const struct tec_foxglove_chunk *tec_foxglove_values_take(struct tec_foxglove_values *v);

/* Reader: the next token or end of a text, and what it adds, with a NUL. False: there is none. */
bool tec_foxglove_values_read(struct tec_foxglove_values *v, struct tec_transcript_event *event,
                              char text[TEC_DETOKENIZER_BYTES + 1]);

#endif
