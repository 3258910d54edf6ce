/* plan.c - chunks merged into one row of actions over time. */
#include "tools/client/plan.h"

#include <math.h>
#include <string.h>

double tec_client_plan_place(const struct tec_client_plan *p, const struct tec_client_rules *rules,
                             int64_t now)
{
    return (double)(now - p->base_ns) / rules->period_ns;
}

bool tec_client_plan_dry(const struct tec_client_plan *p, const struct tec_client_rules *rules,
                         int64_t now)
{
    return p->usable == 0 || tec_client_plan_place(p, rules, now) >= (double)p->usable;
}

int64_t tec_client_plan_begin(const struct tec_client_plan *p, const struct tec_client_rules *rules,
                              double row)
{
    return p->base_ns + (int64_t)ceil(row * rules->period_ns);
}

void tec_client_plan_copy(struct tec_client_plan *out, const struct tec_client_plan *plan)
{
    struct tec_client_plan memory = *out;
    size_t n = (size_t)plan->rows * (size_t)plan->columns;
    *out = *plan;
    out->values = memory.values;
    out->origin = memory.origin;
    out->most_rows = memory.most_rows;
    out->most_columns = memory.most_columns;
    if (n) {
        memcpy(out->values, plan->values, n * sizeof *out->values);
        memcpy(out->origin, plan->origin, (size_t)plan->rows * sizeof *out->origin);
    }
}

/* --- where a chunk begins --------------------------------------------------------------------- */

/* How long there was nothing to carry out between the observation and now. */
static int64_t still(const struct tec_client_plan *old, const struct tec_client_rules *rules,
                     int64_t captured, int64_t now)
{
    int64_t from = old->gap[0] > captured ? old->gap[0] : captured, sum = 0;
    if (old->gap[1] > from)
        sum = old->gap[1] - from;
    if (tec_client_plan_dry(old, rules, now)) {
        int64_t end =
            old->usable ? tec_client_plan_begin(old, rules, (double)old->usable) : captured;
        sum += now - (end > captured ? end : captured);
    }
    return sum;
}

/* Rows of a plan that goes on begin when rows of the one before it do, so that the same row of both
 * is for the same instant: the row that was carried out at the observation is the chunk's row 0. */
static int64_t base_of(const struct tec_client_plan *old, const struct tec_client_rules *rules,
                       int64_t captured, int64_t now)
{
    int64_t base = captured + (rules->by_motion ? still(old, rules, captured, now) : 0);
    if (tec_client_plan_dry(old, rules, now))
        return base;
    return tec_client_plan_begin(old, rules, floor(tec_client_plan_place(old, rules, base)));
}

/* --- rows of both ----------------------------------------------------------------------------- */

/* Two plans on one grid: row i of the new one is row i + `behind` of the old one. */
struct seam {
    const struct tec_client_plan *old;
    const struct tec_client_rules *rules;
    const struct tec_client_chunk *chunk;
    int behind;
    int from; /* the new plan's first row that the chunk has a say in */
};

/* The old plan's row for row i of the new one; behind its end the last one, where that is held.
 * NULL: there is none. */
static const double *old_row(const struct seam *s, int i, bool held)
{
    const struct tec_client_plan *old = s->old;
    int row = i + s->behind;
    if (old->rows == 0 || row < 0 || old->columns != s->chunk->columns)
        return NULL;
    if (held && row >= old->usable)
        row = old->usable - 1;
    return row >= 0 && row < old->rows ? old->values + (size_t)row * (size_t)old->columns : NULL;
}

/* The new row's share of a merged row; `votes` chunks are in the old one. */
static double share(const struct seam *s, int i, int votes)
{
    static const double fixed[] = {[TECTUM_CLIENT_LATEST_ONLY] = 1.0,
                                   [TECTUM_CLIENT_WEIGHTED_AVERAGE] = 0.7,
                                   [TECTUM_CLIENT_AVERAGE] = 0.5,
                                   [TECTUM_CLIENT_CONSERVATIVE] = 0.3};
    enum tectum_client_merge merge = s->rules->merge;
    if (merge == TECTUM_CLIENT_LINEAR) {
        int done = i - s->from + 1;
        return done > s->rules->blend_rows ? 1.0 : (double)done / (s->rules->blend_rows + 1);
    }
    if (merge == TECTUM_CLIENT_ENSEMBLE) {
        double sum = 0.0;
        for (int k = 0; k < votes; k++)
            sum += exp(-0.01 * k);
        return exp(-0.01 * votes) / (sum + exp(-0.01 * votes));
    }
    return fixed[merge];
}

