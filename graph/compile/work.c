/* work.c - counts the operations and bytes of one launch of a part, call by call.
 *
 * Each op states its cost for given row counts; this file supplies those counts for the requested
 * sizes and adds up, in exact integers. No device memory is read, so it also works on a plan made
 * on a measuring device. The roofline and op-time measurements use it; frames do not. */
#include "graph/compile/work.h"
#include "graph/model/program.h"
#include "ops/call.h"

enum { MAX_COUNTS = 22 + TEC_MAX_CAMERAS + 2 * TEC_MAX_TOWERS + TEC_SCORE_CHUNKS };

const char *const tec_stage_names[TEC_STAGE_COUNT] = {"pictures", "prefix", "action", "decode",
                                                      "shift"};

/* The counts of a part at some sizes: in step `turn` of a loop, or in that piece of a recall. */
struct counting {
    const struct tec_plan *plan;
    const struct tec_plan_part *part;
    const struct tec_work_size *size;
    int turn;
    struct tec_live items[MAX_COUNTS];
    int n;
};

static void put(struct counting *c, const int *count, int64_t rows, int64_t visible, int64_t keys)
{
    if (count)
        c->items[c->n++] = (struct tec_live){count, rows, visible, keys};
}

static int64_t prefix_rows(const struct tec_plan *plan, const struct tec_work_size *size)
{
    if (tec_model_asks(plan->model))
        return tec_model_encoded(plan->model);
    /* Of a prompt with tokens that stand for pictures these are no rows of their own. */
    int64_t marks = plan->model->text.marks ? size->pictures : 0;
    const struct tec_vision *v = &plan->model->vision;
    return tec_vision_tokens(v, size->pictures) +
           (int64_t)size->pictures * (v->n_before + v->n_behind) + size->text - marks +
           tec_head_rows(plan->model);
}

/* Row r of a causal text sees the r + 1 first ones, so rows a .. b - 1 see the sum of a + 1 .. b;
 * pictures, where they are no part of that, see up to their last row. */
static int64_t visible_in_prefix(const struct tec_plan *plan, int64_t pictures, int64_t rows)
{
    enum tec_mask mask = plan->model->text.mask;
    int64_t lead = tec_lead_rows(plan->model), text = lead + pictures;
    if (mask == TEC_MASK_BIDIR)
        return rows * rows - (tec_model_behind(plan->model) ? rows - 1 : 0);
    if (mask == TEC_MASK_CAUSAL_ALL)
        return rows * (rows + 1) / 2;
    return lead + pictures * text + (rows * (rows + 1) - text * (text + 1)) / 2;
}

/* Rows before the patches are computed for every picture that there can be; those of a picture see
 * it and themselves. */
static void count_tower(struct counting *c, const int *count, const struct tec_tower *tower,
                        int64_t patches)
{
    const struct tec_plan *plan = c->plan;
    int64_t before = (int64_t)plan->spec.pictures * tower->prefix_rows, rows = before + patches;
    if (tower->prefix_rows)
        put(c, count, rows, rows * (tower->prefix_rows + plan->model->vision.patches), rows);
}

/* Patches, which see those of their own picture, and the rows that they become. */
static void count_patches(struct counting *c, int pictures)
{
    const struct tec_vision *v = &c->plan->model->vision;
    const struct tec_prefix_table *t = &c->part->prefix_device;
    int64_t patches = tec_vision_patches(v, pictures), seen = v->n_sizes ? 0 : patches * v->patches;
    for (int i = 0; i < pictures && i < v->n_sizes; i++) {
        int64_t n = tec_vision_patches(v, i + 1) - tec_vision_patches(v, i);
        put(c, t->each + i, n, 0, 0);
        seen += n * n;
    }
    put(c, t->n_patches, patches, seen, patches);
    if (t->n_image != t->n_patches)
        put(c, t->n_image, tec_vision_tokens(v, pictures), 0, 0);
}

/* Pictures, their patches, and the rows that towers make of them. */
static void count_pictures(struct counting *c)
{
    const struct tec_vision *v = &c->plan->model->vision;
    const struct tec_prefix_table *t = &c->part->prefix_device;
    const struct tec_work_size *size = c->size;
    int64_t pictures = tec_vision_tokens(v, size->pictures);
    int64_t patches = tec_vision_patches(v, size->pictures);
    int seen = size->known ? 0 : size->pictures;
    put(c, t->n_known, size->known ? pictures : 0, 0, 0);
    put(c, t->n_pictures, seen, 0, 0);
    if (t->n_turns)
        put(c, t->n_turns, pictures * c->plan->model->text.stack.head_dim / 2, 0, 0);
    count_patches(c, seen);
    for (int i = 0; i < v->n_towers; i++)
        if (!size->known)
            count_tower(c, t->towers[i].count, &v->towers[i], patches);
        else if (v->towers[i].prefix_rows)
            put(c, t->towers[i].count, 0, 0, 0);
}

