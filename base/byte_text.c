/* byte_text.c - writes a number of bytes as people read it, such as "18.0 KiB". */
#include "base/byte_text.h"

#include <stdio.h>

const char *tec_byte_text(char text[24], int64_t bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes / 1024.0;
    int unit = 0;
    if (bytes < 1024) {
        snprintf(text, 24, "%lld B", (long long)bytes);
        return text;
    }
    for (; value >= 1000.0 && unit < 3; unit++)
        value /= 1024.0;
    snprintf(text, 24, value < 10.0 ? "%.2f %s" : "%.1f %s", value, units[unit]);
    return text;
}
