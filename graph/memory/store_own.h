/* store_own.h - the inside of a store, for its source files. */
#ifndef TEC_GRAPH_MEMORY_STORE_OWN_H
#define TEC_GRAPH_MEMORY_STORE_OWN_H

#include "graph/memory/remote_own.h"
#include "graph/memory/store.h"

#include <pthread.h>
#include <stdatomic.h>

enum { TEC_MAX_STORE_LAYERS = 1024 };

/* Place in a list of one tier, least recently used first. */
struct tec_store_link {
    struct tec_kv *prev, *next;
};
struct tec_store_list {
    struct tec_kv *first, *last;
};

/* One version of one segment in one form. Immutable but for where its bytes are. */
struct tec_kv {
    uint64_t segment, version, epoch;
    uint64_t serial; /* from 1, of no other KV of the store */
    uint32_t handle, tokens;
    uint32_t layers, pins; /* pins: under the lock */
    size_t stride;
    _Atomic int64_t place;          /* in the file, 0: not there; changes under `files` */
    int64_t moved;                  /* its place in the file that is being written */
    _Atomic(unsigned char *) bytes; /* in RAM, or NULL; stays while it is pinned */
    _Atomic bool damaged;           /* in the file */
    _Atomic bool remote;            /* the server has it, or had */
    _Atomic bool shunned;           /* what it gave was wrong: it is not asked again */
    struct tec_remote_name name;    /* there */
    bool current;                   /* what its segment has; else only pins keep it */
    struct tec_store_link links[TEC_KEPT_PLACES];
    bool listed[TEC_KEPT_PLACES];
};

struct tec_store_segment {
    char *id, *text; /* one block, id first; NULL: a free handle */
    size_t text_bytes;
    uint64_t segment, version;
    struct tec_text_hash hash;
    uint32_t tokens;
    uint32_t next_id, next_segment; /* in their buckets; next_id of a free one: the next free one */
    uint32_t next_text, prev_text;  /* in its bucket by text; of one that has a text */
    struct tec_kv *kv;
};

struct tec_store {
    struct tec_heap *heap;
    struct tec_store_options options;
    pthread_mutex_t lock;
    pthread_rwlock_t files; /* read while KV is read from the file, written to replace it */
    struct tec_groups *groups;
    struct tec_log *log;        /* NULL: no file */
    struct tec_log_encoder was; /* whose vectors it was opened with, of was_dim numbers */
    uint32_t was_dim;
    bool other_weights; /* it was opened with KV of others */
    bool other_rules;   /* the same of the tokenizer's */
    struct tec_store_state began;
    struct tec_remote *remote; /* NULL: no server */
    struct tec_store_segment *segments;
    uint32_t *by_id, *by_segment, *by_text; /* [buckets] */
    uint32_t buckets, free;
    uint64_t next_segment, kvs; /* kvs: there have been */
    struct tec_store_list tiers[TEC_KEPT_PLACES];
    struct tec_kv *stale; /* pinned, no longer current; linked by links[TEC_KEPT_FILE] */
    struct tec_store_counts counts;
    _Atomic int64_t read_bytes[TEC_KEPT_PLACES], damages;
    int64_t retry_ns;   /* when a file that could not be made durable may be written anew */
    int64_t compact_at; /* size of the file at which it is looked whether half of it is useless */
};

/* All below: under the lock. */

/* The KV leaves its segment; freed when nothing pins it. That of one that was pinned then. */
void tec_store_kv_leave(struct tec_store *store, struct tec_store_segment *segment);
void tec_store_kv_end(struct tec_store *store, struct tec_kv *kv);
/* KV that lies in the file becomes its segment's: what a file says when it is opened. */
enum tec_status tec_store_kv_found(struct tec_store *store, uint32_t handle, uint64_t epoch,
                                   int64_t place, struct tec_error *err);
