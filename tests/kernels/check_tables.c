/* check_tables.c - checks the small kernels that read tables and take means: rows added from a
 * table, means of runs, and reads of KV slots. */
#include "kernels/bf16.h"
#include "tests/kernels/conform.h"

#include <float.h>
#include <math.h>

/* Choose sizes at the edges of vectors first, then any. */
static int choose(int i, int most)
{
    static const int edges[] = {1, 7, 8, 9, 15, 16, 17, 31, 33};
    int n = sizeof edges / sizeof edges[0];
    return i < n ? edges[i] : conform_int(1, most);
}

/* Make `rows` rows of stride ld, of which cols are used. */
static float *matrix(struct conform *c, int rows, int ld, enum conform_family family)
{
    float *x = conform_buf(c, (size_t)rows * (size_t)ld, sizeof *x);
    conform_fill(x, (size_t)rows * (size_t)ld, family, 2.0F);
    return x;
}

static float *copied(struct conform *c, const float *x, int count)
{
    float *y = conform_buf(c, (size_t)count, sizeof *y);
    for (int i = 0; i < count; i++)
        y[i] = x[i];
    return y;
}

/* Compare both results at one place with the value, which is rounded at most once. */
static void both(struct conform *c, int at, double exact, double bound, int row, int col)
{
    conform_close(c, (double)((const float *)c->got[0])[at], exact, bound, "row %d column %d", row,
                  col);
    conform_close(c, (double)((const float *)c->want[0])[at], exact, bound,
                  "reference row %d column %d", row, col);
}

void conform_add_table(struct conform *c)
{
    for (int i = 0; i < 40; i++) {
        int rows = conform_int(1, 30), cols = choose(i, 200), period = conform_int(1, 12);
        struct tec_add_table_args a = {.max_rows = rows, .cols = cols, .period = period};
        a.ldy = conform_ld(cols);
        a.ldt = conform_ld(cols);
        a.table = matrix(c, period, a.ldt, CONFORM_NORMAL);
        a.y = matrix(c, rows, a.ldy, (enum conform_family)(i % CONFORM_FAMILIES));
        const float *before = copied(c, a.y, rows * a.ldy);
        a.rows = conform_live(c, rows);
        int *row = conform_ints(c, (size_t)rows, 0); /* some rows lie outside the table */
        for (int r = 0; r < rows; r++)
            row[r] = conform_int(-2, period + 1);
        a.row = i % 2 ? row : NULL;
        struct conform_call call = {.ref = &a, .fast = &a, .live = rows, .full = true, .outs = 1};
        call.out[0] =
            (struct conform_out){a.y, rows, (size_t)cols * 4, (size_t)a.ldy * 4, NULL, 0, 1};
        conform_run(c, &call);
        for (int r = 0; r < rows; r++)
            for (int k = 0; k < cols; k++) {
                int at = !a.row ? r % period : row[r] < 0 || row[r] >= period ? 0 : row[r];
                double exact = (double)before[r * a.ldy + k] + (double)a.table[at * a.ldt + k];
                both(c, r * a.ldy + k, exact, fabs(exact) * (double)FLT_EPSILON / 2, r, k);
            }
        conform_end(c);
    }
}

/* The mean of the live part of a run: sums of at most 40 float32 numbers are off by 40 2^-53 of the
 * absolute terms, and the result is rounded once. */
static void expect_mean(struct conform *c, const struct tec_mean_args *a, int r)
{
    struct tec_span s = a->span[r];
    int to = s.slot < 0 || s.slot >= a->x_rows || s.length < 0 ? s.slot : s.slot + s.length;
    to = to > a->x_rows ? a->x_rows : to;
    for (int k = 0; k < a->cols; k++) {
        double sum = 0, size = 0, n = to - s.slot;
        for (int i = s.slot; i < to; i++) {
            sum += (double)a->x[i * a->ldx + k];
            size += fabs((double)a->x[i * a->ldx + k]);
        }
        double exact = n > 0 ? sum / n : 0;
        double bound = n > 0 ? size / n * ldexp(40, -53) : 0;
        both(c, r * a->ldy + k, exact,
             bound + fabs(exact) * (double)FLT_EPSILON / 2 + ldexp(1, -150), r, k);
    }
}

