/* log.c - appends records to the file of a memory store.
 *
 * The store appends under its lock. A record is written behind the end of the file and counts only
 * when all of it is written; after a failure the file is cut back to its last whole record. */
#include "graph/memory/log_own.h"

#include <string.h>
#include <unistd.h>
#include <xxhash.h>

enum { END_BYTES = sizeof(struct tec_log_head) + sizeof(struct tec_log_meta) };

static size_t meta_bytes(const struct tec_log_key *key, const struct tec_log_record *r)
{
    size_t tail =
        r->type == TEC_LOG_PUT ? key->dim * sizeof(float) + r->id_bytes + r->text_bytes : 0;
    return sizeof(struct tec_log_meta) + tail;
}

int64_t tec_log_record_bytes(const struct tec_log_key *key, const struct tec_log_record *r)
{
    int64_t pieces = r->type == TEC_LOG_KV
                         ? (int64_t)key->layers * (int64_t)tec_log_piece_bytes(key, r->tokens)
                         : 0;
    return (int64_t)sizeof(struct tec_log_head) + tec_log_round((int64_t)meta_bytes(key, r)) +
           pieces;
}

static enum tec_status record_check(const struct tec_log *log, const struct tec_log_record *r,
                                    struct tec_error *err)
{
    if (r->type < TEC_LOG_PUT || r->type >= TEC_LOG_TYPES)
        return tec_fail(err, TEC_INVALID, "%s: no record has type %d", log->path, (int)r->type);
    if (r->id_bytes > TEC_LOG_MAX_ID || r->text_bytes > TEC_LOG_MAX_TEXT)
        return tec_fail(err, TEC_INVALID,
                        "%s: an id of %zu and a text of %zu bytes; %d and %zu are possible",
                        log->path, r->id_bytes, r->text_bytes, TEC_LOG_MAX_ID, TEC_LOG_MAX_TEXT);
    if (tec_log_piece_bytes(&log->key, r->tokens) > TEC_LOG_MAX_PIECE)
        return tec_fail(err, TEC_INVALID, "%s: a segment of %u tokens is too long", log->path,
                        r->tokens);
    if (log->read_only)
        return tec_fail(err, TEC_IO, "%s: could not be made durable, and is not written any more",
                        log->path);
    int64_t bytes = tec_log_record_bytes(&log->key, r), most = log->options.max_bytes;
    int64_t kept = r->type == TEC_LOG_CLOCK ? 0 : END_BYTES; /* a full file, too, is ended */
    int64_t all = log->end + bytes + kept;
    if (most > 0 && all > most)
        return tec_fail(err, TEC_NO_MEMORY,
                        "%s: it would have %lld bytes with %lld more; it may have %lld: remove "
                        "texts, or raise the memory's tiers.disk",
                        log->path, (long long)all, (long long)(all - log->end), (long long)most);
    return TEC_OK;
}

/* Room in the buffer, zeroed at its end: padding goes out with what is before it. */
static enum tec_status buffer_room(struct tec_log *log, size_t n, struct tec_error *err)
{
    if (n <= log->room)
        return TEC_OK;
    unsigned char *larger = tec_heap_get(log->heap, n);
    if (!larger)
        return tec_fail(err, TEC_NO_MEMORY, "%s: no memory to write %zu bytes", log->path, n);
    tec_heap_put(log->heap, log->buffer);
    log->buffer = larger;
    log->room = n;
    return TEC_OK;
}

/* Head and meta into the buffer; returns their bytes. */
static size_t encode(struct tec_log *log, const struct tec_log_record *r)
{
    bool put = r->type == TEC_LOG_PUT;
    size_t meta = meta_bytes(&log->key, r);
    size_t total = sizeof(struct tec_log_head) + (size_t)tec_log_round((int64_t)meta);
    unsigned char *at = log->buffer + sizeof(struct tec_log_head);
    memset(log->buffer, 0, total);
    struct tec_log_meta m = {.version = r->version,
                             .group = r->group,
                             .epoch = r->epoch,
                             .step = r->step,
                             .tokens = r->tokens,
                             .dim = put ? log->key.dim : 0,
                             .id_bytes = put ? (uint32_t)r->id_bytes : 0,
                             .text_bytes = put ? (uint32_t)r->text_bytes : 0,
                             .before_segment = log->before_segment,
                             .before_type = log->before_type};
    memcpy(at, &m, sizeof m);
    if (put) {
        unsigned char *tail = at + sizeof m;
        memcpy(tail, r->embedding, m.dim * sizeof(float));
        tail += m.dim * sizeof(float);
        memcpy(tail, r->id, r->id_bytes);
        memcpy(tail + r->id_bytes, r->text, r->text_bytes);
    }
    struct tec_log_head h = {
        .magic = TEC_LOG_RECORD_MAGIC,
        .type = (uint16_t)r->type,
        .is_static = r->is_static,
        .sequence = log->sequence + 1,
        .meta_bytes = (uint32_t)meta,
        .pieces = r->type == TEC_LOG_KV ? log->key.layers : 0,
        .stride = r->type == TEC_LOG_KV ? tec_log_piece_bytes(&log->key, r->tokens) : 0,
        .synced = (uint64_t)log->synced,
        .segment = r->segment,
        .meta_sum = XXH3_64bits(at, meta)};
    h.sum = tec_log_head_sum(log, &h);
    memcpy(log->buffer, &h, sizeof h);
    return total;
}

