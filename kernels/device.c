#include "kernels/device.h"

#include "base/clock.h"
#include "kernels/team.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEFAULT_SPIN_US = 2000, CHUNK = 64, ALIGN = 64 };

/* Where a measuring device begins to count: no address of a process. */
static const uintptr_t FIRST_ADDRESS = (uintptr_t)1 << 60;

struct tec_device {
    struct tec_heap *heap;
    struct tec_heap memory; /* device memory, counted apart */
    struct tec_team *team;
    struct tec_kernels kernels;
    enum tec_tier tier;
    int lanes, beside;
    bool measures;     /* hands out addresses without memory behind them; its team is one lane */
    uintptr_t address; /* the next one */
    void (*work)(void *user); /* beside; these two are set before the lanes are split off */
    void *user;
    struct run *beside_run; /* for the lanes that were split off; NULL: they are done */
};

/* What every lane needs during one replay. */
struct run {
    struct tec_device *device;
    const struct tec_capture *capture;
    struct tec_replay *replay;
    int lanes;
    bool beside;
};

enum command_kind { RUN, REPEAT, REPEAT_END, MARK };

struct command {
    enum command_kind kind;
    enum tec_kernel_id kernel;
    const void *args;
    const char *label;
    const int *count, *stop; /* REPEAT */
    int other;               /* REPEAT_END: index of its REPEAT; MARK: the mark */
    bool barrier;
};

struct tec_capture {
    struct tec_arena *arena;
    struct command *commands;
    int n, capacity;
    int open; /* index of the REPEAT in progress, -1 = none */
    size_t bytes;
    enum tec_status status; /* the first failure */
};

int tec_device_threads(const struct tec_device_options *options)
{
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return options->threads ? options->threads : online > 0 ? (int)online : 1;
}

enum tec_status tec_device_open(struct tec_device **out, const struct tec_device_options *options,
                                struct tec_heap *heap, struct tec_error *err)
{
    bool measures = strcmp(options->kind, "measure") == 0;
    if (strcmp(options->kind, "cpu") != 0 && !measures)
        return tec_fail(err, TEC_UNSUPPORTED, "device '%s' is not available in this build; use cpu",
                        options->kind);
    if ((unsigned)options->tier >= TEC_TIER_COUNT || !tec_tier_runs_here(options->tier))
        return tec_fail(
            err, TEC_UNSUPPORTED, "this CPU cannot run tier '%s'; the best here is '%s'",
            (unsigned)options->tier < TEC_TIER_COUNT ? tec_tier_name(options->tier) : "?",
            tec_tier_name(tec_tier_best()));
    struct tec_device *device = tec_heap_get(heap, sizeof *device);
    if (!device)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a device");
    int threads = tec_device_threads(options);
    device->heap = heap;
    device->tier = options->tier;
    device->measures = measures;
    device->address = FIRST_ADDRESS;
    device->kernels = tec_kernels_for(options->tier);
    int spin = options->spin_us < 0 ? DEFAULT_SPIN_US : options->spin_us;
    device->lanes = threads;
    device->beside = options->beside;
    bool one = measures && threads > 0;
    enum tec_status status = tec_team_create_split(&device->team, one ? 1 : threads,
                                                   one ? 0 : options->beside, spin, heap, err);
    if (status != TEC_OK) {
        tec_heap_put(heap, device);
        return status;
    }
    *out = device;
    return TEC_OK;
}

void tec_device_close(struct tec_device *device)
{
    if (!device)
        return;
    tec_team_destroy(device->team);
    tec_heap_put(device->heap, device);
}

const char *tec_device_kind(const struct tec_device *device)
{
    return device->measures ? "measure" : "cpu";
}

int tec_device_lanes(const struct tec_device *device)
{
    return device->lanes;
}

int tec_device_lanes_beside(const struct tec_device *device)
{
    return device->beside;
}

enum tec_tier tec_device_tier(const struct tec_device *device)
{
    return device->tier;
}

const struct tec_kernels *tec_device_kernels(const struct tec_device *device)
{
    return &device->kernels;
}

