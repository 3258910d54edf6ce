/* engine_budget.c - checks that an engine's memory is within the declared budget and is available.
 *
 * Runs at load, before any weight is read, so a start that cannot fit fails at once and states how
 * much is needed. On a device that reads host memory the weights and the staging of kept KV come
 * out of the same memory; elsewhere they are compared with two amounts. */
#include "graph/run/engine_budget.h"

#include <stdio.h>

static double gib(int64_t bytes)
{
    return (double)bytes / (1024.0 * 1024.0 * 1024.0);
}

static double mib(int64_t bytes)
{
    return (double)bytes / (1024.0 * 1024.0);
}

/* MemAvailable of this machine in bytes, or -1. */
static int64_t available_memory(void)
{
    char line[128];
    long long kib = -1;
    FILE *f = fopen("/proc/meminfo", "re");
    while (f && kib < 0 && fgets(line, sizeof line, f))
        if (sscanf(line, "MemAvailable: %lld kB", &kib) != 1)
            kib = -1;
    if (f)
        fclose(f);
    return kib < 0 ? -1 : (int64_t)kib * 1024;
}

static enum tec_status check_host(const struct tec_pipeline *p, const struct tec_measured *m,
                                  struct tec_error *err)
{
    int nodes[TEC_MAX_MEMORIES], n = tec_memory_nodes(p, -1, nodes);
    if (!p->memory.host || m->host <= p->memory.host)
        return TEC_OK;
    return tec_fail(err, TEC_NO_MEMORY,
                    "%s:%d: memory.host: %.1f MiB of host memory are needed (keys and values of "
                    "'%s'%s on their way %.1f, kept %.1f), budget is %.1f MiB",
                    p->memory.where.file ? p->memory.where.file : "?", p->memory.where.line,
                    mib(m->host),
                    n ? p->resources[p->nodes[nodes[0]].from.index].name : "no memory",
                    n > 1 ? " and others" : "", mib(m->memory.staging), mib(m->memory.kept),
                    mib(p->memory.host));
}

/* The devices that `where` of models names besides the run's. */
static enum tec_status check_others(const struct tec_engine *e, const struct tec_measured *m,
                                    int64_t machine, struct tec_error *err)
{
    for (int i = 1; i < e->n_devices; i++) {
        bool host = tec_device_reads_host(e->devices[i]);
        int64_t there = host ? machine : tec_device_room(e->devices[i]);
        if (there >= 0 && m->needs[i] > there)
            return tec_fail(err, TEC_NO_MEMORY,
                            "models on %s:%d need %.2f GiB, the %s has %.2f GiB free",
                            e->where[i].kind, e->where[i].index, gib(m->needs[i]),
                            host ? "machine" : "device", gib(there));
    }
    return TEC_OK;
}

enum tec_status tec_engine_check_budget(const struct tec_engine *e, const struct tec_measured *m,
                                        struct tec_error *err)
{
    const struct tec_pipeline *p = e->options.pipeline;
    bool host = tec_device_reads_host(e->device);
    int64_t budget = p->memory.device, staging = m->memory.staging, machine = available_memory();
    int64_t there = host ? machine : tec_device_room(e->device);
    int64_t need = m->needs[0] - m->bytes.workspace + (host ? staging : 0);
    double total = gib(m->bytes.total), weights = gib(m->bytes.weights);
    TEC_TRY(check_host(p, m, err));
    if (budget && m->bytes.total > budget)
        return tec_fail(err, TEC_NO_MEMORY,
                        "%s:%d: static plan needs %.2f GiB (weights %.2f + rest %.2f), budget is "
                        "%.2f GiB",
                        p->memory.where.file, p->memory.where.line, total, weights, total - weights,
                        gib(budget));
    if (there >= 0 && need > there)
        return tec_fail(err, TEC_NO_MEMORY,
                        "static plan needs %.2f GiB (weights %.2f), the %s has %.2f GiB free",
                        gib(need), weights, host ? "machine" : "device", gib(there));
    TEC_TRY(check_others(e, m, machine, err));
    if (!host && machine >= 0 && staging > machine)
        return tec_fail(err, TEC_NO_MEMORY,
                        "keys and values on their way need %.2f GiB, the machine has %.2f GiB free",
                        gib(staging), gib(machine));
    return TEC_OK;
}
