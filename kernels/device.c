/* device.c - the device interface: opens a device by the name of its kind and forwards calls to
 * that kind.
 *
 * A measuring device counts the memory that a program would need: it hands out addresses that are
 * never read or written, and copies nothing. */
#include "kernels/device_kind.h"
#include "kernels/team.h"

#include <string.h>

enum { ALIGN = 64 };

/* The first address that a measuring device hands out; no process has memory there. */
static const uintptr_t FIRST_ADDRESS = (uintptr_t)1 << 60;

#define DEVICE(name) &tec_device_kind_##name,
static const struct tec_device_kind *const kinds[] = {
#include "kernels/devices.def"
};
#undef DEVICE

#define DEVICE(name) #name,
const char *const tec_device_kinds[] = {
#include "kernels/devices.def"
    NULL};
#undef DEVICE

enum { KINDS = sizeof kinds / sizeof kinds[0] };

static const struct tec_device_kind *find(const char *name)
{
    for (int i = 0; i < KINDS; i++)
        if (strcmp(kinds[i]->name, name) == 0)
            return kinds[i];
    return NULL;
}

bool tec_device_known(const char *kind)
{
    return find(kind) != NULL;
}

int tec_device_threads(const struct tec_device_options *options)
{
    const struct tec_device_kind *kind = find(options->kind);
    return kind ? kind->lanes(options) : 0;
}

/* --- opening --------------------------------------------------------------------------------- */

static enum tec_status open_measuring(struct tec_device **out, struct tec_heap *heap,
                                      struct tec_error *err)
{
    *out = tec_heap_get(heap, sizeof **out);
    if (!*out)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a device");
    (*out)->measures = true;
    (*out)->address = FIRST_ADDRESS;
    return TEC_OK;
}

enum tec_status tec_device_check(const struct tec_device_options *options, struct tec_error *err)
{
    const struct tec_device_kind *kind = find(options->kind);
    if (!kind)
        return tec_fail(err, TEC_UNSUPPORTED, "device '%s' is not available in this build; use cpu",
                        options->kind);
    return kind->check(options, err);
}

enum tec_status tec_device_open(struct tec_device **out, const struct tec_device_options *options,
                                struct tec_heap *heap, struct tec_error *err)
{
    TEC_TRY(tec_device_check(options, err));
    const struct tec_device_kind *kind = find(options->kind);
    int lanes = kind->lanes(options);
    if (lanes == 0)
        return tec_fail(err, TEC_DEVICE, "%s:%d: it does not tell how many lanes it has",
                        options->kind, options->index);
    if (lanes < 0 || options->beside < 0 || (options->beside > 0 && options->beside >= lanes))
        return tec_fail(err, TEC_INVALID, "%d lanes, of them %d beside", lanes, options->beside);
    struct tec_device *device;
    TEC_TRY(options->measure ? open_measuring(&device, heap, err)
                             : kind->open(&device, options, heap, err));
    device->kind = kind;
    device->heap = heap;
    device->lanes = lanes;
    device->beside = options->beside;
    device->chooses = device->team && !options->threads && !options->beside && lanes > 1;
    device->branches = kind->branches && kind->branches(options);
    device->workspace = kind->workspace(options);
    device->rows = kind->rows ? kind->rows(options) : 0;
    if (device->measures) {
        device->layout = kind->layout(options);
        atomic_store(&device->memory.bytes, device->workspace);
    }
    *out = device;
    return TEC_OK;
}

void tec_device_close(struct tec_device *device)
{
    if (!device)
        return;
    if (device->measures)
        tec_heap_put(device->heap, device);
    else
        device->kind->close(device);
}

/* --- facts ----------------------------------------------------------------------------------- */

const char *tec_device_kind(const struct tec_device *device)
{
    return device->kind->name;
}

const char *tec_device_computes(const struct tec_device *device)
{
    return device->computes;
}

int tec_device_lanes(const struct tec_device *device)
{
    return device->lanes;
}

int tec_device_lanes_concurrent(const struct tec_device *device)
{
    return device->beside;
}

bool tec_device_branches(const struct tec_device *device)
{
    return device->branches;
}

enum tec_status tec_device_schedule(struct tec_device *device, const struct tec_scheduling *how,
                                    struct tec_error *err)
{
    return device->team ? tec_team_schedule(device->team, how, err) : TEC_OK;
}

