/* times.c - windows of durations and of stamps. */
#include "tools/client/times.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void tec_client_durations_add(struct tec_client_durations *d, int64_t ns)
{
    d->ns[d->at] = ns;
    d->at = (d->at + 1) % TEC_CLIENT_TIMES;
    d->n += d->n < TEC_CLIENT_TIMES;
}

static int by_value(const void *a, const void *b)
{
    int64_t x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

int64_t tec_client_durations_at(const struct tec_client_durations *d, double q)
{
    int64_t sorted[TEC_CLIENT_TIMES];
    if (d->n == 0)
        return -1;
    memcpy(sorted, d->ns, (size_t)d->n * sizeof *sorted);
    qsort(sorted, (size_t)d->n, sizeof *sorted, by_value);
    int at = (int)ceil(q * d->n) - 1;
    return sorted[at < 0 ? 0 : at >= d->n ? d->n - 1 : at];
}

void tec_client_clock_add(struct tec_client_clock *c, const struct tec_client_stamps *s)
{
    enum { LIMIT = 62 };
    const int64_t most = (int64_t)1 << (LIMIT - 1);
    if (s->received < 0 || s->received > most || s->left < s->received || s->left > most)
        return;
    int64_t trip = (s->arrived - s->sent) - (s->left - s->received);
    if (trip < 0)
        return;
    c->of[c->at].trip = trip;
    c->of[c->at].offset = (s->received - s->sent) / 2 + (s->left - s->arrived) / 2;
    c->at = (c->at + 1) % TEC_CLIENT_STAMPS;
    c->n += c->n < TEC_CLIENT_STAMPS;
}

bool tec_client_clock_offset(const struct tec_client_clock *c, int64_t *offset, int64_t *error)
{
    int best = 0;
    for (int i = 1; i < c->n; i++)
        if (c->of[i].trip < c->of[best].trip)
            best = i;
    if (c->n == 0)
        return false;
    *offset = c->of[best].offset;
    *error = c->of[best].trip / 2 + 1;
    return true;
}
