/* tables.c - allocates frame tables: the arrays through which captures read all that changes.
 *
 * Runs at load; the launches in graph/run fill the tables in every frame. Of each kind one
 * function lists its arrays and is run three times: to measure, then over the host block and over
 * the device block. Both have the same layout, so an upload is a single copy of the block. What
 * never changes (rows of pictures, scratch slots, constant counts) is filled in here, once. */
#include "graph/model/program.h"
#include "graph/nodes/dealer.h"

#include <stddef.h>
#include <string.h>

enum { SUFFIX_SPANS = 3 };

static void deal_moves(struct tec_dealer *d, void *table, const void *limits)
{
    struct tec_moves *moves = table;
    int max = *(const int *)limits;
    moves->max = max;
    moves->count = tec_deal_ints(d, 1);
    moves->list = max ? tec_deal(d, (size_t)max, sizeof *moves->list) : NULL;
}

/* Behind attention; a table without any has no room for them. */
static void deal_shifts(struct tec_dealer *d, struct tec_moves *shifts, int max)
{
    if (max)
        deal_moves(d, shifts, &max);
}

static bool flows(const struct tec_model *model)
{
    return tec_model_flows(model) || tec_model_denoises(model);
}

static int zero_rows(const struct tec_model *model)
{
    return model->head.rows;
}

/* Rows that are numbered. */
static int ordered_rows(const struct tec_model *model)
{
    return flows(model) ? model->program->order : zero_rows(model);
}

/* A tower without rows before the patches shares the count of patches. */
static void deal_towers(struct tec_dealer *d, struct tec_prefix_table *t,
                        const struct tec_vision *v, int pictures)
{
    t->n_patches = tec_deal_ints(d, 1);
    t->n_image = v->shuffle > 1 ? tec_deal_ints(d, 1) : t->n_patches;
    t->each = v->n_sizes ? tec_deal_ints(d, pictures) : NULL;
    for (int i = 0; i < v->n_towers; i++) {
        int before = v->towers[i].prefix_rows;
        tec_deal_rows(d, &t->towers[i], pictures * (before + v->patches), pictures, 2 * pictures);
        t->n_before[i] = before ? tec_deal_ints(d, 1) : NULL;
        if (!before)
            t->towers[i].count = t->n_patches;
    }
}

/* Rows of a program's prefill that see each other, and those of its action as they see what the
 * frame keeps. */
static void deal_built(struct tec_dealer *d, struct tec_prefix_table *t, const struct tec_model *m)
{
    const struct tec_model_program *p = m->program;
    if (!tec_model_asks(m))
        return;
    for (int i = 0; i < p->n_among; i++)
        tec_deal_rows(d, &t->among[i], p->calls[p->among[i].call].rows, 1, 1);
    tec_deal_rows(d, &t->asked, m->flow.horizon, 1, 1);
    t->counts = tec_deal_ints(d, p->n_counts);
}

/* Rows behind a text, and those of a flow's action as they see them. */
static void deal_flow(struct tec_dealer *d, struct tec_prefix_table *t, const struct tec_model *m)
{
    struct tec_rows *const over[TEC_SEEN_KINDS] = {&t->asked, &t->pictured, &t->rest};
    if (!flows(m))
        return;
    if (tec_model_denoises(m))
        tec_deal_rows(d, &t->features, t->prefix.max, 1, 1);
    for (int i = 0; i < TEC_SEEN_KINDS; i++)
        if (m->program->sees[i])
            tec_deal_rows(d, over[i], t->suffix.max, 1, 1);
    t->counts = tec_deal_ints(d, m->program->n_counts);
}

/* Tokens around each picture that there may be. */
static void deal_around(struct tec_dealer *d, struct tec_prefix_table *t, const struct tec_model *m)
{
    int around = m->vision.n_before + m->vision.n_behind;
    t->max_around = around * m->n_slots;
    if (!around)
        return;
    t->around = tec_deal_ints(d, t->max_around);
    t->n_around = tec_deal_ints(d, 1);
    t->first_around = tec_deal_ints(d, 1);
}

/* What attentions over projections read, where there are any. */
static void deal_keys(struct tec_dealer *d, struct tec_prefix_table *t, int max_keys)
{
    t->max_keys = max_keys;
    if (!max_keys)
        return;
    tec_deal_rows(d, &t->across, t->suffix.max, 1, 1);
    t->keys = tec_deal_ints(d, max_keys);
    t->n_keys = tec_deal_ints(d, 1);
}

