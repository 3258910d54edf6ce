/* check_map.c - checks the elementwise activations (gelu, relu, silu) and the copy of rows against
 * float64 within derived bounds. */
#include "tests/kernels/activation.h"
#include "tests/kernels/conform.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct shape {
    int rows, cols;
};

static const struct shape edges[] = {{1, 1},  {3, 7},  {2, 8},  {5, 9},    {4, 15},    {3, 16},
                                     {7, 17}, {2, 31}, {9, 33}, {1, 4096}, {51, 1024}, {256, 4304}};
enum { EDGES = sizeof edges / sizeof edges[0], RANDOM = 30 };

typedef struct activation (*function)(double x);

static void compare(struct conform *c, const struct tec_map_args *a, const float *x, function f)
{
    for (int r = 0; r < a->max_rows; r += 1 + a->max_rows / 32)
        for (int i = 0; i < a->cols; i++) {
            double in = (double)x[(size_t)r * (size_t)a->ldx + (size_t)i];
            struct activation y = f(in);
            double bound = a->round ? activation_rounded(y) : y.bound;
            size_t at = (size_t)r * (size_t)a->ldy + (size_t)i;
            conform_close(c, (double)((const float *)c->got[0])[at], y.value, bound, "f(%.9g)", in);
            conform_close(c, (double)((const float *)c->want[0])[at], y.value, bound,
                          "reference f(%.9g)", in);
        }
}

/* Fill with normal values of some size, with a sweep over the whole curve, or with values far
 * beyond it. */
static void fill(float *x, size_t count, int how)
{
    conform_fill(x, count, (enum conform_family)(how % CONFORM_FAMILIES), 2.0F);
    for (size_t i = 0; i < count && how % 3 == 0; i++) {
        float at = (float)i / (float)count * 2 - 1;
        x[i] = conform_int(0, 9) ? at * 15 : conform_int(0, 1) ? at * 200 : at * 1e12F;
    }
}

static void map_shape(struct conform *c, struct shape s, function f, int how)
{
    struct tec_map_args a = {.max_rows = s.rows, .cols = s.cols, .round = conform_int(0, 1)};
    a.ldx = conform_ld(s.cols);
    a.ldy = conform_ld(s.cols);
    size_t count = (size_t)s.rows * (size_t)a.ldx;
    float *x = conform_buf(c, count, sizeof *x);
    fill(x, count, how);
    a.x = x;
    a.y = conform_buf(c, (size_t)s.rows * (size_t)a.ldy, sizeof *a.y);
    a.rows = conform_live(c, s.rows);
    struct conform_call call = {.ref = &a, .fast = &a, .live = s.rows, .full = true, .outs = 1};
    call.out[0] =
        (struct conform_out){a.y, s.rows, (size_t)s.cols * 4, (size_t)a.ldy * 4, NULL, 0, 1};
    conform_run(c, &call);
    compare(c, &a, x, f);
    if (a.round)
        conform_rounded(c, s.rows, a.ldy, s.cols);
    if (s.cols >= 1024) {
        char name[40];
        snprintf(name, sizeof name, "%dx%d", s.rows, s.cols);
        conform_time(c, name, &call, 8.0 * s.rows * s.cols, 0);
    }
    conform_end(c);
}

/* x and y may be the same buffer. */
static void map_in_place(struct conform *c, function f)
{
    enum { ROWS = 5, COLS = 37, LD = 48 };
    float *x = conform_buf(c, (size_t)ROWS * LD, sizeof *x);
    float *before = conform_buf(c, (size_t)ROWS * LD, sizeof *before);
    conform_fill(x, (size_t)ROWS * LD, CONFORM_NORMAL, 2.0F);
    for (int i = 0; i < ROWS * LD; i++)
        before[i] = x[i];
    struct tec_map_args a = {x, x, conform_live(c, ROWS), ROWS, LD, LD, COLS, 0};
    struct conform_call call = {.ref = &a, .fast = &a, .live = ROWS, .full = true, .outs = 1};
    call.out[0] = (struct conform_out){x, ROWS, (size_t)COLS * 4, (size_t)LD * 4, NULL, 0, 1};
    conform_run(c, &call);
    compare(c, &a, before, f);
    conform_end(c);
}

static void map(struct conform *c, function f)
{
    for (int i = 0; i < EDGES; i++)
        map_shape(c, (struct shape){conform_scale(c, edges[i].rows, 64), edges[i].cols}, f, 0);
    for (int i = 0; i < conform_few(c, RANDOM); i++)
        map_shape(c, (struct shape){conform_int(1, 20), conform_int(1, 200)}, f, i);
    map_in_place(c, f);
}

/* Check what no bound covers: a NaN stays one, zeros and infinities. */
static void relu_ends(struct conform *c)
{
    enum { N = 6, LD = 16 };
    float *x = conform_buf(c, LD, sizeof *x);
    const float in[N] = {NAN, INFINITY, -INFINITY, -0.0F, -1e-45F, 3.0F};
    memcpy(x, in, sizeof in);
    struct tec_map_args a = {.x = x, .max_rows = 1, .cols = N, .ldx = LD, .ldy = LD};
    a.y = conform_buf(c, LD, sizeof *a.y);
    a.rows = conform_live(c, 1);
    struct conform_call call = {.ref = &a, .fast = &a, .live = 1, .full = true, .outs = 1};
    call.out[0] = (struct conform_out){a.y, 1, sizeof in, LD * 4, NULL, 0, 1};
    conform_run(c, &call);
    for (int which = 0; which < 2; which++) {
        const float *y = which ? c->want[0] : c->got[0];
        if (!isnan(y[0]) || !isinf(y[1]) || y[1] < 0 || y[2] != 0 || y[3] != 0 || y[4] != 0 ||
            y[5] != 3.0F)
            conform_fail(c, "%sends: %g %g %g %g %g %g", which ? "reference " : "", (double)y[0],
                         (double)y[1], (double)y[2], (double)y[3], (double)y[4], (double)y[5]);
    }
    conform_end(c);
}

