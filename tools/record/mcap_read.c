/* mcap_read.c - reads MCAP files, also ones that were cut or are hostile. */
#include "tools/record/mcap_read.h"

#include "base/store/file.h"
#include "base/store/kind.h"
#include "tools/record/mcap.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

/* A part of the file that is read from its front; `bad` once it was too short. */
struct cursor {
    const uint8_t *at;
    size_t n;
    bool bad;
};

static const uint8_t *take(struct cursor *c, uint64_t n)
{
    if (c->bad || n > c->n) {
        c->bad = true;
        return NULL;
    }
    const uint8_t *at = c->at;
    c->at += n;
    c->n -= (size_t)n;
    return at;
}

static uint64_t number(struct cursor *c, size_t n)
{
    const uint8_t *at = take(c, n);
    uint64_t value = 0;
    for (size_t i = 0; at && i < n; i++)
        value |= (uint64_t)at[i] << (8 * i);
    return value;
}

static struct tec_mcap_name name_of(struct cursor *c)
{
    uint64_t n = number(c, 4);
    const uint8_t *at = take(c, n);
    return at ? (struct tec_mcap_name){(const char *)at, (size_t)n} : (struct tec_mcap_name){"", 0};
}

bool tec_mcap_is(struct tec_mcap_name name, const char *text)
{
    return name.n == strlen(text) && memcmp(name.text, text, name.n) == 0;
}

