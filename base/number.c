/* number.c - whole numbers of texts. */
#include "base/number.h"

#include <errno.h>
#include <stdlib.h>

bool tec_number_parse(const char *text, int64_t *value)
{
    char *end;
    errno = 0;
    long long x = strtoll(text, &end, 10);
    if (errno || end == text || *end || *text == ' ' || *text == '+')
        return false;
    *value = x;
    return true;
}