static void deal_prefix(struct tec_dealer *d, void *table, const void *of)
{
    struct tec_prefix_table *t = table;
    const struct tec_prefix_limits *limits = of;
    const struct tec_model *m = limits->model;
    int cameras = limits->max_pictures, zeros = zero_rows(m);
    int sequences = (limits->most > 1 ? limits->most : 1) + limits->more_rows;
    int last = zeros ? zeros : sequences, moves = limits->gathers ? sequences : 0;
    t->n_pictures = tec_deal_ints(d, 1);
    t->n_text = tec_deal_ints(d, 1);
    t->first_text = tec_deal_ints(d, 1);
    t->lead = tec_deal_ints(d, 1);
    t->most = limits->most > 1 ? limits->most : 1;
    t->n_horizon = tec_deal_ints(d, 1);
    t->n_states = t->most > 1 ? tec_deal_ints(d, 1) : NULL;
    t->one = tec_deal_ints(d, 1);
    t->n_states = t->most > 1 ? t->n_states : t->one;
    deal_towers(d, t, &m->vision, cameras);
    tec_deal_turns(d, t, m, cameras);
    t->n_known = limits->knows ? tec_deal_ints(d, 1) : NULL;
    tec_deal_rows(d, &t->prefix, limits->max_rows + limits->more_rows, sequences, 2 * sequences);
    tec_deal_rows(d, &t->last, last, 1, 1);
    t->last.seqs = t->prefix.seqs;
    t->last.spans = t->prefix.spans;
    t->last_row = tec_deal_ints(d, last);
    t->n_zeros = tec_deal_ints(d, 1);
    t->first_zero = tec_deal_ints(d, 1);
    t->zeros = tec_deal_ints(d, zeros);
    t->in_order = tec_deal_ints(d, ordered_rows(m));
    t->end = tec_deal_ints(d, 1);
    t->end_row = tec_deal_ints(d, 1);
    deal_moves(d, &t->moves, &moves);
    tec_deal_rows(d, &t->suffix, t->most * tec_suffix_rows(m), t->most, t->most * SUFFIX_SPANS);
    deal_keys(d, t, limits->max_keys);
    deal_around(d, t, m);
    deal_built(d, t, m);
    deal_flow(d, t, m);
    t->max_ids = limits->max_text + limits->more_rows;
    t->ids = tec_deal_ints(d, t->max_ids);
    t->picture = tec_deal(d, (size_t)cameras, sizeof *t->picture);
    bool places = tec_model_asks(m) || flows(m);
    int state = places ? m->program->n_places : tec_model_state(m);
    int widest = m->flow.dim > state ? m->flow.dim : state;
    t->ld = (widest + 15) / 16 * 16;
    t->n_fixed = limits->fixed ? tec_deal_ints(d, 1) : NULL;
    t->given = limits->fixed && t->most > 1 ? tec_deal_ints(d, t->most) : NULL;
    size_t most = (size_t)t->most;
    t->noise = tec_deal(d, most * (size_t)m->flow.horizon * (size_t)t->ld, sizeof(float));
    t->state = tec_deal(d, most * (size_t)t->ld, sizeof(float));
    size_t rows = limits->guided ? most * (size_t)m->flow.horizon : 0;
    t->previous = rows ? tec_deal(d, rows * (size_t)t->ld, sizeof(float)) : NULL;
    t->pulls = rows ? tec_deal(d, rows, sizeof(float)) : NULL;
    deal_shifts(d, &t->shifts, limits->shifts);
}

static enum tec_status take_block(struct tec_table_block *block, struct tec_device *device,
                                  struct tec_arena *arena, struct tec_error *err)
{
    block->host = tec_arena_push(arena, block->size, 1, TEC_DEAL_ALIGN);
    block->device = tec_device_get(device, block->size);
    if (!block->host || !block->device)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a frame table of %zu bytes",
                        block->size);
    return TEC_OK;
}

