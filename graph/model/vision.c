/* vision.c - how many rows of a prefix a picture takes, and which position each patch has. */
#include "graph/model/model.h"

#include <math.h>

/* Number of boundaries k / n, k = 1 .. n - 1, at or below the share i / m of a side. In float32, as
 * the models were trained: a share that is rounded up to a boundary belongs to the next row. */
static int bucket(int i, int m, int n)
{
    float share = fminf((float)i / (float)m, 1.0F - 1e-6F);
    int at = 0;
    for (int k = 1; k < n; k++)
        at += (float)k / (float)n <= share;
    return at;
}

int tec_model_grid_row(int side, int patches, int i)
{
    int n = side, m = (int)lround(sqrt((double)patches));
    return m == n ? i : bucket(i / m, m, n) * n + bucket(i % m, m, n);
}

/* Weights of the entries of a side of n that make entry `at` of one of m; *first is the first of
 * them. A triangle as wide as an entry of the smaller side; what lies outside counts for nothing.
 */
static int weigh(int at, int m, int n, int *first, double *weights)
{
    double scale = (double)n / m, reach = scale > 1.0 ? scale : 1.0, sum = 0.0;
    double centre = scale * (at + 0.5);
    int low = (int)(centre - reach + 0.5), high = (int)(centre + reach + 0.5);
    *first = low > 0 ? low : 0;
    high = high < n ? high : n;
    for (int i = *first; i < high; i++) {
        double far = fabs((i + 0.5 - centre) / reach);
        weights[i - *first] = far < 1.0 ? 1.0 - far : 0.0;
        sum += weights[i - *first];
    }
    for (int i = *first; i < high; i++)
        weights[i - *first] /= sum;
    return high - *first;
}

/* The two entries of a side of n between which entry `at` of one of m stands, both sides beginning
 * and ending alike. */
static int between(int at, int m, int n, int *first, double *weights)
{
    double place = m > 1 ? (double)at * (n - 1) / (m - 1) : 0.0;
    *first = place < n - 1 ? (int)place : n - 1;
    weights[1] = place - *first;
    weights[0] = 1.0 - weights[1];
    return *first < n - 1 ? 2 : 1;
}

void tec_model_grid_resize(const struct tec_grid_table *t, struct tec_picture_size grid, float *out)
{
    double down[TEC_MAX_POSITION_SIDE + 1] = {0}, across[TEC_MAX_POSITION_SIDE + 1] = {0};
    int (*const share)(int, int, int, int *, double *) = t->corners ? between : weigh;
    size_t width = (size_t)t->width, side = (size_t)t->side;
    int top, left;
    for (int i = 0; i < grid.h * grid.w; i++) {
        int lines = share(i / grid.w, grid.h, t->side, &top, down);
        int columns = share(i % grid.w, grid.w, t->side, &left, across);
        for (size_t c = 0; c < width; c++) {
            double sum = 0.0;
            for (int k = 0; k < lines * columns; k++) {
                int line = top + k / columns, column = left + k % columns;
                const float *row = t->at + ((size_t)line * side + (size_t)column) * width;
                sum += down[k / columns] * across[k % columns] * (double)row[c];
            }
            out[(size_t)i * width + c] = (float)sum;
        }
    }
}

struct tec_picture_size tec_vision_picture(const struct tec_vision *v, int slot)
{
    return slot < v->n_sizes ? v->sizes[slot]
                             : (struct tec_picture_size){v->image_size, v->image_size};
}

int tec_vision_patches(const struct tec_vision *v, int n)
{
    int all = 0;
    if (!v->n_sizes)
        return n * v->patches;
    for (int i = 0; i < n && i < v->n_sizes; i++) {
        struct tec_picture_size size = tec_vision_picture(v, i);
        all += size.h / v->patch * (size.w / v->patch);
    }
    return all;
}

int tec_vision_tokens(const struct tec_vision *v, int n)
{
    return v->n_sizes ? tec_vision_patches(v, n) / (v->shuffle * v->shuffle) : n * v->tokens;
}

int tec_vision_rows(const struct tec_vision *v)
{
    return v->tokens + v->n_before + v->n_behind;
}
