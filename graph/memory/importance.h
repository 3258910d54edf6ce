/* importance.h - which units of a memory a query makes important: scores from the attention of one
 * layer, by hops from the query.
 *
 * A unit is a run of tokens of a prompt. What is known of attention is, for rows of the prompt, the
 * softmax weight summed over heads that they give to each range of keys (attention_mass): four
 * ranges a unit (what lies before it, its first token, its middle, its last three), so that every
 * rule finds its sums. Rules by name are in scorings.def:
 *
 * - paper: a[x][j] is the mean over heads, rows of x and keys of j (0 where j is behind x). Hop 0
 *   scores by a[query]. A hop takes the best `count` units R and scores anew:
 *   (a[query][j] + sum of a[x][j] over x in R, x != j) / (1 + |R|). It ends when R is equal to an
 *   earlier R, or after max_hops of them; the last R counts.
 * - query_only: hop 0 alone.
 * - code: what the published code does, sums over the last three rows of query and of units.
 * - lift: as paper, but each row's weights are taken times the keys that it sees (1 = even
 *   attention), and the mean is over the sources that can see j. Rows early in a prompt spread
 *   their weight over few keys and late units have few units behind them; both make `paper` prefer
 *   early units.
 *
 * Ties go to the lower unit. Pure functions of their inputs, in double; no allocation after create.
 */
#ifndef TEC_GRAPH_MEMORY_IMPORTANCE_H
#define TEC_GRAPH_MEMORY_IMPORTANCE_H

#include "base/arena.h"
#include "base/error.h"

#include <stdbool.h>

enum tec_scoring {
#define SCORING(name, text, what) TEC_SCORING_##name,
#include "graph/memory/scorings.def"
#undef SCORING
    TEC_SCORINGS
};

/* Which method says what is computed anew: this file's, or one that it is compared with. */
enum tec_selection {
#define SELECTION(name, text, what) TEC_SELECTION_##name,
#include "graph/memory/selections.def"
#undef SELECTION
    TEC_SELECTIONS
};

/* Names, NULL out of range; and back, false when there is none. */
const char *tec_scoring_name(enum tec_scoring scoring);
bool tec_scoring_find(const char *name, enum tec_scoring *out);
const char *tec_selection_name(enum tec_selection selection);

enum { TEC_UNIT_RANGES = 4, TEC_MAX_HOPS = 32 };

/* Tokens begin .. end of the prompt. */
struct tec_unit_place {
    int begin, end;
};

/* The attention of one layer. Rows are in any order; a unit whose rows are not there is none. */
struct tec_attention_seen {
    const struct tec_unit_place *units;
    int n_units, heads;
    struct tec_unit_place query;
    const bool *live; /* [n_units] which may be chosen */
    const int *token; /* [rows] of which token each row is */
    int rows, ld;
    const float *mass; /* [rows, ld], TEC_UNIT_RANGES * n_units columns used */
};

/* Computes the ends of those ranges, TEC_UNIT_RANGES * n_units numbers for attention_mass. Units
 * are ascending and do not overlap. */
void tec_importance_ranges(const struct tec_unit_place *units, int n_units, int *ends);

/* Whether a rule needs the rows of units, or the query's alone. */
bool tec_scoring_hops(enum tec_scoring scoring);

/* The result of a selection, and room for it. */
struct tec_importance {
    int max_units, max_hops; /* hops behind the first */
    int n_hops;              /* 1 .. max_hops + 1 lists below */
    double *scores;          /* [n_hops, n_units], 0 for what is not live */
    bool *relevant;          /* [n_hops, n_units] */
    double *from;            /* [n_units + 1, n_units] a[x][j]; the last line is the query's */
    double *room;            /* [2 * n_units] */
};

enum tec_status tec_importance_create(struct tec_importance *out, int max_units, int max_hops,
                                      struct tec_arena *arena, struct tec_error *err);

/* The `count` most important live units, as the last line of out->relevant. count < 1: none. */
const bool *tec_importance_select(struct tec_importance *out, const struct tec_attention_seen *seen,
                                  enum tec_scoring scoring, int count);

/* Units to compute in each layer: all in the first (none when the whole curve is 0), then
 * max(1, floor(ratio * units)), 0 where the ratio is, never more than the layer before. */
void tec_recompute_counts(const double *ratios, int layers, int units, int *counts);

#endif
