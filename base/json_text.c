/* json_text.c - JSON values as text: whole, or an error and nothing. */
#include "base/json_text.h"

#include "base/escape.h"
#include "base/out_file.h"

#include <math.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

/* The only state here that is no caller's: jansson calls its allocator without a context. */
static _Thread_local bool refused;

/* Memory handed to jansson when malloc fails, because its reader asserts that the text of a number
 * could be stored. Blocks are laid out one after another, and all are free again when the last one
 * is. */
enum { RESERVE = 1 << 14, ALIGN = 16 };
static struct {
    _Alignas(ALIGN) char bytes[RESERVE];
    _Atomic uint64_t state; /* blocks that are in use << 32 | bytes up to the end of the last one */
} reserve;

static void *take_reserve(size_t bytes)
{
    size_t size = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    uint64_t state = atomic_load(&reserve.state), used;
    do {
        used = state & UINT32_MAX;
        if (bytes > RESERVE || used + size > RESERVE)
            return NULL;
    } while (
        !atomic_compare_exchange_weak(&reserve.state, &state, state + (UINT64_C(1) << 32) + size));
    return reserve.bytes + used;
}

static void *get(size_t bytes)
{
    void *block = malloc(bytes);
    refused |= !block;
    return block ? block : take_reserve(bytes);
}

static void put(void *block)
{
    char *at = block;
    if (at < reserve.bytes || at >= reserve.bytes + RESERVE) {
        free(block);
        return;
    }
    uint64_t state = atomic_load(&reserve.state), left;
    do {
        left = state - (UINT64_C(1) << 32);
        if (left >> 32 == 0)
            left = 0;
    } while (!atomic_compare_exchange_weak(&reserve.state, &state, left));
}

void tec_json_watch(void)
{
    json_set_alloc_funcs(get, put);
}

bool tec_json_refused(void)
{
    bool was = refused;
    refused = false;
    return was;
}

char *tec_json_whole(const json_t *json, size_t flags)
{
    char *text = json ? json_dumps(json, flags) : NULL;
    if (!tec_json_refused())
        return text;
    put(text); /* the block may lie in the reserve, and the value after it would be cut short */
    return NULL;
}

enum tec_status tec_json_print(FILE *out, const json_t *json, size_t flags, const char *what,
                               struct tec_error *err)
{
    char *text = tec_json_whole(json, flags);
    if (!text)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for %s", what);
    fputs(text, out);
    fputc('\n', out);
    free(text);
    return TEC_OK;
}

enum tec_status tec_json_write(const char *path, const json_t *json, size_t flags,
                               struct tec_error *err)
{
    struct tec_out_file out = {0};
    TEC_TRY(tec_outfile_file_open(&out, path, err));
    enum tec_status status = tec_json_print(out.file, json, flags, path, err);
    if (status == TEC_OK)
        status = tec_outfile_file_keep(&out, err);
    tec_outfile_file_drop(&out);
    return status;
}

json_t *tec_json_number(double number)
{
    return isfinite(number) ? json_real(number) : json_null();
}

json_t *tec_json_shown(const char *text)
{
    json_t *string = json_string(text);
    if (string || !text)
        return string;
    char shown[4096];
    tec_escape(shown, sizeof shown, text);
    return json_string(shown);
}
