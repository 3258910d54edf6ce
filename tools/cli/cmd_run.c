/* cmd_run.c - frames: inputs in, actions and text out. */
#include "tools/cli/run.h"

#include "base/out_file.h"
#include "tools/frames/dump.h"
#include "tools/frames/frame_print.h"
#include "tools/frames/noise_file.h"
#include "tools/frames/tick_print.h"
#include "tools/picture/frame_timeline.h"
#include "tools/serve/safety.h"

#include <limits.h>
#include <math.h>
#include <string.h>

enum { MAX_DRAIN = 100000 };

static const struct tec_option options[] = {TEC_RUN_ROWS};

/* The state of one call of the verb. */
struct job {
    const struct tec_run_options *o;
    struct tec_invocation *call;
    struct tec_frames frames;
    struct tec_control control;
    struct tec_inputs *inputs[TEC_MAX_SESSIONS]; /* of each session */
    struct tec_noise_file noise;
    struct tec_scheduling scheduling;
    bool is_scheduled;
    struct tec_out_file out;
    struct tec_dump *dump;
    struct tec_inputs_frame given[TEC_MAX_SESSIONS];
    struct tec_frame_record last;
    bool warned, unread, rated;                      /* have been told */
    bool over;                                       /* standard output is lost */
    bool stopped[TEC_MAX_SESSIONS][TEC_MAX_ACTIONS]; /* paced: whose robot was, in its last tick */
    struct tec_safety safety; /* paced: stops and ticks without a frame; for a recording */
    int64_t limited, told_ns; /* frames beyond limits; when one was told, not sooner than again */
};

/* Report clipped or refused actions, at most one line a second. The limits have done their work, so
 * this is no failure of the call. */
static void tell_limits(struct job *job, int64_t frame, const struct tec_beyond *beyond)
{
    enum { SECOND_NS = 1000000000 };
    char text[160];
    int64_t now = tec_clock_now(&job->frames.clock);
    if (beyond->n == 0)
        return;
    job->limited++;
    if (job->told_ns && now - job->told_ns < SECOND_NS)
        return;
    job->told_ns = now;
    tec_beyond_text(text, sizeof text, beyond);
    tec_say(job->call, "frame %lld: %s", (long long)frame, text);
}

static void warn(struct job *job, const struct tec_frame_out *frame)
{
    if (frame->warning[0] && !job->warned)
        tec_say(job->call, "frame %lld: %s", (long long)frame->record->frame, frame->warning);
    job->warned |= frame->warning[0] != '\0';
    const char *unread = tec_runtime_unread(&job->frames.runtime);
    if (unread && !job->unread)
        tec_say(job->call, "%s", unread);
    job->unread = unread != NULL;
    bool limited = false;
    for (int i = 0; i < job->frames.n_actions; i++) {
        const struct tec_frame_left *left = tec_frame_left_of(frame, i);
        if (left && left->beyond.n)
            tell_limits(job, frame->record->frame, &left->beyond);
        limited |= left && left->beyond.n > 0;
    }
    if (limited)
        return;
    char trouble[160];
    tec_frame_trouble(trouble, sizeof trouble, &job->frames, frame);
    if (trouble[0] && !job->call->wrong)
        tec_say(job->call, "frame %lld: %s", (long long)frame->record->frame, trouble);
    job->call->wrong |= trouble[0] != '\0';
}

/* Print a frame, or a tick if frames are paced. */
static enum tec_status print(struct job *job, const struct tec_frame_out *frame,
                             const struct tec_paced_tick *tick, struct tec_error *err)
{
    json_t *json = NULL;
    bool to_stdout = job->call->shared.format == TEC_FORMAT_JSON;
    enum tec_status status = TEC_OK;
    if (!to_stdout && tick)
        tec_tick_text_line(job->call->out, &job->frames, tick);
    else if (!to_stdout)
        tec_frame_text_line(job->call->out, &job->frames, frame);
    if (to_stdout || job->out.file)
        status = tick ? tec_tick_json(&json, &job->frames, tick, err)
                      : tec_frame_json(&json, &job->frames, frame, err);
    if (status == TEC_OK && to_stdout)
        status = tec_frame_line(job->call->out, json, err);
    if (status == TEC_OK && job->out.file)
        status = tec_frame_line(job->out.file, json, err);
    if (status == TEC_OK && job->out.file && ferror(job->out.file))
        status = tec_outfile_file_failed(&job->out, err);
    json_decref(json);
    return status;
}

