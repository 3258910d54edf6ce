/* costs.h - what launches cost on this machine: one histogram a captured variant and a quick drift,
 * written by the frame thread, asked by policies many times a frame.
 *
 * A variant is the prefill, an action node (both of as many observations as are captured together),
 * one decode step at a captured batch, or in a ring one
 * forward with a prefill and so many rows of others, and one of so many rows alone. Decode nodes
 * share captures, so they share variants.
 *
 *     cost(q) = base(q) x drift
 *
 * The base is a distribution of durations as they would be at drift 1. It is, in this order:
 *   - the variant's own samples, once there are 200 beside a row of a .costs file, or 20 without
 *     one. Each is divided by the drift that held before it, so the base is the distribution of
 *     what the model would have been wrong by. Samples fade: they fill one of two windows of 2048,
 *     when it is full the other is emptied and filled; quantiles are of both, so of the newest 2048
 *     to 4096 samples, and what is older counts no more. They are renewed every 16 samples.
 *   - the row of the .costs file (its first 8 own samples only find the drift);
 *   - the warm-up: p50 is its fastest replay, the other quantiles are its slowest but the first
 *     one, or the longest own sample if that is longer. Warm-up never enters the samples.
 *
 * The drift of a kind (prefill, action, decode, packed, shift; all of its variants together)
 * follows clocks and other tenants. A sample's ratio is its duration through the variant's
 * reference: p50 of the file, else the median of the first 20 samples; a reference never changes,
 * so base and drift cannot chase each other. Ratios are bounded to 1/4 .. 4. The drift goes half of
 * the way to the median of the last three ratios: a step of any size is met to 1/8 after four
 * samples and to 1/32 after six, a single outlier moves nothing. A kind that did not run in a frame
 * goes 1/32 of the way to the mean of those that did, of this model or else of the others, so an
 * old drift cannot keep work from being tried again.
 *
 * Nor can an outlier among few samples, which is their p99: where a quantile is above twice the
 * median, the rest counts by the kind's share, which goes 1/32 of the way to nothing in each frame
 * in which requests waited and the kind did not run, and as far back to 1 in one in which it ran.
 *
 * Doubles by fixed rules, in the order of the samples: the same samples give the same costs. After
 * init nothing allocates; a cost is a few comparisons and one product. Frame thread only. */
#ifndef TEC_GRAPH_RUN_LOOP_COSTS_H
#define TEC_GRAPH_RUN_LOOP_COSTS_H

#include "graph/compile/plan.h"
#include "graph/kv/stages.h"
#include "graph/run/launch/planner.h"
#include "graph/run/loop/cost_table.h"

#include <stdint.h>

/* 128 buckets to a power of two, up to 2^40 ns; what is longer lies in the last one. */
enum { TEC_COST_PARTS = 128, TEC_COST_BUCKETS = (40 - 7 + 1) * TEC_COST_PARTS };

/* Durations in nanoseconds. A quantile is at most 0.8 % above the true one, exact below 128 ns, and
 * min and max are exact. 17 KiB. */
struct tec_histogram {
    uint32_t counts[TEC_COST_BUCKETS];
    int64_t n, min, max;
};

void tec_histogram_add(struct tec_histogram *h, int64_t ns);
/* Quantile q in (0, 1]; the exact maximum for the last sample; 0 when empty. */
int64_t tec_histogram_at(const struct tec_histogram *h, double q);

enum tec_cost_kind {
    TEC_COST_PREFILL,
    TEC_COST_ACTION,
    TEC_COST_DECODE,
    TEC_COST_PACKED,
    TEC_COST_SHIFT, /* of one token moved */
    TEC_COST_SCORE, /* of a tree of texts */
    TEC_COST_KINDS
};

/* p50, p99, p999, max: what is kept ready, and what a `.costs` file has. */
enum { TEC_COST_QUANTILES = 4 };

struct tec_cost_variant {
    struct tec_histogram window[2]; /* own samples at drift 1; window[now] is being filled */
    int now, n_warm;
    int64_t n;           /* own samples so far */
    bool filed;          /* `prior` is of a .costs file */
    double reference_ns; /* of the drift; 0 = not known yet */
    double prior_ns[TEC_COST_QUANTILES], base_ns[TEC_COST_QUANTILES];
};

