/* words_values.c - what the checks of all words share: rows and values that calls read and make. */
#include "graph/model/words_own.h"

enum { MAX_CONSTANTS = 1 << 27 };

const struct tec_model_call *tec_builder_operand(const struct tec_model_program *p,
                                                 const struct tec_model_call *c, int i)
{
    return &p->calls[c->in[i]];
}

enum tec_status tec_builder_new_rows(struct tec_model_program *p, struct tec_model_call *c,
                                     struct tec_error *err)
{
    c->group = tec_model_program_group(p, c->rows);
    return c->group < 0 ? tec_fail(err, TEC_NO_MEMORY, "no memory for rows") : TEC_OK;
}

/* Constants lie in host memory while weights are loaded, whatever a checkpoint holds. */
enum tec_status tec_builder_constant(struct tec_model_program *p, struct tec_model_call *c,
                                     struct tec_error *err)
{
    c->constant = true;
    p->constants += (int64_t)c->rows * c->cols;
    return p->constants <= MAX_CONSTANTS
               ? TEC_OK
               : tec_fail(
                     err, TEC_MALFORMED,
                     "%d rows of %d columns: the constants of a model are more than %d numbers",
                     c->rows, c->cols, MAX_CONSTANTS);
}

void tec_builder_same_rows(struct tec_model_call *c, const struct tec_model_call *x)
{
    c->rows = x->rows;
    c->group = x->group;
    c->h = x->h;
    c->w = x->w;
}

enum tec_status tec_builder_need_input(const struct tec_model_call *x, struct tec_error *err)
{
    if (x->word == TEC_WORD_prompt)
        return tec_fail(err, TEC_UNSUPPORTED,
                        "reads a prompt, of which keys and values are there: attention does, "
                        "through over");
    if (x->word == TEC_WORD_beside)
        return tec_fail(err, TEC_UNSUPPORTED, "reads columns beside each other: linear alone does");
    if (x->word == TEC_WORD_pixels)
        return tec_fail(err, TEC_UNSUPPORTED, "reads pixels: conv and patches do");
    if (x->timed)
        return tec_fail(err, TEC_UNSUPPORTED,
                        "reads a row of the time: linear, activation, add, columns, beside and "
                        "concat do");
    return x->constant ? tec_fail(err, TEC_MALFORMED,
                                  "reads a constant; nothing would depend on "
                                  "what is observed")
                       : TEC_OK;
}

enum tec_status tec_builder_row(const struct tec_model_program *p, int value,
                                const struct tec_model_call *x, const char *what,
                                struct tec_error *err)
{
    if (value < 0)
        return TEC_OK;
    const struct tec_model_call *row = &p->calls[value];
    if (!row->timed)
        return tec_fail(err, TEC_UNSUPPORTED, "%s must be a row of the time", what);
    return row->cols == x->cols
               ? TEC_OK
               : tec_fail(err, TEC_MALFORMED, "%s has %d columns, the rows have %d", what,
                          row->cols, x->cols);
}
