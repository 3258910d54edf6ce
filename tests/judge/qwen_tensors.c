/* qwen_tensors.c - every tensor of a text model's case by its name: taps of one causal pass, the
 * same pass at far positions, logits of each row, unpacked weights. */
#include "graph/model/program.h"
#include "graph/run/launch/launch_rows.h"
#include "kernels/int4.h"
#include "tests/judge/qwen.h"
#include "tests/judge/stage_times.h"
#include "tests/judge/taps.h"

#include <stdio.h>
#include <string.h>

static const struct tec_tap_name names[] = {
#define TAP(theirs, ours, form) {theirs, ours, NULL, TEC_TAP_##form},
#include "tests/judge/taps/qwen.def"
#undef TAP
};

enum tec_status tec_qwen_prefill(struct tec_qwen *q, struct tec_qwen_prompt *p, int far,
                                 struct tec_error *err)
{
    struct tec_plan_part *part = tec_plan_part(q->plan, TEC_PART_FRAME, 0);
    struct tec_pi_request *r = &p->request;
    TEC_TRY(tec_prefix_check(q->plan, &p->in.o, err));
    if (r->region < 0)
        r->region = tec_kv_pool_take(&q->plan->prefixes);
    if (r->region < 0)
        return tec_fail(err, TEC_NO_MEMORY, "no region for a prompt");
    tec_fill_prefix(q->plan, part, r->region, &p->in.o);
    for (int i = 0; i < p->n_tokens; i++)
        part->prefix.prefix.pos[i] += far;
    struct tec_replay replay = {0};
    tec_device_upload(q->plan->device, part->stream, part->block.device, part->block.host,
                      part->block.size);
    tec_device_replay(q->plan->device, part->capture, &replay);
    return tec_device_failure(q->plan->device, err);
}

float *tec_qwen_row_logits(struct tec_qwen *q, const struct tec_qwen_prompt *p, int far,
                           const char *tap)
{
    struct tec_plan_part *part = tec_plan_part(q->plan, TEC_PART_DECODE, 1);
    size_t vocab = (size_t)q->pi->model->text.vocab;
    float *all = TEC_NEW(q->pi->v->arena, (size_t)p->n_tokens * vocab, float);
    for (int i = 0; all && i < p->n_tokens; i++) {
        struct tec_row_state row, *rows[] = {&row};
        struct tec_replay replay = {0};
        int token, made;
        if (p->tokens[i] == tec_model_mark(q->pi->model)) {
            memset(all + (size_t)i * vocab, 0, vocab * sizeof *all);
            continue;
        }
        tec_row_start(&row, q->plan, p->request.region, i + 1, p->tokens[i],
                      p->request.request_slot, 2, -1);
        row.pos += far;
        tec_launch_decode(q->plan, part, rows, 1, 1, &token, &made, &replay);
        tec_verify_replayed(q->pi->v, q->plan, &replay);
        tec_qwen_tap(q, q->plan, tap, all + (size_t)i * vocab);
    }
    return all;
}

/* A picture's rows of a tap of the tower, those of prompt 0. */
static void judge_picture(struct tec_qwen *q, const char *name, const struct tec_tap_found *found)
{
    const struct tec_plan_part *part = tec_plan_part(q->plan, TEC_PART_FRAME, 0);
    int pictures = q->prompts[0].in.o.n_pictures, at = found->number[0];
    size_t n = 0;
    const float *got = tec_pi_tap(q->pi, part, found->ours, 0, -1, &n);
    size_t each = pictures ? n / (size_t)pictures : 0;
    bool there = got && at >= 0 && at < pictures;
    tec_pi_compare(q->pi, name, there ? got + (size_t)at * each : NULL, there ? each : 0,
                   "unfused");
}

/* Tensors of one pass: those whose names begin with "far.", or the others. */
static void judge_pass(struct tec_qwen *q, bool far)
{
    struct tec_pi *pi = q->pi;
    const struct tec_plan_part *part = tec_plan_part(q->plan, TEC_PART_FRAME, 0);
    for (size_t i = 0; i < tec_tensors_count(pi->expected); i++) {
        const char *name = tec_tensors_at(pi->expected, i)->name;
        bool is_far = strncmp(name, "far.", 4) == 0;
        struct tec_tap_found found;
        size_t n = 0;
        bool known =
            tec_tap_find(names, sizeof names / sizeof names[0], name + (is_far ? 4 : 0), &found);
        if (is_far != far || (known && found.form == TEC_TAP_ELSEWHERE))
            continue;
        if (known && found.form == TEC_TAP_LOGITS) {
            const float *logits =
                tec_qwen_row_logits(q, &q->prompts[0], far ? q->far : 0, found.ours);
            tec_qwen_compare_logits(q, &q->prompts[0], name, logits);
            continue;
        }
        if (known && found.form == TEC_TAP_IMAGE) {
            judge_picture(q, name, &found);
            continue;
        }
        const float *got = known ? tec_pi_tap(pi, part, found.ours, 0, -1, &n) : NULL;
        got = tec_qwen_in_order(q, &q->prompts[0], got, n);
        tec_pi_compare(pi, name, got, got ? n : 0, "unfused");
    }
}

