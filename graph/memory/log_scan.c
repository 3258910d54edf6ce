/* log_scan.c - reads a log from its beginning when it is opened: cuts a torn end, reports damage,
 * visits records.
 *
 * There are three passes, the first two over heads alone:
 *   1. Hop from head to head, to the last whole one. It says how far the file was durable before
 *      it: the mark. Everything behind the mark was not acknowledged when it was written, or is the
 *      last batch that was.
 *   2. Check everything from the mark on, pieces too; the file is cut at the first thing that is
 *      not whole.
 *   3. Visit the records.
 *
 * In all of them a head that is not whole is skipped to the next aligned line that is a whole head
 * with a later sequence number. Nothing in the file is trusted before its checksum is verified, and
 * sizes are bounded even then. */
#include "graph/memory/log_own.h"

#include <string.h>
#include <xxhash.h>

enum { WINDOW = 1 << 20, NEAR = 4096, MOST_TYPES = TEC_LOG_TYPES };
#define MAX_META (TEC_LOG_MAX_TEXT + TEC_LOG_MAX_ID + 4096 * sizeof(float) + 4096)

/* A part of the file in memory, and the place in it. */
struct scan {
    struct tec_log *log;
    int64_t size;              /* of what is scanned */
    unsigned char *window;     /* bytes [begin, begin + held) */
    int64_t begin, held, room; /* room grows to one meta */
    uint64_t sequence;         /* of the last whole record */
    const struct tec_log_visitor *visitor;
    struct tec_log_head head;
    int64_t at;       /* where the head lies */
    uint64_t segment; /* of the last whole record, with its type */
    uint32_t type;
    bool end; /* it is an end of the log */
};

/* n bytes at `at` in the window, which moves there; NULL and *status when it cannot. */
static const unsigned char *look(struct scan *s, int64_t at, int64_t n, enum tec_status *status,
                                 struct tec_error *err)
{
    if (at >= s->begin && at + n <= s->begin + s->held)
        return s->window + (at - s->begin);
    int64_t want = n > s->room ? n : s->room;
    if (want > s->room) {
        unsigned char *larger = tec_heap_get(s->log->heap, (size_t)want);
        if (!larger) {
            *status = tec_fail(err, TEC_NO_MEMORY, "%s: no memory to read", s->log->path);
            return NULL;
        }
        tec_heap_put(s->log->heap, s->window);
        s->window = larger;
        s->room = want;
    }
    /* far jumps are over pieces: what follows is a head and little else */
    bool far = at < s->begin || at - (s->begin + s->held) > s->room / 16;
    int64_t take = far && n < NEAR ? NEAR : s->room;
    s->held = s->size - at < take ? s->size - at : take;
    s->begin = at;
    *status = tec_log_pread(s->log, s->window, (size_t)s->held, at, err);
    if (*status == TEC_OK)
        return s->window;
    s->held = 0;
    return NULL;
}

/* Whether the sizes of a head with a right checksum are possible, and end within the file. */
static bool fits(const struct scan *s, const struct tec_log_head *h, int64_t at)
{
    const struct tec_log_key *key = &s->log->key;
    if (h->type < 1 || h->type >= MOST_TYPES || h->meta_bytes < sizeof(struct tec_log_meta) ||
        h->meta_bytes > MAX_META)
        return false;
    if (h->type == TEC_LOG_KV ? h->pieces != key->layers || h->stride > TEC_LOG_MAX_PIECE ||
                                    h->stride % TEC_LOG_ALIGN != 0
                              : h->pieces != 0)
        return false;
    return tec_log_head_total(h) <= s->size - at;
}

static bool head_whole(const struct scan *s, const unsigned char *bytes, int64_t at,
                       struct tec_log_head *out)
{
    memcpy(out, bytes, sizeof *out);
    return out->magic == TEC_LOG_RECORD_MAGIC && out->sum == tec_log_head_sum(s->log, out) &&
           out->sequence > s->sequence && out->synced <= (uint64_t)at &&
           out->synced % TEC_LOG_ALIGN == 0 && fits(s, out, at);
}

