/* lower.c - the pass from nodes to programs. */
#include "graph/compile/plan.h"

#include <string.h>

static struct tec_plan_part *add_part(struct tec_plan *p, enum tec_part_kind kind, const char *name,
                                      bool beside)
{
    struct tec_plan_part *part = &p->parts[p->n_parts++];
    part->kind = kind;
    part->beside = beside;
    part->name = name;
    part->taps.arena = &p->arena;
    tec_program_init(&part->program, &p->arena, name);
    return part;
}

static struct tec_lower lower_into(struct tec_plan *p, struct tec_plan_part *part)
{
    return (struct tec_lower){.program = &part->program,
                              .model = p->model,
                              .weights = p->weights,
                              .timed = p->timed[part->action],
                              .guidance = p->spec.actions[part->action].guidance,
                              .space = &p->space,
                              .towers = p->towers[part->beside],
                              .reading = p->reading[part->beside],
                              .crossed = &p->crossed,
                              .shuffle = p->shuffle,
                              .cos_sin = p->cos_sin,
                              .positions = p->positions,
                              .scratch = p->scratch[part->beside],
                              .lut = p->lut,
                              .zero = p->zero,
                              .ends = p->ends,
                              .device = p->device,
                              .round = p->weights->bf16 && p->spec.round,
                              .two_terms = p->spec.two_terms,
                              .whole = p->spec.whole,
                              .hidden = -1,
                              .prefix = &part->prefix_device,
                              .decode = &part->decode_device,
                              .moves = &part->moves_device,
                              .recall = &part->recall_device,
                              .remember = &part->remember_device,
                              .kept = &p->kept,
                              .keeps = p->spec.segments > 0,
                              .gathered = p->spec.gathers ? &p->gathered : NULL,
                              .score = &part->score_device,
                              .trie = p->trie,
                              .max_moved = p->spec.ring_tokens,
                              .penalty = p->spec.penalty,
                              .taps = p->spec.taps ? &part->taps : NULL};
}

static enum tec_status lower_node(struct tec_lower *l, enum tec_node_id node, struct tec_error *err)
{
    return tec_node_kinds[node]->lower(l, err);
}

/* Whether an action node may be given an earlier chunk. */
static bool guides(const struct tec_plan *p, int action)
{
    return p->spec.actions[action].guidance > 0.0F;
}

/* A prefill for the observations of `n` sessions; where it is a frame's the action behind it. */
static enum tec_status lower_prefix(struct tec_plan *p, enum tec_part_kind kind, bool beside, int n,
                                    struct tec_error *err)
{
    bool frame = kind == TEC_PART_FRAME;
    bool action = frame && p->spec.n_actions > 0 && p->spec.frame_action >= 0;
    const char *name = n > 1    ? tec_arena_printf(&p->arena, "frame.s%d", n)
                       : frame  ? "frame"
                       : beside ? "private.beside"
                                : "private";
    bool shares = p->spec.shares && n == 1 && !beside && !p->spec.interpret;
    struct tec_plan_part *part = add_part(p, kind, name ? name : "frame", beside);
    part->action = action ? p->spec.frame_action : 0;
    part->batch = n;
    const struct tec_prefix_limits limits = {.model = p->model,
                                             .max_rows = n * p->spec.frame_tokens,
                                             .max_text = n * p->spec.text_tokens,
                                             .max_pictures = n * p->spec.pictures,
                                             .scratch_slot = p->scratch_slots[part->action],
                                             .max_keys = action ? tec_plan_keys(p) : 0,
                                             .guided = action && guides(p, part->action),
                                             .fixed =
                                                 action && p->spec.actions[part->action].fixed > 0,
                                             .most = n,
                                             .knows = shares};
    TEC_TRY(tec_table_prefix_init(&part->block, &part->prefix, &part->prefix_device, &limits,
                                  p->device, &p->arena, err));
    p->bytes.frames += (int64_t)(part->block.size + part->block.pixels_size);
    if (action && tec_model_heads(p->model) && !p->model->program) {
        const struct tec_decode_limits choice = {.batch = p->model->head.rows, .max_tokens = 1};
        TEC_TRY(tec_table_decode_init(&part->choice, &part->decode, &part->decode_device, &choice,
                                      p->device, &p->arena, err));
        p->bytes.frames += (int64_t)part->choice.size;
    }
    struct tec_lower l = lower_into(p, part);
    bool cut = frame && action && p->spec.interpret; /* each node is a launch of its own */
    part->n_slices = cut ? 2 : frame ? 0 : p->spec.slices;
    l.cuts = !frame && part->n_slices > 1;
    l.picture_rows = shares ? p->picture_rows : NULL;
    TEC_TRY(lower_node(&l, TEC_NODE_prefill, err));
    part->picture_steps = l.picture_steps;
    tec_program_mark(&part->program, TEC_MARK_PREFILL);
    if (cut)
        tec_program_cut(&part->program);
    if (action) {
        TEC_TRY(lower_node(&l, TEC_NODE_action, err));
        tec_program_mark(&part->program, TEC_MARK_ACTION);
    }
    return TEC_OK;
}

