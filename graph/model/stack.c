/* stack.c - which layers of a stack see a window or cross to another one, and the angles of its
 * rotations. */
#include "graph/model/model.h"

#include <math.h>

bool tec_stack_windowed(const struct tec_stack *s, int layer)
{
    return s->window && (s->windowed[layer / 8] >> (layer % 8) & 1);
}

bool tec_stack_crossed(const struct tec_stack *s, int layer)
{
    return s->crosses && (s->crossed[layer / 8] >> (layer % 8) & 1);
}

/* As transformers' modeling_rope_utils.py computes it: long waves are divided by the factor, short
 * ones stay, those between are a blend by how often they turn over the original length. */
static double stretched(const struct tec_stretch *s, double turn)
{
    const double circle = 6.28318530717958647692, wave = circle / turn;
    if (s->kind == TEC_STRETCH_NONE)
        return turn;
    if (s->kind == TEC_STRETCH_LINEAR || wave > s->original / s->low)
        return turn / s->factor;
    if (wave < s->original / s->high)
        return turn;
    double blend = (s->original / wave - s->low) / (s->high - s->low);
    return (1 - blend) * turn / s->factor + blend * turn;
}

double tec_stack_angle(const struct tec_stack *s, int i, bool windowed)
{
    bool local = windowed && s->window_theta > 0.0;
    double theta = local ? s->window_theta : s->theta > 0.0 ? s->theta : 1.0;
    if (s->angles_f32) {
        float part = (float)(2 * i) / (float)s->head_dim;
        float turn = 1.0F / (float)pow(theta, (double)part);
        return local || s->stretch.kind == TEC_STRETCH_NONE
                   ? (double)turn
                   : (double)(float)stretched(&s->stretch, (double)turn);
    }
    double turn = pow(theta, -2.0 * i / s->head_dim);
    return local ? turn : stretched(&s->stretch, turn);
}
