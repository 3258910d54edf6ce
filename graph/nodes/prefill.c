/* prefill.c - pictures through the tower, prompt through the embedding, both through the layers of
 * the text: what remains is the keys and values of the frame. */
#include "graph/nodes/layers.h"
#include "kernels/matrix.h"

#include <stdio.h>
#include <string.h>

/* Patches of `most` pictures from `first` on, bytes read through the tower's own table. */
static void patchify(struct tec_lower *l, int tower, int to, int first, int most)
{
    const struct tec_vision *v = &l->model->vision;
    const struct tec_prefix_table *table = l->prefix;
    struct tec_picture_size size = tec_vision_picture(v, first);
    struct tec_call call = tec_call_of(TEC_OP_patchify, "patchify");
    call.out[0] = to;
    call.args.patchify.pictures = (const uint8_t *const *)table->picture + first;
    if (v->floats) {
        call.args.patchify.floats = true;
        memcpy(call.args.patchify.mean, v->towers[tower].mean, sizeof v->towers[tower].mean);
        memcpy(call.args.patchify.std, v->towers[tower].std, sizeof v->towers[tower].std);
    } else {
        call.args.patchify.lut = l->lut + (size_t)tower * 3 * 256;
    }
    call.args.patchify.count = v->n_sizes ? table->one : table->n_pictures;
    call.args.patchify.max_pictures = most;
    call.args.patchify.height = size.h;
    call.args.patchify.width = size.w;
    call.args.patchify.patch = v->patch;
    tec_program_call(l->program, &call);
}

/* Patches of all pictures: of one size at once, else picture by picture. */
static int patches_of(struct tec_lower *l, int tower)
{
    const struct tec_vision *v = &l->model->vision;
    const struct tec_prefix_table *table = l->prefix;
    int pictures = table->towers[tower].max / (v->towers[tower].prefix_rows + v->patches);
    int cols = 3 * v->patch * v->patch;
    int patches =
        tec_program_tensor(l->program, "patches", pictures * v->patches, cols, table->n_patches);
    if (!v->n_sizes)
        patchify(l, tower, patches, 0, pictures);
    for (int i = 0; i < pictures && v->n_sizes; i++) {
        int first = tec_vision_patches(v, i);
        int one = tec_program_tensor(l->program, "picture", tec_vision_patches(v, i + 1) - first,
                                     cols, table->each + i);
        patchify(l, tower, one, i, 1);
        tec_lower_copy(l, one, patches, first, "picture");
    }
    return patches;
}

/* The tower's rows before the patches, which are the same for every picture. */
static void copy_before(struct tec_lower *l, int tower, int e, int rows)
{
    const struct tec_tower_weights *w = &l->weights->towers[tower];
    int width = l->model->vision.towers[tower].stack.width;
    void *at = NULL;
    memcpy(&at, &w->prefix, sizeof at); /* an input: only read */
    struct tec_call call = tec_call_of(TEC_OP_copy, "before");
    call.in[0] =
        tec_program_fixed(l->program, "before", at, (size_t)rows * (size_t)w->ld * sizeof(float),
                          rows, width, w->ld, l->prefix->n_before[tower]);
    call.out[0] = e;
    tec_program_call(l->program, &call);
}

/* Rows that enter a tower's layers; `first` is where its patches begin. */
static int embed_pictures(struct tec_lower *l, int tower, const char *tap, int *first)
{
    const struct tec_vision *v = &l->model->vision;
    const struct tec_tower_weights *w = &l->weights->towers[tower];
    const struct tec_rows *rows = &l->prefix->towers[tower];
    int before = v->towers[tower].prefix_rows;
    int patches = patches_of(l, tower);
    tec_lower_tap(l, patches, "%spixels", tap);
    *first = rows->max / (before + v->patches) * before;
    int e = tec_lower_linear(l, &w->patch, patches, "patch_embed");
    tec_lower_tap(l, e, "%spatch", tap);
    struct tec_call call = tec_call_of(TEC_OP_add_table, "position");
    call.out[0] = e;
    call.args.add_table.table = w->position;
    call.args.add_table.ldt = w->ld;
    call.args.add_table.period = v->n_sizes ? tec_vision_patches(v, v->n_sizes) : v->patches;
    tec_program_call(l->program, &call);
    if (before) {
        int all = tec_program_tensor(l->program, "rows", rows->max, v->towers[tower].stack.width,
                                     rows->count);
        copy_before(l, tower, all, *first);
        tec_lower_copy(l, e, all, *first, "behind");
        e = all;
    }
    tec_lower_tap(l, e, "%sembed", tap);
    return e;
}

