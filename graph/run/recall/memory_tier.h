/* memory_tier.h - kept pieces that stay on a device: `tiers.gpu` of a memory.
 *
 * It has places of a segment each: a piece of every layer, as long as the longest segment's. What
 * is sent to a layer goes straight to its segment's place and is placed from there; once that layer
 * has ended, the piece counts as there, and later prompts neither load nor send it. A place is of
 * one version of a segment's KV, by a number that no other KV has: what is replaced or removed is
 * never asked for again, and its place is the first to go to another, as the least recently used
 * one. Places of the prompt that runs stay.
 *
 * All memory is taken by create; nothing here waits or locks. One owner, the frame thread. */
#ifndef TEC_GRAPH_RUN_RECALL_MEMORY_TIER_H
#define TEC_GRAPH_RUN_RECALL_MEMORY_TIER_H

#include "base/arena.h"
#include "kernels/device.h"

struct tec_memory_tier {
    struct tec_device *device;
    int n, layers;         /* places; 0: nothing stays */
    size_t piece;          /* bytes of one */
    unsigned char *memory; /* device: [n, layers, piece] */
    unsigned char *there;  /* [n, layers] */
    struct tec_memory_tier_place *places;
    int *first, buckets; /* [buckets] places by key; -1: none */
    int oldest, newest;  /* in order of use */
    uint64_t prompt;     /* the one that runs */
};

/* Bytes of a place. */
size_t tec_memory_tier_bytes(int layers, size_t piece);

/* TEC_NO_MEMORY, or what the device says. Zeroed: nothing stays. finish: of one that was made in
 * part, too. */
enum tec_status tec_memory_tier_create(struct tec_memory_tier *tier, struct tec_device *device,
                                       int places, int layers, size_t piece,
                                       struct tec_arena *arena, struct tec_error *err);
void tec_memory_tier_finish(struct tec_memory_tier *tier);

/* KV by its store, one of several that share the places, and its number there. */
struct tec_memory_tier_key {
    int store;
    uint64_t serial;
};

/* Another prompt begins: places of the one before may go. */
void tec_memory_tier_begin(struct tec_memory_tier *tier);
/* The place of KV, which is used now; -1: it has none. take: it gets one, in which nothing is
 * there; -1: the prompt uses them all. */
int tec_memory_tier_find(struct tec_memory_tier *tier, struct tec_memory_tier_key key);
int tec_memory_tier_take(struct tec_memory_tier *tier, struct tec_memory_tier_key key);

/* The piece of a layer in a place: where, and whether it is there. */
void *tec_memory_tier_at(const struct tec_memory_tier *tier, int place, int layer);
bool tec_memory_tier_has(const struct tec_memory_tier *tier, int place, int layer);
/* A layer that placed it from there has ended. */
void tec_memory_tier_keep(struct tec_memory_tier *tier, int place, int layer);

#endif
