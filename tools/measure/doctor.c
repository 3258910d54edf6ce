/* doctor.c - looks at the machine: what of it decides how fast and how evenly frames run, and what
 * would help. One function a part of the report; each reads files of /proc and /sys, says what they
 * hold, and adds the advice that follows from it. */
#include "tools/measure/doctor.h"

#include "base/json_text.h"
#include "kernels/device.h"
#include "tools/measure/bandwidth.h"
#include "tools/measure/system_file.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define CPUS "/sys/devices/system/cpu/"

struct doctor {
    const char *system;
    bool measure;
    struct tec_heap *heap;
    json_t *advice;
};

__attribute__((format(printf, 2, 3))) static void advise(struct doctor *d, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    json_array_append_new(d->advice, tec_json_shown(text));
}

/* The text of a file, or null. */
static json_t *text_of(const char *text)
{
    return text[0] ? tec_json_shown(text) : json_null();
}

static json_t *number(int64_t value)
{
    return value >= 0 ? json_integer(value) : json_null();
}

static json_t *kib(const struct doctor *d, const char *key)
{
    int64_t value = tec_system_number(d->system, "/proc/meminfo", key, -1);
    return number(value < 0 || value > INT64_MAX / 1024 ? -1 : value * 1024);
}

/* The processor's flags between spaces; empty: not known. */
static void find_flags(char flags[TEC_SYSTEM_LINE + 2], const struct doctor *d)
{
    char line[TEC_SYSTEM_LINE];
    if (!tec_system_line(line, d->system, "/proc/cpuinfo", "flags") &&
        !tec_system_line(line, d->system, "/proc/cpuinfo", "Features"))
        line[0] = '\0';
    snprintf(flags, TEC_SYSTEM_LINE + 2, line[0] ? " %s " : "%s", line);
}

/* Which words of a model's `round` make its products with bf16 weights faster here; others lose
 * bits for nothing. */
static json_t *look_round(struct doctor *d)
{
    char flags[TEC_SYSTEM_LINE + 2], maker[TEC_SYSTEM_LINE];
    find_flags(flags, d);
    bool amd = tec_system_line(maker, d->system, "/proc/cpuinfo", "vendor_id") &&
               strcmp(maker, "AuthenticAMD") == 0;
    if (!flags[0])
        return json_null();
    if (strstr(flags, " amx_bf16 "))
        return json_string("bf16x2, mixed and bf16 are faster than none");
    bool arm = strstr(flags, " bf16 "); /* no other processor has a flag of this name */
    if (arm || (amd && strstr(flags, " avx512_bf16 ")))
        return json_string("mixed and bf16 are faster than none");
    return json_string("nothing is faster than none on this processor");
}