enum tec_matrix_layout tec_device_layout(const struct tec_device *device)
{
    return device->layout;
}

bool tec_device_address(const struct tec_device *device, char address[32])
{
    return !device->measures && device->kind->address && device->kind->address(device, address);
}

bool tec_device_reads_host(const struct tec_device *device)
{
    return device->kind->reads_host;
}

size_t tec_device_scratch(const struct tec_device *device, enum tec_stream stream, int head_dim)
{
    int lanes = stream == TEC_STREAM_MAIN ? device->lanes : device->beside;
    return device->kind->scratch(lanes, head_dim);
}

int64_t tec_device_workspace(const struct tec_device *device)
{
    return device->workspace;
}

enum tec_status tec_device_take_rows(struct tec_device *device, struct tec_error *err)
{
    int64_t rows = device->rows;
    if (rows == 0)
        return TEC_OK;
    if (device->measures)
        atomic_fetch_add(&device->memory.bytes, rows);
    else
        TEC_TRY(device->kind->take_rows(device, err));
    device->workspace += rows;
    device->rows = 0;
    return TEC_OK;
}

enum tec_status tec_device_failure(const struct tec_device *device, struct tec_error *err)
{
    if (!atomic_load(&device->failed))
        return TEC_OK;
    if (err)
        *err = device->failure;
    return device->failure.status;
}

/* --- memory ---------------------------------------------------------------------------------- */

void *tec_device_get(struct tec_device *device, size_t size)
{
    if (!device->measures)
        return device->kind->get(device, size);
    void *place = (void *)device->address; /* never read or written */
    device->address += (size + ALIGN - 1) / ALIGN * ALIGN;
    atomic_fetch_add(&device->memory.bytes, (int64_t)size);
    return place;
}

void tec_device_put(struct tec_device *device, void *memory)
{
    if (!device->measures && memory)
        device->kind->put(device, memory);
}

static bool sends(const struct tec_device *device)
{
    return !device->measures && device->kind->send;
}

void *tec_device_pin(struct tec_device *device, size_t size)
{
    return sends(device) ? device->kind->pin(device, size) : tec_heap_get(device->heap, size);
}

void tec_device_unpin(struct tec_device *device, void *memory)
{
    if (sends(device) && memory)
        device->kind->unpin(device, memory);
    else
        tec_heap_put(device->heap, memory);
}

void tec_device_send(struct tec_device *device, void *to, const void *from, size_t size)
{
    if (sends(device))
        device->kind->send(device, to, from, size);
}

void tec_device_note(struct tec_device *device, int note)
{
    if (sends(device))
        device->kind->note(device, note);
}

void tec_device_await(struct tec_device *device, enum tec_stream stream, int note)
{
    if (sends(device))
        device->kind->await(device, stream, note);
}

int64_t tec_device_peak(const struct tec_device *device)
{
    return atomic_load(&device->memory.peak);
}

int64_t tec_device_room(const struct tec_device *device)
{
    return device->measures ? -1 : device->kind->room(device);
}

void tec_device_upload(struct tec_device *device, enum tec_stream stream, void *to,
                       const void *from, size_t size)
{
    if (!device->measures)
        device->kind->upload(device, stream, to, from, size);
}

void tec_device_download(struct tec_device *device, enum tec_stream stream, void *to,
                         const void *from, size_t size)
{
    if (!device->measures)
        device->kind->download(device, stream, to, from, size);
}

void tec_device_fetch(struct tec_device *device, void *to, const void *from, size_t size)
{
    if (!device->measures && device->branches)
        device->kind->fetch(device, to, from, size);
    else
        tec_device_download(device, TEC_STREAM_MAIN, to, from, size);
}

/* --- tables, and work of others -------------------------------------------------------------- */

void tec_device_renew(struct tec_device *device, const struct tec_capture *capture,
                      const struct tec_replay *replay)
{
    for (int i = 0; i < TEC_REPLAY_TABLES; i++) {
        const struct tec_replay_table *t = &replay->tables[i];
        if (t->size)
            tec_device_upload(device, capture->stream, t->device, t->host, t->size);
    }
}

void tec_device_fork(struct tec_device *device, void (*work)(void *user), void *user)
{
    device->kind->fork(device, work, user);
}

void tec_device_join(struct tec_device *device)
{
    device->kind->join(device);
}
