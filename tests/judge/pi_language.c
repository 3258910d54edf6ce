/* pi_language.c - judges cases of kind "language": greedy text from the prefix under both mask
 * conventions, batched and alone, and actions that see the text. */
#include "tests/judge/pi_text.h"

#include <string.h>

enum { MAX_REQUESTS = 8, MAX_TOKENS = 64 };

struct judge {
    struct tec_pi *pi;
    struct tec_plan *plan;
    const char *mask;
    int n_requests, n_tokens;
    struct tec_pi_inputs in[MAX_REQUESTS];
    struct tec_pi_request requests[MAX_REQUESTS];
    const char *keys[MAX_REQUESTS]; /* "A" */
};

/* <req>.<mask>.prefix.layerN.{k_rope,v}: kept by the prefill's taps. */
static void compare_prefix(struct judge *j, const struct tec_pi_request *r)
{
    const struct tec_plan_part *part = tec_plan_part(j->plan, TEC_PART_FRAME, 0);
    for (int i = 0; i < part->taps.n; i++) {
        const struct tec_tap *t = &part->taps.items[i];
        const char *name = tec_arena_printf(j->pi->v->arena, "%s%s", r->name, t->name);
        if (!name || !tec_tensors_find(j->pi->expected, name))
            continue;
        int live = tec_pi_live(j->pi, t);
        size_t n = (size_t)live * (size_t)t->cols;
        float *rows = TEC_NEW(j->pi->v->arena, n, float);
        for (int row = 0; rows && row < live; row++)
            tec_device_download(
                j->pi->device, TEC_STREAM_MAIN, rows + (size_t)row * (size_t)t->cols,
                t->data + (size_t)row * (size_t)t->ld, (size_t)t->cols * sizeof(float));
        tec_pi_compare(j->pi, name, rows, n, "unfused");
    }
}

static void compare_actions(struct judge *j, const struct tec_pi_request *r, const char *what)
{
    const struct tec_flow *f = &j->pi->model->flow;
    const char *name = tec_arena_printf(j->pi->v->arena, "%s%s", r->name, what);
    if (name)
        tec_pi_compare(j->pi, name, r->actions, (size_t)f->horizon * (size_t)f->dim, NULL);
}

/* The free run one token at a time, all at once, and in steps of three gives the same ids. */
static void judge_tokens(struct judge *j, int index)
{
    struct tec_pi *pi = j->pi;
    const struct tec_pi_request *r = &j->requests[index];
    const char *key = tec_arena_printf(pi->v->arena, "%s.%s", j->keys[index], j->mask);
    const json_t *entry = json_object_get(json_object_get(pi->v->json, "decode"), key);
    const char *name = tec_arena_printf(pi->v->arena, "%stokens", r->name);
    int at_once[MAX_TOKENS], by_three[MAX_TOKENS], single[MAX_TOKENS], beside[MAX_TOKENS];
    tec_pi_free(pi, r, NULL, r->n, at_once);
    tec_pi_free(pi, r, NULL, 3, by_three);
    tec_pi_free(pi, r, NULL, 1, single);
    tec_pi_free(pi, r, &j->requests[(index + 1) % j->n_requests], 5, beside);
    tec_pi_judge_ids(pi, entry, name, at_once, (size_t)r->n);
    size_t bytes = (size_t)r->n * sizeof(int);
    tec_pi_same(pi, tec_arena_printf(pi->v->arena, "%stokens.k3_equals_once", r->name), by_three,
                at_once, bytes);
    tec_pi_same(pi, tec_arena_printf(pi->v->arena, "%stokens.k1_equals_once", r->name), single,
                at_once, bytes);
    tec_pi_same(pi, tec_arena_printf(pi->v->arena, "%stokens.batched_equals_alone", r->name),
                beside, at_once, bytes);
}

static enum tec_status judge_request(struct judge *j, int index, struct tec_error *err)
{
    struct tec_pi_request *r = &j->requests[index];
    TEC_TRY(tec_pi_prefill(j->pi, r, 0, 0, err));
    compare_prefix(j, r);
    compare_actions(j, r, "actions");
    TEC_TRY(tec_pi_forced(j->pi, r, err));
    /* The tail now holds the keys of all expected tokens: actions may see them. */
    struct tec_pi_request after = *r;
    TEC_TRY(tec_pi_prefill(j->pi, &after, r->n, j->plan->tails[r->request_slot], err));
    compare_actions(j, &after, "actions_after_text");
    return TEC_OK;
}

static enum tec_status collect(struct judge *j, struct tec_error *err)
{
    const char *key;
    json_t *value;
    json_object_foreach(json_object_get(j->pi->v->json, "requests"), key, value)
    {
        if (j->n_requests == MAX_REQUESTS)
            return tec_fail(err, TEC_UNSUPPORTED, "more than %d requests", MAX_REQUESTS);
        struct tec_pi_request *r = &j->requests[j->n_requests];
        const char *prefix = tec_arena_printf(j->pi->v->arena, "%s.", key);
        TEC_TRY(tec_pi_read(j->pi, prefix, &j->in[j->n_requests], err));
        *r = (struct tec_pi_request){.in = &j->in[j->n_requests],
                                     .plan = j->plan,
                                     .region = -1,
                                     .request_slot = j->n_requests,
                                     .n = j->n_tokens,
                                     .name =
                                         tec_arena_printf(j->pi->v->arena, "%s.%s.", key, j->mask)};
        j->keys[j->n_requests++] = key;
    }
    return j->n_requests ? TEC_OK : tec_fail(err, TEC_MALFORMED, "the case has no requests");
}

static enum tec_status judge_mask(struct judge *j, struct tec_error *err)
{
    int n = (int)json_integer_value(json_object_get(j->pi->v->json, "n_tokens"));
    if (n < 1 || n > MAX_TOKENS)
        return tec_fail(err, TEC_UNSUPPORTED, "n_tokens is %d", n);
    j->n_tokens = n;
    TEC_TRY(tec_pi_open_tensors(j->pi, err));
    TEC_TRY(tec_pi_plan(j->pi, &j->plan, 10, MAX_REQUESTS, n + 1, true, err));
    TEC_TRY(collect(j, err));
    for (int i = 0; i < j->n_requests; i++)
        TEC_TRY(judge_request(j, i, err));
    for (int i = 0; i < j->n_requests; i++)
        judge_tokens(j, i);
    return TEC_OK;
}

enum tec_status tec_verify_pi_language(struct tec_verify *v, struct tec_error *err)
{
    static const char *const masks[] = {"bidir", "causal"};
    enum tec_status status = TEC_OK;
    for (size_t i = 0; i < 2 && status == TEC_OK; i++) {
        struct tec_pi pi;
        struct judge j = {.pi = &pi, .mask = masks[i]};
        status = tec_pi_open(&pi, v, NULL, masks[i], err);
        if (status == TEC_OK)
            status = judge_mask(&j, err);
        tec_plan_destroy(j.plan);
        tec_pi_finish(&pi);
    }
    return status;
}