static enum tec_status tell_frame(struct job *job, const struct tec_frame_out *frame,
                                  struct tec_error *err)
{
    job->last = *frame->record;
    if (job->dump)
        TEC_TRY(tec_dump_frame(job->dump, &job->frames, frame, err));
    warn(job, frame);
    return print(job, frame, NULL, err);
}

/* A frame of all sessions; `given` NULL: none has an observation. */
static enum tec_status run_frame(struct job *job, const struct tec_inputs_frame *given,
                                 struct tec_error *err)
{
    struct tec_frames *f = &job->frames;
    struct tec_frame_given values[TEC_MAX_SESSIONS] = {{NULL, 0}};
    const float *noise = NULL;
    int failed = 0;
    bool observed = false;
    for (int i = 0; i < f->n_sessions && given; i++) {
        if (!given[i].none)
            values[i] = (struct tec_frame_given){given[i].values, given[i].n};
        observed |= !given[i].none;
        tec_frames_ask(f, i, &given[i].asks);
    }
    if (observed)
        TEC_TRY(tec_frame_noise_file_at(&job->noise, f->frame, &noise, err));
    enum tec_status status = tec_frames_next_of_all(f, values, noise, &failed, err);
    if (status != TEC_OK)
        return tec_context(err, status, "%.180s", tec_inputs_place(job->inputs[failed]));
    for (int i = 0; i < f->n_sessions; i++)
        TEC_TRY(tell_frame(job, &f->sessions[i].out, err));
    return TEC_OK;
}

/* The next inputs of every session; *ended: of one of them there are no more. */
static enum tec_status next_inputs(struct job *job, bool *ended, struct tec_error *err)
{
    for (int i = 0; i < job->frames.n_sessions; i++) {
        TEC_TRY(tec_inputs_next(job->inputs[i], &job->given[i], err));
        *ended |= job->given[i].ended;
    }
    return TEC_OK;
}

/* Warn once where a tick's actions take the robot longer than a tick. */
static void warn_rate(struct job *job, const struct tec_paced_tick *tick)
{
    const struct tec_engine *e = job->frames.opened.engine;
    int rows = tick->n > 0 ? tick->given[0].rows : 0;
    if (job->rated || rows < 1)
        return;
    job->rated = true;
    const struct tec_robot *robot = tec_session_robot(e->session);
    if (!robot || !(robot->rate_hz > 0.0))
        return;
    double rate = robot->rate_hz, period_ms = (double)e->topology.period_us / 1e3;
    int most = (int)ceil(rate * period_ms / 1e3 - 0.02);
    most = most < 1 ? 1 : most;
    if (rows > most)
        tec_say(job->call,
                "each tick hands out %d actions, in %.4g ms %s carries out %d at %g Hz: say "
                "--actions %d, or a frame.period_ms of %.4g",
                rows, period_ms, robot->called, most, rate, most, rows * 1e3 / rate);
}

/* Say once that a session's robot is stopped, and why. */
static void note_stop(struct job *job, const struct tec_paced_tick *tick, int i)
{
    const struct tec_paced_given *given = &tick->given[i];
    bool *told = &job->stopped[tick->session][i], before = *told;
    char why[200], who[40] = "";
    *told = given->source == TEC_SOURCE_STOPPED;
    if (before || !*told)
        return;
    const struct tec_engine *e = job->frames.opened.engine;
    const struct tec_decl_deadline *due = tec_watchdog_deadline(e->options.pipeline, i);
    const struct tec_action_output_options o = tec_watchdog_output(e, i, due, job->o->actions);
    struct tec_safety_stop stop = tec_safety_stop_of(&given->beyond, given->left_out, &o);
    stop.node = job->frames.actions[i];
    stop.number = tick->frame;
    tec_safety_stop(&job->safety, &stop);
    tec_safety_stop_text(&stop, why, sizeof why);
    if (job->frames.n_sessions > 1)
        snprintf(who, sizeof who, " of session %d", tick->session);
    tec_say(job->call, "frame %lld: the robot%s is stopped, and is given nothing from now on: %s",
            (long long)tick->frame, who, why);
}

