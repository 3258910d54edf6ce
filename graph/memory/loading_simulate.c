/* loading_simulate.c - runs the loading rules on exact times, for tests and golden cases.
 *
 * An event simulation: time jumps to the next end of a load, an importance or a layer. Events of
 * one instant are handled in a fixed order, first completions, then the start of a layer, then the
 * link, so each table of times has one result. */
#include "graph/memory/loading.h"

struct run {
    struct tec_loading rules;
    const unsigned char *sets;
    struct tec_loading_result *out;
    size_t room;
    struct tec_arena *arena;
    int64_t now, load_end;
    struct tec_load load;
    bool loading;
};

static struct tec_layer_event *running(const struct run *r)
{
    return r->rules.started < 0 || !r->out->layers ? NULL : &r->out->layers[r->rules.started];
}

/* Complete what has ended by now; *any is set if something had. */
static enum tec_status complete(struct run *r, bool *any, struct tec_error *err)
{
    const struct tec_layer_event *layer = running(r);
    if (r->loading && r->load_end <= r->now) {
        tec_loading_done(&r->rules, &r->load);
        r->loading = false;
        *any = true;
    }
    if (!layer)
        return TEC_OK;
    int next = r->rules.started + 1;
    if (r->rules.known < next && next < r->rules.table.layers && layer->importance_end <= r->now) {
        const unsigned char *set = r->sets + (size_t)next * (size_t)r->rules.table.segments;
        TEC_TRY(tec_loading_known(&r->rules, set, err));
        *any = true;
    }
    if (r->rules.computing && layer->importance_end <= r->now && layer->end <= r->now) {
        tec_loading_rest(&r->rules);
        *any = true;
    }
    return TEC_OK;
}

static bool start(struct run *r)
{
    const struct tec_loading_table *t = &r->rules.table;
    const struct tec_layer_event *before = running(r);
    int next = r->rules.started + 1;
    if (next >= t->layers || r->rules.computing || !tec_loading_ready(&r->rules))
        return false;
    int64_t free = 0;
    if (before)
        free = before->end > before->importance_end ? before->end : before->importance_end;
    int64_t attention = r->now + t->attention[next];
    r->out->layers[next] = (struct tec_layer_event){
        .start = r->now,
        .attention_end = attention,
        .importance_end = attention + (next + 1 < t->layers ? t->importance[next] : 0),
        .end = attention + t->mlp[next],
        .waited = r->now - free};
    tec_loading_start(&r->rules, r->now);
    return true;
}

/* Room for one more event; a list that grows is copied, the arena keeps the old one. */
static enum tec_status grow(struct run *r, struct tec_error *err)
{
    if (r->out->n_loads < r->room)
        return TEC_OK;
    size_t room = 2 * r->room + 64;
    struct tec_load_event *list = TEC_NEW(r->arena, room, struct tec_load_event);
    if (!list)
        return tec_fail(err, TEC_NO_MEMORY, "loading: no memory for %zu loads", room);
    for (size_t i = 0; i < r->out->n_loads; i++)
        list[i] = r->out->loads[i];
    r->out->loads = list;
    r->room = room;
    return TEC_OK;
}

static enum tec_status link_start(struct run *r, bool *any, struct tec_error *err)
{
    if (r->loading || !tec_loading_pick(&r->rules, r->now, &r->load))
        return TEC_OK;
    TEC_TRY(grow(r, err));
    int64_t took = r->load.to - r->load.from;
    r->load_end = r->now + took;
    r->out->loads[r->out->n_loads++] =
        (struct tec_load_event){r->now, r->load_end, r->load.layer, r->load.segment};
    r->out->busy += took;
    r->loading = true;
    *any = true;
    return TEC_OK;
}

static void earliest(int64_t *next, int64_t at, int64_t now)
{
    if (at > now && (*next < 0 || at < *next))
        *next = at;
}

/* The next instant at which something ends; negative: none. */
static int64_t advance(const struct run *r)
{
    const struct tec_layer_event *layer = running(r);
    int64_t next = -1;
    if (r->loading)
        earliest(&next, r->load_end, r->now);
    if (layer) {
        earliest(&next, layer->importance_end, r->now);
        earliest(&next, layer->end, r->now);
    }
    return next;
}

enum tec_status tec_loading_simulate(struct tec_loading_result *out,
                                     const struct tec_loading_table *table,
                                     enum tec_overlap overlap, const unsigned char *sets,
                                     struct tec_arena *arena, struct tec_error *err)
{
    struct run r = {.sets = sets, .out = out, .arena = arena};
    *out = (struct tec_loading_result){0};
    TEC_TRY(tec_loading_init(&r.rules, table, overlap, sets, arena, err));
    out->layers = TEC_NEW(arena, (size_t)table->layers, struct tec_layer_event);
    if (!out->layers)
        return tec_fail(err, TEC_NO_MEMORY, "loading: no memory for %d layers", table->layers);
    while (r.now >= 0 && out->layers) {
        bool any = false;
        TEC_TRY(complete(&r, &any, err));
        any |= start(&r);
        TEC_TRY(link_start(&r, &any, err));
        if (!any)
            r.now = advance(&r);
    }
    if (r.rules.started + 1 < table->layers)
        return tec_fail(err, TEC_INVALID, "loading: stands still before layer %d",
                        r.rules.started + 1);
    out->finish = out->layers[table->layers - 1].end;
    return TEC_OK;
}