enum tec_status tec_qwen_tensors(struct tec_qwen *q, struct tec_error *err)
{
    struct tec_qwen_prompt *p = &q->prompts[0];
    TEC_TRY(tec_qwen_prefill(q, p, 0, err));
    judge_pass(q, false);
    if (!q->far)
        return TEC_OK;
    TEC_TRY(tec_qwen_prefill(q, p, q->far, err));
    judge_pass(q, true);
    return TEC_OK;
}

static float unpacked(const struct tec_matrix *m, const unsigned char *w, int k, int n)
{
    int at = k, panel = n / 16;
    for (int i = 0; m->order && i < m->k; i++)
        if (m->order[(size_t)m->order_of[panel] * (size_t)m->k + (size_t)i] == k)
            at = i;
    const unsigned char *group = w + (size_t)panel * tec_int4_panel(m->k, m->group) +
                                 tec_int4_group(at / m->group, m->group);
    uint16_t scale;
    uint32_t word;
    size_t line = (size_t)(1 + at % m->group / TEC_INT4_DEEP) * TEC_INT4_LINE;
    memcpy(&scale, group + 2 * (size_t)(n % 16), sizeof scale);
    memcpy(&word, group + line + 4 * (size_t)(n % 16), sizeof word);
    int nibble = (int)(word >> (4 * (at % TEC_INT4_DEEP)) & 15U);
    return (float)(nibble - group[TEC_INT4_ZEROS + n % 16]) * tec_half_float(scale);
}

/* Whether a tensor is NAME.weight of some module. */
static bool is_named(const char *tensor, const char *name)
{
    size_t n = tensor ? strlen(tensor) : 0, own = strlen(name), rest = strlen(".weight");
    return n > own + rest && strncmp(tensor + n - own - rest, name, own) == 0;
}

/* Where a published matrix of a layer lies among the joined ones: its first column. */
static const struct tec_matrix *find_matrix(const struct tec_pi *pi, int layer, const char *name,
                                            int *first)
{
    const struct tec_model_program *p = pi->model->text.program;
    for (int i = p->layers[layer].first; i < p->layers[layer + 1].first; i++) {
        const struct tec_model_call *c = &p->calls[i];
        const struct tec_call_weights *w = &pi->weights->text[i];
        const struct tec_attention_weights *l = w->attention;
        if (is_named(c->weight, name))
            return &w->matrix;
        for (int k = 0; k < 3; k++) {
            *first = !l ? k * w->matrix.n / 2 : k == 2 ? l->v_at : k ? l->k_at : l->q_at;
            if (is_named(c->joined[k], name))
                return l ? &l->qkv : &w->matrix;
        }
        *first = 0;
    }
    return NULL;
}

/* [in, out] of the case, value by value, without an error. */
static void judge_weight(struct tec_qwen *q, const struct tec_stored *t)
{
    struct tec_pi *pi = q->pi;
    int layer = -1, first = 0, used = 0;
    struct tec_error err;
    if (sscanf(t->name, "dequant.layer%d.%n", &layer, &used) != 1 || layer < 0 ||
        layer >= pi->model->text.stack.layers)
        return;
    const struct tec_matrix *m = find_matrix(pi, layer, t->name + used, &first);
    size_t n = t->bytes / sizeof(float), wrong = 0, cols = t->rank == 2 ? (size_t)t->shape[1] : 0;
    float *want = TEC_NEW(pi->v->arena, n + 1, float);
    bool ok = m && m->group && want && t->rank == 2 && t->shape[0] == m->k &&
              tec_tensors_read_f32(pi->expected, t, 0, want, n, &err) == TEC_OK;
    for (size_t i = 0; ok && i < n; i++) {
        float got = unpacked(m, m->w, (int)(i / cols), first + (int)(i % cols));
        wrong += got < want[i] || got > want[i];
    }
    tec_verify_compared(pi->v, t->name);
    tec_verify_report(pi->v, t->name, ok ? (double)wrong : 1.0, 0.0, 0.0, ok && wrong == 0, NULL,
                      ok ? NULL : "no such matrix");
}

enum tec_status tec_qwen_weights(struct tec_qwen *q, struct tec_error *err)
{
    (void)err;
    bool host = tec_device_reads_host(q->pi->device);
    for (size_t i = 0; i < tec_tensors_count(q->pi->expected); i++) {
        const struct tec_stored *t = tec_tensors_at(q->pi->expected, i);
        if (strncmp(t->name, "dequant.", 8) != 0)
            continue;
        if (host)
            judge_weight(q, t);
        else
            tec_verify_unjudged(q->pi->v, t->name,
                                "not judged: this device's weights cannot be read from here");
    }
    return TEC_OK;
}
