/* net.c - sizes of pictures and of what a net of convolutions makes of them, and where its rows
 * stand. */
#include "graph/model/model.h"
#include "ops/window.h"

#include <math.h>

void tec_model_net_sizes(const struct tec_conv_net *net, const struct tec_net_picture *picture,
                         struct tec_net_size *sizes)
{
    for (int i = 0; i < net->n_steps; i++) {
        const struct tec_net_step *s = &net->steps[i];
        struct tec_net_size from =
            s->from < 0 ? (struct tec_net_size){picture->h, picture->w} : sizes[s->from];
        sizes[i].h = tec_windows(from.h, s->side, s->stride, s->pad, s->dilation);
        sizes[i].w = tec_windows(from.w, s->side, s->stride, s->pad, s->dilation);
    }
}

bool tec_model_asks(const struct tec_model *model)
{
    return model->queries.stack.layers > 0;
}

bool tec_model_reads(const struct tec_model *model)
{
    return model->text.vocab > 0;
}

const struct tec_stack *tec_model_kept(const struct tec_model *model)
{
    return tec_model_asks(model) ? &model->queries.stack : &model->text.stack;
}

struct tec_net_size tec_model_picture(const struct tec_model *model, int slot)
{
    int side = model->vision.image_size;
    return tec_model_asks(model)
               ? (struct tec_net_size){model->net.pictures[slot].h, model->net.pictures[slot].w}
               : (struct tec_net_size){side, side};
}

size_t tec_model_picture_bytes(const struct tec_model *model)
{
    size_t most = 0;
    for (int i = 0; i < model->n_slots; i++) {
        struct tec_net_size p = tec_model_picture(model, i);
        size_t bytes = (size_t)p.h * (size_t)p.w * 3 * (model->vision.floats ? sizeof(float) : 1);
        most = bytes > most ? bytes : most;
    }
    return most;
}

int tec_model_picture_rows(const struct tec_model *model, int n)
{
    int rows = 0;
    if (!tec_model_asks(model))
        return n * model->vision.tokens;
    for (int i = 0; i < n && i < model->n_slots; i++)
        rows += model->net.pictures[i].out.h * model->net.pictures[i].out.w;
    return rows;
}

int tec_model_encoded(const struct tec_model *model)
{
    return tec_model_asks(model)
               ? model->encoder.n_rows + tec_model_picture_rows(model, model->n_slots)
               : 0;
}

/* One half of a pixel's position: sines and cosines of v by columns in turn. */
static void put_sines(double v, double period, int n, float *out)
{
    for (int j = 0; j < n; j++) {
        int pair = j / 2;
        double angle = v / pow(period, 2.0 * pair / n);
        out[j] = (float)(j % 2 ? cos(angle) : sin(angle));
    }
}

void tec_model_net_position(const struct tec_row_encoder *e, const struct tec_net_size *size,
                            int pixel, float *out)
{
    const double circle = 6.28318530717958647692, eps = 1e-6;
    int half = e->stack.width / 2, row = pixel / size->w, column = pixel % size->w;
    put_sines((row + 1) / (size->h + eps) * circle, e->period, half, out);
    put_sines((column + 1) / (size->w + eps) * circle, e->period, half, out + half);
}
