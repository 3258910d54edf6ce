/* qwen_pictures.c - pictures in the prompts of a text model's case: where they stand, and how the
 * rows that the engine keeps are those of the case. */
#include "tests/judge/qwen.h"

#include <string.h>

/* Ids with one token for each run of a picture's rows. */
static enum tec_status fold(struct tec_qwen *q, struct tec_qwen_prompt *p, struct tec_error *err)
{
    int each = q->pi->model->vision.tokens, mark = tec_model_mark(q->pi->model), marks = 0, n = 0;
    int *ids = TEC_NEW(q->pi->v->arena, (size_t)p->n_tokens + 1, int);
    if (!ids)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a prompt");
    for (int i = 0; i < p->n_tokens; i++) {
        bool is = p->tokens[i] == mark;
        if (!is || marks % each == 0)
            ids[n++] = p->tokens[i];
        marks += is;
    }
    p->in.o.ids = ids;
    p->in.o.n_text = n;
    return marks == each * p->in.o.n_pictures
               ? TEC_OK
               : tec_fail(err, TEC_MALFORMED, "%stokens: %d tokens of pictures for %d of %d rows",
                          p->name, marks, p->in.o.n_pictures, each);
}

enum tec_status tec_qwen_pictures(struct tec_qwen *q, struct tec_qwen_prompt *p,
                                  struct tec_error *err)
{
    struct tec_arena *arena = q->pi->v->arena;
    const struct tec_model *m = q->pi->model;
    if (tec_model_mark(m) < 0)
        return TEC_OK;
    size_t one = tec_model_picture_bytes(m);
    const char *name = tec_arena_printf(arena, "%simages", p->name);
    const struct tec_stored *t = name ? tec_tensors_find(q->pi->inputs, name) : NULL;
    size_t n = t ? t->bytes / one : 0;
    if (t && (t->dtype != TEC_U8 || t->bytes % one || n > (size_t)m->n_slots))
        return tec_fail(err, TEC_SHAPE, "inputs: '%s' must be u8, up to %d of %zu bytes", name,
                        m->n_slots, one);
    uint8_t *pictures = TEC_NEW(arena, n * one + 1, uint8_t);
    if (!pictures)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for pictures");
    if (t)
        TEC_TRY(tec_tensors_read(q->pi->inputs, t, 0, pictures, t->bytes, err));
    for (size_t i = 0; i < n; i++)
        p->in.o.picture[i] = pictures + i * one;
    p->in.o.n_pictures = (int)n;
    return fold(q, p, err);
}

const float *tec_qwen_in_order(const struct tec_qwen *q, const struct tec_qwen_prompt *p,
                               const float *got, size_t n)
{
    int mark = tec_model_mark(q->pi->model), picture = 0;
    int text = p->in.o.n_pictures * q->pi->model->vision.tokens;
    size_t rows = (size_t)p->n_tokens, cols = n / rows;
    if (!got || !p->in.o.n_pictures || n != rows * cols)
        return got;
    float *out = TEC_NEW(q->pi->v->arena, n, float);
    for (size_t i = 0; out && i < rows; i++) {
        int from = p->tokens[i] == mark ? picture++ : text++;
        memcpy(out + i * cols, got + (size_t)from * cols, cols * sizeof *out);
    }
    return out;
}

void tec_qwen_compare_logits(struct tec_qwen *q, const struct tec_qwen_prompt *p, const char *name,
                             const float *logits)
{
    struct tec_pi *pi = q->pi;
    struct tec_error err;
    size_t vocab = (size_t)pi->model->text.vocab, all = (size_t)p->n_tokens * vocab, n = 0;
    if (!logits || !p->in.o.n_pictures) {
        tec_pi_compare(pi, name, logits, logits ? all : 0, NULL);
        return;
    }
    const struct tec_stored *t = tec_tensors_find(pi->expected, name);
    const json_t *bounds = json_object_get(pi->tensors, name);
    float *want = TEC_NEW(pi->v->arena, all, float), *got = TEC_NEW(pi->v->arena, all, float);
    tec_fail(&err, TEC_SHAPE, "%zu values, or bounds, are not in the case", all);
    if (!t || !bounds || !want || !got || (size_t)tec_stored_count(t) != all ||
        tec_tensors_read_f32(pi->expected, t, 0, want, all, &err) != TEC_OK) {
        tec_verify_cannot(pi->v, name, &err);
        return;
    }
    for (int i = 0; i < p->n_tokens; i++) {
        if (p->tokens[i] == tec_model_mark(pi->model))
            continue;
        memcpy(got + n, logits + (size_t)i * vocab, vocab * sizeof *got);
        memmove(want + n, want + (size_t)i * vocab, vocab * sizeof *want);
        n += vocab;
    }
    tec_verify_floats(pi->v, name, got, want, n, bounds, NULL);
    tec_verify_part(pi->v, name, n, all, "no logits are made of a picture's rows");
}
