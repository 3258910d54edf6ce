/* replay_options.h - how a recording was made, as the options of a call that runs it again. */
#ifndef TEC_TOOLS_RECORD_REPLAY_OPTIONS_H
#define TEC_TOOLS_RECORD_REPLAY_OPTIONS_H

#include "graph/load/pipeline.h"
#include "graph/run/recall/memory.h"
#include "tools/cli/command.h"
#include "tools/record/mcap_read.h"

#include <jansson.h>

/* The recording's pipeline and policy as files of a folder that is made for them, and what the
 * message /tectum/recording says. */
struct tec_replay_source {
    char folder[64];
    char pipeline[128], policy[256]; /* policy "": none was recorded */
    json_t *about;                   /* what /tectum/recording says; owned */
    const char *dtype, *hash;        /* NULL: not said; the call's arena's */
    const char *weights;             /* likewise: what is in them (tec_checkpoint_content) */
    int actions;                     /* of struct tec_engine_options */
    struct tec_memory_start *starts; /* [n_starts] what memories began with; the call's arena's */
    int n_starts;
    const char *others; /* how the weights are others than the recording's; NULL: they are not */
};

/* Options that the call does not give become the recording's. TEC_MALFORMED where the recording
 * says nothing about itself; TEC_INVALID where the call sets a trigger of a text, which nothing
 * would follow: texts begin where they began in the recording; TEC_IO. */
enum tec_status tec_replay_source_open(struct tec_replay_source *source,
                                       struct tec_invocation *call, struct tec_mcap_reader *file,
                                       struct tec_error *err);
/* Find out whether the weights are others than the recording's: by their content, of recordings
 * that name it, else by the forms of their tensors; of random ones (weights NULL) by seed and size.
 * TEC_IO, TEC_NO_MEMORY. */
enum tec_status tec_replay_source_weights(struct tec_replay_source *source,
                                          struct tec_invocation *call,
                                          const struct tec_checkpoint *weights,
                                          struct tec_error *err);
/* Say behind a replay what it has otherwise than the recording: its weights, and where anything
 * came out otherwise (`differs`) the words of --set. Of one that failed the message begins with the
 * weights. Returns `status`. */
enum tec_status tec_replay_source_tell(const struct tec_replay_source *source,
                                       const struct tec_invocation *call, bool differs,
                                       enum tec_status status, struct tec_error *err);
/* replay_memory.c: then, where memories are to begin as they began then: their starts, with what is
 * attached as files of the folder. Files are hostile: TEC_MALFORMED; TEC_IO. And their files
 * removed. */
enum tec_status tec_replay_memories(struct tec_replay_source *source, struct tec_invocation *call,
                                    struct tec_mcap_reader *file, struct tec_error *err);
/* Whether each --set of a memory's store is read: TEC_INVALID where the recording holds what the
 * memory began with, or it begins empty. Behind tec_replay_memories, where that is called. */
enum tec_status tec_replay_check_stores(const struct tec_replay_source *source,
                                        const struct tec_invocation *call, struct tec_error *err);
void tec_replay_memories_close(struct tec_replay_source *source);
void tec_replay_source_close(struct tec_replay_source *source); /* zeroed is allowed */

#endif
