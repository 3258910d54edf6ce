/* planner.h - what the frame loop asks of whoever decides: views in, an edited plan out.
 *
 * The loop fills the views in place, writes the default plan into a decision, and calls the
 * planner. A planner that fails leaves the decision alone as far as the loop is concerned: it edits
 * a scratch copy, which is taken over only when the call returned TEC_OK. Nothing here allocates.
 */
#ifndef TEC_GRAPH_RUN_LAUNCH_PLANNER_H
#define TEC_GRAPH_RUN_LAUNCH_PLANNER_H

#include "base/error.h"
#include "graph/load/pipeline.h"

#include <stdbool.h>
#include <stdint.h>

enum { TEC_MAX_AXIS = 64, TEC_MAX_NOTES = 8 };
enum { TEC_MAX_RINGS = 8 };
enum { TEC_MAX_LAYERS = 128, TEC_MAX_SEGMENTS = 128 }; /* of memory that is loaded */

/* One live language request, ordered by id. Times in microseconds of the frame clock. */
struct tec_request_view {
    int64_t id;
    int node;            /* index into the topology's nodes */
    int left, done, max; /* tokens; left = max - done */
    int age_frames;
    int64_t born_us, deadline_us, slack_us; /* INT64_MAX: no deadline */
    int64_t kv_bytes;
    int prio;
    bool shared, fresh; /* reads a shared prefix; admitted in this frame */
    int drafted, kept;  /* tokens that its draft proposed so far; of these what it said as well */
    int prefill;        /* index of the node that makes its prefix; -1 = none */
    int slices;         /* of that, still to run before it can decode */
};

enum tec_cause {
#define CAUSE(name, word, meaning) TEC_CAUSE_##name,
#include "graph/run/launch/causes.def"
#undef CAUSE
    TEC_CAUSES
};

/* "none", "policy", ... */
const char *tec_cause_name(enum tec_cause cause);

/* The result of a frame: `last` of the next view and the argument of observe. */
struct tec_frame_result {
    int64_t total_us, overrun_us;
    bool missed;
    enum tec_cause cause;
    int tokens, rows, snapped;
    int n_nodes;
    int64_t node_us[TEC_MAX_NODES]; /* by node index; 0 = did not run */
};

/* Where costs come from: microseconds of one launch (for decode: of one step) at quantile q. `what`
 * is "prefill", "action", "decode" or a node's name; point is the number of rows, else 0.
 * Negative: unknown name. */
struct tec_cost_source {
    double (*cost)(const void *self, const char *what, double point, double q);
    double (*slack)(const void *self, double q);
    const void *self;
};

struct tec_kv_view {
    const char *name;
    int64_t used, cap, bytes, pinned, oldest; /* tokens, tokens, bytes, tokens, age in frames */
};

/* One segment of memory that a memory_load node may load. */
struct tec_segment_view {
    int64_t id; /* of its memory */
    int node;   /* index of that node */
    int tokens;
    double importance; /* as measured: NaN and infinite values are handed on */
    int tier;          /* where it lies, 0 nearest to the device */
    bool dirty, fixed; /* changed since it was stored; long unchanged */
    int64_t last_used; /* frame */
};

/* The device as sampled off the frame path; 0 = not known. */
struct tec_device_view {
    bool throttled;
    int clock_mhz, temp_c;
};

/* The frame as a policy sees it. Arrays are owned by the loop and refreshed in place. */
struct tec_frame_view {
    int64_t index, now_us, deadline_us, budget_us, period_us;
    bool idle; /* without an observation: language goes on alone */
    /* The stream that the frames' prompt is: whose text, -1 = its default or no stream; how old. */
    int64_t text_request, text_age_us;
    int n_req, slots, horizon;
    const struct tec_request_view *req;
    int64_t next_id; /* of the request that arrives next */
    int n_kv;
    const struct tec_kv_view *kv;
    int n_inputs;
    const int64_t *late_us; /* by input */
    struct tec_cost_source costs;
    struct tec_frame_result last;
    uint64_t seed;          /* keys F.rng() together with index */
    int n_audits, n_agreed; /* prompts of a memory computed twice so far, and with one outcome */
    int n_seg;              /* at most TEC_MAX_SEGMENTS */
    const struct tec_segment_view *seg;
    struct tec_device_view gpu;
};

/* The part of a compiled pipeline that policies may know; immutable. */
struct tec_topology {
    int n_nodes;
    struct {
        const char *name, *kind, *partition;
        int64_t deadline_us; /* 0 = none */
        bool hard, optional; /* hard: a node that a hard one waits for is so; optional: when =
                              * policy() */
        int steps;  /* of the longest text that a hard node waits for, with the one that reads its
                     * last  token where an action acts on it; else 0 */
        int model;  /* 0: the frames' */
        int slices; /* of a secondary model's prefill: 1 or more; else 0 */
        int ring;   /* 1 + the ring in whose launches it runs; 0 = it has its own */
    } nodes[TEC_MAX_NODES];
    int n_batch, n_k, n_depth, n_ratio; /* captured points, ascending */
    int batch[TEC_MAX_AXIS], k[TEC_MAX_AXIS], depth[TEC_MAX_AXIS];
    double ratio[TEC_MAX_AXIS];
    int n_inputs, n_kv, n_partitions;
    const char *const *inputs, *const *kv, *const *partitions;
    int slots, horizon, layers;
    int n_rings; /* in the order of the nodes that decode them */
    struct {
        const char *name; /* one of `kv` */
        int stages;
    } rings[TEC_MAX_RINGS];
    int64_t period_us;
    uint64_t seed;
};

