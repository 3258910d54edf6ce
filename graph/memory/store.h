/* store.h - memory segments by name: their texts in groups, their keys and values in RAM, in a file
 * and on a server that others share.
 *
 * A segment has an id, a text, its tokens, an embedding and a version that counts its changes.
 * Groups (groups.h) say which form of KV it should have: alone, or jointly with its static group.
 * Whoever can compute asks for what is missing (tec_store_missing) and hands KV in
 * (tec_store_put_kv); KV of a version or a group that has changed meanwhile is refused.
 *
 * Tiers: RAM, up to ram_bytes of KV, the least recently used leaves first; and the file (log.h), up
 * to log.max_bytes, which holds everything and is rewritten when too much of it is of no use any
 * more; where even that is not enough, the KV least recently used leaves it (never a text). KV that
 * is in no tier is computed again: that is all that is ever lost.
 *
 * The third tier is a server (remote.h), for stores of many processes: KV that is handed in is sent
 * there by a thread of the store's, and tec_store_look finds what others have computed. It is never
 * relied on: while it is away, what it alone had is missing, and is computed again.
 *
 * A reader pins KV (struct tec_kv): one version of one segment in one form. Its bytes never change
 * and are there until it is dropped, whatever is updated, deleted, evicted or compacted meanwhile.
 * Only where the server alone has it, a read may fail.
 *
 * A change (put, remove) is written to the file before it is done in memory. With sync_each it is
 * durable when the call returns; else when tec_store_sync does. A change that
 * cannot be written fails with TEC_IO and is not done, reading goes on, and the next one tries
 * again. (Where only making it durable fails, the change is done in memory, and TEC_IO says that it
 * is not durable. The file is then written anew: by the next change or sync, and every five
 * seconds until that succeeds.)
 *
 * Thread-safe: one lock for everything but the reading of KV, which waits for what it reads and for
 * nothing else: the file is replaced under it by a descriptor. tec_store_sync waits for the disk
 * under no lock; what appends (with sync_each also makes durable) and compaction hold it. The
 * embedder and the model that computes KV are the caller's. */
#ifndef TEC_GRAPH_MEMORY_STORE_H
#define TEC_GRAPH_MEMORY_STORE_H

#include "graph/memory/groups.h"
#include "graph/memory/log.h"
#include "graph/memory/remote.h"

enum tec_kept_in { TEC_KEPT_RAM, TEC_KEPT_FILE, TEC_KEPT_REMOTE, TEC_KEPT_PLACES };

/* KV that is about to leave a tier: where `bytes` is not NULL, the pieces of all layers one after
 * the other, for who wants to keep them elsewhere. Called under the store's lock: must not call the
 * store. */
struct tec_eviction {
    enum tec_kept_in tier;
    const char *id;
    uint64_t segment, version, epoch;
    uint32_t tokens;
    const unsigned char *bytes;
    int64_t size;
};

/* Vectors of another encoder than the store's, in its file, while it is opened: said before they
 * are made anew (done false) and then. */
struct tec_store_vectors {
    const struct tec_log_encoder *was; /* id 0: not known */
    uint32_t texts;
    uint32_t changed; /* done: vectors that are others now; 0: the file's were those of this one */
    bool done;
    bool kv_stay; /* else they are of other weights */
    const char
        *unwritten; /* done, none changed: why the file does not name this encoder; or NULL */
};

struct tec_store_options {
    const char *path; /* of the file; NULL: RAM only, nothing is durable */
    struct tec_log_key key;
    struct tec_log_options log;
    uint32_t max_segments;
    double threshold;     /* groups.h */
    int64_t stable_steps; /* groups.h */
    int64_t ram_bytes;    /* of KV */
    bool sync_each;
    struct tec_remote_options remote; /* address NULL: no server */
    void *user;                       /* of the functions below, which may be NULL */
    void (*evict)(void *user, const struct tec_eviction *eviction);
    /* A part of the file that could not be used: while it is opened, read or written anew. From any
     * thread that reads, also under the store's lock: must not call the store. */
    void (*damage)(void *user, const struct tec_log_damage *damage);
    void (*made)(void *user, const char *folder); /* of the file, while it is opened */
    void (*empty)(void *user, int64_t bytes);     /* so much of it is there, and no text (log.h) */
    /* The vector of a text, [key.dim]. Where the file has vectors of another encoder than
     * key.encoder, of one that is not known, or of another width, those of all texts are made anew
     * while it is opened, and the file is written anew before that returns; groups, keys and values
     * stay. NULL: such a file is refused, but where an encoder is not known. */
    enum tec_status (*embed)(void *user, const char *text, size_t bytes, float *out,
                             struct tec_error *err);
    void (*vectors)(void *user, const struct tec_store_vectors *what);
    /* The file had KV of other weights of this model (key.model[1]) or rounded otherwise
     * (key.dtype), of so many segments: they are without KV now, and the file was written anew;
     * texts, vectors and groups stay. */
    void (*weights)(void *user, uint32_t segments);
    /* The number of tokens of a text, at least 1. Where the file is of a tokenizer of other rules
     * (key.tokenizer[1]), KV leaves as for other weights, and those of all texts are counted anew;
     * of the file in `begins` they always are, as nothing says that they are right. NULL: what the
     * file says is believed. */
    enum tec_status (*count)(void *user, const char *text, size_t bytes, uint32_t *tokens,
                             struct tec_error *err);
    /* Then: so many texts have another number now, so many segments lost their KV. */
    void (*counted)(void *user, uint32_t texts, uint32_t changed, uint32_t dropped);
    /* Of a store without a path: a file, of any model, whose texts, vectors and groups it begins
     * with. It is read, not changed; KV of it is none. NULL: it begins empty. */
    const char *begins;
};

