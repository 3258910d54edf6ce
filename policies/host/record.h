/* record.h - the last frames of a policy as they were: what it saw, asked, decided, and what came
 * of it. A ring that is written by the frame thread and read at rest; others include policy.h. */
#ifndef TEC_POLICIES_HOST_RECORD_H
#define TEC_POLICIES_HOST_RECORD_H

#include "policies/host/policy.h"

enum {
    TEC_RECORD_FRAMES = 64,
    TEC_RECORD_COSTS = 16,
    TEC_RECORD_INPUTS = 16,
    TEC_RECORD_POOLS = 4
};

struct tec_record_cost {
    char what[24]; /* "" = F.slack_us */
    double point, q, us;
};

struct tec_record_frame {
    struct tec_frame_view view; /* its arrays are the copies below */
    struct tec_request_view rows[TEC_MAX_ROWS];
    int64_t late_us[TEC_RECORD_INPUTS];
    struct tec_kv_view kv[TEC_RECORD_POOLS];
    int n_costs; /* asked for; of more than fit the first are kept */
    struct tec_record_cost costs[TEC_RECORD_COSTS];
    struct tec_decision decision; /* as it was left: the default plan after a failure */
    enum tec_status status;
    int64_t took_ns;
    bool observed;
    struct tec_frame_result result;
};

/* The frame thread writes while `stage` is RUNNING or ASKED, readers read while it is HELD. */
enum tec_record_stage { TEC_RECORD_RUNNING, TEC_RECORD_ASKED, TEC_RECORD_HELD };

struct tec_record {
    _Atomic int stage;
    int64_t n;                         /* frames so far; frame i is at i mod TEC_RECORD_FRAMES */
    bool open;                         /* the newest frame awaits its costs, decision or result */
    struct tec_segment_view *segments; /* [TEC_RECORD_FRAMES, TEC_MAX_SEGMENTS] or NULL */
    struct tec_record_frame frames[TEC_RECORD_FRAMES];
    int64_t failed_frame; /* of the last failure, -1 = none */
    char message[480], traceback[1024];
    bool quarantined; /* and the parameters: as they were when it was held */
    struct tec_param params[TEC_MAX_PARAMS];
};

/* NULL when the heap refuses. Both are one block. */
struct tec_record *tec_record_create(struct tec_heap *heap, bool segments);

/* The frame thread's: at the beginning of a frame (frees or holds the record), before plan, for
 * each cost, after plan, after a failure, after the frame. They do nothing while it is held. */
void tec_record_begin(struct tec_record *record, const struct tec_policy *policy);
void tec_record_view(struct tec_record *record, const struct tec_frame_view *view);
void tec_record_cost(struct tec_record *record, const char *what, double point, double q,
                     double us);
void tec_record_decision(struct tec_record *record, const struct tec_decision *decision,
                         int n_nodes, enum tec_status status, int64_t took_ns);
void tec_record_failure(struct tec_record *record, int64_t frame, const char *message,
                        const char *traceback);
void tec_record_result(struct tec_record *record, int64_t frame,
                       const struct tec_frame_result *result);

#endif
