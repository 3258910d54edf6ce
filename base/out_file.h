/* out_file.h - output files: a regular file appears whole or not at all, a pipe is written to. */
#ifndef TEC_BASE_OUT_FILE_H
#define TEC_BASE_OUT_FILE_H

#include "base/error.h"

#include <stdbool.h>
#include <stdio.h>

/* What the path names decides what is done:
 *   nothing, a regular file   a temporary file in the same folder is written, synced to the disk
 *                             and renamed by tec_outfile_file_keep; the new file has the old one's
 *                             permissions
 *   a memory's store, a recording   refused: nobody can make them again
 *   a symbolic link           its target is the file; the link stays
 *   a FIFO that is read,      opened and written as it is; also what standard output or standard
 *   a character device        error goes to (/dev/stdout)
 *   anything else             refused: a directory, a block device, a socket, a FIFO without reader
 * Zeroed: none. Neither moved nor copied while it is open. Not thread safe. */
struct tec_out_file {
    FILE *file;       /* to be written to; NULL: none is open */
    const char *path; /* as given, borrowed */
    int fd;           /* below `file` */
    int why;          /* errno of the first write that failed; 0: none did */
    bool direct;      /* written as it is: nothing is renamed */
    char target[4096];
    char temporary[4096];
};

/* TEC_IO with the kind and the reason, TEC_NO_MEMORY. Nothing to drop after a failure. */
enum tec_status tec_outfile_file_open(struct tec_out_file *out, const char *path,
                                      struct tec_error *err);

/* Check whether `path` could be opened, without opening it, for output that is written at the end.
 */
enum tec_status tec_outfile_file_check(const char *path, struct tec_error *err);

/* Open only a regular file or a new one, for a thread that must not wait for a reader. */
enum tec_status tec_outfile_file_open_regular(struct tec_out_file *out, const char *path,
                                              struct tec_error *err);

/* Write n bytes as the file at `path`: whole, or not at all. TEC_IO, TEC_NO_MEMORY. */
enum tec_status tec_outfile_file_write(const char *path, const void *data, size_t n,
                                       struct tec_error *err);

/* Why a write to out->file failed: TEC_IO with the path and the reason. The file stays open. */
enum tec_status tec_outfile_file_failed(const struct tec_out_file *out, struct tec_error *err);

/* Put it in its place; on failure it is dropped, and the old file is as it was. Nothing is done
 * when none is open. */
enum tec_status tec_outfile_file_keep(struct tec_out_file *out, struct tec_error *err);

/* Forget what was written. Nothing is done when none is open. */
void tec_outfile_file_drop(struct tec_out_file *out);

#endif
