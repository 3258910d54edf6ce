/* rotation.c - the angles by which positions turn queries and keys. */
#include "graph/model/model.h"

#include <math.h>

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

/* As transformers' Qwen3-VL puts them: time, line, column, time, line ... */
enum tec_turn_axis tec_model_axis(const struct tec_rotation *r, int i)
{
    enum tec_turn_axis axis = (enum tec_turn_axis)(i % 3);
    return i < 3 * r->sections[axis] ? axis : TEC_AXIS_TIME;
}

double tec_model_angle(const struct tec_rotation *r, int head_dim, int i)
{
    if (r->f32) {
        float part = (float)(2 * i) / (float)head_dim;
        float turn = 1.0F / (float)pow(r->theta, (double)part);
        return r->stretch.kind == TEC_STRETCH_NONE
                   ? (double)turn
                   : (double)(float)stretched(&r->stretch, (double)turn);
    }
    return stretched(&r->stretch, pow(r->theta, -2.0 * i / head_dim));
}
