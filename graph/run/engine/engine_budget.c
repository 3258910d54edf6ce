/* engine_budget.c - checks that an engine's memory is within the declared budget and is available.
 *
 * Runs at load, before any weight is read, so a start that cannot fit fails at once and states how
 * much is needed. On a device that reads host memory the weights and the staging of kept KV come
 * out of the same memory; elsewhere they are compared with two amounts. */
#include "graph/run/engine/engine_own.h"

#include "base/byte_text.h"

#include <stdio.h>

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
    char need[24], staging[24], kept[24], budget[24];
    if (!p->memory.host || m->host <= p->memory.host)
        return TEC_OK;
    return tec_where_fail(err, TEC_NO_MEMORY, &p->memory.where,
                          "memory.host: %s of host memory are needed (keys and values of "
                          "'%s'%s on their way %s, kept %s), budget is %s",
                          tec_byte_text(need, m->host),
                          n ? p->resources[p->nodes[nodes[0]].from.index].name : "no memory",
                          n > 1 ? " and others" : "", tec_byte_text(staging, m->memory.staging),
                          tec_byte_text(kept, m->memory.kept),
                          tec_byte_text(budget, p->memory.host));
}

/* The devices that `where` of models names besides the run's. */
static enum tec_status check_others(const struct tec_engine *e, const struct tec_measured *m,
                                    int64_t machine, struct tec_error *err)
{
    char need[24], room[24];
    for (int i = 1; i < e->n_devices; i++) {
        bool host = tec_device_reads_host(e->devices[i]);
        int64_t there = host ? machine : tec_device_room(e->devices[i]);
        if (there >= 0 && m->needs[i] > there)
            return tec_fail(err, TEC_NO_MEMORY, "models on %s:%d need %s, the %s has %s free",
                            e->where[i].kind, e->where[i].index, tec_byte_text(need, m->needs[i]),
                            host ? "machine" : "device", tec_byte_text(room, there));
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
    int64_t taken = tec_device_workspace(e->device), need = m->needs[0] - taken;
    char needed[24], weights[24], rest[24], room[24];
    need += host ? staging : 0;
    tec_byte_text(weights, m->bytes.weights);
    TEC_TRY(check_host(p, m, err));
    if (budget && m->bytes.total > budget)
        return tec_fail(
            err, TEC_NO_MEMORY, "%s:%d: static plan needs %s (weights %s + rest %s), budget is %s",
            p->memory.where.file, p->memory.where.line, tec_byte_text(needed, m->bytes.total),
            weights, tec_byte_text(rest, m->bytes.total - m->bytes.weights),
            tec_byte_text(room, budget));
    if (there >= 0 && need > there)
        return tec_fail(err, TEC_NO_MEMORY, "static plan needs %s (weights %s), the %s has %s free",
                        tec_byte_text(needed, need), weights, host ? "machine" : "device",
                        tec_byte_text(room, there));
    TEC_TRY(check_others(e, m, machine, err));
    if (!host && machine >= 0 && staging > machine)
        return tec_fail(err, TEC_NO_MEMORY,
                        "keys and values on their way need %s, the machine has %s free",
                        tec_byte_text(needed, staging), tec_byte_text(room, machine));
    return TEC_OK;
}
