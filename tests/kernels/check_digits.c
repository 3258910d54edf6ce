/* check_digits.c - checks rows of x that a kernel writes as signed digits for products of bytes:
 * every byte, and every unit, against ones found here in another way. */
#include "kernels/cuda/row_digits_room.h"
#include "tests/kernels/conform.h"
#include "tests/kernels/cuda_tier.h"

#include <math.h>
#include <string.h>

enum { BEFORE = 0x5a };

/* What is to be in memory for rows first .. first + count - 1, where `live` is the row that lives
 * no more. */
struct expected {
    const struct tec_gemm_args *a;
    struct tec_cuda_digits form;
    const int *order;
    int first, count, live;
    signed char *digits;
    float *units;
};

static float number(const struct expected *e, int r, int k)
{
    return e->a
        ->x[(size_t)(e->first + r) * (size_t)e->a->ldx + (size_t)(e->order ? e->order[k] : k)];
}

/* The unit of a group: the largest / 127, or the least power of two of which the largest number is
 * no more than these digits hold. What x is multiplied by: *per. */
static float unit_of(const struct expected *e, double largest, double *per)
{
    double most = 0.0;
    int finer = 126;
    if (!isfinite(largest)) {
        *per = 0.0;
        return NAN;
    }
    if (e->form.digits == 1) {
        float least = (float)fmax(largest, ldexp(1.0, -100)), unit = least * (1.0F / 127.0F);
        *per = (double)(1.0F / unit);
        return unit;
    }
    for (int d = 0; d < e->form.digits; d++)
        most = 256.0 * most + 127.0;
    while (rint(ldexp(largest, finer)) > most)
        finer--;
    *per = ldexp(1.0, finer);
    return (float)ldexp(1.0, -finer);
}

/* A number's digits, each the nearest of what is left to a multiple of its weight. */
static void put_number(const struct expected *e, int r, int step, int in, double whole)
{
    int rows = DIGITS_ROWS,
        steps = tec_cuda_digits_groups(&e->form) * tec_cuda_digits_steps(&e->form);
    for (int d = 0; d < e->form.digits; d++) {
        double weight = pow(256.0, e->form.digits - 1 - d), digit = floor(whole / weight + 0.5);
        /* of all below it, at most 127 of each weight are left, or 128 too few */
        if (whole - digit * weight > weight - 1.0 - (weight - 1.0) / 255.0 * 128.0)
            digit += 1.0;
        size_t place = (size_t)(r / rows) * (size_t)steps + (size_t)step;
        place = place * (size_t)(rows / 8) + (size_t)(r % rows / 8);
        place = place * (size_t)e->form.digits + (size_t)d;
        e->digits[place * 256 + (size_t)(in / 16 * 128 + r % 8 * 16 + in % 16)] =
            (signed char)digit;
        whole -= digit * weight;
    }
}

static void put_group(const struct expected *e, int r, int group)
{
    int steps = tec_cuda_digits_steps(&e->form), begin = group * e->form.group;
    double largest = 0.0, per;
    for (int k = begin; k < begin + e->form.group && k < e->form.k; k++) {
        double size = fabs((double)number(e, r, k));
        largest = size > largest || isnan(size) ? size : largest;
        if (isnan(largest))
            break;
    }
    size_t row =
        (size_t)(r / DIGITS_ROWS) * (size_t)tec_cuda_digits_groups(&e->form) + (size_t)group;
    e->units[row * DIGITS_ROWS + (size_t)(r % DIGITS_ROWS)] = unit_of(e, largest, &per);
    for (int i = 0; i < steps * DIGITS_K; i++) {
        bool is = i < e->form.group && begin + i < e->form.k && per > 0.0;
        float scaled = is ? (float)((double)number(e, r, begin + i) * per) : 0.0F;
        put_number(e, r, group * steps + i / DIGITS_K, i % DIGITS_K, rint((double)scaled));
    }
}

static void compare(struct conform *c, const struct expected *e, const unsigned char *got,
                    const unsigned char *want, size_t digits, size_t size)
{
    const struct tec_cuda_digits *f = &e->form;
    size_t at = 0;
    while (at < digits && got[at] == want[at])
        at++;
    for (size_t i = digits; i < size && at >= digits; i += sizeof(float)) {
        float unit, other;
        memcpy(&unit, got + i, sizeof unit);
        memcpy(&other, want + i, sizeof other);
        if (memcmp(&unit, &other, sizeof unit) == 0 || (isnan(unit) && isnan(other)))
            at = i + sizeof unit;
        else
            break;
    }
    if (at < size)
        conform_fail(c,
                     "k %d, groups of %d, %d digits, rows %d + %d of %d: byte %zu, of %zu and then "
                     "units, is %d, not %d",
                     f->k, f->group, f->digits, e->first, e->count, e->live, at, digits, got[at],
                     want[at]);
}