void conform_mean_rows(struct conform *c)
{
    for (int i = 0; i < 40; i++) {
        int rows = conform_int(1, 9), cols = choose(i, 300), x_rows = conform_int(1, 40);
        struct tec_mean_args a = {.max_rows = rows, .x_rows = x_rows, .cols = cols};
        a.ldx = conform_ld(cols);
        a.ldy = conform_ld(cols);
        a.x = matrix(c, x_rows, a.ldx, (enum conform_family)(i % CONFORM_FAMILIES));
        a.y = conform_buf(c, (size_t)rows * (size_t)a.ldy, sizeof *a.y);
        struct tec_span *span = conform_buf(c, (size_t)rows, sizeof *span);
        for (int r = 0; r < rows; r++) /* most inside, some past an end, some before 0 */
            span[r] = (struct tec_span){conform_int(0, 9) ? conform_int(0, x_rows - 1)
                                                          : conform_int(-2, x_rows + 2),
                                        conform_int(0, 9) ? conform_int(0, 12) : -1};
        a.span = span;
        a.rows = conform_live(c, rows);
        struct conform_call call = {.ref = &a, .fast = &a, .live = rows, .full = true, .outs = 1};
        call.out[0] =
            (struct conform_out){a.y, rows, (size_t)cols * 4, (size_t)a.ldy * 4, NULL, 0, 1};
        conform_run(c, &call);
        for (int r = 0; r < rows; r++)
            expect_mean(c, &a, r);
        conform_end(c);
    }
}

void conform_euler(struct conform *c)
{
    for (int i = 0; i < 40; i++) {
        int rows = conform_int(1, 51), cols = choose(i, 64);
        struct tec_euler_args a = {.max_rows = rows, .cols = cols, .dt = -0.1F};
        a.ldx = conform_ld(cols);
        a.ldv = conform_ld(cols);
        a.x = matrix(c, rows, a.ldx, CONFORM_NORMAL);
        a.v = matrix(c, rows, a.ldv, (enum conform_family)(i % CONFORM_FAMILIES));
        const float *before = copied(c, a.x, rows * a.ldx);
        a.rows = conform_live(c, rows);
        const int counts[] = {0, 1, conform_int(0, rows), rows, rows + 9, -3};
        int fixed = i % 2 ? counts[conform_int(0, 5)] : 0;
        if (i % 2)
            a.fixed = conform_ints(c, 1, fixed);
        struct conform_call call = {.ref = &a, .fast = &a, .live = rows, .full = true, .outs = 1};
        call.out[0] =
            (struct conform_out){a.x, rows, (size_t)cols * 4, (size_t)a.ldx * 4, NULL, 0, 1};
        conform_run(c, &call);
        for (int r = 0; r < rows; r++)
            for (int k = 0; k < cols; k++) {
                if (r < fixed) {
                    both(c, r * a.ldx + k, (double)before[r * a.ldx + k], 0, r, k);
                    continue;
                }
                double step = (double)a.dt * (double)a.v[r * a.ldv + k];
                double exact = (double)before[r * a.ldx + k] + step;
                double size = fabs(exact) + 2 * fabs(step); /* two roundings: product, sum */
                both(c, r * a.ldx + k, exact, size * (double)FLT_EPSILON / 2 + ldexp(1, -149), r,
                     k);
            }
        conform_end(c);
    }
}

