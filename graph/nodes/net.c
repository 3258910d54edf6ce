/* net.c - a picture through a net of convolutions: pixels are rows, line by line, and channels
 * columns. A convolution is the product of windows side by side and its weights; one of single
 * pixels needs no windows. */
#include "graph/nodes/encoded.h"

#include <stdio.h>

/* The picture of one slot on its way. */
struct walk {
    const struct tec_conv_net *net;
    int slot;
    struct tec_net_size sizes[TEC_MAX_NET_STEPS];
    int made[TEC_MAX_NET_STEPS]; /* tensors */
    int picture;
};

/* The count of pixels of a step's result; step -1 is the picture. */
static const int *pixels(const struct tec_lower *l, const struct walk *w, int step)
{
    return l->prefix->net_rows + (ptrdiff_t)w->slot * (w->net->n_steps + 1) + step + 1;
}

static struct tec_net_size size_of(const struct walk *w, int step)
{
    const struct tec_net_picture *p = &w->net->pictures[w->slot];
    return step < 0 ? (struct tec_net_size){p->h, p->w} : w->sizes[step];
}

static int tensor(struct tec_lower *l, const struct walk *w, int step, int cols, const char *label)
{
    struct tec_net_size size = size_of(w, step);
    return tec_program_tensor(l->program, label, size.h * size.w, cols, pixels(l, w, step));
}

/* Bytes to numbers, through the slot's own table. */
static int read_picture(struct tec_lower *l, const struct walk *w)
{
    struct tec_net_size size = size_of(w, -1);
    struct tec_call call = tec_call_of(TEC_OP_patchify, "pixels");
    call.out[0] = tensor(l, w, -1, 3, "pixels");
    call.args.patchify.pictures = (const uint8_t *const *)l->prefix->picture + w->slot;
    call.args.patchify.lut = l->lut + (size_t)w->slot * 3 * 256;
    call.args.patchify.count = l->prefix->one;
    call.args.patchify.max_pictures = 1;
    call.args.patchify.height = size.h;
    call.args.patchify.width = size.w;
    call.args.patchify.patch = 1;
    tec_program_call(l->program, &call);
    tec_lower_tap(l, call.out[0], "net%d.pixels", w->slot);
    return call.out[0];
}

/* Windows over what a step reads, into y. */
static void windows(struct tec_lower *l, const struct walk *w, int step, enum tec_op_id op, int x,
                    int y)
{
    const struct tec_net_step *s = &w->net->steps[step];
    struct tec_net_size from = size_of(w, s->from);
    struct tec_call call = tec_call_of(op, op == TEC_OP_unfold ? "windows" : "pool");
    call.in[0] = x;
    call.out[0] = y;
    call.args.window = (struct tec_window_args){.in_h = from.h,
                                                .in_w = from.w,
                                                .side = s->side,
                                                .stride = s->stride,
                                                .pad = s->pad,
                                                .dilation = s->dilation,
                                                .round = op == TEC_OP_unfold && l->round};
    tec_program_call(l->program, &call);
}

static int convolve(struct tec_lower *l, const struct walk *w, int step, int x)
{
    const struct tec_net_step *s = &w->net->steps[step];
    bool single = s->side == 1 && s->stride == 1 && !s->pad && (s->add < 0 || s->add != s->from);
    if (!single) {
        int u = tensor(l, w, step, s->side * s->side * s->in, "windows");
        windows(l, w, step, TEC_OP_unfold, x, u);
        x = u;
    }
    int y = s->add < 0 ? tensor(l, w, step, s->out, "conv") : w->made[s->add];
    tec_lower_linear_into(l, &l->weights->net[step], x, y, 0, NULL, s->add >= 0, "conv");
    if (s->name)
        tec_lower_tap(l, y, "net%d.%s.sum", w->slot, s->name);
    if (s->relu)
        tec_lower_relu(l, y);
    return y;
}

int tec_lower_net(struct tec_lower *l, int slot)
{
    struct walk w = {.net = &l->model->net, .slot = slot};
    tec_model_net_sizes(w.net, &w.net->pictures[slot], w.sizes);
    w.picture = read_picture(l, &w);
    for (int i = 0; i < w.net->n_steps && l->program->status == TEC_OK; i++) {
        const struct tec_net_step *s = &w.net->steps[i];
        int x = s->from < 0 ? w.picture : w.made[s->from];
        if (s->kind == TEC_NET_CONV) {
            w.made[i] = convolve(l, &w, i, x);
        } else {
            w.made[i] = tensor(l, &w, i, s->out, "pool");
            windows(l, &w, i, TEC_OP_max_pool, x, w.made[i]);
        }
        if (s->name)
            tec_lower_tap(l, w.made[i], "net%d.%s", slot, s->name);
    }
    return l->program->status == TEC_OK ? w.made[w.net->n_steps - 1] : -1;
}
