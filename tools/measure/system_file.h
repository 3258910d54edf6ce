/* system_file.h - single values out of the files of /proc and /sys.
 *
 * `system` is the folder that /proc and /sys lie in, "" for this machine; a test gives another. */
#ifndef TEC_TOOLS_MEASURE_SYSTEM_FILE_H
#define TEC_TOOLS_MEASURE_SYSTEM_FILE_H

#include <stdbool.h>
#include <stdint.h>

enum { TEC_SYSTEM_LINE = 4096 };

/* The value of the first line "KEY: value" or "KEY value" of SYSTEM/PATH, or with `key` NULL the
 * whole first line; without blanks at both ends, cut at TEC_SYSTEM_LINE - 1 bytes. False, and an
 * empty text, where there is no such file or line. */
bool tec_system_line(char text[TEC_SYSTEM_LINE], const char *system, const char *path,
                     const char *key);

/* The number that such a value begins with; `missing` where there is none. */
int64_t tec_system_number(const char *system, const char *path, const char *key, int64_t missing);

/* How many numbers the first line lists, as "0-3,8"; `missing` where there is no such file. */
int tec_system_list(const char *system, const char *path, const char *key, int missing);

/* Put the word in brackets in place of the text: "always [madvise] never" becomes "madvise". */
void tec_system_chosen(char text[TEC_SYSTEM_LINE]);

#endif
