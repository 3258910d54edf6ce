/* groups_own.h - the inside of struct tec_groups, for its two source files. */
#ifndef TEC_GRAPH_MEMORY_GROUPS_OWN_H
#define TEC_GRAPH_MEMORY_GROUPS_OWN_H

#include "graph/memory/groups.h"

struct tec_groups_segment {
    struct tec_text_hash text;
    double inverse; /* 1 / length of the embedding; 0 for a zero vector */
    uint32_t tokens;
    uint32_t group; /* index in groups, or TEC_NO_SEGMENT: a free handle */
    uint32_t next, prev;
};

struct tec_groups_group {
    uint64_t id, epoch;
    int64_t changed, tokens;
    uint32_t members, first, last;
    uint32_t next, prev; /* by id; in a free one `next` is the next free one */
    uint32_t chain;      /* the next one in its bucket */
    bool is_static;
};

struct tec_groups {
    struct tec_groups_options is;
    struct tec_heap *heap;
    struct tec_groups_segment *segments;
    struct tec_groups_group *groups;
    float *embeddings;            /* [max_segments, dim] */
    int64_t *sums;                /* [max_segments, dim], by group */
    uint64_t *promoted;           /* [max_segments] */
    struct tec_candidate *ranked; /* [max_segments] */
    uint32_t *buckets;            /* [max_segments] groups by id */
    uint32_t first, last, free;
    int64_t step;
    uint64_t next_group, next_epoch;
    struct tec_groups_totals totals;
};

/* Vectors of a segment and of a group, [dim]. */
static inline float *tec_groups_vector(const struct tec_groups *g, uint32_t segment)
{
    return g->embeddings + (size_t)segment * (size_t)g->is.dim;
}

static inline int64_t *tec_groups_sum(const struct tec_groups *g, uint32_t group)
{
    return g->sums + (size_t)group * (size_t)g->is.dim;
}

/* 1 / length of a vector, 0 for a zero one; a number that is not finite is TEC_INVALID. */
double tec_groups_inverse(const float *v, int dim);
enum tec_status tec_groups_check(const struct tec_groups *g, const float *v, struct tec_error *err);

/* The group with this id, or TEC_NO_SEGMENT. */
uint32_t tec_groups_find(const struct tec_groups *g, uint64_t id);

/* Cosine of a vector, given with 1 / its length, and a sum of unit vectors. */
double tec_groups_cosine(const float *v, double inverse, const int64_t *sum, int dim);

#endif