/* Numbers of one size, of very different ones, at the edges of what digits hold; not finite. */
static void fill(float *x, int k)
{
    int family = conform_int(0, 3);
    conform_fill(x, (size_t)k, CONFORM_NORMAL, 1.0F);
    for (int i = 0; i < k && family == 1; i++)
        x[i] = ldexpf(x[i], i / 24 % 3 ? conform_int(-3, 3) : conform_int(-140, 90));
    for (int i = 0; i < k && family == 2; i++) {
        uint32_t edge = conform_int(0, 1) ? 0x3f7efeffU : 0x3f7efefeU;
        uint32_t bits = edge + (uint32_t)conform_int(-2, 2) + ((uint32_t)(i / 40 % 5) << 23);
        memcpy(&x[i], &bits, sizeof bits);
        x[i] = conform_int(0, 1) ? x[i] : -x[i];
    }
    if (family == 3)
        x[conform_int(0, k - 1)] = conform_int(0, 1) ? INFINITY : NAN;
}

static int *permuted(struct conform *c, int k)
{
    int *order = conform_ints(c, (size_t)k, 0);
    for (int i = 0; i < k; i++) {
        int other = conform_int(0, i);
        order[i] = order[other];
        order[other] = i;
    }
    return order;
}

static void rows_of(struct conform *c, struct tec_cuda_digits form, int rows, int live, int first)
{
    struct tec_gemm_args a = {.k = form.k, .max_rows = rows, .ldx = conform_ld(form.k)};
    struct expected e = {
        .a = &a, .form = form, .first = first, .count = rows - first, .live = live};
    size_t digits = tec_cuda_digits_units(&form, e.count);
    size_t size = digits + digits / tec_cuda_digits_piece(&form) * DIGITS_ROWS * sizeof(float);
    a.ldx += conform_int(0, 3) ? 0 : 1;
    float *x = conform_buf(c, (size_t)rows * (size_t)a.ldx, sizeof *x);
    for (int r = 0; r < rows; r++)
        fill(x + (size_t)r * (size_t)a.ldx, form.k);
    a.x = x;
    a.rows = conform_ints(c, 1, live);
    e.order = conform_int(0, 2) ? NULL : permuted(c, form.k);
    unsigned char *got = conform_buf(c, size, 1), *want = conform_buf(c, size, 1);
    memset(got, BEFORE, size);
    memset(want, BEFORE, size);
    e.digits = (signed char *)want;
    e.units = (float *)(void *)(want + digits);
    for (int r = 0; r < e.count && first + r < live; r++)
        for (int g = 0; g < tec_cuda_digits_groups(&form); g++)
            put_group(&e, r, g);
    if (cuda_tier_digits(&a, &form, e.order, first, e.count, got, size))
        compare(c, &e, got, want, digits, size);
    if (tec_cuda_digits_room(size, &form) != ceil_div(e.count, DIGITS_ROWS) * DIGITS_ROWS)
        conform_fail(c, "%zu bytes have room for %d rows", size, tec_cuda_digits_room(size, &form));
    conform_end(c);
}

void conform_digits(struct conform *c)
{
    static const int groups[] = {8, 16, 24, 32, 40, 64, 72, 96, 128, 136, 160, 256, 520};
    enum { GROUPS = sizeof groups / sizeof groups[0] };
    for (int digits = 1; digits <= 3; digits++)
        for (int i = 0; i < GROUPS; i++) {
            struct tec_cuda_digits form = {conform_int(1, 4 * groups[i]), groups[i], digits};
            int live = conform_int(1, 80), rows = live + conform_int(0, 9);
            rows_of(c, form, rows, live, 0);
            rows_of(c, form, 64 + rows, 64 + live, 64);
        }
    rows_of(c, (struct tec_cuda_digits){2100, 128, 1}, 9, 9, 0);
    rows_of(c, (struct tec_cuda_digits){4096, 4096, 2}, 9, 9, 0);
}
