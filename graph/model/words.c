/* words.c - the words of the builder: which values and options fit each, and the value that it
 * makes. */
#include "graph/model/unpack.h"
#include "graph/model/words_own.h"
#include "ops/window.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

/* Squares of four windows take 16 products a channel in place of 36, and sums that grow with the
 * channels of both sides alone: below some channels there are more of these than products are
 * saved. Weights are 16/9 as large: below some squares reading them takes longer than products do.
 */
enum { SQUARES_CHANNELS = 16, SQUARES_LEAST = 8 };

enum { MAX_SIDE = 4096, MAX_WINDOW = 31, MAX_ENTRIES = 1024 };

enum tec_status tec_builder_picture(struct tec_model_program *p, struct tec_model_call *c,
                                    struct tec_error *err)
{
    if (c->h > MAX_SIDE || c->w > MAX_SIDE || c->h * c->w > TEC_MAX_VALUE_ROWS)
        return tec_fail(err, TEC_MALFORMED, "%d x %d; sides are 1 to %d", c->w, c->h, MAX_SIDE);
    if (c->part != TEC_PART_OF_PREFILL)
        return tec_fail(err, TEC_MALFORMED, "belongs to prefill: an action sees no picture");
    if (p->flow.steps)
        return tec_fail(err, TEC_MALFORMED, "pictures of a model with a text are its vision's");
    c->rows = c->h * c->w;
    c->cols = 3;
    return tec_builder_new_rows(p, c, err);
}

enum tec_status tec_builder_state(struct tec_model_program *p, struct tec_model_call *c,
                                  struct tec_error *err)
{
    if (c->cols > MAX_ENTRIES)
        return tec_fail(err, TEC_MALFORMED, "entries must be 1 .. %d, is %d", MAX_ENTRIES, c->cols);
    if (c->part != TEC_PART_OF_PREFILL && !p->flow.steps)
        return tec_fail(err, TEC_MALFORMED, "belongs to prefill");
    if (p->n_states == TEC_MAX_STATES)
        return tec_fail(err, TEC_MALFORMED, "a model reads its state in %d rows at most",
                        TEC_MAX_STATES);
    c->rows = 1;
    c->first = p->n_entries;
    c->place = p->n_places;
    p->n_entries += c->cols;
    p->n_places += (c->cols + 15) / 16 * 16;
    p->states[p->n_states++] = p->n;
    return tec_builder_new_rows(p, c, err);
}

enum tec_status tec_builder_tensor(struct tec_model_program *p, struct tec_model_call *c,
                                   struct tec_error *err)
{
    c->rank = c->rows ? 2 : 1;
    c->rows = c->rows ? c->rows : 1;
    TEC_TRY(tec_builder_constant(p, c, err));
    return tec_builder_new_rows(p, c, err);
}

enum tec_status tec_builder_zeros(struct tec_model_program *p, struct tec_model_call *c,
                                  struct tec_error *err)
{
    TEC_TRY(tec_builder_constant(p, c, err));
    return tec_builder_new_rows(p, c, err);
}

enum tec_status tec_builder_start(struct tec_model_program *p, struct tec_model_call *c,
                                  struct tec_error *err)
{
    const struct tec_model_call *x = tec_builder_operand(p, c, 0);
    if (!x->constant || c->part != TEC_PART_OF_ACTION || p->alone || p->flow.steps)
        return tec_fail(err, TEC_UNSUPPORTED,
                        "reads a constant, in an action that asks what prefill has made");
    c->rows = x->rows;
    c->cols = x->cols;
    return tec_builder_new_rows(p, c, err);
}

enum tec_status tec_builder_sines(struct tec_model_program *p, struct tec_model_call *c,
                                  struct tec_error *err)
{
    const struct tec_model_call *x = tec_builder_operand(p, c, 0);
    if (!x->h)
        return tec_fail(err, TEC_MALFORMED, "reads rows that are no picture");
    if (!(c->period > 1.0) || c->cols % 2 != 0)
        return tec_fail(err, TEC_MALFORMED, "period %g must be above 1, and cols %d even",
                        c->period, c->cols);
    tec_builder_same_rows(c, x);
    return tec_builder_constant(p, c, err);
}