/* Which of the instructions that kernels are written for the processor has. */
static json_t *look_isa(struct doctor *d)
{
    static const char *const known[] = {
        "avx2",     "fma",      "f16c",  "avx_vnni", "avx512f", "avx512_vnni", "avx512_bf16",
        "amx_bf16", "amx_int8", "asimd", "asimddp",  "i8mm",    "bf16",        "sve"};
    char flags[TEC_SYSTEM_LINE + 2], *rest, *word;
    json_t *list = json_array();
    bool tiles = false;
    find_flags(flags, d);
    for (word = strtok_r(flags, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
            if (strcmp(word, known[i]) == 0) {
                json_array_append_new(list, json_string(word));
                tiles |= strcmp(word, "amx_bf16") == 0;
            }
    if (tiles)
        advise(d, "this processor has a tile unit (AMX), which multiplies for bf16 models that say "
                  "`round = \"bf16x2\"` (or --set model.round=bf16x2; doc/pipelines.md): frames "
                  "that were measured took 0.4 to 0.6 of their time");
    return list;
}

static json_t *look_tier(struct doctor *d)
{
    if (tec_tier_best() == TEC_TIER_ref)
        advise(d, "this processor runs none of the fast kernels, which need AVX2: frames take many "
                  "times as long");
    return json_string(tec_tier_name(tec_tier_best()));
}

static json_t *look_tiers(struct doctor *d)
{
    (void)d;
    json_t *list = json_array();
    for (int i = 0; i < TEC_TIER_COUNT; i++)
        if (tec_tier_runs_here((enum tec_tier)i))
            json_array_append_new(list, json_string(tec_tier_name((enum tec_tier)i)));
    return list;
}

/* A core is counted at the first of the processors that share it. */
static int count_cores(const struct doctor *d, int online)
{
    int n = 0;
    for (int i = 0; i < online; i++) {
        char path[128];
        snprintf(path, sizeof path, CPUS "cpu%d/topology/thread_siblings_list", i);
        n += tec_system_number(d->system, path, NULL, -1) == i;
    }
    return n;
}

/* Processors that a container may use at a time: "150000 100000" is 1.5; 0 = as many as there are.
 */
static double quota_of(const struct doctor *d)
{
    char text[TEC_SYSTEM_LINE], *end;
    if (!tec_system_line(text, d->system, "/sys/fs/cgroup/cpu.max", NULL))
        return 0;
    double quota = strtod(text, &end), period = end == text ? 0 : strtod(end, NULL);
    return period > 0 && isfinite(quota) ? quota / period : 0;
}

static json_t *look_cores(struct doctor *d)
{
    int online = tec_system_list(d->system, CPUS "online", NULL, -1);
    int cores = online > 0 ? count_cores(d, online) : 0;
    int allowed = tec_system_list(d->system, "/proc/self/status", "Cpus_allowed_list", -1);
    char text[TEC_SYSTEM_LINE];
    double quota = quota_of(d);
    double load = tec_system_line(text, d->system, "/proc/loadavg", NULL) ? strtod(text, NULL) : -1;
    if (online > 0 && load > 0.5 * online)
        advise(d,
               "other programs keep %.1f of %d processors busy (load of the last minute): frames "
               "wait for them; stop them, or give the robot's program processors of its own "
               "(`taskset`, `--threads`)",
               load, online);
    if (quota > 0 && quota < (allowed > 0 ? allowed : online))
        advise(d,
               "the container may use %.1f processors at a time and is stopped for the rest of "
               "each period: raise its limit (`--cpus`), or give `--threads %d`",
               quota, quota < 1 ? 1 : (int)quota);
    return json_pack("{s:o, s:o, s:o, s:o, s:i, s:o, s:o}", "online", number(online), "physical",
                     number(cores ? cores : -1), "threads_a_core",
                     number(cores ? online / cores : -1), "allowed", number(allowed), "isolated",
                     tec_system_list(d->system, CPUS "isolated", NULL, 0), "quota",
                     quota > 0 ? json_real(quota) : json_null(), "load",
                     load >= 0 ? json_real(load) : json_null());
}

static int64_t mhz(const struct doctor *d, const char *file)
{
    char path[128];
    snprintf(path, sizeof path, CPUS "cpu0/cpufreq/%s", file);
    int64_t khz = tec_system_number(d->system, path, NULL, -1);
    return khz < 0 ? -1 : khz / 1000;
}

static json_t *look_clocks(struct doctor *d)
{
    char source[TEC_SYSTEM_LINE];
    int64_t now = mhz(d, "scaling_cur_freq"), most = mhz(d, "scaling_max_freq");
    int64_t able = mhz(d, "cpuinfo_max_freq");
    if (now < 0)
        now = tec_system_number(d->system, "/proc/cpuinfo", "cpu MHz", -1);
    if (most > 0 && able > most)
        advise(d, "clocks are limited to %d MHz of %d: `sudo cpupower frequency-set -u %dMHz`",
               (int)most, (int)able, (int)able);
    tec_system_line(source, d->system,
                    "/sys/devices/system/clocksource/clocksource0/current_clocksource", NULL);
    if (strcmp(source, "hpet") == 0 || strcmp(source, "acpi_pm") == 0)
        advise(d,
               "the system's clock is '%s', which takes about a microsecond to read: boot with "
               "`clocksource=tsc` where the processor has a constant one",
               source);
    return json_pack("{s:o, s:o, s:o, s:o}", "now_mhz", number(now), "min_mhz",
                     number(mhz(d, "scaling_min_freq")), "max_mhz", number(most), "source",
                     text_of(source));
}

static json_t *look_governor(struct doctor *d)
{
    char text[TEC_SYSTEM_LINE];
    tec_system_line(text, d->system, CPUS "cpu0/cpufreq/scaling_governor", NULL);
    if (text[0] && strcmp(text, "performance") != 0)
        advise(d,
               "the governor is '%s': clocks fall between frames and rise during them; `sudo "
               "cpupower frequency-set -g performance`",
               text);
    return text_of(text);
}

static json_t *look_huge_pages(struct doctor *d)
{
    char text[TEC_SYSTEM_LINE];
    tec_system_line(text, d->system, "/sys/kernel/mm/transparent_hugepage/enabled", NULL);
    tec_system_chosen(text);
    if (strcmp(text, "never") == 0)
        advise(d,
               "huge pages are off, so reading weights misses the address cache: `echo madvise | "
               "sudo tee /sys/kernel/mm/transparent_hugepage/enabled`");
    return text_of(text);
}

/* Bytes a second that all processors read together; null where it is not asked for or fails. */
static json_t *read_speed(const struct doctor *d)
{
    double bytes_s = 0;
    int lanes = tec_system_list(d->system, CPUS "online", NULL, 1);
    if (!d->measure || tec_bandwidth_read(&bytes_s, lanes > 256 ? 256 : lanes, (size_t)256 << 20, 5,
                                          d->heap, NULL) != TEC_OK)
        return json_null();
    return json_real(bytes_s);
}

static json_t *look_memory(struct doctor *d)
{
    int64_t total = tec_system_number(d->system, "/proc/meminfo", "SwapTotal", 0);
    int64_t swapped = total - tec_system_number(d->system, "/proc/meminfo", "SwapFree", total);
    int64_t available = tec_system_number(d->system, "/proc/meminfo", "MemAvailable", -1);
    if (swapped > 0 && available >= 0 && available < swapped)
        advise(d,
               "%d MiB of memory are in swap and %d MiB are free: a weight that is swapped out "
               "costs a frame; stop other programs",
               (int)(swapped / 1024), (int)(available / 1024));
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "total_bytes", kib(d, "MemTotal"),
                     "available_bytes", kib(d, "MemAvailable"), "swap_used_bytes",
                     number(swapped < 0 ? 0 : swapped * 1024), "limit_bytes",
                     number(tec_system_number(d->system, "/sys/fs/cgroup/memory.max", NULL, -1)),
                     "read_bytes_s", read_speed(d));
}

/* On mains power (1), on a battery (0), or nobody says (-1). */
static int supply_of(const struct doctor *d)
{
    static const char *const names[] = {"AC", "ACAD", "AC0", "ADP1"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[128];
        snprintf(path, sizeof path, "/sys/class/power_supply/%s/online", names[i]);
        int64_t online = tec_system_number(d->system, path, NULL, -1);
        if (online >= 0)
            return online != 0;
    }
    return -1;
}

/* The power mode: of a laptop its profile, of a Jetson the number of its nvpmodel. */
static void mode_of(struct doctor *d, char mode[TEC_SYSTEM_LINE])
{
    if (tec_system_line(mode, d->system, "/var/lib/nvpmodel/status", "pmode")) {
        if (strtol(mode, NULL, 10) != 0)
            advise(d,
                   "the power mode is %s, not the largest: `sudo nvpmodel -m 0 && sudo "
                   "jetson_clocks`",
                   mode);
        return;
    }
    if (tec_system_line(mode, d->system, "/sys/firmware/acpi/platform_profile", NULL) &&
        strcmp(mode, "performance") != 0)
        advise(d, "the power profile is '%s': `powerprofilesctl set performance`", mode);
}

static json_t *look_power(struct doctor *d)
{
    char mode[TEC_SYSTEM_LINE];
    int supply = supply_of(d);
    int64_t heat =
        tec_system_number(d->system, "/sys/class/thermal/thermal_zone0/temp", NULL, INT64_MIN);
    int64_t throttled =
        tec_system_number(d->system, CPUS "cpu0/thermal_throttle/package_throttle_count", NULL, -1);
    bool counter =
        tec_system_number(d->system, "/sys/class/powercap/intel-rapl:0/energy_uj", NULL, -1) >= 0;
    if (supply == 0)
        advise(d, "the machine runs on its battery: clocks may be lower than on mains power");
    mode_of(d, mode);
    if (throttled > 0)
        advise(d,
               "the processor has lowered its clocks %d times because it was too hot: look at "
               "its cooling",
               (int)throttled);
    return json_pack("{s:o, s:o, s:b, s:o, s:o}", "supply",
                     supply < 0 ? json_null() : json_string(supply ? "mains" : "battery"), "mode",
                     text_of(mode), "counter", counter, "throttled", number(throttled), "celsius",
                     heat == INT64_MIN ? json_null() : json_real((double)heat / 1000));
}

static json_t *look_scheduling(struct doctor *d)
{
    char kernel[TEC_SYSTEM_LINE];
    tec_system_line(kernel, d->system, "/proc/sys/kernel/osrelease", NULL);
    return json_pack("{s:o, s:b}", "kernel", text_of(kernel), "realtime",
                     tec_system_number(d->system, "/sys/kernel/realtime", NULL, 0) == 1);
}

/* What GPU this program could use, or why none. */
static json_t *look_gpu(struct doctor *d)
{
    struct tec_error why = {0};
    const struct tec_device_options gpu = {.kind = "cuda"};
    if (!tec_device_known(gpu.kind))
        return json_string("none: this program was built for the CPU alone");
    if (tec_device_check(&gpu, &why) != TEC_OK)
        return tec_json_shown(why.message);
    (void)d;
    return json_sprintf("cuda:0, %d multiprocessors", tec_device_threads(&gpu));
}

static const struct {
    const char *name;
    json_t *(*look)(struct doctor *d);
} parts[] = {
    {"isa", look_isa},           {"round", look_round},           {"tier", look_tier},
    {"tiers", look_tiers},       {"cores", look_cores},           {"clocks", look_clocks},
    {"governor", look_governor}, {"huge_pages", look_huge_pages}, {"memory", look_memory},
    {"power", look_power},       {"scheduling", look_scheduling}, {"gpu", look_gpu},
};

enum tec_status tec_doctor_look(json_t **report, const char *system, bool measure,
                                struct tec_heap *heap, struct tec_error *err)
{
    struct doctor d = {system, measure, heap, json_array()};
    char model[TEC_SYSTEM_LINE];
    *report = json_object();
    if (!tec_system_line(model, system, "/proc/cpuinfo", "model name"))
        tec_system_line(model, system, "/proc/device-tree/model", NULL); /* ARM: the computer's */
    bool whole = *report && d.advice && json_object_set_new(*report, "cpu", text_of(model)) == 0;
    for (size_t i = 0; whole && i < sizeof parts / sizeof parts[0]; i++)
        whole = json_object_set_new(*report, parts[i].name, parts[i].look(&d)) == 0;
    if (whole)
        whole = json_object_set(*report, "advice", d.advice) == 0;
    json_decref(d.advice);
    if (whole)
        return TEC_OK;
    json_decref(*report);
    *report = NULL;
    return tec_fail(err, TEC_NO_MEMORY, "no memory for the report");
}

static void print_value(const json_t *value, FILE *out);

/* "name value"; bytes as GiB, and bytes a second as GB/s. */
static void print_member(const char *key, const json_t *value, FILE *out)
{
    size_t n = strlen(key);
    if (n > 6 && strcmp(key + n - 6, "_bytes") == 0)
        fprintf(out, "%.*s %.1f GiB", (int)(n - 6), key,
                (double)json_integer_value(value) / (1 << 30));
    else if (strcmp(key, "read_bytes_s") == 0)
        fprintf(out, "read %.1f GB/s", json_real_value(value) / 1e9);
    else {
        fprintf(out, "%s ", key);
        print_value(value, out);
    }
}

/* A member of the report as a line; objects as "name value, name value" without what is null. */
static void print_value(const json_t *value, FILE *out)
{
    const char *separator = "";
    const char *key;
    json_t *item;
    size_t i;
    if (json_is_string(value))
        fputs(json_string_value(value), out);
    else if (json_is_integer(value))
        fprintf(out, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        fprintf(out, "%.4g", json_real_value(value));
    else if (json_is_boolean(value))
        fputs(json_is_true(value) ? "yes" : "no", out);
    else if (json_is_null(value))
        fputs("not known", out);
    json_array_foreach(value, i, item)
    {
        fputs(i ? " " : "", out);
        print_value(item, out);
    }
    json_object_foreach((json_t *)(uintptr_t)value, key, item)
    {
        if (json_is_null(item))
            continue;
        fputs(separator, out);
        print_member(key, item, out);
        separator = ", ";
    }
}

/* Does the system say nothing of all this? */
static bool is_unknown(const json_t *value)
{
    const char *key;
    json_t *item;
    json_object_foreach((json_t *)(uintptr_t)value, key,
                        item) if (!json_is_null(item)) return false;
    return json_is_null(value) || json_is_object(value) ||
           (json_is_array(value) && json_array_size(value) == 0);
}

void tec_doctor_print(const json_t *report, FILE *out)
{
    const char *key;
    json_t *item;
    size_t i;
    json_object_foreach((json_t *)(uintptr_t)report, key, item)
    {
        if (strcmp(key, "advice") == 0)
            continue;
        fprintf(out, "%-11s ", key);
        if (is_unknown(item))
            fputs("not known", out);
        else
            print_value(item, out);
        fputc('\n', out);
    }
    const json_t *advice = json_object_get(report, "advice");
    fputs(json_array_size(advice) ? "\nwhat would help\n" : "\nnothing to mend was found\n", out);
    json_array_foreach(advice, i, item) fprintf(out, "  %zu. %s\n", i + 1, json_string_value(item));
}