/* The frame of one session, and those of several together. */
static enum tec_status lower_frames(struct tec_plan *p, struct tec_error *err)
{
    TEC_TRY(lower_prefix(p, TEC_PART_FRAME, false, 1, err));
    for (int i = 0; i < p->spec.n_together && !p->spec.interpret; i++)
        TEC_TRY(lower_prefix(p, TEC_PART_FRAME, false, p->spec.together[i], err));
    return TEC_OK;
}

/* Lowers an action node that does not go with the prefill. Its table has no prefix: that is in the
 * region that the launch names. */
static enum tec_status lower_action(struct tec_plan *p, int action, struct tec_error *err)
{
    const char *name = tec_arena_printf(&p->arena, "action.%d", action);
    struct tec_plan_part *part = add_part(p, TEC_PART_ACTION, name ? name : "action", false);
    part->action = action;
    const struct tec_prefix_limits limits = {.model = p->model,
                                             .max_rows = 1,
                                             .max_text = 1,
                                             .scratch_slot = p->scratch_slots[action],
                                             .max_keys = tec_plan_keys(p),
                                             .guided = guides(p, action),
                                             .fixed = p->spec.actions[action].fixed > 0};
    TEC_TRY(tec_table_prefix_init(&part->block, &part->prefix, &part->prefix_device, &limits,
                                  p->device, &p->arena, err));
    p->bytes.frames += (int64_t)part->block.size;
    struct tec_lower l = lower_into(p, part);
    TEC_TRY(lower_node(&l, TEC_NODE_action, err));
    tec_program_mark(&part->program, TEC_MARK_ACTION);
    return TEC_OK;
}

static enum tec_status lower_actions(struct tec_plan *p, struct tec_error *err)
{
    for (int i = 0; i < p->spec.n_actions; i++)
        if (i != p->spec.frame_action)
            TEC_TRY(lower_action(p, i, err));
    return TEC_OK;
}

static enum tec_status lower_decode(struct tec_plan *p, int batch, bool beside,
                                    struct tec_error *err)
{
    const char *name = tec_arena_printf(&p->arena, "decode.b%d%s", batch, beside ? ".beside" : "");
    struct tec_plan_part *part = add_part(p, TEC_PART_DECODE, name ? name : "decode", beside);
    part->batch = batch;
    const struct tec_decode_limits limits = {.batch = batch,
                                             .max_tokens = p->spec.max_k,
                                             .max_forced = p->spec.prompt_tokens > p->spec.unread
                                                               ? p->spec.prompt_tokens
                                                               : p->spec.unread,
                                             .gathers = p->spec.gathers,
                                             .words = p->used_words,
                                             .draws = p->spec.draws,
                                             .chooses = p->spec.trie_nodes > 0};
    TEC_TRY(tec_table_decode_init(&part->block, &part->decode, &part->decode_device, &limits,
                                  p->device, &p->arena, err));
    p->bytes.frames += (int64_t)part->block.size;
    struct tec_lower l = lower_into(p, part);
    TEC_TRY(lower_node(&l, TEC_NODE_decode, err));
    tec_program_mark(&part->program, TEC_MARK_DECODE);
    return TEC_OK;
}

/* Lowers a forward of the next token of each request and of the tokens that a draft proposes behind
 * it: a decode of one step, whose rows are all of these. */