void *tec_device_get(struct tec_device *device, size_t size)
{
    if (!device->measures)
        return tec_heap_get(&device->memory, size);
    void *place = (void *)device->address; /* never read or written */
    device->address += (size + ALIGN - 1) / ALIGN * ALIGN;
    atomic_fetch_add(&device->memory.bytes, (int64_t)size);
    return place;
}

void tec_device_put(struct tec_device *device, void *memory)
{
    if (!device->measures)
        tec_heap_put(&device->memory, memory);
}

int64_t tec_device_bytes(const struct tec_device *device)
{
    return atomic_load(&device->memory.bytes);
}

int64_t tec_device_peak(const struct tec_device *device)
{
    return atomic_load(&device->memory.peak);
}

void tec_device_upload(struct tec_device *device, void *to, const void *from, size_t size)
{
    if (!device->measures)
        memcpy(to, from, size);
}

void tec_device_download(struct tec_device *device, void *to, const void *from, size_t size)
{
    if (!device->measures)
        memcpy(to, from, size);
}

enum tec_status tec_capture_begin(struct tec_capture **out, struct tec_device *device,
                                  struct tec_arena *arena, struct tec_error *err)
{
    (void)device;
    struct tec_capture *capture = TEC_NEW(arena, 1, struct tec_capture);
    if (!capture)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a capture");
    capture->arena = arena;
    capture->open = -1;
    *out = capture;
    return TEC_OK;
}

/* Room for one more command, or NULL with the failure remembered. */
static struct command *append(struct tec_capture *capture)
{
    if (capture->n == capture->capacity) {
        int capacity = capture->capacity ? capture->capacity * 2 : CHUNK;
        struct command *more = TEC_NEW(capture->arena, (size_t)capacity, struct command);
        if (!more) {
            capture->status = TEC_NO_MEMORY;
            return NULL;
        }
        if (capture->n)
            memcpy(more, capture->commands, (size_t)capture->n * sizeof *more);
        capture->commands = more;
        capture->capacity = capacity;
    }
    capture->bytes += sizeof(struct command);
    return &capture->commands[capture->n++];
}

void tec_capture_add(struct tec_capture *capture, enum tec_kernel_id kernel, const void *args,
                     bool barrier, const char *label)
{
    size_t size = tec_kernel_infos[kernel].args_size;
    void *copy = tec_arena_push(capture->arena, 1, size, 16);
    struct command *c = append(capture);
    if (!c || !copy) {
        capture->status = TEC_NO_MEMORY;
        return;
    }
    memcpy(copy, args, size);
    capture->bytes += size;
    *c = (struct command){
        .kind = RUN, .kernel = kernel, .args = copy, .label = label, .barrier = barrier};
}

void tec_capture_repeat(struct tec_capture *capture, const int *count, const int *stop)
{
    struct command *c = append(capture);
    if (!c || capture->open >= 0) {
        capture->status = c ? TEC_INVALID : TEC_NO_MEMORY;
        return;
    }
    *c = (struct command){.kind = REPEAT, .count = count, .stop = stop, .barrier = true};
    capture->open = capture->n - 1;
}

void tec_capture_repeat_end(struct tec_capture *capture)
{
    struct command *c = append(capture);
    if (!c || capture->open < 0) {
        capture->status = c ? TEC_INVALID : TEC_NO_MEMORY;
        return;
    }
    *c = (struct command){.kind = REPEAT_END, .other = capture->open, .barrier = true};
    capture->commands[capture->open].other = capture->n - 1;
    capture->open = -1;
}

void tec_capture_mark(struct tec_capture *capture, int mark)
{
    struct command *c = append(capture);
    if (!c || mark < 0 || mark >= TEC_MAX_MARKS) {
        capture->status = c ? TEC_INVALID : TEC_NO_MEMORY;
        return;
    }
    *c = (struct command){.kind = MARK, .other = mark, .barrier = true};
}

enum tec_status tec_capture_end(struct tec_capture *capture, struct tec_error *err)
{
    if (capture->open >= 0)
        capture->status = TEC_INVALID;
    if (capture->status != TEC_OK)
        return tec_fail(err, capture->status, "recording a capture of %d commands failed",
                        capture->n);
    return TEC_OK;
}

int tec_capture_commands(const struct tec_capture *capture)
{
    return capture->n;
}