/* Squares of patches as one row each, from row `first` of x on. */
static int shuffle(struct tec_lower *l, int x, int patches)
{
    const struct tec_vision *v = &l->model->vision;
    int group = v->shuffle * v->shuffle;
    int cols = x < 0 ? 0 : l->program->tensors[x].cols;
    if (group == 1)
        return x;
    int y = x < 0 ? -1
                  : tec_program_tensor(l->program, "shuffle", patches / group, group * cols,
                                       l->prefix->n_image);
    struct tec_call call = tec_call_of(TEC_OP_take_rows, "shuffle");
    call.in[0] = x;
    call.out[0] = y;
    call.args.take.row = l->shuffle;
    call.args.take.group = group;
    call.args.take.rows = l->prefix->n_patches;
    call.args.take.round = l->round;
    tec_program_call(l->program, &call);
    return y;
}

/* The norm in front of the projector. */
static int norm_patches(struct tec_lower *l, int x)
{
    const struct tec_tensor *t = x < 0 ? NULL : &l->program->tensors[x];
    struct tec_call call = tec_call_of(TEC_OP_layer_norm, "projector_norm");
    tec_lower_tap(l, x, "vision.shuffled");
    call.in[0] = x;
    call.out[0] =
        t ? tec_program_tensor(l->program, "projector_norm", t->rows, t->cols, t->live) : -1;
    call.args.norm.weight = l->weights->project_norm;
    call.args.norm.bias = l->weights->project_norm_bias;
    call.args.norm.eps = l->model->vision.norm.eps;
    call.args.norm.round = l->round;
    tec_program_call(l->program, &call);
    return call.out[0];
}

/* The projector's factor of what enters the prefix; NULL: 1. */
static const struct tec_gate *scale_of(const struct tec_lower *l, struct tec_gate *gate)
{
    *gate = (struct tec_gate){.at = l->weights->project_scale};
    return gate->at ? gate : NULL;
}

/* One tower, and its share of the projector's first layer: to `y` from row `out_row` on. With taps
 * a tensor of its own holds what the factor of the prefix's rows has not changed. */
static void tower(struct tec_lower *l, int index, int y, int out_row)
{
    const struct tec_vision *v = &l->model->vision;
    const struct tec_tower_weights *w = &l->weights->towers[index];
    char tap[16];
    snprintf(tap, sizeof tap, v->n_towers > 1 ? "vision%d." : "vision.", index);
    const struct tec_reading r = {.tower = &v->towers[index],
                                  .weights = w->calls,
                                  .space = &l->towers[index],
                                  .rows = &l->prefix->towers[index],
                                  .tap = tap,
                                  .tap_inside = v->n_towers > 1};
    struct tec_built b;
    int first, x = embed_pictures(l, index, tap, &first);
    if (!tec_layers_begin(&b, l, &r, x))
        return;
    (void)tec_layers_run(&b);
    x = tec_layers_leave(&b, tec_model_program_rounds(b.p));
    if (b.p->leaves)
        tec_lower_tap(l, x, "%spost_ln", tap);
    int patches = r.rows->max - first;
    x = shuffle(l, x, patches);
    if (v->norm.weight)
        x = norm_patches(l, x);
    struct tec_gate gate;
    const struct tec_part_rows part = {.rows = l->prefix->n_image,
                                       .max_rows = patches / (v->shuffle * v->shuffle),
                                       .in_row = first,
                                       .out_row = out_row,
                                       .gate = v->n_projector == 1 ? scale_of(l, &gate) : NULL};
    tec_lower_linear_rows(l, &w->project, x, y, &part, index > 0, "projector");
    if (l->taps && part.gate)
        tec_lower_tap(l, tec_lower_linear(l, &w->project, x, "tap"), "vision.connector");
}

bool tec_lower_sees(const struct tec_lower *l)
{
    return l->model->vision.n_towers && l->prefix->towers[0].max > 0;
}

