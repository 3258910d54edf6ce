/* stand_in.c - a library in the place of NVML: its functions that tools/measure looks up, of one
 * card that uses 1.5 J between any two looks. A test that opens it by the same name may change
 * `state`. With WITHOUT_COUNTER it is one of a driver that is too old to count; each
 * other function can be missing, too. */
#include "tests/nvml/stand_in.h"

#include <string.h>

struct nvml_stand_in nvml_stand_in = {.mj = 1000, .more = 1500};

enum { SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_FOUND = 6 };

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetHandleByPciBusId_v2(const char *address, void **device);
int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *mj);

#ifndef WITHOUT_INIT
int nvmlInit_v2(void)
{
    if (!nvml_stand_in.init_answer)
        nvml_stand_in.begun++;
    return nvml_stand_in.init_answer;
}
#endif

#ifndef WITHOUT_SHUTDOWN
int nvmlShutdown(void)
{
    if (nvml_stand_in.begun == 0)
        return UNINITIALIZED;
    nvml_stand_in.begun--;
    return SUCCESS;
}
#endif

#ifndef WITHOUT_ADDRESS
int nvmlDeviceGetHandleByPciBusId_v2(const char *address, void **device)
{
    if (nvml_stand_in.begun == 0)
        return UNINITIALIZED;
    if (strcmp(address, "0000:00:00.0") != 0)
        return NOT_FOUND;
    *device = &nvml_stand_in;
    return SUCCESS;
}
#endif

#ifndef WITHOUT_COUNTER
int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *mj)
{
    struct nvml_stand_in *card = device;
    if (card != &nvml_stand_in || card->begun == 0)
        return card ? UNINITIALIZED : INVALID_ARGUMENT;
    if (card->answer)
        return card->answer;
    *mj = card->mj;
    card->mj += card->more;
    return SUCCESS;
}
#endif
