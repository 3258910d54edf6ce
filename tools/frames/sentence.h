/* sentence.h - a text that a node has made, in quotes on a line. */
#ifndef TEC_TOOLS_FRAMES_SENTENCE_H
#define TEC_TOOLS_FRAMES_SENTENCE_H

#include <stdio.h>

/* "  "text"" with escapes (base/escape.h). */
void tec_frame_print_sentence(FILE *out, const char *text);

#endif
