/* openvla_tensors.c - the names of a case's tensors, and where this engine has the same values. */
#include "tests/judge/openvla.h"
#include "tests/judge/taps.h"

#include <stdio.h>
#include <string.h>

static const struct tec_tap_name tensors[] = {
#define TAP(theirs, ours, step, form) {theirs, ours, step, TEC_TAP_##form},
#include "tests/judge/taps/openvla.def"
};

static const struct tec_tap_name tower_tensors[] = {
#define TOWER_TAP(theirs, ours, form) {theirs, ours, NULL, TEC_TAP_##form},
#include "tests/judge/taps/openvla.def"
};

static const struct {
    const char *theirs;
    int tower;
} towers[] = {
#define TOWER(theirs, tower) {theirs, tower},
#include "tests/judge/taps/openvla.def"
};

bool tec_openvla_tap(const char *name, struct tec_tap_found *found)
{
    return tec_tap_find(tensors, sizeof tensors / sizeof tensors[0], name, found);
}

static const struct tec_plan_part *frame(const struct tec_openvla_run *run)
{
    return tec_plan_part(run->plan, TEC_PART_FRAME, 0);
}

/* Columns of a tap of the frame's part. */
static size_t columns(const struct tec_plan_part *part, const char *name)
{
    for (int i = 0; i < part->taps.n; i++)
        if (strcmp(part->taps.items[i].name, name) == 0)
            return (size_t)part->taps.items[i].cols;
    return 0;
}

/* q | k | v of all rows of a tower, side by side: the taps' names go on behind `prefix`. */
static const float *joined(struct tec_openvla_run *run, const char *prefix, size_t *n)
{
    static const char *const parts[] = {"q", "k", "v"};
    const float *from[3];
    size_t cols[3], total = 0, rows = 0, at = 0;
    for (int i = 0; i < 3; i++) {
        char name[TEC_TAP_BYTES + 32];
        snprintf(name, sizeof name, "%s%s", prefix, parts[i]);
        cols[i] = columns(frame(run), name);
        from[i] = tec_pi_tap(run->pi, frame(run), name, 0, -1, n);
        if (!from[i] || !cols[i])
            return NULL;
        rows = *n / cols[i];
        total += cols[i];
    }
    float *out = TEC_NEW(run->pi->v->arena, rows * total, float);
    for (int i = 0; i < 3 && out; at += cols[i++])
        for (size_t r = 0; r < rows; r++)
            memcpy(out + r * total + at, from[i] + r * cols[i], cols[i] * sizeof *out);
    *n = rows * total;
    return out;
}

static const float *tower_tensor(struct tec_openvla_run *run, int tower, const char *what,
                                 size_t *n)
{
    const struct tec_vision *v = &run->pi->model->vision;
    const struct tec_tower *t = &v->towers[tower];
    struct tec_tap_found found;
    char prefix[16], name[TEC_TAP_BYTES + 32];
    if (tower >= v->n_towers ||
        !tec_tap_find(tower_tensors, sizeof tower_tensors / sizeof tower_tensors[0], what, &found))
        return NULL;
    snprintf(prefix, sizeof prefix, v->n_towers > 1 ? "vision%d." : "vision.", tower);
    snprintf(name, sizeof name, "%s%s", prefix, found.ours);
    if (found.form == TEC_TAP_JOINED)
        return joined(run, name, n);
    if (found.form != TEC_TAP_LAST_LAYER)
        return tec_pi_tap(run->pi, frame(run), name, 0, -1, n);
    snprintf(name, sizeof name, "%slayer%d.%s", prefix, t->stack.layers - 1, found.ours);
    return tec_pi_tap(run->pi, frame(run), name, t->prefix_rows * run->plan->spec.pictures, -1, n);
}

/* Row `step` of a decode tap, copied when the step was done. */
static const float *decode_row(const struct tec_openvla_run *run, const char *name, int step)
{
    const struct tec_plan_part *part = tec_plan_part(run->plan, TEC_PART_DECODE, 1);
    for (int i = 0; i < part->taps.n; i++)
        if (strcmp(part->taps.items[i].name, name) == 0)
            return run->row[step][i];
    return NULL;
}

