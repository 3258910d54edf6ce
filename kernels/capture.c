/* capture.c - recording: the list of commands that every kind of device is given. */
#include "kernels/device_kind.h"

#include <string.h>

enum { CHUNK = 64 };

enum tec_status tec_capture_begin(struct tec_capture **out, struct tec_device *device,
                                  enum tec_stream stream, struct tec_arena *arena,
                                  struct tec_error *err)
{
    struct tec_capture *capture = TEC_NEW(arena, 1, struct tec_capture);
    int *lanes = TEC_NEW(arena, 1, int);
    if (!capture || !lanes)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a capture");
    capture->device = device;
    capture->stream = stream;
    capture->arena = arena;
    capture->lanes = lanes;
    capture->open = -1;
    *out = capture;
    return TEC_OK;
}

/* Append a command, of the branch or not; NULL with the failure remembered. */
static struct tec_capture_step *append(struct tec_capture *capture,
                                       const struct tec_capture_step *step)
{
    if (capture->n == capture->capacity) {
        int capacity = capture->capacity ? capture->capacity * 2 : CHUNK;
        struct tec_capture_step *more =
            TEC_NEW(capture->arena, (size_t)capacity, struct tec_capture_step);
        if (!more) {
            capture->status = TEC_NO_MEMORY;
            return NULL;
        }
        if (capture->n)
            memcpy(more, capture->commands, (size_t)capture->n * sizeof *more);
        capture->commands = more;
        capture->capacity = capacity;
    }
    capture->bytes += sizeof(struct tec_capture_step);
    struct tec_capture_step *c = &capture->commands[capture->n++];
    *c = *step;
    c->branch = capture->branch;
    c->joins = capture->joins;
    capture->joins = false;
    return c;
}

void tec_capture_add(struct tec_capture *capture, enum tec_kernel_id kernel, const void *args,
                     bool barrier, const char *label)
{
    size_t size = tec_kernel_infos[kernel].args_size;
    void *copy = tec_arena_push(capture->arena, 1, size, 16);
    const struct tec_capture_step c = {
        .kind = TEC_RUN, .kernel = kernel, .args = copy, .label = label, .barrier = barrier};
    if (!append(capture, &c) || !copy) {
        capture->status = TEC_NO_MEMORY;
        return;
    }
    memcpy(copy, args, size);
    capture->bytes += size;
    capture->kernels++;
}

void tec_capture_pass(struct tec_capture *capture)
{
    if (capture->n > 0 && capture->status == TEC_OK)
        capture->commands[capture->n - 1].passes = true;
}

void tec_capture_branch(struct tec_capture *capture, bool branch)
{
    capture->branch = branch;
}

void tec_capture_join(struct tec_capture *capture)
{
    capture->joins = true;
}

void tec_capture_weigh(struct tec_capture *capture, uint64_t key, double work)
{
    if (capture->n == 0 || capture->status != TEC_OK)
        return;
    capture->commands[capture->n - 1].key = key;
    capture->commands[capture->n - 1].work = work;
}

void tec_capture_repeat(struct tec_capture *capture, const int *count, const int *stop)
{
    const struct tec_capture_step c = {
        .kind = TEC_REPEAT, .count = count, .stop = stop, .barrier = true};
    bool there = append(capture, &c) != NULL;
    if (!there || capture->open >= 0) {
        capture->status = there ? TEC_INVALID : TEC_NO_MEMORY;
        return;
    }
    capture->open = capture->n - 1;
}

void tec_capture_repeat_end(struct tec_capture *capture)
{
    const struct tec_capture_step c = {
        .kind = TEC_REPEAT_END, .other = capture->open, .barrier = true};
    bool there = append(capture, &c) != NULL;
    if (!there || capture->open < 0) {
        capture->status = there ? TEC_INVALID : TEC_NO_MEMORY;
        return;
    }
    capture->commands[capture->open].other = capture->n - 1;
    capture->open = -1;
}

void tec_capture_mark(struct tec_capture *capture, int mark)
{
    const struct tec_capture_step c = {.kind = TEC_MARK, .other = mark, .barrier = true};
    bool there = append(capture, &c) != NULL;
    if (!there || mark < 0 || mark >= TEC_MAX_MARKS)
        capture->status = there ? TEC_INVALID : TEC_NO_MEMORY;
}

