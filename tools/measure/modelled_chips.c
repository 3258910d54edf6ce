/* modelled_chips.c - what the model of kernels knows of a machine's chip (peaks.def). */
#include "tools/measure/modelled.h"

#include <string.h>

static const struct tec_chip chips[] = {
#define CHIP(name, ...) {#name, __VA_ARGS__},
#include "tools/measure/peaks.def"
};

const struct tec_chip *tec_chip_of(const struct tec_peak *peak)
{
    if (peak->chip)
        return peak->chip;
    for (size_t i = 0; i < sizeof chips / sizeof chips[0]; i++)
        if (strcmp(chips[i].name, peak->name) == 0)
            return &chips[i];
    return NULL;
}

struct tec_cuda_facts tec_chip_facts(const struct tec_chip *chip)
{
    bool groups = chip->capability == 90; /* a build with code for sm_90a */
    return (struct tec_cuda_facts){chip->capability,
                                   chip->processors,
                                   groups,
                                   TEC_CUDA_PARTIALS,
                                   TEC_CUDA_TERMS,
                                   TEC_CUDA_SQUARES,
                                   groups ? TEC_CUDA_CLUSTERS : 0};
}
