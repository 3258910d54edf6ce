/* ranking.h - texts that a score node has ranked, printed. */
#ifndef TEC_TOOLS_FRAMES_RANKING_H
#define TEC_TOOLS_FRAMES_RANKING_H

#include "tools/frames/frames.h"

#include <jansson.h>
#include <stdio.h>

/* [{index, text, log_likelihood}], the likeliest first; what is no number is null. */
json_t *tec_ranking_json(const struct tec_frame_text *text);

/* The likeliest three with their log-likelihoods, and of how many. */
void tec_ranking_print(FILE *out, const struct tec_frame_text *text);

#endif