/* Keys seen by the rows of a ring's other sequences: each sequence is one token ahead of the
 * next. */
static int64_t visible_in_ring(const struct tec_plan *plan, const struct tec_work_size *size)
{
    int64_t n = size->rows;
    return n * (prefix_rows(plan, size) + size->made) + n * (n + 1) / 2;
}

/* Sequences at stages first .. first + n - 1, of which each moves its prefix and a token a stage;
 * one that has all its tokens then leaves. */
static void count_moved(struct counting *c, const int *count, int first, int64_t n)
{
    int64_t most = c->plan->spec.stages > first ? c->plan->spec.stages - 1 - first : 0;
    int64_t moved = n < most ? n : most;
    put(c, count, moved, 0,
        moved * (prefix_rows(c->plan, c->size) + c->size->made + first) + moved * (moved - 1) / 2);
}

static void count_prefix(struct counting *c)
{
    const struct tec_plan *plan = c->plan;
    const struct tec_prefix_table *t = &c->part->prefix_device;
    const struct tec_work_size *size = c->size;
    bool packed = c->part->kind == TEC_PART_PACKED;
    const struct tec_vision *v = &plan->model->vision;
    int64_t pictures = tec_vision_tokens(v, size->pictures);
    int64_t rows = prefix_rows(plan, size), suffix = t->suffix.max;
    /* Rows that lead see nothing behind them: the first one suffix - 1 rows less, and so on. */
    const struct tec_model_program *program = plan->model->program;
    int64_t lead = program ? program->lead : 0, unseen = lead * suffix - lead * (lead + 1) / 2;
    int64_t others = packed ? size->rows : 0, ring = packed ? visible_in_ring(plan, size) : 0;
    count_pictures(c);
    put(c, t->n_around, size->pictures * (int64_t)(v->n_before + v->n_behind), 0, 0);
    put(c, t->n_keys, rows, 0, rows);
    if (t->max_keys)
        put(c, t->across.count, suffix, suffix * rows, rows);
    for (int i = 0; i < TEC_MAX_TOWERS; i++) {
        int64_t all = t->among[i].max;
        put(c, t->among[i].count, all, all * all, all);
    }
    int64_t rest = rows - pictures;
    put(c, t->features.count, rows, rows * rows, rows);
    put(c, t->asked.count, t->asked.max, t->asked.max * rows, rows);
    put(c, t->pictured.count, t->pictured.max, t->pictured.max * pictures, pictures);
    put(c, t->rest.count, t->rest.max, t->rest.max * rest, rest);
    int64_t marks = plan->model->text.marks ? size->pictures : 0;
    put(c, t->n_text, size->text - marks - tec_lead_rows(plan->model) + others, 0, 0);
    put(c, t->prefix.count, rows + others, visible_in_prefix(plan, pictures, rows) + ring,
        rows + ring);
    if (tec_model_heads(plan->model))
        put(c, t->last.count, t->last.max, t->last.max * rows, rows);
    else
        put(c, t->last.count, 1 + others, rows + ring, rows + ring);
    put(c, t->moves.count, 1 + others, 0, rows + ring);
    count_moved(c, t->shifts.count, 0, 1 + others);
    int64_t own =
        tec_model_asks(plan->model) || tec_model_denoises(plan->model) ? suffix : rows + suffix;
    put(c, t->suffix.count, suffix, suffix * own - unseen, own);
    put(c, t->n_horizon, plan->model->flow.horizon, 0, 0);
    put(c, t->one, 1, 0, 0);
}

/* The first step repeats the last token of the prefix; each later one sees a token more. */
static void count_decode(struct counting *c)
{
    const struct tec_work_size *size = c->size;
    const struct tec_decode_table *t = &c->part->decode_device;
    int64_t visible = size->rows * (prefix_rows(c->plan, size) + size->made + c->turn);
    if (c->plan->spec.stages)
        visible = visible_in_ring(c->plan, size);
    put(c, t->rows.count, size->rows, visible, visible);
    put(c, t->moves.count, size->rows, 0, visible);
    count_moved(c, t->shifts.count, 1, size->rows);
}

