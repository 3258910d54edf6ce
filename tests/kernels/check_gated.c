/* check_gated.c - checks the gated activations of every tier, f(gate) * up, against float64 within
 * derived bounds. */
#include "kernels/matrix.h"
#include "tests/kernels/activation.h"
#include "tests/kernels/conform.h"

#include <math.h>
#include <stdio.h>

struct shape {
    int rows, cols;
};

static const struct shape edges[] = {{1, 1},  {3, 7},  {2, 8},     {5, 9},     {4, 15},
                                     {3, 16}, {9, 33}, {51, 4096}, {1, 16384}, {532, 16384}};
enum { EDGES = sizeof edges / sizeof edges[0], RANDOM = 30 };

typedef struct activation (*function)(double x);

static void compare(struct conform *c, const struct tec_gated_args *a, function f)
{
    for (int r = 0; r < a->max_rows; r += 1 + a->max_rows / 16)
        for (int i = 0; i < a->cols; i++) {
            const float *x = a->x + (size_t)r * (size_t)a->ldx + i;
            double gate = (double)x[a->gate_at], up = (double)x[a->up_at];
            struct activation y = f(gate);
            y.bound = y.bound * fabs(up) + ldexp(fabs(y.value * up), -24) + ldexp(1, -149);
            y.value *= up;
            double bound = a->round ? activation_rounded(y) : y.bound;
            size_t at = (size_t)r * (size_t)a->ldy + (size_t)i;
            conform_close(c, (double)((const float *)c->got[0])[at], y.value, bound,
                          "f(%.9g) * %.9g", gate, up);
            conform_close(c, (double)((const float *)c->want[0])[at], y.value, bound,
                          "reference f(%.9g) * %.9g", gate, up);
        }
}

static void gated_shape(struct conform *c, struct shape s, function f, enum conform_family family)
{
    struct tec_gated_args a = {.max_rows = s.rows, .cols = s.cols, .round = conform_int(0, 1)};
    int padded = tec_padded(s.cols), swap = conform_int(0, 1);
    a.gate_at = swap ? padded : 0;
    a.up_at = swap ? 0 : padded;
    a.ldx = conform_ld(2 * padded);
    a.ldy = conform_ld(s.cols);
    size_t count = (size_t)s.rows * (size_t)a.ldx;
    float *x = conform_buf(c, count, sizeof *x);
    conform_fill(x, count, family, 3.0F);
    a.x = x;
    a.y = conform_buf(c, (size_t)s.rows * (size_t)a.ldy, sizeof *a.y);
    a.rows = conform_live(c, s.rows);
    struct conform_call call = {.ref = &a, .fast = &a, .live = s.rows, .full = true, .outs = 1};
    call.out[0] =
        (struct conform_out){a.y, s.rows, (size_t)s.cols * 4, (size_t)a.ldy * 4, NULL, 0, 1};
    conform_run(c, &call);
    compare(c, &a, f);
    if (a.round)
        conform_rounded(c, s.rows, a.ldy, s.cols);
    if (s.cols >= 4096) {
        char name[40];
        snprintf(name, sizeof name, "%dx%d", s.rows, s.cols);
        conform_time(c, name, &call, 12.0 * s.rows * s.cols, 0);
    }
    conform_end(c);
}

static void gated(struct conform *c, function f)
{
    for (int i = 0; i < EDGES; i++)
        gated_shape(c, (struct shape){conform_scale(c, edges[i].rows, 20), edges[i].cols}, f,
                    CONFORM_NORMAL);
    for (int i = 0; i < conform_few(c, RANDOM); i++)
        gated_shape(c, (struct shape){conform_int(1, 20), conform_int(1, 200)}, f,
                    (enum conform_family)(i % CONFORM_FAMILIES));
}

void conform_gelu_mul(struct conform *c)
{
    gated(c, activation_gelu);
}

void conform_silu_mul(struct conform *c)
{
    gated(c, activation_silu);
}
