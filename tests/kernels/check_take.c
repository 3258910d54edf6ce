/* check_take.c - checks that rows are gathered by number into groups side by side, and that a
 * number out of range reads row 0. */
#include "kernels/bf16.h"
#include "tests/kernels/conform.h"

#include <stdio.h>
#include <string.h>

struct shape {
    int rows, x_rows, cols, group;
};

/* Row numbers in and out of range, some of them twice. */
static const int *numbers(struct conform *c, struct shape s)
{
    int *row = conform_ints(c, (size_t)s.rows, 0);
    for (int r = 0; r < s.rows; r++)
        row[r] = conform_int(0, 5) ? conform_int(0, s.x_rows - 1)
                                   : (conform_int(0, 1) ? s.x_rows : -1 - conform_int(0, 2));
    return row;
}

/* The place of each row in the output, in floats. */
static const int *places(struct conform *c, const struct tec_take_args *a)
{
    int *at = conform_ints(c, (size_t)a->max_rows, 0);
    for (int r = 0; r < a->max_rows; r++)
        at[r] = r / a->group * a->ldy + r % a->group * a->cols;
    return at;
}

static void compare(struct conform *c, const struct tec_take_args *a, const int *at)
{
    for (int r = 0; r < a->max_rows; r++) {
        int row = a->row[r] < 0 || a->row[r] >= a->x_rows ? 0 : a->row[r];
        for (int i = 0; i < a->cols; i++) {
            float x = a->x[(size_t)row * (size_t)a->ldx + (size_t)i];
            float y = a->round ? tec_bf16_round(x) : x;
            size_t to = (size_t)at[r] + (size_t)i;
            conform_close(c, (double)((const float *)c->got[0])[to], (double)y, 0, "row %d col %d",
                          r, i);
            conform_close(c, (double)((const float *)c->want[0])[to], (double)y, 0,
                          "reference row %d col %d", r, i);
        }
    }
}

static void take_shape(struct conform *c, struct shape s, enum conform_family family)
{
    struct tec_take_args a = {.max_rows = s.rows, .x_rows = s.x_rows, .cols = s.cols};
    a.group = s.group;
    a.round = conform_int(0, 1);
    a.ldx = conform_ld(s.cols);
    a.ldy = conform_ld(s.cols * s.group);
    float *x = conform_buf(c, (size_t)s.x_rows * (size_t)a.ldx, sizeof *x);
    conform_fill(x, (size_t)s.x_rows * (size_t)a.ldx, family, 2.0F);
    a.x = x;
    a.row = numbers(c, s);
    size_t wide = ((size_t)s.rows + (size_t)s.group - 1) / (size_t)s.group;
    a.y = conform_buf(c, wide * (size_t)a.ldy, sizeof *a.y);
    const int *at = places(c, &a);
    a.rows = conform_live(c, s.rows);
    struct conform_call call = {.ref = &a, .fast = &a, .live = s.rows, .full = true, .outs = 1};
    call.out[0] = (struct conform_out){a.y, s.rows, (size_t)s.cols * 4, 4, at, 0, 1};
    conform_run(c, &call);
    compare(c, &a, at);
    if (s.cols >= 1024) {
        char name[40];
        snprintf(name, sizeof name, "%dx%dx%d", s.rows, s.cols, s.group);
        conform_time(c, name, &call, 8.0 * s.rows * s.cols, 0);
    }
    conform_end(c);
}

void conform_take_rows(struct conform *c)
{
    static const struct shape edges[] = {{1, 1, 1, 1},  {3, 5, 7, 1},   {2, 9, 16, 2},
                                         {7, 4, 17, 3}, {5, 3, 33, 8},  {8, 8, 4, 8},
                                         {6, 2, 12, 4}, {4, 9, 515, 3}, {7, 277, 4096, 7}};
    for (size_t i = 0; i < sizeof edges / sizeof edges[0]; i++)
        take_shape(c, edges[i], CONFORM_NORMAL);
    for (int i = 0; i < 40; i++)
        take_shape(c,
                   (struct shape){conform_int(1, 30), conform_int(1, 20), conform_int(1, 90),
                                  conform_int(0, 1) ? 1 : conform_int(1, 7)},
                   (enum conform_family)(i % CONFORM_FAMILIES));
}
