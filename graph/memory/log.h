/* log.h - the file of a memory store: records appended, checksummed, durable once synced.
 *
 * Layout, little-endian, everything aligned to 64 bytes:
 *
 *   header   4096 bytes: whose KV this is (model, tokenizer, dtype, sizes) and whose vectors,
 *            checksummed
 *   record   head 64 bytes | meta | pieces
 *
 * A head has the type, a sequence number, the sizes, the segment, how far the file was durable when
 * it was written, and checksums of the meta and of itself. Only KV records have pieces: one a
 * layer, in order; K before rotation [tokens][row_bytes], then V the same, padding, and in the last
 * 8 bytes the checksum of the piece, of which segment, version and layer are part. One read is one
 * (segment, layer).
 *
 * What is acknowledged: tec_log_sync returned TEC_OK (it waits for fdatasync). Whatever ends the
 * process or the machine afterwards, such records are there at the next open. Records that were
 * not acknowledged are there or not, as a prefix of the order in which they were appended: what is
 * torn at the end is found by lengths and checksums and cut off.
 *
 * Damage elsewhere is skipped to the next whole record and named (tec_log_damage). Where it hides a
 * head, the record behind it says which segment the last of what is lost was about. What is torn
 * and what is damaged is told by the marks in heads: all before the newest was durable. A log that
 * is ended (tec_log_end) has one behind all else, so that nothing in it counts as torn but that one
 * record. Heads and metas are checked at open, pieces when they are read. A disk that is full or
 * fails: the call says so, the file is cut back to what was whole, and the next write tries again
 * (tec_log_fails until one succeeds). Where fdatasync fails, the system may have lost what it had
 * taken: the file is cut back to what was durable and is not written any more
 * (tec_log_read_only), until it is written anew. Reading goes on.
 *
 * A file has one owner at a time (flock). Not thread-safe, but pieces may be read (tec_log_pread)
 * from any thread, beside anything but compact and close.
 */
#ifndef TEC_GRAPH_MEMORY_LOG_H
#define TEC_GRAPH_MEMORY_LOG_H

#include "base/alloc.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TEC_LOG_ALIGN = 64, TEC_LOG_HEADER = 4096, TEC_LOG_MAX_ID = 255, TEC_LOG_NAME = 112 };
#define TEC_LOG_MAX_TEXT ((size_t)1 << 20)
#define TEC_LOG_MAX_PIECE ((size_t)1 << 30)

/* What makes vectors of texts, with all that changes them. */
struct tec_log_encoder {
    uint64_t id[2];          /* a hash of it; 0: not known, as in files of format 1 */
    char name[TEC_LOG_NAME]; /* for messages; ends with a NUL */
};

/* Whose KV a file holds, and whose vectors. Another one's file is refused. Hashes are 128 bits of
 * the contents, by whoever knows them; of a model the first half says which one it is, the second
 * which weights it has; of a tokenizer the first which pieces it has, the second by which rules a
 * text becomes some of them. */
struct tec_log_key {
    uint64_t model[2], tokenizer[2], dtype[2];
    uint32_t layers;                /* 1 .. 1024 */
    uint32_t row_bytes;             /* K of one token at one layer; V has as many; 1 .. 2^20 */
    uint32_t dim;                   /* numbers in an embedding, 1 .. 4096 */
    uint32_t zero;                  /* 0 */
    struct tec_log_encoder encoder; /* not known: vectors of any encoder are taken */
};

enum tec_log_type {
    TEC_LOG_PUT = 1, /* a segment's text, new or changed */
    TEC_LOG_DELETE,  /* the segment is gone */
    TEC_LOG_KV,      /* keys and values of a version of a segment */
    TEC_LOG_GROUP,   /* state of a group */
    TEC_LOG_CLOCK,   /* counters: step, and the next free segment, version, group, epoch */
    TEC_LOG_TYPES
};

/* One record. What a type does not use is 0. Pointers of a record that is visited are borrowed
 * until the visitor returns. */
struct tec_log_record {
    enum tec_log_type type;
    uint64_t segment; /* serial number of the segment, never used twice */
    uint64_t version; /* of its text */
    uint64_t group;
    uint64_t epoch; /* of the group after this record; KV: the epoch it belongs to, 0: alone */
    int64_t step;
    uint32_t tokens;
    bool is_static;
    const char *id; /* PUT: name given by the user, id_bytes of them, no NUL */
    size_t id_bytes;
    const char *text;
    size_t text_bytes;
    const float *embedding;    /* PUT: [dim]; NULL in a file of vectors of another width */
    const void *const *pieces; /* KV, to append: [layers] each 2 * tokens * row_bytes */
    int64_t place;             /* KV, visited and appended: where its pieces begin in the file */
};

