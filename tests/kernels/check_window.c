/* check_window.c - checks that windows over a picture hold its pixels and nothing else, and that
 * the largest of them is found: both are exact. */
#include "kernels/bf16.h"
#include "tests/kernels/conform.h"

#include <math.h>
#include <stdio.h>

struct shape {
    int h, w, cols, side, stride, pad, dilation;
};

static int windows(int n, struct shape s)
{
    return (n + 2 * s.pad - s.dilation * (s.side - 1) - 1) / s.stride + 1;
}

/* Column c of pixel k of window r; `outside` where there is none. */
static float pixel(const struct tec_window_args *a, int r, int k, int c, float outside)
{
    int y = r / a->out_w * a->stride - a->pad + k / a->side * a->dilation;
    int x = r % a->out_w * a->stride - a->pad + k % a->side * a->dilation;
    bool inside = y >= 0 && y < a->in_h && x >= 0 && x < a->in_w;
    return inside ? a->x[(size_t)(y * a->in_w + x) * (size_t)a->ldx + (size_t)c] : outside;
}

static float unfolded(const struct tec_window_args *a, int r, int at)
{
    float v = pixel(a, r, at / a->cols, at % a->cols, 0.0F);
    return a->round ? tec_bf16_round(v) : v;
}

static float largest(const struct tec_window_args *a, int r, int c)
{
    float most = -INFINITY;
    for (int k = 0; k < a->side * a->side; k++)
        most = fmaxf(most, pixel(a, r, k, c, -INFINITY));
    return most;
}

static void window_shape(struct conform *c, struct shape s, bool pools, enum conform_family family)
{
    int out_w = windows(s.w, s), rows = windows(s.h, s) * out_w;
    int cols = (pools ? 1 : s.side * s.side) * s.cols;
    struct tec_window_args a = {.max_rows = rows,
                                .ldx = conform_ld(s.cols),
                                .ldy = conform_ld(cols),
                                .cols = s.cols,
                                .in_h = s.h,
                                .in_w = s.w,
                                .out_w = out_w,
                                .side = s.side,
                                .stride = s.stride,
                                .pad = s.pad,
                                .dilation = s.dilation,
                                .round = !pools && conform_int(0, 1)};
    size_t pixels = (size_t)s.h * (size_t)s.w * (size_t)a.ldx;
    float *x = conform_buf(c, pixels, sizeof *x);
    conform_fill(x, pixels, family, 2.0F);
    a.x = x;
    a.y = conform_buf(c, (size_t)rows * (size_t)a.ldy, sizeof *a.y);
    a.rows = conform_live(c, rows);
    struct conform_call call = {.ref = &a, .fast = &a, .live = rows, .full = true, .outs = 1};
    call.out[0] = (struct conform_out){a.y, rows, (size_t)cols * 4, (size_t)a.ldy * 4, NULL, 0, 1};
    conform_run(c, &call);
    for (int r = 0; r < rows; r++)
        for (int i = 0; i < cols; i++) {
            double want = (double)(pools ? largest(&a, r, i) : unfolded(&a, r, i));
            size_t at = (size_t)r * (size_t)a.ldy + (size_t)i;
            conform_close(c, (double)((const float *)c->got[0])[at], want, 0, "window %d col %d", r,
                          i);
            conform_close(c, (double)((const float *)c->want[0])[at], want, 0,
                          "reference window %d col %d", r, i);
        }
    if (s.h >= 56) {
        char name[60];
        snprintf(name, sizeof name, "%dx%dx%d %d/%d", s.h, s.w, s.cols, s.side, s.stride);
        conform_time(c, name, &call, 4.0 * ((double)pixels + (double)rows * cols), 0);
    }
    conform_end(c);
}

static void window_shapes(struct conform *c, bool pools)
{
    static const struct shape edges[] = {
        {1, 1, 1, 1, 1, 0, 1},  {1, 1, 5, 3, 2, 1, 1},  {7, 9, 3, 7, 2, 3, 1},
        {5, 4, 16, 3, 1, 1, 1}, {6, 5, 17, 3, 1, 2, 2}, {9, 8, 33, 1, 2, 0, 1},
        {3, 4, 67, 3, 2, 1, 1}, {4, 4, 8, 2, 2, 0, 1},
    };
    for (size_t i = 0; i < sizeof edges / sizeof edges[0]; i++)
        if (!pools || 2 * edges[i].pad <= edges[i].side)
            window_shape(c, edges[i], pools, CONFORM_NORMAL);
    for (int i = 0; i < conform_few(c, 30); i++) {
        struct shape s = {.h = conform_int(1, 12),
                          .w = conform_int(1, 12),
                          .cols = conform_int(1, 40),
                          .side = conform_int(1, 4),
                          .stride = conform_int(1, 3),
                          .dilation = conform_int(1, 2)};
        s.pad = s.dilation == 2 ? s.side : s.side / 2;
        if (pools) {
            s.dilation = 1;
            s.pad = s.side / 2;
        }
        if (s.h + 2 * s.pad > s.dilation * (s.side - 1) &&
            s.w + 2 * s.pad > s.dilation * (s.side - 1))
            window_shape(c, s, pools, (enum conform_family)(i % CONFORM_FAMILIES));
    }
    if (c->bench)
        window_shape(c, (struct shape){120, 160, 64, 3, pools ? 2 : 1, 1, 1}, pools,
                     CONFORM_NORMAL);
}

void conform_unfold(struct conform *c)
{
    window_shapes(c, false);
}

void conform_max_pool(struct conform *c)
{
    window_shapes(c, true);
}
