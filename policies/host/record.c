/* record.c - the ring that records a policy's last frames: views, costs asked for, decisions,
 * failures and results.
 *
 * The frame thread writes it; readers hold it at rest first. */
#include "policies/host/host.h"

#include <stdio.h>
#include <string.h>

struct tec_record *tec_record_create(struct tec_heap *heap, bool segments)
{
    size_t size = (sizeof(struct tec_record) + 63) / 64 * 64;
    size_t more =
        segments ? (size_t)TEC_RECORD_FRAMES * TEC_MAX_SEGMENTS * sizeof(struct tec_segment_view)
                 : 0;
    struct tec_record *record = tec_heap_get(heap, size + more);
    if (!record)
        return NULL;
    record->failed_frame = -1;
    if (segments)
        record->segments = (struct tec_segment_view *)(void *)((char *)record + size);
    return record;
}

static bool held(const struct tec_record *record)
{
    return atomic_load_explicit(&record->stage, memory_order_acquire) == TEC_RECORD_HELD;
}

/* The newest frame of the ring, or NULL while the ring must not be written. */
static struct tec_record_frame *newest(struct tec_record *record)
{
    if (!record->open || held(record))
        return NULL;
    return &record->frames[(record->n - 1) % TEC_RECORD_FRAMES];
}

void tec_record_begin(struct tec_record *record, const struct tec_policy *policy)
{
    int stage = atomic_load_explicit(&record->stage, memory_order_acquire);
    record->open = record->open && stage != TEC_RECORD_HELD;
    if (stage == TEC_RECORD_HELD || (stage == TEC_RECORD_RUNNING && !policy->report.quarantined))
        return;
    record->open = false;
    record->quarantined = policy->report.quarantined;
    memcpy(record->params, policy->params, sizeof record->params);
    atomic_compare_exchange_strong(&record->stage, &stage, TEC_RECORD_HELD);
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* Copy a list, which a view may leave out when it is empty. */
static void copy(void *to, const void *from, int n, size_t size)
{
    if (n > 0)
        memcpy(to, from, (size_t)n * size);
}

void tec_record_view(struct tec_record *record, const struct tec_frame_view *view)
{
    if (held(record))
        return;
    int at = (int)(record->n++ % TEC_RECORD_FRAMES);
    struct tec_record_frame *f = &record->frames[at];
    record->open = true;
    f->n_costs = 0;
    f->observed = false;
    f->view = *view;
    f->view.n_req = least(view->n_req, TEC_MAX_ROWS);
    f->view.req = f->rows;
    copy(f->rows, view->req, f->view.n_req, sizeof f->rows[0]);
    f->view.n_inputs = least(view->n_inputs, TEC_RECORD_INPUTS);
    f->view.late_us = f->late_us;
    copy(f->late_us, view->late_us, f->view.n_inputs, sizeof f->late_us[0]);
    f->view.n_kv = least(view->n_kv, TEC_RECORD_POOLS);
    f->view.kv = f->kv;
    copy(f->kv, view->kv, f->view.n_kv, sizeof f->kv[0]);
    f->view.n_seg = record->segments ? least(view->n_seg, TEC_MAX_SEGMENTS) : 0;
    f->view.seg = f->view.n_seg ? record->segments + (ptrdiff_t)at * TEC_MAX_SEGMENTS : NULL;
    if (f->view.n_seg)
        memcpy(record->segments + (ptrdiff_t)at * TEC_MAX_SEGMENTS, view->seg,
               (size_t)f->view.n_seg * sizeof view->seg[0]);
}

void tec_record_cost(struct tec_record *record, const char *what, double point, double q, double us)
{
    struct tec_record_frame *f = newest(record);
    if (!f || f->n_costs++ >= TEC_RECORD_COSTS)
        return;
    struct tec_record_cost *cost = &f->costs[f->n_costs - 1];
    tec_host_copy_text(cost->what, sizeof cost->what, what);
    cost->point = point;
    cost->q = q;
    cost->us = us;
}

void tec_record_decision(struct tec_record *record, const struct tec_decision *decision,
                         int n_nodes, enum tec_status status, int64_t took_ns)
{
    struct tec_record_frame *f = newest(record);
    if (!f)
        return;
    tec_decision_copy(&f->decision, decision, n_nodes);
    f->status = status;
    f->took_ns = took_ns;
}

void tec_record_failure(struct tec_record *record, int64_t frame, const char *message,
                        const char *traceback)
{
    if (held(record))
        return;
    record->failed_frame = frame;
    snprintf(record->message, sizeof record->message, "%s", message);
    snprintf(record->traceback, sizeof record->traceback, "%s", traceback);
}

void tec_record_result(struct tec_record *record, int64_t frame,
                       const struct tec_frame_result *result)
{
    struct tec_record_frame *f = newest(record);
    if (!f || f->view.index != frame)
        return;
    f->result = *result;
    f->observed = true;
    record->open = false;
}

/* --- for readers --------------------------------------------------------------------------- */

bool tec_policy_hold(struct tec_policy *policy)
{
    int running = TEC_RECORD_RUNNING;
    atomic_compare_exchange_strong(&policy->record->stage, &running, TEC_RECORD_ASKED);
    return held(policy->record);
}

void tec_policy_go_on(struct tec_policy *policy)
{
    atomic_store_explicit(&policy->record->stage, TEC_RECORD_RUNNING, memory_order_release);
}
