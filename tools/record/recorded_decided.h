/* recorded_decided.h - what a recording says was decided in a frame, read back. */
#ifndef TEC_TOOLS_RECORD_RECORDED_DECIDED_H
#define TEC_TOOLS_RECORD_RECORDED_DECIDED_H

#include "graph/live/decided.h"
#include "tools/record/mcap_read.h"

#include <jansson.h>

/* Take a message of /tectum/decisions, whose object is `json`, for a pipeline of this topology.
 * Numbers are such as the loop's gate may be given; what they mean is judged there, as a policy's
 * are. d->whole is false where it names a node or a partition that this pipeline does not have:
 * then it is no decision of it. TEC_MALFORMED names the frame and what is wrong. */
enum tec_status tec_recorded_decided(struct tec_decided *d, const json_t *json,
                                     const struct tec_topology *topology, struct tec_error *err);

/* The decisions of the frame of the newest ticks, from the reader's place on, which stays where it
 * is: *found false where the next tick comes before them, or the end. TEC_MALFORMED. */
enum tec_status tec_recorded_decided_ahead(struct tec_decided *d, bool *found,
                                           struct tec_mcap_reader *file,
                                           const struct tec_topology *topology,
                                           struct tec_error *err);

#endif
