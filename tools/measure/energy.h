/* energy.h - joules that the machine has used, from counters that it keeps itself.
 *
 * Counters of Linux's powercap (RAPL) are found by tec_energy_open; a counter of another kind, as
 * of a graphics card, is added with tec_energy_add and treated like them. Not thread-safe. */
#ifndef TEC_TOOLS_MEASURE_ENERGY_H
#define TEC_TOOLS_MEASURE_ENERGY_H

#include <stdbool.h>
#include <stdint.h>

enum { TEC_ENERGY_COUNTERS = 16 };

/* A counter of microjoules that only grows, but for going round. */
struct tec_energy_counter {
    char name[32];    /* "package-0", "dram" */
    int64_t range_uj; /* it goes round past this value; 0 = it never does */
    char path[512];   /* a file with one number; "" = `read` is asked */
    bool (*read)(void *self, int64_t *uj);
    void *self;
    int64_t last_uj; /* as last read */
};

struct tec_energy {
    int n;
    struct tec_energy_counter counters[TEC_ENERGY_COUNTERS];
    int64_t total_uj; /* since open or the last reset */
    bool lost;        /* a counter could not be read any more */
};

/* The packages, and the memory where it is counted apart, of a powercap folder; NULL is the
 * system's. Parts of a package and the whole platform are left out, so that nothing is counted
 * twice. A folder or file that cannot be read (which is usual without rights) leaves n = 0. */
void tec_energy_open(struct tec_energy *energy, const char *folder);

/* One counter more: name, range_uj and path, or read with self. False when it cannot be read or
 * there is no room. */
bool tec_energy_add(struct tec_energy *energy, const struct tec_energy_counter *counter);

/* Joules since open, all counters together. False, and -1, when nothing is counted or a counter was
 * lost. To be called at least once each time a counter goes round: every few minutes. */
bool tec_energy_read(struct tec_energy *energy, double *joules);

#endif