enum tec_status tec_capture_end(struct tec_capture *capture, struct tec_error *err)
{
    if (capture->open >= 0)
        capture->status = TEC_INVALID;
    if (capture->status != TEC_OK)
        return tec_fail(err, capture->status,
                        capture->status == TEC_NO_MEMORY
                            ? "no memory to record a capture of %d commands"
                            : "recording a capture of %d commands failed",
                        capture->n);
    const struct tec_device *device = capture->device;
    capture->nodes = capture->n; /* of a list that is run as it is */
    return device->measures || !device->kind->compile ? TEC_OK
                                                      : device->kind->compile(capture, err);
}

void tec_capture_free(struct tec_capture *capture)
{
    if (capture && capture->compiled)
        capture->device->kind->discard(capture);
    if (capture && capture->stamps)
        tec_device_put(capture->device, capture->stamps);
}

/* --- stamps ---------------------------------------------------------------------------------- */

static size_t stamps_size(const struct tec_capture *capture)
{
    return ((size_t)capture->n + TEC_STAMPS_BEFORE) * sizeof *capture->stamps;
}

enum tec_status tec_capture_stamped(struct tec_capture **out, const struct tec_capture *of,
                                    struct tec_arena *arena, struct tec_error *err)
{
    struct tec_device *device = of->device;
    *out = NULL;
    if (!device->kind->stamps || device->measures)
        return tec_fail(err, TEC_UNSUPPORTED, "%s has no clock for its commands",
                        device->kind->name);
    struct tec_capture *stamped = TEC_NEW(arena, 1, struct tec_capture);
    if (!stamped)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a capture");
    *stamped = *of;
    stamped->arena = arena;
    stamped->compiled = NULL;
    stamped->stamps = tec_device_get(device, stamps_size(of));
    if (!stamped->stamps) {
        TEC_TRY(tec_device_failure(device, err));
        return tec_fail(err, TEC_NO_MEMORY, "no memory for the times of %d commands", of->n);
    }
    enum tec_status status = device->kind->compile(stamped, err);
    if (status == TEC_OK)
        *out = stamped;
    else
        tec_capture_free(stamped);
    return status;
}

/* What was not reached, a loop without turns, has no stamp or one of an earlier replay. A branch's
 * time begins with the last stamp in front of it, and so does that of the command beside it: each
 * has the stamps of its own way. */
static void read_stamps(const struct tec_capture *capture, const uint64_t *stamps, int64_t *ns)
{
    int64_t own = (int64_t)(stamps[1] - stamps[0]);
    uint64_t last[2] = {stamps[1], stamps[1]}; /* beside the branch, and of the branch */
    bool away = false;
    bool branches = capture->device->branches && capture->stream == TEC_STREAM_MAIN;
    for (int i = 0; i < capture->n; i++) {
        const struct tec_capture_step *c = &capture->commands[i];
        bool branch = c->branch && branches;
        uint64_t stamp = stamps[TEC_STAMPS_BEFORE + i], *at = &last[branch];
        if (away && (c->joins || (!branch && c->kind != TEC_RUN))) {
            last[0] = last[1] > last[0] ? last[1] : last[0];
            away = false;
        }
        if (branch && !away)
            last[1] = last[0];
        away |= branch;
        int64_t took = stamp > *at ? (int64_t)(stamp - *at) - own : 0;
        ns[i] = took > 0 ? took : 0;
        *at = stamp > *at ? stamp : *at;
    }
}

enum tec_status tec_capture_times(const struct tec_capture *capture, int64_t *ns,
                                  struct tec_error *err)
{
    if (!capture->stamps)
        return tec_fail(err, TEC_INVALID, "a capture without stamps");
    struct tec_arena_mark before = tec_arena_mark(capture->arena); /* a profile asks many times */
    uint64_t *stamps = TEC_NEW(capture->arena, stamps_size(capture) / sizeof *stamps, uint64_t);
    if (!stamps)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for the times of %d commands", capture->n);
    tec_device_download(capture->device, capture->stream, stamps, capture->stamps,
                        stamps_size(capture));
    enum tec_status status = tec_device_failure(capture->device, err);
    if (status == TEC_OK)
        read_stamps(capture, stamps, ns);
    tec_arena_rewind(capture->arena, before);
    return status;
}

int tec_capture_commands(const struct tec_capture *capture)
{
    return capture->n;
}

int tec_capture_kernels(const struct tec_capture *capture)
{
    return capture->kernels;
}

int tec_capture_nodes(const struct tec_capture *capture)
{
    return capture->nodes;
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
        const struct tec_capture_step *c = &capture->commands[i];
        if (c->kind == TEC_RUN)
            visit(user, c->kernel, c->args, c->barrier, c->label);
    }
}