static void merge_row(struct tec_client_plan *out, const struct seam *s, int i)
{
    const struct tec_client_chunk *c = s->chunk;
    size_t n = (size_t)c->columns;
    double *to = out->values + (size_t)i * n;
    const double *fresh = c->values + (size_t)i * n;
    bool over = i < s->from; /* what was carried out stays, for what is left of this plan later */
    bool held = s->rules->held && (over || s->rules->merge == TECTUM_CLIENT_LINEAR);
    const double *before = c->substitute && !over ? NULL : old_row(s, i, held);
    bool whole = before && i + s->behind < (held ? s->old->usable : s->old->rows);
    int votes = whole ? s->old->origin[i + s->behind].votes : 1;
    out->origin[i] =
        (struct tec_client_origin){c->number, c->observation, c->captured_ns, i, 1, c->substitute};
    if (!before || (!over && share(s, i, votes) >= 1.0)) {
        memcpy(to, fresh, n * sizeof *to);
        return;
    }
    if (over) {
        memcpy(to, before, n * sizeof *to);
        if (whole)
            out->origin[i] = s->old->origin[i + s->behind];
        return;
    }
    double part = share(s, i, votes);
    out->origin[i].votes = votes + 1;
    const bool *discrete = s->rules->discrete;
    for (size_t k = 0; k < n; k++)
        to[k] = discrete && discrete[k] ? fresh[k] : before[k] + part * (fresh[k] - before[k]);
}

static double largest_change(const struct seam *s)
{
    const double *before = old_row(s, s->from, s->rules->held);
    const double *fresh = s->chunk->values + (size_t)s->from * (size_t)s->chunk->columns;
    double most = 0.0;
    for (int k = 0; before && k < s->chunk->columns; k++)
        most = fmax(most, fabs(fresh[k] - before[k]));
    return most;
}

bool tec_client_plan_merge(struct tec_client_plan *out, const struct tec_client_plan *old,
                           const struct tec_client_rules *rules,
                           const struct tec_client_chunk *chunk, int64_t now)
{
    int64_t base = base_of(old, rules, chunk->captured_ns, now);
    int usable = chunk->rows < rules->horizon ? chunk->rows : rules->horizon;
    double over = floor((double)(now - base) / rules->period_ns);
    struct seam s = {
        .old = old, .rules = rules, .chunk = chunk, .from = over > 0 ? (int)fmin(over, usable) : 0};
    double behind = old->usable ? round(tec_client_plan_place(old, rules, base)) : 0.0;
    s.behind = (int)fmin(fmax(behind, -chunk->rows), old->rows); /* beyond, no row is of both */
    if (chunk->substitute && s.from < old->usable - s.behind)
        s.from = old->usable - s.behind;
    if (s.from >= usable ||
        (old->usable && chunk->observation < old->origin[old->usable - 1].observation)) {
        tec_client_plan_copy(out, old);
        return false;
    }
    bool dry = tec_client_plan_dry(old, rules, now);
    out->rows = chunk->rows;
    out->columns = chunk->columns;
    out->usable = usable;
    out->base_ns = base;
    out->chunk = chunk->number;
    out->gap[0] = dry && old->usable ? tec_client_plan_begin(old, rules, old->usable) : old->gap[0];
    out->gap[1] = dry && old->usable ? now : old->gap[1];
    out->seam = largest_change(&s);
    out->episode = old->episode;
    out->stopped = false;
    for (int i = 0; i < chunk->rows; i++)
        merge_row(out, &s, i);
    return true;
}

/* --- what is left ----------------------------------------------------------------------------- */

struct tec_client_left tec_client_plan_left(const struct tec_client_plan *p,
                                            const struct tec_client_rules *rules,
                                            int64_t captured_ns)
{
    struct tec_client_left left = {.rows = 0};
    double place = tec_client_plan_place(p, rules, captured_ns);
    if (p->usable == 0 || place < 0.0 || place >= (double)p->usable)
        return left;
    int row = (int)place;
    left.values = p->values + (size_t)row * (size_t)p->columns;
    left.rows = p->rows - row;
    left.columns = p->columns;
    left.usable = p->usable - row;
    left.phase = place - row;
    return left;
}
