/* prefill.c - pictures through the tower, prompt through the embedding, both through the stack:
 * what remains is the keys and values of the frame. */
#include "graph/nodes/node.h"

static int pictures_to_rows(struct tec_lower *l)
{
    const struct tec_tower *t = &l->model->vision;
    const struct tec_prefix_table *table = l->prefix;
    int rows = table->pictures.max, patch_cols = 3 * t->patch * t->patch;
    int patches =
        tec_program_tensor(l->program, "patches", rows, patch_cols, table->pictures.count);
    struct tec_call call = tec_call_of(TEC_OP_patchify, "patchify");
    call.out[0] = patches;
    call.args.patchify.pictures = (const uint8_t *const *)table->picture;
    call.args.patchify.lut = l->lut;
    call.args.patchify.count = table->n_pictures;
    call.args.patchify.max_pictures = rows / t->tokens;
    call.args.patchify.size = t->image_size;
    call.args.patchify.patch = t->patch;
    tec_program_call(l->program, &call);
    int e = tec_lower_linear(l, &l->weights->patch, patches, "patch_embed");
    tec_lower_tap(l, e, "vision.patch");
    call = tec_call_of(TEC_OP_add_table, "position");
    call.out[0] = e;
    call.args.add_table.table = l->weights->position;
    call.args.add_table.ldt = l->weights->ld_position;
    call.args.add_table.period = t->tokens;
    tec_program_call(l->program, &call);
    tec_lower_tap(l, e, "vision.embed");
    return e;
}

static void tower(struct tec_lower *l, int x)
{
    const struct tec_forward f = {.stack = &l->model->vision.stack,
                                  .weights = &l->weights->vision,
                                  .space = l->tower,
                                  .rows = &l->prefix->pictures,
                                  .tap = "vision."};
    int e = pictures_to_rows(l);
    tec_lower_forward(l, &f, e);
    int n = tec_lower_norm(l, &f, 0, 2, e, true, "post_norm");
    tec_lower_tap(l, n, "vision.post_ln");
    tec_lower_linear_into(l, &l->weights->projector, n, x, 0, NULL, false, "projector");
    if (l->taps)
        tec_lower_tap(l, tec_lower_linear(l, &l->weights->projector, n, "tap"), "vision.projector");
}

static void prompt(struct tec_lower *l, int x)
{
    const struct tec_text *t = &l->model->text;
    struct tec_call call = tec_call_of(TEC_OP_embed, "embed");
    call.out[0] = x;
    call.bf16 = l->weights->embed.bf16;
    call.args.embed.w = l->weights->embed.w;
    call.args.embed.ids = l->prefix->ids;
    call.args.embed.rows = l->prefix->n_text;
    call.args.embed.first = l->prefix->pictures.count;
    call.args.embed.max_rows = l->max_text + l->prefix->last.max - 1;
    call.args.embed.n = l->weights->embed.n;
    call.args.embed.k = l->weights->embed.k;
    call.args.embed.scale = t->scale;
    tec_program_call(l->program, &call);
}

void tec_lower_prefix_rows(struct tec_lower *l, int x)
{
    tower(l, x);
    prompt(l, x);
}

static enum tec_status lower(struct tec_lower *l, struct tec_error *err)
{
    const struct tec_text *t = &l->model->text;
    int x = tec_program_tensor(l->program, "x", l->prefix->prefix.max, t->stack.width,
                               l->prefix->prefix.count);
    const struct tec_forward f = {.stack = &t->stack,
                                  .weights = &l->weights->text,
                                  .space = l->space,
                                  .rows = &l->prefix->prefix,
                                  .keys_only = !l->whole,
                                  .tap = "prefix.",
                                  .tap_inside = true};
    tec_lower_prefix_rows(l, x);
    tec_lower_tap(l, x, "prefix.embeds");
    tec_lower_forward(l, &f, x);
    if (l->whole)
        tec_lower_tap(l, tec_lower_norm(l, &f, 0, 2, x, false, "final"), "prefix.final_norm");
    if (l->program->status != TEC_OK && err)
        *err = l->program->err;
    return l->program->status;
}

const struct tec_node_kind tec_node_prefill = {
    .name = "prefill", .text = "pictures and prompt to keys and values", .lower = lower};
