/* demo_episodes.c - judges cases of kind "episodes": what a robot sent, through a session and the
 * plan, gives the recorded prompts, actions and sentences. */
#include "tests/judge/episodes.h"
#include "tests/judge/pi_text.h"
#include "tests/judge/stage_times.h"

#include <string.h>

enum { MAX_NEW = 64 };

/* What all inferences of one episode gave; the first index is the inference. */
struct run {
    float *state, *hidden, *logits, *v_t, *actions, *robot;
    int *prompt, *text; /* padded with 0 */
    int *n_prompt, *n_text;
};

static void report(struct tec_episodes *j, const char *what, int wrong, const char *note)
{
    tec_verify_report(j->pi.v, tec_episodes_name(j, what), wrong, 0.0, 0.0, wrong == 0, NULL, note);
}

static int get_int(const json_t *object, const char *name)
{
    return (int)json_integer_value(json_object_get(object, name));
}

static enum tec_status give_run(struct tec_episodes *j, struct run *run, struct tec_error *err)
{
    struct tec_arena *arena = j->pi.v->arena;
    const struct tec_text *text = &j->pi.model->text;
    size_t n = (size_t)j->n;
    int most = j->pi.max_text > j->prompt_width ? j->pi.max_text : j->prompt_width;
    j->prompt_width = most;
    if (j->text_width < j->new_tokens)
        j->text_width = j->new_tokens;
    *run = (struct run){.state = TEC_NEW(arena, n * (size_t)j->n_state, float),
                        .hidden = TEC_NEW(arena, n * (size_t)text->stack.width, float),
                        .logits = TEC_NEW(arena, n * (size_t)text->vocab, float),
                        .v_t = TEC_NEW(arena, n * j->chunk, float),
                        .actions = TEC_NEW(arena, n * j->chunk, float),
                        .robot = TEC_NEW(arena, n * j->robot_chunk, float),
                        .prompt = TEC_NEW(arena, n * (size_t)most, int),
                        .text = TEC_NEW(arena, n * (size_t)j->text_width, int),
                        .n_prompt = TEC_NEW(arena, n, int),
                        .n_text = TEC_NEW(arena, n, int)};
    bool all = run->state && run->hidden && run->logits && run->v_t && run->actions && run->robot &&
               run->prompt && run->text && run->n_prompt && run->n_text;
    return all ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory to judge with");
}

/* A tap's values for inference i; a tensor that stays zero is judged not ok. */
static void keep_tap(struct tec_episodes *j, const struct tec_plan_part *part, const char *name,
                     int rows, int i, float *to, size_t want)
{
    size_t n = 0;
    const float *tap = tec_pi_tap(&j->pi, part, name, 0, rows, &n);
    if (tap && n == want)
        memcpy(to + (size_t)i * n, tap, n * sizeof *to);
}

/* Text of inference i until the end token, at most new_tokens. */
static void decode(struct tec_episodes *j, const struct tec_pi_request *r, int i, bool taps,
                   struct run *run)
{
    const struct tec_prefix_input *o = &r->in->o;
    const struct tec_text *text = &j->pi.model->text;
    struct tec_plan_part *part = tec_plan_part(r->plan, TEC_PART_DECODE, 1);
    struct tec_row_state row, *rows[] = {&row};
    int *to = run->text + (size_t)i * (size_t)j->text_width, have = 0, made = 0;
    tec_row_start(&row, r->plan, r->region, tec_prefix_rows(r->plan, o), o->ids[o->n_text - 1],
                  r->request_slot, j->new_tokens, j->eos);
    while (!row.done && have < j->new_tokens) {
        struct tec_replay replay = {0};
        int k = taps && have == 0 ? 1 : j->new_tokens - have;
        tec_launch_decode(r->plan, part, rows, 1, k, to + have, &made, &replay);
        tec_verify_replayed(j->pi.v, r->plan, &replay);
        if (taps && have == 0) {
            keep_tap(j, part, "logits", 1, i, run->logits, (size_t)text->vocab);
            keep_tap(j, part, "last_hidden", 1, i, run->hidden, (size_t)text->stack.width);
        }
        if (made < 1)
            break;
        have += made;
    }
    run->n_text[i] = have;
}

/* As many rows as inference i was given; a number that does not fit is refused by the session. */
static void give_rows(const struct tec_episodes *j, int i, struct tec_value *v)
{
    const json_t *inference = json_array_get(json_object_get(j->episode, "inferences"), (size_t)i);
    int64_t rows = get_int(inference, "given");
    int64_t most = v->shape[0];
    v->shape[0] = rows;
    if (rows >= 0 && rows <= most && most > 0)
        v->bytes = v->bytes / (size_t)most * (size_t)rows;
}