void tec_lower_pictures(struct tec_lower *l, int x, int at)
{
    const struct tec_vision *v = &l->model->vision;
    const struct tec_prefix_table *t = l->prefix;
    int rows = t->towers[0].max / (v->towers[0].prefix_rows + v->patches) * v->tokens, y = x;
    bool one = v->n_projector == 1;
    struct tec_gate gate;
    if (!one || l->taps)
        y = tec_program_tensor(l->program, "project", rows, v->projector[0].rows, t->n_image);
    for (int i = 0; i < v->n_towers; i++)
        tower(l, i, y, y == x ? at : 0);
    if (one && y != x)
        tec_lower_copy(l, y, x, at, "projector");
    for (int i = 1; i < v->n_projector; i++) {
        const struct tec_matrix *m = &l->weights->projector[i];
        tec_lower_tap(l, y, "projector.%d", i);
        tec_lower_activation(l, v->activation, y, y);
        if (i + 1 == v->n_projector)
            tec_lower_linear_into(l, m, y, x, at, scale_of(l, &gate), false, "projector");
        if (i + 1 < v->n_projector || l->taps)
            y = tec_lower_linear(l, m, y, "projector");
    }
    tec_lower_tap(l, y, "vision.projector");
}

void tec_lower_tokens(struct tec_lower *l, int x, const int *ids, const int *n, int max_rows,
                      const int *first, float scale)
{
    struct tec_call call = tec_call_of(TEC_OP_embed, "embed");
    call.out[0] = x;
    call.bf16 = l->weights->embed.form == TEC_FORM_BF16;
    call.args.embed.w = l->weights->embed.w;
    call.args.embed.ids = ids;
    call.args.embed.rows = n;
    call.args.embed.first = first;
    call.args.embed.max_rows = max_rows;
    call.args.embed.n = l->weights->embed.n;
    call.args.embed.k = l->weights->embed.k;
    call.args.embed.scale = scale;
    tec_program_call(l->program, &call);
}

/* Pictures whose rows another prefill may have made, or may read: those that are known are copied,
 * and the towers have none; else what the towers make is kept. All counts are data. */
static void share_pictures(struct tec_lower *l, int x, int at)
{
    const struct tec_prefix_table *t = l->prefix;
    const struct tec_vision *v = &l->model->vision;
    int rows = t->towers[0].max / (v->towers[0].prefix_rows + v->patches) * v->tokens;
    int width = l->model->text.stack.width, ld = tec_padded(width);
    int kept =
        tec_program_fixed(l->program, "kept", l->picture_rows,
                          (size_t)rows * (size_t)ld * sizeof(float), rows, width, ld, t->n_known);
    int made = tec_program_tensor(l->program, "pictures", rows, width, t->n_image);
    tec_lower_copy(l, kept, x, at, "known");
    tec_lower_pictures(l, made, 0);
    tec_lower_copy(l, made, x, at, "pictures");
    tec_lower_copy(l, made, kept, 0, "keep");
}

/* The rows that a head adds: the robot's state, zeros (tokens times 0), the end. */
static void head_rows(struct tec_lower *l, int x)
{
    const struct tec_prefix_table *t = l->prefix;
    const struct tec_model *m = l->model;
    if (m->head.state) {
        int state = tec_program_fixed(l->program, "state", t->state, (size_t)t->ld * sizeof(float),
                                      1, m->head.state, t->ld, t->one);
        int y = tec_lower_linear(l, &l->weights->states[0], state, "state_in");
        tec_lower_activation(l, TEC_ACTIVATION_GELU_ERF, y, y);
        tec_lower_linear_into(l, &l->weights->states[1], y, x, tec_lead_rows(m), NULL, false,
                              "state_out");
        if (l->taps)
            tec_lower_tap(l, tec_lower_linear(l, &l->weights->states[1], y, "tap"), "state");
    }
    tec_lower_tokens(l, x, t->zeros, t->n_zeros, m->flow.horizon * m->flow.dim, t->first_zero,
                     0.0F);
    tec_lower_tokens(l, x, t->end, t->one, 1, t->end_row, m->text.scale);
}