static enum tec_status write_pieces(struct tec_log *log, const struct tec_log_record *r,
                                    const struct tec_log *from, int64_t at, struct tec_error *err)
{
    size_t stride = tec_log_piece_bytes(&log->key, r->tokens);
    size_t rows = 2 * tec_log_piece_value(&log->key, r->tokens);
    TEC_TRY(buffer_room(log, stride, err));
    for (uint32_t layer = 0; layer < log->key.layers; layer++, at += (int64_t)stride) {
        if (from) {
            TEC_TRY(tec_log_pread(from, log->buffer, stride,
                                  r->place + (int64_t)layer * (int64_t)stride, err));
            if (!tec_log_piece_whole(log->buffer, stride, r->segment, r->version, layer))
                return tec_fail(err, TEC_MALFORMED, "%s: KV of layer %u is damaged", from->path,
                                layer);
        } else {
            memcpy(log->buffer, r->pieces[layer], rows);
            memset(log->buffer + rows, 0, stride - rows);
            tec_log_piece_seal(log->buffer, stride, r->segment, r->version, layer);
        }
        TEC_TRY(tec_log_pwrite(log, log->buffer, stride, at, err));
    }
    return TEC_OK;
}

static enum tec_status append(struct tec_log *log, struct tec_log_record *r,
                              const struct tec_log *from, struct tec_error *err)
{
    TEC_TRY(record_check(log, r, err));
    size_t head =
        sizeof(struct tec_log_head) + (size_t)tec_log_round((int64_t)meta_bytes(&log->key, r));
    TEC_TRY(buffer_room(log, head, err));
    int64_t begin = log->end;
    encode(log, r);
    enum tec_status status = tec_log_pwrite(log, log->buffer, head, begin, err);
    if (status == TEC_OK && r->type == TEC_LOG_KV)
        status = write_pieces(log, r, from, begin + (int64_t)head, err);
    if (status != TEC_OK) { /* a cut that fails is no loss: the next record is written over it */
        log->fails = status == TEC_IO || log->fails;
        bool cut = ftruncate(log->file, begin) == 0;
        (void)cut;
        return status == TEC_IO ? tec_context(err, status, "store file, not written") : status;
    }
    log->fails = false;
    r->place = begin + (int64_t)head;
    log->before_segment = r->segment;
    log->before_type = (uint32_t)r->type;
    log->ended = false;
    log->sequence++;
    log->end = begin + tec_log_record_bytes(&log->key, r);
    return TEC_OK;
}

enum tec_status tec_log_append(struct tec_log *log, struct tec_log_record *record,
                               struct tec_error *err)
{
    return append(log, record, NULL, err);
}

enum tec_status tec_log_copy(struct tec_log *to, struct tec_log *from,
                             struct tec_log_record *record, struct tec_error *err)
{
    return append(to, record, from, err);
}

int64_t tec_log_bytes(const struct tec_log *log)
{
    return log->end;
}

bool tec_log_read_only(const struct tec_log *log)
{
    return log->read_only;
}

bool tec_log_fails(const struct tec_log *log)
{
    return log->fails || log->read_only;
}

const struct tec_log_encoder *tec_log_encoder(const struct tec_log *log)
{
    return &log->wrote;
}

uint32_t tec_log_dim(const struct tec_log *log)
{
    return log->dim;
}

bool tec_log_other_weights(const struct tec_log *log)
{
    return log->other_weights;
}

bool tec_log_other_rules(const struct tec_log *log)
{
    return log->other_rules;
}

const char *tec_log_path(const struct tec_log *log)
{
    return log->path;
}
