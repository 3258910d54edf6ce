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

/* Room for one more command, or NULL with the failure remembered. */
static struct tec_capture_step *append(struct tec_capture *capture)
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
    return &capture->commands[capture->n++];
}

void tec_capture_add(struct tec_capture *capture, enum tec_kernel_id kernel, const void *args,
                     bool barrier, const char *label)
{
    size_t size = tec_kernel_infos[kernel].args_size;
    void *copy = tec_arena_push(capture->arena, 1, size, 16);
    struct tec_capture_step *c = append(capture);
    if (!c || !copy) {
        capture->status = TEC_NO_MEMORY;
        return;
    }
    memcpy(copy, args, size);
    capture->bytes += size;
    capture->kernels++;
    *c = (struct tec_capture_step){
        .kind = TEC_RUN, .kernel = kernel, .args = copy, .label = label, .barrier = barrier};
}

void tec_capture_pass(struct tec_capture *capture)
{
    if (capture->n > 0 && capture->status == TEC_OK)
        capture->commands[capture->n - 1].passes = true;
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
    struct tec_capture_step *c = append(capture);
    if (!c || capture->open >= 0) {
        capture->status = c ? TEC_INVALID : TEC_NO_MEMORY;
        return;
    }
    *c = (struct tec_capture_step){
        .kind = TEC_REPEAT, .count = count, .stop = stop, .barrier = true};
    capture->open = capture->n - 1;
}

void tec_capture_repeat_end(struct tec_capture *capture)
{
    struct tec_capture_step *c = append(capture);
    if (!c || capture->open < 0) {
        capture->status = c ? TEC_INVALID : TEC_NO_MEMORY;
        return;
    }
    *c = (struct tec_capture_step){.kind = TEC_REPEAT_END, .other = capture->open, .barrier = true};
    capture->commands[capture->open].other = capture->n - 1;
    capture->open = -1;
}

void tec_capture_mark(struct tec_capture *capture, int mark)
{
    struct tec_capture_step *c = append(capture);
    if (!c || mark < 0 || mark >= TEC_MAX_MARKS) {
        capture->status = c ? TEC_INVALID : TEC_NO_MEMORY;
        return;
    }
    *c = (struct tec_capture_step){.kind = TEC_MARK, .other = mark, .barrier = true};
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

/* What was not reached, a loop without turns, has no stamp or one of an earlier replay. */
static void read_stamps(const uint64_t *stamps, int n, int64_t *ns)
{
    int64_t own = (int64_t)(stamps[1] - stamps[0]);
    uint64_t last = stamps[1];
    for (int i = 0; i < n; i++) {
        uint64_t stamp = stamps[TEC_STAMPS_BEFORE + i];
        int64_t took = stamp > last ? (int64_t)(stamp - last) - own : 0;
        ns[i] = took > 0 ? took : 0;
        last = stamp > last ? stamp : last;
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
        read_stamps(stamps, capture->n, ns);
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
