/* share.c - which calls of a program share their tensors, so that these are loaded once. */
#include "graph/model/program.h"

#include <string.h>

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_packing(const struct tec_packing *a, const struct tec_packing *b)
{
    return a->kind == b->kind && a->group == b->group && a->minus == b->minus &&
           a->ordered == b->ordered;
}

static bool same_times(const struct tec_model_call *a, const struct tec_model_call *b)
{
    return a->turn == b->turn && !(a->times < b->times) && !(a->times > b->times);
}

static bool same_shape(const struct tec_model_program *p, const struct tec_model_call *a,
                       const struct tec_model_call *b)
{
    int cols = a->n_in ? p->calls[a->in[0]].cols : 0, other = b->n_in ? p->calls[b->in[0]].cols : 0;
    return a->word == b->word && a->cols == b->cols && cols == other && a->rank == b->rank &&
           (a->rank < 2 || a->rows == b->rows) && a->side == b->side && a->bf16 == b->bf16 &&
           a->categories == b->categories && a->category == b->category && a->rms == b->rms &&
           same_packing(&a->packing, &b->packing) && same_text(a->bias, b->bias) &&
           same_text(a->factor, b->factor) && same_times(a, b) && a->rounded == b->rounded &&
           same_text(a->norm.weight, b->norm.weight) && same_text(a->norm.bias, b->norm.bias) &&
           same_text(a->norm.mean, b->norm.mean) && same_text(a->norm.var, b->norm.var) &&
           !(a->norm.eps < b->norm.eps) && !(a->norm.eps > b->norm.eps) &&
           !(a->offset < b->offset) && !(a->offset > b->offset);
}

/* Whether a product's matrix is there for rows of a frame whole: not in tables of the time, where
 * rows of the time or columns beside others are read. */
static bool whole(const struct tec_model_program *p, const struct tec_model_call *c)
{
    return !c->timed && (!c->n_in || p->calls[c->in[0]].word != TEC_WORD_beside);
}

/* The order that a product's columns are read in, of which its matrix is packed for one. */
static int turn_of(const struct tec_model_program *p, const struct tec_model_call *c)
{
    return c->n_in ? p->calls[c->in[0]].turn : 0;
}

/* Whether two words whose matrices are joined name the same ones in the same way. */
static bool same_joined(const struct tec_model_program *p, const struct tec_model_call *a,
                        const struct tec_model_call *b)
{
    const struct tec_attend *x = &a->attend, *y = &b->attend;
    bool same = same_shape(p, a, b) && same_text(a->fused, b->fused) &&
                same_text(a->fused_bias, b->fused_bias) && x->heads == y->heads &&
                x->kv_heads == y->kv_heads && x->from == y->from &&
                tec_model_own_keys(p, a) == tec_model_own_keys(p, b) &&
                a->projected == b->projected && a->position == b->position &&
                a->over_position == b->over_position;
    for (int i = 0; i < 3; i++)
        same &= same_text(a->joined[i], b->joined[i]) &&
                same_text(a->joined_bias[i], b->joined_bias[i]);
    return same && same_text(a->norms[0], b->norms[0]) && same_text(a->norms[1], b->norms[1]);
}

/* The tensor that calls with the same ones name first; NULL = a call has none. */
static const char *first_tensor(const struct tec_model_call *c)
{
    return c->weight ? c->weight : c->fused ? c->fused : c->joined[0];
}

/* The search is quadratic, at load, in calls that have tensors: at most some thousand. */
enum tec_status tec_model_program_share(struct tec_model_program *p, struct tec_error *err)
{
    for (int i = 0; i < p->n; i++) {
        struct tec_model_call *c = &p->calls[i];
        const char *name = first_tensor(c);
        for (int k = 0; k < i && name && c->same < 0; k++) {
            const struct tec_model_call *other = &p->calls[k];
            const char *its = first_tensor(other);
            if (!its || other->same >= 0 || strcmp(its, name) != 0 || !whole(p, c) ||
                c->squares != other->squares || turn_of(p, c) != turn_of(p, other) ||
                !whole(p, other) || ((!c->weight || !other->weight) && !same_joined(p, c, other)))
                continue;
            if (!same_shape(p, c, other))
                return tec_model_call_fail(c, err, "'%.80s' is another tensor in line %d",
                                           c->weight, other->line);
            c->same = k;
        }
    }
    return TEC_OK;
}