/* A part of a file that could not be used. */
struct tec_log_damage {
    int64_t offset, bytes;
    uint64_t segment;       /* 0: not known; of the last record, where several are lost */
    enum tec_log_type type; /* 0: not known; of the same */
    const char *what;       /* "record is damaged", ... */
    const char *id;         /* from a store: the segment's name; NULL: not known */
    bool reading;           /* from a store: whoever reads it was told, too */
};

/* Called while a file is opened, in the order of the file. A failure of `record` ends the open. */
struct tec_log_visitor {
    void *user;
    enum tec_status (*record)(void *user, const struct tec_log_record *record,
                              struct tec_error *err);
    void (*damage)(void *user, const struct tec_log_damage *damage); /* may be NULL */
    void (*made)(void *user, const char *folder); /* that was not there yet; may be NULL */
    /* The file was there and ends with its first page or within it, after `bytes`: it begins
     * without a record. May be NULL. */
    void (*empty)(void *user, int64_t bytes);
    bool renews; /* vectors of another encoder or width are no reason to refuse a file: the visitor
                  * makes them anew, and writes the file anew before anything is appended */
    bool recomputes; /* nor are keys and values of other weights of the model, of a dtype with rows
                      * of as many bytes, or of other rules of the tokenizer: the visitor uses none
                      * of them, counts the texts' tokens anew, and writes the file anew before
                      * anything is appended */
};

struct tec_log_options {
    int64_t max_bytes;          /* of the file; 0: as large as the disk allows */
    int64_t fail_after;         /* for tests: bytes after which the disk is full; 0: never */
    int64_t fail_sync;          /* for tests: so many syncs work, the next does not; 0: all do */
    int64_t read_bytes_per_sec; /* for tests: at most so fast; 0: as fast as it goes */
    int64_t slow_sync_ns;       /* for tests: waiting for the disk takes so much longer; 0 */
};

struct tec_log;

/* Open the file at `path`, or create it, and visit what it holds. Its folders are made where the
 * path is relative and without ".."; else one that is not there is TEC_IO.
 * TEC_INVALID: a key out of range, or the file belongs to another model, tokenizer, dtype, size or
 * encoder, has KV of other weights or rules, or is open elsewhere; TEC_MALFORMED: no store file at
 * all; TEC_IO. Nothing is written to a file that is refused. */
enum tec_status tec_log_open(struct tec_log **out, const char *path, const struct tec_log_key *key,
                             const struct tec_log_options *options,
                             const struct tec_log_visitor *visitor, struct tec_heap *heap,
                             struct tec_error *err);

/* Does not sync. NULL is allowed. */
void tec_log_close(struct tec_log *log);

/* Add a record at the end; not acknowledged yet. Sets record->place. TEC_NO_MEMORY: max_bytes
 * would be exceeded (nothing written, the log goes on). TEC_IO: see above. */
enum tec_status tec_log_append(struct tec_log *log, struct tec_log_record *record,
                               struct tec_error *err);

/* Everything appended is durable when this returns TEC_OK. */
enum tec_status tec_log_sync(struct tec_log *log, struct tec_error *err);

/* The same in three steps, for an owner that holds a lock around its log, but not while it waits
 * for the disk: begin and end are under it, wait is not and touches nothing but `syncing`; between
 * them the log may be appended to and compacted. What was appended before begin is durable when end
 * returns TEC_OK. Where begin fails there is nothing to wait for or to end. TEC_IO. */
struct tec_log_syncing {
    int file;         /* a descriptor of its own; -1: nothing to wait for */
    const char *name; /* its folder is to be synced too; NULL: no need */
    int64_t end, slow_ns;
    uint64_t salt;
    int failed; /* errno */
};
enum tec_status tec_log_sync_begin(struct tec_log *log, struct tec_log_syncing *syncing,
                                   struct tec_error *err);
void tec_log_sync_wait(struct tec_log_syncing *syncing);
enum tec_status tec_log_sync_end(struct tec_log *log, const struct tec_log_syncing *syncing,
                                 struct tec_error *err);

/* An orderly end: everything is made durable, then `clock` (of type CLOCK) is appended and made
 * durable too, unless the file ends with one already: so one that holds nothing else was not cut.
 * Whatever is not whole before it at the next open is damage, never a torn end. Before
 * tec_log_close; the log may go on. */
