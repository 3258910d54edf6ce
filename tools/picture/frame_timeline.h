/* frame_timeline.h - what ran when in one frame, as a picture. */
#ifndef TEC_TOOLS_PICTURE_FRAME_TIMELINE_H
#define TEC_TOOLS_PICTURE_FRAME_TIMELINE_H

#include "tools/frames/frames.h"

/* Draw the frame into a file: a lane for the host and for each node; release and, unless it is far
 * away, deadline as marks. `title` may be NULL. TEC_IO, TEC_NO_MEMORY. */
enum tec_status tec_timeline_of_frames(const char *path, const struct tec_frames *f,
                                       const struct tec_frame_record *record, const char *title,
                                       struct tec_error *err);

#endif
