/* devices.c - `where` of a model: the devices that it may go to, the first that is there. */
#include "graph/load/loader.h"

#include "base/number.h"

#include <string.h>

/* One name: cpu, cuda or cuda:N. */
static bool read_name(const char *at, size_t n, struct tec_decl_device *out)
{
    char text[32];
    int64_t index = 0;
    while (n && *at == ' ') {
        at++;
        n--;
    }
    while (n && at[n - 1] == ' ')
        n--;
    if (!n || n >= sizeof text)
        return false;
    memcpy(text, at, n);
    text[n] = '\0';
    bool cuda = strncmp(text, "cuda", 4) == 0;
    if (!cuda && strcmp(text, "cpu") != 0)
        return false;
    if (cuda && text[4] && (text[4] != ':' || !tec_number_parse(text + 5, &index)))
        return false;
    *out = (struct tec_decl_device){.kind = cuda ? "cuda" : "cpu", .index = (int)index};
    return index >= 0 && index < 1024;
}

int tec_pipeline_devices(const struct tec_decl_model *m, struct tec_decl_device *list, int most)
{
    int n = 0;
    for (const char *at = m->device; at;) {
        size_t length = strcspn(at, ",");
        if (n == most || !read_name(at, length, &list[n]))
            return -1;
        n++;
        at = at[length] ? at + length + 1 : NULL;
    }
    return n;
}

void tec_check_devices(struct tec_loader *ld)
{
    struct tec_decl_device list[TEC_MAX_WHERE];
    for (int i = 0; i < ld->pipeline->n_models; i++) {
        const struct tec_decl_model *m = &ld->pipeline->models[i];
        if (tec_pipeline_devices(m, list, TEC_MAX_WHERE) >= 0)
            continue;
        struct tec_diagnostic *d = tec_diagnostics_add(
            ld->d, TEC_E011, tec_where_field(ld, &ld->models[i], "where"),
            "'%.80s' is no list of up to %d devices, the best first", m->device, TEC_MAX_WHERE);
        tec_diagnostics_help(ld->d, d, "cpu, cuda or cuda:N, as in \"cuda:1,cuda,cpu\"");
    }
}
