/* encode.c - texts to one vector each: embedding rows and what is added to them, the layers, the
 * mean over those rows of a text that are its vector, its length. */
#include "graph/nodes/layers.h"
#include "kernels/matrix.h"

#include <math.h>

enum { MAX_UNITS = 64 };

/* x[r] += table[row[r]]; every row gets the first one where nothing is listed. */
static void add_rows(struct tec_lower *l, int x, const float *table, int rows, const int *row,
                     const char *label)
{
    if (!table)
        return;
    struct tec_call call = tec_call_of(TEC_OP_add_table, label);
    call.out[0] = x;
    call.args.add_table.table = table;
    call.args.add_table.ldt = l->weights->ld;
    call.args.add_table.period = row ? rows : 1;
    call.args.add_table.row = row;
    tec_program_call(l->program, &call);
}

/* The mean of the rows of x that are each text's vector, into `y`. */
static void pool(struct tec_lower *l, const struct tec_encode_table *t, int x, int y)
{
    struct tec_call call = tec_call_of(TEC_OP_mean_rows, "mean");
    call.in[0] = x;
    call.out[0] = y;
    call.args.mean.span = t->pool;
    tec_program_call(l->program, &call);
    tec_lower_tap(l, y, "pooled");
}

/* y = x / |x|: the norm by mean squares over n columns gives length sqrt(n), and eps is what keeps
 * a vector of zeros as it is (lengths near 1e-12 come out shorter). */
static void shorten(struct tec_lower *l, int x, int y)
{
    int n = l->model->text.stack.width;
    struct tec_call call = tec_call_of(TEC_OP_rms_norm, "unit");
    call.in[0] = x;
    call.out[0] = y;
    call.args.norm.offset = (float)(1.0 / sqrt((double)n));
    call.args.norm.eps = (float)(1e-24 / n);
    tec_program_call(l->program, &call);
}

/* Values that are rows of the identity as tensors of the forward. */
static void fix_units(struct tec_lower *l, const struct tec_encoding *e, struct tec_reading *r,
                      int units[MAX_UNITS])
{
    const struct tec_kv_space *s = r->space;
    int cols = s->shape.kv_heads * s->shape.head_dim;
    for (int i = 0; i < e->n_units && i < MAX_UNITS; i++)
        units[r->n_units++] = tec_program_fixed(l->program, "unit", e->units[i], s->bytes, s->slots,
                                                cols, cols, NULL);
    r->units = units;
}

void tec_lower_encode(struct tec_lower *l, const struct tec_encoding *e)
{
    const struct tec_text *text = &l->model->text;
    const struct tec_encode_table *t = e->table;
    int width = text->stack.width, ld = tec_padded(width), units[MAX_UNITS];
    struct tec_reading r = {.space = l->space, .rows = &t->rows, .tap = "", .tap_inside = true};
    struct tec_built b;
    fix_units(l, e, &r, units);
    int x = tec_program_tensor(l->program, "x", t->rows.max, width, t->rows.count);
    tec_lower_tokens(l, x, t->ids, t->rows.count, t->rows.max, l->zero, text->scale);
    add_rows(l, x, l->weights->types, text->types.rows, NULL, "type");
    add_rows(l, x, l->weights->position, text->position.rows, t->place, "position");
    if (tec_layers_begin(&b, l, &r, x)) {
        tec_lower_tap(l, tec_layers_rows(&b, 0), "embeddings");
        (void)tec_layers_run(&b);
        x = tec_layers_leave(&b, false);
    }
    int out = tec_program_fixed(l->program, "out", e->out,
                                (size_t)e->max_texts * (size_t)ld * sizeof(float), e->max_texts,
                                width, ld, t->n_texts);
    int mean =
        e->unit ? tec_program_tensor(l->program, "mean", e->max_texts, width, t->n_texts) : out;
    pool(l, t, x, mean);
    if (e->unit)
        shorten(l, mean, out);
}
