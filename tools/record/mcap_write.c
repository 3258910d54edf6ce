/* mcap_write.c - writes MCAP files: records, chunks, and the index behind them. */
#include "tools/record/mcap_write.h"

#include "base/store/kind.h"
#include "tools/record/mcap.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

/* --- records ---------------------------------------------------------------------------------- */

static void text(struct tec_buffer *b, const char *s)
{
    tec_buffer_u32(b, (uint32_t)strlen(s));
    tec_buffer_bytes(b, s, strlen(s));
}

static uint32_t crc_of(const void *data, size_t n)
{
    return (uint32_t)crc32_z(0, data, n);
}

static void write_bytes(struct tec_mcap_writer *w, const void *data, size_t n)
{
    if (w->status != TEC_OK)
        return;
    if (n && fwrite(data, 1, n, w->file) != n) {
        w->status = TEC_IO;
        w->why = errno;
        return;
    }
    w->written += n;
}

static void write_record(struct tec_mcap_writer *w, enum tec_mcap_opcode opcode,
                         const struct tec_buffer *content)
{
    uint8_t head[TEC_MCAP_RECORD_HEAD] = {(uint8_t)opcode};
    if (content->failed && w->status == TEC_OK)
        w->status = TEC_NO_MEMORY;
    for (size_t i = 0; i < 8; i++)
        head[1 + i] = (uint8_t)((uint64_t)content->n >> (8 * i));
    write_bytes(w, head, sizeof head);
    write_bytes(w, content->data, content->n);
}

/* An emptied scratch buffer. */
static struct tec_buffer *scratch(struct tec_mcap_writer *w)
{
    w->scratch.n = 0;
    return &w->scratch;
}

/* A record inside the open chunk, or in the buffer of an index. */
static void nest(struct tec_buffer *into, enum tec_mcap_opcode opcode,
                 const struct tec_buffer *content)
{
    tec_buffer_u8(into, (uint8_t)opcode);
    tec_buffer_u64(into, content->n);
    tec_buffer_bytes(into, content->data, content->n);
    into->failed |= content->failed;
}

static void put_channel(struct tec_mcap_writer *w, int at, struct tec_buffer *into)
{
    const struct tec_mcap_channel *c = &w->channels[at];
    uint16_t schema = c->schema ? (uint16_t)(at + 1) : 0;
    struct tec_buffer *b = scratch(w);
    if (c->schema) {
        tec_buffer_u16(b, schema);
        text(b, c->schema);
        text(b, c->schema_encoding);
        text(b, c->schema_text);
        nest(into, TEC_MCAP_SCHEMA, b);
        b = scratch(w);
    }
    tec_buffer_u16(b, (uint16_t)at);
    tec_buffer_u16(b, schema);
    text(b, c->topic);
    text(b, c->encoding);
    tec_buffer_u32(b, 0); /* no metadata */
    nest(into, TEC_MCAP_CHANNEL, b);
}

/* --- the file --------------------------------------------------------------------------------- */

/* A new file, an empty one, or a recording in place of an older one: a path that was mistaken for
 * another costs no pipeline, inputs or memory. */
static enum tec_status judge(const char *path, struct tec_error *err)
{
    struct stat there;
    if (stat(path, &there) != 0 || !S_ISREG(there.st_mode) || there.st_size == 0 ||
        tec_path_content(path) == TEC_PATH_RECORDING)
        return TEC_OK;
    return tec_fail(err, TEC_IO,
                    "%s: there is a file that is no recording, and a recording does "
                    "not replace it; name another one",
                    path);
}

/* A regular file alone: nothing that could make this thread wait for a reader. */
static enum tec_status create(struct tec_mcap_writer *w, struct tec_error *err)
{
    struct stat there;
    TEC_TRY(judge(w->path, err));
    int fd = open(w->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0666);
    if (fd < 0)
        return tec_fail(err, TEC_IO, "%s: %s", w->path, strerror(errno));
    bool regular = fstat(fd, &there) == 0 && S_ISREG(there.st_mode);
    w->file = regular ? fdopen(fd, "wb") : NULL;
    if (w->file)
        return TEC_OK;
    close(fd);
    return tec_fail(err, TEC_IO, "%s: this is no regular file", w->path);
}

enum tec_status tec_mcap_open(struct tec_mcap_writer *w, const char *path, const char *profile,
                              struct tec_heap *heap, struct tec_error *err)
{
    *w = (struct tec_mcap_writer){.heap = heap, .path = path};
    w->chunk.heap = w->scratch.heap = w->chunks.heap = w->attached.heap = heap;
    TEC_TRY(create(w, err));
    write_bytes(w, TEC_MCAP_MAGIC, TEC_MCAP_MAGIC_BYTES);
    struct tec_buffer *b = scratch(w);
    text(b, profile);
    text(b, "tectum");
    write_record(w, TEC_MCAP_HEADER, b);
    return tec_mcap_status(w, err);
}

