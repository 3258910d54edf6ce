/* lines.h - a stream read line by line, of any length that memory holds. */
#ifndef TEC_TOOLS_CLI_LINES_H
#define TEC_TOOLS_CLI_LINES_H

#include "base/alloc.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Zero-initialise, set heap and in, or call tec_lines_open; give back with tec_lines_finish. */
struct tec_lines {
    struct tec_heap *heap;
    FILE *in;
    char *text;     /* the line, without its end ("\n" or "\r\n"); a NUL follows */
    size_t n;       /* bytes; NULs inside count */
    int64_t number; /* of the line, from 1 */
    size_t room;
};

/* Set `in` to a regular file; a FIFO, a device or a folder is refused, and never waited for. The
 * caller closes `in`. TEC_NOT_FOUND, TEC_IO, TEC_NO_MEMORY. */
enum tec_status tec_lines_open(struct tec_lines *lines, const char *path, struct tec_error *err);

/* The next line. *more is false at the end of the stream. TEC_IO when it cannot be read. */
enum tec_status tec_lines_next(struct tec_lines *lines, bool *more, struct tec_error *err);
void tec_lines_finish(struct tec_lines *lines);

#endif
