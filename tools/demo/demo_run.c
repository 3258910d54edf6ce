/* demo_run.c - one episode under two policies, frame by frame in turn. */
#include "tools/demo/demo.h"
#include "tools/frames/frame_print.h"
#include "tools/frames/noise_file.h"

#include <math.h>
#include <string.h>

enum { MAX_DRAIN = 1000 };

static enum tec_status prepare_side(struct tec_demo_side *s, const struct tec_demo_episode *e,
                                    struct tec_arena *arena, struct tec_error *err)
{
    s->most = e->most;
    s->texts = TEC_NEW(arena, (size_t)TEC_DEMO_FRAMES * (size_t)e->most, int);
    s->counts = TEC_NEW(arena, TEC_DEMO_FRAMES, int);
    s->said = TEC_NEW(arena, TEC_DEMO_FRAMES, char *);
    if (!s->texts || !s->counts || !s->said)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for an episode");
    tec_frames_reset(&s->f);
    return TEC_OK;
}

static enum tec_status step(struct tec_demo_side *s, const struct tec_inputs_frame *given,
                            const float *noise, struct tec_arena *arena, struct tec_error *err)
{
    int launches = 0;
    TEC_TRY(tec_frames_next(&s->f, given ? given->values : NULL, given ? given->n : 0, noise,
                            &s->frame, err));
    const struct tec_frame_record *r = s->frame->record;
    tec_frame_batch(&s->f, r, &launches);
    s->tokens += r->tokens;
    s->rows += r->rows;
    s->launches += launches;
    s->busy_ns += r->end_ns - r->start_ns;
    if (given && s->n < TEC_DEMO_FRAMES * TEC_DEMO_EPISODES) {
        s->frame_us[s->n] = (double)(r->end_ns - r->start_ns) / 1e3;
        s->action_us[s->n++] = (double)(r->actions[0].release_ns - r->start_ns) / 1e3;
    }
    for (int i = 0; i < s->frame->n_texts; i++) {
        const struct tec_frame_text *t = &s->frame->texts[i];
        if (t->request >= TEC_DEMO_FRAMES || t->n_whole > s->most)
            continue; /* is missed in the comparison */
        s->counts[t->request] = t->n_whole;
        memcpy(s->texts + (size_t)t->request * (size_t)s->most, t->all,
               (size_t)t->n_whole * sizeof(int));
        if (t->done && !(s->said[t->request] = tec_arena_strdup(arena, t->whole)))
            return tec_fail(err, TEC_NO_MEMORY, "no memory for a sentence");
    }
    return TEC_OK;
}

static void compare_actions(struct tec_demo_result *r, const struct tec_demo *demo,
                            const struct tec_demo_episode *e, int frame)
{
    size_t n = (size_t)e->rows * (size_t)e->columns;
    const float *a = demo->sides[0].frame->chunk, *b = demo->sides[1].frame->chunk;
    const float *want = e->actions + (size_t)frame * n;
    r->equal_actions += memcmp(a, b, n * sizeof *a) == 0;
    for (size_t i = 0; i < n; i++) {
        double d = fabs((double)b[i] - (double)want[i]);
        if (!(d <= r->difference))
            r->difference = d; /* NaN stays */
    }
}

static void compare_texts(struct tec_demo_result *r, const struct tec_demo *demo,
                          const struct tec_demo_episode *e)
{
    const struct tec_demo_side *a = &demo->sides[0], *b = &demo->sides[1];
    size_t most = (size_t)e->most, bytes = most * sizeof(int);
    for (size_t i = 0; i < (size_t)r->frames; i++) {
        const json_t *recorded = json_array_get(e->inferences, i);
        const char *text = json_string_value(json_object_get(recorded, "text"));
        const int *ids = b->texts + i * most;
        r->equal_texts +=
            a->counts[i] == b->counts[i] && memcmp(a->texts + i * most, ids, bytes) == 0;
        r->recorded_texts += memcmp(ids, e->texts + i * most, bytes) == 0 && text && b->said[i] &&
                             strcmp(b->said[i], text) == 0;
    }
}

/* Keep the frame for the picture: the newest with the most rows in a launch. */
static void keep_shown(struct tec_demo *demo)
{
    const struct tec_demo_side *s = &demo->sides[1];
    int batch = tec_frame_batch(&s->f, s->frame->record, NULL);
    if (batch < demo->shown_batch)
        return;
    demo->shown_batch = batch;
    demo->shown = *s->frame->record;
}

