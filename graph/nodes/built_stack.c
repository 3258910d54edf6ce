/* built_stack.c - stacks of a program: of its prefill, of an action that asks what this has made,
 * and of a flow over the prompt's keys. */
#include "graph/nodes/built.h"

#include <stdio.h>

/* What names of a stack's taps begin with; NULL = it has none, as in most steps of a flow. */
static const char *tap_of(const struct tec_built *b, int at, char text[64])
{
    if (b->step < 0)
        snprintf(text, 64, "%.48s.", tec_built_label(b, at, "stack"));
    else
        snprintf(text, 64, "suffix.step%d.", b->step);
    return tec_built_taps(b) ? text : NULL;
}

/* The layers, and the norm behind them. */
static int run_stack(struct tec_built *b, int at, struct tec_forward f, int x)
{
    const struct tec_model_call *c = &b->p->calls[at];
    char tap[64];
    f.stack = c->stack;
    f.weights = &b->w[at].stack;
    f.tap = tap_of(b, at, tap);
    f.tap_inside = true;
    if (f.tap && b->step >= 0)
        tec_lower_tap(b->l, x, "%sembeds", tap);
    x = tec_lower_forward(b->l, &f, x);
    if (c->stack->names[TEC_ROLE_final])
        x = tec_lower_norm(b->l, &f, 0, 2, x, false, "final");
    if (f.tap)
        tec_lower_tap(b->l, x, "%sout", tap);
    return x;
}

/* Rows are changed in place: copies of those that somebody reads later, or that never change. */
static int rows_of(struct tec_built *b, int at)
{
    int x = b->p->calls[at].in[0];
    if (tec_built_last(b, x, at))
        return b->tensor[x];
    int y = tec_built_new(b, at, tec_built_label(b, at, "rows"));
    tec_built_copy(b, x, y, 0);
    return y;
}

int tec_built_stack(struct tec_built *b, int at)
{
    const struct tec_model_call *c = &b->p->calls[at];
    const struct tec_prefix_table *t = b->l->prefix;
    struct tec_forward f = {.space = b->l->space, .rows = &t->suffix, .asked = &t->asked};
    if (c->over >= 0 && c->over == b->p->prompt)
        f = tec_built_over_prompt(b, at);
    else if (b->p->flow.steps)
        f = (struct tec_forward){.space = &b->l->reading[1 + c->space], .rows = &t->features};
    else if (c->over < 0)
        f = (struct tec_forward){.space = &b->l->towers[c->space],
                                 .rows = &t->stacks[b->p->groups[c->group].stack]};
    return run_stack(b, at, f, rows_of(b, at));
}