int tec_mcap_channel(struct tec_mcap_writer *w, const struct tec_mcap_channel *channel)
{
    int at = w->n_channels;
    if (w->status != TEC_OK || at == TEC_MCAP_CHANNELS)
        return -1;
    w->channels[at] = *channel;
    w->index[at].heap = w->heap;
    w->n_channels++;
    put_channel(w, at, &w->chunk);
    return at;
}

void tec_mcap_message(struct tec_mcap_writer *w, int channel, uint32_t sequence, uint64_t time_ns,
                      const void *data, size_t n)
{
    if (w->status != TEC_OK || channel < 0)
        return;
    bool first = w->last_ns == 0;
    w->first_ns = first || time_ns < w->first_ns ? time_ns : w->first_ns;
    w->last_ns = first || time_ns > w->last_ns ? time_ns : w->last_ns;
    tec_buffer_u64(&w->index[channel], time_ns);
    tec_buffer_u64(&w->index[channel], w->chunk.n);
    tec_buffer_u8(&w->chunk, TEC_MCAP_MESSAGE);
    tec_buffer_u64(&w->chunk, 22 + n);
    tec_buffer_u16(&w->chunk, (uint16_t)channel);
    tec_buffer_u32(&w->chunk, sequence);
    tec_buffer_u64(&w->chunk, time_ns);
    tec_buffer_u64(&w->chunk, time_ns);
    tec_buffer_bytes(&w->chunk, data, n);
    w->counts[channel]++;
    if (w->chunk.n >= TEC_MCAP_CHUNK)
        tec_mcap_flush(w);
}

void tec_mcap_attach(struct tec_mcap_writer *w, const char *name, const char *media_type,
                     const void *data, size_t n, uint64_t time_ns)
{
    uint64_t at;
    tec_mcap_flush(w);
    at = w->written;
    struct tec_buffer *b = scratch(w);
    tec_buffer_u64(b, time_ns);
    tec_buffer_u64(b, time_ns);
    text(b, name);
    text(b, media_type);
    tec_buffer_u64(b, n);
    tec_buffer_bytes(b, data, n);
    tec_buffer_u32(b, b->failed ? 0 : crc_of(b->data, b->n));
    write_record(w, TEC_MCAP_ATTACHMENT, b);
    uint64_t length = w->written - at;
    b = scratch(w);
    tec_buffer_u64(b, at);
    tec_buffer_u64(b, length);
    tec_buffer_u64(b, time_ns);
    tec_buffer_u64(b, time_ns);
    tec_buffer_u64(b, n);
    text(b, name);
    text(b, media_type);
    nest(&w->attached, TEC_MCAP_ATTACHMENT_INDEX, b);
    w->n_attached++;
}

/* --- chunks ----------------------------------------------------------------------------------- */

/* Message indexes of the chunk that was written last; `offsets` gets where each lies. */
static void write_message_indexes(struct tec_mcap_writer *w, struct tec_buffer *offsets)
{
    for (int i = 0; i < w->n_channels; i++) {
        if (w->index[i].n == 0)
            continue;
        tec_buffer_u16(offsets, (uint16_t)i);
        tec_buffer_u64(offsets, w->written);
        struct tec_buffer *b = scratch(w);
        tec_buffer_u16(b, (uint16_t)i);
        tec_buffer_u32(b, (uint32_t)w->index[i].n);
        tec_buffer_bytes(b, w->index[i].data, w->index[i].n);
        b->failed |= w->index[i].failed;
        write_record(w, TEC_MCAP_MESSAGE_INDEX, b);
        w->index[i].n = 0;
    }
}

static void write_chunk(struct tec_mcap_writer *w)
{
    struct tec_buffer *b = scratch(w);
    tec_buffer_u64(b, w->first_ns);
    tec_buffer_u64(b, w->last_ns);
    tec_buffer_u64(b, w->chunk.n);
    tec_buffer_u32(b, crc_of(w->chunk.data, w->chunk.n));
    text(b, "");
    tec_buffer_u64(b, w->chunk.n);
    tec_buffer_bytes(b, w->chunk.data, w->chunk.n);
    b->failed |= w->chunk.failed;
    write_record(w, TEC_MCAP_CHUNK_RECORD, b);
}

static void index_chunk(struct tec_mcap_writer *w, uint64_t start, uint64_t end,
                        const struct tec_buffer *offsets)
{
    struct tec_buffer *b = scratch(w);
    tec_buffer_u64(b, w->first_ns);
    tec_buffer_u64(b, w->last_ns);
    tec_buffer_u64(b, start);
    tec_buffer_u64(b, end - start);
    tec_buffer_u32(b, (uint32_t)offsets->n);
    tec_buffer_bytes(b, offsets->data, offsets->n);
    tec_buffer_u64(b, w->written - end);
    text(b, "");
    tec_buffer_u64(b, w->chunk.n);
    tec_buffer_u64(b, w->chunk.n);
    nest(&w->chunks, TEC_MCAP_CHUNK_INDEX, b);
    w->n_chunks++;
}

