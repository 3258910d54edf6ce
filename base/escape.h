/* escape.h - text from outside, made fit for a terminal, a log and a JSON string. */
#ifndef TEC_BASE_ESCAPE_H
#define TEC_BASE_ESCAPE_H

#include <stddef.h>
#include <stdio.h>

/* Names and texts of files, policies and clients may hold what moves a cursor, sets a title, turns
 * the direction of writing or is no text at all. As an escape is written:
 *   a control character below 0x20, 0x7f            \n \r \t \x1b
 *   a control character 0x80 to 0x9f                \u009b
 *   what turns or breaks lines of text              \u202e (embeddings, overrides, isolates, marks,
 *                                                   line and paragraph separators)
 *   a byte that is not UTF-8                        \xff
 * All else stays, the backslash too: an escaped text is not changed again. */

/* Into `to` of `room` > 0 bytes, with a NUL; a text that does not fit ends after its last whole
 * character. Returns its length. `to` must not overlap `text`. */
size_t tec_escape(char *to, size_t room, const char *text);

/* Bytes of the first character of `text`, of which `n` > 0 are there, if it is shown as it is; 0 if
 * its first byte is escaped. */
size_t tec_escape_plain(const char *text, size_t n);

/* To a stream, any length. */
void tec_escape_print(FILE *out, const char *text);

#endif
