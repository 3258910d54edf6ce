/* view_page.h - frames as a page: the timeline of a robot against its budget, and what each frame
 * did. The same page shows a running robot and a recording; it asks for nothing from elsewhere. */
#ifndef TEC_TOOLS_RECORD_VIEW_PAGE_H
#define TEC_TOOLS_RECORD_VIEW_PAGE_H

#include "tools/record/buffer.h"
#include "tools/record/flight.h"

/* Frames that began after `after_ns`, at most the newest `most`, with why each miss did, as JSON
 * {pipeline, policy, period_ms, nodes, cadence, frames [...]}. page/view.js says what it reads. */
enum tec_status tec_view_data(struct tec_buffer *out, struct tec_flight *f, int64_t after_ns,
                              size_t most, struct tec_error *err);

/* The page; `data` NULL: it asks for the data at /data, again and again. */
void tec_view_page(struct tec_buffer *out, const char *title, const struct tec_buffer *data);

#endif
