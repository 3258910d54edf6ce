/* sum.c - what the frames of a point come to, by the definitions of OxyGen's analysis. */
#include "tests/experiments/oxygen/oxygen.h"

#include <math.h>

enum tec_status tec_oxygen_sum(struct tec_oxygen *suite, struct tec_error *err)
{
    for (int i = 0; i < suite->n_points; i++) {
        struct tec_oxygen_point *p = &suite->points[i];
        p->sorted.n = 0;
        p->sorted.room = p->n;
        p->sorted.ns = TEC_NEW(suite->call->arena, (size_t)p->n + 1, int64_t);
        if (!p->sorted.ns)
            return tec_fail(err, TEC_NO_MEMORY, "no memory to sort frames");
        for (int f = 0; f < p->n; f++)
            if (!p->frame[f].warmup)
                p->sorted.ns[p->sorted.n++] = p->frame[f].ns;
        tec_samples_sort(&p->sorted);
    }
    return TEC_OK;
}

double tec_oxygen_ms_at(const struct tec_oxygen_point *p, double q)
{
    return p && p->sorted.n ? (double)tec_samples_at(&p->sorted, q) / 1e6 : (double)NAN;
}

double tec_oxygen_frame_ms(const struct tec_oxygen_point *p)
{
    double sum = 0.0;
    for (int i = 0; p && i < p->sorted.n; i++)
        sum += (double)p->sorted.ns[i] / 1e6;
    return p && p->sorted.n ? sum / p->sorted.n : (double)NAN;
}

double tec_oxygen_action_hz(const struct tec_oxygen_point *p)
{
    return TEC_OXYGEN_HORIZON * 1000.0 / tec_oxygen_frame_ms(p);
}

/* The mean over measured frames of one number of a frame. */
static double mean(const struct tec_oxygen_point *p, double (*of)(const struct tec_oxygen_frame *))
{
    double sum = 0.0;
    for (int i = 0; p && i < p->n; i++)
        if (!p->frame[i].warmup)
            sum += of(&p->frame[i]);
    return p && p->sorted.n ? sum / p->sorted.n : (double)NAN;
}

static double tokens_s_of(const struct tec_oxygen_frame *f)
{
    return f->ns > 0 ? f->tokens * 1e9 / (double)f->ns : 0.0;
}

static double total_of(const struct tec_oxygen_frame *f)
{
    return f->n_new + f->n_resumed;
}

static double new_of(const struct tec_oxygen_frame *f)
{
    return f->n_new;
}

double tec_oxygen_tokens_s(const struct tec_oxygen_point *p)
{
    return mean(p, tokens_s_of);
}

double tec_oxygen_batch(const struct tec_oxygen_point *p)
{
    return mean(p, total_of);
}

double tec_oxygen_actions_s(const struct tec_oxygen_point *p)
{
    return tec_oxygen_action_hz(p) * mean(p, new_of);
}

double tec_oxygen_ratio(const struct tec_oxygen_point *a, const struct tec_oxygen_point *b)
{
    return tec_oxygen_ms_at(a, 0.5) / tec_oxygen_ms_at(b, 0.5);
}
