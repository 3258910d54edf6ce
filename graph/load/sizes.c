/* sizes.c - deadlines, axes, slots: numbers of a pipeline that must fit each other. */
#include "graph/load/loader.h"
#include "graph/load/pipeline_texts.h"

#include <string.h>

static const char *shown(const char *name)
{
    return name ? name : "?";
}

/* A field of the pipeline's table, as a thing of its own. */
static const struct tec_decl_entry *section(const struct tec_loader *ld, const char *name)
{
    return tec_decl_value_find(ld->root, name);
}

static struct tec_where where_section(const struct tec_loader *ld, const char *name)
{
    struct tec_decl_entry top = {.value = ld->root, .source = -1, .open = -1, .item = -1};
    const struct tec_decl_entry *e = section(ld, name);
    if (e)
        return tec_where_thing(ld, e);
    return tec_where_thing(ld, &top);
}

/* Robots' times are given in seconds elsewhere; no frame is shorter than a millisecond. */
static void check_unit(struct tec_loader *ld, double ms, struct tec_where where)
{
    if (ms <= 0 || ms >= 1)
        return;
    struct tec_diagnostic *d =
        tec_diagnostics_add(ld->d, TEC_W107, where, "%g ms is less than a millisecond", ms);
    tec_diagnostics_help(ld->d, d, "times are in milliseconds: %g s are %g", ms, ms * 1e3);
}

/* Partitions run beside each other: together they are at most the device. */
static void check_shares(struct tec_loader *ld)
{
    const struct tec_pipeline *p = ld->pipeline;
    double sum = 0.0;
    for (int i = 0; i < p->n_partitions; i++) {
        sum += p->partitions[i].share;
        if (sum <= 1.0 + 1e-9)
            continue;
        tec_diagnostics_add(ld->d, TEC_E011, tec_where_field(ld, &ld->partitions[i], "share"),
                            "with '%s' the shares of partitions add up to %g: together they have "
                            "one device",
                            shown(p->partitions[i].name), sum);
        return;
    }
}

static bool rounds_bf16(const struct tec_decl_model *m)
{
    return m->round != TEC_ROUND_NONE && m->round != TEC_ROUND_INT8;
}

static void say_unrounded(struct tec_diagnostics *d, const struct tec_decl_model *m)
{
    tec_diagnostics_add(d, TEC_W110, tec_decl_place(&m->places, "round", m->where),
                        "model '%s' has `round`, which is for bf16 weights: with dtype = \"f32\" "
                        "nothing is rounded",
                        shown(m->name));
}

void tec_pipeline_check_dtype(const struct tec_pipeline *p, const char *dtype,
                              struct tec_diagnostics *d)
{
    bool f32 = dtype && strcmp(dtype, "f32") == 0;
    for (int i = 0; dtype && i < p->n_models; i++) {
        const struct tec_decl_model *m = &p->models[i];
        bool own = m->dtype == TEC_DECL_F32;
        if (rounds_bf16(m) && f32 && !own)
            say_unrounded(d, m);
        else if (rounds_bf16(m) && !f32 && own)
            tec_diagnostics_take_back(d, TEC_W110, tec_decl_place(&m->places, "round", m->where));
    }
}

/* Values that this release has no use for. */
static void check_followed(struct tec_loader *ld)
{
    const struct tec_pipeline *p = ld->pipeline;
    for (int i = 0; i < p->n_models; i++)
        if (p->models[i].dtype == TEC_DECL_F32 && rounds_bf16(&p->models[i]))
            say_unrounded(ld->d, &p->models[i]);
    for (int i = 0; i < p->n_partitions; i++)
        if (p->partitions[i].priority != TEC_PRIORITY_NORMAL)
            tec_diagnostics_add(ld->d, TEC_W110,
                                tec_where_field(ld, &ld->partitions[i], "priority"),
                                "'%s' has a priority: partitions run beside each other, each on "
                                "its share, and nothing follows it",
                                shown(p->partitions[i].name));
}

