/* transform.h - the float64 steps that robot descriptions are made of. */
#ifndef TEC_GRAPH_TRANSFORM_TRANSFORM_H
#define TEC_GRAPH_TRANSFORM_TRANSFORM_H

#include "base/arena.h"
#include "base/error.h"

#include <jansson.h>
#include <stdbool.h>

enum tec_transform_kind {
#define TRANSFORM(name, a, b, what) TEC_TRANSFORM_##name,
#include "graph/transform/transforms.def"
#undef TRANSFORM
    TEC_N_TRANSFORMS
};

/* One step. Immutable, in the arena it was parsed into. */
struct tec_transform {
    enum tec_transform_kind kind;
    int n_at;              /* entries worked on */
    const int *at;         /* [n_at], counted from 0, each inside the vector */
    double a, b;           /* the numbers that transforms.def names */
    const double *as, *bs; /* [rows, n_at] one for each entry; NULL = a, b for all */
    int a_rows, b_rows;    /* rows of a chunk that have numbers of their own, which the last keeps
                            * for those behind it; 1 = all have the same */
};

struct tec_transforms {
    struct tec_transform *steps;
    int n;
    int n_in, n_out; /* entries before the first and after the last step */
};

/* Name as in transforms.def. */
const char *tec_transform_name(enum tec_transform_kind kind);

/* The step as entry `i` of `at` takes it in a row of a chunk: its own numbers in a and b. */
struct tec_transform tec_transform_of(const struct tec_transform *step, int row, int i);

/* The entry of the state that add_state adds to entry `i` of `at`. */
int tec_transform_adds(const struct tec_transform *step, int i);

/* Steps from a JSON array of {"op": NAME, "at": [...], numbers}, for a vector of `n_in` entries and
 * a state of `n_state` (add_state is refused when it is 0). NULL or an empty array: no steps.
 * TEC_MALFORMED for an unknown op or field (with the nearest name), a missing or non-finite number,
 * a list of numbers of another length than `at`, lists by row of a state, an entry outside the
 * vector or listed twice (select may list one twice), low >= high. The message
 * begins with `where`. */
enum tec_status tec_transforms_parse(struct tec_transforms *out, const json_t *json, int n_in,
                                     int n_state, const char *where, struct tec_arena *arena,
                                     struct tec_error *err);

/* The step `bins`: the highest ids of a vocabulary are bins of -1 .. 1, the last id the lowest bin.
 * With i = vocabulary - 1 - id held to 0 .. bins - 2 the value is the middle between edges i and
 * i + 1 of numpy's linspace(-1, 1, bins): ids outside the range are not refused, as in the code
 * that models are published with. Is x an id that `step`, a bins, has a bin for: vocabulary - bins
 * .. vocabulary - 1? */
bool tec_transform_has_bin(const struct tec_transform *step, double x);

/* The first step that is a bins, or NULL. */
const struct tec_transform *tec_transforms_bins(const struct tec_transforms *t);

/* TEC_MALFORMED unless the numbers of a bins go together: whole, 2 <= bins <= vocabulary, and a
 * vocabulary whose ids are exact as float32. The message begins with `where`. */
enum tec_status tec_transform_check_bins(const struct tec_transform *step, const char *where,
                                         struct tec_error *err);

/* Largest number of entries that x has at any step: the size of x and scratch below. */
int tec_transforms_width(const struct tec_transforms *t);

/* Run the steps on x [width] in place; the result is its first n_out entries. `row` is x's place in
 * its chunk, from 0; `state` [n_state] for add_state, `scratch` [width]. Thread-safe. */
void tec_transforms_run(const struct tec_transforms *t, int row, double *x, const double *state,
                        double *scratch);

/* The steps backwards: x [width] whose first n_out entries are a result becomes what the steps make
 * it from, its first n_in entries. clamp, round, single and sign are undone by leaving x as it is,
 * so that the steps give x again where it lies within the bounds, is whole, or is -1, 0 or 1. */
void tec_transforms_undo(const struct tec_transforms *t, int row, double *x, const double *state,
                         double *scratch);

/* The first step that cannot be undone (linkage, bins, sine, cosine, rotations, multiply by 0, a
 * select that drops or repeats an entry), counted from 0, or -1. */
int tec_transforms_lossy(const struct tec_transforms *t);

#endif