static enum tec_status infer(struct tec_episodes *j, int i, bool taps, struct run *run,
                             struct tec_error *err)
{
    const struct tec_flow *flow = &j->pi.model->flow;
    struct tec_value values[TEC_MAX_CAMERAS + 3];
    struct tec_frame_input input;
    for (int v = 0; v < j->n_values; v++) {
        values[v] = j->values[v];
        values[v].data = (const char *)values[v].data + (size_t)i * j->stride[v];
    }
    if (j->given)
        give_rows(j, i, &values[j->n_values - 1]);
    TEC_TRY(tec_session_observe(j->session, values, (size_t)j->n_values,
                                j->noise + (size_t)i * j->chunk, i, 0, &input, NULL, err));
    const struct tec_chain_input *seen = &input.chains[0];
    const struct tec_pi_inputs in = {.o = seen->prefix,
                                     .noise = seen->noise[0],
                                     .state = seen->state,
                                     .n_fixed = seen->n_fixed[0]};
    struct tec_pi_request r = {.in = &in,
                               .plan = taps ? j->plan : j->plain,
                               .region = taps ? j->region : j->plain_region,
                               .n = j->new_tokens};
    TEC_TRY(tec_pi_prefill(&j->pi, &r, 0, 0, err));
    if (taps)
        keep_tap(j, tec_plan_part(r.plan, TEC_PART_FRAME, 0), "v_t.0", flow->horizon, i, run->v_t,
                 j->chunk);
    memcpy(run->state + (ptrdiff_t)i * j->n_state, seen->state, (size_t)j->n_state * sizeof(float));
    memcpy(run->prompt + (size_t)i * (size_t)j->prompt_width, seen->prefix.ids,
           (size_t)seen->prefix.n_text * sizeof(int));
    run->n_prompt[i] = seen->prefix.n_text;
    memcpy(run->actions + (size_t)i * j->chunk, r.actions, j->chunk * sizeof(float));
    double *robot = TEC_NEW(j->pi.v->arena, j->robot_chunk, double);
    if (!robot)
        return tec_fail(err, TEC_NO_MEMORY, "no memory to judge with");
    tec_session_act_on(j->session, tec_session_observation(j->session)->state_raw, r.actions, robot,
                       NULL);
    for (size_t k = 0; k < j->robot_chunk; k++)
        run->robot[(size_t)i * j->robot_chunk + k] = (float)robot[k];
    decode(j, &r, i, taps, run);
    return TEC_OK;
}

/* Whether the words of inference i must be the expected ones in this dtype. */
static bool text_counts(const struct tec_episodes *j, const json_t *inference)
{
    return strcmp(j->pi.v->dtype, "bf16") != 0 ||
           json_is_true(json_object_get(inference, "bf16_text_ids_equal"));
}

static int ids_differ(const json_t *want, const int *got, int n)
{
    int wrong = json_array_size(want) != (size_t)n || !json_is_array(want);
    for (int i = 0; i < n; i++)
        wrong += json_integer_value(json_array_get(want, (size_t)i)) != got[i];
    return wrong;
}

/* The text that was given to the tokenizer, and its bins: of the last observation. */
static enum tec_status count_prompt(struct tec_episodes *j, const json_t *inference, int wrong[2],
                                    struct tec_error *err)
{
    const struct tec_observation *seen = tec_session_observation(j->session);
    const struct tec_template *t = tec_session_template(j->session);
    const char *want = json_string_value(json_object_get(inference, "prompt")), *text;
    size_t left = want ? json_string_length(json_object_get(inference, "prompt")) : 0, n;
    const struct tec_template_values values = {
        {{.text = seen->text, .n = seen->text_bytes}}, 1, seen->bins, seen->n_bins};
    bool same = want != NULL;
    for (int i = 0; i < t->n_calls; i++) {
        TEC_TRY(tec_template_render(&text, &n, t, i, &values, j->pi.v->arena, err));
        same = same && n <= left && memcmp(text, want, n) == 0;
        want += same ? n : 0;
        left -= same ? n : 0;
    }
    wrong[0] += !same || left != 0;
    if (seen->n_bins > 0)
        wrong[1] += ids_differ(json_object_get(inference, "state_bins"), seen->bins, seen->n_bins);
    return TEC_OK;
}

/* The sentence of inference i as the stream would show it. */
static enum tec_status sentence(struct tec_episodes *j, const struct run *run, int i,
                                const char **out, struct tec_error *err)
{
    const int *ids = run->text + (size_t)i * (size_t)j->text_width;
    char *text;
    size_t bytes;
    TEC_TRY(tec_tokenizer_decode(j->tokenizer, ids, (size_t)run->n_text[i], true, j->pi.v->arena,
                                 &text, &bytes, err));
    *out = text;
    return TEC_OK;
}

