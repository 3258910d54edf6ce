/* recorded_decided.c - reads what recording_decided.c writes. Files are hostile: whatever is here
 * fits the structs that it is read into, and no more is believed of it. */
#include "tools/record/recorded_decided.h"

#include "tools/record/recorded.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* The message that is read: the first thing that is wrong with it. */
struct reading {
    const struct tec_topology *topology;
    const char *where; /* the list that is read */
    bool strange;      /* it names what this pipeline does not have */
    char wrong[120];
};

static void refuse(struct reading *r, const char *name, const char *what)
{
    if (!r->wrong[0])
        snprintf(r->wrong, sizeof r->wrong, "%s%s%.40s %s", r->where, r->where[0] ? ": " : "", name,
                 what);
}

/* A member that is a whole number of low .. high; `without` where it is not there. */
static int64_t whole(struct reading *r, const json_t *from, const char *name, int64_t low,
                     int64_t high, int64_t without)
{
    const json_t *member = json_object_get(from, name);
    int64_t number = member ? json_integer_value(member) : without;
    if ((member && !json_is_integer(member)) || number < low || number > high) {
        refuse(r, name, member ? "is no number that it may be" : "is missing");
        return low;
    }
    return number;
}

static int64_t request_of(struct reading *r, const json_t *from, const char *name)
{
    return whole(r, from, name, 0, INT64_MAX, -1);
}

static bool flag(struct reading *r, const json_t *from, const char *name)
{
    const json_t *member = json_object_get(from, name);
    if (member && !json_is_boolean(member))
        refuse(r, name, "is neither true nor false");
    return json_is_true(member);
}

/* false: it is not there. */
static bool text(struct reading *r, const json_t *from, const char *name, char *to, size_t room)
{
    const json_t *member = json_object_get(from, name);
    const char *said = json_string_value(member);
    if (member && !said)
        refuse(r, name, "is no text");
    snprintf(to, room, "%s", said ? said : "");
    return said != NULL;
}

/* Number of objects of a list, of which there may be none. */
static int list(struct reading *r, const json_t *from, const char *name, int most,
                const json_t **items)
{
    size_t n = json_array_size(*items = json_object_get(from, name));
    r->where = "";
    if (*items && !json_is_array(*items))
        refuse(r, name, "is no list");
    if (n > (size_t)most)
        refuse(r, name, "is longer than there is room for");
    r->where = name;
    return n > (size_t)most ? 0 : (int)n;
}

static const json_t *item(struct reading *r, const json_t *items, int i)
{
    const json_t *one = json_array_get(items, (size_t)i);
    if (!json_is_object(one))
        refuse(r, "an item", "is no object");
    return one;
}

/* One that this pipeline does not have makes the whole strange, and is the first. */
static int node_of(struct reading *r, const json_t *from)
{
    const char *name = json_string_value(json_object_get(from, "node"));
    int node = name ? tec_topology_find(r->topology, name) : -1;
    if (!name)
        refuse(r, "node", "is no name");
    r->strange |= node < 0;
    return node < 0 ? 0 : node;
}

/* --- lists ------------------------------------------------------------------------------------ */

static void read_answers(struct reading *r, struct tec_decided *d, const json_t *json)
{
    const json_t *items, *one;
    d->n_late = list(r, json, "late", TEC_DECIDED_GIVEN_UP, &items);
    for (int i = 0; i < d->n_late; i++) {
        one = item(r, items, i);
        d->late[i].request = request_of(r, one, "request");
        d->late[i].session = (int)whole(r, one, "session", 0, TEC_MAX_SESSIONS - 1, 0);
    }
    d->n_refused = list(r, json, "refused", TEC_DECIDED_REFUSED, &items);
    for (int i = 0; i < d->n_refused; i++) {
        one = item(r, items, i);
        d->refused[i].request = request_of(r, one, "request");
        text(r, one, "reason", d->refused[i].reason, sizeof d->refused[i].reason);
    }
    d->n_evicted = list(r, json, "evicted", TEC_DECIDED_GIVEN_UP, &items);
    for (int i = 0; i < d->n_evicted; i++) {
        one = item(r, items, i);
        d->evicted[i].request = request_of(r, one, "request");
        d->evicted[i].arrival = request_of(r, one, "arrival");
    }
}

static void read_rows(struct reading *r, struct tec_decided *d, const json_t *json)
{
    const json_t *items;
    d->decision.n_rows = list(r, json, "rows", TEC_MAX_ROWS, &items);
    for (int i = 0; i < d->decision.n_rows; i++) {
        const json_t *one = item(r, items, i);
        struct tec_row_decision *row = &d->decision.rows[i];
        d->requests[i] = request_of(r, one, "request");
        row->k = (int)whole(r, one, "k", 0, INT_MAX, 0);
        row->group = (int)whole(r, one, "group", INT_MIN, INT_MAX, 0);
        row->priority = (int)whole(r, one, "priority", INT_MIN, INT_MAX, 0);
        row->unshare = flag(r, one, "unshare");
        row->shed = text(r, one, "shed", row->reason, sizeof row->reason);
    }
}

