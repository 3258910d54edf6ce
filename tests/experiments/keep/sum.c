/* sum.c - what the steps of a cell come to. */
#include "tests/experiments/keep/keeping.h"

#include <math.h>
#include <string.h>

void tec_keeping_samples(struct tec_keeping_row *r, struct tec_samples *all[TEC_KEEPING_SAMPLES])
{
    struct tec_samples *const each[TEC_KEEPING_SAMPLES] = {&r->ttft,   &r->refresh, &r->prefill,
                                                           &r->waited, &r->choose,  &r->score,
                                                           &r->cpu,    &r->served,  &r->charged};
    memcpy(all, each, sizeof each);
}

double tec_keeping_mean(const struct tec_samples *s)
{
    double sum = 0.0;
    for (int i = 0; i < s->n; i++)
        sum += (double)s->ns[i] / 1e6;
    return s->n ? sum / s->n : (double)NAN;
}

void tec_keeping_sum(struct tec_keeping *s)
{
    for (int i = 0; i < s->n_cells; i++) {
        struct tec_keeping_cell *c = &s->cells[i];
        tec_samples_sort(&c->retrieve);
        for (int k = 0; k < c->n_rows; k++) {
            struct tec_samples *all[TEC_KEEPING_SAMPLES];
            tec_keeping_samples(&c->rows[k], all);
            for (int a = 0; a < TEC_KEEPING_SAMPLES; a++)
                tec_samples_sort(all[a]);
        }
    }
}

double tec_keeping_ms(const struct tec_samples *s, double q)
{
    return s->n ? (double)tec_samples_at(s, q) / 1e6 : (double)NAN;
}

double tec_keeping_share(const struct tec_keeping_row *r)
{
    return r->all_rows ? (double)r->rows / (double)r->all_rows : (double)NAN;
}

static double prefill(const struct tec_keeping_row *r, bool cpu)
{
    return tec_keeping_ms(cpu ? &r->cpu : &r->prefill, 0.5);
}

double tec_keeping_speedup(const struct tec_keeping_cell *c, const struct tec_keeping_row *r,
                           bool cpu)
{
    return prefill(&c->rows[0], cpu) / prefill(r, cpu);
}

double tec_keeping_of_bound(const struct tec_keeping_cell *c, const struct tec_keeping_row *r,
                            bool cpu)
{
    return tec_keeping_speedup(c, r, cpu) * tec_keeping_share(r);
}

double tec_keeping_over_bare(const struct tec_keeping_cell *c, const struct tec_keeping_row *r,
                             bool cpu)
{
    const struct tec_keeping_row *next = r + 1;
    if (next >= c->rows + c->n_rows || !next->method.bare)
        return (double)NAN;
    return prefill(r, cpu) / prefill(next, cpu);
}

double tec_keeping_right(const struct tec_keeping_row *r)
{
    return r->steps ? (double)r->right / (double)r->steps : (double)NAN;
}

double tec_keeping_agree(const struct tec_keeping_row *r)
{
    return r->steps ? (double)r->agree / (double)r->steps : (double)NAN;
}

double tec_keeping_skill(const struct tec_keeping_row *r)
{
    return r->steps ? (double)r->skill / (double)r->steps : (double)NAN;
}

double tec_keeping_kl(const struct tec_keeping_row *r)
{
    return r->steps ? r->kl / (double)r->steps : (double)NAN;
}
