/* memory_text.h - what a pipeline's memories did, for people and for programs. */
#ifndef TEC_TOOLS_FRAMES_MEMORY_TEXT_H
#define TEC_TOOLS_FRAMES_MEMORY_TEXT_H

#include "graph/run/engine/engine.h"
#include "tools/cli/command.h"

#include <jansson.h>
#include <stdio.h>

/* The counts of a session's memories: [n_memories]. */
void tec_frame_memory_count(const struct tec_engine *engine, int session,
                            struct tec_memory_counts *out);

/* "  memory: 5 remembered, 3 in the prompt, 1 without kept keys, 45 % of rows": what there is, and
 * what a frame's prompt had, of each memory of a session (`before`: [n_memories] the counts before
 * that frame); of several with its name. */
void tec_frame_memory_line(FILE *out, const struct tec_engine *engine, int session,
                           const struct tec_memory_counts *before);

/* Sums of all frames so far as an object: prompts, segments, missing, whole, late (forwards that a
 * server kept waiting), rows, rows_full, waited_us, choose_us, remembered_tokens, stored,
 * loaded_bytes {ram, file, remote, gpu}, damaged, writable, trouble, and where there are other
 * sessions shared: all of a session's. Of several memories an object of such by name; null without
 * any. Owned by the caller. */
json_t *tec_frame_memory_json(const struct tec_engine *engine, int session);

/* How the memories are, in the same form, from any thread while the engine is open: stored, damaged
 * (records of the file that could not be used: records, file, first [{offset, bytes, segment,
 * what}]), writable, trouble; of several sessions a list, by session; null for NULL. Owned by the
 * caller. */
json_t *tec_frame_memory_state_json(const struct tec_engine *engine);

/* Print a sentence each about damaged records and a file that cannot be written, if there are any.
 */
void tec_frame_memory_say_state(const struct tec_engine *engine, struct tec_invocation *call);

#endif