static void count_packed(struct counting *c)
{
    count_prefix(c);
    put(c, c->part->decode_device.rows.count, 1 + c->size->rows, 0, 0);
}

static void count_shift(struct counting *c)
{
    count_moved(c, c->part->moves_device.count, 0, c->size->rows);
}

/* The rows of the largest tree, `size->rows` of them: they see the prefix and what led to them. */
static void count_score(struct counting *c)
{
    const struct tec_plan *plan = c->plan;
    const struct tec_score_table *t = &c->part->score_device;
    int64_t rows = plan->spec.trees.rows, prefix = prefix_rows(plan, c->size);
    put(c, t->rows.count, rows, rows * prefix + plan->spec.trees.depths,
        plan->spec.trees.chains * prefix + plan->spec.trees.reached);
    for (int i = 0; i < t->n_chunks; i++) {
        int64_t rest = rows - (int64_t)i * TEC_SCORE_ROWS;
        put(c, t->chunk + i, rest < TEC_SCORE_ROWS ? rest : TEC_SCORE_ROWS, 0, 0);
    }
}

/* A row for the next token of each request and for all that a draft can propose behind it, each of
 * which sees one more. */
static void count_verify(struct counting *c)
{
    const struct tec_work_size *size = c->size;
    int64_t n = size->rows, drafts = c->plan->spec.draft_tokens;
    int64_t seen = prefix_rows(c->plan, size) + size->made;
    put(c, c->part->decode_device.rows.count, n * (1 + drafts),
        n * ((1 + drafts) * seen + drafts * (drafts + 1) / 2), n * (seen + drafts));
}

/* Tokens of the segments that a layer computes. */
static int64_t anew_at(const struct tec_work_segments *s, int layer)
{
    return s->anew ? s->anew[layer] : s->tokens;
}

/* The rows of a recalled prompt with so many of its segments' tokens, and the keys that they see.
 */
static struct tec_live rows_with(const struct tec_plan *plan, const struct tec_work_size *size,
                                 int64_t anew)
{
    int64_t rows = prefix_rows(plan, size), tokens = size->segments.tokens;
    int64_t pictures = tec_vision_tokens(&plan->model->vision, size->pictures);
    int64_t before = pictures + tec_lead_rows(plan->model);
    bool bidir = plan->model->text.mask == TEC_MASK_BIDIR;
    int64_t seen = bidir ? tokens * rows : tokens * before + tokens * (tokens + 1) / 2;
    int64_t share = tokens ? seen * anew / tokens : 0;
    return (struct tec_live){.rows = rows - tokens + anew,
                             .visible = visible_in_prefix(plan, pictures, rows) - seen + share,
                             .keys = rows};
}

/* A layer that places and makes keys; the other table's rows have so many tokens of segments. */
static void count_layer(struct counting *c, int layer, int64_t others)
{
    const struct tec_plan *plan = c->plan;
    const struct tec_work_size *size = c->size;
    const struct tec_recall_table *t = &c->part->recall_device;
    const struct tec_work_segments *s = &size->segments;
    int64_t anew = anew_at(s, layer), placed = s->tokens - anew;
    struct tec_live now = rows_with(plan, size, anew), other = rows_with(plan, size, others);
    int sums = s->sums ? s->sums[layer] : TEC_SUMS_NONE;
    struct tec_live summed = sums == TEC_SUMS_OF_ALL ? now : rows_with(plan, size, 0);
    if (sums == TEC_SUMS_NONE)
        summed = (struct tec_live){.rows = 0};
    put(c, t->rows[layer % 2].count, now.rows, now.visible, now.keys);
    put(c, t->rows[(layer + 1) % 2].count, other.rows, other.visible, other.keys);
    put(c, t->n_places, s->tokens ? (s->n * placed + s->tokens - 1) / s->tokens : 0, 0, placed);
    put(c, t->n_summed, summed.rows, summed.visible, summed.keys);
    put(c, t->n_ranges, (int64_t)TEC_SEGMENT_RANGES * s->n, 0, 0);
    if (plan->spec.pictures < 1)
        return;
    count_pictures(c);
    put(c, c->part->prefix_device.n_text,
        now.rows - tec_vision_tokens(&plan->model->vision, size->pictures), 0, 0);
}

/* Piece `turn` of the program: of a layer the first one places and makes keys, the second goes on
 * with the rows of the next. */
static void count_recall(struct counting *c)
{
    int layer = c->turn / 2, last = c->plan->model->text.stack.layers - 1;
    count_layer(c, layer, anew_at(&c->size->segments, layer < last ? layer + 1 : last));
}