static void check_period(struct tec_loader *ld)
{
    const struct tec_decl_entry *frame = section(ld, "frame");
    if (frame)
        check_unit(ld, ld->pipeline->frame.period_ms, tec_where_field(ld, frame, "period_ms"));
}

static void check_deadline(struct tec_loader *ld, int i)
{
    const struct tec_pipeline *p = ld->pipeline;
    const struct tec_decl_deadline *dl = &p->nodes[i].deadline;
    const struct tec_decl_entry *e = tec_decl_value_find(ld->nodes[i].value, "deadline");
    struct tec_decl_node *nodes = ld->lists[TEC_NODES];
    if (e)
        nodes[i].deadline.where_ms = tec_where_field(ld, e, "ms");
    if (e)
        check_unit(ld, dl->ms, nodes[i].deadline.where_ms);
    if (dl->kind != TEC_DEADLINE_HARD || !e)
        return;
    if (dl->on_miss == TEC_MISS_DECAY && dl->decay_actions == 0 &&
        !tec_decl_value_find(e->value, "decay_actions"))
        tec_diagnostics_add(ld->d, TEC_E012, tec_where_thing(ld, e),
                            "missing field 'decay_actions' in hard: on_miss is 'decay'");
    if (p->frame.period_ms <= 0 || dl->ms <= p->frame.period_ms)
        return;
    struct tec_diagnostic *d = tec_diagnostics_add(
        ld->d, TEC_E030, tec_where_field(ld, e, "ms"),
        "hard deadline %g ms is longer than the frame period %g ms", dl->ms, p->frame.period_ms);
    const struct tec_decl_entry *frame = section(ld, "frame");
    if (frame)
        tec_diagnostics_also(ld->d, d, tec_where_field(ld, frame, "period_ms"), "period set here");
    tec_diagnostics_help(
        ld->d, d, "a hard deadline must fit in one frame; use soft{} for work that spans frames");
}

static void empty_axis(struct tec_loader *ld, int node, const char *axis, const char *example)
{
    struct tec_diagnostic *d = tec_diagnostics_add(ld->d, TEC_E050, where_section(ld, "capture"),
                                                   "capture.%s is empty, but '%s' needs it", axis,
                                                   shown(ld->pipeline->nodes[node].name));
    tec_diagnostics_also(ld->d, d, ld->pipeline->nodes[node].where, "declared here");
    tec_diagnostics_help(ld->d, d, "for example capture { %s = { %s } }", axis, example);
}

/* Was this axis given, be it wrongly? Then it was reported. */
static bool is_given(const struct tec_loader *ld, const char *axis)
{
    if (tec_build_misspelt(ld, TEC_CON_pipeline, "capture") ||
        tec_build_misspelt(ld, TEC_CON_capture, axis))
        return true;
    const struct tec_decl_entry *capture = section(ld, "capture");
    const struct tec_decl_entry *e = capture ? tec_decl_value_find(capture->value, axis) : NULL;
    return e && !(e->value->kind == TEC_VALUE_LIST && e->value->n == 0);
}

static void check_axes(struct tec_loader *ld)
{
    const struct tec_pipeline *p = ld->pipeline;
    bool told[4] = {false};
    for (int i = 0; i < p->n_nodes; i++) {
        const struct tec_decl_node *n = &p->nodes[i];
        bool decode = n->kind == TEC_DECL_DECODE && n->kv.index >= 0;
        enum tec_resource_kind kind = decode ? p->resources[n->kv.index].kind : TEC_RESOURCE_BUFFER;
        bool needs[4] = {kind == TEC_RESOURCE_REQUESTS,
                         kind == TEC_RESOURCE_REQUESTS || kind == TEC_RESOURCE_FRAME,
                         kind == TEC_RESOURCE_RING, n->kind == TEC_DECL_MEMORY_LOAD};
        static const char *const axes[4] = {"batch", "k", "depth", "ratio"};
        static const char *const examples[4] = {"1, 2, 4", "4, 8", "1, 7", "0.25, 1.0"};
        for (int a = 0; a < 4; a++) {
            if (!needs[a] || told[a] || is_given(ld, axes[a]))
                continue;
            told[a] = true;
            empty_axis(ld, i, axes[a], examples[a]);
        }
    }
}