/* What conv and max_pool have in common: the picture that is left of x. */
static enum tec_status windows(struct tec_model_program *p, struct tec_model_call *c,
                               const struct tec_model_call *x, struct tec_error *err)
{
    if (!x->h)
        return tec_fail(err, TEC_MALFORMED, "reads rows that are no picture");
    TEC_TRY(tec_builder_need_input(x, err));
    if (c->side > MAX_WINDOW || c->stride > MAX_WINDOW || c->dilation > MAX_WINDOW ||
        c->pad > MAX_WINDOW)
        return tec_fail(err, TEC_MALFORMED, "side, stride, pad and dilation are at most %d",
                        MAX_WINDOW);
    c->h = tec_model_call_windows(c, x->h);
    c->w = tec_model_call_windows(c, x->w);
    if (c->h < 1 || c->w < 1)
        return tec_fail(err, TEC_MALFORMED, "nothing is left of %d x %d", x->w, x->h);
    c->rows = c->h * c->w;
    return c->rows > TEC_MAX_VALUE_ROWS
               ? tec_fail(err, TEC_MALFORMED, "%d x %d are more than %d pixels", c->w, c->h,
                          TEC_MAX_VALUE_ROWS)
               : tec_builder_new_rows(p, c, err);
}

enum tec_status tec_builder_conv(struct tec_model_program *p, struct tec_model_call *c,
                                 struct tec_error *err)
{
    const struct tec_model_call *x = tec_builder_operand(p, c, 0);
    if (p->tower)
        return tec_builder_patch_conv(p, c, err);
    if (c->frames > 1)
        return tec_fail(err, TEC_UNSUPPORTED, "frames are of a tower's patches");
    if (c->bias && c->norm.weight)
        return tec_fail(err, TEC_MALFORMED, "has bias or norm, not both");
    if ((int64_t)x->cols * c->side * c->side > TEC_PARSE_MAX)
        return tec_fail(err, TEC_MALFORMED, "windows of %d x %d pixels of %d channels", c->side,
                        c->side, x->cols);
    TEC_TRY(windows(p, c, x, err));
    c->squares = c->side == 3 && c->stride == 1 && c->dilation == 1 &&
                 x->cols >= SQUARES_CHANNELS && c->cols >= SQUARES_CHANNELS &&
                 (c->h + 1) / 2 * ((c->w + 1) / 2) >= SQUARES_LEAST;
    return TEC_OK;
}

enum tec_status tec_builder_max_pool(struct tec_model_program *p, struct tec_model_call *c,
                                     struct tec_error *err)
{
    if (2 * c->pad > c->side)
        return tec_fail(err, TEC_MALFORMED, "pad %d is more than half of side %d", c->pad, c->side);
    c->cols = tec_builder_operand(p, c, 0)->cols;
    return windows(p, c, tec_builder_operand(p, c, 0), err);
}

enum tec_status tec_builder_hidden(struct tec_model_program *p, struct tec_model_call *c,
                                   struct tec_error *err)
{
    if (!p->alone && !p->flow.steps)
        return tec_fail(err, TEC_MALFORMED, "there is no text, which prefill would read");
    if (p->hidden >= 0 || p->prompt >= 0)
        return tec_fail(err, TEC_MALFORMED, "the prompt is read already");
    if (!c->rows != !p->alone)
        return tec_fail(err, TEC_MALFORMED, "%s",
                        p->alone ? "lacks rows" : "rows are as many as the prompt has");
    if (p->flow.steps && c->part == TEC_PART_OF_ACTION)
        return tec_fail(err, TEC_MALFORMED, "belongs to prefill");
    p->hidden = p->n;
    return tec_builder_new_rows(p, c, err);
}

enum tec_status tec_builder_side_by_side(struct tec_model_program *p, struct tec_model_call *c,
                                         struct tec_error *err)
{
    const struct tec_model_call *x = tec_builder_operand(p, c, 0);
    TEC_TRY(tec_builder_need_input(x, err));
    if (x->word != TEC_WORD_hidden)
        return tec_fail(err, TEC_UNSUPPORTED, "reads hidden rows alone");
    if (x->rows % c->by != 0 || (int64_t)x->cols * c->by > 1 << 24)
        return tec_fail(err, TEC_MALFORMED, "%d rows of %d columns in groups of %d", x->rows,
                        x->cols, c->by);
    c->rows = x->rows / c->by;
    c->cols = x->cols * c->by;
    return tec_builder_new_rows(p, c, err);
}