/* Piece `turn` is a layer, with all of its rows; they are taken of those of the layer before. */
static void count_recall_branch(struct counting *c)
{
    count_layer(c, c->turn, anew_at(&c->size->segments, c->turn > 0 ? c->turn - 1 : 0));
}

/* Segments by themselves, all equally long. */
static void count_remember(struct counting *c)
{
    const struct tec_work_segments *s = &c->size->segments;
    int64_t tokens = s->tokens, each = s->n ? tokens / s->n : 0;
    bool bidir = c->plan->model->text.mask == TEC_MASK_BIDIR;
    put(c, c->part->remember_device.rows.count, tokens,
        bidir ? tokens * each : tokens * (each + 1) / 2, tokens);
}

static void (*const count_part[])(struct counting *c) = {
    [TEC_PART_FRAME] = count_prefix,      [TEC_PART_PREFIX] = count_prefix,
    [TEC_PART_DECODE] = count_decode,     [TEC_PART_VERIFY] = count_verify,
    [TEC_PART_PACKED] = count_packed,     [TEC_PART_SHIFT] = count_shift,
    [TEC_PART_RECALL] = count_recall,     [TEC_PART_RECALL_BRANCH] = count_recall_branch,
    [TEC_PART_REMEMBER] = count_remember, [TEC_PART_SCORE] = count_score,
    [TEC_PART_ACTION] = count_prefix,
};

static void count(struct counting *c, int turn)
{
    c->n = 0;
    c->turn = turn;
    count_part[c->part->kind](c);
}

static bool recalls(const struct tec_plan_part *part)
{
    return part->kind == TEC_PART_RECALL || part->kind == TEC_PART_RECALL_BRANCH;
}

/* Segments of a recall and of what is kept: they fit, and no layer computes more than the one
 * before. */
static enum tec_status check_segments(const struct tec_plan *plan, const struct tec_plan_part *part,
                                      const struct tec_work_size *size, struct tec_error *err)
{
    const struct tec_work_segments *s = &size->segments;
    bool recall = recalls(part), keeps = part->kind == TEC_PART_REMEMBER;
    int most = recall ? size->text - 1 : plan->spec.segment_tokens;
    int least = keeps;
    if (!recall && !keeps)
        return TEC_OK;
    if (s->n < least || s->n > plan->spec.segments || s->tokens < s->n || s->tokens > most)
        return tec_fail(err, TEC_INVALID, "%d segments of %d tokens in all; %s takes %d .. %d",
                        s->n, s->tokens, part->name, least, most);
    for (int i = 0; recall && s->anew && i < plan->model->text.stack.layers; i++)
        if (s->anew[i] < 0 || s->anew[i] > (i ? s->anew[i - 1] : s->tokens))
            return tec_fail(err, TEC_INVALID, "layer %d computes %d tokens of segments", i,
                            s->anew[i]);
    return TEC_OK;
}

enum tec_status tec_work_check(const struct tec_plan *plan, const struct tec_plan_part *part,
                               const struct tec_work_size *size, struct tec_error *err)
{
    const struct tec_plan_spec *s = &plan->spec;
    if ((size_t)part->kind >= sizeof count_part / sizeof *count_part || !count_part[part->kind])
        return tec_fail(err, TEC_UNSUPPORTED, "what part '%s' computes is not counted", part->name);
    if (size->pictures < 0 || size->pictures > s->pictures)
        return tec_fail(err, TEC_INVALID, "%d pictures; the frame has room for %d", size->pictures,
                        s->pictures);
    if (size->text < 0 || size->text > s->text_tokens ||
        prefix_rows(plan, size) > s->frame_tokens || prefix_rows(plan, size) < 1 ||
        size->text < tec_lead_rows(plan->model))
        return tec_fail(err, TEC_INVALID,
                        "%d pictures and a prompt of %d tokens; the frame has 1 .. %d rows, of "
                        "them %d of a prompt",
                        size->pictures, size->text, s->frame_tokens, s->text_tokens);
    TEC_TRY(check_segments(plan, part, size, err));
    int least = part->kind != TEC_PART_PACKED;
    if ((part->kind == TEC_PART_PACKED || part->kind == TEC_PART_SHIFT) &&
        (size->rows < least || size->rows > s->stages - 1))
        return tec_fail(err, TEC_INVALID, "%d sequences; %s takes %d .. %d", size->rows, part->name,
                        least, s->stages - 1);
    if (part->kind != TEC_PART_DECODE && part->kind != TEC_PART_VERIFY)
        return TEC_OK;
    if (size->rows < 1 || size->rows > part->batch)
        return tec_fail(err, TEC_INVALID, "%d requests; %s takes 1 .. %d", size->rows, part->name,
                        part->batch);
    if (part->kind == TEC_PART_DECODE && (size->k < 1 || size->k > s->max_k))
        return tec_fail(err, TEC_INVALID, "%d steps; a launch takes 1 .. %d", size->k, s->max_k);
    if (size->made < 0 || size->made > s->new_tokens)
        return tec_fail(err, TEC_INVALID, "%d tokens made; a request makes at most %d", size->made,
                        s->new_tokens);
    return TEC_OK;
}

