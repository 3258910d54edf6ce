/* ring_text.h - what a ring comes to, in words: stages and their bytes, how they move and are read,
 * what each captured depth means for a frame and for the age of an action. */
#ifndef TEC_TOOLS_FRAMES_RING_TEXT_H
#define TEC_TOOLS_FRAMES_RING_TEXT_H

#include "graph/run/engine/engine.h"

#include <stdio.h>

/* Print a ring's stages and bytes, each line indented by two blanks; nothing for a pipeline without
 * a ring. `measured` NULL: no bytes are printed. */
void tec_frame_ring_text(const struct tec_pipeline *pipeline, const struct tec_measured *measured,
                         FILE *out);

#endif
