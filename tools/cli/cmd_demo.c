/* cmd_demo.c - the bundled model on recorded robot episodes, under two policies. */
#include "base/json_text.h"
#include "base/out_file.h"
#include "base/store/find.h"
#include "tools/demo/demo.h"
#include "tools/measure/measure.h"
#include "tools/picture/frame_timeline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 8 };

struct demo_options {
    int frames, rounds, dtype;
    const char *out;
};

#define AT(member) offsetof(struct demo_options, member)
static const struct tec_option options[] = {
    {"frames", 'n', TEC_OPTION_INT, "N", "at most N; all of the episodes", AT(frames), 1, 100000},
    {"rounds", 0, TEC_OPTION_INT, "N", "how often; 8, with --frames once", AT(rounds), 1, 1000},
    {"out", 'o', TEC_OPTION_TEXT, "DIR", "where the pictures go; build/demo", AT(out), 0, 0},
    {"dtype", 0, TEC_OPTION_WORD, "pipeline|bf16|f32",
     "what weights and caches are rounded to; as the pipeline says", AT(dtype), 0, 0},
};

/* Run another verb as a user would call it, with its output in `to` (-1: ours). It runs in a child
 * process before this one opens anything. */
static bool run_verb(char **argv, int to)
{
    int argc = 0, state = 0;
    while (argv[argc])
        argc++;
    fflush(stdout);
    fflush(stderr);
    pid_t child = fork();
    if (child == 0) {
        if (to >= 0 && dup2(to, 1) < 0)
            _exit(TEC_EXIT_INPUT);
        _exit(tec_command_main(argc, argv));
    }
    while (child > 0 && waitpid(child, &state, 0) < 0 && errno == EINTR)
        continue;
    return child > 0 && WIFEXITED(state) && WEXITSTATUS(state) == 0;
}

static enum tec_status make_folder(const char *path, struct tec_arena *arena, struct tec_error *err)
{
    char *copy = tec_arena_strdup(arena, path);
    if (!copy)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a path");
    for (char *at = copy; *at; at++)
        if (*at == '/' && at > copy) {
            *at = '\0';
            mkdir(copy, 0777);
            *at = '/';
        }
    if (mkdir(copy, 0777) != 0 && errno != EEXIST)
        return tec_fail(err, TEC_IO, "--out %s: %s", path, strerror(errno));
    return TEC_OK;
}

struct paths {
    const char *pipeline, *episodes, *weights, *out;
    char *graph, *timeline;
};

/* Find the demo's files as the weights of a pipeline are found. */
static enum tec_status find_paths(struct paths *p, struct tec_invocation *call,
                                  struct tec_error *err)
{
    static const char *const names[] = {"pipelines/demo_metaworld.lua",
                                        "pipelines/checkpoints/metaworld/episodes",
                                        "pipelines/checkpoints/metaworld"};
    const struct demo_options *o = call->options;
    const char **found[] = {&p->pipeline, &p->episodes, &p->weights};
    TEC_TRY(tec_cli_need_root(call, err));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        TEC_TRY(tec_find_path(found[i], names[i], call->root, call->arena, err));
    p->out = o->out ? o->out : "build/demo";
    p->graph = tec_arena_printf(call->arena, "%s/graph.svg", p->out);
    p->timeline = tec_arena_printf(call->arena, "%s/timeline.svg", p->out);
    if (!p->graph || !p->timeline)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a path");
    if (call->shared.weights)
        p->weights = call->shared.weights;
    return make_folder(p->out, call->arena, err);
}