static enum tec_status tell_tick(void *user, const struct tec_paced_tick *tick,
                                 struct tec_error *err)
{
    struct job *job = user;
    warn_rate(job, tick);
    for (int i = 0; i < tick->n; i++) {
        tell_limits(job, tick->frame, &tick->given[i].beyond);
        note_stop(job, tick, i);
    }
    if (!tick->out)
        tec_safety_miss(&job->safety, -1, tick->cause, 0);
    if (tick->out) {
        job->last = *tick->out->record;
        warn(job, tick->out);
        if (job->dump)
            TEC_TRY(tec_dump_frame(job->dump, &job->frames, tick->out, err));
    }
    job->over = ferror(job->call->out) != 0;
    return print(job, NULL, tick, err);
}

static enum tec_status run_paced(struct job *job, int64_t most, struct tec_error *err)
{
    struct tec_paced_counts counts;
    TEC_TRY(tec_realtime_lock(&job->o->realtime, err));
    const struct tec_paced_options o = {.frames = &job->frames,
                                        .inputs = job->inputs,
                                        .noise = &job->noise,
                                        .actions = job->o->actions,
                                        .scheduling = job->is_scheduled ? &job->scheduling : NULL,
                                        .most = most,
                                        .over = &job->over,
                                        .tell = tell_tick,
                                        .user = job};
    enum tec_status status = tec_paced_run(&o, &counts, job->call->heap, err);
    if (counts.ticks > 0)
        tec_paced_counts_print(stderr, &counts);
    return status;
}

static enum tec_status run_frames(struct job *job, struct tec_error *err)
{
    int64_t most = job->o->frames                       ? job->o->frames
                   : tec_inputs_endless(job->inputs[0]) ? 1
                                                        : INT64_MAX;
    bool ended = false, paced = job->o->clock == TEC_RUN_PACED;
    if (paced)
        TEC_TRY(run_paced(job, most, err));
    while (!paced && job->frames.frame < most && !ferror(job->call->out)) {
        TEC_TRY(next_inputs(job, &ended, err));
        if (ended)
            break;
        TEC_TRY(run_frame(job, job->given, err));
    }
    const struct tec_loop *loop = job->frames.opened.engine->loop;
    for (int i = 0; job->o->drain && tec_loop_live(loop) && i < MAX_DRAIN; i++)
        TEC_TRY(run_frame(job, NULL, err));
    if (job->limited > 1 && !paced)
        tec_say(job->call, "%lld frames had actions beyond the robot's limits",
                (long long)job->limited);
    return TEC_OK;
}

static enum tec_status finish(struct job *job, struct tec_error *err)
{
    if (job->frames.frame == 0)
        return tec_fail(err, TEC_MALFORMED, "%s: there is no frame in it",
                        job->o->inputs ? job->o->inputs : "--input");
    if (job->o->timeline)
        TEC_TRY(tec_timeline_of_frames(job->o->timeline, &job->frames, &job->last, NULL, err));
    if (job->dump)
        TEC_TRY(tec_dump_write(job->dump, job->o->dump, err));
    return tec_outfile_file_keep(&job->out, err);
}

/* Leave out changes of a memory, which would be made twice. */
static void drop_changes(struct tec_inputs_frame *given, const struct tec_pipeline *p)
{
    size_t kept = 0;
    for (size_t i = 0; i < given->n; i++) {
        bool change = false;
        for (int k = 0; k < p->n_inputs; k++)
            change |= p->inputs[k].kind == TEC_INPUT_SEGMENTS &&
                      strcmp(p->inputs[k].name, given->values[i].name) == 0;
        if (!change)
            given->values[kept++] = given->values[i];
    }
    given->n = kept;
}

/* Check the first frame's inputs against the robot before minutes are spent on reading weights. */
static enum tec_status try_inputs(void *user, struct tec_session *session, struct tec_error *err)
{
    const struct job *job = user;
    struct tec_inputs *inputs = NULL;
    struct tec_inputs_frame given;
    struct tec_frame_input input;
    char warning[200];
    TEC_TRY(tec_inputs_open(&inputs, session, job->frames.opened.pipeline, &job->o->input,
                            job->o->inputs, job->call->heap, err));
    if (job->o->random.given)
        tec_inputs_draw(inputs, job->o->random.value);
    tec_inputs_pick(inputs, 0, job->frames.opened.pipeline->frame.sessions);
    enum tec_status status = tec_inputs_next(inputs, &given, err);
    if (status == TEC_OK && !given.ended && !given.none) {
        drop_changes(&given, job->frames.opened.pipeline);
        status =
            tec_session_observe(session, given.values, given.n, NULL, 0, 0, &input, warning, err);
        tec_context(err, status, "%.180s", tec_inputs_place(inputs));
    }
    tec_inputs_close(inputs);
    return status == TEC_INVALID ? TEC_MALFORMED : status;
}

