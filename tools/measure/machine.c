/* machine.c - describes the machine that a measurement ran on: its processor, its frequency
 * governor, its load, the device and the commit. */
#include "tools/measure/machine.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#ifndef TECTUM_COMMIT
#define TECTUM_COMMIT "unknown"
#endif

/* Read what follows the first ':' of the first line that begins with `key` (NULL: the first
 * line). */
static void read_field(const char *path, const char *key, char out[128])
{
    char line[512];
    FILE *f = fopen(path, "re");
    snprintf(out, 128, "unknown");
    while (f && fgets(line, sizeof line, f)) {
        if (key && strncmp(line, key, strlen(key)) != 0)
            continue;
        const char *colon = key ? strchr(line, ':') : NULL;
        const char *text = colon ? colon + 1 : line;
        text += strspn(text, " \t");
        line[strcspn(line, "\n")] = '\0';
        snprintf(out, 128, "%.127s", text);
        break;
    }
    if (f)
        fclose(f);
}

/* The processor's name; on ARM, where the system has none, the computer's. */
static void cpu_of(char out[128])
{
    read_field("/proc/cpuinfo", "model name", out);
    if (strcmp(out, "unknown") == 0)
        read_field("/proc/device-tree/model", NULL, out);
}

static void governor_of(char out[128])
{
    read_field("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", NULL, out);
}

json_t *tec_machine_json(const struct tec_device *device)
{
    char cpu[128], governor[128];
    struct utsname name = {.release = "unknown"};
    uname(&name);
    cpu_of(cpu);
    governor_of(governor);
    return json_pack("{s:s,s:i,s:s,s:s,s:s,s:s,s:i}", "cpu", cpu, "cores",
                     (int)sysconf(_SC_NPROCESSORS_ONLN), "kernel", name.release, "governor",
                     governor, "device", tec_device_kind(device), "tier",
                     tec_device_computes(device), "lanes", tec_device_lanes(device));
}

void tec_machine_print(const struct tec_device *device, FILE *out)
{
    char cpu[128], governor[128];
    struct utsname name = {.release = "unknown"};
    uname(&name);
    cpu_of(cpu);
    governor_of(governor);
    fprintf(out, "host: %s, %d cores, kernel %s, governor %s; %s, tier %s, %d lanes; commit %s\n",
            cpu, (int)sysconf(_SC_NPROCESSORS_ONLN), name.release, governor,
            tec_device_kind(device), tec_device_computes(device), tec_device_lanes(device),
            tec_machine_commit());
}

double tec_machine_load(void)
{
    double load;
    return getloadavg(&load, 1) == 1 ? load : -1.0;
}

const char *tec_machine_commit(void)
{
    return TECTUM_COMMIT;
}