/* Bytes of all its pieces. */
static inline int64_t tec_store_kv_bytes(const struct tec_kv *kv)
{
    return (int64_t)kv->layers * (int64_t)kv->stride;
}
/* In the list of a tier it becomes the last to leave; it is taken out, where it is in. */
void tec_store_kv_used(struct tec_store *store, struct tec_kv *kv, enum tec_kept_in tier);
void tec_store_kv_unlist(struct tec_store *store, struct tec_kv *kv, enum tec_kept_in tier);
/* It leaves RAM; it is freed. */
void tec_store_kv_leave_ram(struct tec_store *store, struct tec_kv *kv);
void tec_store_kv_free(struct tec_store *store, struct tec_kv *kv);
/* KV of a segment as it is now, not yet its own; NULL without memory. */
struct tec_kv *tec_store_kv_new(struct tec_store *store, uint32_t handle, uint64_t epoch);
/* Returns the server's name of a segment's KV. */
struct tec_remote_name tec_store_remote_name(struct tec_store *store, uint32_t handle);
/* Connect; what the thread says of what it has sent. */
enum tec_status tec_store_remote_open(struct tec_store *store, struct tec_error *err);
/* Whether the segment has KV in the form it should have, where it can be had now. */
bool tec_store_kv_good(struct tec_store *store, uint32_t handle);
uint64_t tec_store_epoch(struct tec_store *store, uint32_t handle);
/* Append; where the file is full, make room and try again. */
enum tec_status tec_store_append(struct tec_store *store, struct tec_log_record *record,
                                 struct tec_error *err);
/* Write the file anew without what is of no use. */
enum tec_status tec_store_compact_locked(struct tec_store *store, struct tec_error *err);
/* The file is full: KV leaves it until it and `bytes` more take three quarters of what it may, or
 * there is no more that may leave, and the file is written anew. */
enum tec_status tec_store_make_room(struct tec_store *store, int64_t bytes, struct tec_error *err);
/* Append what the store holds to a log: KV where `log` is to take its file's place. */
enum tec_status tec_store_copy(struct tec_store *store, struct tec_log *log, bool kv,
                               struct tec_error *err);
/* Bytes of the file that a compaction would keep, with KV or without. */
int64_t tec_store_live(const struct tec_store *store, bool kv);
/* Returns the handle of the segment with this serial number, or TEC_NO_SEGMENT. */
uint32_t tec_store_serial(const struct tec_store *store, uint64_t segment);
/* The handle of a name, or TEC_NO_SEGMENT. */
uint32_t tec_store_name(const struct tec_store *store, const char *id, size_t id_bytes);
/* The first segment of a chain in which all with this text are; the others by next_text. */
uint32_t tec_store_texts(const struct tec_store *store, const struct tec_text_hash *hash);
/* A segment takes a free handle, gives it back. */
enum tec_status tec_store_segment_take(struct tec_store *store, uint64_t segment, const char *id,
                                       size_t id_bytes, uint32_t *handle, struct tec_error *err);
/* A text of its own for a segment, with a NUL; NULL without memory. set takes it. */
char *tec_store_text_copy(struct tec_store *store, const char *text, size_t bytes);
void tec_store_text_set(struct tec_store *store, uint32_t handle, char *copy, size_t bytes,
                        uint32_t tokens, uint64_t version);
void tec_store_segment_free(struct tec_store *store, uint32_t handle);
/* Evict until `bytes` fit in RAM. False if the rest is pinned, or `bytes` exceed the budget. */
bool tec_store_ram_room(struct tec_store *store, int64_t bytes);
/* KV is brought into RAM: room for its bytes is taken and counted, which may exceed the budget
 * where `beyond` is set; its pieces are read into it, also under no lock; it is the KV's copy in
 * RAM, unless the read failed or another thread was faster. */
enum tec_status tec_store_warm_begin(struct tec_store *store, const struct tec_kv *kv, bool beyond,
                                     unsigned char **all, struct tec_error *err);
enum tec_status tec_store_read_all(struct tec_store *store, struct tec_kv *kv, unsigned char *all,
                                   struct tec_error *err);
void tec_store_warm_end(struct tec_store *store, struct tec_kv *kv, unsigned char *all, bool good);
/* Pinned KV that is no longer current, into RAM: before its file goes. */
enum tec_status tec_store_stale_warm(struct tec_store *store, struct tec_error *err);
/* KV that nothing pins leaves the file; where it is not in RAM either, its segment has none. */
void tec_store_file_evict(struct tec_store *store, struct tec_kv *kv);
/* A file that could not be made durable is written anew, when it is time to try again. */
enum tec_status tec_store_recover(struct tec_store *store, struct tec_error *err);
/* KV in the file that is not whole; `reading`: whoever reads it is told, too. Also under no lock.
 */
void tec_store_kv_damaged(struct tec_store *store, struct tec_kv *kv, uint32_t layer, bool reading);
/* Open the log and take over what it holds. */
enum tec_status tec_store_replay(struct tec_store *store, struct tec_error *err);
/* Read the file that a store without one begins with. */
enum tec_status tec_store_begin(struct tec_store *store, struct tec_error *err);
/* Then: vectors that are another encoder's become the store's own, KV of other weights goes. */
enum tec_status tec_store_renew(struct tec_store *store, struct tec_error *err);

#endif
