/* guide.c - the schedules of guided chunks, with the formulas of LeRobot's RTCProcessor. */
#include "graph/transform/guide.h"

#include <math.h>

/* Of row i between the delay and the horizon, `steps` rows: its share falls from row to row. */
static double between(enum tec_guide_schedule schedule, int i, int steps)
{
    double share = 1.0 - (double)(i + 1) / (steps + 1);
    double of[] = {0.0, 1.0, share, share * expm1(share) / expm1(1.0)};
    return of[schedule];
}

void tec_guide_pulls(enum tec_guide_schedule schedule, int delay, int horizon, int left, int rows,
                     float *pulls)
{
    int end = horizon < left ? horizon : left, first = delay < end ? delay : end;
    for (int i = 0; i < rows; i++)
        pulls[i] = i < first ? 1.0F
                   : i < end ? (float)between(schedule, i - first, end - first)
                             : 0.0F;
}
