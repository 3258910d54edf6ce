/* memory_text.h - what a pipeline's memory has done so far, for people and for programs. */
#ifndef TEC_TOOLS_MEMORY_TEXT_H
#define TEC_TOOLS_MEMORY_TEXT_H

#include "graph/run/memory.h"

#include <jansson.h>
#include <stdio.h>

/* "  memory 12 units, 3 without kept keys, 45 % of rows": sums of all frames so far. */
void tec_memory_line(FILE *out, struct tec_memory *memory);

/* The same as an object: prompts, units, missing, whole, late (forwards that a server kept
 * waiting), rows, rows_full, waited_us, choose_us, remembered_tokens, stored, loaded_bytes {ram,
 * file, remote}, trouble. Owned by the caller. */
json_t *tec_memory_json(struct tec_memory *memory);

#endif
