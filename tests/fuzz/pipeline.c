/* pipeline.c - fuzzes pipeline files: any bytes are read as a Lua and as a JSON pipeline, and
 * whatever loads must expand. */
#include "graph/load/pipeline.h"

#include <stdlib.h>
#include <string.h>

static void check(const char *path, const char *text, size_t n, const char *const *set, int n_set)
{
    struct tec_heap heap = {0};
    struct tec_diagnostics d;
    struct tec_error err;
    struct tec_pipeline *p = NULL;
    struct tec_load_options options = {
        .path = path, .text = text, .n = n, .root = "pipelines", .set = set, .n_set = n_set};
    tec_diagnostics_init(&d, &heap);
    if (tec_pipeline_load(&p, &options, &heap, &d, &err) == TEC_OK) {
        json_t *form = NULL;
        if (tec_pipeline_expand(&form, p, &err) != TEC_OK)
            abort();
        char *once = json_dumps(form, 0);
        if (!once)
            abort();
        free(once);
        json_decref(form);
    }
    FILE *sink = fopen("/dev/null", "w");
    if (sink) {
        tec_diagnostics_print(&d, TEC_PRINT_TEXT, sink);
        tec_diagnostics_print(&d, TEC_PRINT_JSON, sink);
        tec_diagnostics_print(&d, TEC_PRINT_GITHUB, sink);
        fclose(sink);
    }
    tec_pipeline_free(p);
    tec_diagnostics_finish(&d);
    if (heap.live != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *text = malloc(n + 1);
    if (!text)
        return 0;
    memcpy(text, data, n);
    text[n] = '\0';
    check("fuzz/x.lua", text, n, NULL, 0);
    /* the first line as a --set on a file that is right */
    const char *set[] = {text};
    text[strcspn(text, "\n")] = '\0';
    check("pipelines/demo_metaworld.lua", NULL, 0, set, 1);
    free(text);
    return 0;
}