/* Each session draws as a pipeline of it alone does from SEED and its number. */
static enum tec_status open_inputs(struct job *job, const struct tec_engine *e,
                                   struct tec_error *err)
{
    const struct tec_run_options *o = job->o;
    for (int i = 0; i < e->n_sessions; i++) {
        TEC_TRY(tec_inputs_open(&job->inputs[i], e->sessions[i], job->frames.opened.pipeline,
                                &o->input, o->inputs, job->call->heap, err));
        if (o->random.given)
            tec_inputs_draw(job->inputs[i], o->random.value + (uint64_t)i);
        tec_inputs_pick(job->inputs[i], i, e->n_sessions);
    }
    return TEC_OK;
}

static enum tec_status prepare(struct job *job, struct tec_error *err)
{
    static const char *const dtypes[] = {NULL, "bf16", "f32"};
    const struct tec_run_options *o = job->o;
    struct tec_invocation *call = job->call;
    const struct tec_engine_options more = {.dtype = dtypes[o->dtype],
                                            .interpret = o->interpret,
                                            .actions = o->actions,
                                            .prepared = try_inputs,
                                            .prepared_user = job};
    if (o->actions && o->clock != TEC_RUN_PACED)
        return tec_fail(err, TEC_INVALID, "--actions: needs --clock paced");
    if ((o->realtime.priority || o->realtime.cores || o->realtime.lock_memory) &&
        o->clock != TEC_RUN_PACED)
        return tec_fail(err, TEC_INVALID, "--realtime, --cores, --lock-memory: need --clock paced");
    TEC_TRY(tec_realtime_read(&o->realtime, &job->scheduling, &job->is_scheduled, err));
    TEC_TRY(tec_recording_asked_check(&o->seen, err));
    if (o->dump)
        TEC_TRY(tec_context(err, tec_outfile_file_check(o->dump, err), "--dump"));
    if (o->timeline)
        TEC_TRY(tec_context(err, tec_outfile_file_check(o->timeline, err), "--timeline"));
    if (o->out)
        TEC_TRY(tec_context(err, tec_outfile_file_open(&job->out, o->out, err), "--out"));
    struct tec_control_options control = o->control;
    control.recorder = &job->frames.runtime.recorder;
    control.mode = o->clock == TEC_RUN_PACED ? TEC_RECORDING_PACED : TEC_RECORDING_FRAMES;
    TEC_TRY(tec_control_open(&job->control, call, &control, err));
    TEC_TRY((o->clock == TEC_RUN_PACED ? tec_frames_open_paced : tec_frames_open)(
        &job->frames, call, call->args.item[0], &more, err));
    const struct tec_engine *e = job->frames.opened.engine;
    TEC_TRY(open_inputs(job, e, err));
    if (o->noise)
        TEC_TRY(tec_frame_noise_file_open(&job->noise, o->noise, &e->model->flow, call->heap, err));
    if (o->dump && job->frames.n_sessions > 1)
        return tec_fail(err, TEC_UNSUPPORTED, "--dump: one session in this release, there are %d",
                        job->frames.n_sessions);
    if (o->dump)
        TEC_TRY(tec_dump_create(&job->dump, &job->frames, call->heap, err));
    TEC_TRY(tec_control_start(&job->control, &job->frames.opened, err));
    struct tec_recording_options recording = {
        .mode = o->clock == TEC_RUN_PACED ? TEC_RECORDING_PACED : TEC_RECORDING_FRAMES,
        .waits = o->clock != TEC_RUN_PACED,
        .opened = &job->frames.opened,
        .recorder = &job->frames.runtime.recorder,
        .figures = &job->frames.runtime.figures,
        .runtime = &job->frames.runtime};
    if (o->clock == TEC_RUN_PACED) {
        recording.stops = (struct tec_recorded_stops){&job->safety.stops, &job->safety.resets,
                                                      &job->safety.stopped};
        recording.not_begun = job->safety.not_begun;
    }
    return tec_recording_asked_open(&job->frames.recording, &job->frames.view, &o->seen, NULL,
                                    &recording, err);
}

