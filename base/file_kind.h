/* file_kind.h - what kind of file a path names, in words for messages; and opening only files. */
#ifndef TEC_BASE_FILE_KIND_H
#define TEC_BASE_FILE_KIND_H

#include "base/error.h"

#include <stdbool.h>
#include <sys/stat.h>

/* "a directory", "a FIFO", "a character device", "a block device", "a socket", "a regular file".
 * Static text. */
const char *tec_file_type(mode_t mode);

/* Whether a file that begins with these 8 bytes is a recording (MCAP); a memory's store, as
 * graph/memory/log_open.c begins it. */
bool tec_file_is_recording(const unsigned char first[8]);
bool tec_file_is_memory(const unsigned char first[8]);

/* Open a regular file for reading; `st` is filled. Anything else is refused at once: neither a FIFO
 * nor a device is waited for, read from or set in motion. TEC_NOT_FOUND where there is none;
 * TEC_IO, with the reason or with what it is. The caller closes *fd. */
enum tec_status tec_file_open_regular(int *fd, struct stat *st, const char *path,
                                      struct tec_error *err);

#endif