static void check_depth(struct tec_loader *ld)
{
    const struct tec_pipeline *p = ld->pipeline;
    int stages = 0;
    for (int i = 0; i < p->n_resources; i++)
        if (p->resources[i].stages > stages)
            stages = p->resources[i].stages;
    const struct tec_ints *depth = &p->capture.depth;
    if (stages > 0 && depth->n > 0 && depth->item[depth->n - 1] > stages)
        tec_diagnostics_add(ld->d, TEC_E011, tec_where_field(ld, section(ld, "capture"), "depth"),
                            "depth %d is more than the %d stages of the ring",
                            depth->item[depth->n - 1], stages);
}

/* A launch takes observations of at most as many sessions as there are, and a frame may wait for
 * them no longer than until its next tick. */
static void check_sessions(struct tec_loader *ld)
{
    const struct tec_pipeline *p = ld->pipeline;
    const struct tec_ints *together = &p->capture.sessions;
    int most = together->n ? together->item[together->n - 1] : 0;
    if (most > p->frame.sessions)
        tec_diagnostics_add(ld->d, TEC_E011,
                            tec_where_field(ld, section(ld, "capture"), "sessions"),
                            "%d observations in a launch are more than the frame's %d session%s",
                            most, p->frame.sessions, p->frame.sessions == 1 ? "" : "s");
    if (p->frame.period_ms > 0.0 && p->frame.gather_ms >= p->frame.period_ms)
        tec_diagnostics_add(ld->d, TEC_E011, tec_where_field(ld, section(ld, "frame"), "gather_ms"),
                            "a frame waits %g ms for other sessions, its period is %g ms",
                            p->frame.gather_ms, p->frame.period_ms);
}

static void check_captures(struct tec_loader *ld)
{
    const struct tec_pipeline *p = ld->pipeline;
    int n = tec_pipeline_captures(p);
    if (p->capture.max_graphs == 0 || n <= p->capture.max_graphs)
        return;
    const struct tec_decl_entry *capture = section(ld, "capture");
    struct tec_diagnostic *d = tec_diagnostics_add(
        ld->d, TEC_E050,
        capture ? tec_where_field(ld, capture, "max_graphs") : where_section(ld, "capture"),
        "%d captures, the most is %d", n, p->capture.max_graphs);
    tec_diagnostics_help(ld->d, d, "drop points of capture.batch, or raise max_graphs");
}

/* Is the input that a field of an action node names a tensor of so many dimensions? */
static bool check_numbers(struct tec_loader *ld, const struct tec_ref *ref, struct tec_where where,
                          const char *field, int dims)
{
    const struct tec_decl_input *in = &ld->pipeline->inputs[ref->index];
    if (in->kind == TEC_INPUT_TENSOR &&
        (in->shape.n == dims || in->shape.n == 0) && /* 0: reported by itself */
        (in->dtype == TEC_DECL_F32 || in->dtype == TEC_DECL_F64))
        return true;
    struct tec_diagnostic *d = tec_diagnostics_add(
        ld->d, TEC_E024, where, "%s of action takes a tensor %s of f32 or f64, '%s' is not one",
        field, dims == 2 ? "{ rows, columns }" : "{ 1 }", ref->name);
    tec_diagnostics_also(ld->d, d, in->where, "'%s' is declared here", ref->name);
    return false;
}

