/* bench_layers.h - the layers of real models that are timed and modelled, and the arguments that
 * one of them may have. */
#ifndef TEC_TESTS_KERNELS_BENCH_LAYERS_H
#define TEC_TESTS_KERNELS_BENCH_LAYERS_H

#include "kernels/kernels.h"

/* Its columns are those of bench_layers.def. */
struct layer {
    enum tec_kernel_id kernel;
    const char *name, *what;
    int calls, rows, k, n, heads, kv;
};

static const struct layer layers[] = {
#define LAYER(kernel, what, calls, rows, k, n, heads, kv) \
    {TEC_KERNEL_##kernel, #kernel, what, calls, rows, k, n, heads, kv},
#include "tests/kernels/bench_layers.def"
#undef LAYER
};
enum { LAYERS = sizeof layers / sizeof layers[0] };

union layer_args {
    struct tec_gemm_args gemm;
    struct tec_attention_args attention;
    struct tec_rope_args rope;
    struct tec_norm_args norm;
    struct tec_map_args map;
    struct tec_gated_args gated;
    struct tec_euler_args euler;
    struct tec_embed_args embed;
};

#endif