enum tec_status tec_table_init(struct tec_table_block *block, const struct tec_table_kind *kind,
                               void *host_side, void *device_side, const void *limits,
                               struct tec_device *device, struct tec_arena *arena,
                               struct tec_error *err)
{
    struct tec_dealer measure = {NULL, 0};
    kind->deal(&measure, host_side, limits);
    block->size = measure.used;
    TEC_TRY(take_block(block, device, arena, err));
    kind->deal(&(struct tec_dealer){block->host, 0}, host_side, limits);
    kind->deal(&(struct tec_dealer){block->device, 0}, device_side, limits);
    if (kind->fill)
        kind->fill(host_side, limits);
    if (kind->more)
        TEC_TRY(kind->more(block, host_side, device_side, limits, device, err));
    if (kind->fill)
        tec_device_upload(device, TEC_STREAM_MAIN, block->device, block->host, block->size);
    return TEC_OK;
}

struct tec_suffix_runs tec_suffix_runs(const struct tec_prefix_table *t, int horizon, int at)
{
    struct tec_suffix_runs runs = {0, 0, at * horizon};
    if (!t->given)
        return runs;
    for (int i = 0; i < at; i++)
        runs.first_given += t->given[i];
    runs.given = t->given[at];
    runs.first_other = *t->n_fixed + at * horizon - runs.first_given;
    return runs;
}

/* Each picture is a sequence of its own in the tower's scratch slots, which are in the order of
 * rows; every row sees all of it. */
static void fill_tower(struct tec_rows *rows, int before, int tokens)
{
    int pictures = rows->max / (before + tokens), patches = pictures * before;
    for (int i = 0; i < pictures; i++) {
        rows->seqs[i] = (struct tec_seq){2 * i, before ? 2 : 1};
        struct tec_span *spans = rows->spans + (ptrdiff_t)i * 2;
        if (before)
            *spans++ = (struct tec_span){i * before, before};
        *spans = (struct tec_span){patches + i * tokens, tokens};
    }
    for (int r = 0; r < rows->max; r++) {
        rows->slot[r] = r;
        rows->seq[r] = r < patches ? r / before : (r - patches) / tokens;
        rows->visible[r] = before + tokens;
        rows->pos[r] = r < patches ? 0 : (r - patches) % tokens;
    }
}

/* The same of pictures that differ in size. */
static void fill_sizes(struct tec_prefix_table *t, const struct tec_vision *v)
{
    struct tec_rows *rows = &t->towers[0];
    for (int i = 0; i < rows->max / v->patches; i++) {
        int first = tec_vision_patches(v, i), n = tec_vision_patches(v, i + 1) - first;
        t->each[i] = n;
        rows->seqs[i] = (struct tec_seq){2 * i, 1};
        rows->spans[(ptrdiff_t)i * 2] = (struct tec_span){first, n};
        for (int r = first; r < first + n; r++) {
            rows->seq[r] = i;
            rows->visible[r] = n;
            rows->pos[r] = r;
        }
    }
}

static void fill_counts(struct tec_prefix_table *t, const struct tec_model_program *p)
{
    for (int i = 0; i < p->n_groups; i++)
        if (p->groups[i].count >= 0)
            t->counts[p->groups[i].count] = p->groups[i].rows;
}

static void fill_built(struct tec_prefix_table *t, const struct tec_model *m)
{
    const struct tec_model_program *p = m->program;
    if (!tec_model_asks(m))
        return;
    *t->asked.count = t->asked.max;
    t->asked.seqs[0] = (struct tec_seq){0, 1};
    for (int i = 0; i < p->n_among; i++) {
        struct tec_rows *rows = &t->among[i];
        *rows->count = rows->max;
        rows->seqs[0] = (struct tec_seq){0, 1};
        rows->spans[0] = (struct tec_span){0, rows->max};
        for (int r = 0; r < rows->max; r++) {
            rows->slot[r] = r;
            rows->visible[r] = rows->max;
        }
    }
    fill_counts(t, p);
}

