/* frame_print.h - a frame as a JSON object and as a line of text. */
#ifndef TEC_TOOLS_FRAMES_FRAME_PRINT_H
#define TEC_TOOLS_FRAMES_FRAME_PRINT_H

#include "tools/frames/frames.h"

#include <jansson.h>

/* "policy", "plan", "gpu", "host", "input"; NULL for none. */
const char *tec_frame_cause_word(enum tec_cause cause);

/* {frame, start_us, end_us, age_us, missed, cause, source, actions, text, plan}, and trouble where
 * there is some: actions then has the rows before it, and where there is none source is none. Times
 * from the opening of the first frame. age_us and cause are null where there is none. plan holds
 * what the frame was decided to be and its launches. Where the frame was asked for requests: asked
 * [{node, request, refused: null or why}]; where it gave some up: cancelled [{request, live}]. Of a
 * ring also seen (frame of the observation whose actions left, null = none did), filling,
 * in_flight, depth, and earlier [{seen, age_us, actions}] where more than one left. Where a
 * prefill reads a stream: read [{node, stream, request, frame, age_us}], null for its default. The
 * caller owns *out. TEC_NO_MEMORY. */
enum tec_status tec_frame_json(json_t **out, const struct tec_frames *f,
                               const struct tec_frame_out *frame, struct tec_error *err);

/* Explain in a sentence why not all rows of the actions are given; "" if they are. `room` > 0
 * bytes. */
void tec_frame_trouble(char *text, size_t room, const struct tec_frames *f,
                       const struct tec_frame_out *frame);

/* Write the object as one line and flush, or write nothing and return TEC_NO_MEMORY. The stream
 * records whether it could be written. */
enum tec_status tec_frame_line(FILE *out, const json_t *frame, struct tec_error *err);

/* "   3  [ 0.012 -0.530 ...]  age 8.1 ms  slack 81.8 ms  batch 3  "press it down"". */
void tec_frame_text_line(FILE *out, const struct tec_frames *f, const struct tec_frame_out *frame);

/* "  of frame 3  7 of 7 in flight", of a ring. */
void tec_frame_print_ring(FILE *out, const struct tec_frames *f, const struct tec_frame_out *frame);

#endif
