/* energy_card.h - the counter of joules that a graphics card keeps itself.
 *
 * It is asked through NVIDIA's management library (NVML), which comes with the driver and is looked
 * up at run time: where the library, one of its functions, the card or its counter is missing,
 * nothing is counted, and that is no error. The counter is the whole card's, whoever uses it, in
 * millijoules since the driver was loaded; it moves a few times a second. Not thread-safe. */
#ifndef TEC_TOOLS_MEASURE_ENERGY_CARD_H
#define TEC_TOOLS_MEASURE_ENERGY_CARD_H

#include "kernels/device.h"
#include "tools/measure/energy.h"

struct tec_energy_card {
    void *library; /* NULL: nothing is open */
    void *device;  /* NVML's handle */
    int (*total)(void *device, unsigned long long *mj);
    int (*shutdown)(void);
};

/* Add the counter of the card at a PCI address ("0000:65:00.0") to `energy`. `library` is a file or
 * a name that the loader finds, NULL the driver's. False, and nothing is open, when there is none;
 * `card` stays where it is until it is closed, and `energy` is not read afterwards. */
bool tec_energy_card_open(struct tec_energy_card *card, struct tec_energy *energy,
                          const char *library, const char *address);
void tec_energy_card_close(struct tec_energy_card *card); /* one that did not open, too */

/* All that can be counted here for what runs on a device: the machine's counters and, where the
 * device is a card, the card's. */
void tec_energy_open_device(struct tec_energy *energy, struct tec_energy_card *card,
                            const struct tec_device *device);

#endif
