/* pi_frames.c - judges cases of kind "frames": frames that each prefill, act and start a request,
 * decoded by continuous batching; every schedule gives the same actions and tokens. */
#include "tests/judge/pi_text.h"
#include "tests/judge/stage_times.h"

#include <string.h>

enum { MAX_FRAMES = 8, MAX_TOKENS = 64 };

struct judge {
    struct tec_pi *pi;
    struct tec_plan *plan;
    int n_frames, n_tokens;
    struct tec_pi_inputs in[MAX_FRAMES];
    struct tec_pi_request requests[MAX_FRAMES];
};

static void compare_chunk(struct judge *j, int frame, const char *what, const float *chunk)
{
    const struct tec_flow *f = &j->pi->model->flow;
    const char *name = tec_arena_printf(j->pi->v->arena, "frame%d.%s", frame, what);
    if (name)
        tec_pi_compare(j->pi, name, chunk, (size_t)f->horizon * (size_t)f->dim, NULL);
}

/* frameN.prefix.layerL.{k_rope,v} and frameN.v_t, from the taps of the frame's part. */
static void compare_taps(struct judge *j, int frame)
{
    const struct tec_plan_part *part = tec_plan_part(j->plan, TEC_PART_FRAME, 0);
    const struct tec_flow *f = &j->pi->model->flow;
    size_t chunk = (size_t)f->horizon * (size_t)f->dim;
    int steps = j->plan->spec.actions[0].steps;
    float *v_t = TEC_NEW(j->pi->v->arena, (size_t)steps * chunk, float);
    for (int i = 0; v_t && i < part->taps.n; i++) {
        const struct tec_tap *t = &part->taps.items[i];
        int live = tec_pi_live(j->pi, t), step;
        size_t n = (size_t)live * (size_t)t->cols;
        const char *name = tec_arena_printf(j->pi->v->arena, "frame%d.%s", frame, t->name);
        bool velocity = sscanf(t->name, "v_t.%d", &step) == 1 && n == chunk && step < steps;
        if (!velocity && !(name && tec_tensors_find(j->pi->expected, name)))
            continue;
        const float *rows = tec_pi_tap(j->pi, part, t->name, 0, -1, &n);
        if (velocity && rows)
            memcpy(v_t + (size_t)step * chunk, rows, chunk * sizeof *v_t);
        else if (!velocity)
            tec_pi_compare(j->pi, name, rows, n, "unfused");
    }
    tec_pi_compare(j->pi, tec_arena_printf(j->pi->v->arena, "frame%d.v_t", frame), v_t,
                   (size_t)steps * chunk, "unfused");
}

static enum tec_status judge_frames(struct judge *j, struct tec_error *err)
{
    for (int i = 0; i < j->n_frames; i++) {
        struct tec_pi_request *r = &j->requests[i];
        *r = (struct tec_pi_request){.in = &j->in[i],
                                     .plan = j->plan,
                                     .region = -1,
                                     .request_slot = i,
                                     .n = j->n_tokens,
                                     .name = tec_arena_printf(j->pi->v->arena, "frame%d.", i)};
        TEC_TRY(tec_pi_prefill(j->pi, r, 0, 0, err));
        compare_chunk(j, i, "actions", r->actions);
        compare_taps(j, i);
        TEC_TRY(tec_pi_forced(j->pi, r, err));
    }
    return TEC_OK;
}

/* The chunk with half as many steps. */
static enum tec_status judge_five(struct judge *j, struct tec_error *err)
{
    struct tec_plan *plan = NULL;
    TEC_TRY(tec_pi_plan(j->pi, &plan, 5, 0, 0, false, err));
    enum tec_status status = TEC_OK;
    for (int i = 0; i < j->n_frames && status == TEC_OK; i++) {
        struct tec_pi_request r = {.in = &j->in[i], .plan = plan, .region = -1};
        status = tec_pi_prefill(j->pi, &r, 0, 0, err);
        if (status == TEC_OK)
            compare_chunk(j, i, "s5.actions", r.actions);
        tec_kv_pool_drop(&plan->prefixes, r.region);
    }
    tec_plan_destroy(plan);
    return status;
}