static enum tec_status open_inputs(struct tec_inputs **inputs, struct tec_noise_file *noise,
                                   struct tec_demo *demo, const struct tec_demo_episode *e,
                                   struct tec_error *err)
{
    static const char *const tensors[] = {"image", "wrist_image", "state"};
    const struct tec_engine *engine = demo->sides[0].f.opened.engine;
    const char *words[4];
    struct tec_words list = {4, words};
    struct tec_arena *arena = demo->call->arena;
    const char *from = tec_arena_printf(arena, "%s#%s.noise", demo->recorded.inputs, e->key);
    for (int i = 0; i < 3; i++)
        words[i] = tec_arena_printf(arena, "observation/%s=@%s#%s.%s[*]", tensors[i],
                                    demo->recorded.inputs, e->key, tensors[i]);
    words[3] = tec_arena_printf(arena, "prompt=%s", e->instruction);
    if (!from || !words[0] || !words[1] || !words[2] || !words[3])
        return tec_fail(err, TEC_NO_MEMORY, "no memory for an episode's inputs");
    TEC_TRY(tec_frame_noise_file_open(noise, from, &engine->model->flow, demo->call->heap, err));
    return tec_inputs_open(inputs, engine->session, demo->sides[0].f.opened.pipeline, &list, NULL,
                           demo->call->heap, err);
}

static void print_line(struct tec_demo *demo, const struct tec_demo_episode *e)
{
    if (demo->quiet)
        return;
    fprintf(demo->call->out, "%-13s", e->key);
    tec_frame_text_line(demo->call->out, &demo->sides[1].f, demo->sides[1].frame);
}

/* The sides take turns in going first, so that neither finds the caches warmer. */
static enum tec_status run_frame(struct tec_demo *demo, const struct tec_inputs_frame *given,
                                 const float *noise, int frame, struct tec_error *err)
{
    struct tec_arena *arena = demo->call->arena;
    TEC_TRY(step(&demo->sides[frame % 2], given, noise, arena, err));
    return step(&demo->sides[1 - frame % 2], given, noise, arena, err);
}

static enum tec_status run_frames(struct tec_demo *demo, struct tec_demo_result *r,
                                  const struct tec_demo_episode *e, struct tec_inputs *inputs,
                                  struct tec_noise_file *noise, struct tec_error *err)
{
    struct tec_inputs_frame given;
    const float *values = NULL;
    for (int i = 0; i < e->n && demo->frames > 0; i++, demo->frames--, r->frames++) {
        TEC_TRY(tec_inputs_next(inputs, &given, err));
        TEC_TRY(tec_frame_noise_file_at(noise, i, &values, err));
        TEC_TRY(
            tec_context(err, run_frame(demo, &given, values, i, err), "%s, frame %d", e->key, i));
        if (!demo->sides[0].frame->acted || !demo->sides[1].frame->acted)
            return tec_fail(err, TEC_UNSUPPORTED, "%s: the pipeline made no actions", e->key);
        compare_actions(r, demo, e, i);
        keep_shown(demo);
        print_line(demo, e);
    }
    for (int i = 0; i < MAX_DRAIN; i++) {
        bool live = false;
        for (int s = 0; s < 2; s++)
            if (tec_loop_live(demo->sides[s].f.opened.engine->loop)) {
                live = true;
                TEC_TRY(step(&demo->sides[s], NULL, NULL, demo->call->arena, err));
                if (s == 1)
                    print_line(demo, e);
            }
        if (!live)
            break;
    }
    return TEC_OK;
}

static void add_result(struct tec_demo_result *sum, const struct tec_demo_result *r)
{
    sum->frames += r->frames;
    sum->equal_actions += r->equal_actions;
    sum->equal_texts += r->equal_texts;
    sum->recorded_texts += r->recorded_texts;
    if (!(r->difference <= sum->difference))
        sum->difference = r->difference;
}

enum tec_status tec_demo_run(struct tec_demo *demo, const struct tec_demo_episode *e,
                             struct tec_demo_result *result, struct tec_error *err)
{
    struct tec_inputs *inputs = NULL;
    struct tec_noise_file noise = {.tensors = NULL};
    const struct tec_flow *flow = &demo->sides[0].f.model->flow;
    struct tec_demo_result r = {.key = e->key};
    result->key = e->key;
    result->bound = demo->f32 ? e->bound_f32 : e->bound_bf16;
    if (flow->horizon != e->rows || flow->dim != e->columns)
        return tec_fail(err, TEC_SHAPE, "the recorded chunks are [%d, %d], the model's [%d, %d]",
                        e->rows, e->columns, flow->horizon, flow->dim);
    for (int i = 0; i < 2; i++)
        TEC_TRY(prepare_side(&demo->sides[i], e, demo->call->arena, err));
    enum tec_status status = open_inputs(&inputs, &noise, demo, e, err);
    if (status == TEC_OK)
        status = run_frames(demo, &r, e, inputs, &noise, err);
    compare_texts(&r, demo, e);
    add_result(result, &r);
    tec_inputs_close(inputs);
    tec_frame_noise_file_close(&noise);
    return status;
}