/* What a chunk is pulled to has no more rows than it. */
static void check_guide(struct tec_loader *ld, int i)
{
    const struct tec_pipeline *p = ld->pipeline;
    const struct tec_decl_node *n = &p->nodes[i];
    const struct tec_ref *from = &n->guide.previous, *delays = &n->guide.delays;
    const struct tec_decl_entry *guide = tec_decl_value_find(ld->nodes[i].value, "guide");
    const struct tec_decl_resource *out = n->out.buffer < 0 ? NULL : &p->resources[n->out.buffer];
    if (!guide || from->index < 0)
        return;
    bool fits =
        check_numbers(ld, from, tec_where_field(ld, guide, "previous"), "guide.previous", 2);
    if (delays->index >= 0)
        check_numbers(ld, delays, tec_where_field(ld, guide, "delay_input"), "guide.delay_input",
                      1);
    const struct tec_decl_input *in = &p->inputs[from->index];
    if (fits && in->shape.n == 2 && out && out->shape.n == 2 &&
        in->shape.item[0] > out->shape.item[0]) {
        struct tec_diagnostic *d = tec_diagnostics_add(
            ld->d, TEC_E011, tec_where_field(ld, &ld->inputs[from->index], "shape"),
            "'%s' has up to %d actions of an earlier chunk, a chunk has %d", from->name,
            in->shape.item[0], out->shape.item[0]);
        tec_diagnostics_help(ld->d, d, "at most %d rows", out->shape.item[0]);
    }
}

/* Rows that are given are fewer than rows that are made. */
static void check_given(struct tec_loader *ld, int i)
{
    const struct tec_pipeline *p = ld->pipeline;
    const struct tec_decl_node *n = &p->nodes[i];
    struct tec_diagnostic *d;
    check_guide(ld, i);
    if (n->prefix.index < 0)
        return;
    const struct tec_decl_input *in = &p->inputs[n->prefix.index];
    const struct tec_decl_resource *out = n->out.buffer < 0 ? NULL : &p->resources[n->out.buffer];
    bool fits =
        check_numbers(ld, &n->prefix, tec_where_field(ld, &ld->nodes[i], "prefix"), "prefix", 2);
    if (fits && in->shape.n == 2 && out && out->shape.n == 2 &&
        in->shape.item[0] >= out->shape.item[0]) {
        d = tec_diagnostics_add(
            ld->d, TEC_E011, tec_where_field(ld, &ld->inputs[n->prefix.index], "shape"),
            "'%s' gives up to %d actions of the %d in a chunk, nothing would be left to compute",
            n->prefix.name, in->shape.item[0], out->shape.item[0]);
        tec_diagnostics_also(ld->d, d, n->where, "the action node");
        tec_diagnostics_help(ld->d, d, "at most %d rows", out->shape.item[0] - 1);
    }
}

static void check_unused(struct tec_loader *ld)
{
    const struct tec_pipeline *p = ld->pipeline;
    for (int i = 0; i < p->n_inputs && !ld->broken; i++) {
        bool used = p->inputs[i].name == NULL || tec_pipeline_gives(p, i);
        for (int j = 0; j < p->n_nodes && !used; j++)
            used = p->nodes[j].prompt.index == i || tec_decl_reads(&p->nodes[j], i);
        enum tec_input_kind kind = p->inputs[i].kind;
        bool robots = kind == TEC_INPUT_IMAGE || kind == TEC_INPUT_TENSOR;
        if (!used)
            tec_diagnostics_add(ld->d, TEC_W101, tec_where_field(ld, &ld->inputs[i], "name"),
                                "no node names input '%s' in reads%s", p->inputs[i].name,
                                robots ? "; a robot that has it gives it to the model all the same"
                                       : "");
    }
}

static void check_idle(struct tec_loader *ld)
{
    const struct tec_pipeline *p = ld->pipeline;
    for (int i = 0; i < p->n_models && p->n_models > 1 && !ld->broken; i++)
        if (p->models[i].name && !tec_pipeline_runs(p, i))
            tec_diagnostics_add(ld->d, TEC_W105, tec_where_thing(ld, &ld->models[i]),
                                "no node runs model '%s'", p->models[i].name);
}

/* How many requests that a node spawns are in flight: with k steps a frame each lives ceil(tokens /
 * k) frames, unless the next one ends it, or its frame makes it to its end. 0: another kind of
 * node, or nobody knows. */