enum tec_status tec_builder_norm(struct tec_model_program *p, struct tec_model_call *c,
                                 struct tec_error *err)
{
    const struct tec_model_call *x = tec_builder_operand(p, c, 0);
    if (!(c->eps > 0.0) || !(fabs(c->offset) < 1e6))
        return tec_fail(err, TEC_MALFORMED, "eps must be above 0, is %g, and offset is %g", c->eps,
                        c->offset);
    if ((c->weight && c->scale >= 0) || (c->bias && !c->weight) || (c->shift >= 0 && c->scale < 0))
        return tec_fail(err, TEC_MALFORMED,
                        "has weight, and perhaps bias, or scale, and perhaps shift, or neither");
    if (!c->weight && (c->offset != 0.0 || c->rounded))
        return tec_fail(err, TEC_MALFORMED, "offset and bf16 are of weight, which it lacks");
    c->turn = x->turn;
    TEC_TRY(tec_builder_row(p, c->scale, x, "scale", err));
    TEC_TRY(tec_builder_row(p, c->shift, x, "shift", err));
    tec_builder_same_rows(c, x);
    c->cols = x->cols;
    return tec_builder_need_input(x, err);
}

enum tec_status tec_builder_linear(struct tec_model_program *p, struct tec_model_call *c,
                                   struct tec_error *err)
{
    const struct tec_model_call *x = tec_builder_operand(p, c, 0);
    if (c->category && c->category >= c->categories)
        return tec_fail(err, TEC_MALFORMED, "category %d of %d, which are counted from 0",
                        c->category, c->categories);
    if (c->categories && (c->bf16 || c->packing.kind))
        return tec_fail(err, TEC_UNSUPPORTED, "matrices of categories stay float32");
    if (c->categories && !c->bias)
        return tec_fail(err, TEC_UNSUPPORTED, "lacks bias, which layers of categories have");
    if ((c->gate >= 0 || c->factor) && x->timed)
        return tec_fail(err, TEC_UNSUPPORTED,
                        "gate and factor are for rows, and not for those of the time");
    if ((c->gate >= 0) + (c->factor != NULL) + (c->times != 0.0) > 1)
        return tec_fail(err, TEC_MALFORMED, "has gate, factor or times, one of them");
    if (c->times != 0.0 && (x->timed || !(fabs(c->times) <= 1e6)))
        return tec_fail(err, TEC_MALFORMED, "times %g is for rows, and at most 1e6", c->times);
    TEC_TRY(tec_builder_row(p, c->gate, c, "gate", err));
    TEC_TRY(tec_builder_packed(p, c, c->weight, c->cols, x->cols, err));
    tec_builder_same_rows(c, x);
    if (x->timed)
        return tec_builder_timed(p, c, err);
    return x->word == TEC_WORD_beside ? TEC_OK : tec_builder_need_input(x, err);
}

enum tec_status tec_builder_gated(struct tec_model_program *p, struct tec_model_call *c,
                                  struct tec_error *err)
{
    const struct tec_model_call *x = tec_builder_operand(p, c, 0);
    if (c->activation != TEC_ACTIVATION_GELU && c->activation != TEC_ACTIVATION_SILU)
        return tec_fail(err, TEC_MALFORMED, "kind must be gelu or silu");
    for (int i = 0; i < 2; i++)
        TEC_TRY(tec_builder_packed(p, c, c->joined[i], c->cols, x->cols, err));
    tec_builder_same_rows(c, x);
    return tec_builder_need_input(x, err);
}

enum tec_status tec_builder_add(struct tec_model_program *p, struct tec_model_call *c,
                                struct tec_error *err)
{
    const struct tec_model_call *x = tec_builder_operand(p, c, 0),
                                *y = tec_builder_operand(p, c, 1);
    bool patches = p->tower && !p->inside && x->constant != y->constant;
    bool timed = x->timed && y->timed,
         table = (p->flow.steps && x->constant != y->constant) || patches;
    if (!timed && !(table && x->constant))
        TEC_TRY(tec_builder_need_input(x, err));
    if (!timed && !(table && y->constant))
        TEC_TRY(tec_builder_need_input(y, err));
    if (x->rows != y->rows || x->cols != y->cols || (x->h != y->h && !table))
        return tec_fail(err, TEC_MALFORMED, "%d rows of %d columns and %d rows of %d columns",
                        x->rows, x->cols, y->rows, y->cols);
    if (c->in[0] == c->in[1])
        return tec_fail(err, TEC_MALFORMED, "adds a value to itself");
    if (patches)
        TEC_TRY(tec_builder_patch_sum(p, c, err));
    tec_builder_same_rows(c, y->constant ? x : y);
    c->cols = y->cols;
    return timed ? tec_builder_timed(p, c, err) : TEC_OK;
}

