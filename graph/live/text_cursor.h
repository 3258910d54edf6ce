/* text_cursor.h - how far a reader is in one of the loop's text records, which hold one text after
 * another. Request numbers begin anew when the loop is reset, so a number alone tells no text. One
 * thread: the frame thread, between frames. */
#ifndef TEC_GRAPH_LIVE_TEXT_CURSOR_H
#define TEC_GRAPH_LIVE_TEXT_CURSOR_H

#include "graph/run/loop/loop.h"

struct tec_text_cursor {
    int64_t id, finished_ns; /* of the text that it is in; finished_ns where it has ended */
    int read;                /* tokens */
    bool ended;              /* and the end */
};

/* Follow the record: true where it holds another text than before, of which nothing is read. */
bool tec_cursor_follow(struct tec_text_cursor *at, const struct tec_utterance *text);

/* The end of the text is read. */
void tec_cursor_end(struct tec_text_cursor *at, const struct tec_utterance *text);

#endif
