/* op.h - what an op is: which shapes it takes and which kernel it records. */
#ifndef TEC_OPS_OP_H
#define TEC_OPS_OP_H

#include "base/error.h"
#include "kernels/device.h"
#include "ops/cost.h"

#include <stdbool.h>

enum tec_op_id {
#define OP(name, inputs, outputs, text) TEC_OP_##name,
#include "ops/ops.def"
#undef OP
    TEC_OP_COUNT
};

enum { TEC_OP_INPUTS = 3, TEC_OP_OUTPUTS = 3 };

struct tec_program;

/* Every kernel argument; an op uses its own. Constant data (weights, tables, counts) is set by who
 * makes the call; tensors are set by record. */
union tec_args {
    struct tec_gemm_args gemm;
    struct tec_embed_args embed;
    struct tec_norm_args norm;
    struct tec_head_norm_args head_norm;
    struct tec_rope_args rope;
    struct tec_attention_args attention;
    struct tec_mass_args mass;
    struct tec_map_args map;
    struct tec_soft_cap_args soft_cap;
    struct tec_add_args add;
    struct tec_gated_args gated;
    struct tec_take_args take;
    struct tec_mean_args mean;
    struct tec_patchify_args patchify;
    struct tec_window_args window;
    struct tec_conv_args conv;
    struct tec_add_table_args add_table;
    struct tec_read_kv_args read_kv;
    struct tec_move_args move;
    struct tec_place_args place;
    struct tec_guide_args guide;
    struct tec_euler_args euler;
    struct tec_repetition_penalty_args repetition_penalty;
    struct tec_sample_args sample;
    struct tec_next_token_args next_token;
    struct tec_logits_mask_args logits_mask;
    struct tec_log_prob_args log_prob;
};

/* One use of an op in a program. */
struct tec_call {
    enum tec_op_id op;
    int in[TEC_OP_INPUTS], out[TEC_OP_OUTPUTS]; /* tensor ids, -1 = absent */
    union tec_args args;
    int in_row, out_row;        /* linear: first row read of x, written of y */
    struct tec_windows windows; /* linear: of x, where side is not 0; args.h */
    bool bf16;                  /* which of the two kernels, where there are two */
    bool int8;                  /* linear: W is of 8-bit weights */
    bool barrier;               /* set by the fuse pass */
    bool passes;                /* set by the chain pass: the next step alone reads its output */
    const char *label;
};

struct tec_op {
    /* Check that tensors and arguments fit together; fill args that follow from shapes. */
    enum tec_status (*infer)(const struct tec_program *program, struct tec_call *call,
                             struct tec_error *err);
    /* Set the tensors' addresses in the arguments and append the kernel. */
    void (*record)(const struct tec_program *program, const struct tec_call *call,
                   struct tec_capture *capture);
    /* Work and bytes of a call for the counts of a launch; after infer. Pure. */
    struct tec_cost (*cost)(const struct tec_call *call, const struct tec_counts *counts);
    /* The call rounds what it writes to bf16. NULL: it never does. Pure. */
    bool (*rounds)(const struct tec_call *call);
    /* Each lane reads and writes only its own rows, the same rows for the same count. */
    bool rowwise;
};

struct tec_op_entry {
    const char *name, *inputs, *outputs, *text;
    const struct tec_op *op;
};
extern const struct tec_op_entry tec_ops[TEC_OP_COUNT];

#define OP(name, inputs, outputs, text) extern const struct tec_op tec_op_##name;
#include "ops/ops.def"
#undef OP

#endif
