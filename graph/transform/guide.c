/* guide.c - the schedules of guided chunks, with the formulas of LeRobot's RTCProcessor. */
#include "graph/transform/guide.h"

#include <math.h>
#include <strings.h>

enum tec_status tec_guide_schedule_of(enum tec_guide_schedule *out, const char *word,
                                      const char *where, struct tec_error *err)
{
    static const char *const words[] = {
#define GUIDE(name, text, what) text,
#include "graph/transform/guides.def"
#undef GUIDE
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcasecmp(word, words[i]) == 0) {
            *out = (enum tec_guide_schedule)i;
            return TEC_OK;
        }
    return tec_fail(err, TEC_INVALID, "%s: '%.40s' is not zeros, ones, linear or exp", where, word);
}

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
