/* dump.c - writes the record of a policy's last frames as JSON lines, off the frame path, where it
 * may allocate. */
#include "base/json_text.h"
#include "policies/host/host.h"
#include "policies/host/view_fields.h"

#include <math.h>
#include <string.h>

/* JSON has neither NaN nor infinity, so both become null. */
static json_t *number(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static const char *node_name(const struct tec_topology *t, int node)
{
    return node >= 0 && node < t->n_nodes ? t->nodes[node].name : "?";
}

static json_t *field(const struct tec_topology *t, enum tec_view_kind kind, const void *p)
{
    switch (kind) {
    case TEC_VIEW_INT:
        return json_integer(*(const int *)p);
    case TEC_VIEW_I64:
        return json_integer(*(const int64_t *)p);
    case TEC_VIEW_UNTIL:
        return *(const int64_t *)p == INT64_MAX ? json_null() : json_integer(*(const int64_t *)p);
    case TEC_VIEW_NUM:
        return number(*(const double *)p);
    case TEC_VIEW_BOOL:
        return json_boolean(*(const bool *)p);
    case TEC_VIEW_NODE:
        return json_string(node_name(t, *(const int *)p));
    default: {
        unsigned cause = (unsigned)*(const enum tec_cause *)p;
        return json_string(tec_cause_name((enum tec_cause)cause));
    }
    }
}

static void add_fields(json_t *into, const struct tec_topology *t, int at, int n, const void *from)
{
    for (int i = at; i < at + n; i++)
        json_object_set_new(
            into, tec_host_fields[i].name,
            field(t, tec_host_fields[i].kind, (const char *)from + tec_host_fields[i].offset));
}

static json_t *fields(const struct tec_topology *t, int at, int n, const void *from)
{
    json_t *object = json_object();
    add_fields(object, t, at, n, from);
    return object;
}

static json_t *result_json(const struct tec_topology *t, const struct tec_frame_result *result)
{
    json_t *object = fields(t, TEC_RESULT_AT, TEC_N_RESULT, result), *us = json_object();
    for (int i = 0; i < t->n_nodes && i < result->n_nodes; i++)
        json_object_set_new(us, t->nodes[i].name, json_integer(result->node_us[i]));
    json_object_set_new(object, "node_us", us);
    return object;
}

static json_t *view_json(const struct tec_topology *t, const struct tec_frame_view *view)
{
    json_t *object = fields(t, 0, TEC_N_FRAME, view), *req = json_array(), *seg = json_array();
    json_t *late = json_object(), *kv = json_object();
    for (int i = 0; i < view->n_req; i++)
        json_array_append_new(req, fields(t, TEC_REQUEST_AT, TEC_N_REQUEST, &view->req[i]));
    for (int i = 0; i < view->n_seg; i++)
        json_array_append_new(seg, fields(t, TEC_SEGMENT_AT, TEC_N_SEGMENT, &view->seg[i]));
    for (int i = 0; i < view->n_inputs && i < t->n_inputs; i++)
        json_object_set_new(late, t->inputs[i], json_integer(view->late_us[i]));
    for (int i = 0; i < view->n_kv; i++)
        json_object_set_new(kv, view->kv[i].name, fields(t, TEC_POOL_AT, TEC_N_POOL, &view->kv[i]));
    json_object_set_new(object, "req", req);
    json_object_set_new(object, "seg", seg);
    json_object_set_new(object, "late", late);
    json_object_set_new(object, "kv", kv);
    json_object_set_new(object, "gpu", fields(t, TEC_DEVICE_AT, TEC_N_DEVICE, &view->gpu));
    json_object_set_new(object, "last", result_json(t, &view->last));
    return object;
}

static json_t *costs_json(const struct tec_record_frame *f)
{
    json_t *list = json_array();
    for (int i = 0; i < f->n_costs && i < TEC_RECORD_COSTS; i++) {
        const struct tec_record_cost *c = &f->costs[i];
        json_t *cost = json_object();
        json_object_set_new(cost, "of", json_string(c->what[0] ? c->what : "slack_us"));
        if (c->what[0])
            json_object_set_new(cost, "point", number(c->point));
        json_object_set_new(cost, "q", number(c->q));
        json_object_set_new(cost, "us", number(c->us));
        json_array_append_new(list, cost);
    }
    return list;
}

static json_t *row_json(const struct tec_row_decision *row)
{
    json_t *object = json_object();
    json_object_set_new(object, "k", json_integer(row->k));
    json_object_set_new(object, "group", json_integer(row->group));
    json_object_set_new(object, "priority", json_integer(row->priority));
    json_object_set_new(object, "unshare", json_boolean(row->unshare));
    if (row->shed)
        json_object_set_new(object, "shed", json_string(row->reason));
    return object;
}

static json_t *nodes_json(const struct tec_topology *t, const struct tec_decision *d)
{
    json_t *nodes = json_object();
    for (int i = 0; i < t->n_nodes; i++) {
        json_t *node = json_object();
        int partition = d->nodes[i].partition;
        json_object_set_new(node, "priority", json_integer(d->nodes[i].priority));
        if (d->nodes[i].skip)
            json_object_set_new(node, "skip", json_string(d->nodes[i].reason));
        if (t->nodes[i].slices)
            json_object_set_new(node, "slices", json_integer(d->nodes[i].slices));
        if (partition >= 0 && partition < t->n_partitions)
            json_object_set_new(node, "partition", json_string(t->partitions[partition]));
        json_object_set_new(nodes, t->nodes[i].name, node);
    }
    return nodes;
}

static void add_memory(json_t *into, const struct tec_topology *t, const struct tec_decision *d)
{
    json_t *memories = json_object(), *segments = json_array();
    for (int k = 0; k < d->n_recompute; k++) {
        const struct tec_recompute_decision *r = &d->recompute[k];
        json_t *ratios = json_array();
        for (int i = 0; i < r->n; i++)
            json_array_append_new(ratios, number(r->ratios[i]));
        json_object_set_new(memories, node_name(t, r->node),
                            json_pack("{s:o, s:b}", "ratios", ratios, "audit", (int)r->audit));
    }
    for (int i = 0; i < d->n_seg; i++)
        json_array_append_new(segments, json_pack("{s:o, s:b}", "score", number(d->seg[i].score),
                                                  "skip", (int)d->seg[i].skip));
    json_object_set_new(into, "recompute", memories);
    json_object_set_new(into, "segments", segments);
}

static json_t *decision_json(const struct tec_topology *t, const struct tec_decision *d)
{
    json_t *object = json_object(), *rows = json_array(), *notes = json_object();
    for (int i = 0; i < d->n_rows; i++)
        json_array_append_new(rows, row_json(&d->rows[i]));
    for (int i = 0; i < d->n_notes; i++)
        json_object_set_new(notes, d->notes[i].key,
                            d->notes[i].is_number ? number(d->notes[i].number)
                                                  : tec_json_shown(d->notes[i].text));
    json_object_set_new(object, "rows", rows);
    json_object_set_new(object, "nodes", nodes_json(t, d));
    json_object_set_new(object, "depth", json_integer(d->depth[0]));
    json_object_set_new(object, "snapped", json_integer(d->snapped));
    json_object_set_new(object, "notes", notes);
    if (d->n_recompute || d->n_seg)
        add_memory(object, t, d);
    return object;
}

static json_t *frame_json(const struct tec_topology *t, const struct tec_record_frame *f)
{
    json_t *object = json_object();
    json_object_set_new(object, "frame", json_integer(f->view.index));
    json_object_set_new(object, "status", json_string(tec_status_name(f->status)));
    json_object_set_new(object, "plan_us", number((double)f->took_ns / 1000.0));
    json_object_set_new(object, "view", view_json(t, &f->view));
    json_object_set_new(object, "costs", costs_json(f));
    json_object_set_new(object, "decision", decision_json(t, &f->decision));
    json_object_set_new(object, "result", f->observed ? result_json(t, &f->result) : json_null());
    return object;
}

static json_t *failure_json(const struct tec_record *record)
{
    json_t *object, *lines = json_array();
    if (record->failed_frame < 0) {
        json_decref(lines);
        return json_null();
    }
    for (const char *at = record->traceback; *at;) {
        char line[sizeof record->traceback];
        size_t n = strcspn(at, "\n");
        memcpy(line, at, n);
        line[n] = '\0';
        json_array_append_new(lines, tec_json_shown(line));
        at += n + (at[n] == '\n');
    }
    object = json_object();
    json_object_set_new(object, "frame", json_integer(record->failed_frame));
    json_object_set_new(object, "message", tec_json_shown(record->message));
    json_object_set_new(object, "traceback", lines);
    return object;
}

static json_t *head_json(const struct tec_policy *policy)
{
    const struct tec_record *record = policy->record;
    json_t *object = json_object(), *params = json_object();
    for (int i = 0; i < policy->n_params; i++)
        json_object_set_new(params, policy->params[i].name, number(record->params[i].value));
    json_object_set_new(object, "policy", tec_json_shown(policy->name));
    json_object_set_new(object, "version", json_integer(policy->version));
    json_object_set_new(object, "params", params);
    json_object_set_new(object, "quarantined", json_boolean(record->quarantined));
    json_object_set_new(object, "failure", failure_json(record));
    return object;
}

/* Write the value as one line and release it. */
static enum tec_status write_line(json_t *value, FILE *to, struct tec_error *err)
{
    enum tec_status status = tec_json_print(to, value, JSON_COMPACT, "the record of a policy", err);
    json_decref(value);
    return status;
}

enum tec_status tec_policy_dump(struct tec_policy *policy, FILE *to, struct tec_error *err)
{
    struct tec_record *record = policy->record;
    if (atomic_load_explicit(&record->stage, memory_order_acquire) != TEC_RECORD_HELD) {
        record->quarantined = policy->report.quarantined; /* not held: the policy's owner calls */
        memcpy(record->params, policy->params, sizeof record->params);
    }
    TEC_TRY(write_line(head_json(policy), to, err));
    int64_t first = record->n > TEC_RECORD_FRAMES ? record->n - TEC_RECORD_FRAMES : 0;
    for (int64_t i = first; i < record->n; i++)
        TEC_TRY(write_line(frame_json(policy->topology, &record->frames[i % TEC_RECORD_FRAMES]), to,
                           err));
    return TEC_OK;
}