void tec_lower_prefix_rows(struct tec_lower *l, int x)
{
    const struct tec_prefix_table *t = l->prefix;
    float scale = l->model->text.scale;
    int picture = tec_lead_rows(l->model) + tec_head_rows(l->model);
    if (tec_lower_sees(l) && l->picture_rows)
        share_pictures(l, x, picture);
    else if (tec_lower_sees(l))
        tec_lower_pictures(l, x, picture);
    l->picture_steps = l->program->n_steps;
    if (tec_model_heads(l->model))
        head_rows(l, x);
    if (tec_model_behind(l->model)) /* in memory in front of the pictures */
        tec_lower_behind(l, x, tec_lead_rows(l->model));
    if (t->max_around)
        tec_lower_tokens(l, x, t->around, t->n_around, t->max_around, t->first_around, 1.0F);
    if (l->model->text.lead)
        tec_lower_tokens(l, x, t->lead, t->one, 1, l->zero, scale);
    tec_lower_tokens(l, x, t->ids, t->n_text, t->max_ids, t->first_text, scale);
}

/* The rows that a head reads, behind the text's last norm: `last` where all rows went through the
 * last layer, for a tap, else what has. */
static void read_hidden(struct tec_lower *l, struct tec_built *b, int last)
{
    if (l->whole) {
        b->rows = &l->prefix->last;
        b->tensor[b->p->layers[b->p->n_layers].x] = last;
    }
    l->hidden = tec_layers_leave(b, false);
    tec_lower_tap(l, l->hidden, "last_hidden");
}

/* Pictures and prompt through the layers of the text. */
static void read_prompt(struct tec_lower *l)
{
    const struct tec_prefix_table *t = l->prefix;
    bool heads = tec_model_heads(l->model);
    int x = tec_program_tensor(l->program, "x", t->prefix.max, l->model->text.stack.width,
                               t->prefix.count);
    const struct tec_reading r = {.space = l->space,
                                  .rows = &t->prefix,
                                  .last = heads && !l->whole ? &t->last : NULL,
                                  .last_row = t->last_row,
                                  .keys_only = !l->whole && !heads,
                                  .tap = "prefix.",
                                  .tap_inside = true};
    struct tec_built b;
    tec_lower_prefix_rows(l, x);
    tec_lower_tap(l, x, "prefix.embeds");
    if (!tec_layers_begin(&b, l, &r, x))
        return;
    x = tec_layers_run(&b);
    /* What leaves may be written over x: rows of it are taken before. */
    int last = heads && l->whole ? tec_lower_take(l, &t->last, t->last_row, x, "last") : -1;
    if (l->whole)
        tec_lower_tap(l, tec_layers_leave(&b, false), "prefix.final_norm");
    if (heads)
        read_hidden(l, &b, last);
}

/* Text counts by the order of the sequence, so its scratch slots are positions; what the frame
 * keeps of the rows lies in the order of memory, so that rows of pictures are one run of slots and
 * all others another. */
int tec_lower_text(struct tec_lower *l, bool round)
{
    const struct tec_prefix_table *t = l->prefix;
    const struct tec_rows rows = {.count = t->prefix.count,
                                  .max = t->prefix.max,
                                  .pos = t->prefix.pos,
                                  .slot = t->prefix.pos,
                                  .seq = t->prefix.seq,
                                  .visible = t->prefix.visible,
                                  .seqs = t->features.seqs,
                                  .spans = t->features.spans};
    const struct tec_reading r = {
        .space = &l->reading[0], .rows = &rows, .tap = "prefix.", .tap_inside = true};
    struct tec_built b;
    int x = tec_program_tensor(l->program, "x", rows.max, l->model->text.stack.width, rows.count);
    tec_lower_prefix_rows(l, x);
    tec_lower_tap(l, x, "prefix.embeds");
    if (!tec_layers_begin(&b, l, &r, x))
        return -1;
    (void)tec_layers_run(&b);
    x = tec_layers_leave(&b, round);
    tec_lower_tap(l, x, "prefix.final_norm");
    return x;
}

static enum tec_status lower(struct tec_lower *l, struct tec_error *err)
{
    if (tec_model_asks(l->model) || tec_model_denoises(l->model))
        tec_lower_built(l, TEC_PART_OF_PREFILL);
    else
        read_prompt(l);
    if (l->program->status != TEC_OK && err)
        *err = l->program->err;
    return l->program->status;
}

const struct tec_node_kind tec_node_prefill = {.name = "prefill",
                                               .text = "pictures and prompt to keys and values",
                                               .timed = true,
                                               .lower = lower};
