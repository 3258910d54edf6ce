/* words_pictures.c - the words of a picture tower's front, from pixels to the rows of its layers,
 * and those from what leaves towers to rows of the text's prompt.
 *
 * Rows of a value are those of one picture. In memory stand the rows in front of the patches of all
 * pictures, then the patches of all of them. */
#include "graph/model/unpack.h"
#include "graph/model/words_own.h"

enum { MAX_SQUARE = 16, MAX_BEFORE = 4096, MAX_FRAMES = 16 };

enum tec_status tec_builder_pixels(struct tec_model_program *p, struct tec_model_call *c,
                                   struct tec_error *err)
{
    c->h = c->w = p->image;
    c->rows = c->h * c->w;
    c->cols = 3;
    return tec_builder_new_rows(p, c, err);
}

enum tec_status tec_builder_features(struct tec_model_program *p, struct tec_model_call *c,
                                     struct tec_error *err)
{
    int tower = p->towers[1] ? p->n : 0;
    const struct tec_model_program *t = p->towers[tower];
    c->place = tower;
    c->first = p->n - tower; /* 0: what leaves the tower; else which of the layers it keeps */
    c->rows = t->before + t->patches;
    c->cols = t->width;
    c->h = c->w = t->before ? 0 : t->image / t->patch;
    return tec_builder_new_rows(p, c, err);
}

/* The patches of x, whose side is that of the call. */
static enum tec_status tile(struct tec_model_program *p, struct tec_model_call *c,
                            const struct tec_model_call *x, struct tec_error *err)
{
    if (x->word != TEC_WORD_pixels)
        return tec_fail(err, TEC_UNSUPPORTED, "reads the pixels of a tower's picture alone");
    if (p->patches)
        return tec_fail(err, TEC_MALFORMED, "reads pixels that have become patches already");
    if (c->side > x->h || (int64_t)3 * c->side * c->side > TEC_PARSE_MAX)
        return tec_fail(err, TEC_MALFORMED, "patches of %d pixels a side of pictures of %d",
                        c->side, x->h);
    c->h = x->h / c->side;
    c->w = x->w / c->side;
    c->rows = c->h * c->w;
    p->patch = c->side;
    p->patches = c->rows;
    return tec_builder_new_rows(p, c, err);
}

enum tec_status tec_builder_patches(struct tec_model_program *p, struct tec_model_call *c,
                                    struct tec_error *err)
{
    TEC_TRY(tile(p, c, tec_builder_operand(p, c, 0), err));
    c->cols = 3 * c->side * c->side;
    c->turn = c->side * c->side;
    return TEC_OK;
}

enum tec_status tec_builder_patch_conv(struct tec_model_program *p, struct tec_model_call *c,
                                       struct tec_error *err)
{
    if (c->stride != c->side || c->pad || c->dilation != 1 || c->norm.weight)
        return tec_fail(
            err, TEC_UNSUPPORTED,
            "in a tower windows are patches: stride %d must be side %d, and there is no "
            "pad, dilation or norm",
            c->stride, c->side);
    if (c->frames > MAX_FRAMES)
        return tec_fail(err, TEC_MALFORMED, "frames %d; 1 .. %d", c->frames, MAX_FRAMES);
    return tile(p, c, tec_builder_operand(p, c, 0), err);
}

enum tec_status tec_builder_grid(struct tec_model_program *p, struct tec_model_call *c,
                                 struct tec_error *err)
{
    const struct tec_model_call *x = tec_builder_operand(p, c, 0);
    if (!x->h || x->word == TEC_WORD_pixels)
        return tec_fail(err, TEC_MALFORMED, "reads rows that are no patches of a picture");
    if (c->smooth && c->corners)
        return tec_fail(err, TEC_MALFORMED, "has smooth or corners, not both");
    if (c->side > TEC_MAX_POSITION_SIDE)
        return tec_fail(err, TEC_MALFORMED, "side must be 1 .. %d, is %d", TEC_MAX_POSITION_SIDE,
                        c->side);
    tec_builder_same_rows(c, x);
    c->cols = x->cols;
    return tec_builder_constant(p, c, err);
}

enum tec_status tec_builder_patch_sum(const struct tec_model_program *p,
                                      const struct tec_model_call *c, struct tec_error *err)
{
    const struct tec_model_call *x = tec_builder_operand(p, c, 0),
                                *y = tec_builder_operand(p, c, 1);
    const struct tec_model_call *rows = x->constant ? y : x;
    if (x->constant == y->constant)
        return TEC_OK;
    return rows->h ? TEC_OK
                   : tec_fail(err, TEC_UNSUPPORTED,
                              "a constant is added to patches, before other rows stand in front of "
                              "them");
}