struct tec_cost_drift {
    double factor, last[3]; /* newest ratios, in turn */
    double share;           /* of what a quantile is above twice the median, 0 .. 1 */
    int at;
    bool ran; /* in this frame */
};

/* Of prefills there are as many variants as n_together, of actions n_actions of each, of decodes
 * n_batches, of packed forwards points; of the others one, and of all kinds at least one. */
struct tec_costs {
    struct tec_cost_variant *variants[TEC_COST_KINDS];
    int n_batches, batches[TEC_MAX_STAGES]; /* of a ring: every number of rows */
    int points;                             /* of packed: see tec_launch_ring_point */
    const char *packed_name, *alone_name;   /* of rings: what a table calls their launches */
    int n_actions, n_together, together[TEC_MAX_SESSIONS + 1]; /* observations, the first 1 */
    struct tec_cost_drift drift[TEC_COST_KINDS];
};

/* A variant for each launch of the spec, in the arena. */
enum tec_status tec_costs_init(struct tec_costs *costs, const struct tec_plan_spec *spec,
                               struct tec_arena *arena, struct tec_error *err);

/* Start from a table: each node of one model of the topology takes its row, a captured batch
 * without one that of the next larger point. Of several decode nodes the costlier counts. A row of
 * a prefill in slices is shared out to the topology's. Nodes without a row start from the warm-up.
 * Before the first sample. */
void tec_costs_prior(struct tec_costs *costs, const struct tec_cost_table *table,
                     const struct tec_topology *topology, int chain);

/* The row of a launch of prefill node `node`: where the chain has memories and the table a row of
 * one, that one's at so many percent (0: as declared), because a prompt is recalled in place of the
 * prefill. NULL: there is none. */
const struct tec_cost_row *tec_costs_prompt_row(const struct tec_cost_table *table,
                                                const struct tec_topology *topology, int chain,
                                                const char *node, int percent);

/* The variant of action node `at` of a plan for n observations: what is called `rows` below. */
int tec_costs_action(const struct tec_costs *costs, int at, int n);

/* A replay before the first frame; `rows` is looked at for decode and packed, is the observations
 * of a prefill, and says which variant of an action it is. */
void tec_costs_warm(struct tec_costs *costs, enum tec_cost_kind kind, int rows, int64_t ns);

/* Whether a table says what a variant costs; `rows` as above. */
bool tec_costs_filed(const struct tec_costs *costs, enum tec_cost_kind kind, int rows);

/* A launch of a frame (decode: per step). Returns by how much it was longer than the p99 known
 * before, or than twice the median where that is less, at drift 1: what a miss can blame on the
 * device; 0 while no p99 is known. */
int64_t tec_costs_add(struct tec_costs *costs, enum tec_cost_kind kind, int rows, int64_t ns);

/* Add the drifts of the kinds that ran in this frame, and how many they are. */
void tec_costs_ran(const struct tec_costs *costs, double *sum, int *n);

/* A frame has ended: the drift of what did not run follows that of what did; where nothing of this
 * model ran, `others`, the mean drift of all that ran, or 0 for none. `wanted`: requests waited. */
void tec_costs_end_frame(struct tec_costs *costs, double others, bool wanted);

/* Microseconds at quantile q: p50 for q <= 0.5, p99 for q <= 0.99, p999 for q <= 0.999, else the
 * longest. Decode: one step of `rows` rows, of the smallest captured batch that holds them, else
 * the largest. 0 where nothing was ever measured or filed. */
double tec_costs_us(const struct tec_costs *costs, enum tec_cost_kind kind, int rows, double q);

/* "prefill", "action", "decode", "score" as the kind of a node, "packed" and "shift" as a ring's
 * launches; TEC_COST_KINDS for any other word. */
enum tec_cost_kind tec_costs_kind_of(const char *word);
extern const char *const tec_cost_words[TEC_COST_KINDS];

#endif
