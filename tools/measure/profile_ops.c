/* profile_ops.c - times the calls of every part that a pipeline's frame launches. */
#include "tools/measure/profile_ops.h"

#include "tools/measure/bandwidth.h"
#include "tools/measure/costs_settings.h"
#include "tools/measure/peak_gemm.h"

#include <stdio.h>
#include <string.h>

enum { MOST_OPS = 8192, READ_BYTES = 256 << 20, ROOF_ROWS = 256, ROOF_SIDE = 1024, ROOF_TIMES = 5 };

/* The part that is being timed. */
struct timed_part {
    struct tec_profile *p;
    struct tec_profiled_ops *out;
    const struct tec_profile_ops_options *o;
    int chain, part, rows, action;
    enum tec_part_kind kind;
};

/* --- launches --------------------------------------------------------------------------------- */

static void launch_decode(struct timed_part *t, const struct tec_executor *x,
                          struct tec_replay *replay)
{
    struct tec_profile *p = t->p;
    struct tec_plan *plan = p->opened.engine->chains[t->chain].plan;
    const struct tec_prefix_input *o = t->chain ? &p->prompts[t->chain] : &p->input.prefix;
    int region = t->chain ? p->regions[t->chain] : p->region, prefix = tec_prefix_rows(plan, o);
    for (int r = 0; r < t->rows; r++)
        tec_row_start(&p->rows[r], plan, region, prefix, o->ids[0], r, plan->spec.new_tokens, -1);
    struct tec_launch launch = {
        .kind = TEC_LAUNCH_decode,
        .replay = *replay,
        .decode = {.rows = p->list, .n = t->rows, .k = 1, .tokens = p->tokens, .made = p->made}};
    tec_executor_launch(x, &launch);
    *replay = launch.replay;
}

static void launch_ring(struct timed_part *t, const struct tec_executor *x,
                        struct tec_replay *replay)
{
    const struct tec_profile_variant v = {.kind = t->kind == TEC_PART_PACKED ? TEC_COST_PACKED
                                                                             : TEC_COST_DECODE,
                                          .model = t->chain,
                                          .ring = true,
                                          .enter = t->kind == TEC_PART_PACKED,
                                          .batch = t->rows};
    tec_profile_launch_ring(t->p, x, &v, replay);
}

/* A prefill, with the action that goes with it or without, or an action node alone. */
static void launch_hard(const struct timed_part *t, const struct tec_executor *x,
                        struct tec_observed of, struct tec_replay *replay)
{
    const struct tec_plan *plan = t->p->opened.engine->chains[t->chain].plan;
    struct tec_launch launch = {.kind = TEC_LAUNCH_prefix,
                                .replay = *replay,
                                .prefix = {.each = &of, .n = 1, .acts = t->kind == TEC_PART_FRAME}};
    if (t->kind == TEC_PART_ACTION) {
        launch.kind = TEC_LAUNCH_action;
        launch.action = (struct tec_action_launch){.region = of.region,
                                                   .rows = tec_prefix_rows(plan, &of.input->prefix),
                                                   .at = t->action,
                                                   .input = of.input,
                                                   .state = of.input->state};
    }
    tec_executor_launch(x, &launch);
    *replay = launch.replay;
}

static void launch(void *user, struct tec_replay *replay)
{
    struct timed_part *t = user;
    struct tec_profile *p = t->p;
    struct tec_plan *plan = p->opened.engine->chains[t->chain].plan;
    const struct tec_executor x = tec_executor_real(plan);
    struct tec_chain_input in = p->input;
    if (t->chain)
        in = (struct tec_chain_input){.prefix = p->prompts[t->chain]};
    for (int i = 0; i < TEC_MAX_ACTIONS && t->chain; i++)
        in.noise[i] = p->starts[t->chain];
    int region = t->chain ? p->regions[t->chain] : p->region;
    if (plan->spec.stages)
        launch_ring(t, &x, replay);
    else if (t->kind == TEC_PART_DECODE)
        launch_decode(t, &x, replay);
    else
        launch_hard(t, &x, (struct tec_observed){.region = region, .input = &in}, replay);
}

/* --- what is summed --------------------------------------------------------------------------- */

