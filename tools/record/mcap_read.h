/* mcap_read.h - reads MCAP files whose chunks are not compressed: every message in the order of the
 * file, and its attachments.
 *
 * Files are hostile, and may have been cut anywhere: what is whole is given, and `damage` says what
 * is wrong, at which byte, and how many messages were read before it. */
#ifndef TEC_TOOLS_RECORD_MCAP_READ_H
#define TEC_TOOLS_RECORD_MCAP_READ_H

#include "base/error.h"
#include "tools/record/mcap_write.h"

struct tec_mcap_name {
    const char *text; /* in the file; no NUL behind it */
    size_t n;
};

/* A message; everything points into the file. */
struct tec_mcap_message {
    int channel; /* its number in the file */
    struct tec_mcap_name topic, encoding;
    uint32_t sequence;
    uint64_t time_ns;
    const uint8_t *data;
    size_t n;
};

/* Zero-initialise; owned by the caller. */
struct tec_mcap_reader {
    const char *path; /* borrowed */
    const uint8_t *data;
    size_t n;
    size_t at, end;   /* the next record; the end of the chunk it is in, or of the file */
    size_t after;     /* where the file goes on behind that chunk; 0: not in one */
    int64_t given;    /* messages up to here */
    char damage[200]; /* "" while everything was as it should be */
    struct {
        struct tec_mcap_name topic, encoding;
    } channels[TEC_MCAP_CHANNELS];
};

/* TEC_NOT_FOUND, TEC_IO; TEC_MALFORMED for what is no MCAP file. */
enum tec_status tec_mcap_read(struct tec_mcap_reader *r, const char *path, struct tec_error *err);
void tec_mcap_read_close(struct tec_mcap_reader *r); /* zeroed is allowed */

/* The next message; false behind the last whole one. */
bool tec_mcap_next(struct tec_mcap_reader *r, struct tec_mcap_message *message);

/* Begin with the first message again. */
void tec_mcap_rewind(struct tec_mcap_reader *r);

/* Where the next message is looked for, and to go on there again. */
struct tec_mcap_place {
    size_t at, end, after;
    int64_t given;
};
struct tec_mcap_place tec_mcap_tell(const struct tec_mcap_reader *r);
void tec_mcap_seek(struct tec_mcap_reader *r, struct tec_mcap_place place);

/* The attachment of that name; data->text NULL: there is none. TEC_MALFORMED: its checksum is
 * wrong. */
enum tec_status tec_mcap_attachment(const struct tec_mcap_reader *r, const char *name,
                                    struct tec_mcap_name *data, struct tec_error *err);

/* Whether a name is this text. */
bool tec_mcap_is(struct tec_mcap_name name, const char *text);

#endif
