/* misses.c - counts the deadlines that a policy's own decisions missed, over a sliding window of
 * frames kept in a few parts. */
#include "policies/host/misses.h"

static int part_of(int window)
{
    return (window + TEC_MISS_PARTS - 1) / TEC_MISS_PARTS;
}

int tec_misses_window(int window)
{
    return part_of(window) * TEC_MISS_PARTS;
}

static bool is_its_own(const struct tec_frame_result *result)
{
    return result->missed && (result->cause == TEC_CAUSE_PLAN || result->cause == TEC_CAUSE_POLICY);
}

int tec_misses_add(struct tec_misses *m, int window, const struct tec_frame_result *result)
{
    m->missed += is_its_own(result);
    if (++m->frames < part_of(window))
        return 0;
    m->sum += m->missed - m->history[m->at]; /* the oldest part leaves the window */
    m->history[m->at] = m->missed;
    m->at = (m->at + 1) % TEC_MISS_PARTS;
    m->parts += m->parts < TEC_MISS_PARTS;
    m->frames = m->missed = 0;
    return m->parts == TEC_MISS_PARTS && m->sum > tec_misses_window(window) / 2 ? m->sum : 0;
}