static struct activation same(double x)
{
    return (struct activation){x, 0};
}

void conform_gelu(struct conform *c)
{
    map(c, activation_gelu);
}

static struct activation positive(double x)
{
    return (struct activation){x > 0 ? x : 0, 0};
}

void conform_gelu_erf(struct conform *c)
{
    map(c, activation_gelu_erf);
}

void conform_relu(struct conform *c)
{
    map(c, positive);
    relu_ends(c);
}

void conform_silu(struct conform *c)
{
    map(c, activation_silu);
}

void conform_copy_rows(struct conform *c)
{
    map(c, same);
}

/* cap tanh(x / cap): some units of 2^-24 of it, however small x is beside the cap. */
static void soft_cap_shape(struct conform *c, struct shape s, int how)
{
    struct tec_soft_cap_args a = {
        .max_rows = s.rows, .cols = s.cols, .cap = (float)conform_int(1, 60)};
    a.ldx = conform_ld(s.cols);
    a.ldy = conform_ld(s.cols);
    size_t count = (size_t)s.rows * (size_t)a.ldx;
    float *x = conform_buf(c, count, sizeof *x);
    fill(x, count, how);
    a.x = x;
    a.y = conform_buf(c, (size_t)s.rows * (size_t)a.ldy, sizeof *a.y);
    a.rows = conform_live(c, s.rows);
    struct conform_call call = {.ref = &a, .fast = &a, .live = s.rows, .full = true, .outs = 1};
    call.out[0] =
        (struct conform_out){a.y, s.rows, (size_t)s.cols * 4, (size_t)a.ldy * 4, NULL, 0, 1};
    conform_run(c, &call);
    for (int r = 0; r < s.rows; r += 1 + s.rows / 32)
        for (int i = 0; i < s.cols; i++) {
            double in = (double)x[(size_t)r * (size_t)a.ldx + (size_t)i], cap = (double)a.cap;
            double want = cap * tanh(in / cap), bound = ldexp(8 * fabs(want), -24) + ldexp(1, -126);
            size_t at = (size_t)r * (size_t)a.ldy + (size_t)i;
            conform_close(c, (double)((const float *)c->got[0])[at], want, bound, "f(%.9g)", in);
            conform_close(c, (double)((const float *)c->want[0])[at], want, bound,
                          "reference f(%.9g)", in);
        }
    conform_end(c);
}

void conform_soft_cap(struct conform *c)
{
    for (int i = 0; i < EDGES; i++)
        soft_cap_shape(c, (struct shape){conform_scale(c, edges[i].rows, 64), edges[i].cols}, 0);
    for (int i = 0; i < conform_few(c, RANDOM); i++)
        soft_cap_shape(c, (struct shape){conform_int(1, 20), conform_int(1, 200)}, i);
}

/* One rounding of one sum: exact on every tier. */
static void add_shape(struct conform *c, struct shape s, int how)
{
    struct tec_add_args a = {.max_rows = s.rows, .cols = s.cols};
    a.ldx = conform_ld(s.cols);
    a.ldy = conform_ld(s.cols);
    size_t count = (size_t)s.rows * (size_t)a.ldx, n = (size_t)s.rows * (size_t)a.ldy;
    float *x = conform_buf(c, count, sizeof *x), *before = conform_buf(c, n, sizeof *before);
    fill(x, count, how);
    fill(before, n, how);
    a.x = x;
    a.y = conform_buf(c, n, sizeof *a.y);
    memcpy(a.y, before, n * sizeof *a.y);
    a.rows = conform_live(c, s.rows);
    struct conform_call call = {.ref = &a, .fast = &a, .live = s.rows, .full = true, .outs = 1};
    call.out[0] =
        (struct conform_out){a.y, s.rows, (size_t)s.cols * 4, (size_t)a.ldy * 4, NULL, 0, 1};
    conform_run(c, &call);
    for (int r = 0; r < s.rows; r += 1 + s.rows / 32)
        for (int i = 0; i < s.cols; i++) {
            size_t at = (size_t)r * (size_t)a.ldy + (size_t)i;
            double want = (double)(before[at] + x[(size_t)r * (size_t)a.ldx + (size_t)i]);
            conform_close(c, (double)((const float *)c->got[0])[at], want, 0, "row %d + %d", r, i);
            conform_close(c, (double)((const float *)c->want[0])[at], want, 0,
                          "reference row %d + %d", r, i);
        }
    conform_end(c);
}

void conform_add(struct conform *c)
{
    for (int i = 0; i < EDGES; i++)
        add_shape(c, (struct shape){conform_scale(c, edges[i].rows, 64), edges[i].cols}, 0);
    for (int i = 0; i < conform_few(c, RANDOM); i++)
        add_shape(c, (struct shape){conform_int(1, 20), conform_int(1, 200)}, i);
}
