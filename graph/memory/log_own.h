/* log_own.h - the inside of a log: the bytes of its format, for its source files. */
#ifndef TEC_GRAPH_MEMORY_LOG_OWN_H
#define TEC_GRAPH_MEMORY_LOG_OWN_H

#include "graph/memory/log.h"

#include <limits.h>

#define TEC_LOG_RECORD_MAGIC 0x43455254u /* "TREC" */

struct tec_log_head {
    uint32_t magic;
    uint16_t type, is_static;
    uint64_t sequence;
    uint32_t meta_bytes, pieces;
    uint64_t stride; /* of a piece */
    uint64_t synced; /* the file was durable up to here */
    uint64_t segment;
    uint64_t meta_sum, sum;
};
_Static_assert(sizeof(struct tec_log_head) == 64, "a head is one line");

/* The fixed part of a meta; then the embedding, the id, the text. */
struct tec_log_meta {
    uint64_t version, group, epoch;
    int64_t step;
    uint32_t tokens, dim, id_bytes, text_bytes;
    uint64_t before_segment; /* of the record before this one: who is to blame where that is lost */
    uint32_t before_type, zero;
};
_Static_assert(sizeof(struct tec_log_meta) == 64, "a meta begins with one line");

struct tec_log {
    struct tec_heap *heap;
    struct tec_log_key key;
    struct tec_log_encoder wrote; /* whose vectors the file has, of `dim` numbers */
    uint32_t dim;
    bool other_weights; /* than the key's */
    bool other_rules;   /* of the tokenizer, than the key's */
    struct tec_log_options options;
    int file;
    bool read_only; /* it could not be made durable: what the system has of it is not known */
    bool fails;     /* the newest write did */
    bool nameless;  /* its name in the folder may not be durable */
    int64_t end, synced;
    uint64_t sequence, salt;
    uint64_t before_segment; /* of the last record */
    uint32_t before_type;
    bool ended;      /* the last record is an end (tec_log_end) */
    int64_t written; /* bytes since open, for fail_after */
    int64_t syncs;
    unsigned char *buffer; /* for heads and metas that are written */
    size_t room;
    char path[PATH_MAX];
};

/* The first page of a file. */
struct tec_log_header {
    char magic[8];
    uint32_t format, endian;
    struct tec_log_key key;
    uint64_t salt, sum;
};
/* Of a key all but the encoder: what says whose KV it is, and all that format 1 has of it. */
enum { TEC_LOG_KV_KEY = offsetof(struct tec_log_key, encoder) };
_Static_assert(TEC_LOG_KV_KEY == 64 && sizeof(struct tec_log_encoder) == 128 &&
                   sizeof(struct tec_log_header) == 224,
               "no padding in what is written");

static inline int64_t tec_log_round(int64_t n)
{
    return (n + TEC_LOG_ALIGN - 1) / TEC_LOG_ALIGN * TEC_LOG_ALIGN;
}

static inline int64_t tec_log_head_total(const struct tec_log_head *head)
{
    return (int64_t)sizeof *head + tec_log_round(head->meta_bytes) +
           (int64_t)head->pieces * (int64_t)head->stride;
}

/* All of n bytes at `at`, or TEC_IO; a file that ends before is TEC_MALFORMED. */
enum tec_status tec_log_pread(const struct tec_log *log, void *to, size_t n, int64_t at,
                              struct tec_error *err);

/* Checksum of a head; the salt of the file keeps texts that look like records from being any. */
uint64_t tec_log_head_sum(const struct tec_log *log, const struct tec_log_head *head);

/* Nothing more is written; the file ends where it was durable. A cut that fails is no loss: what is
 * torn is found at the next open. */
void tec_log_stop(struct tec_log *log, int64_t end);

/* Wait so long, if it is more than nothing: for what tests slow down. */
void tec_log_rest(int64_t ns);

/* Wait as long as reading so many bytes shall take (options.read_bytes_per_sec). */
void tec_log_throttle(const struct tec_log *log, size_t bytes);

/* Write n bytes at `at`. On failure TEC_IO. */
enum tec_status tec_log_pwrite(struct tec_log *log, const void *from, size_t n, int64_t at,
                               struct tec_error *err);

/* A log around a new, locked, empty file at `path`; the header is written, not synced. */
enum tec_status tec_log_create(struct tec_log **out, const char *path, const struct tec_log *like,
                               struct tec_error *err);

/* The directory entry of `path` is durable when this returns TEC_OK. */
enum tec_status tec_log_sync_folder(const char *path, struct tec_error *err);

/* Visit the records of [TEC_LOG_HEADER, size). Finds the end of what can be used: *end. */
enum tec_status tec_log_scan(struct tec_log *log, int64_t size,
                             const struct tec_log_visitor *visitor, struct tec_error *err);

#endif
