/* words_attention.c - the word attention: of a layer of a text or a tower, of rows of a prefill
 * that see each other, and of an action: over its own rows, over those of the prefill, or over a
 * prompt.
 */
#include "graph/model/unpack.h"
#include "graph/model/words_own.h"

#include <math.h>

enum { MAX_HEADS = 1024, MAX_HEAD_DIM = 4096 };

static bool over_prompt(const struct tec_model_program *p, const struct tec_model_call *c)
{
    return c->over >= 0 && c->over == p->prompt;
}

bool tec_model_own_keys(const struct tec_model_program *p, const struct tec_model_call *c)
{
    return c->over < 0 || (over_prompt(p, c) && !c->projected);
}

static enum tec_status check_heads(struct tec_model_call *c, struct tec_error *err)
{
    struct tec_attend *a = &c->attend;
    a->kv_heads = a->kv_heads ? a->kv_heads : a->heads;
    if (a->heads > MAX_HEADS || a->head_dim > MAX_HEAD_DIM ||
        a->heads * a->head_dim > TEC_PARSE_MAX || a->heads % a->kv_heads != 0)
        return tec_fail(err, TEC_MALFORMED, "%d heads of %d over %d kv_heads", a->heads,
                        a->head_dim, a->kv_heads);
    if (!(c->norms[0] || c->norms[1]) != !(c->eps > 0.0))
        return tec_fail(err, TEC_MALFORMED, "norms of heads and an eps above 0 come together");
    if (!(fabs(c->offset) < 1e6) || (c->offset != 0.0 && !c->norms[0] && !c->norms[1]))
        return tec_fail(err, TEC_MALFORMED,
                        "offset %g is added to weights of norms of heads; must be below 1e6, and "
                        "there must be such norms",
                        c->offset);
    c->cols = a->heads * a->head_dim;
    return TEC_OK;
}

/* Its projections: three tensors, or one. */
static enum tec_status check_projections(const struct tec_model_call *c, struct tec_error *err)
{
    int n = 0, biases = 0;
    for (int i = 0; i < 3; i++) {
        n += c->joined[i] != NULL;
        biases += c->joined_bias[i] != NULL;
    }
    if (c->fused ? n + biases > 0 : n < 3 || c->fused_bias)
        return tec_fail(err, TEC_MALFORMED,
                        "has q, k and v, each perhaps with a bias, or qkv, perhaps with qkv_bias");
    return !c->fused || !c->packing.kind ? TEC_OK
                                         : tec_fail(err, TEC_UNSUPPORTED, "qkv beside packing");
}

/* Layers of keys have one kind of heads. */
static enum tec_status keep_heads(struct tec_model_program *p, const struct tec_attend *a,
                                  struct tec_error *err)
{
    struct tec_stack *kept = &p->kept;
    if (kept->kv_heads && (kept->kv_heads != a->kv_heads || kept->head_dim != a->head_dim))
        return tec_fail(err, TEC_UNSUPPORTED,
                        "keys of %d heads of %d; those of the first attention are %d of %d",
                        a->kv_heads, a->head_dim, kept->kv_heads, kept->head_dim);
    kept->heads = a->heads > kept->heads ? a->heads : kept->heads;
    kept->kv_heads = a->kv_heads;
    kept->head_dim = a->head_dim;
    return TEC_OK;
}

/* A constant that is added to rows of x before a product. Both have one count of rows. */
static enum tec_status check_position(struct tec_model_program *p, int value,
                                      const struct tec_model_call *x, const char *what,
                                      struct tec_error *err)
{
    if (value < 0)
        return TEC_OK;
    struct tec_model_call *position = &p->calls[value];
    if (!position->constant)
        return tec_fail(err, TEC_MALFORMED, "%s must be a constant", what);
    if (position->rows != x->rows || position->cols != x->cols)
        return tec_fail(err, TEC_MALFORMED, "%s is %d rows of %d columns, the rows are %d of %d",
                        what, position->rows, position->cols, x->rows, x->cols);
    position->group = x->group;
    return TEC_OK;
}

/* Rows that see each other have slots for their keys, which those of equal heads share. */
static enum tec_status place_among(struct tec_model_program *p, struct tec_model_call *c,
                                   struct tec_error *err)
{
    const struct tec_attend *a = &c->attend;
    struct tec_row_group *group = &p->groups[tec_builder_operand(p, c, 0)->group];
    for (c->among = 0; c->among < p->n_among; c->among++) {
        const struct tec_rows_among *m = &p->among[c->among];
        if (p->calls[m->call].group == c->group && m->kv_heads == a->kv_heads &&
            m->head_dim == a->head_dim)
            return TEC_OK;
    }
    if (p->n_among == TEC_MAX_TOWERS)
        return tec_fail(err, TEC_UNSUPPORTED,
                        "a prefill has attention of rows of %d kinds, by their number and heads, "
                        "at most",
                        TEC_MAX_TOWERS);
    p->among[p->n_among++] = (struct tec_rows_among){p->n, a->kv_heads, a->head_dim};
    if (group->among < 0 && group->rows)
        group->among = c->among;
    return TEC_OK;
}

/* Attentions of an action over own rows are numbered apart from those over the prefill's; over a
 * prompt layers are the text's. */
