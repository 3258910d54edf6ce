/* costs.c - fuzz target: any bytes as a .costs file; what is accepted must answer. */
#include "graph/run/loop/costs.h"

#include <math.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
    if (!good)
        abort();
}

static void ask(const struct tec_costs *costs)
{
    static const double q[] = {0.1, 0.5, 0.9, 0.99, 0.999, 1.0};
    for (int kind = 0; kind < TEC_COST_KINDS; kind++)
        for (int rows = 0; rows < 12; rows += 3)
            for (size_t i = 0; i < sizeof q / sizeof q[0]; i++) {
                double us = tec_costs_us(costs, (enum tec_cost_kind)kind, rows, q[i]);
                check(isfinite(us) && us >= 0.0);
            }
}

/* A table that was read: rows in order, and a model that starts from it. */
static void use(const struct tec_cost_table *table, struct tec_arena *arena)
{
    static struct tec_costs costs;
    const struct tec_plan_spec spec = {.n_batches = 3, .batches = {1, 3, 8}};
    struct tec_topology topology = {.n_nodes = 3,
                                    .nodes = {{.name = "see", .kind = "prefill"},
                                              {.name = "act", .kind = "action"},
                                              {.name = "talk", .kind = "decode"}}};
    for (int i = 0; i < table->n_rows; i++) {
        const struct tec_cost_row *row = &table->rows[i];
        check(tec_costs_table_row(table, row->node, row->point) == row);
        check(isfinite(tec_costs_row_us(row, 0.99)));
    }
    topology.nodes[0].name = table->rows[0].node;
    struct tec_error err;
    if (tec_costs_init(&costs, &spec, arena, &err) != TEC_OK)
        return;
    tec_costs_prior(&costs, table, &topology, 0);
    ask(&costs);
    for (int i = 0; i < 300; i++) {
        tec_costs_add(&costs, (enum tec_cost_kind)(i % 3), i % 9, (int64_t)i * i * i * 1000);
        tec_costs_end_frame(&costs, 0.0, false);
    }
    ask(&costs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tec_heap heap = {.limit = (size_t)1 << 28};
    struct tec_arena arena;
    struct tec_cost_table table;
    struct tec_error err;
    tec_arena_init(&arena, &heap);
    json_t *json = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, NULL);
    if (json && tec_costs_table_take(&table, json, "f.costs", &arena, &err) == TEC_OK)
        use(&table, &arena);
    json_decref(json);
    tec_arena_finish(&arena);
    check(heap.live == 0);
    check(heap.peak <= (int64_t)(64 * size + (2 << 20)));
    return 0;
}
