/* realtime.h - options of verbs that keep deadlines: how their threads are scheduled, and memory
 * that stays in memory (doc/realtime.md). */
#ifndef TEC_TOOLS_CLI_REALTIME_H
#define TEC_TOOLS_CLI_REALTIME_H

#include "base/thread.h"
#include "tools/cli/options.h"

struct tec_realtime {
    int priority;
    const char *cores; /* "2-3,6"; NULL: all */
    bool lock_memory;
};

/* clang-format off */
/* Rows of a verb's table of options; `at`: the offset of that struct in the verb's own. */
#define TEC_REALTIME_ROWS(at)                                                                      \
    {"realtime", 0, TEC_OPTION_INT, "N",                                                           \
     "SCHED_FIFO: threads that compute have priority N, who hands actions out N + 1",              \
     (at) + offsetof(struct tec_realtime, priority), 1, 98},                                       \
    {"cores", 0, TEC_OPTION_TEXT, "LIST", "cores that threads compute on, each its own: 2-3,6",    \
     (at) + offsetof(struct tec_realtime, cores), 0, 0},                                           \
    {"lock-memory", 0, TEC_OPTION_FLAG, NULL, "nothing of this process is paged out",              \
     (at) + offsetof(struct tec_realtime, lock_memory), 0, 0}
/* clang-format on */

/* Read --cores. *asked: whether threads are to be scheduled at all. TEC_INVALID for what is no
 * list. */
enum tec_status tec_realtime_read(const struct tec_realtime *r, struct tec_scheduling *how,
                                  bool *asked, struct tec_error *err);

/* Lock the memory, where that is asked for: once weights are read. As tec_lock_memory. */
enum tec_status tec_realtime_lock(const struct tec_realtime *r, struct tec_error *err);

#endif
