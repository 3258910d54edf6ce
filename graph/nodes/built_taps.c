/* built_taps.c - copies of a program's values for judges, and what they are called. */
#include "graph/nodes/built.h"

#include <stdio.h>
#include <string.h>

/* Whether values have taps now: before the steps, in the first and in the last one. */
static bool taps_now(const struct tec_built *b)
{
    return b->step <= 0 || b->step == b->l->timed->steps - 1;
}

/* Of a text its layers have taps, of a tower its front, too. */
static void tap_layer(struct tec_built *b, int tensor, const char *name)
{
    if (b->p->tower && b->text->tap && b->layer < 0)
        tec_lower_tap(b->l, tensor, "%s%s", b->text->tap, name);
    if (b->text->tap && b->text->tap_inside && b->layer >= 0)
        tec_lower_tap(b->l, tensor, "%slayer%d.%s", b->text->tap, b->layer, name);
}

void tec_built_tap(struct tec_built *b, int tensor, const char *name)
{
    const char *suffix = b->p->prompt < 0 ? "" : "suffix.";
    if (b->text)
        tap_layer(b, tensor, name);
    else if (b->step < 0)
        tec_lower_tap(b->l, tensor, "%s", name);
    else if (taps_now(b))
        tec_lower_tap(b->l, tensor, "%sstep%d.%s", suffix, b->step, name);
}

bool tec_built_stem(const struct tec_built *b, int at, char stem[TEC_STEM_BYTES])
{
    const char *name = b->p->calls[at].name, *dot = name ? strrchr(name, '.') : NULL;
    const char *suffix = b->p->prompt < 0 ? "" : "suffix.";
    int n = dot ? (int)(dot + 1 - name) : 0;
    if (!b->l->taps || !name || !taps_now(b))
        return false;
    if (b->step < 0)
        snprintf(stem, TEC_STEM_BYTES, "%s%.*s", suffix, n, name);
    else
        snprintf(stem, TEC_STEM_BYTES, "%sstep%d.%.*s", suffix, b->step, n, name);
    return true;
}