/* True if a call of a packed part works on the last row of each sequence only. */
static bool is_last(const struct tec_plan_part *part, const struct tec_call *call)
{
    const struct tec_tensor *ends[] = {tec_in(&part->program, call, 0),
                                       tec_out(&part->program, call, 0)};
    for (int i = 0; i < 2; i++)
        if (ends[i] && ends[i]->live &&
            (ends[i]->live == part->prefix_device.last.count ||
             ends[i]->live == part->decode_device.rows.count))
            return true;
    return false;
}

/* Keys that go a stage on: a part of its own, or behind each layer's attention. */
static bool is_shift(const struct tec_plan_part *part, const struct tec_call *call)
{
    const int *count = call->args.move.count;
    return call->op == TEC_OP_move_kv &&
           (count == part->prefix_device.shifts.count ||
            count == part->decode_device.shifts.count || count == part->moves_device.count);
}

/* Rows of pictures go through the tower; the rest of a part is what lies between its marks. */
static enum tec_stage stage_of(const struct tec_plan *plan, const struct tec_plan_part *part,
                               const struct tec_call *call, bool after_prefill)
{
    const struct tec_tensor *t = tec_in(&part->program, call, 0);
    if (!t)
        t = tec_out(&part->program, call, 0);
    if (is_shift(part, call))
        return TEC_STAGE_SHIFT;
    if (part->kind == TEC_PART_DECODE || part->kind == TEC_PART_VERIFY ||
        part->kind == TEC_PART_SCORE)
        return TEC_STAGE_DECODE;
    if (part->kind == TEC_PART_ACTION)
        return TEC_STAGE_ACTION;
    const struct tec_prefix_table *table = &part->prefix_device;
    bool picture = t && t->live && t->live == table->n_patches;
    for (int i = 0; t && i < TEC_MAX_TOWERS; i++)
        picture |= table->towers[i].count && t->live == table->towers[i].count;
    ptrdiff_t counts = plan->model->program ? plan->model->program->n_counts : 0;
    if (counts && t && t->live >= table->counts && t->live < table->counts + counts)
        picture = true;
    if (picture)
        return TEC_STAGE_PICTURES;
    if (part->kind == TEC_PART_PACKED && is_last(part, call))
        return TEC_STAGE_DECODE;
    return after_prefill ? TEC_STAGE_ACTION : TEC_STAGE_PREFIX;
}

void tec_work_visit(const struct tec_plan *plan, const struct tec_plan_part *part,
                    const struct tec_work_size *size,
                    void (*visit)(void *user, const struct tec_call_work *work), void *user)
{
    const struct tec_program *program = &part->program;
    struct counting c = {.plan = plan, .part = part, .size = size};
    bool after_prefill = false, joins = false;
    int turn = 0, loop = 0, piece = 0;
    count(&c, 0);
    for (int i = 0; i < program->n_steps; i++) {
        const struct tec_step *step = &program->steps[i];
        joins |= step->joins;
        if (step->cut && recalls(part))
            count(&c, ++piece);
        if (step->kind == TEC_STEP_REPEAT) {
            loop = i;
        } else if (step->kind == TEC_STEP_REPEAT_END) {
            turn = turn + 1 < size->k ? turn + 1 : 0;
            count(&c, turn);
            i = turn ? loop : i;
        } else if (step->kind == TEC_STEP_MARK) {
            after_prefill |= step->mark == TEC_MARK_PREFILL;
        } else {
            const struct tec_counts counts = {c.items, c.n};
            const struct tec_call_work work = {
                .call = &step->call,
                .step = i,
                .stage = stage_of(plan, part, &step->call, after_prefill),
                .turn = turn,
                .branch = step->branch,
                .joins = joins,
                .counts = &counts,
                .cost = tec_ops[step->call.op].op->cost(&step->call, &counts)};
            visit(user, &work);
            joins = false;
        }
    }
}
