/* device_cpu.c - a team of lanes that runs recorded lists; the reference for other kinds. */
#include "base/clock.h"
#include "kernels/device_kind.h"
#include "kernels/team.h"

#include <string.h>
#include <unistd.h>

enum { DEFAULT_SPIN_US = 2000 };

struct cpu {
    struct tec_device base;
    struct tec_team *team;
    struct tec_kernels table;
    void (*work)(void *user); /* beside; these two are set before the lanes are split off */
    void *user;
    struct run *concurrent_run; /* for the lanes that were split off; NULL: they are done */
};

/* The data of every lane during one replay. */
struct run {
    struct cpu *cpu;
    const struct tec_capture *capture;
    struct tec_replay *replay;
    int lanes;
    int turn; /* of the open loop */
    bool beside;
};

/* --- facts and memory ------------------------------------------------------------------------ */

static int lanes_of(const struct tec_device_options *options)
{
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return options->threads ? options->threads : online > 0 ? (int)online : 1;
}

static int64_t workspace(const struct tec_device_options *options)
{
    (void)options;
    return 0;
}

static size_t scratch(int lanes, int head_dim)
{
    return tec_attention_scratch(head_dim) * (size_t)lanes * sizeof(float);
}

static enum tec_status check(const struct tec_device_options *options, struct tec_error *err)
{
    bool known = (unsigned)options->tier < TEC_TIER_COUNT;
    if (known && tec_tier_runs_here(options->tier))
        return TEC_OK;
    return tec_fail(err, TEC_UNSUPPORTED, "this CPU cannot run tier '%s'; the best here is '%s'",
                    known ? tec_tier_name(options->tier) : "?", tec_tier_name(tec_tier_best()));
}

static enum tec_matrix_layout layout(const struct tec_device_options *options)
{
    return tec_kernels_for(options->tier).layout;
}

static enum tec_status cpu_open(struct tec_device **out, const struct tec_device_options *options,
                                struct tec_heap *heap, struct tec_error *err)
{
    struct cpu *cpu = tec_heap_get(heap, sizeof *cpu);
    if (!cpu)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a device");
    cpu->table = tec_kernels_for(options->tier);
    cpu->base.kernels = &cpu->table;
    cpu->base.layout = cpu->table.layout;
    cpu->base.computes = tec_tier_name(options->tier);
    int spin = options->spin_us < 0 ? DEFAULT_SPIN_US : options->spin_us;
    enum tec_status status =
        tec_team_create_split(&cpu->team, lanes_of(options), options->beside, spin, heap, err);
    if (status != TEC_OK) {
        tec_heap_put(heap, cpu);
        return status;
    }
    cpu->base.team = cpu->team;
    *out = &cpu->base;
    return TEC_OK;
}

static void cpu_close(struct tec_device *device)
{
    struct cpu *cpu = (struct cpu *)device;
    tec_team_destroy(cpu->team);
    tec_heap_put(device->heap, cpu);
}

static void *get(struct tec_device *device, size_t size)
{
    return tec_heap_get(&device->memory, size);
}

static void put(struct tec_device *device, void *memory)
{
    tec_heap_put(&device->memory, memory);
}

static int64_t room(const struct tec_device *device)
{
    (void)device;
    return -1;
}

static void copy(struct tec_device *device, enum tec_stream stream, void *to, const void *from,
                 size_t size)
{
    (void)device, (void)stream;
    memcpy(to, from, size);
}

/* --- replays --------------------------------------------------------------------------------- */

static void reach_mark(struct tec_replay *replay, int mark)
{
    const struct tec_clock clock = {NULL};
    int64_t now = tec_clock_now(&clock);
    replay->mark_ns[mark] = now;
    if (replay->marked)
        replay->marked(replay->user, mark, now);
}

/* Over the marks of loops from `at` on: the command behind them, or -1. They are read when all in
 * front of them is done. `turn` counts the turns of the open loop. */
static int enter(struct run *run, int at)
{
    const struct tec_capture_step *commands = run->capture->commands;
    while (at < run->capture->n) {
        const struct tec_capture_step *c = &commands[at];
        if (c->kind == TEC_REPEAT) {
            run->turn = 0;
            at = *c->count > 0 ? at + 1 : c->other + 1;
        } else if (c->kind == TEC_REPEAT_END) {
            const struct tec_capture_step *begin = &commands[c->other];
            at = ++run->turn < *begin->count && !*begin->stop ? c->other + 1 : at + 1;
        } else {
            return at;
        }
    }
    return -1;
}