static int partition_of(struct reading *r, const json_t *from)
{
    const struct tec_topology *t = r->topology;
    const json_t *member = json_object_get(from, "partition");
    const char *name = json_string_value(member);
    for (int i = 0; name && i < t->n_partitions; i++)
        if (strcmp(t->partitions[i], name) == 0)
            return i;
    if (member && !name)
        refuse(r, "partition", "is no name");
    r->strange |= member != NULL;
    return -1;
}

static void read_nodes(struct reading *r, struct tec_decision *d, const json_t *json)
{
    const json_t *items;
    int n = list(r, json, "nodes", TEC_MAX_NODES, &items);
    for (int i = 0; i < TEC_MAX_NODES; i++)
        d->nodes[i].partition = -1;
    for (int i = 0; i < n; i++) {
        const json_t *one = item(r, items, i);
        int at = node_of(r, one);
        d->nodes[at].skip = text(r, one, "skip", d->nodes[at].reason, sizeof d->nodes[at].reason);
        d->nodes[at].priority = (int)whole(r, one, "priority", INT_MIN, INT_MAX, 0);
        d->nodes[at].slices = (int)whole(r, one, "slices", 0, INT_MAX, 0);
        d->nodes[at].partition = partition_of(r, one);
    }
    n = list(r, json, "depth", TEC_MAX_RINGS, &items);
    for (int i = 0; i < n; i++) {
        const json_t *depth = json_array_get(items, (size_t)i);
        int64_t number = json_integer_value(depth);
        if (!json_is_integer(depth) || number < 0 || number > INT_MAX)
            refuse(r, "an item", "is no depth");
        else
            d->depth[i] = (int)number;
    }
}

static double share(struct reading *r, const json_t *number, const char *name)
{
    if (!json_is_number(number))
        refuse(r, name, "is no number");
    return json_number_value(number);
}

static void read_memory(struct reading *r, struct tec_decision *d, const json_t *json)
{
    const json_t *items, *ratios;
    d->n_recompute = list(r, json, "recompute", TEC_MAX_MEMORIES, &items);
    for (int i = 0; i < d->n_recompute; i++) {
        const json_t *one = item(r, items, i);
        struct tec_recompute_decision *to = &d->recompute[i];
        to->node = node_of(r, one);
        to->audit = flag(r, one, "audit");
        to->n = list(r, one, "ratios", TEC_MAX_LAYERS, &ratios);
        for (int k = 0; k < to->n; k++)
            to->ratios[k] = share(r, json_array_get(ratios, (size_t)k), "an item");
        r->where = "recompute";
    }
    d->n_seg = list(r, json, "segments", TEC_MAX_SEGMENTS, &items);
    for (int i = 0; i < d->n_seg; i++) {
        const json_t *one = item(r, items, i);
        d->seg[i].score = share(r, json_object_get(one, "score"), "score");
        d->seg[i].skip = flag(r, one, "skip");
    }
}

/* --- the whole -------------------------------------------------------------------------------- */

enum tec_status tec_recorded_decided(struct tec_decided *d, const json_t *json,
                                     const struct tec_topology *topology, struct tec_error *err)
{
    struct reading r = {.topology = topology, .where = ""};
    memset(d, 0, sizeof *d);
    d->frame = whole(&r, json, "frame", 0, INT64_MAX, -1);
    d->session = (int)whole(&r, json, "session", 0, TEC_MAX_SESSIONS - 1, -1);
    text(&r, json, "policy", d->policy, sizeof d->policy);
    read_answers(&r, d, json);
    read_rows(&r, d, json);
    read_nodes(&r, &d->decision, json);
    read_memory(&r, &d->decision, json);
    d->whole = !r.strange;
    return r.wrong[0] ? tec_fail(err, TEC_MALFORMED, "message /tectum/decisions of frame %lld: %s",
                                 (long long)d->frame, r.wrong)
                      : TEC_OK;
}

enum tec_status tec_recorded_decided_ahead(struct tec_decided *d, bool *found,
                                           struct tec_mcap_reader *file,
                                           const struct tec_topology *topology,
                                           struct tec_error *err)
{
    const struct tec_mcap_place here = tec_mcap_tell(file);
    struct tec_mcap_message m;
    enum tec_status status = TEC_OK;
    *found = false;
    while (!*found && tec_mcap_next(file, &m) && !tec_mcap_is(m.topic, "/tectum/ticks")) {
        if (!tec_mcap_is(m.topic, "/tectum/decisions"))
            continue;
        json_t *json = NULL;
        status = tec_recorded_object(&json, &m, err);
        if (status == TEC_OK)
            status = tec_recorded_decided(d, json, topology, err);
        json_decref(json);
        *found = true;
    }
    tec_mcap_seek(file, here);
    return status;
}