static enum tec_status lower_verify(struct tec_plan *p, int batch, struct tec_error *err)
{
    const char *name = tec_arena_printf(&p->arena, "verify.b%d", batch);
    struct tec_plan_part *part = add_part(p, TEC_PART_VERIFY, name ? name : "verify", false);
    part->batch = batch;
    const struct tec_decode_limits limits = {.batch = batch * (1 + p->spec.draft_tokens),
                                             .max_tokens = 1,
                                             .words = p->used_words,
                                             .draws = p->spec.draws,
                                             .chooses = p->spec.trie_nodes > 0};
    TEC_TRY(tec_table_decode_init(&part->block, &part->decode, &part->decode_device, &limits,
                                  p->device, &p->arena, err));
    p->bytes.frames += (int64_t)part->block.size;
    struct tec_lower l = lower_into(p, part);
    TEC_TRY(lower_node(&l, TEC_NODE_decode, err));
    tec_program_mark(&part->program, TEC_MARK_DECODE);
    return TEC_OK;
}

static enum tec_status lower_score(struct tec_plan *p, bool beside, struct tec_error *err)
{
    struct tec_plan_part *part =
        add_part(p, TEC_PART_SCORE, beside ? "score.beside" : "score", beside);
    TEC_TRY(tec_table_score_init(&part->block, &part->score, &part->score_device, &p->spec.trees,
                                 p->device, &p->arena, err));
    p->bytes.frames += (int64_t)part->block.size;
    struct tec_lower l = lower_into(p, part);
    TEC_TRY(lower_node(&l, TEC_NODE_score, err));
    tec_program_mark(&part->program, TEC_MARK_SCORE);
    return TEC_OK;
}

/* Lowers the parts of requests: a prefill alone, each captured batch, a tree of texts. */
static enum tec_status lower_requests(struct tec_plan *p, bool beside, struct tec_error *err)
{
    if (p->spec.isolated)
        TEC_TRY(lower_prefix(p, TEC_PART_PREFIX, beside, 1, err));
    for (int i = 0; i < p->spec.n_batches; i++)
        TEC_TRY(lower_decode(p, p->spec.batches[i], beside, err));
    for (int i = 0; i < p->spec.n_batches && p->spec.draft_tokens && !beside; i++)
        TEC_TRY(lower_verify(p, p->spec.batches[i], err));
    return p->spec.trees.rows ? lower_score(p, beside, err) : TEC_OK;
}

static enum tec_status lower_packed(struct tec_plan *p, struct tec_error *err)
{
    struct tec_plan_part *part = add_part(p, TEC_PART_PACKED, "packed", false);
    const struct tec_plan_spec *s = &p->spec;
    const struct tec_prefix_limits prefix = {.model = p->model,
                                             .max_rows = s->rings * s->frame_tokens,
                                             .max_text = s->rings * s->text_tokens,
                                             .max_pictures = s->rings * s->pictures,
                                             .scratch_slot = -1,
                                             .more_rows = s->rings * s->stages - 1,
                                             .gathers = s->gathers};
    const struct tec_decode_limits choice = {.batch = s->rings * s->stages, .max_tokens = 1};
    TEC_TRY(tec_table_prefix_init(&part->block, &part->prefix, &part->prefix_device, &prefix,
                                  p->device, &p->arena, err));
    TEC_TRY(tec_table_decode_init(&part->choice, &part->decode, &part->decode_device, &choice,
                                  p->device, &p->arena, err));
    p->bytes.frames += (int64_t)(part->block.size + part->block.pixels_size + part->choice.size);
    struct tec_lower l = lower_into(p, part);
    TEC_TRY(tec_lower_packed(&l, err));
    tec_program_mark(&part->program, TEC_MARK_PACKED);
    return TEC_OK;
}

static enum tec_status lower_shift(struct tec_plan *p, struct tec_error *err)
{
    struct tec_plan_part *part = add_part(p, TEC_PART_SHIFT, "shift", false);
    TEC_TRY(tec_moves_init(&part->block, &part->moves, &part->moves_device, p->spec.stages,
                           p->device, &p->arena, err));
    p->bytes.frames += (int64_t)part->block.size;
    struct tec_lower l = lower_into(p, part);
    TEC_TRY(tec_lower_shift(&l, err));
    tec_program_mark(&part->program, TEC_MARK_SHIFT);
    return TEC_OK;
}

