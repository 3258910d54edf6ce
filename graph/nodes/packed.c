/* packed.c - a ring's forward: the prefill of the newest sequence, and one row of each other that
 * is in flight, through one stack at once. Each sees the keys of its own sequence alone; the last
 * row of each makes its next token.
 *
 * Rows stand in the order of the prefix table: pictures, prompt, then one a sequence. Only the last
 * row of each is needed behind the last layer's keys, so that layer goes on with those. */
#include "graph/nodes/node.h"

enum tec_status tec_lower_packed(struct tec_lower *l, struct tec_error *err)
{
    const struct tec_text *t = &l->model->text;
    const struct tec_prefix_table *table = l->prefix;
    const struct tec_forward f = {.stack = &t->stack,
                                  .weights = &l->weights->text,
                                  .space = l->space,
                                  .rows = &table->prefix,
                                  .last = l->whole ? NULL : &table->last,
                                  .last_row = table->last_row,
                                  .moves = &table->moves,
                                  .tap = "prefix.",
                                  .tap_inside = true};
    int x =
        tec_program_tensor(l->program, "x", table->prefix.max, t->stack.width, table->prefix.count);
    tec_lower_prefix_rows(l, x);
    tec_lower_tap(l, x, "prefix.embeds");
    int last = tec_lower_forward(l, &f, x);
    if (l->whole)
        last = tec_lower_take(l, &table->last, table->last_row, last, "last");
    int h = tec_lower_norm(l, &f, 0, 2, last, true, "final");
    tec_lower_tap(l, h, "last_hidden");
    tec_lower_next_tokens(l, h);
    if (l->program->status != TEC_OK && err)
        *err = l->program->err;
    return l->program->status;
}