static void damage(const struct scan *s, int64_t at, int64_t bytes, const char *what,
                   uint64_t segment, uint32_t type)
{
    const struct tec_log_damage d = {.offset = at,
                                     .bytes = bytes,
                                     .segment = segment,
                                     .type = type < MOST_TYPES ? (enum tec_log_type)type : 0,
                                     .what = what};
    if (s->visitor && s->visitor->damage)
        s->visitor->damage(s->visitor->user, &d);
}

/* The meta of the record at s->at when it is whole, else NULL. */
static const unsigned char *meta_of(struct scan *s, enum tec_status *status, struct tec_error *err)
{
    const unsigned char *bytes =
        look(s, s->at + (int64_t)sizeof s->head, s->head.meta_bytes, status, err);
    if (!bytes || XXH3_64bits(bytes, s->head.meta_bytes) != s->head.meta_sum)
        return NULL;
    struct tec_log_meta m;
    memcpy(&m, bytes, sizeof m);
    bool put = s->head.type == TEC_LOG_PUT;
    uint64_t tail = put ? (uint64_t)m.dim * sizeof(float) + m.id_bytes + m.text_bytes : 0;
    if (sizeof m + tail != s->head.meta_bytes || (put && m.dim != s->log->dim) ||
        m.id_bytes > TEC_LOG_MAX_ID || m.text_bytes > TEC_LOG_MAX_TEXT ||
        tec_log_piece_bytes(&s->log->key, m.tokens) > TEC_LOG_MAX_PIECE)
        return NULL;
    if (s->head.type == TEC_LOG_KV && s->head.stride != tec_log_piece_bytes(&s->log->key, m.tokens))
        return NULL;
    return bytes;
}

/* Report that there is no whole head from `from` to s->at. The record at s->at names the segment of
 * the last record before it. */
static void lost(struct scan *s, int64_t from, enum tec_status *status, struct tec_error *err)
{
    struct tec_log_meta m = {0};
    const unsigned char *meta = s->visitor ? meta_of(s, status, err) : NULL;
    if (meta)
        memcpy(&m, meta, sizeof m);
    if (*status == TEC_OK)
        damage(s, from, s->at - from, "no whole record", m.before_segment, m.before_type);
}

/* The next whole head at or after `at`: s->at, s->head. False at the end of the file, or with a
 * failure in *status. What was skipped is named. */
static bool next_head(struct scan *s, int64_t at, enum tec_status *status, struct tec_error *err)
{
    int64_t line = (int64_t)sizeof s->head, from = at;
    *status = TEC_OK;
    for (; s->size - at >= line; at += line) {
        const unsigned char *bytes = look(s, at, line, status, err);
        if (!bytes)
            return false;
        if (!head_whole(s, bytes, at, &s->head))
            continue;
        s->at = at;
        if (at > from)
            lost(s, from, status, err);
        s->sequence = s->head.sequence;
        s->segment = s->head.segment;
        s->type = s->head.type;
        s->end = s->head.type == TEC_LOG_CLOCK && (int64_t)s->head.synced == at;
        return *status == TEC_OK;
    }
    if (s->size > from)
        damage(s, from, s->size - from, "no whole record up to the end of the file", 0, 0);
    return false;
}

/* Whether every piece of the KV record at s->at is whole. */
static bool pieces_whole(struct scan *s, uint64_t version, enum tec_status *status,
                         struct tec_error *err)
{
    int64_t at = s->at + (int64_t)sizeof s->head + tec_log_round(s->head.meta_bytes);
    struct tec_log_head head = s->head;
    for (uint32_t layer = 0; layer < head.pieces; layer++, at += (int64_t)head.stride) {
        const unsigned char *piece = look(s, at, (int64_t)head.stride, status, err);
        if (!piece || !tec_log_piece_whole(piece, head.stride, head.segment, version, layer))
            return false;
    }
    return true;
}

