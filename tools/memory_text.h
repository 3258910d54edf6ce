/* memory_text.h - what a pipeline's memory did, for people and for programs. */
#ifndef TEC_TOOLS_MEMORY_TEXT_H
#define TEC_TOOLS_MEMORY_TEXT_H

#include "graph/run/memory.h"

#include <jansson.h>
#include <stdio.h>

/* "  memory: 5 remembered, 3 in the prompt, 1 without kept keys, 45 % of rows": what there is, and
 * what a frame's prompt had; `before`: the counts before that frame. */
void tec_memory_line(FILE *out, const struct tec_memory_counts *before, struct tec_memory *memory);

/* Sums of all frames so far as an object: prompts, units, missing, whole, late (forwards that a
 * server kept waiting), rows, rows_full, waited_us, choose_us, remembered_tokens, stored,
 * loaded_bytes {ram, file, remote}, trouble. Owned by the caller. */
json_t *tec_memory_json(struct tec_memory *memory);

#endif