static int in_flight(const struct tec_pipeline *p, const struct tec_decl_node *n)
{
    const struct tec_decl_spawn spawn = tec_pipeline_spawn(p, n);
    if (spawn.kind != TEC_SPAWN_EVERY || p->capture.k.n == 0 || n->max_tokens == 0)
        return 0;
    int own = n->prompt.index < 0 ? 0 : p->inputs[n->prompt.index].max_tokens;
    int k = p->capture.k.item[0], frames = (own + n->max_tokens + k - 1) / k;
    return n->supersede || tec_pipeline_awaited(p, n) ? 1 : (frames - 1) / spawn.frames + 1;
}

/* The slots of a resource against the requests of all its nodes together. */
static void check_slots(struct tec_loader *ld, int resource)
{
    const struct tec_pipeline *p = ld->pipeline;
    const struct tec_decl_resource *res = &p->resources[resource];
    int alive = 0;
    for (int i = 0; i < p->n_nodes; i++)
        alive += p->nodes[i].kv.index == resource ? in_flight(p, &p->nodes[i]) : 0;
    if (res->kind != TEC_RESOURCE_REQUESTS || res->slots == 0 || alive <= res->slots)
        return;
    int k = p->capture.k.item[0];
    struct tec_diagnostic *d = tec_diagnostics_add(
        ld->d, TEC_W102, tec_where_field(ld, &ld->resources[resource], "slots"),
        "at k = %d up to %d requests are in flight, but '%s' has %d slots: requests will be shed",
        k, alive, shown(res->name), res->slots);
    for (int i = 0; i < p->n_nodes; i++) {
        const struct tec_decl_node *n = &p->nodes[i];
        if (n->kv.index == resource && in_flight(p, n) > 0)
            tec_diagnostics_also(
                ld->d, d, n->where, "'%s' spawns one request every %d frame(s), %d tokens each: %d",
                shown(n->name), tec_pipeline_spawn(p, n).frames, n->max_tokens, in_flight(p, n));
    }
    if (p->capture.k.n > 1)
        tec_diagnostics_help(ld->d, d,
                             "raise slots to %d, spawn less often, or drop k = %d from capture.k",
                             alive, k);
    else
        tec_diagnostics_help(ld->d, d, "raise slots to %d, spawn less often, or use a larger k",
                             alive);
}

/* One row more than a captured batch runs as the next one. */
static void check_padding(struct tec_loader *ld)
{
    const struct tec_decl_entry *capture = section(ld, "capture");
    const struct tec_decl_entry *list =
        capture ? tec_decl_value_find(capture->value, "batch") : NULL;
    const struct tec_ints *batch = &ld->pipeline->capture.batch;
    for (int i = 0; list && i < batch->n && batch->n == list->value->n; i++) {
        int rows = i ? batch->item[i - 1] + 1 : 1, runs = batch->item[i];
        if (2 * runs <= 3 * rows)
            continue;
        struct tec_diagnostic *d = tec_diagnostics_add(
            ld->d, TEC_W104, tec_where_value(ld, &list->value->entries[i]),
            "a batch of %d rows runs as %d: %.2g times the work", rows, runs, (double)runs / rows);
        tec_diagnostics_help(ld->d, d, "add a point to capture.batch, such as %d",
                             (2 * runs + 2) / 3 - 1 > rows ? (2 * runs + 2) / 3 - 1 : rows);
    }
}

void tec_check_sizes(struct tec_loader *ld)
{
    tec_keep_places(ld);
    for (int i = 0; i < ld->pipeline->n_nodes; i++) {
        check_deadline(ld, i);
        check_given(ld, i);
    }
    for (int i = 0; i < ld->pipeline->n_resources; i++)
        check_slots(ld, i);
    tec_check_devices(ld);
    tec_check_round_int8(ld);
    check_followed(ld);
    check_shares(ld);
    check_period(ld);
    check_axes(ld);
    check_depth(ld);
    check_sessions(ld);
    check_captures(ld);
    check_unused(ld);
    check_idle(ld);
    check_padding(ld);
}
