/* view_texts.h - of the page of frames: requests, what they said, and keys and values. */
#ifndef TEC_TOOLS_RECORD_VIEW_TEXTS_H
#define TEC_TOOLS_RECORD_VIEW_TEXTS_H

#include "tools/record/flight.h"

/* What became of requests in a frame of its session: [[kind, request, node, tokens in all,
 * reason]], kind as tec_recorder_kind says it. New references, NULL without memory; so are those
 * below. */
json_t *tec_view_requests(const struct tec_flight *f, const struct tec_flight_frame *frame);

/* What was done to keys and values in it, memories among them: [[of, operation, times, tokens]]. */
json_t *tec_view_kv(const struct tec_flight *f, const struct tec_flight_frame *frame);

/* Of a file, what each request said: {"SESSION:REQUEST": {text, reason}}, texts up to 2000 bytes. A
 * recorder of this process has no texts: an empty object. */
json_t *tec_view_texts(struct tec_flight *f);

#endif
