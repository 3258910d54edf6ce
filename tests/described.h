/* described.h - a model of a description that a test writes, named t, opened at size tiny. */
#ifndef TEC_TESTS_DESCRIBED_H
#define TEC_TESTS_DESCRIBED_H

#include "graph/model/program.h"
#include "tests/box.h"

#include <stdarg.h>
#include <string.h>

/* `format` and what follows are printed to t.lua, which is gone when this returns. */
__attribute__((format(printf, 4, 5))) static inline enum tec_status
described(struct tec_model **out, struct tec_heap *heap, struct tec_error *err, const char *format,
          ...)
{
    struct box box;
    va_list more;
    box_make(&box);
    box_path(&box, "t.lua");
    FILE *file = fopen(box.path, "w");
    if (!file)
        return tec_fail(err, TEC_IO, "%s", box.path);
    va_start(more, format);
    vfprintf(file, format, more);
    va_end(more);
    fclose(file);
    const struct tec_model_choice choice = {.root = box.dir, .arch = "t", .size = "tiny"};
    enum tec_status status = tec_model_open(out, &choice, heap, err);
    box_remove(&box);
    return status;
}

/* It was refused with these words, and with their line (0: none). */
static inline void described_says(const struct tec_error *err, int line, const char *says)
{
    char place[32] = "";
    if (line)
        snprintf(place, sizeof place, "t.lua:%d: ", line);
    if (!strstr(err->message, says) || !strstr(err->message, place))
        fprintf(stderr, "# wanted '%s%s', is '%s'\n", place, says, err->message);
    CHECK(strstr(err->message, says) && strstr(err->message, place));
}

#endif
