/* norm.c - normalises states and actions by a checkpoint's statistics, and inverts it.
 *
 * Each convention repeats the operations of its reference in the same order and precision, because
 * any other order shows in the last bit. */
#include "base/store/norm.h"

#include "base/store/file.h"
#include "base/store/safetensors.h"

#include <math.h>
#include <string.h>

static const struct {
    const char *name, *needs;
} modes[] = {[TEC_NORM_NONE] = {"none", ""},
             [TEC_NORM_MEAN_STD] = {"mean_std", "mean and std"},
             [TEC_NORM_QUANTILE] = {"quantile", "q01 and q99"},
             [TEC_NORM_MIN_MAX] = {"min_max", "min and max"},
             [TEC_NORM_QUANTILE10] = {"quantile10", "q10 and q90"}};

/* The statistics that become -1 and 1; not of MEAN_STD, which has none. */
static const double *lows(const struct tec_norm *n)
{
    return n->mode == TEC_NORM_QUANTILE ? n->q01 : n->mode == TEC_NORM_MIN_MAX ? n->min : n->q10;
}

static const double *highs(const struct tec_norm *n)
{
    return n->mode == TEC_NORM_QUANTILE ? n->q99 : n->mode == TEC_NORM_MIN_MAX ? n->max : n->q90;
}

const char *tec_norm_mode_name(enum tec_norm_mode mode)
{
    return (unsigned)mode < sizeof modes / sizeof modes[0] ? modes[mode].name : "?";
}

const char *tec_norm_missing(const struct tec_norm *norm)
{
    bool there =
        norm->mode == TEC_NORM_NONE ||
        (norm->mode == TEC_NORM_MEAN_STD ? norm->mean && norm->std : lows(norm) && highs(norm));
    return there ? NULL : modes[norm->mode].needs;
}

/* One value of a vector. In the float32 formulas every step is a float variable, so that nothing is
 * contracted or kept in higher precision. */
struct step {
    const struct tec_norm *norm;
    size_t i;
};

static double openpi_apply(struct step s, double x)
{
    const struct tec_norm *n = s.norm;
    bool inside = s.i < n->n;
    if (n->mode == TEC_NORM_MEAN_STD)
        return (x - (inside ? n->mean[s.i] : 0.0)) / ((inside ? n->std[s.i] : 1.0) + n->eps);
    if (!inside)
        return x;
    return (x - n->q01[s.i]) / (n->q99[s.i] - n->q01[s.i] + n->eps) * 2.0 - 1.0;
}

/* Invert the normalisation of x; `half` is (x + 1) / 2, computed in the precision of x. */
static double openpi_undo(struct step s, double x, double half)
{
    const struct tec_norm *n = s.norm;
    bool inside = s.i < n->n;
    if (n->mode == TEC_NORM_MEAN_STD)
        return x * ((inside ? n->std[s.i] : 1.0) + n->eps) + (inside ? n->mean[s.i] : 0.0);
    if (!inside)
        return x;
    return half * (n->q99[s.i] - n->q01[s.i] + n->eps) + n->q01[s.i];
}

static float range(struct step s, float *low)
{
    const struct tec_norm *n = s.norm;
    float high = (float)highs(n)[s.i];
    *low = (float)lows(n)[s.i];
    float d = high - *low;
    return d == 0.0F ? (float)n->eps : d;
}

static float lerobot_apply(struct step s, float x)
{
    const struct tec_norm *n = s.norm;
    if (s.i >= n->n)
        return x;
    if (n->mode == TEC_NORM_MEAN_STD) {
        float shifted = x - (float)n->mean[s.i], divisor = (float)n->std[s.i] + (float)n->eps;
        return shifted / divisor;
    }
    float low, d = range(s, &low), twice = 2.0F * (x - low);
    return twice / d - 1.0F;
}

/* The same formulas in float64; `undo` for the inverse. */
static double lerobot_wide(struct step s, double x, bool undo)
{
    const struct tec_norm *n = s.norm;
    if (s.i >= n->n)
        return x;
    if (n->mode == TEC_NORM_MEAN_STD)
        return undo ? x * n->std[s.i] + n->mean[s.i] : (x - n->mean[s.i]) / (n->std[s.i] + n->eps);
    double low = lows(n)[s.i], d = highs(n)[s.i] - low;
    if (d == 0.0)
        d = n->eps;
    return undo ? (x + 1.0) / 2.0 * d + low : 2.0 * (x - low) / d - 1.0;
}

static float lerobot_undo(struct step s, float x)
{
    const struct tec_norm *n = s.norm;
    if (s.i >= n->n)
        return x;
    if (n->mode == TEC_NORM_MEAN_STD) {
        float scaled = x * (float)n->std[s.i];
        return scaled + (float)n->mean[s.i];
    }
    float low, d = range(s, &low), up = x + 1.0F;
    if (n->mode != TEC_NORM_MIN_MAX) {
        float scaled = up * d / 2.0F;
        return scaled + low;
    }
    float scaled = up / 2.0F * d;
    return scaled + low;
}

