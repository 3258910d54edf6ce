/* limits.h - how far a robot's commands may go: bounds of each column, and of its change from one
 * command to the next. */
#ifndef TEC_GRAPH_TRANSFORM_LIMITS_H
#define TEC_GRAPH_TRANSFORM_LIMITS_H

#include "base/arena.h"
#include "base/error.h"
#include "base/store/norm.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* What happens to a chunk with a value beyond a limit. */
enum tec_limit_on {
    TEC_LIMIT_CLIP, /* the value is set to the limit */
    TEC_LIMIT_HOLD, /* the chunk does not leave: the robot is given its last command again */
    TEC_LIMIT_STOP  /* nothing leaves until somebody resets */
};

/* Of n columns. A column without a limit has an infinite one; all three NULL: no limits. */
struct tec_limits {
    enum tec_limit_on on;
    int n;
    const double *min, *max; /* [n] */
    const double *max_step;  /* [n] largest change between consecutive commands */
};

enum tec_limit_kind { TEC_LIMIT_MIN, TEC_LIMIT_MAX, TEC_LIMIT_STEP };

/* What a chunk had beyond its limits. Zeroed: nothing. */
struct tec_beyond {
    int n; /* values */
    enum tec_limit_on on;
    /* Of the first one found: */
    enum tec_limit_kind kind;
    bool trained;    /* the limit is the statistics': `value` is un-normalised, before the steps */
    int row, column; /* from 0 */
    double value, limit; /* STEP: the change, and the largest allowed */
};

/* Whether the chunk must not leave. */
bool tec_beyond_refused(const struct tec_beyond *beyond);

/* "3 values beyond the robot's limits, clipped: row 1, column 2 is 7.3, above 3.14"; "" for none.
 */
void tec_beyond_text(char *text, size_t room, const struct tec_beyond *beyond);

/* {min?, max?, max_step?: a number for all n columns, or a list of n, false for a column without;
 * on? = "clip" | "hold" | "stop"}. NULL and false: no limits, *off tells which. Strict:
 * TEC_MALFORMED, the message begins with `where`. */
enum tec_status tec_limits_parse(struct tec_limits *out, bool *off, const json_t *json, int n,
                                 const char *where, struct tec_arena *arena, struct tec_error *err);

/* The limits that statistics give un-normalised values: what a model that was trained with them may
 * say. Normalised values up to +-5 of a quantile range, +-3 of a range from min to max, +-10
 * standard deviations; and all from the smallest to the largest value that the statistics know, so
 * that no command of the training data is beyond. Mode NONE: no limits. TEC_NO_MEMORY. */
enum tec_status tec_limits_trained(struct tec_limits *out, const struct tec_norm *norm, int n,
                                   enum tec_limit_on on, struct tec_arena *arena,
                                   struct tec_error *err);

/* Hold one command x [n] to the limits; what was beyond is added to *beyond. `row` is its place in
 * the chunk, `before` the command before it, NULL = none. Values that are not finite stay. True:
 * something was changed. */
bool tec_limits_keep(const struct tec_limits *limits, int row, const double *before, double *x,
                     struct tec_beyond *beyond);

#endif
