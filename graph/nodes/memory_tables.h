/* memory_tables.h - frame tables of a prompt of remembered segments: which rows each layer
 * computes, and what comes from where. */
#ifndef TEC_GRAPH_NODES_MEMORY_TABLES_H
#define TEC_GRAPH_NODES_MEMORY_TABLES_H

#include "graph/nodes/tables.h"

/* A prefill whose rows become fewer from layer to layer. Layer l works on rows[l % 2]; behind its
 * keys it goes on with rows[(l + 1) % 2], which stand at `take` among them. The table is filled
 * anew between the pieces of its capture. */
struct tec_recall_table {
    struct tec_rows rows[2]; /* one sequence; sequences and spans are those of rows[0] */
    int *take;               /* [rows.max] */
    int *ids;                /* [rows.max] of the first layer's rows */
    struct tec_place *places;
    int *n_places, max_places; /* stored KV that the layer has brought to its slots */
    int *n_summed;             /* rows whose attention is summed up: the first ones */
    int *ends, *n_ranges, max_ranges;
    float *mass; /* [rows.max, ld_mass] device memory of its own: those sums */
    int ld_mass;
};

/* Segments computed by themselves, a sequence each: to slots, and as they are kept. */
struct tec_remember_table {
    struct tec_rows rows; /* slots are those of the working place */
    int *ids, *kept;      /* [rows.max]; slots where K before rotation and V go */
};

struct tec_recall_limits {
    int max_rows,
        max_segments; /* tokens of a prompt; segments of it, its fixed beginning among them */
};

struct tec_remember_limits {
    int rows, segments;
};

extern const struct tec_table_kind tec_recall_tables, tec_remember_tables;
void tec_table_recall_finish(struct tec_recall_table *host, struct tec_device *device);

#endif