/* Gives the lower bound and the width of the range of value i; false if the value is not
 * normalised. */
static bool bounds(struct step s, double *low, double *d)
{
    const struct tec_norm *n = s.norm;
    if (s.i >= n->n || (n->mask && !n->mask[s.i]))
        return false;
    *low = lows(n)[s.i];
    *d = highs(n)[s.i] - *low + n->eps;
    return true;
}

static double dataset_apply(struct step s, double x)
{
    double low, d;
    if (bounds(s, &low, &d))
        x = 2.0 * (x - low) / d - 1.0;
    return x < -1.0 ? -1.0 : x > 1.0 ? 1.0 : x;
}

/* Invert the normalisation of x; `half` is (x + 1) / 2, computed in the precision of x. */
static double dataset_undo(struct step s, double x, double half)
{
    double low, d;
    return bounds(s, &low, &d) ? half * d + low : x;
}

void tec_norm_line(const struct tec_norm *norm, size_t i, double *middle, double *width)
{
    bool scored = norm->mode == TEC_NORM_MEAN_STD;
    *middle = 0.0;
    *width = 1.0;
    if (norm->mode == TEC_NORM_NONE || i >= norm->n || (norm->mask && !norm->mask[i]))
        return;
    double low = scored ? 0.0 : lows(norm)[i];
    double range = scored ? 0.0 : highs(norm)[i] - low;
    bool flat = !(range < 0.0 || range > 0.0);
    if (norm->convention != TEC_NORM_LEROBOT || (flat && !scored))
        range += norm->eps;
    *middle = scored ? norm->mean[i] : low + range / 2.0;
    *width = scored ? norm->std[i] + norm->eps : range / 2.0;
}

int tec_norm_flat(const struct tec_norm *norm, size_t n)
{
    double low, d;
    if (norm->mode == TEC_NORM_NONE || norm->convention != TEC_NORM_DATASET)
        return -1;
    for (size_t i = 0; i < n; i++)
        if (bounds((struct step){norm, i}, &low, &d) && !(d > 0.0))
            return (int)i;
    return -1;
}

/* Values before those of the next norm. */
static size_t own(const struct tec_norm *norm, size_t n)
{
    return norm->then && norm->from < n ? norm->from : n;
}

static void apply(const struct tec_norm *norm, const double *x, size_t n, double *y)
{
    for (size_t i = 0; i < n; i++) {
        struct step s = {norm, i};
        if (norm->mode == TEC_NORM_NONE)
            y[i] = x[i];
        else if (norm->convention == TEC_NORM_LEROBOT && norm->wide)
            y[i] = lerobot_wide(s, x[i], false);
        else if (norm->convention == TEC_NORM_LEROBOT)
            y[i] = (double)lerobot_apply(s, (float)x[i]);
        else if (norm->convention == TEC_NORM_DATASET)
            y[i] = dataset_apply(s, x[i]);
        else
            y[i] = openpi_apply(s, x[i]);
    }
}

void tec_norm_apply(const struct tec_norm *norm, const double *x, size_t n, double *y)
{
    size_t first = own(norm, n);
    apply(norm, x, first, y);
    if (first < n)
        apply(norm->then, x + first, n - first, y + first);
}

static void undo(const struct tec_norm *norm, const double *x, size_t n, double *y)
{
    for (size_t i = 0; i < n; i++) {
        struct step s = {norm, i};
        if (norm->mode == TEC_NORM_NONE)
            y[i] = x[i];
        else if (norm->convention == TEC_NORM_LEROBOT && norm->wide)
            y[i] = lerobot_wide(s, x[i], true);
        else if (norm->convention == TEC_NORM_LEROBOT)
            y[i] = (double)lerobot_undo(s, (float)x[i]);
        else if (norm->convention == TEC_NORM_DATASET)
            y[i] = dataset_undo(s, x[i], (x[i] + 1.0) / 2.0);
        else
            y[i] = openpi_undo(s, x[i], (x[i] + 1.0) / 2.0);
    }
}

void tec_norm_undo(const struct tec_norm *norm, const double *x, size_t n, double *y)
{
    size_t first = own(norm, n);
    undo(norm, x, first, y);
    if (first < n)
        undo(norm->then, x + first, n - first, y + first);
}

void tec_norm_undo_f32(const struct tec_norm *norm, const float *x, size_t n, double *y)
{
    for (size_t i = 0; i < n; i++) {
        struct step s = {norm, i};
        float up = x[i] + 1.0F, half = up / 2.0F;
        if (norm->mode == TEC_NORM_NONE)
            y[i] = (double)x[i];
        else if (norm->convention == TEC_NORM_LEROBOT && norm->wide)
            y[i] = lerobot_wide(s, (double)x[i], true);
        else if (norm->convention == TEC_NORM_LEROBOT)
            y[i] = (double)lerobot_undo(s, x[i]);
        else if (norm->convention == TEC_NORM_DATASET)
            y[i] = dataset_undo(s, (double)x[i], (double)half);
        else
            y[i] = openpi_undo(s, (double)x[i], (double)half);
    }
}
