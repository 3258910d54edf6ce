/* memory_tables.c - allocates the frame tables of recalled prompts and of segments that are
 * computed to be kept.
 *
 * Runs at load. As in tables.c, one function lists the arrays of a table and is run three times: to
 * measure, then over the host block and over the device block, so both have the same layout. Two
 * row tables alternate from layer to layer, because each layer computes a subset of the rows of the
 * one before. */
#include "graph/nodes/memory_tables.h"

#include "graph/memory/importance.h"
#include "graph/nodes/dealer.h"

static void deal_recall(struct tec_dealer *d, struct tec_recall_table *t,
                        const struct tec_recall_limits *limits)
{
    int rows = limits->max_rows;
    tec_deal_rows(d, &t->rows[0], rows, 1, 1);
    tec_deal_rows(d, &t->rows[1], rows, 1, 1);
    t->rows[1].seqs = t->rows[0].seqs;
    t->rows[1].spans = t->rows[0].spans;
    t->take = tec_deal_ints(d, rows);
    t->ids = tec_deal_ints(d, rows);
    t->max_places = limits->max_segments;
    t->places = tec_deal(d, (size_t)limits->max_segments, sizeof *t->places);
    t->n_places = tec_deal_ints(d, 1);
    t->n_summed = tec_deal_ints(d, 1);
    t->max_ranges = TEC_SEGMENT_RANGES * limits->max_segments;
    t->ends = tec_deal_ints(d, t->max_ranges);
    t->n_ranges = tec_deal_ints(d, 1);
    t->ld_mass = (t->max_ranges + 15) / 16 * 16;
}

enum tec_status tec_table_recall_init(struct tec_table_block *block, struct tec_recall_table *host,
                                      struct tec_recall_table *device_side,
                                      const struct tec_recall_limits *limits,
                                      struct tec_device *device, struct tec_arena *arena,
                                      struct tec_error *err)
{
    struct tec_dealer measure = {NULL, 0};
    deal_recall(&measure, host, limits);
    block->size = measure.used;
    TEC_TRY(tec_block_take(block, device, arena, err));
    deal_recall(&(struct tec_dealer){block->host, 0}, host, limits);
    deal_recall(&(struct tec_dealer){block->device, 0}, device_side, limits);
    host->rows[0].seqs[0] = (struct tec_seq){0, 1};
    size_t mass = (size_t)limits->max_rows * (size_t)host->ld_mass * sizeof(float);
    host->mass = device_side->mass = tec_device_get(device, mass);
    if (!host->mass)
        return tec_fail(err, TEC_NO_MEMORY, "sums of attention need %zu bytes", mass);
    return TEC_OK;
}

void tec_table_recall_finish(struct tec_recall_table *host, struct tec_device *device)
{
    tec_device_put(device, host->mass);
    host->mass = NULL;
}

static void deal_remember(struct tec_dealer *d, struct tec_remember_table *t, int max_rows,
                          int max_segments)
{
    tec_deal_rows(d, &t->rows, max_rows, max_segments, max_segments);
    t->ids = tec_deal_ints(d, max_rows);
    t->kept = tec_deal_ints(d, max_rows);
}

enum tec_status tec_table_remember_init(struct tec_table_block *block,
                                        struct tec_remember_table *host,
                                        struct tec_remember_table *device_side, int max_rows,
                                        int max_segments, struct tec_device *device,
                                        struct tec_arena *arena, struct tec_error *err)
{
    struct tec_dealer measure = {NULL, 0};
    deal_remember(&measure, host, max_rows, max_segments);
    block->size = measure.used;
    TEC_TRY(tec_block_take(block, device, arena, err));
    deal_remember(&(struct tec_dealer){block->host, 0}, host, max_rows, max_segments);
    deal_remember(&(struct tec_dealer){block->device, 0}, device_side, max_rows, max_segments);
    for (int i = 0; i < max_segments; i++)
        host->rows.seqs[i] = (struct tec_seq){i, 1};
    for (int r = 0; r < max_rows; r++)
        host->kept[r] = r;
    return TEC_OK;
}