/* Rows of a flow's action see each other in their own slots. */
static void fill_flow(struct tec_prefix_table *t, const struct tec_model *m, int scratch_slot)
{
    struct tec_rows *const over[TEC_SEEN_KINDS] = {&t->asked, &t->pictured, &t->rest};
    t->features.seqs[0] = t->suffix.seqs[0] = (struct tec_seq){0, 1};
    t->suffix.spans[0] = (struct tec_span){scratch_slot, t->suffix.max};
    for (int r = 0; r < t->features.max; r++)
        t->features.slot[r] = r;
    for (int r = 0; r < t->suffix.max; r++) {
        t->suffix.slot[r] = scratch_slot + r;
        t->suffix.pos[r] = r;
        t->suffix.visible[r] = t->suffix.max;
    }
    for (int i = 0; i < TEC_SEEN_KINDS; i++) {
        if (!m->program->sees[i])
            continue;
        *over[i]->count = t->suffix.max;
        over[i]->seqs[0] = (struct tec_seq){0, 1};
        for (int r = 0; r < t->suffix.max; r++)
            over[i]->pos[r] = r;
    }
}

/* Each observation has a piece of the scratch, rows in front of its actions' as of the state; in
 * memory those of all come first, so those of none are computed as well, for nobody. */
static void fill_suffixes(struct tec_prefix_table *t, const struct tec_model *m, int scratch_slot)
{
    int rows = tec_suffix_rows(m), front = tec_suffix_front(m);
    for (int i = 0; i < t->most && rows; i++) {
        int slot = scratch_slot + i * rows, first = front * t->most + i * (rows - front);
        t->suffix.seqs[i] = (struct tec_seq){SUFFIX_SPANS * i, 2};
        t->suffix.spans[SUFFIX_SPANS * i + 1] = (struct tec_span){slot, rows};
        for (int r = 0; r < rows; r++) {
            int at = r < front ? i * front + r : first + r - front;
            t->suffix.seq[at] = i;
            t->suffix.slot[at] = slot + r;
        }
    }
}

static void fill_prefix(void *table, const void *of)
{
    struct tec_prefix_table *t = table;
    const struct tec_prefix_limits *limits = of;
    const struct tec_model *m = limits->model;
    *t->one = 1;
    *t->n_horizon = m->flow.horizon;
    *t->suffix.count = t->suffix.max;
    *t->n_zeros = zero_rows(m);
    for (int i = 0; i < ordered_rows(m); i++)
        t->in_order[i] = i;
    *t->first_zero = tec_lead_rows(m) + tec_state_rows(m);
    *t->end_row = *t->first_zero + *t->n_zeros;
    *t->end = m->text.eos;
    for (int i = 0; i < m->vision.n_towers; i++) {
        int before = m->vision.towers[i].prefix_rows;
        fill_tower(&t->towers[i], before, m->vision.patches);
        if (m->vision.n_sizes)
            fill_sizes(t, &m->vision);
        if (before)
            *t->n_before[i] = limits->max_pictures * before;
    }
    for (int i = 0; i < t->most + limits->more_rows; i++)
        t->prefix.seqs[i] = (struct tec_seq){2 * i, i ? 2 : 1};
    if (flows(m))
        fill_counts(t, m->program);
    if (tec_model_denoises(m))
        fill_flow(t, m, limits->scratch_slot);
    else
        fill_suffixes(t, m, limits->scratch_slot);
    fill_built(t, m);
    if (!t->max_keys)
        return;
    *t->across.count = t->across.max;
    t->across.seqs[0] = (struct tec_seq){0, 1};
}

/* Allocate a fixed place for pictures on a device that cannot read host memory. */
static enum tec_status take_pixels(struct tec_table_block *block, void *table, void *device_side,
                                   const void *of, struct tec_device *device, struct tec_error *err)
{
    struct tec_prefix_table *t = table;
    const struct tec_prefix_limits *limits = of;
    (void)device_side;
    t->picture_size = tec_model_picture_bytes(limits->model);
    if (tec_device_reads_host(device) || !t->picture_size || limits->max_pictures < 1)
        return TEC_OK;
    block->pixels_size = (size_t)limits->max_pictures * t->picture_size;
    block->pixels = tec_device_get(device, block->pixels_size);
    if (!block->pixels)
        return tec_fail(err, TEC_NO_MEMORY, "pictures need %zu bytes", block->pixels_size);
    t->pixels = block->pixels;
    for (int i = 0; i < limits->max_pictures; i++)
        t->picture[i] = t->pixels + (size_t)i * t->picture_size;
    return TEC_OK;
}

const struct tec_table_kind tec_prefix_tables = {deal_prefix, fill_prefix, take_pixels};

