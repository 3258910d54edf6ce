/* told.h - whether a call went well, and what it says where it did not: a test on a GPU may run
 * once. */
#ifndef TEC_TESTS_TOLD_H
#define TEC_TESTS_TOLD_H

#include "base/error.h"

#include <stdbool.h>
#include <stdio.h>

static inline bool went_well(enum tec_status status, const struct tec_error *why)
{
    if (status != TEC_OK)
        fprintf(stderr, "# %s\n", why->message);
    return status == TEC_OK;
}

#endif
