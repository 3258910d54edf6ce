/* memory_text.h - what a pipeline's memory did, for people and for programs. */
#ifndef TEC_TOOLS_FRAMES_MEMORY_TEXT_H
#define TEC_TOOLS_FRAMES_MEMORY_TEXT_H

#include "graph/run/memory.h"
#include "tools/cli/command.h"

#include <jansson.h>
#include <stdio.h>

/* "  memory: 5 remembered, 3 in the prompt, 1 without kept keys, 45 % of rows": what there is, and
 * what a frame's prompt had; `before`: the counts before that frame. */
void tec_memory_line(FILE *out, const struct tec_memory_counts *before, struct tec_memory *memory);

/* Sums of all frames so far as an object: prompts, segments, missing, whole, late (forwards that a
 * server kept waiting), rows, rows_full, waited_us, choose_us, remembered_tokens, stored,
 * loaded_bytes {ram, file, remote}, damaged, writable, trouble. Owned by the caller. */
json_t *tec_memory_json(struct tec_memory *memory);

/* How a memory is, as an object, from any thread while the engine is open: stored, damaged (records
 * of the file that could not be used: records, file, first [{offset, bytes, segment, what}]),
 * writable, trouble; null for NULL. Owned by the caller. */
json_t *tec_memory_state_json(struct tec_memory *memory);

/* Print a sentence each about damaged records and a file that cannot be written, if there are any.
 */
void tec_memory_say_state(struct tec_memory *memory, struct tec_invocation *call);

#endif
