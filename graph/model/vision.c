/* vision.c - how many rows of a prefix a picture takes, and which position each patch has. */
#include "graph/model/model.h"

#include <math.h>

/* Number of boundaries k / n, k = 1 .. n - 1, at or below the share i / m of a side. In float32, as
 * the models were trained: a share that is rounded up to a boundary belongs to the next row. */
static int bucket(int i, int m, int n)
{
    float share = fminf((float)i / (float)m, 1.0F - 1e-6F);
    int at = 0;
    for (int k = 1; k < n; k++)
        at += (float)k / (float)n <= share;
    return at;
}

int tec_tower_position(const struct tec_tower *tower, int patches, int i)
{
    int n = tower->position_side, m = (int)lround(sqrt((double)patches));
    return m == n ? i : bucket(i / m, m, n) * n + bucket(i % m, m, n);
}

int tec_vision_rows(const struct tec_vision *v)
{
    return v->tokens + v->n_before + v->n_behind;
}
