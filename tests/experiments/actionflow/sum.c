/* sum.c - what the frames of a cell come to. */
#include "tests/experiments/actionflow/actionflow.h"

#include <math.h>

void tec_actionflow_sum(struct tec_actionflow *s)
{
    for (int i = 0; i < s->n_cells; i++)
        for (int v = 0; v < TEC_ACTIONFLOW_VARIANTS; v++) {
            struct tec_actionflow_row *r = &s->cells[i].rows[v];
            struct tec_samples *const all[] = {&r->frame, &r->age, &r->cpu, &r->prefill,
                                               &r->decode};
            for (size_t k = 0; k < sizeof all / sizeof all[0]; k++)
                tec_samples_sort(all[k]);
        }
}

static double ms_at(const struct tec_samples *s, double q)
{
    return s->n ? (double)tec_samples_at(s, q) / 1e6 : (double)NAN;
}

double tec_actionflow_frame_ms(const struct tec_actionflow_row *row, double q)
{
    return ms_at(&row->frame, q);
}

double tec_actionflow_cpu_ms(const struct tec_actionflow_row *row, double q)
{
    return ms_at(&row->cpu, q);
}

double tec_actionflow_age_ms(const struct tec_actionflow_row *row, double q)
{
    return ms_at(&row->age, q);
}

double tec_actionflow_actions_s(const struct tec_actionflow_row *row)
{
    double ns = 0.0;
    for (int i = 0; i < row->frame.n; i++)
        ns += (double)row->frame.ns[i];
    return ns > 0.0 ? (double)row->actions * 1e9 / ns : (double)NAN;
}

double tec_actionflow_copied(const struct tec_actionflow_row *row)
{
    return row->frames ? (double)row->copied / (double)row->frames : (double)NAN;
}

double tec_actionflow_launches(const struct tec_actionflow_row *row)
{
    return row->frames ? (double)row->launches / (double)row->frames : (double)NAN;
}

double tec_actionflow_prefill_ms(const struct tec_actionflow_cell *cell)
{
    return ms_at(&cell->rows[TEC_ACTIONFLOW_SEQUENTIAL].prefill, 0.5);
}

double tec_actionflow_decode_ms(const struct tec_actionflow_cell *cell)
{
    return ms_at(&cell->rows[TEC_ACTIONFLOW_SEQUENTIAL].decode, 0.5);
}

double tec_actionflow_ratio(const struct tec_actionflow_cell *cell, enum tec_actionflow_variant a,
                            enum tec_actionflow_variant b)
{
    return tec_actionflow_frame_ms(&cell->rows[a], 0.5) /
           tec_actionflow_frame_ms(&cell->rows[b], 0.5);
}

double tec_actionflow_bound(const struct tec_actionflow_cell *cell)
{
    double p = tec_actionflow_prefill_ms(cell), d = tec_actionflow_decode_ms(cell);
    return cell->stages > 1 ? (p + (cell->stages - 1) * d) / p : isnan(p) ? p : 1.0;
}

int64_t tec_actionflow_moved(const struct tec_actionflow_cell *cell,
                             enum tec_actionflow_variant variant)
{
    if (variant == TEC_ACTIONFLOW_COPY)
        return tec_stages_shifted(cell->stages, cell->prefix) * cell->token_bytes;
    if (variant == TEC_ACTIONFLOW_GATHER || variant == TEC_ACTIONFLOW_NAIVE)
        return tec_stages_visible(cell->stages, cell->prefix) * cell->token_bytes;
    return 0;
}
