/* by_call.c - times the forwards of a ring call by call, to show where a frame's time goes. */
#include "tests/experiments/actionflow/by_call.h"

#include <string.h>

enum { PASSES = 9, PASSES_FULL = 3 };

/* A forward as a ring in steady state makes it. */
struct forward {
    struct tec_actionflow_engine *engine;
    enum tec_part_kind part;
    int rows;
    struct tec_row_state row[TEC_MAX_STAGES], *list[TEC_MAX_STAGES];
};

static void place(struct forward *f)
{
    const struct tec_plan *plan = f->engine->base.opened.engine->plan;
    int prefix = tec_prefix_rows(plan, &f->engine->input[0].chains[0].prefix);
    tec_launch_ring_full(plan, prefix, f->part == TEC_PART_PACKED, f->rows, f->row, f->list);
}

static const struct tec_executor *executor_of(const struct forward *f)
{
    return &tec_loop_settings(f->engine->base.opened.engine->loop)->chains[0].executor;
}

static void launch(void *user, struct tec_replay *replay)
{
    struct forward *f = user;
    const struct tec_plan *plan = f->engine->base.opened.engine->plan;
    const struct tec_prefix_input *prefix = &f->engine->input[0].chains[0].prefix;
    const struct tec_executor *x = executor_of(f);
    bool enters = f->part == TEC_PART_PACKED;
    int tokens[TEC_MAX_STAGES];
    struct tec_ring_move moves[TEC_MAX_STAGES];
    struct tec_launch launch = {.kind = TEC_LAUNCH_packed,
                                .replay = *replay,
                                .packed = {.in = {.prefixes = &prefix,
                                                  .rows = f->list,
                                                  .entering = enters,
                                                  .n = f->rows,
                                                  .moves = moves},
                                           .tokens = tokens}};
    place(f);
    if (x->shifts)
        launch.packed.in.n_moves = tec_launch_ring_moves(plan, f->list, enters + f->rows, moves);
    tec_executor_launch(x, &launch);
    *replay = launch.replay;
}

static enum tec_status time_forward(struct tec_actionflow *s, struct tec_actionflow_engine *engine,
                                    struct tec_actionflow_forward *out, enum tec_part_kind part,
                                    struct tec_error *err)
{
    struct tec_plan *plan = engine->base.opened.engine->plan;
    const struct tec_prefix_input *prefix = &engine->input[0].chains[0].prefix;
    struct tec_error why = {0};
    struct forward *f = TEC_NEW(&engine->base.arena, 1, struct forward);
    if (!f)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a forward");
    f->engine = engine;
    f->part = part;
    f->rows = out->rows;
    const struct tec_op_times_of of = {
        .plan = plan,
        .part = tec_plan_part(plan, part, out->rows),
        .size = {.pictures = prefix->n_pictures, .text = prefix->n_text, .rows = out->rows, .k = 1},
        .passes = s->full ? PASSES_FULL : PASSES,
        .launch = launch,
        .user = f};
    enum tec_status status = tec_op_times_measure(&out->times, &of, s->call->heap, &why);
    out->known = status == TEC_OK;
    if (status == TEC_OK || status == TEC_UNSUPPORTED)
        return TEC_OK;
    return tec_fail(err, status, "%s", why.message);
}

enum tec_status tec_actionflow_time_calls(struct tec_actionflow *s,
                                          struct tec_actionflow_engine *engine,
                                          enum tec_actionflow_variant variant,
                                          struct tec_error *err)
{
    struct tec_actionflow_forward *f = s->forwards;
    int others = s->cells[s->by_call].stages - 1;
    f[TEC_ACTIONFLOW_ALONE].name = "prefill alone";
    f[TEC_ACTIONFLOW_ONE].name = "decode, one row";
    f[TEC_ACTIONFLOW_FULL].name = "packed, full ring";
    f[TEC_ACTIONFLOW_GATHERED].name = "packed, gathered";
    f[TEC_ACTIONFLOW_MOVED].name = "packed, moved";
    f[TEC_ACTIONFLOW_ONE].rows = 1;
    f[TEC_ACTIONFLOW_FULL].rows = f[TEC_ACTIONFLOW_GATHERED].rows = f[TEC_ACTIONFLOW_MOVED].rows =
        others;
    if (variant == TEC_ACTIONFLOW_GATHER)
        return time_forward(s, engine, &f[TEC_ACTIONFLOW_GATHERED], TEC_PART_PACKED, err);
    if (variant == TEC_ACTIONFLOW_COPY)
        return time_forward(s, engine, &f[TEC_ACTIONFLOW_MOVED], TEC_PART_PACKED, err);
    TEC_TRY(time_forward(s, engine, &f[TEC_ACTIONFLOW_ALONE], TEC_PART_PACKED, err));
    TEC_TRY(time_forward(s, engine, &f[TEC_ACTIONFLOW_FULL], TEC_PART_PACKED, err));
    return others ? time_forward(s, engine, &f[TEC_ACTIONFLOW_ONE], TEC_PART_DECODE, err) : TEC_OK;
}
