/* program_uses.c - which calls of a program read each value. */
#include "graph/model/program.h"

/* The value that a view shows rows of; -1 = a value has memory of its own. */
static int shown_by(const struct tec_model_program *p, int value)
{
    const struct tec_model_call *c = &p->calls[value];
    bool view = c->word == TEC_WORD_take || c->word == TEC_WORD_beside;
    return view && !c->constant ? c->in[0] : -1;
}

static void use(struct tec_model_program *p, int value, int by)
{
    for (; value >= 0; value = shown_by(p, value)) {
        struct tec_value_uses *u = &p->calls[value].uses;
        if (!u->n)
            u->first = by;
        u->last = by;
        u->n++;
    }
}

/* Rows that somebody else than a product reads are copied: a product reads them where they are. */
static void copy_taken(struct tec_model_program *p, int value, enum tec_model_word by)
{
    struct tec_model_call *c = &p->calls[value];
    if (c->word != TEC_WORD_take || c->constant || by == TEC_WORD_linear)
        return;
    c->copied = true;
    p->order = c->first + c->rows > p->order ? c->first + c->rows : p->order;
}

enum tec_status tec_model_program_uses(struct tec_model_program *p, struct tec_error *err)
{
    for (int i = 0; i < p->n; i++)
        p->calls[i].uses = (struct tec_value_uses){0, 0, 0};
    for (int i = 0; i < p->n; i++) {
        const struct tec_model_call *c = &p->calls[i];
        const int options[] = {c->position, c->over, c->over_position, c->scale,
                               c->shift,    c->gate, c->behind};
        for (int k = 0; k < c->n_in; k++) {
            if (!c->constant || p->calls[c->in[k]].constant) /* sines need sizes alone */
                use(p, c->in[k], i);
            copy_taken(p, c->in[k], c->word);
        }
        for (size_t k = 0; k < sizeof options / sizeof options[0]; k++)
            use(p, options[k], i);
    }
    use(p, p->result, p->n);
    for (int i = 0; i < p->n_deep; i++)
        use(p, p->deep[i], p->n);
    copy_taken(p, p->result, TEC_WORD_COUNT);
    for (int i = 0; i < p->n; i++)
        if (!p->calls[i].uses.n && p->calls[i].word != TEC_WORD_time)
            return tec_model_call_fail(&p->calls[i], err, "nobody reads its value");
    return TEC_OK;
}

enum tec_status tec_model_program_links(struct tec_model_program *p, struct tec_error *err)
{
    TEC_TRY(tec_model_program_uses(p, err));
    return tec_model_program_share(p, err);
}
