#include "graph/nodes/tables.h"

#include <string.h>

enum { ALIGN = 64, SUFFIX_SPANS = 3 };

/* Deals out arrays from a base; with base NULL it only measures. */
struct dealer {
    unsigned char *base;
    size_t used;
};

static void *deal(struct dealer *d, size_t n, size_t size)
{
    void *p = d->base ? d->base + d->used : NULL;
    d->used += (n * size + ALIGN - 1) / ALIGN * ALIGN;
    return p;
}

static int *ints(struct dealer *d, int n)
{
    return deal(d, (size_t)n, sizeof(int));
}

static void deal_rows(struct dealer *d, struct tec_rows *rows, int max, int seqs, int spans)
{
    rows->max = max;
    rows->count = ints(d, 1);
    rows->pos = ints(d, max);
    rows->slot = ints(d, max);
    rows->seq = ints(d, max);
    rows->visible = ints(d, max);
    rows->seqs = deal(d, (size_t)seqs, sizeof(struct tec_seq));
    rows->spans = deal(d, (size_t)spans, sizeof(struct tec_span));
}

static void deal_moves(struct dealer *d, struct tec_moves *moves, int max)
{
    moves->max = max;
    moves->count = ints(d, 1);
    moves->list = max ? deal(d, (size_t)max, sizeof *moves->list) : NULL;
}

int tec_suffix_rows(const struct tec_model *model)
{
    return model->flow.horizon + (model->flow.state.weight ? 1 : 0);
}

static void deal_prefix(struct dealer *d, struct tec_prefix_table *t,
                        const struct tec_prefix_limits *limits)
{
    const struct tec_model *m = limits->model;
    int cameras = limits->max_pictures, sequences = 1 + limits->more_rows;
    t->n_pictures = ints(d, 1);
    t->n_text = ints(d, 1);
    t->n_horizon = ints(d, 1);
    t->one = ints(d, 1);
    deal_rows(d, &t->pictures, cameras * m->vision.tokens, cameras, cameras);
    deal_rows(d, &t->prefix, limits->max_rows + limits->more_rows, sequences, 2 * sequences);
    deal_rows(d, &t->last, sequences, 1, 1);
    t->last.seqs = t->prefix.seqs;
    t->last.spans = t->prefix.spans;
    t->last_row = ints(d, sequences);
    deal_moves(d, &t->moves, limits->gathers ? sequences : 0);
    deal_rows(d, &t->suffix, tec_suffix_rows(m), 1, SUFFIX_SPANS);
    t->ids = ints(d, limits->max_text + limits->more_rows);
    t->picture = deal(d, (size_t)cameras, sizeof *t->picture);
    t->ld = (m->flow.dim + 15) / 16 * 16;
    t->n_fixed = limits->fixed ? ints(d, 1) : NULL;
    t->noise = deal(d, (size_t)m->flow.horizon * (size_t)t->ld, sizeof(float));
    t->state = deal(d, (size_t)t->ld, sizeof(float));
}

static enum tec_status take(struct tec_table_block *block, struct tec_device *device,
                            struct tec_arena *arena, struct tec_error *err)
{
    block->host = tec_arena_push(arena, block->size, 1, ALIGN);
    block->device = tec_device_get(device, block->size);
    if (!block->host || !block->device)
        return tec_fail(err, TEC_NO_MEMORY, "a frame table needs %zu bytes", block->size);
    return TEC_OK;
}

/* Each picture is a sequence of its own in the tower's scratch slots; every row sees all of it. */
static void fill_pictures(struct tec_prefix_table *t, const struct tec_model *m)
{
    int tokens = m->vision.tokens;
    for (int i = 0; i < t->pictures.max / tokens; i++) {
        t->pictures.seqs[i] = (struct tec_seq){i, 1};
        t->pictures.spans[i] = (struct tec_span){i * tokens, tokens};
    }
    for (int r = 0; r < t->pictures.max; r++) {
        t->pictures.slot[r] = r;
        t->pictures.seq[r] = r / tokens;
        t->pictures.visible[r] = tokens;
    }
}

