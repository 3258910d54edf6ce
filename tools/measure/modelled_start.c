/* modelled_start.c - waves, bytes and the largest part of a time, for all kinds of kernels. */
#include "tools/measure/modelled_start.h"

double tec_start_part(struct start *s, double us, const char *what, double *most)
{
    if (us > *most) {
        *most = us;
        s->time.bound = what;
    }
    return us;
}

double tec_start_waves(struct start *s, double (*one)(const struct start *s, int beside))
{
    int64_t held = (int64_t)s->chip->processors * s->time.resident, whole = s->time.busy / held;
    int64_t rest = s->time.busy % held;
    int beside = (int)((rest + s->chip->processors - 1) / s->chip->processors);
    s->time.waves = (int)(whole + (rest > 0));
    return (double)whole * (whole ? one(s, s->time.resident) : 0.0) + (rest ? one(s, beside) : 0.0);
}

double tec_start_memory_us(const struct start *s, const struct tec_cost *c)
{
    double weights = (double)c->weights;
    double moved = (double)tec_cost_bytes(c) - weights;
    bool far = moved > (double)s->chip->l2 * 1048576.0 / 2;
    double rate = far ? s->peak->memory * 1e3 * MEMORY_SHARE : s->chip->l2_rate * 1e3 * L2_SHARE;
    return weights / (s->peak->memory * 1e3 * MEMORY_SHARE) + moved / rate;
}
