/* openvla_ring.c - judges cases of kind "ring": frames that the model's own code ran one by one go
 * through a ring, forward by forward as the case lists them, and each must say the same. */
#include "graph/kv/stages.h"
#include "graph/run/launch/launch_ring.h"
#include "tests/judge/openvla.h"
#include "tests/judge/openvla_prepost.h"
#include "tests/judge/stage_times.h"

#include <string.h>

enum { MAX_FRAMES = 64 };

/* One frame of the case: what it is given, and row by row what its forwards left behind. */
struct sequence {
    struct tec_prefix_input o;
    const json_t *json;
    int rows, made; /* of the prefix; tokens so far */
    struct tec_row_state row;
    float *logits, *norm, **k, **v; /* [K, ..]; k, v: by layer */
    int tokens[TEC_MAX_STAGES];
};

struct ring_judge {
    struct tec_pi *pi;
    struct tec_plan *plan;
    int stages, n;
    struct sequence all[MAX_FRAMES];
};

static int64_t number(const json_t *from, const char *field)
{
    return json_integer_value(json_object_get(from, field));
}

static enum tec_status take_room(struct ring_judge *j, struct sequence *s, struct tec_error *err)
{
    const struct tec_text *t = &j->pi->model->text;
    struct tec_arena *arena = j->pi->v->arena;
    size_t layers = (size_t)t->stack.layers, K = (size_t)j->stages;
    size_t cols = (size_t)t->stack.kv_heads * (size_t)t->stack.head_dim;
    s->logits = TEC_NEW(arena, K * (size_t)t->vocab, float);
    s->norm = TEC_NEW(arena, K * (size_t)t->stack.width, float);
    s->k = TEC_NEW(arena, layers, float *);
    s->v = TEC_NEW(arena, layers, float *);
    bool ok = s->logits && s->norm && s->k && s->v;
    for (size_t l = 0; ok && l < layers; l++) {
        s->k[l] = TEC_NEW(arena, K * cols, float);
        s->v[l] = TEC_NEW(arena, K * cols, float);
        ok = s->k[l] && s->v[l];
    }
    return ok ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for a sequence");
}

static enum tec_status collect(struct ring_judge *j, struct tec_error *err)
{
    const json_t *frames = json_object_get(j->pi->v->json, "frames");
    size_t n = json_array_size(frames);
    int64_t stages = number(j->pi->v->json, "K");
    if (n < 1 || n > MAX_FRAMES || stages < 2 || stages > TEC_MAX_STAGES)
        return tec_fail(err, TEC_UNSUPPORTED,
                        "the case has %zu frames and %lld stages; this judge takes 1 .. %d, 2 .. "
                        "%d",
                        n, (long long)stages, MAX_FRAMES, TEC_MAX_STAGES);
    j->n = (int)n;
    j->stages = (int)stages;
    for (int i = 0; i < j->n; i++) {
        struct sequence *s = &j->all[i];
        char name[32];
        s->json = json_array_get(frames, (size_t)i);
        const char *image = json_string_value(json_object_get(s->json, "image"));
        if (!image)
            return tec_fail(err, TEC_MALFORMED, "frame %d of the case has no image", i);
        snprintf(name, sizeof name, "input_ids.%d", i);
        s->o.n_pictures = 1;
        s->o.picture[0] = tec_openvla_picture(j->pi, image, err);
        s->o.ids = s->o.picture[0] ? tec_openvla_prompt(j->pi, name, &s->o.n_text, err) : NULL;
        if (!s->o.ids)
            return err->status;
        if (s->o.n_text > j->pi->max_text)
            j->pi->max_text = s->o.n_text;
        TEC_TRY(take_room(j, s, err));
    }
    return TEC_OK;
}

static enum tec_status plan(struct ring_judge *j, bool shifts, bool gathers, struct tec_error *err)
{
    const struct tec_model *m = j->pi->model;
    int prefix = m->vision.tokens + j->pi->max_text;
    const struct tec_plan_spec spec = {.frame_tokens = prefix,
                                       .text_tokens = j->pi->max_text,
                                       .stages = j->stages,
                                       .ring_tokens = prefix + j->stages,
                                       .shifts = shifts,
                                       .gathers = gathers,
                                       .new_tokens = j->stages,
                                       .max_k = 1,
                                       .n_batches = 1,
                                       .batches = {j->stages - 1},
                                       .round = j->pi->v->round,
                                       .taps = true,
                                       .whole = true};
    const struct tec_plan_inputs in = {.spec = &spec,
                                       .model = m,
                                       .weights = j->pi->weights,
                                       .source = {.checkpoint = j->pi->checkpoint},
                                       .device = j->pi->device};
    tec_plan_destroy(j->plan);
    j->plan = NULL;
    return tec_plan_create(&j->plan, &in, j->pi->v->heap, err);
}

