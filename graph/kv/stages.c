/* stages.c - counts the forwards, rows and moved tokens of a ring of sequences at a given depth.
 *
 * Pure functions over small integers, for any thread. A frame of depth n runs ceil(K / n) forwards,
 * and one new sequence enters in each frame, so the sequences in flight are that many stages apart:
 * that is the step of the loops below. */
#include "graph/kv/stages.h"

int tec_stages_forwards(int stages, int depth)
{
    return (stages + depth - 1) / depth;
}

int tec_stages_frames(int stages, int depth)
{
    int forwards = tec_stages_forwards(stages, depth);
    return (stages + forwards - 1) / forwards;
}

int tec_stages_rows(int stages, int depth, int forward)
{
    int forwards = tec_stages_forwards(stages, depth), rows = 0;
    for (int s = forward ? forward : forwards; s < stages; s += forwards)
        rows++;
    return rows;
}

int64_t tec_stages_moved(int stages, int depth, int forward, int prefix)
{
    int forwards = tec_stages_forwards(stages, depth);
    int64_t tokens = 0;
    for (int s = forward; s < stages - 1; s += forwards)
        tokens += prefix + s;
    return tokens;
}

int64_t tec_stages_visible(int stages, int prefix)
{
    return (int64_t)stages * prefix + (int64_t)stages * (stages - 1) / 2;
}

int64_t tec_stages_shifted(int stages, int prefix)
{
    return tec_stages_visible(stages - 1, prefix);
}
