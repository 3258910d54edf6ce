/* grids_own.h - what the files of grids.h share: an answer to whoever asks, and products. */
#ifndef TEC_KERNELS_GRIDS_OWN_H
#define TEC_KERNELS_GRIDS_OWN_H

#include "kernels/cuda/chain_ask.h"
#include "kernels/grids.h"

/* What most kernels of rows take (tests/cuda_registers.expected: 16 to 48). */
enum { SOME_REGISTERS = 40 };

/* Who asks: of what device, and who is told. */
struct tec_grids_to {
    const struct tec_cuda_facts *facts;
    tec_grid_fn *visit;
    void *user;
};

/* An empty grid is nothing to do. */
static inline void tec_grids_report(const struct tec_grids_to *to, const struct tec_grid *grid)
{
    if (grid->blocks[0] && grid->blocks[1] && grid->blocks[2])
        to->visit(to->user, grid);
}

static inline void tec_grids_blocks(struct tec_grid *g, int x, int y, int z, int threads)
{
    g->blocks[0] = x > 0 ? (unsigned)x : 0;
    g->blocks[1] = y > 0 ? (unsigned)y : 0;
    g->blocks[2] = z > 0 ? (unsigned)z : 0;
    g->threads = threads;
    g->registers = SOME_REGISTERS;
}

/* Starts for a product with what is around it, of bf16 weights or of 8-bit ones. False: no kernel
 * does all of it. */
bool tec_grids_bf16(const struct tec_grids_to *to, const struct gemm_ask *ask,
                    const struct tec_cuda_chain *chain);
bool tec_grids_int8(const struct tec_grids_to *to, const struct gemm_ask *ask,
                    const struct tec_cuda_chain *chain);

/* Starts for the product *g. */
void tec_grids_gemm_bf16(const struct tec_grids_to *to, struct tec_grid *g);
void tec_grids_gemm_int4(const struct tec_grids_to *to, struct tec_grid *g);
void tec_grids_gemm_int8(const struct tec_grids_to *to, struct tec_grid *g);
void tec_grids_gemm_f32(const struct tec_grids_to *to, struct tec_grid *g);

#endif
