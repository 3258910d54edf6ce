/* recording_decided.c - what was decided in a frame, as a message: what is not there is as nothing
 * decided. recorded_decided.c reads it. */
#include "tools/record/recording_own.h"

#include "base/json_text.h"

#include <string.h>

size_t tec_recording_decided_parts(struct tec_item_part parts[TEC_DECIDED_PARTS],
                                   struct tec_decided *d, const struct tec_item_decided *item)
{
    struct tec_decision *plan = &d->decision;
    const struct tec_item_part all[TEC_DECIDED_PARTS] = {
        {d->late, (size_t)item->n_late * sizeof d->late[0]},
        {d->refused, (size_t)item->n_refused * sizeof d->refused[0]},
        {d->evicted, (size_t)item->n_evicted * sizeof d->evicted[0]},
        {d->requests, (size_t)item->n_rows * sizeof d->requests[0]},
        {plan->rows, (size_t)item->n_rows * sizeof plan->rows[0]},
        {plan->nodes, (size_t)item->n_nodes * sizeof plan->nodes[0]},
        {plan->recompute, (size_t)item->n_recompute * sizeof plan->recompute[0]},
        {plan->seg, (size_t)item->n_seg * sizeof plan->seg[0]}};
    size_t bytes = 0;
    for (int i = 0; i < TEC_DECIDED_PARTS; i++) {
        parts[i] = all[i];
        bytes += all[i].n;
    }
    return bytes;
}

/* --- JSON ------------------------------------------------------------------------------------- */

static void put_number(json_t *to, const char *name, int number, int without)
{
    if (number != without)
        json_object_set_new(to, name, json_integer(number));
}

static json_t *row_json(int64_t request, const struct tec_row_decision *row)
{
    json_t *one = json_pack("{s:I, s:i}", "request", (json_int_t)request, "k", row->k);
    put_number(one, "group", row->group, 0);
    put_number(one, "priority", row->priority, 0);
    if (row->unshare)
        json_object_set_new(one, "unshare", json_true());
    if (row->shed)
        json_object_set_new(one, "shed", tec_json_shown(row->reason));
    return one;
}

static json_t *rows_json(const struct tec_decided *d)
{
    json_t *all = json_array();
    for (int i = 0; i < d->decision.n_rows; i++)
        json_array_append_new(all, row_json(d->requests[i], &d->decision.rows[i]));
    return all;
}

/* Those about which something is decided. */
static json_t *nodes_json(const struct tec_decision *d, const struct tec_topology *t)
{
    json_t *all = json_array();
    for (int i = 0; i < t->n_nodes; i++) {
        json_t *one = json_object();
        if (d->nodes[i].skip)
            json_object_set_new(one, "skip", tec_json_shown(d->nodes[i].reason));
        put_number(one, "priority", d->nodes[i].priority, 0);
        put_number(one, "slices", d->nodes[i].slices, 0);
        if (d->nodes[i].partition >= 0)
            json_object_set_new(one, "partition",
                                json_string(t->partitions[d->nodes[i].partition]));
        if (json_object_size(one) > 0) {
            json_object_set_new(one, "node", json_string(t->nodes[i].name));
            json_array_append(all, one);
        }
        json_decref(one);
    }
    return all;
}

static json_t *recompute_json(const struct tec_recompute_decision *r, const struct tec_topology *t)
{
    json_t *ratios = json_array();
    for (int i = 0; i < r->n; i++)
        json_array_append_new(ratios, tec_json_number(r->ratios[i]));
    return json_pack("{s:s, s:b, s:o}", "node", t->nodes[r->node].name, "audit", (int)r->audit,
                     "ratios", ratios);
}

static void put_memory(json_t *to, const struct tec_decision *d, const struct tec_topology *t)
{
    json_t *recompute = json_array(), *segments = json_array();
    for (int i = 0; i < d->n_recompute; i++)
        if (d->recompute[i].node >= 0 && d->recompute[i].node < t->n_nodes)
            json_array_append_new(recompute, recompute_json(&d->recompute[i], t));
    for (int i = 0; i < d->n_seg; i++)
        json_array_append_new(segments,
                              json_pack("{s:o, s:b}", "score", tec_json_number(d->seg[i].score),
                                        "skip", (int)d->seg[i].skip));
    if (d->n_recompute)
        json_object_set(to, "recompute", recompute);
    if (d->n_seg)
        json_object_set(to, "segments", segments);
    json_decref(recompute);
    json_decref(segments);
}

/* What was answered before the plan. */
static void put_answers(json_t *to, const struct tec_decided *d)
{
    json_t *late = json_array(), *refused = json_array(), *evicted = json_array();
    for (int i = 0; i < d->n_late; i++)
        json_array_append_new(late,
                              json_pack("{s:I, s:i}", "request", (json_int_t)d->late[i].request,
                                        "session", d->late[i].session));
    for (int i = 0; i < d->n_refused; i++)
        json_array_append_new(refused,
                              json_pack("{s:I, s:o}", "request", (json_int_t)d->refused[i].request,
                                        "reason", tec_json_shown(d->refused[i].reason)));
    for (int i = 0; i < d->n_evicted; i++)
        json_array_append_new(evicted,
                              json_pack("{s:I, s:I}", "request", (json_int_t)d->evicted[i].request,
                                        "arrival", (json_int_t)d->evicted[i].arrival));
    json_object_set_new(to, "late", late);
    json_object_set_new(to, "refused", refused);
    json_object_set_new(to, "evicted", evicted);
}

static json_t *decided_json(const struct tec_decided *d, const struct tec_topology *t)
{
    json_t *depth = json_array();
    for (int i = 0; i < t->n_rings && i < TEC_MAX_RINGS; i++)
        json_array_append_new(depth, json_integer(d->decision.depth[i]));
    json_t *all = json_pack("{s:I, s:i, s:o, s:o, s:o, s:o}", "frame", (json_int_t)d->frame,
                            "session", d->session, "policy", tec_json_shown(d->policy), "rows",
                            rows_json(d), "nodes", nodes_json(&d->decision, t), "depth", depth);
    put_answers(all, d);
    put_memory(all, &d->decision, t);
    return all;
}

void tec_recording_put_decided(struct tec_recording *r, uint64_t time_ns)
{
    struct tec_decided *d = &r->decided;
    struct tec_item_part parts[TEC_DECIDED_PARTS];
    struct tec_item_decided item;
    const uint8_t *at = r->item + sizeof item;
    memcpy(&item, r->item, sizeof item);
    tec_recording_decided_parts(parts, d, &item);
    for (int i = 0; i < TEC_DECIDED_PARTS; at += parts[i++].n)
        memcpy(parts[i].at, at, parts[i].n);
    d->frame = item.frame;
    d->session = item.session;
    d->n_late = item.n_late;
    d->n_refused = item.n_refused;
    d->n_evicted = item.n_evicted;
    d->decision.n_rows = item.n_rows;
    d->decision.n_recompute = item.n_recompute;
    d->decision.n_seg = item.n_seg;
    memcpy(d->decision.depth, item.depth, sizeof item.depth);
    memcpy(d->policy, item.policy, sizeof d->policy);
    tec_recording_json(&r->file, r->decisions, d->frame, time_ns,
                       decided_json(d, &r->o.opened->engine->topology));
}