/* What was said, as [control step, sentence] wherever it changed. */
static enum tec_status judge_text(struct tec_episodes *j, const struct run *run,
                                  struct tec_error *err)
{
    const json_t *inferences = json_object_get(j->episode, "inferences");
    json_t *said = json_array();
    const char *before = NULL;
    enum tec_status status = TEC_OK;
    int wrong = 0, wrong_ids = 0;
    for (int i = 0; i < j->n && status == TEC_OK; i++) {
        const json_t *inference = json_array_get(inferences, (size_t)i);
        const char *want = json_string_value(json_object_get(inference, "text")), *text = want;
        if (text_counts(j, inference)) {
            status = sentence(j, run, i, &text, err);
            wrong_ids += ids_differ(json_object_get(inference, "text_ids"),
                                    run->text + (size_t)i * (size_t)j->text_width, run->n_text[i]);
        }
        wrong += status != TEC_OK || !want || !text || strcmp(text, want) != 0;
        if (text && (!before || strcmp(before, text) != 0))
            json_array_append_new(said, json_pack("[i, s]", get_int(inference, "step"), text));
        before = text;
    }
    report(j, "text", wrong, NULL);
    report(j, "inferences.text_ids", wrong_ids, NULL);
    const json_t *want = json_object_get(j->episode, "sentences");
    report(j, "sentences", !json_equal(said, want), NULL);
    json_decref(said);
    return status;
}

static void judge_ids(struct tec_episodes *j, const char *what, int *got, int width, bool text)
{
    size_t n = 0;
    const char *name = tec_episodes_name(j, what);
    const json_t *inferences = json_object_get(j->episode, "inferences");
    const int *want = tec_pi_ids(&j->pi, name, &n);
    bool sized = want && n == (size_t)j->n * (size_t)width;
    int left_out = 0;
    for (int i = 0; sized && text && i < j->n; i++)
        if (!text_counts(j, json_array_get(inferences, (size_t)i))) {
            memcpy(got + (ptrdiff_t)i * width, want + (ptrdiff_t)i * width,
                   (size_t)width * sizeof *got);
            left_out++;
        }
    tec_verify_ids(j->pi.v, name, got, (size_t)j->n * (size_t)width, want, want ? n : 0);
    tec_verify_part(j->pi.v, name, n - (size_t)left_out * (size_t)width, n,
                    "of these sentences the recorded bf16 run chose other tokens");
}

static void judge_tensors(struct tec_episodes *j, struct run *run)
{
    struct tec_pi *pi = &j->pi;
    const struct tec_text *text = &pi->model->text;
    size_t n = (size_t)j->n;
    tec_pi_compare(pi, tec_episodes_name(j, "state_norm"), run->state, n * (size_t)j->n_state,
                   NULL);
    tec_pi_compare(pi, tec_episodes_name(j, "prefix_last_hidden"), run->hidden,
                   n * (size_t)text->stack.width, "unfused");
    tec_pi_compare(pi, tec_episodes_name(j, "logits0"), run->logits, n * (size_t)text->vocab,
                   "unfused");
    tec_pi_compare(pi, tec_episodes_name(j, "v_t0"), run->v_t, n * j->chunk, "unfused");
    tec_pi_compare(pi, tec_episodes_name(j, "actions"), run->actions, n * j->chunk, NULL);
    tec_pi_compare(pi, tec_episodes_name(j, "robot_actions"), run->robot, n * j->robot_chunk, NULL);
    judge_ids(j, "prompt_ids", run->prompt, j->prompt_width, false);
}

/* As it runs on a robot: no taps, fused, the sentence in one launch. The same bytes. */
static enum tec_status judge_plain(struct tec_episodes *j, const struct run *run,
                                   struct tec_error *err)
{
    struct run plain;
    size_t n = (size_t)j->n, ids = n * (size_t)j->text_width;
    TEC_TRY(give_run(j, &plain, err));
    for (int i = 0; i < j->n; i++)
        TEC_TRY(infer(j, i, false, &plain, err));
    tec_pi_same(&j->pi, tec_episodes_name(j, "actions.fused_equals_unfused"), plain.actions,
                run->actions, n * j->chunk * sizeof(float));
    tec_pi_same(&j->pi, tec_episodes_name(j, "robot_actions.fused_equals_unfused"), plain.robot,
                run->robot, n * j->robot_chunk * sizeof(float));
    tec_pi_same(&j->pi, tec_episodes_name(j, "text_ids.fused_equals_unfused"), plain.text,
                run->text, ids * sizeof(int));
    return TEC_OK;
}

