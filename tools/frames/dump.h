/* dump.h - what the model got and gave in each frame, as tensors of one file. */
#ifndef TEC_TOOLS_FRAMES_DUMP_H
#define TEC_TOOLS_FRAMES_DUMP_H

#include "tools/frames/frames.h"

/* Rows are observed frames in order, or requests by number; D is the model's action width.
 *     frame          i64 [n]         number of the frame
 *     prompt_ids     i32 [n, most]   padded with 0; prompt_tokens i32 [n]
 *     state          f32 [n, D]      normalised, padded
 *     noise, chunk   f32 [n, horizon, D]   what the actions start from, and the model's actions
 *     actions        f64 [n, rows, columns]   of the robot; NaN where they are not finite
 *     NODE.request   i64 [requests]; NODE.tokens i32 [requests, most]; NODE.count i32 [requests];
 *     NODE.done      i32 [requests] */
struct tec_dump;

enum tec_status tec_dump_create(struct tec_dump **out, const struct tec_frames *f,
                                struct tec_heap *heap, struct tec_error *err);
void tec_dump_destroy(struct tec_dump *dump); /* NULL is allowed */

enum tec_status tec_dump_frame(struct tec_dump *dump, const struct tec_frames *f,
                               const struct tec_frame_out *frame, struct tec_error *err);

/* Write the file. The dump goes on. */
enum tec_status tec_dump_write(struct tec_dump *dump, const char *path, struct tec_error *err);

#endif
