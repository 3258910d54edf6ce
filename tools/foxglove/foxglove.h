/* foxglove.h - a running robot's live values by Foxglove's WebSocket protocol, for Foxglove and
 * Lichtblick, on the thread of view.h, which the frame loop does not wait for. It reads the flight
 * recorder and the figures; actions and texts come to it as values.h says. doc/recording.md lists
 * the channels. */
#ifndef TEC_TOOLS_FOXGLOVE_FOXGLOVE_H
#define TEC_TOOLS_FOXGLOVE_FOXGLOVE_H

#include "graph/live/figures.h"
#include "tools/record/recording.h"

struct lws; /* libwebsockets' connection */
struct tec_foxglove;
struct tec_foxglove_client;

enum { TEC_FOXGLOVE_CLIENTS = 8, TEC_FOXGLOVE_TICK_US = 20000, TEC_FOXGLOVE_IDLE_S = 10 };

/* What a client may name in its handshake. */
#define TEC_FOXGLOVE_PROTOCOL "foxglove.websocket.v1"
#define TEC_FOXGLOVE_PROTOCOL_SDK "foxglove.sdk.v1" /* the same messages */

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
/* No connection is left, or the library has closed them. The engine is still open, and no frame
 * runs. NULL is allowed. */
void tec_foxglove_close(struct tec_foxglove *f);

/* --- one thread, which is not the frame thread; none of these blocks --- */

/* Whether there are TEC_FOXGLOVE_CLIENTS. Of those the one that has subscribed to nothing and sent
 * nothing for longest, and for TEC_FOXGLOVE_IDLE_S, is then told to leave: who comes again finds
 * its place. */
bool tec_foxglove_full(struct tec_foxglove *f);
/* A connection whose handshake was accepted; NULL: there is no place, or no memory. Then what it
 * sends, when it may be sent to (-1: close it), and its end. */
struct tec_foxglove_client *tec_foxglove_enter(struct tec_foxglove *f, struct lws *wsi);
void tec_foxglove_came(struct tec_foxglove *f, struct tec_foxglove_client *c, const void *data,
                       size_t n);
int tec_foxglove_writable(struct tec_foxglove_client *c);
void tec_foxglove_left_by(struct tec_foxglove *f, struct tec_foxglove_client *c);

/* Whether anybody has subscribed to something: then tell what is new every TEC_FOXGLOVE_TICK_US. */
bool tec_foxglove_looked_at(const struct tec_foxglove *f);
void tec_foxglove_tick(struct tec_foxglove *f);

/* Clients are told that this end leaves; returns how many are there. */
int tec_foxglove_goodbye(struct tec_foxglove *f);

/* --- the frame thread; NULL is allowed --- */

/* A chunk has left; a frame has ended. Neither locks, waits nor allocates. */
void tec_foxglove_left(struct tec_foxglove *f, const struct tec_recorded_chunk *left);
void tec_foxglove_frame(struct tec_foxglove *f, const struct tec_frame_record *record);

#endif