static enum tec_status judge_episode(struct tec_episodes *j, struct tec_error *err)
{
    const json_t *inferences = json_object_get(j->episode, "inferences");
    const json_t *valid = json_object_get(j->pi.v->json, "cameras_valid");
    int wrong[2] = {0, 0}, wrong_ids = 0, wrong_cameras = 0;
    struct run run;
    j->n = (int)json_array_size(inferences);
    if (j->n < 1)
        return tec_fail(err, TEC_MALFORMED, "the episode has no inferences");
    TEC_TRY(tec_episodes_inputs(j, err));
    TEC_TRY(give_run(j, &run, err));
    for (int i = 0; i < j->n; i++) {
        const json_t *inference = json_array_get(inferences, (size_t)i);
        TEC_TRY(infer(j, i, true, &run, err));
        TEC_TRY(count_prompt(j, inference, wrong, err));
        wrong_ids += ids_differ(json_object_get(inference, "prompt_ids"),
                                run.prompt + (ptrdiff_t)i * j->prompt_width, run.n_prompt[i]);
        for (int s = 0; s < j->pi.model->n_slots; s++)
            wrong_cameras += tec_session_observation(j->session)->valid[s] !=
                             json_is_true(json_array_get(valid, (size_t)s));
    }
    report(j, "prompt", wrong[0], NULL);
    report(j, "state_bins", wrong[1], NULL);
    report(j, "inferences.prompt_ids", wrong_ids, NULL);
    report(j, "cameras_valid", wrong_cameras, NULL);
    judge_tensors(j, &run);
    TEC_TRY(judge_text(j, &run, err));
    TEC_TRY(judge_plain(j, &run, err));
    judge_ids(j, "text_ids", run.text, j->text_width, true); /* last: may overwrite */
    return TEC_OK;
}

static enum tec_status judge_case(struct tec_episodes *j, struct tec_error *err)
{
    struct tec_pi *pi = &j->pi;
    const json_t *processing = json_object_get(pi->v->json, "processing");
    const json_t *episodes = json_object_get(pi->v->json, "episodes");
    size_t i;
    j->steps = get_int(pi->v->json, "denoise_steps");
    j->new_tokens = get_int(processing, "max_text_tokens");
    j->eos = json_object_get(processing, "eos_id") ? get_int(processing, "eos_id") : -1;
    if (j->steps < 1 || j->steps > 1000 || j->new_tokens < 1 || j->new_tokens > MAX_NEW ||
        json_array_size(episodes) < 1)
        return tec_fail(err, TEC_UNSUPPORTED, "%zu episodes of %d steps and %d tokens",
                        json_array_size(episodes), j->steps, j->new_tokens);
    TEC_TRY(tec_pi_open_tensors(pi, err));
    TEC_TRY(tec_episodes_open(j, err));
    j->chunk = (size_t)pi->model->flow.horizon * (size_t)pi->model->flow.dim;
    j->robot_chunk = (size_t)tec_session_rows(j->session) * (size_t)tec_session_columns(j->session);
    TEC_TRY(tec_pi_plan(pi, &j->plan, j->steps, 1, j->new_tokens, true, err));
    TEC_TRY(tec_pi_plan(pi, &j->plain, j->steps, 1, j->new_tokens, false, err));
    j->region = tec_kv_pool_take(&j->plan->prefixes);
    j->plain_region = tec_kv_pool_take(&j->plain->prefixes);
    json_array_foreach(episodes, i, j->episode)
    {
        struct tec_error mine;
        j->key = json_string_value(json_object_get(j->episode, "key"));
        if (!j->key)
            return tec_fail(err, TEC_MALFORMED, "episodes[%zu] has no key", i);
        if (judge_episode(j, &mine) != TEC_OK)
            tec_verify_cannot(pi->v, j->key, &mine);
    }
    return TEC_OK;
}

enum tec_status tec_verify_demo_episodes(struct tec_verify *v, struct tec_error *err)
{
    struct tec_episodes j = {.region = -1};
    const json_t *mask = json_object_get(json_object_get(v->json, "processing"), "text_mask");
    tec_diagnostics_init(&j.diagnostics, v->heap);
    enum tec_status status = tec_pi_open(&j.pi, v, NULL, json_string_value(mask), err);
    if (status == TEC_OK)
        status = judge_case(&j, err);
    tec_session_destroy(j.session);
    tec_tokenizer_close(j.tokenizer);
    tec_plan_destroy(j.plain);
    tec_plan_destroy(j.plan);
    json_decref(j.robot);
    tec_pipeline_free(j.shipped);
    tec_diagnostics_finish(&j.diagnostics);
    tec_pi_finish(&j.pi);
    return status;
}