/* A ring's forwards, with a new sequence and without, and its moves. */
static enum tec_status lower_ring(struct tec_plan *p, struct tec_error *err)
{
    if (!p->spec.apart)
        TEC_TRY(lower_packed(p, err));
    else if (!p->spec.isolated)
        TEC_TRY(lower_prefix(p, TEC_PART_PREFIX, false, 1, err));
    for (int i = 0; i < p->spec.n_batches && !p->spec.request_slots; i++)
        TEC_TRY(lower_decode(p, p->spec.batches[i], false, err));
    bool copies = p->spec.stages > 1 || p->spec.request_slots > 0;
    return p->spec.shifts && copies ? lower_shift(p, err) : TEC_OK;
}

/* The pictures of a recalled prompt have a table of their own: its rows are the recall's. */
static enum tec_status add_pictures(struct tec_plan *p, struct tec_plan_part *part,
                                    struct tec_error *err)
{
    const struct tec_prefix_limits limits = {.model = p->model,
                                             .max_rows = 1,
                                             .max_text = 1,
                                             .max_pictures = p->spec.pictures,
                                             .scratch_slot = -1};
    TEC_TRY(tec_table_prefix_init(&part->seen, &part->prefix, &part->prefix_device, &limits,
                                  p->device, &p->arena, err));
    p->bytes.frames += (int64_t)(part->seen.size + part->seen.pixels_size);
    return TEC_OK;
}

/* Lowers the parts of a memory: a prompt of its segments, and segments by themselves. */
static enum tec_status lower_memory(struct tec_plan *p, struct tec_error *err)
{
    const struct tec_plan_spec *s = &p->spec;
    struct tec_plan_part *part = add_part(p, TEC_PART_RECALL, "recall", false);
    const struct tec_recall_limits limits = {.max_rows = s->frame_tokens,
                                             .max_segments = s->segments};
    TEC_TRY(tec_table_recall_init(&part->block, &part->recall, &part->recall_device, &limits,
                                  p->device, &p->arena, err));
    p->bytes.frames += (int64_t)part->block.size + part->recall.ld_mass * 4LL * s->frame_tokens;
    part->n_slices = 2 * p->model->text.stack.layers;
    if (s->pictures > 0)
        TEC_TRY(add_pictures(p, part, err));
    struct tec_lower recall = lower_into(p, part);
    TEC_TRY(lower_node(&recall, TEC_NODE_memory_load, err));
    part = add_part(p, TEC_PART_REMEMBER, "remember", false);
    TEC_TRY(tec_table_remember_init(&part->block, &part->remember, &part->remember_device,
                                    s->segment_tokens, s->segment_tokens, p->device, &p->arena,
                                    err));
    p->bytes.frames += (int64_t)part->block.size;
    struct tec_lower remember = lower_into(p, part);
    return lower_node(&remember, TEC_NODE_remember, err);
}

enum tec_status tec_pass_lower(struct tec_plan *p, struct tec_error *err)
{
    if (p->spec.stages)
        TEC_TRY(lower_ring(p, err));
    else if (!p->spec.secondary)
        TEC_TRY(lower_frames(p, err));
    TEC_TRY(lower_actions(p, err));
    if (p->spec.segments)
        TEC_TRY(lower_memory(p, err));
    if (p->spec.request_slots || p->spec.isolated)
        TEC_TRY(lower_requests(p, false, err));
    if (p->spec.beside)
        TEC_TRY(lower_requests(p, true, err));
    for (int i = 0; i < p->n_parts; i++) {
        struct tec_plan_part *part = &p->parts[i];
        if (part->program.status != TEC_OK) {
            if (err)
                *err = part->program.err;
            return part->program.status;
        }
        for (int t = 0; t < part->taps.n; t++)
            if (part->taps.blocks[t])
                p->bytes.taps += (int64_t)part->taps.items[t].rows * part->taps.items[t].ld * 4;
    }
    return TEC_OK;
}
