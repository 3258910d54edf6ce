/* space.c - lays out the KV arrays of a model and counts the references of its prefix regions.
 *
 * Slots are reserved and the arrays allocated at load; afterwards nothing moves, because captures
 * hold the addresses. During a run the frame thread takes, pins and drops regions: a fork of a
 * prefix is one more reference, not a copy. A pool has few regions, so taking one is a linear
 * search. */
#include "graph/kv/space.h"

enum { RUN = 16 };

void tec_kv_space_init(struct tec_kv_space *space, const struct tec_kv_shape *shape)
{
    *space = (struct tec_kv_space){.shape = *shape};
}

int tec_kv_space_reserve(struct tec_kv_space *space, int tokens)
{
    int first = space->slots;
    space->slots += (tokens + RUN - 1) / RUN * RUN;
    return first;
}

int64_t tec_kv_token_bytes(const struct tec_kv_shape *s)
{
    return (int64_t)s->layers * 2 * (int64_t)tec_kv_row_bytes(s);
}

static size_t array_bytes(const struct tec_kv_space *space)
{
    return (size_t)space->slots * tec_kv_row_bytes(&space->shape);
}

int64_t tec_kv_space_bytes(const struct tec_kv_space *space)
{
    return (int64_t)array_bytes(space) * 2 * space->shape.layers;
}

enum tec_status tec_kv_space_create(struct tec_kv_space *space, struct tec_device *device,
                                    struct tec_arena *arena, struct tec_error *err)
{
    size_t layers = (size_t)space->shape.layers;
    space->device = device;
    space->bytes = array_bytes(space);
    space->k = TEC_NEW(arena, layers, void *);
    space->v = TEC_NEW(arena, layers, void *);
    bool ok = space->k && space->v;
    for (size_t l = 0; ok && l < layers; l++) {
        space->k[l] = tec_device_get(device, space->bytes);
        space->v[l] = tec_device_get(device, space->bytes);
        ok = space->k[l] && space->v[l];
    }
    if (!ok)
        return tec_fail(err, TEC_NO_MEMORY, "keys and values of %d slots need %lld bytes",
                        space->slots, (long long)tec_kv_space_bytes(space));
    return TEC_OK;
}

void tec_kv_space_destroy(struct tec_kv_space *space)
{
    for (int l = 0; space->k && space->v && l < space->shape.layers; l++) {
        tec_device_put(space->device, space->k[l]);
        tec_device_put(space->device, space->v[l]);
    }
    space->k = space->v = NULL;
}

enum tec_status tec_kv_pool_init(struct tec_kv_pool *pool, struct tec_kv_space *space, int n,
                                 int tokens, struct tec_arena *arena, struct tec_error *err)
{
    *pool = (struct tec_kv_pool){.n = n, .tokens = tokens};
    pool->first = TEC_NEW(arena, (size_t)n, int);
    pool->references = TEC_NEW(arena, (size_t)n, int);
    if (!pool->first || !pool->references)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for %d regions", n);
    for (int i = 0; i < n; i++)
        pool->first[i] = tec_kv_space_reserve(space, tokens);
    return TEC_OK;
}

int tec_kv_pool_take(struct tec_kv_pool *pool)
{
    for (int i = 0; i < pool->n; i++)
        if (pool->references[i] == 0) {
            pool->references[i] = 1;
            pool->in_use++;
            return i;
        }
    return -1;
}

void tec_kv_pool_pin(struct tec_kv_pool *pool, int region)
{
    pool->references[region]++;
}

void tec_kv_pool_drop(struct tec_kv_pool *pool, int region)
{
    if (region < 0 || pool->references[region] == 0)
        return;
    if (--pool->references[region] == 0)
        pool->in_use--;
}
