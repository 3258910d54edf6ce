/* engine_devices.c - opens the devices that the models of a pipeline go to.
 *
 * Runs at load. A model without `where` is on the run's device. What crosses devices between models
 * are texts and pictures, which the host has anyway, so a plan never reads another device's memory;
 * launches of all devices follow each other on the frame thread. */
#include "graph/run/engine/engine_own.h"

#include <string.h>

static bool is_run(const struct tec_engine *e, const struct tec_decl_device *d)
{
    const struct tec_device_options *run = &e->options.device;
    return strcmp(run->kind, d->kind) == 0 &&
           (run->index == d->index || strcmp(d->kind, "cpu") == 0);
}

/* The options of such a device: the run's, but for what it is. */
static struct tec_device_options options_of(const struct tec_engine *e,
                                            const struct tec_decl_device *d, bool measure)
{
    struct tec_device_options o = e->options.device;
    o.kind = d->kind;
    o.index = d->index;
    o.beside = 0;
    o.measure = measure;
    return o;
}

/* The earlier device that is this one; 0 = none. */
static int opened(const struct tec_engine *e, const struct tec_decl_device *d)
{
    for (int i = 1; i < e->n_devices; i++)
        if (strcmp(e->where[i].kind, d->kind) == 0 && e->where[i].index == d->index)
            return i;
    return 0;
}

/* The first device of a model's list that is here; -1 = none is, and `why` says it of the last. */
static int first_usable(const struct tec_engine *e, const struct tec_decl_device *list, int n,
                        struct tec_error *why)
{
    for (int i = 0; i < n; i++) {
        const struct tec_device_options o = options_of(e, &list[i], false);
        if (is_run(e, &list[i]))
            return i;
        if (!tec_device_known(list[i].kind))
            (void)tec_fail(why, TEC_DEVICE, "this build has no %s", list[i].kind);
        else if (tec_device_check(&o, why) == TEC_OK)
            return i;
    }
    return -1;
}

static void report(const struct tec_engine *e, const struct tec_decl_model *m,
                   const struct tec_decl_device *used, const struct tec_error *why)
{
    struct tec_diagnostics *d = e->options.found;
    if (d)
        tec_diagnostics_add(d, TEC_W109, tec_decl_place(&m->places, "where", m->where),
                            "'%s' goes to %s, not to the first of '%.80s': %.160s", m->name,
                            used->kind, m->device, why->message);
}

/* Give a model its device. */
static enum tec_status place(struct tec_engine *e, struct tec_engine_model *m, bool measure,
                             struct tec_error *err)
{
    const struct tec_decl_model *decl = &e->options.pipeline->models[m->index];
    struct tec_decl_device list[TEC_MAX_WHERE];
    struct tec_error why = {.message = ""};
    int n = tec_pipeline_devices(decl, list, TEC_MAX_WHERE);
    int at = n > 0 ? first_usable(e, list, n, &why) : -1;
    m->device = e->device;
    if (n > 0 && at < 0)
        return tec_where_fail(err, TEC_DEVICE, &decl->where, "model '%s' goes to '%.80s': %.160s",
                              decl->name, decl->device, why.message);
    if (at > 0 && measure)
        report(e, decl, &list[at], &why);
    if (n <= 0 || is_run(e, &list[at]))
        return TEC_OK;
    if (m == e->chains[0].of && e->options.device.beside)
        return tec_where_fail(err, TEC_UNSUPPORTED, &decl->where,
                              "not in this release: model '%s' goes to '%.80s', partitions are "
                              "of the run's device; give --device %s",
                              decl->name, decl->device, list[at].kind);
    int there = opened(e, &list[at]);
    if (!there) {
        const struct tec_device_options o = options_of(e, &list[at], measure);
        there = e->n_devices;
        TEC_TRY(tec_device_open(&e->devices[there], &o, e->heap, err));
        e->where[there] = list[at];
        e->n_devices++;
    }
    m->device = e->devices[there];
    return TEC_OK;
}

/* The run's device is another engine's, which may have it from a third. It splits off as many lanes
 * as that one's pipeline says. */
static enum tec_status borrow(struct tec_engine *e, struct tec_error *err)
{
    const struct tec_engine *owner = e->options.shares;
    while (owner->borrows)
        owner = owner->options.shares;
    int beside = e->options.device.beside, there = owner->options.device.beside;
    if (beside && beside != there)
        return tec_fail(err, TEC_UNSUPPORTED,
                        "not in this release: partitions of %d lanes in pipeline %s, beside "
                        "pipeline %s, whose have %d: lanes are split alike, or not at all",
                        beside, e->options.pipeline->name, owner->options.pipeline->name, there);
    e->device = owner->device;
    return TEC_OK;
}

enum tec_status tec_engine_open_devices(struct tec_engine *e, bool measure, struct tec_error *err)
{
    struct tec_device_options run = e->options.device;
    run.measure = measure;
    e->borrows = !measure && e->options.shares;
    if (e->borrows)
        TEC_TRY(borrow(e, err));
    else
        TEC_TRY(tec_device_open(&e->device, &run, e->heap, err));
    e->devices[0] = e->device;
    e->n_devices = 1;
    for (int i = 0; i < e->n_models; i++)
        TEC_TRY(place(e, &e->models[i], measure, err));
    return TEC_OK;
}

void tec_engine_close_devices(struct tec_engine *e)
{
    for (int i = e->borrows; i < e->n_devices; i++)
        tec_device_close(e->devices[i]);
    e->borrows = false;
    e->device = NULL;
    memset(e->devices, 0, sizeof e->devices);
    e->n_devices = 0;
}

int tec_engine_device_of(const struct tec_engine *e, const struct tec_engine_model *m)
{
    int at = 0;
    while (at < e->n_devices - 1 && e->devices[at] != m->device)
        at++;
    return at;
}

enum tec_status tec_engine_schedule(struct tec_engine *e, pthread_t frames,
                                    const struct tec_scheduling *how, struct tec_error *err)
{
    TEC_TRY(tec_thread_schedule(frames, how, 0, err));
    for (int i = 0; i < e->n_devices; i++)
        TEC_TRY(tec_device_schedule(e->devices[i], how, err));
    return TEC_OK;
}

enum tec_status tec_engine_failure(const struct tec_engine *e, struct tec_error *err)
{
    for (int i = 0; i < e->n_devices; i++)
        TEC_TRY(tec_device_failure(e->devices[i], err));
    return TEC_OK;
}