enum tec_status tec_builder_activation(struct tec_model_program *p, struct tec_model_call *c,
                                       struct tec_error *err)
{
    const struct tec_model_call *x = tec_builder_operand(p, c, 0);
    if (c->f32 && !x->timed)
        return tec_fail(err, TEC_UNSUPPORTED, "f32 is for rows of the time");
    if (c->rounded && x->timed)
        return tec_fail(err, TEC_UNSUPPORTED, "bf16 is for rows, and not for those of the time");
    tec_builder_same_rows(c, x);
    c->cols = x->cols;
    c->turn = x->turn;
    return x->timed ? tec_builder_timed(p, c, err) : tec_builder_need_input(x, err);
}

/* Whether rows of x may stand among others. */
static enum tec_status check_part(const struct tec_model_call *x, int i,
                                  const struct tec_model_call *c, struct tec_error *err)
{
    if (!x->constant && !x->timed)
        TEC_TRY(tec_builder_need_input(x, err));
    if (!x->rows)
        return tec_fail(err, TEC_UNSUPPORTED, "value %d has as many rows as the prompt", i + 1);
    return x->cols == c->cols
               ? TEC_OK
               : tec_fail(err, TEC_MALFORMED, "value %d has %d columns, the first one has %d",
                          i + 1, x->cols, c->cols);
}

enum tec_status tec_builder_concat(struct tec_model_program *p, struct tec_model_call *c,
                                   struct tec_error *err)
{
    int64_t rows = 0;
    c->constant = true;
    c->cols = tec_builder_operand(p, c, 0)->cols;
    for (int i = 0; i < c->n_in; i++) {
        const struct tec_model_call *x = tec_builder_operand(p, c, i);
        TEC_TRY(check_part(x, i, c, err));
        rows += x->rows;
        c->constant &= x->constant;
    }
    if (!c->constant && c->part == TEC_PART_OF_ACTION && !p->flow.steps)
        return tec_fail(err, TEC_UNSUPPORTED, "an action joins constants alone");
    if (rows > TEC_PARSE_MAX)
        return tec_fail(err, TEC_MALFORMED, "%lld rows are more than %d", (long long)rows,
                        TEC_PARSE_MAX);
    c->rows = (int)rows;
    if (p->tower)
        TEC_TRY(tec_builder_patch_rows(p, c, err));
    if (c->constant)
        TEC_TRY(tec_builder_constant(p, c, err));
    return tec_builder_new_rows(p, c, err);
}

const struct tec_word_kind tec_word_kinds[TEC_WORD_COUNT] = {
#define WORD(word, operands, text) {#word, operands, tec_builder_##word},
#define VALUE(word, operands, text) WORD(word, operands, text)
#define GIVEN(word, name, text) {#name, TEC_WORD_GIVEN, tec_builder_##word},
#define FIELD(word, key, kind, member, needed, text)
#include "graph/model/words.def"
#undef WORD
#undef VALUE
#undef GIVEN
#undef FIELD
};

enum tec_status tec_model_call_fail(const struct tec_model_call *c, struct tec_error *err,
                                    const char *format, ...)
{
    char text[300];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return tec_fail(err, TEC_MALFORMED, "%s:%d: %s: %s", c->file ? c->file : "?", c->line,
                    tec_word_kinds[c->word].name, text);
}

int tec_model_call_windows(const struct tec_model_call *c, int n)
{
    return tec_windows(n, c->side, c->stride, c->pad, c->dilation);
}

/* One half of a pixel's position: sines and cosines of v by columns in turn. */
static void put_sines(double v, double period, int n, float *out)
{
    for (int j = 0; j < n; j++) {
        int pair = j / 2;
        double angle = v / pow(period, 2.0 * pair / n);
        out[j] = (float)(j % 2 ? cos(angle) : sin(angle));
    }
}

void tec_model_call_sines(const struct tec_model_call *c, int pixel, float *out)
{
    const double circle = 6.28318530717958647692, eps = 1e-6;
    int half = c->cols / 2, row = pixel / c->w, column = pixel % c->w;
    put_sines((row + 1) / (c->h + eps) * circle, c->period, half, out);
    put_sines((column + 1) / (c->w + eps) * circle, c->period, half, out + half);
}
