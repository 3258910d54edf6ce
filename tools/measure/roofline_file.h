/* roofline_file.h - machines of a roofline that are not built in. */
#ifndef TEC_TOOLS_MEASURE_ROOFLINE_FILE_H
#define TEC_TOOLS_MEASURE_ROOFLINE_FILE_H

#include "tools/measure/modelled.h"

/* A machine from a JSON file (doc/roofline.md lists its fields), in the arena. TEC_MALFORMED with
 * the file and the field, TEC_NOT_FOUND, TEC_IO, TEC_NO_MEMORY. */
enum tec_status tec_roofline_read(const struct tec_peak **out, const char *path,
                                  struct tec_arena *arena, struct tec_heap *heap,
                                  struct tec_error *err);

#endif
