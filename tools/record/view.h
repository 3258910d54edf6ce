/* view.h - a page that shows a running robot, at http://127.0.0.1:PORT/view: a thread of its own
 * that reads the flight recorder. The frame loop does not know of it: a page may stall, reload or
 * be closed, and costs the loop nothing but the processor's time. */
#ifndef TEC_TOOLS_RECORD_VIEW_H
#define TEC_TOOLS_RECORD_VIEW_H

#include "tools/record/recording.h"

struct tec_view;

/* The port of such an option, before anything is opened. TEC_INVALID. */
enum tec_status tec_view_read_port(int64_t *n, const char *port, struct tec_error *err);

/* For an option --view PORT: listen on this machine alone, port 0: any that is free, and say on
 * stderr where the page is. What is served is read by whoever may connect to the machine's own
 * address: frames and their times, no inputs, no texts, no actions. TEC_INVALID for what is no
 * port, TEC_IO for one that is taken. */
enum tec_status tec_view_of_option(struct tec_view **out, const char *port,
                                   enum tec_recording_mode mode, const struct tec_opened *opened,
                                   const struct tec_recorder *recorder, struct tec_error *err);

/* The engine is still open. NULL is allowed. */
void tec_view_close(struct tec_view *view);

#endif
