/* importance.h - which segments of a memory a query makes important: scores from the attention of
 * one layer, by hops from the query.
 *
 * A segment is a run of tokens of a prompt. What is known of attention is, for rows of the prompt,
 * the softmax weight summed over heads that they give to each range of keys (attention_mass): four
 * ranges a segment (what lies before it, its first token, its middle, its last three), so that
 * every rule finds its sums. Rules by name are in scorings.def:
 *
 * - paper: a[x][j] is the mean over heads, rows of x and keys of j (0 where j is behind x). Hop 0
 *   scores by a[query]. A hop takes the best `count` segments R and scores anew:
 *   (a[query][j] + sum of a[x][j] over x in R, x != j) / (1 + |R|). It ends when R is equal to an
 *   earlier R, or after max_hops of them; the last R counts.
 * - query_only: hop 0 alone.
 * - code: what the published code does, sums over the last three rows of query and of segments.
 * - lift: as paper, but each row's weights are taken times the keys that it sees (1 = even
 *   attention), and the mean is over the sources that can see j. Rows early in a prompt spread
 *   their weight over few keys and late segments have few segments behind them; both make `paper`
 * prefer early segments.
 *
 * Ties go to the lower segment. Pure functions of their inputs, in double; no allocation after
 * create.
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

enum { TEC_SEGMENT_RANGES = 4, TEC_MAX_HOPS = 32 };

/* Tokens begin .. end of the prompt. */
struct tec_segment_range {
    int begin, end;
};

/* The attention of one layer. Rows are in any order; a segment whose rows are not there is none. */
struct tec_attention_sums {
    const struct tec_segment_range *segments;
    int n_segments, heads;
    struct tec_segment_range query;
    const bool *live; /* [n_segments] which may be chosen */
    const int *token; /* [rows] of which token each row is */
    int rows, ld;
    const float *mass; /* [rows, ld], TEC_SEGMENT_RANGES * n_segments columns used */
};

/* Computes the ends of those ranges, TEC_SEGMENT_RANGES * n_segments numbers for attention_mass.
 * Segments are ascending and do not overlap. */
void tec_importance_ranges(const struct tec_segment_range *segments, int n_segments, int *ends);

/* Whether a rule needs the rows of segments, or the query's alone. */
bool tec_scoring_hops(enum tec_scoring scoring);

/* The result of a selection, and room for it. */
struct tec_importance {
    int max_segments, max_hops; /* hops behind the first */
    int n_hops;                 /* 1 .. max_hops + 1 lists below */
    double *scores;             /* [n_hops, n_segments], 0 for what is not live */
    bool *relevant;             /* [n_hops, n_segments] */
    double *from; /* [n_segments + 1, n_segments] a[x][j]; the last line is the query's */
    double *room; /* [2 * n_segments] */
};

enum tec_status tec_importance_create(struct tec_importance *out, int max_segments, int max_hops,
                                      struct tec_arena *arena, struct tec_error *err);

/* The `count` most important live segments, as the last line of out->relevant. count < 1: none. */
const bool *tec_importance_select(struct tec_importance *out, const struct tec_attention_sums *seen,
                                  enum tec_scoring scoring, int count);

/* Segments to compute in each layer: all in the first (none when the whole curve is 0), then
 * max(1, floor(ratio * segments)), 0 where the ratio is, never more than the layer before. */
void tec_recompute_counts(const double *ratios, int layers, int segments, int *counts);

#endif