static void deal_decode(struct tec_dealer *d, void *table, const void *of)
{
    struct tec_decode_table *t = table;
    const struct tec_decode_limits *limits = of;
    int batch = limits->batch, max_tokens = limits->max_tokens, max_forced = limits->max_forced;
    int moves = limits->gathers ? batch : 0;
    t->max_tokens = max_tokens;
    t->max_forced = max_forced;
    t->k = tec_deal_ints(d, 1);
    t->stop = tec_deal_ints(d, 1);
    tec_deal_rows(d, &t->rows, batch, batch, 2 * batch);
    int **const arrays[] = {&t->token, &t->tail,     &t->prefix, &t->left,
                            &t->done,  &t->produced, &t->eos,    &t->best};
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++)
        *arrays[i] = tec_deal_ints(d, batch);
    t->waiting = max_forced ? tec_deal_ints(d, batch) : NULL;
    t->forced = max_forced ? tec_deal_ints(d, batch * max_forced) : NULL;
    t->tokens = tec_deal_ints(d, batch * max_tokens);
    deal_moves(d, &t->moves, &moves);
    t->words = limits->words;
    t->temperature = limits->draws ? tec_deal(d, (size_t)batch, sizeof(float)) : NULL;
    t->top_p = limits->draws ? tec_deal(d, (size_t)batch, sizeof(float)) : NULL;
    t->top_k = limits->draws ? tec_deal_ints(d, batch) : NULL;
    t->seed = limits->draws ? tec_deal(d, (size_t)batch * 2, sizeof *t->seed) : NULL;
    t->place = limits->chooses ? tec_deal_ints(d, batch) : NULL;
    t->used = t->words ? tec_deal(d, (size_t)batch * (size_t)t->words, sizeof *t->used) : NULL;
    deal_shifts(d, &t->shifts, limits->shifts);
}

static void fill_decode(void *table, const void *of)
{
    struct tec_decode_table *t = table;
    const struct tec_decode_limits *limits = of;
    for (int r = 0; r < limits->batch; r++) {
        t->rows.seq[r] = r;
        t->rows.seqs[r] = (struct tec_seq){2 * r, 2};
    }
}

const struct tec_table_kind tec_decode_tables = {deal_decode, fill_decode, NULL};

static void deal_encode(struct tec_dealer *d, void *table, const void *of)
{
    struct tec_encode_table *t = table;
    const struct tec_encode_limits *limits = of;
    tec_deal_rows(d, &t->rows, limits->rows, limits->texts, limits->texts);
    t->ids = tec_deal_ints(d, limits->rows);
    t->place = tec_deal_ints(d, limits->rows);
    t->pool = tec_deal(d, (size_t)limits->texts, sizeof *t->pool);
    t->n_texts = tec_deal_ints(d, 1);
    t->one = tec_deal_ints(d, 1);
}

static void fill_encode(void *table, const void *of)
{
    struct tec_encode_table *t = table;
    const struct tec_encode_limits *limits = of;
    *t->one = 1;
    for (int r = 0; r < limits->rows; r++)
        t->rows.slot[r] = r;
    for (int i = 0; i < limits->texts; i++)
        t->rows.seqs[i] = (struct tec_seq){i, 1};
}

const struct tec_table_kind tec_encode_tables = {deal_encode, fill_encode, NULL};

static void deal_score(struct tec_dealer *d, void *table, const void *of)
{
    struct tec_score_table *t = table;
    const struct tec_score_limits *limits = of;
    tec_deal_rows(d, &t->rows, limits->rows, limits->chains, limits->spans);
    t->n_chunks = (limits->rows + TEC_SCORE_ROWS - 1) / TEC_SCORE_ROWS;
    t->chunk = tec_deal_ints(d, t->n_chunks);
    t->token = tec_deal_ints(d, limits->rows);
    t->first = tec_deal_ints(d, limits->rows + 1);
    t->id = tec_deal_ints(d, limits->entries);
    t->likely = tec_deal(d, (size_t)limits->entries, sizeof *t->likely);
    t->max_entries = limits->entries;
}

const struct tec_table_kind tec_score_tables = {deal_score, NULL, NULL};
const struct tec_table_kind tec_move_tables = {deal_moves, NULL, NULL};

void tec_table_finish(struct tec_table_block *block, struct tec_device *device)
{
    tec_device_put(device, block->device);
    tec_device_put(device, block->pixels);
    block->device = block->pixels = NULL;
}
