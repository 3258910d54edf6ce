/* packed.c - a ring's forward: the prefill of the newest sequence, and one row of each other that
 * is in flight, through the layers at once. Each sees the keys of its own sequence alone; the last
 * row of each makes its next token. Where sequences move from stage to stage, each layer does it
 * behind its attention.
 *
 * Rows stand in the order of the prefix table: pictures, prompt, then one a sequence. Only the last
 * row of each is needed behind the last layer's keys, so that layer goes on with those. */
#include "graph/nodes/layers.h"

void tec_lower_packed(struct tec_lower *l)
{
    const struct tec_prefix_table *t = l->prefix;
    const struct tec_reading r = {.space = l->space,
                                  .rows = &t->prefix,
                                  .last = l->whole ? NULL : &t->last,
                                  .last_row = t->last_row,
                                  .moves = &t->moves,
                                  .shifts = &t->shifts,
                                  .tap = "prefix.",
                                  .tap_inside = true};
    struct tec_built b;
    int h = -1;
    if (tec_lower_prompt(l, &b, &r)) {
        int x = tec_layers_run(&b);
        if (l->whole) {
            b.rows = &t->last;
            b.tensor[b.p->layers[b.p->n_layers].x] =
                tec_lower_take(l, b.rows, t->last_row, x, "last");
        }
        h = tec_layers_leave(&b, true);
    }
    tec_lower_tap(l, h, "last_hidden");
    tec_lower_next_tokens(l, h);
}