void tec_mcap_flush(struct tec_mcap_writer *w)
{
    struct tec_buffer offsets = {.heap = w->heap};
    if (w->chunk.n == 0 || w->status != TEC_OK)
        return;
    uint64_t start = w->written;
    write_chunk(w);
    uint64_t end = w->written;
    write_message_indexes(w, &offsets);
    index_chunk(w, start, end, &offsets);
    tec_buffer_finish(&offsets);
    if (w->status == TEC_OK && fflush(w->file) != 0) {
        w->status = TEC_IO;
        w->why = errno;
    }
    if (w->last_ns) {
        w->start_ns = w->start_ns == 0 || w->first_ns < w->start_ns ? w->first_ns : w->start_ns;
        w->end_ns = w->last_ns > w->end_ns ? w->last_ns : w->end_ns;
    }
    w->chunk.n = 0;
    w->first_ns = w->last_ns = 0;
}

enum tec_status tec_mcap_status(const struct tec_mcap_writer *w, struct tec_error *err)
{
    if (w->status == TEC_NO_MEMORY)
        return tec_fail(err, TEC_NO_MEMORY, "%s: no memory for a recording", w->path);
    return w->status == TEC_OK ? TEC_OK
                               : tec_fail(err, w->status, "%s: %s", w->path, strerror(w->why));
}

/* --- the end ---------------------------------------------------------------------------------- */

static void put_statistics(struct tec_mcap_writer *w, struct tec_buffer *into)
{
    uint64_t messages = 0;
    uint16_t schemas = 0;
    for (int i = 0; i < w->n_channels; i++) {
        messages += w->counts[i];
        schemas = (uint16_t)(schemas + (w->channels[i].schema != NULL));
    }
    struct tec_buffer *b = scratch(w);
    tec_buffer_u64(b, messages);
    tec_buffer_u16(b, schemas);
    tec_buffer_u32(b, (uint32_t)w->n_channels);
    tec_buffer_u32(b, w->n_attached);
    tec_buffer_u32(b, 0);
    tec_buffer_u32(b, w->n_chunks);
    tec_buffer_u64(b, w->start_ns);
    tec_buffer_u64(b, w->end_ns);
    tec_buffer_u32(b, (uint32_t)w->n_channels * 10);
    for (int i = 0; i < w->n_channels; i++) {
        tec_buffer_u16(b, (uint16_t)i);
        tec_buffer_u64(b, w->counts[i]);
    }
    nest(into, TEC_MCAP_STATISTICS, b);
}

static void write_summary(struct tec_mcap_writer *w)
{
    struct tec_buffer summary = {.heap = w->heap}, *b = scratch(w);
    tec_buffer_u32(b, 0); /* no checksum of the data */
    write_record(w, TEC_MCAP_DATA_END, b);
    uint64_t start = w->written;
    for (int i = 0; i < w->n_channels; i++)
        put_channel(w, i, &summary);
    put_statistics(w, &summary);
    tec_buffer_bytes(&summary, w->chunks.data, w->chunks.n);
    tec_buffer_bytes(&summary, w->attached.data, w->attached.n);
    summary.failed |= w->chunks.failed || w->attached.failed;
    if (summary.failed && w->status == TEC_OK)
        w->status = TEC_NO_MEMORY;
    write_bytes(w, summary.data, summary.n);
    tec_buffer_finish(&summary);
    b = scratch(w);
    tec_buffer_u64(b, start);
    tec_buffer_u64(b, 0);
    tec_buffer_u32(b, 0);
    write_record(w, TEC_MCAP_FOOTER, b);
    write_bytes(w, TEC_MCAP_MAGIC, TEC_MCAP_MAGIC_BYTES);
}

enum tec_status tec_mcap_close(struct tec_mcap_writer *w, struct tec_error *err)
{
    if (!w->file)
        return TEC_OK;
    tec_mcap_flush(w);
    write_summary(w);
    if (fclose(w->file) != 0 && w->status == TEC_OK) {
        w->status = TEC_IO;
        w->why = errno;
    }
    w->file = NULL;
    for (int i = 0; i < w->n_channels; i++)
        tec_buffer_finish(&w->index[i]);
    tec_buffer_finish(&w->chunk);
    tec_buffer_finish(&w->scratch);
    tec_buffer_finish(&w->chunks);
    tec_buffer_finish(&w->attached);
    return tec_mcap_status(w, err);
}