enum tec_status tec_builder_patch_rows(struct tec_model_program *p, struct tec_model_call *c,
                                       struct tec_error *err)
{
    const struct tec_model_call *x = tec_builder_operand(p, c, 0),
                                *y = c->n_in > 1 ? tec_builder_operand(p, c, 1) : x;
    if (c->constant)
        return TEC_OK;
    if (c->n_in != 2 || !x->constant || !y->h)
        return tec_fail(err, TEC_UNSUPPORTED,
                        "in a tower joins one constant and the patches behind it");
    if (x->rows > MAX_BEFORE)
        return tec_fail(err, TEC_MALFORMED, "%d rows in front of patches; %d at most", x->rows,
                        MAX_BEFORE);
    p->before = x->rows;
    return TEC_OK;
}

/* Words that read columns in any order; those that read rows where a tower left them. */
static bool turns(enum tec_model_word word)
{
    return word == TEC_WORD_norm || word == TEC_WORD_linear || word == TEC_WORD_activation;
}

enum tec_status tec_model_patches_read(const struct tec_model_program *p,
                                       const struct tec_model_call *c, struct tec_error *err)
{
    bool reads = c->word == TEC_WORD_linear || c->word == TEC_WORD_beside;
    for (int i = 0; i < c->n_in; i++) {
        const struct tec_model_call *x = tec_builder_operand(p, c, i);
        if (x->turn && !turns(c->word))
            return tec_fail(err, TEC_UNSUPPORTED,
                            "reads columns in another order than they are stored in: norm, "
                            "activation and linear do");
        if (c->categories && (x->turn || (p->projects && x->word == TEC_WORD_beside)))
            return tec_fail(err, TEC_UNSUPPORTED,
                            "reads columns in another order, or beside others, with a matrix of "
                            "categories");
        if (p->projects && x->word == TEC_WORD_features && !x->h && c->word != TEC_WORD_take)
            return tec_fail(err, TEC_UNSUPPORTED,
                            "reads patches behind other rows: take them first");
        if (p->projects && x->word == TEC_WORD_take && !reads)
            return tec_fail(err, TEC_UNSUPPORTED, "reads rows among others: linear and beside do");
    }
    return TEC_OK;
}

enum tec_status tec_builder_take_patches(struct tec_model_program *p, struct tec_model_call *c,
                                         struct tec_error *err)
{
    const struct tec_model_call *x = tec_builder_operand(p, c, 0);
    const struct tec_model_program *t = x->word == TEC_WORD_features ? p->towers[x->place] : NULL;
    if (!t || !t->before || c->first != t->before || c->rows != t->patches)
        return tec_fail(err, TEC_UNSUPPORTED,
                        "takes the patches of a tower that has rows in front of them: first is "
                        "their number");
    c->cols = x->cols;
    c->h = c->w = t->image / t->patch;
    return tec_builder_new_rows(p, c, err);
}

enum tec_status tec_builder_squares(struct tec_model_program *p, struct tec_model_call *c,
                                    struct tec_error *err)
{
    const struct tec_model_call *x = tec_builder_operand(p, c, 0);
    if (x->word != TEC_WORD_features || !x->h || p->towers[1])
        return tec_fail(err, TEC_UNSUPPORTED,
                        "reads what leaves the only tower, which has nothing in front of patches");
    if ((p->squares > 1 && p->squares != c->side) || c->side < 2 || c->side > MAX_SQUARE ||
        x->h % c->side != 0)
        return tec_fail(err, TEC_MALFORMED,
                        "side %d; must be 2 .. %d, everywhere the same, and divide a side of %d "
                        "patches",
                        c->side, MAX_SQUARE, x->h);
    p->squares = c->side;
    c->h = x->h / c->side;
    c->w = x->w / c->side;
    c->rows = c->h * c->w;
    c->cols = x->cols * c->side * c->side;
    c->turn = c->planes ? x->cols : 0;
    return c->cols <= TEC_PARSE_MAX
               ? tec_builder_new_rows(p, c, err)
               : tec_fail(err, TEC_MALFORMED, "makes rows of %d columns", c->cols);
}

enum tec_status tec_builder_beside_tower(const struct tec_model_program *p,
                                         struct tec_model_call *c, struct tec_error *err)
{
    const struct tec_model_call *in[2];
    for (int i = 0; i < 2; i++) {
        in[i] = tec_builder_operand(p, c, i);
        if (!in[i]->h || (in[i]->word != TEC_WORD_features && in[i]->word != TEC_WORD_take))
            return tec_fail(
                err, TEC_UNSUPPORTED,
                "reads patches as they leave two towers: what stands in front of them is "
                "not taken");
    }
    if (c->in[0] == c->in[1] || in[0]->rows != in[1]->rows)
        return tec_fail(err, TEC_MALFORMED, "%d rows beside %d of another tower", in[0]->rows,
                        in[1]->rows);
    tec_builder_same_rows(c, in[0]);
    c->cols = in[0]->cols + in[1]->cols;
    return TEC_OK;
}
