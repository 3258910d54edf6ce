/* realtime.c - reads a list of cores, and locks memory. */
#include "tools/cli/realtime.h"

#include "base/number.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

/* A number of `n` bytes. */
static bool read_core(int *core, const char *text, size_t n)
{
    char digits[8];
    int64_t value;
    if (n == 0 || n >= sizeof digits)
        return false;
    snprintf(digits, sizeof digits, "%.*s", (int)n, text);
    if (!tec_number_parse(digits, &value) || value < 0 || value >= CPU_SETSIZE)
        return false;
    *core = (int)value;
    return true;
}

/* "6" or "2-3", of `n` bytes. */
static bool add_range(struct tec_scheduling *how, const char *text, size_t n)
{
    size_t first = strcspn(text, "-,");
    int from, to;
    if (!read_core(&from, text, first < n ? first : n))
        return false;
    to = from;
    if (first < n && !read_core(&to, text + first + 1, n - first - 1))
        return false;
    if (to < from || to - from >= TEC_MAX_CORES - how->n_cores)
        return false;
    for (; from <= to; from++) {
        for (int i = 0; i < how->n_cores; i++)
            if (how->cores[i] == from)
                return false;
        how->cores[how->n_cores++] = from;
    }
    return true;
}

enum tec_status tec_realtime_read(const struct tec_realtime *r, struct tec_scheduling *how,
                                  bool *asked, struct tec_error *err)
{
    *how = (struct tec_scheduling){.priority = r->priority};
    *asked = r->priority || r->cores;
    for (const char *at = r->cores; at;) {
        size_t n = strcspn(at, ",");
        if (!add_range(how, at, n))
            return tec_fail(err, TEC_INVALID,
                            "--cores: '%.60s' is no list of at most %d cores, each once, as 2-3,6",
                            r->cores, TEC_MAX_CORES);
        at = at[n] ? at + n + 1 : NULL;
    }
    return TEC_OK;
}

enum tec_status tec_realtime_lock(const struct tec_realtime *r, struct tec_error *err)
{
    return r->lock_memory ? tec_context(err, tec_lock_memory(err), "--lock-memory") : TEC_OK;
}