size_t tec_capture_bytes(const struct tec_capture *capture)
{
    return capture->bytes;
}

void tec_capture_visit(const struct tec_capture *capture,
                       void (*visit)(void *user, enum tec_kernel_id kernel, const void *args,
                                     bool barrier, const char *label),
                       void *user)
{
    for (int i = 0; i < capture->n; i++) {
        const struct command *c = &capture->commands[i];
        if (c->kind == RUN)
            visit(user, c->kernel, c->args, c->barrier, c->label);
    }
}

static void reach_mark(struct tec_replay *replay, int mark)
{
    const struct tec_clock clock = {NULL};
    int64_t now = tec_clock_now(&clock);
    replay->mark_ns[mark] = now;
    if (replay->marked)
        replay->marked(replay->user, mark, now);
}

/* The command after `at` in the order of execution. `turn` counts the turns of the open loop;
 * counts and stops are read behind a barrier and do not change before the next one, so lanes agree.
 */
static int next_command(const struct command *commands, int at, int *turn)
{
    const struct command *c = &commands[at];
    if (c->kind == REPEAT) {
        *turn = 0;
        return *c->count > 0 ? at + 1 : c->other + 1;
    }
    if (c->kind == REPEAT_END) {
        const struct command *begin = &commands[c->other];
        ++*turn;
        return *turn < *begin->count && !*begin->stop ? c->other + 1 : at + 1;
    }
    return at + 1;
}

static void meet(const struct run *run)
{
    if (run->beside)
        tec_team_barrier_beside(run->device->team);
    else
        tec_team_barrier(run->device->team);
}

static void run_lane(void *user, int lane)
{
    const struct run *run = user;
    const struct command *commands = run->capture->commands;
    const struct tec_part part = {lane, run->lanes};
    int turn = 0;
    for (int at = 0; at < run->capture->n; at = next_command(commands, at, &turn)) {
        const struct command *c = &commands[at];
        if (c->barrier)
            meet(run);
        if (c->kind == RUN)
            tec_kernel_infos[c->kernel].run(&run->device->kernels, c->args, part);
        else if (c->kind == MARK && lane == 0)
            reach_mark(run->replay, c->other);
    }
}

void tec_device_replay(struct tec_device *device, const struct tec_capture *capture,
                       struct tec_replay *replay)
{
    const struct tec_clock clock = {NULL};
    struct run run = {.device = device,
                      .capture = capture,
                      .replay = replay,
                      .lanes = tec_team_lanes(device->team)};
    memset(replay->mark_ns, 0, sizeof replay->mark_ns);
    replay->start_ns = tec_clock_now(&clock);
    tec_team_run(device->team, run_lane, &run);
    replay->end_ns = tec_clock_now(&clock);
}

/* --- beside ---------------------------------------------------------------------------------- */

/* The first of the lanes works; the others take part in its replays. */
static void serve(void *user, int lane)
{
    struct tec_device *device = user;
    if (lane == 0) {
        device->work(device->user);
        device->beside_run = NULL;
        tec_team_barrier_beside(device->team);
        return;
    }
    for (;;) {
        tec_team_barrier_beside(device->team);
        struct run *run = device->beside_run;
        if (!run)
            return;
        run_lane(run, lane);
        tec_team_barrier_beside(device->team);
    }
}

void tec_device_fork(struct tec_device *device, void (*work)(void *user), void *user)
{
    device->work = work;
    device->user = user;
    tec_team_fork(device->team, serve, device);
}

void tec_device_join(struct tec_device *device)
{
    tec_team_join(device->team);
}

void tec_device_replay_beside(struct tec_device *device, const struct tec_capture *capture,
                              struct tec_replay *replay)
{
    const struct tec_clock clock = {NULL};
    struct run run = {.device = device,
                      .capture = capture,
                      .replay = replay,
                      .lanes = device->beside,
                      .beside = true};
    memset(replay->mark_ns, 0, sizeof replay->mark_ns);
    replay->start_ns = tec_clock_now(&clock);
    device->beside_run = &run;
    tec_team_barrier_beside(device->team);
    run_lane(&run, 0);
    tec_team_barrier_beside(device->team);
    replay->end_ns = tec_clock_now(&clock);
}
