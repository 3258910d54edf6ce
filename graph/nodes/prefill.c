/* prefill.c - pictures through the tower, prompt through the embedding, both through the layers of
 * the text: what remains is the keys and values of the frame. */
#include "graph/nodes/layers.h"
#include "kernels/matrix.h"

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
    int rows = tec_lower_most_pictures(l) * l->model->vision.tokens;
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

/* The row of the robot's state, as a row of x. */
static void state_row(struct tec_lower *l, int x, int row)
{
    const struct tec_model_program *p = l->model->head.program;
    struct tec_built b;
    if (!tec_built_begin(&b, l, p, l->weights->state))
        return;
    b.x = x;
    b.x_row = row;
    tec_built_calls(&b, 0, p->n, false);
    if (!b.settled[p->result])
        tec_built_copy(&b, p->result, x, row);
    tec_lower_tap(l, b.settled[p->result] ? -1 : b.tensor[p->result], "state");
}

/* The rows that a head adds: the robot's state, zeros (tokens times 0), the end. */
static void head_rows(struct tec_lower *l, int x)
{
    const struct tec_prefix_table *t = l->prefix;
    const struct tec_model *m = l->model;
    if (m->head.program)
        state_row(l, x, tec_lead_rows(m));
    tec_lower_tokens(l, x, t->zeros, t->n_zeros, m->flow.horizon * m->flow.dim, t->first_zero,
                     0.0F);
    tec_lower_tokens(l, x, t->end, t->one, 1, t->end_row, m->text.scale);
}

/* Of a flow whose prompt has a row behind it: that one, as a row of x. */
static void row_behind(struct tec_lower *l, int x, int row)
{
    struct tec_built b;
    if (!tec_built_begin(&b, l, l->model->program, l->weights->calls))
        return;
    int value = b.p->calls[b.p->prompt].behind;
    b.behind = x;
    b.row = row;
    tec_built_calls(&b, b.p->parts[TEC_PART_OF_PREFILL], b.p->parts[TEC_PART_OF_PREFILL + 1],
                    false);
    if (!tec_built_is_behind(&b, value) || !b.settled[value])
        tec_built_copy(&b, value, x, row);
}
/* Pictures and prompt as the first rows of x, and the token of each row behind them. */
static void prefix_rows(struct tec_lower *l, int x)
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
        row_behind(l, x, tec_lead_rows(l->model));
    if (t->max_around)
        tec_lower_tokens(l, x, t->around, t->n_around, t->max_around, t->first_around, 1.0F);
    if (l->model->text.lead)
        tec_lower_tokens(l, x, t->lead, t->one, 1, l->zero, scale);
    tec_lower_tokens(l, x, t->ids, t->n_text, t->max_ids, t->first_text, scale);
}

bool tec_lower_prompt(struct tec_lower *l, struct tec_built *b, const struct tec_reading *r)
{
    const struct tec_rows *rows = &l->prefix->prefix;
    int x = tec_program_tensor(l->program, "x", rows->max, l->model->text.stack.width, rows->count);
    prefix_rows(l, x);
    tec_lower_tap(l, x, "prefix.embeds");
    return tec_layers_begin(b, l, r, x);
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
    const struct tec_reading r = {.space = l->space,
                                  .rows = &t->prefix,
                                  .last = heads && !l->whole ? &t->last : NULL,
                                  .last_row = t->last_row,
                                  .keys_only = !l->whole && !heads,
                                  .tap = "prefix.",
                                  .tap_inside = true};
    struct tec_built b;
    if (!tec_lower_prompt(l, &b, &r))
        return;
    int x = tec_layers_run(&b);
    /* What leaves may be written over x: rows of it are taken before. */
    int last = heads && l->whole ? tec_lower_take(l, &t->last, t->last_row, x, "last") : -1;
    if (l->whole)
        tec_lower_tap(l, tec_layers_leave(&b, false), "prefix.final_norm");
    if (heads)
        read_hidden(l, &b, last);
}

/* A text's scratch slots are in the order of the sequence; what the frame keeps of the rows lies in
 * the order of memory, so that rows of pictures are one run of slots and all others another. */
static int read_text(struct tec_lower *l, bool round)
{
    const struct tec_prefix_table *t = l->prefix;
    const struct tec_rows rows = {.count = t->prefix.count,
                                  .max = t->prefix.max,
                                  .pos = t->prefix.pos,
                                  .slot = t->features.pos,
                                  .seq = t->prefix.seq,
                                  .visible = t->prefix.visible,
                                  .seqs = t->features.seqs,
                                  .spans = t->features.spans};
    const struct tec_reading r = {
        .space = &l->reading[0], .rows = &rows, .tap = "prefix.", .tap_inside = true};
    struct tec_built b;
    tec_lower_turns(l);
    if (!tec_lower_prompt(l, &b, &r))
        return -1;
    (void)tec_layers_run(&b);
    int x = tec_layers_leave(&b, round);
    tec_lower_tap(l, x, "prefix.final_norm");
    return x;
}

/* A program's prefill: where it reads rows of the text, these are made before the first word that
 * does; then what the action sees goes to the frame's slots. */
static void read_program(struct tec_lower *l)
{
    const struct tec_model_program *p = l->model->program;
    int to = p->parts[TEC_PART_OF_PREFILL + 1], from = p->parts[TEC_PART_OF_PREFILL];
    bool reads = p->hidden >= from && p->hidden < to;
    struct tec_built b;
    if (!tec_built_begin(&b, l, p, l->weights->calls))
        return;
    tec_built_calls(&b, from, reads ? p->hidden : to, false);
    if (reads && l->program->status == TEC_OK)
        l->hidden = read_text(l, tec_built_rounds(&b, p->hidden));
    tec_built_calls(&b, reads ? p->hidden : to, to, false);
    tec_built_keep(&b);
}

static void lower(struct tec_lower *l)
{
    if (tec_model_asks(l->model) || tec_model_denoises(l->model))
        read_program(l);
    else
        read_prompt(l);
}

const struct tec_node_kind tec_node_prefill = {.name = "prefill",
                                               .text = "pictures and prompt to keys and values",
                                               .timed = true,
                                               .lower = lower};
