/* pi_text.c - what the judges of language share: it decodes a request with forced tokens to compare
 * every row of logits, and runs it freely to compare the tokens. */
#include "tests/judge/pi_text.h"
#include "tests/judge/stage_times.h"

#include <string.h>

enum tec_status tec_pi_prefill(struct tec_pi *pi, struct tec_pi_request *r, int text, int tail,
                               struct tec_error *err)
{
    const struct tec_flow *f = &pi->model->flow;
    struct tec_plan_part *part = tec_plan_part(r->plan, TEC_PART_FRAME, 0);
    TEC_TRY(tec_prefix_check(r->plan, &r->in->o, err));
    if (r->region < 0)
        r->region = tec_kv_pool_take(&r->plan->prefixes);
    r->actions = TEC_NEW(pi->v->arena, (size_t)f->horizon * (size_t)f->dim, float);
    if (!r->actions || r->region < 0)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a request");
    const struct tec_action_inputs a = {.noise = r->in->noise,
                                        .n_fixed = r->in->n_fixed,
                                        .state = r->in->state,
                                        .text = text,
                                        .tail = tail};
    struct tec_replay replay = {0};
    tec_launch_prefix(r->plan, part, r->region, &r->in->o, &a, &replay);
    tec_verify_replayed(pi->v, r->plan, &replay);
    tec_launch_actions(r->plan, part, r->actions);
    return TEC_OK;
}

const int *tec_pi_ids(struct tec_pi *pi, const char *name, size_t *n)
{
    const struct tec_stored *t = tec_tensors_find(pi->expected, name);
    int *ids = t && t->dtype == TEC_I32 ? TEC_NEW(pi->v->arena, t->bytes / 4 + 1, int) : NULL;
    if (!ids || tec_tensors_read(pi->expected, t, 0, ids, t->bytes, NULL) != TEC_OK)
        return NULL;
    *n = t->bytes / 4;
    return ids;
}

void tec_pi_judge_ids(struct tec_pi *pi, const json_t *entry, const char *name, const int *got,
                      size_t n)
{
    size_t n_want = 0;
    const int *want = tec_pi_ids(pi, name, &n_want);
    if (strcmp(pi->v->dtype, "bf16") == 0 &&
        !json_equal(json_object_get(entry, "tokens"),
                    json_object_get(entry, "greedy_tokens_bf16"))) {
        tec_verify_unjudged(pi->v, name, "not judged: the case's own bf16 run chooses others");
        return;
    }
    tec_verify_compared(pi->v, name);
    tec_verify_ids(pi->v, name, got, n, want, n_want);
}

static struct tec_row_state start(const struct tec_pi_request *r)
{
    struct tec_row_state row;
    const struct tec_prefix_input *o = &r->in->o;
    tec_row_start(&row, r->plan, r->region, tec_prefix_rows(r->plan, o), o->ids[o->n_text - 1],
                  r->request_slot, r->n + 1, -1);
    return row;
}

/* Read one tap of the single-row decode part. */
static void read_row(struct tec_pi *pi, const struct tec_plan_part *part, const char *name,
                     float *out)
{
    size_t n;
    const float *row = tec_pi_tap(pi, part, name, 0, 1, &n);
    if (row)
        memcpy(out, row, n * sizeof *out);
}

/* Read the keys or values of the new tokens in every layer: [layers, n, kv_heads * head_dim]. */
static float *read_tail(struct tec_pi *pi, const struct tec_pi_request *r, bool values, size_t *n)
{
    const struct tec_kv_space *s = &r->plan->space;
    size_t cols = (size_t)s->shape.kv_heads * (size_t)s->shape.head_dim,
           size = s->shape.bf16 ? 2 : 4;
    *n = (size_t)s->shape.layers * (size_t)r->n * cols;
    float *out = TEC_NEW(pi->v->arena, *n, float);
    void *row = tec_arena_push(pi->v->arena, cols, size, 16);
    for (int l = 0; out && row && l < s->shape.layers; l++)
        for (int i = 0; i < r->n; i++) {
            size_t slot = (size_t)r->plan->tails[r->request_slot] + (size_t)i;
            const char *from = (values ? s->v : s->k)[l];
            tec_device_download(pi->device, TEC_STREAM_MAIN, row, from + slot * cols * size,
                                cols * size);
            tec_to_f32(s->shape.bf16 ? TEC_BF16 : TEC_F32, row,
                       out + ((size_t)l * (size_t)r->n + (size_t)i) * cols, cols, NULL);
        }
    return out;
}

static void compare_if_expected(struct tec_pi *pi, const struct tec_pi_request *r, const char *what,
                                const float *got, size_t n, const char *tap)
{
    const char *name = tec_arena_printf(pi->v->arena, "%s%s", r->name, what);
    if (name && tec_tensors_find(pi->expected, name))
        tec_pi_compare(pi, name, got, n, tap);
}

enum tec_status tec_pi_forced(struct tec_pi *pi, const struct tec_pi_request *r,
                              struct tec_error *err)
{
    size_t n_ids, vocab = (size_t)pi->model->text.vocab,
                  width = (size_t)pi->model->text.stack.width, n;
    const char *name = tec_arena_printf(pi->v->arena, "%stokens", r->name);
    const int *forced = name ? tec_pi_ids(pi, name, &n_ids) : NULL;
    float *logits = TEC_NEW(pi->v->arena, ((size_t)r->n + 1) * vocab, float);
    float *hidden = TEC_NEW(pi->v->arena, width, float);
    struct tec_plan_part *part = tec_plan_part(r->plan, TEC_PART_DECODE, 1);
    if (!forced || n_ids < (size_t)r->n || !logits || !hidden || !part)
        return tec_fail(err, TEC_NOT_FOUND, "the case has no ids '%s'", name ? name : "?");
    struct tec_row_state row = start(r), *rows[] = {&row};
    int token, made;
    for (int i = 0; i <= r->n; i++) {
        struct tec_replay replay = {0};
        if (i > 0)
            row.token = forced[i - 1];
        tec_launch_decode(r->plan, part, rows, 1, 1, &token, &made, &replay);
        tec_verify_replayed(pi->v, r->plan, &replay);
        read_row(pi, part, "logits", logits + (size_t)i * vocab);
        if (i == 0)
            read_row(pi, part, "last_hidden", hidden);
    }
    compare_if_expected(pi, r, "logits", logits, (size_t)r->n * vocab, NULL);
    compare_if_expected(pi, r, "last_hidden", hidden, width, NULL);
    const float *k = read_tail(pi, r, false, &n);
    compare_if_expected(pi, r, "k_rope", k, n, NULL);
    const float *v = read_tail(pi, r, true, &n);
    compare_if_expected(pi, r, "v", v, n, NULL);
    return TEC_OK;
}

void tec_pi_free(struct tec_pi *pi, const struct tec_pi_request *r,
                 const struct tec_pi_request *beside, int k, int *tokens)
{
    (void)pi;
    struct tec_row_state row = start(r), other, *rows[2] = {&row, &other};
    int n = beside ? 2 : 1, made[2], have = 0, got[2 * 64];
    struct tec_plan_part *part = tec_plan_part(r->plan, TEC_PART_DECODE, n);
    if (beside)
        other = start(beside);
    while (have < r->n) {
        struct tec_replay replay = {0};
        int step = k < r->n - have ? k : r->n - have;
        tec_launch_decode(r->plan, part, rows, n, step, got, made, &replay);
        tec_verify_replayed(pi->v, r->plan, &replay);
        memcpy(tokens + have, got, (size_t)made[0] * sizeof *tokens);
        have += made[0];
    }
}
