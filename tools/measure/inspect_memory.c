/* inspect_memory.c - what the file of a memory says of itself: whose keys, values and vectors. */
#include "base/json_text.h"
#include "graph/memory/log.h"
#include "tools/measure/inspect.h"

#include <stdio.h>
#include <sys/stat.h>

static json_t *hash_of(const uint64_t hash[2])
{
    char text[33];
    snprintf(text, sizeof text, "%016llx%016llx", (unsigned long long)hash[0],
             (unsigned long long)hash[1]);
    return json_string(text);
}

static json_t *encoder_of(const struct tec_log_encoder *e)
{
    return e->id[0] || e->id[1]
               ? json_pack("{s:o, s:o}", "name", tec_json_shown(e->name), "hash", hash_of(e->id))
               : json_null();
}

enum tec_status tec_inspect_memory(json_t *report, const char *path, struct tec_error *err)
{
    struct tec_log_key key;
    struct stat st;
    uint32_t format;
    TEC_TRY(tec_log_look(path, &key, &format, err));
    if (stat(path, &st) != 0)
        return tec_fail(err, TEC_IO, "%s: cannot be looked at", path);
    json_t *facts = json_pack("{s:o, s:s, s:i, s:I, s:i, s:i, s:i, s:o, s:o, s:o, s:o}", "path",
                              tec_json_shown(path), "layout", "memory", "format", (int)format,
                              "bytes", (json_int_t)st.st_size, "layers", (int)key.layers,
                              "row_bytes", (int)key.row_bytes, "width", (int)key.dim, "model",
                              hash_of(key.model), "tokenizer", hash_of(key.tokenizer), "dtype",
                              hash_of(key.dtype), "encoder", encoder_of(&key.encoder));
    bool whole = facts && json_object_update(report, facts) == 0;
    json_decref(facts);
    return whole ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for the report");
}
