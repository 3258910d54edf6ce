/* added.h - tokens that are cut out of the text before any model sees it. */
#ifndef TEC_BASE_TEXT_ADDED_H
#define TEC_BASE_TEXT_ADDED_H

#include "base/text/bytes.h"
#include "base/text/prefix.h"

#include <stdbool.h>
#include <stddef.h>

struct tec_added {
    struct tec_text_span text; /* as written in the file */
    int id;
    bool single_word, lstrip, rstrip, normalized, special;
};

/* A cut of some text: a token (id >= 0), or text still to be encoded (id -1). */
struct tec_cut {
    struct tec_text_span text;
    int id;
};

/* Goes through `text` (valid UTF-8) from left to right, longest token first. */
struct tec_cutter {
    const struct tec_added *added; /* key value = index */
    const struct tec_prefix *keys;
    bool literal; /* special tokens are plain text */
    struct tec_text_span text;
    size_t at, done; /* where to look next; everything before `done` has been handed out */
    size_t run_start, run_end; /* of the white space that was last looked at */
    struct tec_cut held;
    bool holds;
};

/* The next cut; false at the end. Texts of cuts are never empty, except that of a token. */
bool tec_cutter_next(struct tec_cutter *c, struct tec_cut *cut);

#endif
