/* built_windows.c - the words of pictures: pixels are rows, line by line, and channels columns. A
 * convolution is the product of windows side by side and its weights; one of single pixels needs no
 * windows, and where weights are of points, squares of windows are computed as they are. */
#include "graph/nodes/built.h"

static int new_tensor(struct tec_built *b, int call, int cols, const char *label)
{
    return tec_program_tensor(b->l->program, label, b->p->calls[call].rows, cols,
                              tec_built_live(b, call));
}

/* Bytes to numbers, through the slot's own table. */
int tec_built_picture(struct tec_built *b, int at)
{
    const struct tec_model_call *c = &b->p->calls[at];
    struct tec_lower *l = b->l;
    struct tec_call call = tec_call_of(TEC_OP_patchify, "pixels");
    call.out[0] = new_tensor(b, at, 3, "pixels");
    call.args.patchify.pictures = (const uint8_t *const *)l->prefix->picture + c->slot;
    call.args.patchify.lut = l->lut + (size_t)c->slot * 3 * 256;
    call.args.patchify.count = l->prefix->one;
    call.args.patchify.max_pictures = 1;
    call.args.patchify.height = c->h;
    call.args.patchify.width = c->w;
    call.args.patchify.patch = 1;
    tec_program_call(l->program, &call);
    return call.out[0];
}

/* Windows over what a call reads, into y. */
static void windows(struct tec_built *b, int at, enum tec_op_id op, int y)
{
    const struct tec_model_call *c = &b->p->calls[at], *from = &b->p->calls[c->in[0]];
    struct tec_call call = tec_call_of(op, op == TEC_OP_unfold ? "windows" : "pool");
    call.in[0] = b->tensor[c->in[0]];
    call.out[0] = y;
    call.args.window = (struct tec_window_args){.in_h = from->h,
                                                .in_w = from->w,
                                                .side = c->side,
                                                .stride = c->stride,
                                                .pad = c->pad,
                                                .dilation = c->dilation,
                                                .round = op == TEC_OP_unfold && b->l->round &&
                                                         !tec_built_spares(b)};
    tec_program_call(b->l->program, &call);
}

int tec_built_max_pool(struct tec_built *b, int at)
{
    int y = new_tensor(b, at, b->p->calls[at].cols, "pool");
    windows(b, at, TEC_OP_max_pool, y);
    return y;
}

/* Squares of windows of x, into y or added to it. */
static void squares(struct tec_built *b, int at, int x, int y, bool add)
{
    const struct tec_model_call *c = &b->p->calls[at], *from = &b->p->calls[c->in[0]];
    const struct tec_matrix *m = &b->w[at].matrix;
    struct tec_call call = tec_call_of(TEC_OP_conv3x3, "conv");
    call.in[0] = x;
    call.out[0] = y;
    call.args.conv = (struct tec_conv_args){.w = m->w,
                                            .bias = m->bias,
                                            .in_h = from->h,
                                            .in_w = from->w,
                                            .pad = c->pad,
                                            .n = m->n,
                                            .k = m->k,
                                            .add = add};
    tec_program_call(b->l->program, &call);
}

/* What is added to x itself is made apart: squares read pixels after others are written. */
static int convolve_squares(struct tec_built *b, int at, int sum)
{
    int x = b->tensor[b->p->calls[at].in[0]];
    bool apart = sum < 0 || x == sum;
    int y = apart ? new_tensor(b, at, b->p->calls[at].cols, "conv") : sum;
    squares(b, at, x, y, !apart);
    if (sum < 0 || x != sum)
        return y;
    struct tec_call call = tec_call_of(TEC_OP_add, "add");
    call.in[0] = y;
    call.out[0] = sum;
    tec_program_call(b->l->program, &call);
    return sum;
}

/* Whether a product reads windows of x where they lie: those of few columns, as they are, for
 * weights in float32, and not on a GPU. */
static bool reads_windows(const struct tec_built *b, int at, int x, int y)
{
    const struct tec_matrix *m = &b->w[at].matrix;
    return m->form == TEC_FORM_F32 && !b->l->round && m->k <= TEC_WINDOWS_K && x != y &&
           tec_device_layout(b->l->device) != TEC_MATRIX_TILES;
}

int tec_built_convolve(struct tec_built *b, int at, int sum)
{
    const struct tec_model_call *c = &b->p->calls[at], *from = &b->p->calls[c->in[0]];
    const struct tec_matrix *m = &b->w[at].matrix;
    if (m->form == TEC_FORM_POINTS)
        return convolve_squares(b, at, sum);
    int x = b->tensor[c->in[0]];
    bool single = c->side == 1 && c->stride == 1 && !c->pad && x != sum;
    if (!single && reads_windows(b, at, x, sum)) {
        int y = sum < 0 ? new_tensor(b, at, c->cols, "conv") : sum;
        const struct tec_windows w = {.in_h = from->h,
                                      .in_w = from->w,
                                      .side = c->side,
                                      .stride = c->stride,
                                      .pad = c->pad,
                                      .dilation = c->dilation};
        tec_lower_linear_windows(b->l, m, x, y, &w, sum >= 0, "conv");
        return y;
    }
    if (!single) {
        int u = new_tensor(b, at, c->side * c->side * b->p->calls[c->in[0]].cols, "windows");
        windows(b, at, TEC_OP_unfold, u);
        x = u;
    }
    int y = sum < 0 ? new_tensor(b, at, c->cols, "conv") : sum;
    tec_lower_linear_into(b->l, m, x, y, 0, NULL, sum >= 0, "conv");
    return y;
}