static const char *node_of(const struct timed_part *t, enum tec_stage stage)
{
    const struct tec_engine *e = t->p->opened.engine;
    const struct tec_loop_options *o = tec_loop_settings(e->loop);
    if (stage == TEC_STAGE_ACTION)
        return tec_profile_action(t->p, t->chain, t->action);
    for (int i = 0; i < o->n_decoders && stage == TEC_STAGE_DECODE; i++)
        if (o->decoders[i].chain == t->chain)
            return o->decoders[i].name;
    if (stage == TEC_STAGE_DECODE || stage == TEC_STAGE_SHIFT)
        return tec_profile_action(t->p, t->chain, 0);
    int node = o->chains[t->chain].prefill_node;
    return node >= 0 ? e->topology.nodes[node].name : "";
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* What may be measured: the first for whatever is not named, the second for float32. */
static const struct tec_profiled_rate rates[TEC_PROFILE_RATES] = {
    {.name = "bf16", .kernel = TEC_KERNEL_gemm_bf16, .used = true},
    {.name = "f32", .kernel = TEC_KERNEL_gemm_f32, .used = true},
    {.name = "bf16_rounded", .kernel = TEC_KERNEL_gemm_bf16, .rounded = true},
    {.name = "int8", .kernel = TEC_KERNEL_gemm_int8},
    {.name = "int8_rounded", .kernel = TEC_KERNEL_gemm_int8, .rounded = true},
    {.name = "int4", .kernel = TEC_KERNEL_gemm_int4},
};

static double rate_of(struct tec_profiled_ops *ops, const struct tec_op_call *call)
{
    for (int i = 0; i < TEC_PROFILE_RATES; i++) {
        struct tec_profiled_rate *r = &ops->rates[i];
        if (r->kernel != call->kernel || r->rounded != call->rounded)
            continue;
        r->used = true;
        return r->flop_s;
    }
    return ops->rates[0].flop_s;
}

/* The least time of a call at the rates that were measured here; 0: none were. */
static double roof_us(struct tec_profiled_ops *ops, const struct tec_op_call *call)
{
    const struct tec_cost *c = &call->cost;
    if (!(ops->bytes_s > 0.0))
        return 0.0;
    double products = (double)c->products / rate_of(ops, call);
    double plain = (double)tec_cost_plus(c->products_f32, c->other) / ops->rates[1].flop_s;
    return 1e6 * larger(products + plain, (double)tec_cost_bytes(c) / ops->bytes_s);
}

static void take_call(void *user, const struct tec_op_call *call)
{
    struct timed_part *t = user;
    struct tec_profiled_ops *ops = t->out;
    const char *label = t->o->layers && !t->o->both ? "" : call->label;
    int layer = t->o->layers || t->o->both ? call->layer : -1, at = 0;
    while (at < ops->n && (ops->ops[at].part != t->part || ops->ops[at].stage != call->stage ||
                           ops->ops[at].layer != layer || strcmp(ops->ops[at].op, label) != 0))
        at++;
    if (at == ops->room)
        return;
    struct tec_profiled_op *op = &ops->ops[at];
    if (at == ops->n) {
        *op = (struct tec_profiled_op){.part = t->part,
                                       .stage = call->stage,
                                       .node = node_of(t, call->stage),
                                       .op = label,
                                       .layer = layer};
        ops->n++;
    }
    op->calls++;
    op->us += call->ns / 1e3;
    op->roof_us += roof_us(ops, call);
    tec_cost_add(&op->cost, &call->cost);
}

static enum tec_status time_part(struct timed_part *t, struct tec_error *err)
{
    struct tec_plan *plan = t->p->opened.engine->chains[t->chain].plan;
    const struct tec_prefix_input *in = t->chain ? &t->p->prompts[t->chain] : &t->p->input.prefix;
    const struct tec_plan_part *part =
        tec_plan_part(plan, t->kind, t->kind == TEC_PART_ACTION ? t->action : t->rows);
    struct tec_op_times times;
    struct tec_error why = {.message = ""};
    if (!part || t->out->n_parts == TEC_PROFILE_PARTS)
        return TEC_OK;
    const struct tec_op_times_of of = {
        .plan = plan,
        .part = part,
        .size = {.pictures = in->n_pictures, .text = in->n_text, .rows = t->rows, .k = 1},
        .passes = t->o->passes,
        .launch = launch,
        .each = take_call,
        .user = t};
    t->part = t->out->n_parts;
    if (tec_work_check(plan, part, &of.size, &why) != TEC_OK) {
        snprintf(t->out->left_out, sizeof t->out->left_out, "%.110s", why.message);
        return TEC_OK;
    }
    TEC_TRY(tec_op_times_measure(&times, &of, t->p->call->heap, err));
    t->out->parts[t->out->n_parts++] =
        (struct tec_profiled_part){part->name, t->chain, times.launch_ns / 1e3, times.sum_ns / 1e3};
    t->out->frame_us += times.launch_ns / 1e3;
    t->out->sum_us += times.sum_ns / 1e3;
    return TEC_OK;
}

static enum tec_status time_kind(struct timed_part *t, enum tec_part_kind kind, int rows,
                                 int action, struct tec_error *err)
{
    t->kind = kind;
    t->rows = rows;
    t->action = action;
    return time_part(t, err);
}

/* The parts that a frame of this chain launches. */
static enum tec_status time_chain(struct timed_part *t, struct tec_error *err)
{
    const struct tec_engine *e = t->p->opened.engine;
    const struct tec_plan_spec *s = &e->chains[t->chain].plan->spec;
    if (s->stages) {
        TEC_TRY(time_kind(t, TEC_PART_PACKED, s->stages - 1, 0, err));
        return s->stages > 1 ? time_kind(t, TEC_PART_DECODE, s->stages - 1, 0, err) : TEC_OK;
    }
    bool acts = s->n_actions > 0 && s->frame_action >= 0;
    TEC_TRY(time_kind(t, acts ? TEC_PART_FRAME : TEC_PART_PREFIX, acts ? 1 : 0,
                      acts ? s->frame_action : 0, err));
    for (int i = 0; i < s->n_actions; i++)
        if (i != s->frame_action)
            TEC_TRY(time_kind(t, TEC_PART_ACTION, 0, i, err));
    int most = 0;
    for (int i = 0; i < s->n_batches; i++)
        most = s->batches[i] > most ? s->batches[i] : most;
    most = most < s->request_slots ? most : s->request_slots;
    return most ? time_kind(t, TEC_PART_DECODE, most, 0, err) : TEC_OK;
}

static enum tec_status measure_roof(struct tec_profiled_ops *out, struct tec_profile *p,
                                    struct tec_error *err)
{
    struct tec_device *device = p->opened.engine->device;
    if (strcmp(tec_device_kind(device), "cpu") != 0)
        return TEC_OK; /* products of this size are no measure of a GPU */
    for (int i = 0; i < TEC_PROFILE_RATES; i++) {
        struct tec_profiled_rate *r = &out->rates[i];
        const struct tec_peak_gemm of = {r->kernel, r->rounded, ROOF_ROWS, ROOF_SIDE, ROOF_TIMES};
        TEC_TRY(tec_peak_gemm_measure(&r->flop_s, device, &of, p->call->heap, err));
    }
    return tec_bandwidth_read(&out->bytes_s, tec_device_lanes(device), READ_BYTES, ROOF_TIMES,
                              p->call->heap, err);
}

enum tec_status tec_profile_time_ops(struct tec_profiled_ops *out, struct tec_profile *p,
                                     const struct tec_profile_ops_options *options,
                                     struct tec_error *err)
{
    const struct tec_engine *e = p->opened.engine;
    struct timed_part t = {.p = p, .out = out, .o = options};
    *out = (struct tec_profiled_ops){
        .room = MOST_OPS, .pipeline = p->opened.pipeline, .dtype = p->opened.more.dtype};
    out->settings = tec_profile_settings_text(out->pipeline, out->dtype, p->call->arena);
    memcpy(out->rates, rates, sizeof rates);
    out->ops = TEC_NEW(p->call->arena, MOST_OPS, struct tec_profiled_op);
    if (!out->ops)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for the times of ops");
    TEC_TRY(measure_roof(out, p, err));
    tec_profile_take_regions(p);
    enum tec_status status = TEC_OK;
    for (t.chain = 0; t.chain < e->n_chains && status == TEC_OK; t.chain++)
        if (!e->chains[t.chain].joins)
            status = time_chain(&t, err);
    tec_profile_drop_regions(p);
    return status;
}