static void fill_constants(struct tec_prefix_table *t, const struct tec_prefix_limits *limits)
{
    const struct tec_model *m = limits->model;
    *t->one = 1;
    *t->n_horizon = m->flow.horizon;
    *t->suffix.count = t->suffix.max;
    fill_pictures(t, m);
    for (int i = 0; i <= limits->more_rows; i++)
        t->prefix.seqs[i] = (struct tec_seq){2 * i, i ? 2 : 1};
    t->suffix.seqs[0] = (struct tec_seq){0, 2};
    t->suffix.spans[1] = (struct tec_span){limits->scratch_slot, t->suffix.max};
    for (int r = 0; r < t->suffix.max; r++)
        t->suffix.slot[r] = limits->scratch_slot + r;
}

/* Where pictures go on a device that cannot read them where they are: always the same place. */
static enum tec_status take_pixels(struct tec_table_block *block, struct tec_prefix_table *t,
                                   const struct tec_prefix_limits *limits,
                                   struct tec_device *device, struct tec_error *err)
{
    size_t side = (size_t)limits->model->vision.image_size;
    t->picture_size = side * side * 3;
    if (tec_device_reads_host(device))
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

enum tec_status
tec_prefix_table_init(struct tec_table_block *block, struct tec_prefix_table *host_side,
                      struct tec_prefix_table *device_side, const struct tec_prefix_limits *limits,
                      struct tec_device *device, struct tec_arena *arena, struct tec_error *err)
{
    struct dealer measure = {NULL, 0};
    deal_prefix(&measure, host_side, limits);
    block->size = measure.used;
    TEC_TRY(take(block, device, arena, err));
    deal_prefix(&(struct dealer){block->host, 0}, host_side, limits);
    deal_prefix(&(struct dealer){block->device, 0}, device_side, limits);
    fill_constants(host_side, limits);
    TEC_TRY(take_pixels(block, host_side, limits, device, err));
    tec_device_upload(device, TEC_STREAM_MAIN, block->device, block->host, block->size);
    return TEC_OK;
}

static void deal_decode(struct dealer *d, struct tec_decode_table *t,
                        const struct tec_decode_limits *limits)
{
    int batch = limits->batch, max_tokens = limits->max_tokens, max_forced = limits->max_forced;
    t->max_tokens = max_tokens;
    t->max_forced = max_forced;
    t->k = ints(d, 1);
    t->stop = ints(d, 1);
    deal_rows(d, &t->rows, batch, batch, 2 * batch);
    int **const arrays[] = {&t->token, &t->tail,     &t->prefix, &t->left,
                            &t->done,  &t->produced, &t->eos,    &t->best};
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++)
        *arrays[i] = ints(d, batch);
    t->waiting = max_forced ? ints(d, batch) : NULL;
    t->forced = max_forced ? ints(d, batch * max_forced) : NULL;
    t->tokens = ints(d, batch * max_tokens);
    deal_moves(d, &t->moves, limits->gathers ? batch : 0);
}

enum tec_status
tec_decode_table_init(struct tec_table_block *block, struct tec_decode_table *host_side,
                      struct tec_decode_table *device_side, const struct tec_decode_limits *limits,
                      struct tec_device *device, struct tec_arena *arena, struct tec_error *err)
{
    struct dealer measure = {NULL, 0};
    deal_decode(&measure, host_side, limits);
    block->size = measure.used;
    TEC_TRY(take(block, device, arena, err));
    deal_decode(&(struct dealer){block->host, 0}, host_side, limits);
    deal_decode(&(struct dealer){block->device, 0}, device_side, limits);
    for (int r = 0; r < limits->batch; r++) {
        host_side->rows.seq[r] = r;
        host_side->rows.seqs[r] = (struct tec_seq){2 * r, 2};
    }
    return TEC_OK;
}

enum tec_status tec_moves_init(struct tec_table_block *block, struct tec_moves *host_side,
                               struct tec_moves *device_side, int max, struct tec_device *device,
                               struct tec_arena *arena, struct tec_error *err)
{
    struct dealer measure = {NULL, 0};
    deal_moves(&measure, host_side, max);
    block->size = measure.used;
    TEC_TRY(take(block, device, arena, err));
    deal_moves(&(struct dealer){block->host, 0}, host_side, max);
    deal_moves(&(struct dealer){block->device, 0}, device_side, max);
    return TEC_OK;
}

void tec_table_finish(struct tec_table_block *block, struct tec_device *device)
{
    tec_device_put(device, block->device);
    tec_device_put(device, block->pixels);
    block->device = block->pixels = NULL;
}
