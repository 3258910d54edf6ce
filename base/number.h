/* number.h - whole numbers of texts. */
#ifndef TEC_BASE_NUMBER_H
#define TEC_BASE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* A whole decimal number, or false. */
bool tec_number_parse(const char *text, int64_t *value);

#endif