/* Frame f starts request f; each frame advances every live request by k, all in one launch. */
static void run_timeline(struct judge *j, int k, int tokens[MAX_FRAMES][MAX_TOKENS])
{
    struct tec_row_state rows[MAX_FRAMES];
    int have[MAX_FRAMES] = {0}, got[MAX_FRAMES * MAX_TOKENS], made[MAX_FRAMES];
    for (int frame = 0; frame < j->n_frames + j->n_tokens; frame++) {
        struct tec_row_state *live[MAX_FRAMES];
        int who[MAX_FRAMES], n = 0;
        if (frame < j->n_frames) {
            const struct tec_prefix_input *o = &j->in[frame].o;
            tec_row_start(&rows[frame], j->plan, j->requests[frame].region,
                          tec_prefix_rows(j->plan, o), o->ids[o->n_text - 1], frame, j->n_tokens,
                          -1);
        }
        for (int i = 0; i <= frame && i < j->n_frames; i++)
            if (!rows[i].done) {
                who[n] = i;
                live[n++] = &rows[i];
            }
        if (n == 0)
            continue;
        struct tec_replay replay = {0};
        tec_launch_decode(j->plan, tec_plan_part(j->plan, TEC_PART_DECODE, n), live, n, k, got,
                          made, &replay);
        tec_verify_replayed(j->pi->v, j->plan, &replay);
        for (int i = 0; i < n; i++) {
            memcpy(tokens[who[i]] + have[who[i]], got + (ptrdiff_t)i * k,
                   (size_t)made[i] * sizeof(int));
            have[who[i]] += made[i];
        }
    }
}

static void judge_timeline(struct judge *j)
{
    struct tec_pi *pi = j->pi;
    int k = (int)json_integer_value(json_object_get(pi->v->json, "k"));
    int batched[MAX_FRAMES][MAX_TOKENS], alone[MAX_TOKENS];
    const json_t *frames = json_object_get(pi->v->json, "frames");
    run_timeline(j, k > 0 && k <= MAX_TOKENS ? k : 3, batched);
    for (int i = 0; i < j->n_frames; i++) {
        const char *name = tec_arena_printf(pi->v->arena, "frame%d.tokens", i);
        tec_pi_judge_ids(pi, json_array_get(frames, (size_t)i), name, batched[i],
                         (size_t)j->n_tokens);
        tec_pi_free(pi, &j->requests[i], NULL, j->n_tokens, alone);
        tec_pi_same(pi, tec_arena_printf(pi->v->arena, "frame%d.batched_equals_alone", i),
                    batched[i], alone, (size_t)j->n_tokens * sizeof(int));
    }
}

static enum tec_status judge_case(struct judge *j, struct tec_error *err)
{
    struct tec_pi *pi = j->pi;
    j->n_tokens = (int)json_integer_value(json_object_get(pi->v->json, "N"));
    j->n_frames = (int)json_array_size(json_object_get(pi->v->json, "frames"));
    if (j->n_tokens < 1 || j->n_tokens > MAX_TOKENS || j->n_frames < 1 || j->n_frames > MAX_FRAMES)
        return tec_fail(err, TEC_UNSUPPORTED, "%d frames of %d tokens", j->n_frames, j->n_tokens);
    TEC_TRY(tec_pi_open_tensors(pi, err));
    TEC_TRY(tec_pi_plan(pi, &j->plan, 10, MAX_FRAMES, j->n_tokens + 1, true, err));
    for (int i = 0; i < j->n_frames; i++)
        TEC_TRY(tec_pi_read(pi, tec_arena_printf(pi->v->arena, "frame%d.", i), &j->in[i], err));
    TEC_TRY(judge_frames(j, err));
    judge_timeline(j);
    return judge_five(j, err);
}

enum tec_status tec_verify_pi_frames(struct tec_verify *v, struct tec_error *err)
{
    struct tec_pi pi;
    struct judge j = {.pi = &pi};
    const char *mask = json_string_value(json_object_get(v->json, "mask"));
    enum tec_status status = tec_pi_open(&pi, v, NULL, mask, err);
    if (status == TEC_OK)
        status = judge_case(&j, err);
    tec_plan_destroy(j.plan);
    tec_pi_finish(&pi);
    return status;
}
