/* sides.h - one HTML page of two of a kind, what was and what is: tables, and frames over time. It
 * has no script and asks for nothing from elsewhere; every text is escaped. */
#ifndef TEC_TOOLS_PICTURE_SIDES_H
#define TEC_TOOLS_PICTURE_SIDES_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* A frame on both sides, milliseconds; negative: there is none on that side. */
struct tec_sides_frame {
    int64_t number;
    double before_ms, after_ms;
    bool differs; /* what it did, not how long it took */
};

/* The page up to its first section. `words`: a sentence below the title. */
void tec_sides_begin(FILE *out, const char *title, const char *words);

/* A section of one table. `heads`: the columns' names, strings. `rows`: arrays of cells, each a
 * text, a number, null (nothing is known), or an object {text, bar, mark}: a text, a bar below it
 * as long as `bar` (0 to 1) of the cell, in heavy letters where `mark`. Columns after the first
 * that hold no text are set to the right. An empty `rows`: the sentence `none` in place of the
 * table. */
void tec_sides_table(FILE *out, const char *heading, const json_t *heads, const json_t *rows,
                     const char *none);

/* A section of frames over time: what was above, what is below, to one scale, a mark between them
 * where they differ. Many frames share a column, which is as high as the longest of them. */
void tec_sides_timeline(FILE *out, const char *heading, const struct tec_sides_frame *frames,
                        size_t n);

void tec_sides_end(FILE *out);

#endif
