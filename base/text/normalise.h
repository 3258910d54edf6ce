/* normalise.h - the steps that rewrite text before it is cut into words. */
#ifndef TEC_BASE_TEXT_NORMALISE_H
#define TEC_BASE_TEXT_NORMALISE_H

#include "base/error.h"
#include "base/text/bytes.h"
#include "base/text/charsmap.h"
#include "base/text/prefix.h"

#include <stdbool.h>

enum tec_normal_kind {
    TEC_NORMAL_FORM,    /* of Unicode: `form` */
    TEC_NORMAL_LOWER,   /* each character for itself */
    TEC_NORMAL_MARKS,   /* no combining marks; `bert`: those that BERT means */
    TEC_NORMAL_NMT,     /* no control characters, odd white space as spaces */
    TEC_NORMAL_BERT,    /* clean, pad ideographs; lower case and no accents, too, where that is not
                         * left to other steps (`by_steps`) */
    TEC_NORMAL_PREPEND, /* `to` before text that is not empty */
    TEC_NORMAL_REPLACE, /* every `from` by `to` */
    TEC_NORMAL_RUNS,    /* every run of two or more spaces by `to` */
    TEC_NORMAL_STRIP,   /* White_Space at the left and/or right end */
    TEC_NORMAL_PRECOMPILED, /* `map`, as tokenizer.json uses it: by grapheme */
    TEC_NORMAL_MODEL,       /* `map` and spaces, as tokenizer.model uses them */
};

struct tec_normal {
    enum tec_normal_kind kind;
    struct tec_text_span from, to;
    struct tec_charsmap map;
    unsigned form;                            /* FORM: bits of enum tec_unicode_form */
    bool bert;                                /* MARKS */
    bool left, right;                         /* STRIP */
    bool by_steps, clean, pad;                /* BERT */
    bool dummy, extra_removed, escaped, tail; /* MODEL: add_dummy_prefix, remove_extra_whitespaces,
                                                 escape_whitespaces, treat_whitespace_as_suffix */
    const struct tec_prefix *kept;            /* MODEL: user-defined pieces stay as they are */
};

#define TEC_NORMAL_STEPS 16 /* most steps of one tokenizer */

/* Run the steps over valid UTF-8. The result is the last output, in `arena`, or `text` itself when
 * there are no steps; it is valid UTF-8. Fails with TEC_NO_MEMORY, or TEC_MALFORMED when a hostile
 * file makes the text grow beyond all use. */
enum tec_status tec_normalise(const struct tec_normal *steps, int n_steps,
                              struct tec_text_span text, struct tec_text_span *out,
                              struct tec_arena *arena, struct tec_error *err);

#endif
