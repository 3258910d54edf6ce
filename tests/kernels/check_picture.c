/* check_picture.c - checks float32 products that read windows of a picture where they lie: they
 * have the bytes of the product of windows side by side, on every tier and for every number of
 * lanes. */
#include "tests/kernels/conform.h"

#include <string.h>

struct picture {
    int h, w, cols, side, stride, pad, dilation, n;
};

/* x, the windows side by side, what is added to, and y of both ways. */
struct picture_case {
    struct tec_window_args window;
    struct tec_windows windows; /* of `inside` */
    struct tec_gemm_args beside, inside;
    float *before;
};

static struct picture_case make(struct conform *c, const struct tec_kernels *table,
                                struct picture s)
{
    struct tec_window_args u = {.ldx = conform_ld(s.cols),
                                .cols = s.cols,
                                .in_h = s.h,
                                .in_w = s.w,
                                .side = s.side,
                                .stride = s.stride,
                                .pad = s.pad,
                                .dilation = s.dilation};
    int reach = s.dilation * (s.side - 1) + 1;
    u.out_w = (s.w + 2 * s.pad - reach) / s.stride + 1;
    u.max_rows = ((s.h + 2 * s.pad - reach) / s.stride + 1) * u.out_w;
    u.rows = conform_live(c, conform_int(0, 3) ? u.max_rows : conform_int(0, u.max_rows));
    size_t pixels = (size_t)s.h * (size_t)s.w, rows = (size_t)u.max_rows;
    float *x = conform_buf(c, pixels * (size_t)u.ldx, sizeof *x); /* NaN beyond the columns */
    for (size_t r = 0; r < pixels; r++)
        conform_fill(x + r * (size_t)u.ldx, (size_t)s.cols, CONFORM_NORMAL, 1.0F);
    u.x = x;
    int k = s.side * s.side * s.cols;
    u.ldy = conform_ld(k);
    u.y = conform_buf(c, rows * (size_t)u.ldy, sizeof *u.y);
    const float *w = conform_normal(c, (size_t)s.n * (size_t)k);
    struct tec_gemm_args a = {.x = u.y,
                              .w = conform_matrix(c, table, false, s.n, k, w),
                              .bias = conform_int(0, 1) ? conform_normal(c, (size_t)s.n) : NULL,
                              .gate = conform_int(0, 1) ? conform_normal(c, (size_t)s.n) : NULL,
                              .rows = u.rows,
                              .max_rows = u.max_rows,
                              .ldx = u.ldy,
                              .ldy = conform_ld(s.n),
                              .n = s.n,
                              .k = k,
                              .add = conform_int(0, 1)};
    struct picture_case t = {u, {0}, a, a, conform_buf(c, rows * (size_t)a.ldy, sizeof(float))};
    conform_fill(t.before, rows * (size_t)a.ldy, CONFORM_NORMAL, 1.0F);
    t.beside.y = conform_buf(c, rows * (size_t)a.ldy, sizeof(float));
    t.inside.y = conform_buf(c, rows * (size_t)a.ldy, sizeof(float));
    t.inside.x = x;
    t.inside.ldx = u.ldx;
    t.windows = (struct tec_windows){.in_h = s.h,
                                     .in_w = s.w,
                                     .out_w = u.out_w,
                                     .cols = s.cols,
                                     .side = s.side,
                                     .stride = s.stride,
                                     .pad = s.pad,
                                     .dilation = s.dilation};
    return t;
}

/* `lanes` lanes, one after the other, each after what was there before. */
static void multiply(const struct tec_kernels *table, const struct picture_case *t,
                     const struct tec_gemm_args *a, int lanes)
{
    memcpy(a->y, t->before, (size_t)a->max_rows * (size_t)a->ldy * sizeof(float));
    for (int lane = 0; lane < lanes; lane++)
        table->gemm_f32(a, (struct tec_part){lane, lanes});
}

static void picture_shape(struct conform *c, const struct tec_kernels *table, struct picture s)
{
    struct picture_case t = make(c, table, s);
    size_t size = (size_t)t.inside.max_rows * (size_t)t.inside.ldy * sizeof(float);
    t.inside.windows = &t.windows;
    c->ref->unfold(&t.window, (struct tec_part){0, 1});
    multiply(table, &t, &t.beside, 1);
    for (int lanes = 1; lanes <= 3; lanes++) {
        multiply(table, &t, &t.inside, lanes);
        if (memcmp(t.inside.y, t.beside.y, size) != 0)
            conform_fail(c, "%d x %d x %d, %d by %d to %d, %d lanes: not the windows' product", s.h,
                         s.w, s.cols, s.side, s.side, s.n, lanes);
    }
    conform_end(c);
}

void conform_picture(struct conform *c, const struct tec_kernels *table)
{
    static const struct picture edges[] = {
        {1, 1, 1, 1, 1, 0, 1, 16},    {9, 11, 3, 7, 2, 3, 1, 64},  {30, 37, 3, 7, 2, 3, 1, 48},
        {8, 8, 28, 3, 2, 1, 1, 32},   {6, 5, 64, 1, 2, 0, 1, 16},  {7, 6, 17, 3, 1, 2, 2, 32},
        {40, 9, 4, 8, 1, 3, 1, 16},   {5, 5, 256, 1, 1, 0, 1, 16}, {12, 12, 5, 7, 3, 3, 1, 272},
        {3, 200, 2, 3, 1, 0, 1, 320}, {4, 4, 1, 16, 1, 12, 1, 16},
    };
    for (size_t i = 0; i < sizeof edges / sizeof edges[0]; i++)
        picture_shape(c, table, edges[i]);
    for (int i = 0; i < conform_few(c, 30); i++) {
        struct picture s = {.h = conform_int(1, 20),
                            .w = conform_int(1, 20),
                            .cols = conform_int(1, 16),
                            .side = conform_int(1, 4),
                            .stride = conform_int(1, 3),
                            .dilation = conform_int(1, 2),
                            .n = 16 * conform_int(1, 6)};
        s.pad = s.dilation * s.side / 2;
        if (s.h + 2 * s.pad > s.dilation * (s.side - 1) &&
            s.w + 2 * s.pad > s.dilation * (s.side - 1))
            picture_shape(c, table, s);
    }
}