/* What a store remembers, without KV: for who asks whether another one remembers the same. */
struct tec_store_state {
    uint64_t hash[2]; /* of texts, groups and the step; the same in every file */
    uint32_t segments;
    int64_t step, bytes; /* bytes: of a file of it (tec_store_save) */
};

struct tec_store_counts {
    uint32_t segments;
    int64_t step;                       /* the newest */
    int64_t ram_bytes, file_bytes;      /* now; the file as a whole */
    int64_t puts, same, removes, loads; /* calls that did something; puts of the same text */
    int64_t evicted[TEC_KEPT_PLACES];   /* KV of how many segments */
    int64_t read_bytes[TEC_KEPT_PLACES];
    int64_t compactions, damages; /* damages: found at open and by reading */
    int64_t looked;               /* segments that searches for what is missing looked at */
    struct tec_remote_counts remote;
};

/* The description of a segment. Strings are borrowed until it changes: for one thread that changes
 * the store. */
struct tec_store_segment_view {
    const char *id, *text; /* NUL-terminated */
    size_t text_bytes;
    uint64_t segment, version;
    uint64_t epoch; /* form of KV it should have: 0 alone, else of its group */
    uint32_t tokens;
    bool has_kv; /* in that form, in some tier; not where the server alone has it and is away */
    bool in_ram;
};

struct tec_store;
struct tec_kv;

/* Open the file or create it, read what it holds. Errors as tec_log_open; TEC_INVALID where the
 * file has more than max_segments, or where `embed` fails for a text of it. `heap` must outlive the
 * store. */
enum tec_status tec_store_open(struct tec_store **out, const struct tec_store_options *options,
                               struct tec_heap *heap, struct tec_error *err);
/* Syncs; nothing may be pinned. NULL is allowed. */
void tec_store_close(struct tec_store *store);

/* Time goes on (tec_groups_step). */
enum tec_status tec_store_step(struct tec_store *store, int64_t step,
                               struct tec_groups_change *change, struct tec_error *err);

/* A text under an id (1 .. 255 bytes, no NUL): a new segment, or another text for one. *segment is
 * its handle. change->promoted is not used. TEC_NO_MEMORY: max_segments, or the file is full of
 * texts. */
enum tec_status tec_store_put(struct tec_store *store, const char *id, const char *text,
                              size_t text_bytes, uint32_t tokens, const float *embedding,
                              uint32_t *segment, struct tec_groups_change *change,
                              struct tec_error *err);

enum tec_status tec_store_remove(struct tec_store *store, const char *id,
                                 struct tec_groups_change *change, struct tec_error *err);

/* A segment by its handle. Handles of removed segments are used again. */
bool tec_store_view(struct tec_store *store, uint32_t segment, struct tec_store_segment_view *out);

/* Segments for a prompt, best first (tec_groups_query). */
enum tec_status tec_store_query(struct tec_store *store, const float *embedding, uint32_t most,
                                uint32_t *out, uint32_t *n, struct tec_error *err);

/* Segments without KV in the form they should have, in order of groups and members: up to `most`.
 * The members of a static group come one after the other: their KV is computed together. */
uint32_t tec_store_missing(struct tec_store *store, uint32_t *out, uint32_t most);
/* The same from a place on ({0}: the beginning), which moves on to the first of them: whoever
 * computes what is found and asks again looks at each segment once. Segments before the place that
 * miss theirs later are found from the beginning alone. */
struct tec_store_cursor {
    uint64_t group;
    uint32_t segment;
    bool inside; /* at `segment` of the group, else at its beginning */
};
uint32_t tec_store_missing_from(struct tec_store *store, struct tec_store_cursor *from,
                                uint32_t *out, uint32_t most);
/* Move the place behind a segment. */
void tec_store_pass(struct tec_store *store, struct tec_store_cursor *from, uint32_t segment);
/* All members of a segment's static group in order, with KV or without: their KV is one sequence. 1
 * and the segment itself where it is alone; more than `most`: how many there are, none is written.
 */