static enum tec_status map(struct tec_mcap_reader *r, struct tec_error *err)
{
    uint64_t bytes = 0;
    int fd = -1;
    TEC_TRY(tec_path_open(r->path, &fd, &bytes, err));
    void *data = bytes ? mmap(NULL, (size_t)bytes, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    close(fd);
    if (data == MAP_FAILED)
        return bytes ? tec_fail(err, TEC_IO, "%s: cannot be mapped", r->path)
                     : tec_fail(err, TEC_MALFORMED, "%s: the file is empty", r->path);
    r->data = data;
    r->n = (size_t)bytes;
    return TEC_OK;
}

static enum tec_status fail_kind(const char *path, struct tec_error *err)
{
    enum tec_path_kind kind = tec_path_kind(path);
    bool known = kind != TEC_PATH_UNKNOWN && kind != TEC_PATH_RECORDING;
    return tec_fail(err, TEC_MALFORMED,
                    "%s: this is %s%s: it does not begin with \\x89MCAP0; a recording is made with "
                    "`tectum run --record FILE.mcap`",
                    path, known ? tec_path_kind_text(kind) : "no MCAP file",
                    known ? ", no MCAP file" : "");
}

enum tec_status tec_mcap_read(struct tec_mcap_reader *r, const char *path, struct tec_error *err)
{
    *r = (struct tec_mcap_reader){.path = path};
    if (tec_path_kind(path) == TEC_PATH_CHECKPOINT)
        return fail_kind(path, err);
    TEC_TRY(map(r, err));
    if (r->n < TEC_MCAP_MAGIC_BYTES || memcmp(r->data, TEC_MCAP_MAGIC, TEC_MCAP_MAGIC_BYTES) != 0) {
        tec_mcap_read_close(r);
        return fail_kind(path, err);
    }
    tec_mcap_rewind(r);
    return TEC_OK;
}

void tec_mcap_read_close(struct tec_mcap_reader *r)
{
    if (r->data)
        munmap((void *)(uintptr_t)r->data, r->n);
    r->data = NULL;
}

void tec_mcap_rewind(struct tec_mcap_reader *r)
{
    r->at = TEC_MCAP_MAGIC_BYTES;
    r->end = r->n;
    r->after = 0;
    r->given = 0;
    r->damage[0] = '\0';
}

struct tec_mcap_place tec_mcap_tell(const struct tec_mcap_reader *r)
{
    return (struct tec_mcap_place){r->at, r->end, r->after, r->given};
}

void tec_mcap_seek(struct tec_mcap_reader *r, struct tec_mcap_place place)
{
    r->at = place.at;
    r->end = place.end;
    r->after = place.after;
    r->given = place.given;
}

/* The file ends here as far as messages go. */
static bool damaged(struct tec_mcap_reader *r, const char *what)
{
    snprintf(r->damage, sizeof r->damage,
             "%s at byte %zu of %zu: %lld message%s before it can be read, what lies behind is "
             "missing",
             what, r->at, r->n, (long long)r->given, r->given == 1 ? "" : "s");
    r->at = r->end = r->n;
    r->after = 0;
    return false;
}

static void open_channel(struct tec_mcap_reader *r, struct cursor c)
{
    uint64_t id = number(&c, 2);
    number(&c, 2);
    struct tec_mcap_name topic = name_of(&c), encoding = name_of(&c);
    if (c.bad || id >= TEC_MCAP_CHANNELS)
        return; /* its messages are passed over */
    r->channels[id].topic = topic;
    r->channels[id].encoding = encoding;
}

/* Go on inside a chunk. */
static bool open_chunk(struct tec_mcap_reader *r, struct cursor c, size_t after)
{
    number(&c, 8);
    number(&c, 8);
    uint64_t bytes = number(&c, 8), crc = number(&c, 4);
    struct tec_mcap_name compression = name_of(&c);
    uint64_t n = number(&c, 8);
    const uint8_t *records = take(&c, n);
    if (!records || bytes != n)
        return damaged(r, "a chunk is not whole");
    if (compression.n)
        return damaged(r, "a chunk is compressed, which this reader does not take,");
    if (crc && crc32_z(0, records, (size_t)n) != crc)
        return damaged(r, "a chunk's checksum is wrong");
    r->at = (size_t)(records - r->data);
    r->end = r->at + (size_t)n;
    r->after = after;
    return true;
}

static bool read_message(struct tec_mcap_reader *r, struct cursor c, struct tec_mcap_message *out)
{
    uint64_t id = number(&c, 2);
    *out = (struct tec_mcap_message){.channel = (int)id, .sequence = (uint32_t)number(&c, 4)};
    out->time_ns = number(&c, 8);
    number(&c, 8);
    if (c.bad || id >= TEC_MCAP_CHANNELS || !r->channels[id].topic.text)
        return false;
    out->topic = r->channels[id].topic;
    out->encoding = r->channels[id].encoding;
    out->data = c.at;
    out->n = c.n;
    return true;
}

/* The head of the record at r->at; false at an end. */
static bool record(struct tec_mcap_reader *r, int *opcode, struct cursor *content)
{
    struct cursor c = {r->data + r->at, r->end - r->at, false};
    *opcode = (int)number(&c, 1);
    uint64_t n = number(&c, 8);
    const uint8_t *at = take(&c, n);
    if (!at)
        return damaged(r, "the recording is cut");
    *content = (struct cursor){at, (size_t)n, false};
    return true;
}

bool tec_mcap_next(struct tec_mcap_reader *r, struct tec_mcap_message *message)
{
    for (;;) {
        struct cursor content;
        int opcode;
        if (r->at == r->end && r->after) { /* behind a chunk */
            r->at = r->after;
            r->end = r->n;
            r->after = 0;
            continue;
        }
        if (r->at == r->n)
            return r->damage[0] ? false : damaged(r, "the recording was not closed: it ends");
        if (!record(r, &opcode, &content))
            return false;
        size_t next = (size_t)(content.at - r->data) + content.n;
        if (opcode == TEC_MCAP_DATA_END)
            return false;
        if (opcode == TEC_MCAP_CHUNK_RECORD && !r->after) {
            if (!open_chunk(r, content, next))
                return false;
            continue;
        }
        r->at = next;
        if (opcode == TEC_MCAP_CHANNEL)
            open_channel(r, content);
        if (opcode == TEC_MCAP_MESSAGE && read_message(r, content, message)) {
            r->given++;
            return true;
        }
    }
}

enum tec_status tec_mcap_attachment(const struct tec_mcap_reader *r, const char *name,
                                    struct tec_mcap_name *data, struct tec_error *err)
{
    struct cursor file = {r->data + TEC_MCAP_MAGIC_BYTES, r->n - TEC_MCAP_MAGIC_BYTES, false};
    *data = (struct tec_mcap_name){.text = NULL};
    for (;;) {
        uint64_t opcode = number(&file, 1), n = number(&file, 8);
        const uint8_t *at = take(&file, n);
        if (!at || opcode == TEC_MCAP_DATA_END)
            return TEC_OK;
        struct cursor c = {at, (size_t)n, false};
        if (opcode != TEC_MCAP_ATTACHMENT)
            continue;
        number(&c, 8);
        number(&c, 8);
        struct tec_mcap_name called = name_of(&c);
        name_of(&c);
        uint64_t bytes = number(&c, 8);
        const uint8_t *from = take(&c, bytes);
        if (!from || !tec_mcap_is(called, name))
            continue;
        uint64_t crc = number(&c, 4); /* of the record up to here; 0: none was made */
        if (crc && crc32_z(0, at, (size_t)(from - at) + (size_t)bytes) != crc)
            return tec_fail(err, TEC_MALFORMED,
                            "%s: the checksum of attachment %s is wrong, at byte %zu of %zu",
                            r->path, name, (size_t)(at - r->data), r->n);
        *data = (struct tec_mcap_name){(const char *)from, (size_t)bytes};
        return TEC_OK;
    }
}