/* Index of the node with this name; -1 = there is none. */
int tec_topology_find(const struct tec_topology *topology, const char *name);

/* Whether requests are this node's: it decodes (not a ring), or ranks texts. In their order these
 * nodes are the loop's decoders. */
bool tec_topology_decodes(const struct tec_topology *topology, int node);

/* The decision for one request, row i of the view. */
struct tec_row_decision {
    int k;        /* captured steps; 0 = paused */
    int group;    /* rows of equal group and k share a launch; default 0 */
    int priority; /* 0 first */
    bool unshare; /* private prefill instead of the shared prefix */
    bool shed;
    int line; /* of the decision's source, which set it last; 0 = the default plan */
    char reason[32];
};

/* The decision for one memory segment, by index of the view. */
struct tec_segment_decision {
    double score; /* higher loads first */
    bool skip;
};

/* What is decided about the prompts of a memory_load node. */
struct tec_recompute_decision {
    int node;
    int n;      /* layers, the last ratio holds for those behind; 0 = as declared */
    bool audit; /* the prompt is computed a second time, whole, and compared */
    double ratios[TEC_MAX_LAYERS]; /* share of rows to recompute, never increasing */
};

struct tec_note {
    char key[24];
    int line; /* as a row's */
    bool is_number;
    double number;
    char text[32];
};

struct tec_decision {
    int n_rows;
    struct tec_row_decision rows[TEC_MAX_ROWS];
    struct {
        bool skip;
        int priority, partition; /* partition: index, -1 = as declared */
        int slices;              /* of a secondary model's prefills, in this frame */
        int line;                /* as a row's */
        char reason[32];
    } nodes[TEC_MAX_NODES];
    int depth[TEC_MAX_RINGS]; /* of each ring: requests in flight; 0 = as declared */
    int snapped;              /* calls whose argument was moved to a captured point */
    const char *source; /* the file whose lines are meant, until the frame's end; NULL = none */
    int n_notes;
    struct tec_note notes[TEC_MAX_NOTES];

    /* Memory; zeros are the default plan. Behind the counts nothing is defined. */
    int n_recompute; /* nodes that something was decided about */
    int n_seg;       /* the view's, once a segment was decided about; 0 = as declared */
    struct tec_recompute_decision recompute[TEC_MAX_MEMORIES];
    struct tec_segment_decision seg[TEC_MAX_SEGMENTS];
};

/* Stages of the longest ring; 0 = there is none. */
int tec_topology_stages(const struct tec_topology *topology);

/* A decider. Any member may be NULL: admit then says yes, plan keeps the default. All run on the
 * frame thread. `decision` of plan holds the default plan on entry; on a status other than TEC_OK
 * the loop ignores what was written. */
struct tec_planner {
    const char *name;
    void *self;
    bool (*admit)(void *self, const struct tec_frame_view *view, const struct tec_request_view *r,
                  char reason[32]);
    enum tec_status (*plan)(void *self, const struct tec_frame_view *view,
                            struct tec_decision *decision, struct tec_error *err);
    void (*observe)(void *self, const struct tec_frame_view *view,
                    const struct tec_frame_result *result);
    int (*evict)(void *self, const struct tec_frame_view *view, int n);
    /* Is a live request given up for its deadline, when it is the session's turn? `late`: by the
     * clock. NULL: the clock says it. */
    bool (*late)(void *self, int session, int64_t request, bool late);
    const char *(*decider)(void *self); /* who decides in this frame; NULL: `name` always does */
};

/* Whose plan a frame runs: valid on the frame thread until its end. */
const char *tec_planner_name(const struct tec_planner *planner);

/* The default plan, into *decision. Beside hard nodes soft rows pause, slices do not run and
 * optional nodes are left out; without hard nodes everything runs, each row at the largest captured
 * k. Rings are as deep as captured. At most TEC_MAX_ROWS rows. */
void tec_planner_default(const struct tec_topology *topology, const struct tec_frame_view *view,
                         struct tec_decision *decision);

/* Copy what a decision says about the first `n_nodes` nodes and everything else that is counted:
 * a fraction of its size. */
void tec_decision_copy(struct tec_decision *to, const struct tec_decision *from, int n_nodes);

/* Do two decisions ask for the same work? Notes, lines and texts of reasons do not
 * matter. */
bool tec_decision_same(const struct tec_decision *a, const struct tec_decision *b, int n_nodes);

/* Admits everything, keeps the default plan. Named "default". */
extern const struct tec_planner tec_default_planner;

/* The share of rows to recompute for a wish: at most the largest captured one, and at most
 * `before`, that of the layer before (1 for the first); 0 for what is no share. */
double tec_ratio_within(const struct tec_topology *topology, double wish, double before);

/* The captured point for a wish: the largest <= wish, or 0 when wish is below the smallest. */
int tec_snap_down(const int *points, int n, int wish);
/* The smallest captured point >= rows, or the largest. */
int tec_snap_up(const int *points, int n, int rows);

#endif