/* The token that the case chose last is the next input, whatever this dtype would say. */
static void place(const struct ring_judge *j, struct sequence *s, int region)
{
    int first = j->plan->prefixes.first[region];
    const json_t *ids = json_object_get(s->json, "action_token_ids");
    s->row.region = region;
    s->row.prefix = s->rows;
    s->row.tail = first + s->rows;
    s->row.pos = s->rows + s->made - 1;
    s->row.slot = first + s->row.pos;
    s->row.visible = s->row.pos + 1;
    s->row.left = j->stages + 1;
    s->row.done = 0;
    s->row.eos = -1;
    s->row.token = s->made ? (int)json_integer_value(json_array_get(ids, (size_t)s->made - 1)) : 0;
}

/* Row `at` of a tap into row s->made of a sequence's tensor. */
static bool keep(const struct ring_judge *j, const struct tec_plan_part *part, const char *name,
                 int at, const struct sequence *s, float *to)
{
    for (int i = 0; i < part->taps.n; i++) {
        const struct tec_tap *t = &part->taps.items[i];
        if (strcmp(t->name, name) != 0)
            continue;
        tec_device_download(j->pi->device, TEC_STREAM_MAIN, to + (size_t)s->made * (size_t)t->cols,
                            t->data + (size_t)at * (size_t)t->ld, (size_t)t->cols * sizeof(float));
        return true;
    }
    return false;
}

/* What a forward left of the sequence in its `seq`-th row: row `at` of the packed rows. */
static bool keep_all(const struct ring_judge *j, const struct tec_plan_part *part, int seq, int at,
                     struct sequence *s)
{
    const char *prefix = part->kind == TEC_PART_PACKED ? "prefix" : "decode";
    bool all =
        keep(j, part, "logits", seq, s, s->logits) && keep(j, part, "last_hidden", seq, s, s->norm);
    for (int l = 0; l < j->pi->model->text.stack.layers; l++) {
        char name[64];
        snprintf(name, sizeof name, "%s.layer%d.k_rope", prefix, l);
        all = all && keep(j, part, name, at, s, s->k[l]);
        snprintf(name, sizeof name, "%s.layer%d.v", prefix, l);
        all = all && keep(j, part, name, at, s, s->v[l]);
    }
    return all;
}

/* One entry of the schedule; a segment at stage 0 brings its prefix. */
static enum tec_status forward(struct ring_judge *j, const json_t *step, int turn, int *wrong,
                               struct tec_error *err)
{
    const json_t *segments = json_object_get(step, "segments");
    struct sequence *of[TEC_MAX_STAGES];
    struct tec_row_state *rows[TEC_MAX_STAGES];
    struct tec_ring_move moves[TEC_MAX_STAGES];
    int n = (int)json_array_size(segments), tokens[TEC_MAX_STAGES];
    struct tec_replay replay = {0};
    if (n < 1 || n > j->stages)
        return tec_fail(err, TEC_MALFORMED, "step %d of the schedule has %d segments", turn, n);
    for (int i = 0; i < n; i++) {
        const json_t *segment = json_array_get(segments, (size_t)i);
        int64_t at = number(segment, "frame");
        if (at < 0 || at >= j->n || number(segment, "stage") != j->all[at].made)
            return tec_fail(err, TEC_MALFORMED, "step %d of the schedule: segment %d", turn, i);
        of[i] = &j->all[at];
        of[i]->rows = tec_prefix_rows(j->plan, &of[i]->o);
        place(j, of[i], j->plan->spec.shifts ? of[i]->made : (int)(at % j->stages));
        *wrong += of[i]->row.visible != number(segment, "kv_length_after");
        rows[i] = &of[i]->row;
    }
    bool packed = of[0]->made == 0;
    struct tec_plan_part *part =
        tec_plan_part(j->plan, packed ? TEC_PART_PACKED : TEC_PART_DECODE, n);
    const struct tec_prefix_input *prefix = &of[0]->o;
    struct tec_ring_rows in = {
        .prefixes = &prefix, .rows = rows, .entering = packed, .n = n - packed, .moves = moves};
    in.n_moves = j->plan->spec.shifts ? tec_launch_ring_moves(j->plan, rows, n, moves) : 0;
    if (packed)
        tec_launch_packed(j->plan, part, &in, tokens, &replay);
    else
        tec_launch_advance(j->plan, part, &in, tokens, &replay);
    tec_verify_replayed(j->pi->v, j->plan, &replay);
    TEC_TRY(tec_device_failure(j->pi->device, err));
    for (int i = 0; i < n; i++) {
        int at = packed ? of[0]->rows - 1 + i : i;
        if (!keep_all(j, part, i, at, of[i]))
            return tec_fail(err, TEC_NOT_FOUND, "a forward has no taps of its rows");
        of[i]->tokens[of[i]->made++] = tokens[i];
    }
    return TEC_OK;
}

static enum tec_status run(struct ring_judge *j, const char *name, struct tec_error *err)
{
    const json_t *schedule = json_object_get(j->pi->v->json, "schedule"), *step;
    int wrong = 0;
    size_t at;
    for (int i = 0; i < j->n; i++)
        j->all[i].made = 0;
    json_array_foreach((json_t *)(uintptr_t)schedule, at, step)
    {
        TEC_TRY(forward(j, step, (int)at, &wrong, err));
    }
    tec_verify_report(j->pi->v, tec_arena_printf(j->pi->v->arena, "%s.schedule", name),
                      (double)wrong, 0.0, 0.0, wrong == 0 && at > 0, NULL, NULL);
    return TEC_OK;
}

