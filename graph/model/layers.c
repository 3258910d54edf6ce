/* layers.c - what the programs of texts and towers must be as a whole, and the sizes that follow.
 */
#include "graph/model/program.h"

#include <string.h>

const struct tec_model_call *tec_model_attention(const struct tec_model *model, int layer)
{
    const struct tec_model_program *p = model->text.program;
    return &p->calls[p->layers[layer].attention];
}

/* The sizes that rows of a frame, and who tells of a model, know. */
static void take_sizes(const struct tec_model_program *p, struct tec_stack *s)
{
    s->layers = p->n_layers;
    s->width = p->width;
    s->heads = p->kept.heads;
    s->kv_heads = p->kept.kv_heads;
    s->head_dim = p->kept.head_dim;
    for (int i = 0; i < p->n && !s->mlp; i++) {
        const struct tec_model_call *c = &p->calls[i];
        if (c->word == TEC_WORD_gated || c->word == TEC_WORD_activation)
            s->mlp = c->cols;
    }
}

bool tec_model_program_rounds(const struct tec_model_program *p)
{
    bool rounds = false;
    for (int i = 0; i < p->n; i++)
        rounds |= p->calls[i].bf16;
    return rounds;
}

enum tec_status tec_model_layers_check(struct tec_model_program *p, struct tec_stack *sizes,
                                       struct tec_error *err)
{
    const struct tec_model_call *first = &p->calls[p->layers[0].attention];
    TEC_TRY(tec_model_program_links(p, err));
    take_sizes(p, sizes);
    for (int i = 0; i < p->n_layers; i++) {
        const struct tec_model_call *c = &p->calls[p->layers[i].attention];
        if (c->attend.heads != first->attend.heads)
            return tec_model_call_fail(c, err, "%d heads; the first layer has %d", c->attend.heads,
                                       first->attend.heads);
    }
    return TEC_OK;
}

/* Rows that are added to those of pictures: a product makes them, and nobody else reads them. */
static enum tec_status check_deep(const struct tec_model_program *p, int tokens, int width,
                                  struct tec_error *err)
{
    for (int i = 0; i < p->n_deep; i++) {
        const struct tec_model_call *c = &p->calls[p->deep[i]];
        const struct tec_model_call *x = &p->calls[c->n_in ? c->in[0] : 0];
        bool apart = x->word == TEC_WORD_take || x->word == TEC_WORD_beside;
        if (c->word != TEC_WORD_linear || apart || c->uses.n != 1)
            return tec_model_call_fail(c, err,
                                       "project returns it for layer %d of the text: it must be a "
                                       "linear that nobody else reads",
                                       i);
        if (c->rows != tokens || c->cols != width)
            return tec_model_call_fail(c, err,
                                       "project returns %d rows of %d columns for layer %d of the "
                                       "text; must be %d of %d",
                                       c->rows, c->cols, i, tokens, width);
    }
    return TEC_OK;
}

enum tec_status tec_model_project_check(struct tec_model_program *p, int width,
                                        struct tec_error *err)
{
    const struct tec_model_call *c = &p->calls[p->result];
    int tokens = p->towers[0]->patches / (p->squares * p->squares);
    TEC_TRY(tec_model_program_links(p, err));
    TEC_TRY(check_deep(p, tokens, width, err));
    if (c->turn || c->word == TEC_WORD_take || c->word == TEC_WORD_beside)
        return tec_model_call_fail(c, err,
                                   "project returns rows that only a product can read, and must "
                                   "return what a product makes of them");
    return c->rows == tokens && c->cols == width
               ? TEC_OK
               : tec_model_call_fail(c, err,
                                     "project returns %d rows of %d columns; a picture has %d, and "
                                     "the text's have %d columns",
                                     c->rows, c->cols, tokens, width);
}

enum tec_status tec_model_state_check(struct tec_model_program *p, int width, int *entries,
                                      struct tec_error *err)
{
    const struct tec_model_call *c = &p->calls[p->result];
    TEC_TRY(tec_model_program_links(p, err));
    *entries = p->n_entries;
    if (p->n_states != 1)
        return tec_model_call_fail(c, err, "chunk.state reads the state %d times; must be once",
                                   p->n_states);
    return c->rows == 1 && c->cols == width
               ? TEC_OK
               : tec_model_call_fail(
                     c, err,
                     "chunk.state returns %d rows of %d columns; must be one of the "
                     "text's %d",
                     c->rows, c->cols, width);
}

/* Layers have one table of biases by distance, so they must mean the same by it. */
static bool same_relative(const struct tec_relative *a, const struct tec_relative *b)
{
    if (!a->name || !b->name)
        return a->name == b->name;
    return strcmp(a->name, b->name) == 0 && a->rows == b->rows && a->buckets == b->buckets &&
           a->distance == b->distance;
}

static enum tec_status check_attention(const struct tec_model *m, const struct tec_model_call *c,
                                       struct tec_error *err)
{
    const struct tec_model_call *first = tec_model_attention(m, 0);
    bool pools = m->text.pool != TEC_POOL_NONE;
    if (!pools && c->relative.name)
        return tec_model_call_fail(c, err, "relative is for texts that become one vector (pool)");
    if (pools && c->attend.turn >= 0)
        return tec_model_call_fail(c, err, "a text that becomes one vector (pool) is not rotated");
    if (!same_relative(&c->relative, &first->relative))
        return tec_model_call_fail(c, err, "relative is the same table in all layers");
    if (c->attend.window && m->text.mask == TEC_MASK_BIDIR)
        return tec_model_call_fail(c, err,
                                   "a window is of the last keys that a row sees, and with mask "
                                   "bidir each sees all");
    return TEC_OK;
}

enum tec_status tec_model_text_check(struct tec_model *m, struct tec_error *err)
{
    struct tec_text *t = &m->text;
    struct tec_model_program *p = t->program;
    if (!p)
        return tec_fail(err, TEC_MALFORMED, "text: lacks the function layer");
    TEC_TRY(tec_model_layers_check(p, &t->stack, err));
    if (t->pool == TEC_POOL_NONE && !p->leaves)
        return tec_fail(err, TEC_MALFORMED,
                        "text: lacks the function leave, the norm behind the last layer");
    for (int i = 0; i < p->n_layers; i++)
        TEC_TRY(check_attention(m, tec_model_attention(m, i), err));
    return TEC_OK;
}

enum tec_status tec_model_text_joins(const struct tec_model *m, struct tec_model_call *c,
                                     struct tec_error *err)
{
    const struct tec_stack *t = &m->text.stack;
    struct tec_attend *a = &c->attend;
    if (c->place >= t->layers)
        return tec_model_call_fail(c, err, "layer %d; the text has %d, counted from 0", c->place,
                                   t->layers);
    if (t->heads != a->heads || t->kv_heads != a->kv_heads || t->head_dim != a->head_dim)
        return tec_model_call_fail(c, err,
                                   "%d/%d heads of %d cannot read the text's keys: %d/%d heads of "
                                   "%d",
                                   a->heads, a->kv_heads, a->head_dim, t->heads, t->kv_heads,
                                   t->head_dim);
    const struct tec_attend *text = &tec_model_attention(m, c->place)->attend;
    if (text->scale > 0.0 || text->cap > 0.0 || text->window)
        return tec_model_call_fail(c, err,
                                   "layer %d of the text has scores of its own (scale, cap or "
                                   "window)",
                                   c->place);
    a->turn = text->turn;
    return TEC_OK;
}
