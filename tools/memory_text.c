#include "tools/memory_text.h"

void tec_memory_line(FILE *out, const struct tec_memory_counts *before, struct tec_memory *memory)
{
    const struct tec_memory_counts c = tec_memory_counts(memory);
    int64_t full = c.rows_full - before->rows_full;
    fprintf(out, "  memory: %u remembered", c.store.units);
    if (c.prompts > before->prompts)
        fprintf(out, ", %lld in the prompt, %lld without kept keys, %.0f %% of rows",
                (long long)(c.units - before->units), (long long)(c.missing - before->missing),
                full ? 100.0 * (double)(c.rows - before->rows) / (double)full : 0.0);
    if (c.whole > before->whole)
        fputs(", computed whole", out);
}

json_t *tec_memory_json(struct tec_memory *memory)
{
    const struct tec_memory_counts c = tec_memory_counts(memory);
    char trouble[TEC_MEMORY_TEXT];
    tec_memory_trouble(memory, trouble);
    return json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:{s:I, s:I, s:I}, s:s}",
        "prompts", (json_int_t)c.prompts, "units", (json_int_t)c.units, "missing",
        (json_int_t)c.missing, "whole", (json_int_t)c.whole, "late",
        (json_int_t)c.store.remote.late, "rows", (json_int_t)c.rows, "rows_full",
        (json_int_t)c.rows_full, "waited_us", (json_int_t)(c.waited_ns / 1000), "choose_us",
        (json_int_t)(c.choose_ns / 1000), "remembered_tokens", (json_int_t)c.remembered_tokens,
        "stored", (json_int_t)c.store.units, "loaded_bytes", "ram",
        (json_int_t)c.feed.bytes[TEC_KEPT_RAM], "file", (json_int_t)c.feed.bytes[TEC_KEPT_FILE],
        "remote", (json_int_t)c.feed.bytes[TEC_KEPT_REMOTE], "trouble", trouble);
}
