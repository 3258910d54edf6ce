/* norm.h - normalisation statistics of one vector (a state, an action), and their formulas. */
#ifndef TEC_BASE_STORE_NORM_H
#define TEC_BASE_STORE_NORM_H

#include "base/arena.h"
#include "base/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct tec_tensors;

enum tec_norm_mode {
    TEC_NORM_NONE,
    TEC_NORM_MEAN_STD,
    TEC_NORM_QUANTILE,
    TEC_NORM_MIN_MAX,
    TEC_NORM_QUANTILE10
};

/* Three families of formulas, which differ in where eps enters and in precision.
 *
 * TEC_NORM_OPENPI, in float64, eps = 1e-6. With s = std + eps, d = q99 - q01 + eps:
 *   mean_std   apply (x - mean) / s           undo x * s + mean
 *   quantile   apply (x - q01) / d * 2 - 1    undo (x + 1) / 2 * d + q01
 *   Beyond n values: mean_std takes mean 0 and std 1, quantile copies.
 *
 * TEC_NORM_LEROBOT, every step in float32, eps from the file (1e-8). With d = q99 - q01,
 * q90 - q10 or max - min, replaced by eps only where it is exactly 0:
 *   mean_std   apply (x - mean) / (std + eps)     undo x * std + mean
 *   quantile   apply 2 * (x - q01) / d - 1        undo (x + 1) * d / 2 + q01
 *   quantile10 as quantile, with q10 and q90; LEROBOT alone has it
 *   min_max    apply 2 * (x - min) / d - 1        undo (x + 1) / 2 * d + min
 *   Beyond n values: copied.
 *
 * TEC_NORM_DATASET, in float64, eps from the caller (0, or 1e-8 for parallel decoding). With [low,
 * high] = [q01, q99] or [min, max], d = high - low + eps; only where the mask is true:
 *   quantile, min_max   apply 2 * (x - low) / d - 1    undo 0.5 * (x + 1) * d + low
 *   Where the mask is false, and beyond n values, x is copied. Applied values are then held to
 *   [-1, 1], masked or not. */
enum tec_norm_convention { TEC_NORM_OPENPI, TEC_NORM_LEROBOT, TEC_NORM_DATASET };

/* Lives in the arena it was loaded into; immutable afterwards. Zeroed: no normalisation. */
struct tec_norm {
    enum tec_norm_mode mode;
    enum tec_norm_convention convention;
    double eps;
    size_t n;                                         /* values in each array that is not NULL */
    const double *mean, *std, *q01, *q99, *min, *max; /* NULL when absent from the file */
    const double *q10, *q90;                          /* likewise */
    const bool *mask; /* [n] DATASET: the values that are normalised; NULL = all */
    bool wanted;      /* LEROBOT: the file names a mode other than IDENTITY for it */
    bool wide;        /* LEROBOT: every step in float64, which differs in the last bit */
    /* A vector of several that have statistics of their own: those of values from `from` on. Only
     * tec_norm_apply and tec_norm_undo look at it. */
    const struct tec_norm *then; /* NULL = none */
    size_t from;
};

/* "quantile10"; the arrays that the mode needs and the statistics lack, "q10 and q90", NULL = none.
 */
const char *tec_norm_mode_name(enum tec_norm_mode mode);
const char *tec_norm_missing(const struct tec_norm *norm);

/* y[i] for i < n; x may be y. Stats longer than n are cut to it. With mode NONE: a copy. */
void tec_norm_apply(const struct tec_norm *norm, const double *x, size_t n, double *y);

/* The same for value i as (x - *middle) / *width, up to rounding; without clipping. */
void tec_norm_line(const struct tec_norm *norm, size_t i, double *middle, double *width);

/* The first of n values that tec_norm_apply cannot make a number of: its range has no width, and
 * the convention adds nothing to it. -1 = none. The inverse is well for those. */
int tec_norm_flat(const struct tec_norm *norm, size_t n);

/* The inverse, for values that are float64 (a state that was normalised as such). */
void tec_norm_undo(const struct tec_norm *norm, const double *x, size_t n, double *y);

/* The inverse for a model's float32 output: as tec_norm_undo, but (x + 1) / 2 of the openpi
 * quantile formula, and of DATASET's, is computed in float32, as numpy does for a float32 array. */
void tec_norm_undo_f32(const struct tec_norm *norm, const float *x, size_t n, double *y);

/* Statistics from {"mean": [...], "std": [...], "q01": [...] | null, "q99": [...] | null} in the
 * openpi convention. TEC_MALFORMED, with key and index, for: arrays of different length, more than
 * 65536 values, a value that is not a finite number within +-1e6, std < 0, q99 < q01; a mode whose
 * arrays are missing. `where` begins the message. */
enum tec_status tec_norm_from_json(struct tec_norm *norm, const json_t *stats,
                                   enum tec_norm_mode mode, const char *where,
                                   struct tec_arena *arena, struct tec_error *err);

/* The same with "mask": [true, ...] | null, in the DATASET convention: mode QUANTILE (q01, q99) or
 * MIN_MAX (min, max). TEC_UNSUPPORTED for another mode, TEC_MALFORMED too for a mask of another
 * length or of other things than true and false. */
enum tec_status tec_norm_from_dataset(struct tec_norm *norm, const json_t *stats,
                                      enum tec_norm_mode mode, double eps, const char *where,
                                      struct tec_arena *arena, struct tec_error *err);

/* The entry `key` ("state", "actions") of an openpi norm_stats.json. TEC_NOT_FOUND, with the keys
 * there are, when it has none; TEC_IO when the file cannot be read. */
enum tec_status tec_norm_load_openpi(struct tec_norm *norm, const char *path, const char *key,
                                     enum tec_norm_mode mode, struct tec_arena *arena,
                                     struct tec_error *err);

/* Statistics of `feature` ("observation.state", "action") from a LeRobot normalizer step: `step` is
 * its object in policy_preprocessor.json or policy_postprocessor.json (config.norm_map, features,
 * eps decide mode and eps, config.normalize_observation_keys which observations are normalised at
 * all), `state` the open file its state_file names, tensors "<feature>.<stat>"; NULL when the step
 * has none. A feature whose mode is IDENTITY, or that has no statistics (n = 0), gives mode
 * NONE; `wanted` tells the two apart. */
enum tec_status tec_norm_load_lerobot(struct tec_norm *norm, const json_t *step,
                                      const struct tec_tensors *state, const char *feature,
                                      struct tec_arena *arena, struct tec_error *err);

#endif
