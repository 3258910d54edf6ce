/* text_cursor.c - tells a record's texts apart, by number and by when they ended. */
#include "graph/live/text_cursor.h"

bool tec_cursor_follow(struct tec_text_cursor *at, const struct tec_utterance *text)
{
    bool done = atomic_load_explicit(&text->done, memory_order_acquire) != 0;
    int count = atomic_load_explicit(&text->count, memory_order_acquire);
    bool same = text->id == at->id && count >= at->read &&
                (!at->ended || (done && text->finished_ns == at->finished_ns));
    if (!same)
        *at = (struct tec_text_cursor){.id = text->id};
    return !same;
}

void tec_cursor_end(struct tec_text_cursor *at, const struct tec_utterance *text)
{
    at->id = text->id;
    at->ended = true;
    at->finished_ns = text->finished_ns;
}