enum tec_status tec_cli_run(struct tec_invocation *call, struct tec_error *err)
{
    struct job *job = tec_arena_push(call->arena, 1, sizeof *job, 64);
    if (!job)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a run");
    job->o = call->options;
    job->call = call;
    size_t n = job->o->out ? strlen(job->o->out) : 0;
    if (n > 5 && strcmp(job->o->out + n - 5, ".mcap") == 0)
        return tec_fail(err, TEC_INVALID,
                        "--out %s: it has JSON lines, and is no recording; --record %s is one",
                        job->o->out, job->o->out);
    call->warns = true;
    enum tec_status status = prepare(job, err);
    if (status == TEC_OK)
        status = run_frames(job, err);
    if (status == TEC_OK)
        status = finish(job, err);
    status = tec_recording_asked_close(job->frames.recording, job->frames.view, status, err);
    bool reading = job->inputs[0] != NULL;
    tec_control_close(&job->control);
    tec_outfile_file_drop(&job->out);
    tec_dump_destroy(job->dump);
    tec_frame_noise_file_close(&job->noise);
    for (int i = 0; i < TEC_MAX_SESSIONS; i++)
        tec_inputs_close(job->inputs[i]);
    tec_frames_close(&job->frames);
    return status == TEC_INVALID && reading ? TEC_MALFORMED : status;
}

const struct tec_command tec_command_run = {
    .usage = "run [options] FILE",
    .about =
        "FILE is a pipeline, or a folder as LeRobot saves it, as for every verb that takes one.\n"
        "Frames follow each other as fast as they can, or with --clock paced one each period. A\n"
        "VALUE is one of\n"
        "  @x.jpg, @x.png             a picture\n"
        "  @x.safetensors#tensor      a tensor; tensor[3]: one entry of its first axis;\n"
        "                             tensor[*]: the entry of the frame's number, to the last one\n"
        "  [0.1, 0.2]                 a JSON array\n"
        "  press the button           a text; \"@@x\" is the text \"@x\"\n"
        "A line of FILE.jsonl is an object {\"NAME\": VALUE, ...} with arrays and numbers as they\n"
        "are and paths relative to FILE.jsonl, or null for a frame without observation. It may "
        "ask\n"
        "for language and give it up: \"#ask\": [{\"node\": NAME, \"max_tokens\": N, \"prio\": "
        "P}],\n"
        "\"#cancel\": [REQUEST].\n"
        "Text: frame, first action, age of the observation and slack when the actions left, rows\n"
        "in one decode launch, sentences that ended, of a score node its likeliest texts. JSON: a\n"
        "line a frame {frame, start_us,\n"
        "end_us, age_us, missed, cause, source, actions, text, plan}, with asked [{node, request,\n"
        "refused}] and cancelled [{request, live}] where there were such members; of a ring also\n"
        "seen (frame of the observation whose actions left), filling, in_flight, depth, and "
        "earlier\n"
        "[{seen, age_us, actions}] where several left in one frame. Where a row of the actions is\n"
        "not finite, only those before it are given, trouble says so, and the exit code is 1. A\n"
        "text of a score node that is\n"
        "done has its ranking [{index, text, log_likelihood}].\n"
        "With --clock paced a frame opens each period of the pipeline, and actions are what the\n"
        "robot is given by the deadline: late ones are replaced as on_miss says.\n"
        "With frame { sessions } every session has a line a frame, with its number as session;\n"
        "a line of FILE.jsonl may then be a list of such objects, one a session.\n"
        "With --random-inputs pictures, numbers and texts of token ids are drawn from SEED and "
        "the\n"
        "number of the frame; a text stays for ten frames.\n",
    .example =
        "  tectum run pipelines/demo_metaworld.lua \\\n"
        "    --inputs pipelines/checkpoints/metaworld/episodes/button.jsonl\n"
        "  tectum run pipelines/pi05_libero.lua --weights MY_CHECKPOINT \\\n"
        "    --input observation/image=@front.jpg --input observation/wrist_image=@wrist.jpg \\\n"
        "    --input 'observation/state=[0,0,0,0,0,0,0,0]' --input 'prompt=pick up the cup'\n",
    .takes = TEC_RUN_TAKES,
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .size = sizeof(struct tec_run_options),
    .min_args = 1,
    .max_args = 1,
    .args = "a pipeline file",
    .offers = "PIPELINE",
    .run = tec_cli_run,
};