enum tec_status tec_log_end(struct tec_log *log, struct tec_log_record *clock,
                            struct tec_error *err);

/* Bytes of a piece as it lies in the file, and where V begins in it. Behind V are fewer than
 * TEC_LOG_PIECE_END: a checksum, up to the next line of 64 bytes. */
enum { TEC_LOG_PIECE_END = 8 + 64 };
size_t tec_log_piece_bytes(const struct tec_log_key *key, uint32_t tokens);
size_t tec_log_piece_value(const struct tec_log_key *key, uint32_t tokens);

/* Fill the last 8 bytes of a piece, and check them. */
void tec_log_piece_seal(unsigned char *piece, size_t bytes, uint64_t segment, uint64_t version,
                        uint32_t layer);
bool tec_log_piece_whole(const unsigned char *piece, size_t bytes, uint64_t segment,
                         uint64_t version, uint32_t layer);

/* Write the file anew: begin gives an empty log under a temporary name, to which the caller
 * appends what lives (tec_log_copy for KV); place makes it durable and gives it the name of the old
 * one, which stays open: reads go on; switch lets `log` go on with it, and waits for no disk: only
 * then are places those of the new file. `fresh` is the old file from then on, to be closed by
 * tec_log_close. Where place fails with *placed false, the old one stays in force: abandon, which
 * removes and takes `fresh`. With *placed true the switch is due all the same: TEC_IO says that the
 * name is not durable yet, the next sync tries again. A crash at any point leaves the old file or
 * the new one, whole. */
enum tec_status tec_log_compact_begin(struct tec_log *log, struct tec_log **fresh,
                                      struct tec_error *err);
enum tec_status tec_log_compact_place(const struct tec_log *log, struct tec_log *fresh,
                                      bool *placed, struct tec_error *err);
void tec_log_compact_switch(struct tec_log *log, struct tec_log *fresh);
void tec_log_compact_abandon(struct tec_log *fresh);

/* Append a KV record whose pieces lie at record->place of `from`; place becomes the new one. A
 * piece that is damaged is TEC_MALFORMED, and nothing is appended. */
enum tec_status tec_log_copy(struct tec_log *to, struct tec_log *from,
                             struct tec_log_record *record, struct tec_error *err);

/* Read a file that stays as it is, of whatever model: visit what it holds, as open does; records of
 * KV, whose pieces nobody could read later, are none. TEC_INVALID: a width that no store has; else
 * as tec_log_look. */
enum tec_status tec_log_read(const char *path, const struct tec_log_key *key,
                             struct tec_log_encoder *encoder, uint32_t *dim,
                             const struct tec_log_visitor *visitor, struct tec_heap *heap,
                             struct tec_error *err);
/* A new file, to which records are appended and which is then closed. TEC_IO. */
enum tec_status tec_log_make(struct tec_log **out, const char *path, const struct tec_log_key *key,
                             struct tec_heap *heap, struct tec_error *err);

/* Whose vectors the file has, as it says itself, and how many numbers each. */
const struct tec_log_encoder *tec_log_encoder(const struct tec_log *log);
uint32_t tec_log_dim(const struct tec_log *log);
/* Whether it was opened with keys and values of other weights or another dtype than the key's. */
bool tec_log_other_weights(const struct tec_log *log);
/* The same of its tokenizer's rules: numbers of tokens may be others, too. */
bool tec_log_other_rules(const struct tec_log *log);

/* What the first page of a file says, for who wants to know; nothing is locked or changed.
 * *format 0: it ends within that page, so who opens it begins it anew, and the key is not known.
 * TEC_NOT_FOUND, TEC_IO; TEC_MALFORMED: no store file, or a page that is damaged. */
enum tec_status tec_log_look(const char *path, struct tec_log_key *key, uint32_t *format,
                             struct tec_error *err);

/* Whether a file is at the path, or could be made there as tec_log_open makes it: nothing is
 * opened or made. TEC_NOT_FOUND: its folder is not there, and is none that is made; TEC_IO: it is
 * no folder, or the file is none; TEC_INVALID: the path is too long. */
enum tec_status tec_log_place(const char *path, struct tec_error *err);

int64_t tec_log_bytes(const struct tec_log *log);  /* of the file */
bool tec_log_read_only(const struct tec_log *log); /* after a sync that failed */
bool tec_log_fails(const struct tec_log *log);     /* so it is, or the newest write failed */
const char *tec_log_path(const struct tec_log *log);

/* Bytes that a record takes. */
int64_t tec_log_record_bytes(const struct tec_log_key *key, const struct tec_log_record *record);

#endif
