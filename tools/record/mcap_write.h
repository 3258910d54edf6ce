/* mcap_write.h - writes MCAP files (mcap.dev/spec, version 0): channels of messages in chunks, with
 * an index behind them.
 *
 * A chunk is written whole and flushed, so what a kill leaves is readable up to the last chunk. Not
 * for the frame thread: it allocates and writes. After a failure nothing more is written. */
#ifndef TEC_TOOLS_RECORD_MCAP_WRITE_H
#define TEC_TOOLS_RECORD_MCAP_WRITE_H

#include "base/error.h"
#include "tools/record/buffer.h"

#include <stdio.h>

enum { TEC_MCAP_CHANNELS = 128, TEC_MCAP_CHUNK = 1 << 20 /* bytes, and what ends one beyond it */ };

/* What a channel's messages are. Texts are borrowed until close. */
struct tec_mcap_channel {
    const char *topic, *encoding;                       /* "json", "cdr", "x-..." */
    const char *schema, *schema_encoding, *schema_text; /* schema NULL: it has none */
};

/* Zero-initialise; owned by the caller. */
struct tec_mcap_writer {
    struct tec_heap *heap;
    const char *path; /* borrowed */
    FILE *file;
    uint64_t written; /* bytes */
    enum tec_status status;
    int why; /* errno of the first write that failed */

    int n_channels;
    struct tec_mcap_channel channels[TEC_MCAP_CHANNELS];
    uint64_t counts[TEC_MCAP_CHANNELS];
    struct tec_buffer index[TEC_MCAP_CHANNELS];  /* of the open chunk's messages */
    struct tec_buffer chunk;                     /* records of the open chunk */
    uint64_t first_ns, last_ns;                  /* of the open chunk */
    uint64_t start_ns, end_ns;                   /* of all */
    struct tec_buffer scratch, chunks, attached; /* chunks, attached: their index records */
    uint32_t n_chunks, n_attached;
};

/* Create the file, which must not be there or is replaced; TEC_IO with the path and the reason.
 * profile: which of the format's conventions the messages follow, "" for none, "ros2". */
enum tec_status tec_mcap_open(struct tec_mcap_writer *w, const char *path, const char *profile,
                              struct tec_heap *heap, struct tec_error *err);

/* Returns the new channel's number, -1 when there are too many or the file has failed. */
int tec_mcap_channel(struct tec_mcap_writer *w, const struct tec_mcap_channel *channel);

/* Add a message; `sequence` is the frame. A full chunk is written. */
void tec_mcap_message(struct tec_mcap_writer *w, int channel, uint32_t sequence, uint64_t time_ns,
                      const void *data, size_t n);

/* A file within the file. */
void tec_mcap_attach(struct tec_mcap_writer *w, const char *name, const char *media_type,
                     const void *data, size_t n, uint64_t time_ns);

/* End the open chunk. */
void tec_mcap_flush(struct tec_mcap_writer *w);

/* Why the file has failed; TEC_OK while it has not. */
enum tec_status tec_mcap_status(const struct tec_mcap_writer *w, struct tec_error *err);

/* Write the index, close, give everything back; the status of all writes. Zeroed is allowed. */
enum tec_status tec_mcap_close(struct tec_mcap_writer *w, struct tec_error *err);

#endif
