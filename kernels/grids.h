/* grids.h - which kernels the CUDA device would start for recorded commands, and with which grids:
 * told without a device, by the same rules (the plain C headers of kernels/cuda/).
 *
 * A test holds what is said here to what the launchers start (tests/kernels/cuda_tier.c). Nothing
 * is started or allocated. */
#ifndef TEC_KERNELS_GRIDS_H
#define TEC_KERNELS_GRIDS_H

#include "kernels/cuda/attention_plan.h"
#include "kernels/cuda/chain_rules.h"
#include "kernels/device.h"

/* One start of a kernel. */
struct tec_grid {
    enum tec_kernel_id kernel; /* its command; of a chain the product */
    const void *args;          /* of that command */
    const char *name;          /* of the kernel: its function, without what is in < > */
    const char *what;          /* the tile, or the part of the work; NULL: there is one kernel */
    unsigned blocks[3];        /* along x, y and z */
    unsigned cluster;          /* blocks along z that run at the same time; 0, 1: each by itself */
    int threads;               /* of a block */
    size_t shared;             /* bytes of a block that the launcher asks for */
    size_t fixed_shared;       /* bytes that the kernel has besides */
    int registers; /* of a thread, as tests/cuda_registers.expected has them, or a guess */
    int resident;  /* blocks of a multiprocessor at most; 0: as many as fit */
    /* Of products: */
    struct gemm_choice choice;
    int terms;               /* of x in the multiplies */
    int first, rows;         /* of the capacity, those that this start takes */
    bool norm;               /* x is made by a norm in front */
    bool left;               /* which adds up sums of squares that another product left */
    bool leaves;             /* it leaves those of its y */
    enum tec_cuda_then then; /* what is done behind it */
    bool writes_terms;       /* it writes the terms, or digits, of x, nothing else */
    /* Of commands of a list: */
    int made_terms;  /* that each number it makes is left as, for the next product; 0: float32 */
    int made_digits; /* of 8 bits, likewise */
    /* Of attention: */
    struct attention_choice attention; /* m = 0: the kernel for wide heads */
    struct mass_choice mass;           /* m = 0: the kernel that multiplies and adds */
};

static inline bool tec_grid_attends(const struct tec_grid *grid)
{
    return grid->kernel == TEC_KERNEL_attention_f32 || grid->kernel == TEC_KERNEL_attention_bf16;
}

/* Sums of attention's weights. */
static inline bool tec_grid_sums(const struct tec_grid *grid)
{
    return grid->kernel == TEC_KERNEL_attention_mass_f32 ||
           grid->kernel == TEC_KERNEL_attention_mass_bf16;
}

typedef void tec_grid_fn(void *user, const struct tec_grid *grid);

/* What a command starts by itself, in order. */
void tec_grids_of(enum tec_kernel_id kernel, const void *args, const struct tec_cuda_facts *facts,
                  tec_grid_fn *visit, void *user);

/* What a product with its neighbours starts; false: it is not done together. */
bool tec_grids_of_chain(const struct tec_cuda_chain *chain, const struct tec_cuda_facts *facts,
                        tec_grid_fn *visit, void *user);

/* What the command at `at` of a capture starts, with those behind it that go along. Returns the
 * number of commands, at least 1; one that is no kernel starts nothing here. */
int tec_grids_at(const struct tec_capture *capture, int at, const struct tec_cuda_facts *facts,
                 tec_grid_fn *visit, void *user);

#endif
