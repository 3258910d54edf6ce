/* bytes.h - a number of bytes as people read it. */
#ifndef TEC_TOOLS_CLI_BYTES_H
#define TEC_TOOLS_CLI_BYTES_H

#include <stdint.h>

/* "512 B", "18.0 KiB", "6.12 GiB" in `text`, which is returned. */
const char *tec_cli_bytes_text(char text[24], int64_t bytes);

#endif
