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

static void deal_recall(struct tec_dealer *d, void *table, const void *of)
{
    struct tec_recall_table *t = table;
    const struct tec_recall_limits *limits = of;
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

static void fill_recall(void *table, const void *limits)
{
    struct tec_recall_table *t = table;
    (void)limits;
    t->rows[0].seqs[0] = (struct tec_seq){0, 1};
}

/* Sums of attention, which a launch writes. */
static enum tec_status take_mass(struct tec_table_block *block, void *host_side, void *device_side,
                                 const void *of, struct tec_device *device, struct tec_error *err)
{
    struct tec_recall_table *host = host_side, *twin = device_side;
    const struct tec_recall_limits *limits = of;
    size_t mass = (size_t)limits->max_rows * (size_t)host->ld_mass * sizeof(float);
    (void)block;
    host->mass = twin->mass = tec_device_get(device, mass);
    return host->mass ? TEC_OK
                      : tec_fail(err, TEC_NO_MEMORY, "sums of attention need %zu bytes", mass);
}

const struct tec_table_kind tec_recall_tables = {deal_recall, fill_recall, take_mass};

void tec_table_recall_finish(struct tec_recall_table *host, struct tec_device *device)
{
    tec_device_put(device, host->mass);
    host->mass = NULL;
}

static void deal_remember(struct tec_dealer *d, void *table, const void *of)
{
    struct tec_remember_table *t = table;
    const struct tec_remember_limits *limits = of;
    tec_deal_rows(d, &t->rows, limits->rows, limits->segments, limits->segments);
    t->ids = tec_deal_ints(d, limits->rows);
    t->kept = tec_deal_ints(d, limits->rows);
}

static void fill_remember(void *table, const void *of)
{
    struct tec_remember_table *t = table;
    const struct tec_remember_limits *limits = of;
    for (int i = 0; i < limits->segments; i++)
        t->rows.seqs[i] = (struct tec_seq){i, 1};
    for (int r = 0; r < limits->rows; r++)
        t->kept[r] = r;
}

const struct tec_table_kind tec_remember_tables = {deal_remember, fill_remember, NULL};
