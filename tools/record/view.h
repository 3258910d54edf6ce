/* view.h - a page that shows a running robot, at http://127.0.0.1:PORT/view, and its live values
 * for Foxglove's programs at ws://127.0.0.1:PORT, by libwebsockets on a thread of its own, which
 * reads the flight recorder. The frame loop waits for nobody: who looks may stall, come again or
 * leave. */
#ifndef TEC_TOOLS_RECORD_VIEW_H
#define TEC_TOOLS_RECORD_VIEW_H

#include "tools/record/recording.h"

enum { TEC_VIEW_SOCKETS = 24 /* that are open at once, the listening one among them */ };

struct tec_view;
struct tec_key;
struct tec_tls_front;

/* Other machines that may look: at `host`, through TLS, who shows the key. Borrowed until close;
 * `front` is not started yet, and has left before the view is closed. */
struct tec_view_afar {
    const char *host; /* an address; one of IPv6 has brackets */
    struct tec_tls_front *front;
    const struct tec_key *key;
};

/* The port of such an option, before anything is opened. TEC_INVALID. */
enum tec_status tec_view_read_port(int64_t *n, const char *port, struct tec_error *err);

/* For an option --view PORT: listen on this machine alone, or as `afar` says (NULL: not), port 0:
 * any that is free, and say on stderr where the page is. What is served is read by whoever may
 * connect: by the page frames and their times, by Foxglove's programs also actions and texts; no
 * inputs. Web pages of elsewhere are refused, but for those of `origin`; NULL: for none.
 * TEC_INVALID for what is no port, TEC_IO for one that is taken. */
enum tec_status tec_view_of_option(struct tec_view **out, const char *port, const char *origin,
                                   const struct tec_view_afar *afar,
                                   const struct tec_recording_options *options,
                                   struct tec_error *err);

/* Frame thread; NULL is allowed. A chunk has left; behind a frame, once for each of its sessions.
 * Neither locks, waits nor allocates. */
void tec_view_left(struct tec_view *view, const struct tec_recorded_chunk *left);
void tec_view_frame(struct tec_view *view, const struct tec_frame_record *record);

/* The engine is still open. NULL is allowed. */
void tec_view_close(struct tec_view *view);

#endif
