/* json_text.h - JSON values as text: whole, or an error and nothing. */
#ifndef TEC_BASE_JSON_TEXT_H
#define TEC_BASE_JSON_TEXT_H

#include "base/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* jansson leaves a value out where it gets no memory for it: an array is short, an object lacks a
 * member, and only the return value of that one call told it. The program therefore watches what
 * jansson asks for, and whoever writes a value or has read one asks once whether it is whole. */

/* Watch jansson's memory from here on, in the whole process. For the program, before jansson is
 * used; the library leaves a host program's jansson alone, and tec_json_refused stays false. */
void tec_json_watch(void);

/* Was jansson refused memory on this thread since this was last asked there? */
bool tec_json_refused(void);

/* The text of a value, free() it; NULL where memory was refused for it or for the value since
 * tec_json_refused was last asked, or where `json` is NULL. `flags` are jansson's. */
char *tec_json_whole(const json_t *json, size_t flags);

/* The text and a line end into `out`, or nothing and TEC_NO_MEMORY ("no memory for WHAT"). That it
 * cannot be written is known to the stream, and TEC_OK here. */
enum tec_status tec_json_print(FILE *out, const json_t *json, size_t flags, const char *what,
                               struct tec_error *err);

/* The text and a line end as the file at `path` (base/out_file.h). TEC_NO_MEMORY, TEC_IO. */
enum tec_status tec_json_write(const char *path, const json_t *json, size_t flags,
                               struct tec_error *err);

/* A number; null where it is not finite, which JSON cannot say. NULL: no memory. */
json_t *tec_json_number(double number);

/* A string of text from outside: where it is not UTF-8, as tec_escape shows it, at most 4095
 * bytes of that. NULL: no memory. */
json_t *tec_json_shown(const char *text);

#endif
