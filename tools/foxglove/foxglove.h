/* foxglove.h - a running robot's live values by Foxglove's WebSocket protocol, for Foxglove and
 * Lichtblick: a thread of its own, which the frame loop does not wait for. It reads the flight
 * recorder and the figures; actions and texts come to it as values.h says. doc/recording.md lists
 * the channels. */
#ifndef TEC_TOOLS_FOXGLOVE_FOXGLOVE_H
#define TEC_TOOLS_FOXGLOVE_FOXGLOVE_H

#include "graph/live/figures.h"
#include "tools/record/recording.h"

struct tec_foxglove;

enum { TEC_FOXGLOVE_CLIENTS = 8 };

/* Everything is borrowed until close. TEC_NO_MEMORY. */
struct tec_foxglove_options {
    const struct tec_opened *opened;
    const struct tec_recorder *recorder;
    const struct tec_figures *figures;
    enum tec_recording_mode mode;
};
enum tec_status tec_foxglove_open(struct tec_foxglove **out,
                                  const struct tec_foxglove_options *options,
                                  struct tec_error *err);
/* Clients are told that this end leaves. The engine is still open, and no frame runs. NULL is
 * allowed. */
void tec_foxglove_close(struct tec_foxglove *f);

/* Any one thread: whether there are TEC_FOXGLOVE_CLIENTS already; then a connection behind its
 * handshake, which is closed here from now on. False: it could not be taken, and is the caller's
 * still. */
bool tec_foxglove_full(const struct tec_foxglove *f);
bool tec_foxglove_take(struct tec_foxglove *f, int fd);

/* Frame thread; NULL is allowed. A chunk has left; a frame has ended. Neither locks, waits nor
 * allocates. */
void tec_foxglove_left(struct tec_foxglove *f, const struct tec_recorded_chunk *left);
void tec_foxglove_frame(struct tec_foxglove *f, const struct tec_frame_record *record);

#endif
