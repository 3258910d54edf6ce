/* out_file.h - a file that is there whole or not at all: written beside, then renamed. */
#ifndef TEC_TOOLS_OUT_FILE_H
#define TEC_TOOLS_OUT_FILE_H

#include "base/error.h"

#include <stdbool.h>
#include <stdio.h>

/* Zeroed: none. */
struct tec_out_file {
    FILE *file;
    const char *path; /* borrowed */
    char temporary[4096];
};

enum tec_status tec_out_file_open(struct tec_out_file *out, const char *path,
                                  struct tec_error *err);

/* Put it in its place; on failure it is dropped. Nothing is done when none is open. */
enum tec_status tec_out_file_keep(struct tec_out_file *out, struct tec_error *err);

/* Forget what was written. Nothing is done when none is open. */
void tec_out_file_drop(struct tec_out_file *out);

#endif
