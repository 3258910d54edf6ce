/* byte_text.h - a number of bytes as people read it. */
#ifndef TEC_BASE_BYTE_TEXT_H
#define TEC_BASE_BYTE_TEXT_H

#include <stdint.h>

/* "512 B", "18.0 KiB", "6.12 GiB" in `text`, which is returned. */
const char *tec_byte_text(char text[24], int64_t bytes);

#endif
