/* keep.h - what the judge of remembered prompts keeps of a case. */
#ifndef TEC_TESTS_JUDGE_KEEP_H
#define TEC_TESTS_JUDGE_KEEP_H

#include "graph/run/recall/recall.h"
#include "tests/judge/pi.h"

enum { TEC_KEEP_SEGMENTS = 256, TEC_KEEP_LAYERS = 64, TEC_KEEP_STEPS = 64 };

/* Kept keys and values of every token before the query, [layers] of [tokens, row] each. */
struct tec_keep_store {
    unsigned char *k[TEC_KEEP_LAYERS], *v[TEC_KEEP_LAYERS];
};

struct tec_keep {
    struct tec_pi *pi;
    struct tec_plan *plan;
    struct tec_recall recall;
    int layers, n, query, n_segments; /* tokens; first of the query */
    int *ids, *old_ids, *pos;
    struct tec_segment_range segments[TEC_KEEP_SEGMENTS];
    int local[TEC_KEEP_SEGMENTS];
    struct tec_keep_store single, group;
    const struct tec_keep_store *store; /* of the run */
    int region;
    /* Of the run. */
    const char *name;
    const json_t *run;
    double ratios[TEC_KEEP_LAYERS];
    unsigned char *forced;
    bool judged;                   /* tensors are compared while it runs */
    bool attention;                /* those of attention between segments are */
    int *layer_rows, n_layer_rows; /* tokens of each layer's rows, ascending, one after the other */
    int first_row[TEC_KEEP_LAYERS + 1];
    json_t *sets, *hops; /* what was chosen */
};

/* Segments by themselves and joined: kept keys and values, compared. */
enum tec_status tec_keep_remember(struct tec_keep *j, struct tec_error *err);

/* Every run that the case names. */
enum tec_status tec_keep_runs(struct tec_keep *j, struct tec_error *err);

/* A tensor of the run: of a layer, or of it all (-1). Lives as long as the case. */
const char *tec_keep_name(struct tec_keep *j, int layer, const char *what);

/* Whether the engine's own choice counts: in float32 always, in bf16 where the case says by `key`
 * ("same_sets", "same_tokens") that its own run in bf16 chose the same. Else a line of `check` says
 * that it is not judged, or that the case does not tell. */
bool tec_keep_own(struct tec_keep *j, const char *key, const char *check);

/* Logits of the query's rows, and of n steps that are given the case's ids [n]. */
void tec_keep_logits(struct tec_keep *j, const int *ids, int n);

/* The tokens of n steps against the case's ids [n]: free in float32; in bf16 step by step, where
 * a near tie may go either way (doc/decisions/014-near-ties-of-bf16-tokens.md). */
void tec_keep_tokens(struct tec_keep *j, const int *ids, int n);

/* What a case gives no bounds for, by a bound of our own. */
void tec_keep_near(struct tec_keep *j, const char *check, const double *got, size_t n,
                   double bound);

#endif