/* Show what a user would ask first: which checkpoint this is, and how the pipeline looks. */
static bool show_model(struct tec_invocation *call, const struct paths *p)
{
    char program[] = "tectum", inspect[] = "inspect", graph[] = "graph", type[] = "-Tsvg",
         option[] = "--root";
    char *root = tec_arena_strdup(call->arena, call->root);
    char *weights = tec_arena_strdup(call->arena, p->weights);
    char *pipeline = tec_arena_strdup(call->arena, p->pipeline);
    char *look[] = {program, inspect, option, root, weights, NULL};
    char *draw[] = {program, graph, type, option, root, pipeline, NULL};
    if (!root || !weights || !pipeline)
        return false;
    if (call->shared.format == TEC_FORMAT_TEXT) {
        fprintf(call->out, "$ tectum inspect %s\n", p->weights);
        run_verb(look, -1);
    }
    struct tec_out_file out = {0};
    bool drawn = tec_outfile_file_open(&out, p->graph, NULL) == TEC_OK && run_verb(draw, out.fd) &&
                 tec_outfile_file_keep(&out, NULL) == TEC_OK;
    tec_outfile_file_drop(&out);
    return drawn;
}

static void print_plan(const struct tec_demo *demo)
{
    const struct tec_engine *e = demo->sides[1].f.opened.engine;
    FILE *out = demo->call->out;
    const char *bytes = tec_measure_text(&e->plan->bytes, demo->call->arena);
    fprintf(out, "\n%d captures:", e->plan->n_parts);
    for (int i = 0; i < e->plan->n_parts; i++) {
        const struct tec_plan_part *part = &e->plan->parts[i];
        fprintf(out, "%s %s %d", i ? "," : "", part->name, tec_capture_commands(part->capture));
    }
    fprintf(out, " commands\nbytes, all of them taken before the first frame: %s\n",
            bytes ? bytes : "");
    fprintf(out, "device: %s, %d lane%s, %s\n\n", tec_device_kind(e->device),
            tec_device_lanes(e->device), tec_device_lanes(e->device) == 1 ? "" : "s",
            tec_device_computes(e->device));
}

static void print_next(struct tec_invocation *call)
{
    char program[4096] = "tectum", here[4096];
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    const char *name = program;
    if (n > 0)
        program[n] = '\0';
    size_t k = getcwd(here, sizeof here) ? strlen(here) : 0;
    if (k && strncmp(program, here, k) == 0 && program[k] == '/')
        name = program + k + 1;
    fprintf(call->out,
            "\nThe same robot, live in its simulator (installs Meta-World, needs Python 3):\n"
            "  tools/demo/rollout --film build/demo\n"
            "\nYour own checkpoint and pictures:\n"
            "  %s inspect MY_CHECKPOINT\n"
            "  %s check pipelines/pi05_libero.lua     # or a copy of pi05_my_arm.lua\n"
            "  %s run pipelines/pi05_libero.lua --weights MY_CHECKPOINT --tokenizer "
            "tokenizer.model \\\n"
            "      --input observation/image=@front.jpg --input observation/wrist_image=@wrist.jpg "
            "\\\n"
            "      --input 'observation/state=[0,0,0,0,0,0,0,0]' --input 'prompt=pick up the "
            "cup'\n",
            name, name, name);
}

static enum tec_status open_sides(struct tec_demo *demo, const struct paths *p,
                                  struct tec_error *err)
{
    static const char *const dtypes[] = {NULL, "bf16", "f32"};
    static const char *const policies[] = {"isolated", "oxygen"};
    const struct demo_options *o = demo->call->options;
    for (int i = 0; i < 2; i++) {
        struct tec_demo_side *s = &demo->sides[i];
        TEC_TRY(tec_frames_open(&s->f, demo->call, p->pipeline,
                                &(struct tec_engine_options){.dtype = dtypes[o->dtype]}, err));
        TEC_TRY(tec_use_policy(&s->f.opened, policies[i], err));
        s->policy = policies[i];
    }
    demo->f32 = o->dtype == 2 ||
                (!o->dtype && demo->sides[0].f.opened.pipeline->models[0].dtype == TEC_DECL_F32);
    return TEC_OK;
}