/* The command behind those that are done without waiting for other lanes. */
static int stage_end(const struct run *run, int at)
{
    do
        at++;
    while (at < run->capture->n && !run->capture->commands[at].barrier);
    return at;
}

static int next_stage(void *user, int at)
{
    struct run *run = user;
    return enter(run, stage_end(run, at));
}

/* Marks are reached on the thread that replays. */
static bool stage_is_held(void *user, int at)
{
    const struct run *run = user;
    return run->capture->commands[at].kind == TEC_MARK;
}

static void run_part(void *user, int at, int lane)
{
    const struct run *run = user;
    const struct tec_part part = {lane, run->lanes};
    for (int end = stage_end(run, at); at < end; at++) {
        const struct tec_capture_step *c = &run->capture->commands[at];
        if (c->kind == TEC_RUN)
            tec_kernel_infos[c->kernel].run(&run->cpu->table, c->args, part);
        else if (c->kind == TEC_MARK && lane == 0)
            reach_mark(run->replay, c->other);
    }
}

static void run_lane(void *user, int lane)
{
    struct run *run = user;
    const struct tec_stage_work work = {run->lanes, run_part, next_stage, stage_is_held, run};
    if (lane < run->lanes)
        tec_team_join_in(run->cpu->team, run->beside, &work, lane);
}

/* The lanes of the stream run the list; of one that was found to be small, fewer (lanes.c). One
 * alone does not wake the others. */
static void replay_main(struct cpu *cpu, struct run *run)
{
    run->lanes = *run->capture->lanes ? *run->capture->lanes : tec_team_lanes(cpu->team);
    if (run->lanes == 1) {
        for (int at = enter(run, 0); at >= 0; at = next_stage(run, at))
            run_part(run, at, 0);
        return;
    }
    tec_team_begin(cpu->team, false, enter(run, 0));
    tec_team_run(cpu->team, run_lane, run);
}

/* Inside work: on its lanes, of which this is the first. */
static void replay_concurrent(struct cpu *cpu, struct run *run)
{
    run->lanes = cpu->base.beside;
    run->beside = true;
    cpu->concurrent_run = run;
    tec_team_begin(cpu->team, true, enter(run, 0));
    tec_team_barrier_concurrent(cpu->team);
    run_lane(run, 0);
    tec_team_barrier_concurrent(cpu->team);
}

static void replay(struct tec_device *device, const struct tec_capture *capture,
                   struct tec_replay *r)
{
    const struct tec_clock clock = {NULL};
    struct cpu *cpu = (struct cpu *)device;
    struct run run = {.cpu = cpu, .capture = capture, .replay = r};
    r->start_ns = tec_clock_now(&clock);
    if (capture->stream == TEC_STREAM_MAIN)
        replay_main(cpu, &run);
    else
        replay_concurrent(cpu, &run);
    r->end_ns = tec_clock_now(&clock);
    const struct tec_capture_step *last = capture->n ? &capture->commands[capture->n - 1] : NULL;
    if (last && last->kind == TEC_MARK && r->mark_ns[last->other])
        r->mark_ns[last->other] = r->end_ns;
}

/* --- beside ---------------------------------------------------------------------------------- */

/* The first of the lanes works; the others take part in its replays. */
static void serve(void *user, int lane)
{
    struct cpu *cpu = user;
    if (lane == 0) {
        cpu->work(cpu->user);
        cpu->concurrent_run = NULL;
        tec_team_barrier_concurrent(cpu->team);
        return;
    }
    for (;;) {
        tec_team_barrier_concurrent(cpu->team);
        struct run *run = cpu->concurrent_run;
        if (!run)
            return;
        run_lane(run, lane);
        tec_team_barrier_concurrent(cpu->team);
    }
}

static void fork_work(struct tec_device *device, void (*work)(void *user), void *user)
{
    struct cpu *cpu = (struct cpu *)device;
    cpu->work = work;
    cpu->user = user;
    tec_team_fork(cpu->team, serve, cpu);
}

static void join(struct tec_device *device)
{
    tec_team_join(((struct cpu *)device)->team);
}

const struct tec_device_kind tec_device_kind_cpu = {.name = "cpu",
                                                    .reads_host = true,
                                                    .check = check,
                                                    .layout = layout,
                                                    .lanes = lanes_of,
                                                    .workspace = workspace,
                                                    .scratch = scratch,
                                                    .open = cpu_open,
                                                    .close = cpu_close,
                                                    .get = get,
                                                    .put = put,
                                                    .room = room,
                                                    .upload = copy,
                                                    .download = copy,
                                                    .replay = replay,
                                                    .fork = fork_work,
                                                    .join = join};
