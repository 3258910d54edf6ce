/* openvla_tensors.c - the names of a case's tensors, and where this engine has the same values. */
#include "tests/judge/openvla.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct name {
    const char *theirs, *ours;
};

static const char *find(const struct name *names, size_t n, const char *theirs)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i].theirs, theirs) == 0)
            return names[i].ours;
    return NULL;
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

/* Our name for "block0.fc1", "patch_embed", "out" of a tower; NULL: qkv or unknown. */
static const char *tower_tap(const struct tec_tower *t, const char *what, char text[64])
{
    static const struct name whole[] = {{"patch_embed", "patch"}, {"embed", "embed"}};
    static const struct name inside[] = {{"", "hidden"},
                                         {".norm1", "norm1"},
                                         {".attn_out", "attn_out"},
                                         {".fc1", "up"},
                                         {".mlp_out", "mlp_out"}};
    int layer = t->stack.layers - 1, used = 0;
    const char *ours = find(whole, 2, what);
    if (ours)
        return ours;
    if (strcmp(what, "out") != 0 && sscanf(what, "block%d%n", &layer, &used) != 1)
        return NULL;
    ours = find(inside, 5, strcmp(what, "out") == 0 ? "" : what + used);
    if (!ours)
        return NULL;
    snprintf(text, 64, "layer%d.%s", layer, ours);
    return text;
}

/* q | k | v of all rows of a tower, side by side. */
static const float *joined(struct tec_openvla_run *run, const char *prefix, int layer, size_t *n)
{
    static const char *const parts[] = {"q", "k", "v"};
    const float *from[3];
    size_t cols[3], total = 0, rows = 0, at = 0;
    for (int i = 0; i < 3; i++) {
        char name[64];
        snprintf(name, sizeof name, "%slayer%d.%s", prefix, layer, parts[i]);
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
    char prefix[16], text[64], name[96];
    int layer, used = 0;
    if (tower >= v->n_towers)
        return NULL;
    snprintf(prefix, sizeof prefix, v->n_towers > 1 ? "vision%d." : "vision.", tower);
    if (sscanf(what, "block%d.%n", &layer, &used) == 1 && strcmp(what + used, "qkv") == 0)
        return joined(run, prefix, layer, n);
    const char *tap = tower_tap(&v->towers[tower], what, text);
    if (!tap)
        return NULL;
    snprintf(name, sizeof name, "%s%s", prefix, tap);
    int skip =
        strcmp(what, "out") == 0 ? v->towers[tower].prefix_rows * run->plan->spec.pictures : 0;
    return tec_pi_tap(run->pi, frame(run), name, skip, -1, n);
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

static const float *text_tensor(struct tec_openvla_run *run, const char *what, size_t *n)
{
    static const struct name inside[] = {{"q_proj", "q"},
                                         {"k_proj", "k"},
                                         {"attn_out", "attn_out"},
                                         {"mlp_out", "mlp_out"},
                                         {"out", "hidden"},
                                         {"k_rope", "k_rope"},
                                         {"v", "v"}};
    char prefill[64], decode[64];
    int layer, used = 0;
    if (strcmp(what, "inputs_embeds") == 0)
        return all_rows(run, "prefix.embeds", "decode.embeds", n);
    if (strcmp(what, "norm") == 0)
        return all_rows(run, "prefix.final_norm", "last_hidden", n);
    if (sscanf(what, "layer%d.%n", &layer, &used) != 1)
        return NULL;
    const char *ours = find(inside, sizeof inside / sizeof inside[0], what + used);
    if (!ours)
        return NULL;
    snprintf(prefill, sizeof prefill, "prefix.layer%d.%s", layer, ours);
    snprintf(decode, sizeof decode, "decode.layer%d.%s", layer, ours);
    const float *rows = all_rows(run, prefill, decode, n);
    bool heads = strcmp(ours, "k_rope") == 0 || strcmp(ours, "v") == 0;
    return heads ? tec_openvla_by_head(run->pi, &run->pi->model->text.stack, rows, rows ? *n : 0)
                 : rows;
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

const float *tec_openvla_tensor(struct tec_openvla_run *run, const char *tap, size_t *n)
{
    static const char *const towers[] = {"vision.dino.", "vision.siglip."};
    const struct tec_model *m = run->pi->model;
    int vocab = m->text.vocab, layer, used = 0;
    char name[32];
    for (int i = 0; i < 2; i++)
        if (strncmp(tap, towers[i], strlen(towers[i])) == 0)
            return tower_tensor(run, m->vision.n_towers > 1 ? i : 0, tap + strlen(towers[i]), n);
    if (strncmp(tap, "llm.", 4) == 0)
        return text_tensor(run, tap + 4, n);
    if (strcmp(tap, "projector.out") == 0)
        return tec_pi_tap(run->pi, frame(run), "vision.projector", 0, -1, n);
    if (sscanf(tap, "projector.fc%d%n", &layer, &used) == 1 && !tap[used]) {
        snprintf(name, sizeof name, "projector.%d", layer);
        return tec_pi_tap(run->pi, frame(run), name, 0, -1, n);
    }
    if (strcmp(tap, "logits") == 0)
        return logits(run, 0, vocab, 1, n);
    if (strcmp(tap, "logits_action") == 0)
        return logits(run, m->tokens.vocab - m->tokens.bins, m->tokens.vocab, 1, n);
    if (sscanf(tap, "logits_every_%dth%n", &layer, &used) == 1 && !tap[used] && layer > 0)
        return logits(run, 0, vocab, layer, n);
    return NULL;
}