/* The first round is told frame by frame; the others make the times trustworthy. */
static enum tec_status run_episodes(struct tec_demo *demo, struct tec_error *err)
{
    const struct demo_options *o = demo->call->options;
    int rounds = o->rounds ? o->rounds : o->frames ? 1 : ROUNDS;
    struct tec_demo_episode episodes[TEC_DEMO_EPISODES];
    for (int i = 0; i < demo->recorded.n_episodes; i++)
        TEC_TRY(tec_demo_episode(&episodes[i], &demo->recorded, i, err));
    demo->quiet = demo->call->shared.format != TEC_FORMAT_TEXT;
    for (int round = 0; round < rounds; round++) {
        demo->frames = o->frames ? o->frames : TEC_DEMO_FRAMES * TEC_DEMO_EPISODES;
        for (int i = 0; i < demo->recorded.n_episodes && demo->frames > 0; i++) {
            const struct tec_demo_episode *e = &episodes[i];
            if (!demo->quiet)
                fprintf(demo->call->out, "\"%s\", %d observations\n", e->instruction, e->n);
            TEC_TRY(tec_demo_run(demo, e, &demo->results[i], err));
            demo->n_results = i >= demo->n_results ? i + 1 : demo->n_results;
        }
        demo->quiet = true;
    }
    return TEC_OK;
}

static enum tec_status conclude(struct tec_demo *demo, const struct paths *p, bool drawn,
                                struct tec_error *err)
{
    struct tec_invocation *call = demo->call;
    call->wrong = !tec_demo_fine(demo);
    TEC_TRY(tec_timeline_of_frames(p->timeline, &demo->sides[1].f, &demo->shown,
                                   "One frame of the demo", err));
    if (call->shared.format == TEC_FORMAT_JSON) {
        json_t *json = tec_demo_json(demo);
        enum tec_status status = tec_json_print(call->out, json, JSON_COMPACT, "a report", err);
        json_decref(json);
        return status;
    }
    tec_demo_print(demo, call->out);
    fprintf(call->out, "\npictures: %s%s%s\n", drawn ? p->graph : "", drawn ? ", " : "",
            p->timeline);
    print_next(call);
    return TEC_OK;
}

static enum tec_status run_all(struct tec_demo *demo, struct tec_error *err)
{
    struct paths p = {.pipeline = NULL};
    TEC_TRY(find_paths(&p, demo->call, err));
    TEC_TRY(tec_demo_open(&demo->recorded, p.episodes, demo->call->heap, demo->call->arena, err));
    bool drawn = show_model(demo->call, &p);
    TEC_TRY(open_sides(demo, &p, err));
    if (demo->call->shared.format == TEC_FORMAT_TEXT)
        print_plan(demo);
    TEC_TRY(run_episodes(demo, err));
    return conclude(demo, &p, drawn, err);
}

static enum tec_status run(struct tec_invocation *call, struct tec_error *err)
{
    struct tec_demo *demo = tec_arena_push(call->arena, 1, sizeof *demo, 64);
    if (!demo)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for the demo");
    demo->call = call;
    if (!call->shared.threads)
        call->shared.threads = 1; /* the model is so small that lanes would wait for each other */
    enum tec_status status = run_all(demo, err);
    for (int i = 0; i < 2; i++)
        tec_frames_close(&demo->sides[i].f);
    tec_demo_close(&demo->recorded);
    return status;
}

const struct tec_command tec_command_demo = {
    .usage = "demo [options]",
    .about =
        "A trained model of 2.2 M parameters answers five episodes that it once drove: pictures,\n"
        "state and instruction in, actions and a sentence out. Every frame runs under `isolated`\n"
        "(nothing shared, nothing batched) and `oxygen` (one prefill, language in batches): the\n"
        "bytes must be equal, and equal to what was recorded. Exit code 1 when they are not.\n",
    .example = "  tectum demo\n"
               "  tectum demo --frames 5 --dtype f32\n",
    .takes = TEC_TAKES_FORMAT | TEC_TAKES_DEVICE | TEC_TAKES_MODEL | TEC_TAKES_SET | TEC_TAKES_SEED,
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .size = sizeof(struct demo_options),
    .min_args = 0,
    .max_args = 0,
    .args = "",
    .run = run,
};