/* Compare the guided velocities: five roundings, of which the last three of what is pulled away. */
static void expect_guided(struct conform *c, const struct tec_guide_args *a, const float *before,
                          int r)
{
    for (int k = 0; k < a->cols; k++) {
        double v = (double)before[r * a->ldv + k], x = (double)a->x[r * a->ldx + k];
        double p = (double)a->previous[r * a->ldp + k], step = (double)a->time * v;
        double pull = (double)a->gain * (double)a->weight[r], away = p - (x - step);
        double size = fabs(pull) * (3 * fabs(p) + 3 * fabs(x) + 4 * fabs(step)) + fabs(v);
        double exact = v - pull * away;
        both(c, r * a->ldv + k, exact, size * (double)FLT_EPSILON + ldexp(1 + fabs(pull), -148), r,
             k);
    }
}

void conform_guide(struct conform *c)
{
    for (int i = 0; i < 40; i++) {
        int rows = conform_int(1, 51), cols = choose(i, 64);
        struct tec_guide_args a = {.max_rows = rows, .cols = cols, .time = 0.7F, .gain = 4.5F};
        a.ldx = conform_ld(cols);
        a.ldv = conform_ld(cols);
        a.ldp = conform_ld(cols);
        a.x = matrix(c, rows, a.ldx, CONFORM_NORMAL);
        a.previous = matrix(c, rows, a.ldp, CONFORM_NORMAL);
        a.v = matrix(c, rows, a.ldv, (enum conform_family)(i % CONFORM_FAMILIES));
        float *weight = conform_buf(c, (size_t)rows, sizeof *weight);
        for (int r = 0; r < rows; r++)
            weight[r] = (float)conform_int(0, 4) / 4.0F;
        a.weight = weight;
        const float *before = copied(c, a.v, rows * a.ldv);
        a.rows = conform_live(c, rows);
        struct conform_call call = {.ref = &a, .fast = &a, .live = rows, .full = true, .outs = 1};
        call.out[0] =
            (struct conform_out){a.v, rows, (size_t)cols * 4, (size_t)a.ldv * 4, NULL, 0, 1};
        conform_run(c, &call);
        for (int r = 0; r < rows; r++)
            expect_guided(c, &a, before, r);
        conform_end(c);
    }
}

static void read_kv(struct conform *c, bool bf16)
{
    for (int i = 0; i < 40; i++) {
        int rows = conform_int(1, 30), cols = choose(i, 300), slots = conform_int(1, 40);
        struct tec_read_kv_args a = {.max_rows = rows, .cols = cols, .ldy = conform_ld(cols)};
        float *kv = matrix(c, slots, cols, (enum conform_family)(i % CONFORM_FAMILIES));
        uint16_t *bits = conform_buf(c, (size_t)slots * (size_t)cols, sizeof *bits);
        conform_bits(bits, kv, (size_t)slots * (size_t)cols);
        int *slot = conform_ints(c, (size_t)rows, 0);
        for (int r = 0; r < rows; r++)
            slot[r] = conform_int(0, slots - 1);
        a.kv = bf16 ? (const void *)bits : kv;
        a.slot = slot;
        a.y = conform_buf(c, (size_t)rows * (size_t)a.ldy, sizeof *a.y);
        a.rows = conform_live(c, rows);
        struct conform_call call = {.ref = &a, .fast = &a, .live = rows, .full = true, .outs = 1};
        call.out[0] =
            (struct conform_out){a.y, rows, (size_t)cols * 4, (size_t)a.ldy * 4, NULL, 0, 1};
        conform_run(c, &call);
        for (int r = 0; r < rows; r++)
            for (int k = 0; k < cols; k++) {
                int at = slot[r] * cols + k;
                both(c, r * a.ldy + k, (double)(bf16 ? tec_bf16_float(bits[at]) : kv[at]), 0, r, k);
            }
        conform_end(c);
    }
}

void conform_read_kv_f32(struct conform *c)
{
    read_kv(c, false);
}

void conform_read_kv_bf16(struct conform *c)
{
    read_kv(c, true);
}
