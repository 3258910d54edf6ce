/* replay_page.h - a recording and what it is when run again as one page: figures side by side,
 * frames over time, and the frames that are not the same. */
#ifndef TEC_TOOLS_RECORD_REPLAY_PAGE_H
#define TEC_TOOLS_RECORD_REPLAY_PAGE_H

#include "base/error.h"
#include "tools/record/buffer.h"

#include <jansson.h>

struct tec_replay_page {
    struct tec_buffer frames; /* a struct tec_sides_frame each, in the order of the recording */
    json_t *rows;             /* of the first frames that differ */
    json_t *facts;            /* [what, was, is] */
    int64_t differ, missed[2];
};

enum tec_status tec_replay_page_open(struct tec_replay_page *page, struct tec_heap *heap,
                                     struct tec_error *err);
void tec_replay_page_close(struct tec_replay_page *page); /* zeroed is allowed */

/* A frame of both: {frame, session, was, is, was_us, is_us, was_missed, is_missed} and what there
 * is of {actions_equal, was_cause, is_cause, was_notes, is_notes}, as a line of `replay --diff` has
 * them. `differs`: what it ran or gave. */
void tec_replay_page_add(struct tec_replay_page *page, const json_t *line, bool differs);

/* What the recording says and what is so now, in the order of the calls; takes both references,
 * NULL or null: not known. */
void tec_replay_page_fact(struct tec_replay_page *page, const char *what, json_t *was, json_t *is);

/* As the file at `path` (base/out_file.h). TEC_IO, TEC_NO_MEMORY. */
enum tec_status tec_replay_page_write(const struct tec_replay_page *page, const char *path,
                                      const char *title, struct tec_error *err);

#endif