/* Pass 1: the mark of the last whole head; where nothing is whole, the beginning. */
static enum tec_status find_mark(struct scan *s, int64_t *mark, struct tec_error *err)
{
    enum tec_status status;
    *mark = TEC_LOG_HEADER;
    s->sequence = 0;
    for (int64_t at = TEC_LOG_HEADER; next_head(s, at, &status, err);
         at = s->at + tec_log_head_total(&s->head))
        if ((int64_t)s->head.synced > *mark)
            *mark = (int64_t)s->head.synced;
    return status;
}

/* Pass 2: the first place at or behind the mark where something is not whole. */
static enum tec_status find_cut(struct scan *s, int64_t mark, int64_t *cut, struct tec_error *err)
{
    enum tec_status status;
    int64_t at = mark;
    s->sequence = 0;
    while (next_head(s, at, &status, err) && s->at == at) {
        const unsigned char *meta = meta_of(s, &status, err);
        struct tec_log_meta m;
        if (!meta)
            break;
        memcpy(&m, meta, sizeof m);
        if (s->head.type == TEC_LOG_KV && !pieces_whole(s, m.version, &status, err))
            break;
        at += tec_log_head_total(&s->head);
    }
    *cut = at;
    return status;
}

static enum tec_status visit(struct scan *s, const unsigned char *meta, struct tec_error *err)
{
    struct tec_log_meta m;
    memcpy(&m, meta, sizeof m);
    const unsigned char *tail = meta + sizeof m;
    bool put = s->head.type == TEC_LOG_PUT;
    struct tec_log_record r = {.type = (enum tec_log_type)s->head.type,
                               .segment = s->head.segment,
                               .version = m.version,
                               .group = m.group,
                               .epoch = m.epoch,
                               .step = m.step,
                               .tokens = m.tokens,
                               .is_static = s->head.is_static != 0,
                               .place = s->at + (int64_t)sizeof s->head +
                                        tec_log_round(s->head.meta_bytes)};
    if (put) {
        if (m.dim == s->log->key.dim)
            r.embedding =
                (const float *)(const void *)tail; /* windows begin at lines of 64 bytes */
        r.id = (const char *)tail + (size_t)m.dim * sizeof(float);
        r.id_bytes = m.id_bytes;
        r.text = r.id + m.id_bytes;
        r.text_bytes = m.text_bytes;
    }
    return s->visitor->record(s->visitor->user, &r, err);
}

/* Pass 3. */
static enum tec_status visit_all(struct scan *s, struct tec_error *err)
{
    enum tec_status status;
    s->sequence = 0;
    for (int64_t at = TEC_LOG_HEADER; next_head(s, at, &status, err);
         at = s->at + tec_log_head_total(&s->head)) {
        const unsigned char *meta = meta_of(s, &status, err);
        if (meta)
            status = visit(s, meta, err);
        else if (status == TEC_OK)
            damage(s, s->at, tec_log_head_total(&s->head), "the record is damaged", s->segment,
                   s->type);
        if (status != TEC_OK)
            return status;
    }
    return status;
}

enum tec_status tec_log_scan(struct tec_log *log, int64_t size,
                             const struct tec_log_visitor *visitor, struct tec_error *err)
{
    struct scan s = {
        .log = log, .size = size, .room = size < WINDOW ? tec_log_round(size) : WINDOW};
    int64_t mark = 0, cut = 0;
    s.window = tec_heap_get(log->heap, (size_t)s.room);
    if (!s.window)
        return tec_fail(err, TEC_NO_MEMORY, "%s: no memory to read", log->path);
    enum tec_status status = find_mark(&s, &mark, err);
    if (status == TEC_OK)
        status = find_cut(&s, mark, &cut, err);
    s.visitor = visitor;
    if (status == TEC_OK && cut < size)
        damage(&s, cut, size - cut, "torn end of the file, cut off", 0, 0);
    s.size = cut;
    s.held = 0;
    if (status == TEC_OK)
        status = visit_all(&s, err);
    tec_heap_put(log->heap, s.window);
    log->sequence = s.sequence;
    log->before_segment = s.sequence ? s.segment : 0;
    log->before_type = s.sequence ? s.type : 0;
    log->ended = s.sequence && s.end;
    log->end = cut;
    log->synced = mark;
    return status;
}
