/* space.h - where keys and values live: token slots of one model on one device.
 *
 * For each layer one K and one V array [slot][kv_head][head_dim], allocated once; resources are
 * reservations of slots. Runs begin at multiples of 16 slots. */
#ifndef TEC_GRAPH_KV_SPACE_H
#define TEC_GRAPH_KV_SPACE_H

#include "base/arena.h"
#include "base/error.h"
#include "kernels/device.h"

struct tec_kv_shape {
    int layers, kv_heads, head_dim;
    bool bf16;
};

/* Slots are reserved first, then memory is taken for all of them. One owner. */
struct tec_kv_space {
    struct tec_kv_shape shape;
    int slots;     /* reserved so far */
    size_t bytes;  /* of one array */
    void **k, **v; /* [layers] */
    struct tec_device *device;
};

void tec_kv_space_init(struct tec_kv_space *space, const struct tec_kv_shape *shape);

/* Reserve a run of `tokens` slots; its first slot. */
int tec_kv_space_reserve(struct tec_kv_space *space, int tokens);

/* Bytes of the keys, or of the values, of one token at a layer. */
static inline size_t tec_kv_row_bytes(const struct tec_kv_shape *shape)
{
    return (size_t)shape->kv_heads * (size_t)shape->head_dim * (shape->bf16 ? 2 : 4);
}

/* Bytes of the keys and values of one token, all layers. */
int64_t tec_kv_token_bytes(const struct tec_kv_shape *shape);

/* Bytes that all arrays of the reserved slots take. */
int64_t tec_kv_space_bytes(const struct tec_kv_space *space);

/* Take the memory; pointers are in `arena`. */
enum tec_status tec_kv_space_create(struct tec_kv_space *space, struct tec_device *device,
                                    struct tec_arena *arena, struct tec_error *err);
void tec_kv_space_destroy(struct tec_kv_space *space);

/* A free list of equal regions of a space, with reference counts: how a fork moves no byte. */
struct tec_kv_pool {
    int n, tokens;   /* regions, slots of each */
    int *first;      /* [n] first slot */
    int *references; /* [n] 0 = free */
    int in_use;
};

/* Reserve n regions of `tokens` slots. */
enum tec_status tec_kv_pool_init(struct tec_kv_pool *pool, struct tec_kv_space *space, int n,
                                 int tokens, struct tec_arena *arena, struct tec_error *err);

/* A free region with one reference, or -1. */
int tec_kv_pool_take(struct tec_kv_pool *pool);

/* Fork: one more reference. */
void tec_kv_pool_pin(struct tec_kv_pool *pool, int region);

/* One reference less; the last one returns the region. -1 is allowed. */
void tec_kv_pool_drop(struct tec_kv_pool *pool, int region);

#endif
