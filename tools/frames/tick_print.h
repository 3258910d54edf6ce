/* tick_print.h - a tick of paced frames as a JSON object and as a line of text. */
#ifndef TEC_TOOLS_FRAMES_TICK_PRINT_H
#define TEC_TOOLS_FRAMES_TICK_PRINT_H

#include "tools/frames/paced.h"

#include <jansson.h>

/* As tec_frame_json, where age_us, missed, cause, source and actions are of what the robot was
 * given; tick_us, deadline_us and handed_us (when that was) besides. A tick that was skipped has
 * null for start_us, end_us and plan, and no text. The caller owns *out. TEC_NO_MEMORY. */
enum tec_status tec_tick_json(json_t **out, const struct tec_frames *f,
                              const struct tec_paced_tick *tick, struct tec_error *err);

/* "   3  [ 0.012 -0.530 ...]  held  age 108.1 ms  missed (gpu)  "press it down"". */
void tec_tick_text_line(FILE *out, const struct tec_frames *f, const struct tec_paced_tick *tick);

/* "12 ticks, 2 skipped, 3 missed (gpu 2, plan 1)" */
void tec_paced_counts_print(FILE *out, const struct tec_paced_counts *counts);

#endif
