/* energy.h - joules that the machine has used, from counters that it keeps itself.
 *
 * Counters of Linux's powercap (RAPL) are found by tec_energy_open; a counter of another kind, as
 * of a graphics card, is added with tec_energy_add and treated like them. Not thread-safe. */
#ifndef TEC_TOOLS_MEASURE_ENERGY_H
#define TEC_TOOLS_MEASURE_ENERGY_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

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

/* Joules of several stretches of time, as of the measured frames of each turn. */
struct tec_energy_sum {
    double joules, before;
    bool unknown; /* of some stretch; or there was none */
};

void tec_energy_begin(struct tec_energy *energy, struct tec_energy_sum *sum);
void tec_energy_end(struct tec_energy *energy, struct tec_energy_sum *sum);

/* {joules, NAME: joules / n of each, counters: [names]}, NAME being `each` and, where it is not
 * NULL, `other`. NULL where nothing is known or there are no `n`; what there is none of is left
 * out. For json_object_set_new. */
json_t *tec_energy_json(const struct tec_energy *energy, const struct tec_energy_sum *sum,
                        const char *each, int64_t n, const char *other, int64_t n_other);

/* The same in a line of text behind two spaces, nothing where nothing is known. */
void tec_energy_print(const struct tec_energy *energy, const struct tec_energy_sum *sum,
                      const char *each, int64_t n, const char *other, int64_t n_other, FILE *out);

#endif
