/* allocations.h - the allocator of the test program: every call is counted, and fails on request.
 *
 * It stands in for glibc's names in the whole process, shared libraries included. Sanitizers bring
 * an allocator of their own: ALLOCATIONS_SEEN is then 0, and nothing is counted.
 */
#ifndef TECTUM_TESTS_ALLOCATIONS_H
#define TECTUM_TESTS_ALLOCATIONS_H

#include "tests/sanitized.h"

#include <stdbool.h>

#define ALLOCATIONS_SEEN (!SANITIZED)

struct allocations {
    _Atomic long calls; /* malloc and its relatives, failed ones too */
    _Atomic long frees; /* free of what is not NULL */
    _Atomic long locks; /* pthread_mutex_lock */
    long fail_at;       /* the call that fails, from 1; 0: none does */
    bool for_ever;      /* and each one behind it */
};

/* Where this process counts: its own, or memory that a test shares with a child. */
extern struct allocations *allocations;

#endif
