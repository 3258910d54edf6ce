/* rowwise.h - what ops of one input row to one output row share. */
#ifndef TEC_OPS_ROWWISE_H
#define TEC_OPS_ROWWISE_H

#include "ops/call.h"

/* x, y [rows, cols]: elementwise maps (args.map), whose y may begin at out_row, and norms
 * (args.norm). With gate and up: x [rows, gate | up], y [rows, cols] (args.gated: gate_at, up_at).
 */
enum tec_status tec_rowwise_infer_map(const struct tec_program *program, struct tec_call *call,
                                      struct tec_error *err);
enum tec_status tec_rowwise_infer_norm(const struct tec_program *program, struct tec_call *call,
                                       struct tec_error *err);
enum tec_status tec_rowwise_infer_gated(const struct tec_program *program, struct tec_call *call,
                                        struct tec_error *err);

/* Append `kernel` with the tensors' addresses. */
void tec_rowwise_record_map(const struct tec_program *program, const struct tec_call *call,
                            struct tec_capture *capture, enum tec_kernel_id kernel);
void tec_rowwise_record_norm(const struct tec_program *program, const struct tec_call *call,
                             struct tec_capture *capture, enum tec_kernel_id kernel);
void tec_rowwise_record_gated(const struct tec_program *program, const struct tec_call *call,
                              struct tec_capture *capture, enum tec_kernel_id kernel);

/* The call rounds y to bf16. */
bool tec_rowwise_rounds_map(const struct tec_call *call);
bool tec_rowwise_rounds_norm(const struct tec_call *call);
bool tec_rowwise_rounds_gated(const struct tec_call *call);

/* A map of `flops` an element; x is read, y written. */
struct tec_cost tec_rowwise_cost_map(const struct tec_call *call, const struct tec_counts *counts,
                                     int flops);

/* `flops` an element of y; two halves are read. */
struct tec_cost tec_rowwise_cost_gated(const struct tec_call *call, const struct tec_counts *counts,
                                       int flops);

/* A norm of `flops` an element and `row` a row, and an element's factor: weight and offset 2, or
 * one of them 1 where the other is absent; bias 1. The vectors are read twice where rows may be
 * fixed. */
struct tec_cost tec_rowwise_cost_norm(const struct tec_call *call, const struct tec_counts *counts,
                                      int flops, int row);

#endif