uint32_t tec_store_members(struct tec_store *store, uint32_t segment, uint32_t *out, uint32_t most);

/* Ask the server for those segments: what it has is then no longer missing (pin and read it). Asks
 * no more after timeout_ns (then still waits for one answer), not at all while the server is away.
 * *found: how many it has. For the thread that computes what is missing, never for one with a
 * deadline. TEC_OK also where the server does not answer: nothing is found then. */
enum tec_status tec_store_look(struct tec_store *store, const uint32_t *segments, uint32_t n,
                               int64_t timeout_ns, uint32_t *found, struct tec_error *err);

/* KV of a segment: pieces [layers], each K before rotation [tokens][row_bytes], then V the same. It
 * belongs to `version` and `epoch` (tec_store_view): TEC_NOT_FOUND where the segment is no longer
 * so. It goes to the file and, as far as there is room, to RAM; a failure of the file is returned
 * also where RAM has it. */
enum tec_status tec_store_put_kv(struct tec_store *store, uint32_t segment, uint64_t version,
                                 uint64_t epoch, const void *const *pieces, struct tec_error *err);

/* Copy to a segment what another store has kept of the same text, or of the same texts of a static
 * group: both stores have one key (log.h), and `from` is open meanwhile. TEC_NOT_FOUND: it has
 * none, or the segment has its own or has changed. Else the errors of reading and of
 * tec_store_put_kv. For the thread that computes what is missing, under no lock. */
enum tec_status tec_store_share(struct tec_store *store, uint32_t segment, struct tec_store *from,
                                struct tec_error *err);

/* Hold the KV of a segment in the form it should have. TEC_NOT_FOUND: there is none, or a server
 * that is away has it: compute it. */
enum tec_status tec_store_pin(struct tec_store *store, uint32_t segment, struct tec_kv **out,
                              struct tec_error *err);
void tec_store_drop(struct tec_store *store, struct tec_kv *kv);

/* The number of this KV, from 1: one version of one segment in one form, as it was computed or
 * found once. No other KV of the store ever has it. */
uint64_t tec_store_kv_serial(const struct tec_kv *kv);
uint32_t tec_store_kv_tokens(const struct tec_kv *kv);
/* Bytes of a piece (tec_log_piece_bytes); the piece of a layer where it lies in RAM, else NULL. */
size_t tec_store_kv_piece_bytes(const struct tec_kv *kv);
const unsigned char *tec_store_kv_piece(const struct tec_kv *kv, uint32_t layer);

/* The first tier that has it, from which it would be read now; TEC_KEPT_PLACES: none. Any thread.
 */
enum tec_kept_in tec_store_kv_tier(const struct tec_kv *kv);

/* Copy the piece of a layer from wherever it is. Any thread but one with a deadline. TEC_MALFORMED,
 * TEC_IO, TEC_NOT_FOUND: the file is damaged or gone, the server does not give it; where no tier is
 * left, the KV counts as missing from then on. */
enum tec_status tec_store_read(struct tec_store *store, struct tec_kv *kv, uint32_t layer,
                               void *piece, struct tec_error *err);
/* The same for bytes from .. to of it, to the same place in `piece`. With the part that ends the
 * piece the whole of it is checked, and, where that fails, read again from the next tier. until_ns
 * (monotonic clock; INT64_MAX: no bound but the server's own): what the server has not given by
 * then counts as missing, and the server as late (remote.h). *tier (may be NULL): where the part
 * came from. */
enum tec_status tec_store_read_part(struct tec_store *store, struct tec_kv *kv, uint32_t layer,
                                    size_t from, size_t to, unsigned char *piece, int64_t until_ns,
                                    enum tec_kept_in *tier, struct tec_error *err);
/* Bring pinned KV into RAM, and what only the server had into the file too. TEC_NO_MEMORY: too much
 * of it is pinned. */
enum tec_status tec_store_warm(struct tec_store *store, struct tec_kv *kv, struct tec_error *err);

/* What it remembers, and a new file of it, with which a store may begin. TEC_IO. */
struct tec_store_state tec_store_state(struct tec_store *store);
/* What the file in `begins` says, before tokens were counted; of a store without it nothing. */
struct tec_store_state tec_store_began(const struct tec_store *store);
enum tec_status tec_store_save(struct tec_store *store, const char *path, struct tec_error *err);

/* Everything done so far is durable. */
enum tec_status tec_store_sync(struct tec_store *store, struct tec_error *err);
/* Whether the newest write to the file failed, or it could not be made durable. */
bool tec_store_fails(struct tec_store *store);
/* Everything is durable, and the file says that nothing in it is torn: before close, for who wants
 * to know whether it fails. */
enum tec_status tec_store_end(struct tec_store *store, struct tec_error *err);
struct tec_store_counts tec_store_counts(struct tec_store *store);

#endif
