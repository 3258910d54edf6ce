/* adapter.h - low-rank changes (LoRA) to a checkpoint's tensors, as the library PEFT saves them. */
#ifndef TEC_BASE_STORE_ADAPTER_H
#define TEC_BASE_STORE_ADAPTER_H

#include "base/store/checkpoint.h"

/* Opaque. Immutable once open: any number of threads may apply it at once. */
struct tec_adapter;

/* Read adapter_config.json and adapter_model.safetensors of folder `dir` and find the tensors of
 * `base` that they change. The factors are held as float32, in a small multiple of the file's
 * bytes.
 *
 * A layer's two matrices, A [rank, in...] and B [out, rank], change its weight [out, in...] by
 * scale * B A, where scale is lora_alpha / rank, or lora_alpha / sqrt(rank) with use_rslora;
 * rank_pattern and alpha_pattern give both by the ends of modules' names. The product is transposed
 * for embeddings and where fan_in_fan_out says that weights are [in, out]. A bias of B changes the
 * layer's bias by scale times itself. Other tensors of the file (modules_to_save, biases) replace
 * those of the base.
 *
 * TEC_NOT_FOUND: a file is not there, or the base lacks a tensor that is changed; the message has
 * the nearest name. TEC_SHAPE: shapes that do not fit, all of them named. TEC_UNSUPPORTED: another
 * kind of adapter, DoRA, or factors that change the base when training begins (PiSSA, OLoRA, CorDA,
 * LoftQ). Else as tec_tensors_open. Close before `base`. */
enum tec_status tec_adapter_open(struct tec_adapter **out, const char *dir,
                                 const struct tec_checkpoint *base, struct tec_error *err);
void tec_adapter_close(struct tec_adapter *a); /* NULL is allowed */

/* Change the n elements from `first` on of a tensor of the base, which are in `values`: computed in
 * float32, the product first, then the sum. Nothing happens to tensors that the adapter leaves
 * alone. */
enum tec_status tec_adapter_apply(const struct tec_adapter *a, const struct tec_stored *stored,
                                  uint64_t first, float *values, size_t n, struct tec_error *err);

/* Whether the adapter changes the tensor of that name, which is as the base has it. */
bool tec_adapter_changes(const struct tec_adapter *a, const char *name);

/* A hash of all that it changes: factors, scales, and which file the tensors are of that replace
 * others (tec_tensors_identity). */
uint64_t tec_adapter_identity(const struct tec_adapter *a);

/* The same by what is in the tensors (tec_tensors_content): a copy is the same adapter. */
enum tec_status tec_adapter_content(const struct tec_adapter *a, uint64_t whole, uint64_t out[2],
                                    struct tec_error *err);

/* For reports: the folder, how many tensors it changes and replaces, and the largest rank. */
struct tec_adapter_facts {
    const char *path;
    size_t changed, replaced;
    int64_t rank;
    char hash[TEC_HASH_TEXT]; /* of its tensors' headers */
};
struct tec_adapter_facts tec_adapter_facts(const struct tec_adapter *a);

#endif
