/* energy_card.c - joules of a graphics card, by NVML's functions of these names. */
#include "tools/measure/energy_card.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static const char driver_library[] = "libnvidia-ml.so.1";

/* What NVML answers when all is well. */
enum { SUCCESS = 0 };

/* Find a function; C has no cast from dlsym's pointer to one of a function. */
static bool find(void *library, const char *name, void *function)
{
    void *at = dlsym(library, name);
    memcpy(function, &at, sizeof at);
    return at != NULL;
}

static bool read_card(void *self, int64_t *uj)
{
    const struct tec_energy_card *card = self;
    unsigned long long mj = 0;
    if (card->total(card->device, &mj) != SUCCESS || mj > INT64_MAX / 1000)
        return false;
    *uj = (int64_t)mj * 1000;
    return true;
}

static bool add_card(struct tec_energy_card *card, struct tec_energy *energy, const char *address)
{
    int (*by_address)(const char *address, void **device);
    struct tec_energy_counter counter = {.read = read_card, .self = card};
    if (!find(card->library, "nvmlDeviceGetHandleByPciBusId_v2", &by_address) ||
        !find(card->library, "nvmlDeviceGetTotalEnergyConsumption", &card->total) ||
        by_address(address, &card->device) != SUCCESS)
        return false;
    snprintf(counter.name, sizeof counter.name, "card %.24s", address);
    return tec_energy_add(energy, &counter);
}

bool tec_energy_card_open(struct tec_energy_card *card, struct tec_energy *energy,
                          const char *library, const char *address)
{
    int (*init)(void);
    *card = (struct tec_energy_card){
        .library = dlopen(library ? library : driver_library, RTLD_NOW | RTLD_LOCAL)};
    if (!card->library)
        return false;
    if (!find(card->library, "nvmlInit_v2", &init) ||
        !find(card->library, "nvmlShutdown", &card->shutdown) || init() != SUCCESS)
        card->shutdown = NULL; /* not begun, so there is nothing to end */
    else if (add_card(card, energy, address))
        return true;
    tec_energy_card_close(card);
    return false;
}

void tec_energy_card_close(struct tec_energy_card *card)
{
    if (card->shutdown)
        card->shutdown();
    if (card->library)
        dlclose(card->library);
    *card = (struct tec_energy_card){.library = NULL};
}

void tec_energy_open_device(struct tec_energy *energy, struct tec_energy_card *card,
                            const struct tec_device *device)
{
    char address[32];
    *card = (struct tec_energy_card){.library = NULL};
    tec_energy_open(energy, NULL);
    if (tec_device_address(device, address))
        tec_energy_card_open(card, energy, NULL, address);
}