static enum tec_status place_keys(struct tec_model_program *p, struct tec_model_call *c,
                                  struct tec_error *err)
{
    if (over_prompt(p, c))
        p->n_over++;
    else
        c->place = c->over < 0 ? p->n_own++ : p->n_over++;
    if (!over_prompt(p, c) && c->place >= TEC_MAX_STACK_LAYERS)
        return tec_fail(err, TEC_UNSUPPORTED, "an action has more than %d of a kind",
                        TEC_MAX_STACK_LAYERS);
    if (c->projected)
        c->projection = p->n_projected++;
    if (c->place >= p->kept.layers)
        p->kept.layers = c->place + 1;
    p->sees[c->sees] |= c->over >= 0 && !over_prompt(p, c);
    return TEC_OK;
}

/* Of an action over the keys of a prompt. */
static enum tec_status check_prompt(struct tec_model_program *p, const struct tec_model_call *c,
                                    const struct tec_model_call *x, struct tec_error *err)
{
    if (c->position >= 0 || c->over_position >= 0 || c->sees != TEC_SEEN_ALL)
        return tec_fail(err, TEC_UNSUPPORTED,
                        "over a prompt has neither position, as rows are rotated, nor sees");
    if (c->projected && (c->fused || c->norms[0] || c->norms[1]))
        return tec_fail(err, TEC_UNSUPPORTED, "projected has q, k and v, and no norms of heads");
    if (c->lead > x->rows)
        return tec_fail(err, TEC_MALFORMED, "lead %d of %d rows", c->lead, x->rows);
    if (p->n_over && c->lead != p->lead)
        return tec_fail(err, TEC_UNSUPPORTED, "lead %d; the first attention over the prompt has %d",
                        c->lead, p->lead);
    p->lead = c->lead;
    return TEC_OK;
}

/* Of an action over rows of the prefill: all attentions see equally many. */
static enum tec_status check_over(struct tec_model_program *p, const struct tec_model_call *c,
                                  const struct tec_model_call *x, struct tec_error *err)
{
    const struct tec_model_call *over = &p->calls[c->over];
    if (over->part == TEC_PART_OF_ACTION || over->constant)
        return tec_fail(err, TEC_MALFORMED, "over must be what prefill has made");
    if (c->fused && over->cols != x->cols)
        return tec_fail(err, TEC_MALFORMED, "qkv reads rows of %d columns; over has %d", x->cols,
                        over->cols);
    if (p->n_over && over->rows != p->encoded)
        return tec_fail(err, TEC_UNSUPPORTED,
                        "over has %d rows; that of the first attention has %d", over->rows,
                        p->encoded);
    p->encoded = over->rows;
    return check_position(p, c->over_position, over, "over_position", err);
}

/* What belongs to another place than that of a call. */
static enum tec_status check_options(const struct tec_model_program *p,
                                     const struct tec_model_call *c, struct tec_error *err)
{
    bool of_prompt = c->place || c->lead || c->projected;
    if (of_prompt && !over_prompt(p, c))
        return tec_fail(err, TEC_UNSUPPORTED,
                        "layer, lead and projected are of attention over a "
                        "prompt");
    if (p->width && (c->position >= 0 || c->over_position >= 0))
        return tec_fail(err, TEC_UNSUPPORTED, "positions are added outside of layers");
    if (!p->width && (c->attend.scale != 0.0 || c->attend.cap != 0.0 || c->attend.window ||
                      c->relative.name || c->rotation.theta > 0.0 || c->packing.kind))
        return tec_fail(
            err, TEC_UNSUPPORTED,
            "scale, cap, window, rotation, relative and packing are of a text's layers");
    if (c->over < 0 && (c->sees != TEC_SEEN_ALL || c->over_position >= 0))
        return tec_fail(err, TEC_MALFORMED, "sees and over_position are of over: it has none");
    return TEC_OK;
}

/* Of an action: where its keys are. */
static enum tec_status of_action(struct tec_model_program *p, struct tec_model_call *c,
                                 const struct tec_model_call *x, struct tec_error *err)
{
    if (over_prompt(p, c))
        TEC_TRY(check_prompt(p, c, x, err));
    else if (c->over >= 0)
        TEC_TRY(check_over(p, c, x, err));
    if (p->seeing && p->seeing != x->rows)
        return tec_fail(err, TEC_UNSUPPORTED,
                        "of %d rows; an action has attention of equally many rows, here %d",
                        x->rows, p->seeing);
    p->seeing = x->rows;
    if (c->over >= 0 && !tec_model_own_keys(p, c))
        c->attend.from =
            c->projected ? c->attend.kv_heads * c->attend.head_dim : p->calls[c->over].cols;
    TEC_TRY(keep_heads(p, &c->attend, err));
    return place_keys(p, c, err);
}

enum tec_status tec_builder_attention(struct tec_model_program *p, struct tec_model_call *c,
                                      struct tec_error *err)
{
    const struct tec_model_call *x = tec_builder_operand(p, c, 0);
    if (p->alone)
        return tec_fail(err, TEC_UNSUPPORTED, "an action of hidden rows has none");
    TEC_TRY(tec_builder_need_input(x, err));
    TEC_TRY(check_options(p, c, err));
    TEC_TRY(check_projections(c, err));
    TEC_TRY(check_heads(c, err));
    int cols = c->cols;
    tec_builder_same_rows(c, x);
    c->cols = cols;
    if (p->width) {
        TEC_TRY(keep_heads(p, &c->attend, err));
        return tec_builder_layer_attention(p, c, err);
    }
    TEC_TRY(check_position(p, c->position, x, "position", err));
    c->attend.from = x->cols;
    if (c->part == TEC_PART_OF_ACTION)
        return of_action(p, c, x, err);
    return c->over < 0 ? place_among(p, c, err)
                       : tec_fail(err, TEC_UNSUPPORTED, "over belongs to the action");
}
