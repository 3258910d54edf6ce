/* lower.c - the pass from nodes to programs. */
#include "graph/compile/plan.h"

#include <string.h>

/* Most moves inside a forward of rings: every sequence but those that leave, and the newest ones
 * once more for requests. Interpreted they are a launch of their own. */
static int most_shifts(const struct tec_plan_spec *s)
{
    bool moves = s->shifts && (s->stages > 1 || s->request_slots > 0);
    return moves && !s->interpret ? s->rings * s->stages : 0;
}

static struct tec_lower context_of(struct tec_plan *p, struct tec_plan_part *part)
{
    enum tec_round round = p->spec.round;
    bool bf16 = p->weights->bf16, mixed = round == TEC_ROUND_MIXED;
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
                              .round = bf16 && (mixed || round == TEC_ROUND_BF16),
                              .spares = bf16 && mixed,
                              .two_terms = mixed || round == TEC_ROUND_BF16X2,
                              .one_digit = round == TEC_ROUND_INT8,
                              .whole = p->spec.whole,
                              .hidden = -1,
                              .angles = -1,
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

/* Lower a node into a part whose tables are there, up to a mark. */
static enum tec_status lower_node(struct tec_plan *p, struct tec_plan_part *part,
                                  void (*lower)(struct tec_lower *l), int mark,
                                  struct tec_error *err)
{
    struct tec_lower l = context_of(p, part);
    lower(&l);
    tec_program_mark(&part->program, mark);
    return tec_program_status(&part->program, err);
}

static enum tec_status take_prefix(struct tec_plan *p, struct tec_plan_part *part,
                                   struct tec_table_block *block,
                                   const struct tec_prefix_limits *limits, struct tec_error *err)
{
    return tec_table_init(block, &tec_prefix_tables, &part->prefix, &part->prefix_device, limits,
                          p->device, &p->arena, err);
}

static enum tec_status take_decode(struct tec_plan *p, struct tec_plan_part *part,
                                   struct tec_table_block *block,
                                   const struct tec_decode_limits *limits, struct tec_error *err)
{
    return tec_table_init(block, &tec_decode_tables, &part->decode, &part->decode_device, limits,
                          p->device, &p->arena, err);
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
    struct tec_plan_part *part = tec_plan_add_part(p, kind, name ? name : "frame", beside);
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
    TEC_TRY(take_prefix(p, part, &part->block, &limits, err));
    if (action && tec_model_heads(p->model) && !p->model->program) {
        const struct tec_decode_limits choice = {.batch = p->model->head.rows, .max_tokens = 1};
        TEC_TRY(take_decode(p, part, &part->choice, &choice, err));
    }
    struct tec_lower l = context_of(p, part);
    bool cut = frame && action && p->spec.interpret; /* each node is a launch of its own */
    part->n_slices = cut ? 2 : frame ? 0 : p->spec.slices;
    l.cuts = !frame && part->n_slices > 1;
    l.picture_rows = shares ? p->picture_rows : NULL;
    tec_node_prefill.lower(&l);
    part->picture_steps = l.picture_steps;
    tec_program_mark(&part->program, TEC_MARK_PREFILL);
    if (cut)
        tec_program_cut(&part->program);
    if (action) {
        tec_node_action.lower(&l);
        tec_program_mark(&part->program, TEC_MARK_ACTION);
    }
    return tec_program_status(&part->program, err);
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
    struct tec_plan_part *part =
        tec_plan_add_part(p, TEC_PART_ACTION, name ? name : "action", false);
    part->action = action;
    const struct tec_prefix_limits limits = {.model = p->model,
                                             .max_rows = 1,
                                             .max_text = 1,
                                             .scratch_slot = p->scratch_slots[action],
                                             .max_keys = tec_plan_keys(p),
                                             .guided = guides(p, action),
                                             .fixed = p->spec.actions[action].fixed > 0};
    TEC_TRY(take_prefix(p, part, &part->block, &limits, err));
    return lower_node(p, part, tec_node_action.lower, TEC_MARK_ACTION, err);
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
    struct tec_plan_part *part =
        tec_plan_add_part(p, TEC_PART_DECODE, name ? name : "decode", beside);
    part->batch = batch;
    const struct tec_decode_limits limits = {.batch = batch,
                                             .max_tokens = p->spec.max_k,
                                             .max_forced = p->spec.prompt_tokens > p->spec.unread
                                                               ? p->spec.prompt_tokens
                                                               : p->spec.unread,
                                             .gathers = p->spec.gathers,
                                             .shifts = beside ? 0 : most_shifts(&p->spec),
                                             .words = p->used_words,
                                             .draws = p->spec.draws,
                                             .chooses = p->spec.trie_nodes > 0};
    TEC_TRY(take_decode(p, part, &part->block, &limits, err));
    return lower_node(p, part, tec_node_decode.lower, TEC_MARK_DECODE, err);
}

/* Lowers a forward of the next token of each request and of the tokens that a draft proposes behind
 * it: a decode of one step, whose rows are all of these. */
static enum tec_status lower_verify(struct tec_plan *p, int batch, struct tec_error *err)
{
    const char *name = tec_arena_printf(&p->arena, "verify.b%d", batch);
    struct tec_plan_part *part =
        tec_plan_add_part(p, TEC_PART_VERIFY, name ? name : "verify", false);
    part->batch = batch;
    const struct tec_decode_limits limits = {.batch = batch * (1 + p->spec.draft_tokens),
                                             .max_tokens = 1,
                                             .words = p->used_words,
                                             .draws = p->spec.draws,
                                             .chooses = p->spec.trie_nodes > 0};
    TEC_TRY(take_decode(p, part, &part->block, &limits, err));
    return lower_node(p, part, tec_node_decode.lower, TEC_MARK_DECODE, err);
}

static enum tec_status lower_score(struct tec_plan *p, bool beside, struct tec_error *err)
{
    struct tec_plan_part *part =
        tec_plan_add_part(p, TEC_PART_SCORE, beside ? "score.beside" : "score", beside);
    TEC_TRY(tec_table_init(&part->block, &tec_score_tables, &part->score, &part->score_device,
                           &p->spec.trees, p->device, &p->arena, err));
    return lower_node(p, part, tec_node_score.lower, TEC_MARK_SCORE, err);
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
    struct tec_plan_part *part = tec_plan_add_part(p, TEC_PART_PACKED, "packed", false);
    const struct tec_plan_spec *s = &p->spec;
    const struct tec_prefix_limits prefix = {.model = p->model,
                                             .max_rows = s->rings * s->frame_tokens,
                                             .max_text = s->rings * s->text_tokens,
                                             .max_pictures = s->rings * s->pictures,
                                             .scratch_slot = -1,
                                             .more_rows = s->rings * s->stages - 1,
                                             .gathers = s->gathers,
                                             .shifts = most_shifts(s)};
    const struct tec_decode_limits choice = {.batch = s->rings * s->stages, .max_tokens = 1};
    TEC_TRY(take_prefix(p, part, &part->block, &prefix, err));
    TEC_TRY(take_decode(p, part, &part->choice, &choice, err));
    return lower_node(p, part, tec_lower_packed, TEC_MARK_PACKED, err);
}

static enum tec_status lower_shift(struct tec_plan *p, struct tec_error *err)
{
    struct tec_plan_part *part = tec_plan_add_part(p, TEC_PART_SHIFT, "shift", false);
    TEC_TRY(tec_table_init(&part->block, &tec_move_tables, &part->moves, &part->moves_device,
                           &p->spec.stages, p->device, &p->arena, err));
    return lower_node(p, part, tec_lower_shift, TEC_MARK_SHIFT, err);
}

/* A ring's forwards, with a new sequence and without; interpreted, its moves. */
static enum tec_status lower_ring(struct tec_plan *p, struct tec_error *err)
{
    if (!p->spec.apart)
        TEC_TRY(lower_packed(p, err));
    else if (!p->spec.isolated)
        TEC_TRY(lower_prefix(p, TEC_PART_PREFIX, false, 1, err));
    for (int i = 0; i < p->spec.n_batches && !p->spec.request_slots; i++)
        TEC_TRY(lower_decode(p, p->spec.batches[i], false, err));
    bool copies = p->spec.stages > 1 || p->spec.request_slots > 0;
    return p->spec.shifts && p->spec.interpret && copies ? lower_shift(p, err) : TEC_OK;
}

/* Lowers a prompt of a memory's segments. Its pictures have a table of their own: their rows are
 * the recall's. */
static enum tec_status lower_recall(struct tec_plan *p, struct tec_error *err)
{
    const struct tec_plan_spec *s = &p->spec;
    struct tec_plan_part *part = tec_plan_add_part(p, TEC_PART_RECALL, "recall", false);
    const struct tec_recall_limits limits = {.max_rows = s->frame_tokens,
                                             .max_segments = s->segments};
    const struct tec_prefix_limits pictures = {.model = p->model,
                                               .max_rows = 1,
                                               .max_text = 1,
                                               .max_pictures = s->pictures,
                                               .scratch_slot = -1};
    TEC_TRY(tec_table_init(&part->block, &tec_recall_tables, &part->recall, &part->recall_device,
                           &limits, p->device, &p->arena, err));
    p->bytes.frames += part->recall.ld_mass * 4LL * s->frame_tokens;
    part->n_slices = 2 * p->model->text.stack.layers;
    if (s->pictures > 0)
        TEC_TRY(take_prefix(p, part, &part->seen, &pictures, err));
    struct tec_lower l = context_of(p, part);
    tec_node_memory_load.lower(&l);
    return tec_program_status(&part->program, err);
}

/* Lowers the same prompt with one piece a layer, over the tables of the recall. */
static enum tec_status lower_recall_branch(struct tec_plan *p, struct tec_error *err)
{
    const struct tec_plan_part *recall = tec_plan_part(p, TEC_PART_RECALL, 0);
    struct tec_plan_part *part =
        tec_plan_add_part(p, TEC_PART_RECALL_BRANCH, "recall.branch", false);
    part->recall = recall->recall;
    part->recall_device = recall->recall_device;
    part->prefix = recall->prefix;
    part->prefix_device = recall->prefix_device;
    part->n_slices = p->model->text.stack.layers;
    struct tec_lower l = context_of(p, part);
    l.branches = true;
    l.sums_mark = TEC_MARK_SUMS;
    tec_node_memory_load.lower(&l);
    return tec_program_status(&part->program, err);
}

/* Lowers segments by themselves. */
static enum tec_status lower_remember(struct tec_plan *p, struct tec_error *err)
{
    int tokens = p->spec.segment_tokens;
    struct tec_plan_part *part = tec_plan_add_part(p, TEC_PART_REMEMBER, "remember", false);
    const struct tec_remember_limits limits = {.rows = tokens, .segments = tokens};
    TEC_TRY(tec_table_init(&part->block, &tec_remember_tables, &part->remember,
                           &part->remember_device, &limits, p->device, &p->arena, err));
    struct tec_lower l = context_of(p, part);
    tec_node_remember.lower(&l);
    return tec_program_status(&part->program, err);
}

static void count_bytes(struct tec_byte_plan *bytes, const struct tec_plan_part *part)
{
    const struct tec_table_block *blocks[] = {&part->block, &part->choice, &part->seen};
    for (int i = 0; i < 3; i++)
        bytes->frames += (int64_t)(blocks[i]->size + blocks[i]->pixels_size);
    for (int t = 0; t < part->taps.n; t++)
        if (part->taps.blocks[t])
            bytes->taps += (int64_t)part->taps.items[t].rows * part->taps.items[t].ld * 4;
}

enum tec_status tec_pass_lower(struct tec_plan *p, struct tec_error *err)
{
    if (p->spec.stages)
        TEC_TRY(lower_ring(p, err));
    else if (!p->spec.secondary)
        TEC_TRY(lower_frames(p, err));
    TEC_TRY(lower_actions(p, err));
    if (p->spec.segments) {
        TEC_TRY(lower_recall(p, err));
        if (p->spec.branches)
            TEC_TRY(lower_recall_branch(p, err));
        TEC_TRY(lower_remember(p, err));
    }
    if (p->spec.request_slots || p->spec.isolated)
        TEC_TRY(lower_requests(p, false, err));
    if (p->spec.beside)
        TEC_TRY(lower_requests(p, true, err));
    for (int i = 0; i < p->n_parts; i++)
        count_bytes(&p->bytes, &p->parts[i]);
    return TEC_OK;
}