/* Rows of the prefix, then one of each step but the first, which repeats the prefix's last. */
static float *all_rows(struct tec_openvla_run *run, const char *prefill, const char *decode,
                       size_t *n)
{
    size_t cols = columns(frame(run), prefill), count;
    const float *first = tec_pi_tap(run->pi, frame(run), prefill, 0, -1, &count);
    size_t rows = (size_t)(run->rows + run->steps - 1);
    float *out = cols ? TEC_NEW(run->pi->v->arena, rows * cols, float) : NULL;
    if (!first || !out || count != (size_t)run->rows * cols)
        return NULL;
    memcpy(out, first, count * sizeof *out);
    for (int s = 1; s < run->steps; s++) {
        const float *row = decode_row(run, decode, s);
        if (!row)
            return NULL;
        memcpy(out + (size_t)(run->rows + s - 1) * cols, row, cols * sizeof *out);
    }
    *n = rows * cols;
    return out;
}

/* [rows, heads, head_dim] to [heads, rows, head_dim]. */
const float *tec_openvla_by_head(struct tec_pi *pi, const struct tec_stack *s, const float *rows,
                                 size_t n)
{
    size_t heads = (size_t)s->kv_heads, dim = (size_t)s->head_dim, count = n / (heads * dim);
    float *out = rows ? TEC_NEW(pi->v->arena, n, float) : NULL;
    for (size_t r = 0; out && r < count; r++)
        for (size_t h = 0; h < heads; h++)
            memcpy(out + (h * count + r) * dim, rows + (r * heads + h) * dim, dim * sizeof *out);
    return out;
}

/* Every `stride`-th column of each step's logits, from column `first` to before `end`. */
static const float *logits(struct tec_openvla_run *run, int first, int end, int stride, size_t *n)
{
    size_t cols = (size_t)((end - first + stride - 1) / stride);
    float *out = TEC_NEW(run->pi->v->arena, (size_t)run->steps * cols, float);
    for (int s = 0; out && s < run->steps; s++) {
        const float *row = decode_row(run, "logits", s);
        for (size_t c = 0; row && c < cols; c++)
            out[(size_t)s * cols + c] = row[(size_t)first + c * (size_t)stride];
        if (!row)
            return NULL;
    }
    *n = (size_t)run->steps * cols;
    return out;
}

const float *tec_openvla_tensor(struct tec_openvla_run *run, const char *tensor, size_t *n)
{
    const struct tec_model *m = run->pi->model;
    const float *rows;
    struct tec_tap_found found;
    for (size_t i = 0; i < sizeof towers / sizeof towers[0]; i++) {
        size_t length = strlen(towers[i].theirs);
        if (strncmp(tensor, towers[i].theirs, length) == 0)
            return tower_tensor(run, m->vision.n_towers > 1 ? towers[i].tower : 0, tensor + length,
                                n);
    }
    if (!tec_openvla_tap(tensor, &found))
        return NULL;
    switch (found.form) {
    case TEC_TAP_ROWS:
        return tec_pi_tap(run->pi, frame(run), found.ours, 0, -1, n);
    case TEC_TAP_TEXT_ROWS:
        return all_rows(run, found.ours, found.step, n);
    case TEC_TAP_HEADS:
        rows = all_rows(run, found.ours, found.step, n);
        return tec_openvla_by_head(run->pi, &m->text.stack, rows, rows ? *n : 0);
    case TEC_TAP_LOGITS:
        return logits(run, 0, m->text.vocab, 1, n);
    case TEC_TAP_BINS:
        return logits(run, m->tokens.vocab - m->tokens.bins, m->tokens.vocab, 1, n);
    case TEC_TAP_EVERY:
        return found.number[0] > 0 ? logits(run, 0, m->text.vocab, found.number[0], n) : NULL;
    default:
        return NULL;
    }
}
