/* energy.c - joules from counters of the machine. */
#include "tools/measure/energy.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char system_folder[] = "/sys/class/powercap";

/* The first line of a file, without its end. */
static bool read_line(const char *path, char *line, int size)
{
    FILE *f = fopen(path, "re");
    bool got = f && fgets(line, size, f);
    if (f)
        fclose(f);
    if (got)
        line[strcspn(line, "\r\n")] = '\0';
    return got;
}

static bool read_number(const char *path, int64_t *value)
{
    char line[64], *end;
    if (!read_line(path, line, sizeof line) || !isdigit((unsigned char)line[0]))
        return false;
    errno = 0;
    *value = strtoll(line, &end, 10);
    return errno == 0 && *end == '\0';
}

static bool read_counter(const struct tec_energy_counter *c, int64_t *uj)
{
    if (c->path[0])
        return read_number(c->path, uj);
    return c->read && c->read(c->self, uj) && *uj >= 0;
}

bool tec_energy_add(struct tec_energy *energy, const struct tec_energy_counter *counter)
{
    if (energy->n == TEC_ENERGY_COUNTERS || counter->range_uj < 0)
        return false;
    struct tec_energy_counter *c = &energy->counters[energy->n];
    *c = *counter;
    if (!read_counter(c, &c->last_uj))
        return false;
    energy->n++;
    return true;
}

/* "package-0" has everything of a processor; "dram" is beside it; "core", "uncore" and "psys" are
 * parts of it, or hold it. */
static bool counts_secondary(const char *name)
{
    return strncmp(name, "package", 7) == 0 || strcmp(name, "dram") == 0;
}

static void add_zone(struct tec_energy *energy, const char *folder, const char *zone)
{
    struct tec_energy_counter c = {.read = NULL};
    char path[512];
    int n = snprintf(path, sizeof path, "%s/%s/name", folder, zone);
    if (n < 0 || (size_t)n >= sizeof path || !read_line(path, c.name, sizeof c.name) ||
        !counts_secondary(c.name))
        return;
    n = snprintf(path, sizeof path, "%s/%s/max_energy_range_uj", folder, zone);
    if (n < 0 || (size_t)n >= sizeof path || !read_number(path, &c.range_uj))
        c.range_uj = 0;
    n = snprintf(c.path, sizeof c.path, "%s/%s/energy_uj", folder, zone);
    if (n > 0 && (size_t)n < sizeof c.path)
        tec_energy_add(energy, &c);
}

static int wanted(const struct dirent *entry)
{
    return strchr(entry->d_name, ':') != NULL; /* "intel-rapl:0", not the control type itself */
}

void tec_energy_open(struct tec_energy *energy, const char *folder)
{
    struct dirent **zones = NULL;
    memset(energy, 0, sizeof *energy);
    folder = folder ? folder : system_folder;
    int n = scandir(folder, &zones, wanted, alphasort);
    for (int i = 0; i < n; i++) {
        add_zone(energy, folder, zones[i]->d_name);
        free(zones[i]);
    }
    free(zones);
}

bool tec_energy_read(struct tec_energy *energy, double *joules)
{
    *joules = -1.0;
    for (int i = 0; i < energy->n && !energy->lost; i++) {
        struct tec_energy_counter *c = &energy->counters[i];
        int64_t now, more;
        if (!read_counter(c, &now)) {
            energy->lost = true;
            break;
        }
        more = now - c->last_uj;
        if (more < 0 && c->range_uj > 0)
            more += c->range_uj;
        energy->lost = more < 0; /* backwards for no reason, or more than once round */
        energy->total_uj += more < 0 ? 0 : more;
        c->last_uj = now;
    }
    if (energy->n == 0 || energy->lost)
        return false;
    *joules = (double)energy->total_uj / 1e6;
    return true;
}

/* --- sums ------------------------------------------------------------------------------------ */

void tec_energy_begin(struct tec_energy *energy, struct tec_energy_sum *sum)
{
    tec_energy_read(energy, &sum->before);
}

void tec_energy_end(struct tec_energy *energy, struct tec_energy_sum *sum)
{
    double now;
    if (tec_energy_read(energy, &now) && sum->before >= 0.0)
        sum->joules += now - sum->before;
    else
        sum->unknown = true;
}

/* A card's counter moves a few times a second: where it has not, the time was too short to tell. */
static bool is_known(const struct tec_energy *energy, const struct tec_energy_sum *sum, int64_t n)
{
    return energy->n > 0 && !sum->unknown && sum->joules > 0.0 && n > 0;
}

json_t *tec_energy_json(const struct tec_energy *energy, const struct tec_energy_sum *sum,
                        const char *each, int64_t n, const char *other, int64_t n_other)
{
    if (!is_known(energy, sum, n))
        return NULL;
    json_t *counters = json_array();
    for (int i = 0; i < energy->n; i++)
        json_array_append_new(counters, json_string(energy->counters[i].name));
    json_t *json = json_pack("{s:f,s:f}", "joules", sum->joules, each, sum->joules / (double)n);
    if (other && n_other > 0)
        json_object_set_new(json, other, json_real(sum->joules / (double)n_other));
    json_object_set_new(json, "counters", counters);
    return json;
}

void tec_energy_print(const struct tec_energy *energy, const struct tec_energy_sum *sum,
                      const char *each, int64_t n, const char *other, int64_t n_other, FILE *out)
{
    if (!is_known(energy, sum, n))
        return;
    fprintf(out, "  %.4g J %s", sum->joules / (double)n, each);
    if (other && n_other > 0)
        fprintf(out, ", %.4g J %s", sum->joules / (double)n_other, other);
    for (int i = 0; i < energy->n; i++)
        fprintf(out, "%s%s", i ? ", " : ": counted by ", energy->counters[i].name);
    fputc('\n', out);
}