/* [K, heads, dim] to [heads, K, dim]. */
static const float *by_head(const struct ring_judge *j, const float *rows, size_t *n)
{
    const struct tec_stack *s = &j->pi->model->text.stack;
    size_t heads = (size_t)s->kv_heads, dim = (size_t)s->head_dim, K = (size_t)j->stages;
    float *out = TEC_NEW(j->pi->v->arena, K * heads * dim, float);
    *n = out ? K * heads * dim : 0;
    for (size_t r = 0; out && r < K; r++)
        for (size_t h = 0; h < heads; h++)
            memcpy(out + (h * K + r) * dim, rows + (r * heads + h) * dim, dim * sizeof *out);
    return out;
}

static void compare(struct ring_judge *j, int index)
{
    const struct tec_text *t = &j->pi->model->text;
    const struct sequence *s = &j->all[index];
    struct tec_arena *arena = j->pi->v->arena;
    size_t K = (size_t)j->stages, n;
    tec_pi_compare(j->pi, tec_arena_printf(arena, "frame%d.logits", index), s->logits,
                   K * (size_t)t->vocab, NULL);
    tec_pi_compare(j->pi, tec_arena_printf(arena, "frame%d.llm.norm", index), s->norm,
                   K * (size_t)t->stack.width, NULL);
    for (int l = 0; l < t->stack.layers; l++) {
        const float *k = by_head(j, s->k[l], &n);
        tec_pi_compare(j->pi, tec_arena_printf(arena, "frame%d.llm.layer%d.k_rope", index, l), k, n,
                       NULL);
        const float *v = by_head(j, s->v[l], &n);
        tec_pi_compare(j->pi, tec_arena_printf(arena, "frame%d.llm.layer%d.v", index, l), v, n,
                       NULL);
    }
}

/* The tokens of the case; in bf16 those up to where the model's own bf16 run chose another. */
static void compare_tokens(struct ring_judge *j, int index, const char *name)
{
    const struct sequence *s = &j->all[index];
    const json_t *ids = json_object_get(s->json, "action_token_ids");
    const json_t *bf16 = json_object_get(s->json, "action_token_ids_bf16");
    bool rounded = strcmp(j->pi->v->dtype, "bf16") == 0 && bf16;
    int want[TEC_MAX_STAGES];
    size_t n = 0;
    for (; n < (size_t)j->stages && n < json_array_size(ids); n++) {
        if (rounded && !json_equal(json_array_get(ids, n), json_array_get(bf16, n)))
            break;
        want[n] = (int)json_integer_value(json_array_get(ids, n));
    }
    tec_verify_ids(j->pi->v, tec_arena_printf(j->pi->v->arena, "%s.frame%d.tokens", name, index),
                   s->tokens, n, want, n);
}

static enum tec_status judge_case(struct ring_judge *j, struct tec_error *err)
{
    static const char *const names[] = {"rotate", "device_copy", "gather"};
    size_t vocab = (size_t)j->pi->model->text.vocab;
    TEC_TRY(tec_pi_open_tensors(j->pi, err));
    TEC_TRY(collect(j, err));
    float *first = TEC_NEW(j->pi->v->arena, (size_t)j->n * (size_t)j->stages * vocab, float);
    if (!first)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for logits");
    size_t each = (size_t)j->stages * vocab;
    for (int variant = 0; variant < 3; variant++) {
        TEC_TRY(plan(j, variant == 1, variant == 2, err));
        TEC_TRY(run(j, names[variant], err));
        for (int i = 0; i < j->n; i++) {
            compare_tokens(j, i, names[variant]);
            if (variant == 0) {
                compare(j, i);
                memcpy(first + (size_t)i * each, j->all[i].logits, each * sizeof *first);
                continue;
            }
            const char *check = tec_arena_printf(j->pi->v->arena, "%s.frame%d.logits_equal_rotate",
                                                 names[variant], i);
            tec_pi_same(j->pi, check, first + (size_t)i * each, j->all[i].logits,
                        each * sizeof *first);
        }
    }
    return TEC_OK;
}

enum tec_status tec_verify_openvla_ring(struct tec_verify *v, struct tec_error *err)
{
    struct tec_pi pi;
    struct ring_judge *j = tec_arena_push(v->arena, 1, sizeof *j, 64);
    const char *checkpoint = json_string_value(json_object_get(v->json, "checkpoint"));
    if (!j)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a judge");
    memset(j, 0, sizeof *j);
    j->pi = &pi;
    enum tec_status status = tec_pi_open(&pi, v, checkpoint ? checkpoint : "checkpoint", NULL, err);
    if (status == TEC_OK)
        status = judge_case(j, err);
    if (status == TEC_OK)
        tec_verify_openvla_prepost(v, pi.checkpoint, pi.inputs, pi.expected);
    tec_plan_destroy(j->plan);
    tec_pi_finish(&pi);
    return status;
}
