/* log_open.c - opens or creates the file of a log, locks it and checks its header.
 *
 * Runs when a store is opened or compacted. The header holds hashes of model, tokenizer, dtype and
 * encoder: KV of another model is refused instead of being read as if it were this one's, and so
 * are KV of other weights, of weights or activations that are rounded otherwise or of a tokenizer
 * of other rules and vectors of another encoder, unless whoever opens the file makes them anew.
 * Files of format 1 name no encoder, and programs that wrote them or the first ones of format 2 put
 * a hash of the tensors' forms where the weights' hash is now, and of the vocabulary where that of
 * the tokenizer's rules is: those are of no weights and no rules. What is written is format 2.
 * After the lock is taken the path is compared with the open file, because a compaction elsewhere
 * may have renamed another file into place in between. */
#include "base/store/file.h"
#include "graph/memory/log_own.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#define ENDIAN 0x01020304u
#define FORMAT 2u

enum { MAX_DIM = 4096 };

static const char magic[8] = "TECMEM1";

static enum tec_status key_check(const struct tec_log_key *key, struct tec_error *err)
{
    if (key->layers < 1 || key->layers > 1024 || key->row_bytes < 1 || key->row_bytes > 1u << 20 ||
        key->dim < 1 || key->dim > MAX_DIM)
        return tec_fail(err, TEC_INVALID,
                        "store file: %u layers, %u bytes a row, embeddings of %u; at most 1024, "
                        "2^20 and %d are possible",
                        key->layers, key->row_bytes, key->dim, MAX_DIM);
    return TEC_OK;
}

static uint64_t header_sum(const struct tec_log_header *h)
{
    return XXH3_64bits(h, offsetof(struct tec_log_header, sum));
}

static enum tec_status refuse(const char *path, const char *what, uint64_t has, uint64_t wants,
                              struct tec_error *err)
{
    return tec_fail(err, TEC_INVALID,
                    "%s: holds KV of another %s (%016llx, this one is %016llx); name another file, "
                    "or delete it",
                    path, what, (unsigned long long)has, (unsigned long long)wants);
}

/* In a page of format 1 salt and sum stand where later ones have the encoder. */
static bool first_format(struct tec_log_header *h)
{
    uint64_t tail[2];
    unsigned char *at = (unsigned char *)&h->key + TEC_LOG_KV_KEY;
    memcpy(tail, at, sizeof tail);
    bool good = tail[1] == XXH3_64bits(h, (size_t)(at - (unsigned char *)h) + sizeof tail[0]);
    memset(&h->key.encoder, 0, sizeof h->key.encoder);
    h->salt = tail[0];
    return good;
}

static enum tec_status no_store(const char *path, struct tec_error *err)
{
    return tec_fail(err, TEC_MALFORMED, "%s: is no store file of format 1 or %u", path, FORMAT);
}

/* The page as one of this format. Whatever it says then is what somebody wrote. */
static enum tec_status header_read(const char *path, struct tec_log_header *h,
                                   struct tec_error *err)
{
    if (memcmp(h->magic, magic, sizeof magic) != 0 || h->format < 1 || h->format > FORMAT)
        return no_store(path, err);
    bool good = h->format == 1 ? first_format(h) : h->sum == header_sum(h);
    if (good && h->endian == ENDIAN && memchr(h->key.encoder.name, '\0', TEC_LOG_NAME))
        return TEC_OK;
    return tec_fail(
        err, TEC_MALFORMED,
        "%s: the first page of the store file, bytes 0 to %d, is damaged: %s; nothing in "
        "the file can be used",
        path, TEC_LOG_HEADER - 1,
        !good                 ? "its checksum is that of other bytes"
        : h->endian != ENDIAN ? "its numbers have another order of bytes"
                              : "a name in it has no end");
}

static enum tec_status encoder_check(const char *path, const struct tec_log_encoder *has,
                                     const struct tec_log_encoder *is, struct tec_error *err)
{
    static const uint64_t unknown[2] = {0, 0};
    if (memcmp(is->id, unknown, sizeof unknown) == 0 ||
        memcmp(has->id, unknown, sizeof unknown) == 0 ||
        memcmp(has->id, is->id, sizeof is->id) == 0)
        return TEC_OK;
    return tec_fail(err, TEC_INVALID,
                    "%s: holds vectors of the encoder '%s' (%016llx), this one is '%s' (%016llx); "
                    "name another file, or delete it",
                    path, has->name, (unsigned long long)has->id[0], is->name,
                    (unsigned long long)is->id[0]);
}

/* Or other rounding: of f32 and bf16 rows differ in their bytes, too. */
static bool other_dtype(const struct tec_log_key *has, const struct tec_log_key *key)
{
    return memcmp(has->dtype, key->dtype, sizeof has->dtype) != 0;
}

static enum tec_status header_check(const char *path, const struct tec_log_header *h,
                                    const struct tec_log_key *key,
                                    const struct tec_log_visitor *visitor, struct tec_error *err)
{
    const struct tec_log_key *has = &h->key;
    bool renews = visitor->renews;
    if (has->model[0] != key->model[0])
        return refuse(path, "model", has->model[0], key->model[0], err);
    if (has->model[1] != key->model[1] && !visitor->recomputes)
        return refuse(path, "model's weights", has->model[1], key->model[1], err);
    if (has->tokenizer[0] != key->tokenizer[0])
        return refuse(path, "tokenizer", has->tokenizer[0], key->tokenizer[0], err);
    if (has->tokenizer[1] != key->tokenizer[1] && !visitor->recomputes)
        return refuse(path, "tokenizer's rules", has->tokenizer[1], key->tokenizer[1], err);
    if (other_dtype(has, key) && has->layers == key->layers && has->row_bytes != key->row_bytes)
        return tec_fail(err, TEC_INVALID,
                        "%s: holds KV of another dtype, keys of %u bytes a token and layer, here "
                        "they have %u (those of f32 have twice as many as those of bf16); name "
                        "another file, or delete it",
                        path, has->row_bytes, key->row_bytes);
    if (other_dtype(has, key) && !visitor->recomputes)
        return refuse(path, "dtype, quantize or round", has->dtype[0], key->dtype[0], err);
    if (has->layers != key->layers || has->row_bytes != key->row_bytes ||
        (renews ? has->dim < 1 || has->dim > MAX_DIM : has->dim != key->dim))
        return tec_fail(err, TEC_INVALID,
                        "%s: %u layers, %u bytes a row, embeddings of %u; these are %u, %u and %u",
                        path, has->layers, has->row_bytes, has->dim, key->layers, key->row_bytes,
                        key->dim);
    return renews ? TEC_OK : encoder_check(path, &has->encoder, &key->encoder, err);
}

static enum tec_status header_write(struct tec_log *log, struct tec_error *err)
{
    unsigned char page[TEC_LOG_HEADER] = {0};
    struct tec_log_header h = {.format = FORMAT, .endian = ENDIAN, .key = log->key};
    if (getrandom(&h.salt, sizeof h.salt, GRND_NONBLOCK) != (ssize_t)sizeof h.salt)
        h.salt = (uint64_t)(uintptr_t)log;
    log->salt = h.salt;
    memcpy(h.magic, magic, sizeof magic);
    h.sum = header_sum(&h);
    memcpy(page, &h, sizeof h);
    log->end = log->synced = TEC_LOG_HEADER;
    log->wrote = log->key.encoder;
    log->dim = log->key.dim;
    return tec_log_pwrite(log, page, sizeof page, 0, err);
}

static bool is_folder(const char *path)
{
    struct stat there;
    return stat(path, &there) == 0 && S_ISDIR(there.st_mode);
}

/* True if the folders of a file are below the current one. Of another path a folder that is not
 * there is more likely a slip, or a disk that is not mounted, than one to be made. */
static bool is_below(const char *path)
{
    if (path[0] == '/')
        return false;
    while (strncmp(path, "..", 2) != 0 || (path[2] != '/' && path[2])) {
        const char *slash = strchr(path, '/');
        if (!slash)
            return true;
        path = slash + 1;
    }
    return false;
}

/* A folder that is not there and is not made. */
static enum tec_status no_folder(enum tec_status status, const char *path, const char *folder,
                                 struct tec_error *err)
{
    return tec_fail(err, status,
                    "%s: there is no folder %s; only folders below the current one are made", path,
                    folder);
}

static enum tec_status check_regular(const char *path, const struct stat *is, struct tec_error *err)
{
    return S_ISREG(is->st_mode) ? TEC_OK
                                : tec_fail(err, TEC_IO, "%s: is %s, a store is a file", path,
                                           S_ISDIR(is->st_mode) ? "a folder" : "no file");
}

enum tec_status tec_log_place(const char *path, struct tec_error *err)
{
    char folder[PATH_MAX];
    struct stat there;
    if (strlen(path) + sizeof ".new" > PATH_MAX)
        return tec_fail(err, TEC_INVALID, "store file: the path is too long");
    for (const char *slash = *path ? strchr(path + 1, '/') : NULL; slash;
         slash = strchr(slash + 1, '/')) {
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
        if (is_folder(folder))
            continue;
        if (access(folder, F_OK) == 0)
            return tec_fail(err, TEC_IO, "%s: %s is no folder", path, folder);
        return is_below(path) ? TEC_OK : no_folder(TEC_NOT_FOUND, path, folder, err);
    }
    return stat(path, &there) == 0 ? check_regular(path, &there, err) : TEC_OK;
}

/* The folders that the file is to lie in, where they are not there yet; each is durable. */
static enum tec_status make_folders(const char *path, const struct tec_log_visitor *visitor,
                                    struct tec_error *err)
{
    char folder[PATH_MAX];
    if (!*path)
        return TEC_OK;
    for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
        if (is_folder(folder))
            continue;
        if (!is_below(path) && access(folder, F_OK) != 0 && errno == ENOENT)
            return no_folder(TEC_IO, path, folder, err);
        int why = mkdir(folder, 0777) == 0 ? 0 : errno;
        if (why == EEXIST && is_folder(folder)) /* another program's */
            continue;
        if (why)
            return tec_fail(err, TEC_IO, "%s: the folder %s cannot be made: %s", path, folder,
                            strerror(why));
        TEC_TRY(tec_log_sync_folder(folder, err));
        if (visitor->made)
            visitor->made(visitor->user, folder);
    }
    return TEC_OK;
}

/* A log without a file; NULL and a reason in err. */
static struct tec_log *wrap(const char *path, const struct tec_log_key *key,
                            const struct tec_log_options *options, struct tec_heap *heap,
                            struct tec_error *err)
{
    size_t n = strlen(path);
    struct tec_log *log = n + sizeof ".new" <= PATH_MAX ? tec_heap_get(heap, sizeof *log) : NULL;
    if (!log) {
        bool longer = n + sizeof ".new" > PATH_MAX;
        (void)tec_fail(err, longer ? TEC_INVALID : TEC_NO_MEMORY, "store file: %s",
                       longer ? "the path is too long" : "no memory");
        return NULL;
    }
    *log = (struct tec_log){.heap = heap, .key = *key, .options = *options, .file = -1};
    memcpy(log->path, path, n + 1);
    return log;
}

/* Open and lock; whoever compacts may have put another file there in between. */
static enum tec_status open_locked(struct tec_log *log, int flags, int64_t *size,
                                   struct tec_error *err)
{
    for (int i = 0; i < 16; i++) {
        struct stat own, there;
        log->file = open(log->path, flags | O_RDWR | O_CLOEXEC, 0644);
        int why = errno;
        if (log->file < 0 && stat(log->path, &there) == 0)
            TEC_TRY(check_regular(log->path, &there, err));
        if (log->file < 0)
            return tec_fail(err, TEC_IO, "%s: %s", log->path, strerror(why));
        if (fstat(log->file, &own) != 0)
            return tec_fail(err, TEC_IO, "%s: %s", log->path, strerror(errno));
        TEC_TRY(check_regular(log->path, &own, err));
        if (flock(log->file, LOCK_EX | LOCK_NB) != 0)
            return tec_fail(err, TEC_INVALID, "%s: is open in another program", log->path);
        if (stat(log->path, &there) == 0 && there.st_ino == own.st_ino &&
            fstat(log->file, &own) == 0) {
            *size = own.st_size;
            return TEC_OK;
        }
        close(log->file);
        log->file = -1;
    }
    return tec_fail(err, TEC_IO, "%s: changes while it is opened", log->path);
}

enum tec_status tec_log_create(struct tec_log **out, const char *path, const struct tec_log *like,
                               struct tec_error *err)
{
    struct tec_error why = {TEC_NO_MEMORY, ""};
    int64_t size = 0;
    struct tec_log *log = wrap(path, &like->key, &like->options, like->heap, &why);
    if (!log)
        return tec_fail(err, why.status, "%s", why.message);
    enum tec_status status = open_locked(log, O_CREAT | O_TRUNC, &size, err);
    if (status == TEC_OK)
        status = header_write(log, err);
    if (status == TEC_OK)
        *out = log;
    else
        tec_log_close(log);
    return status;
}

/* A file that ends within its first page was never acknowledged: its creation is. */
static enum tec_status begin(struct tec_log *log, struct tec_error *err)
{
    if (ftruncate(log->file, 0) != 0)
        return tec_fail(err, TEC_IO, "%s: %s", log->path, strerror(errno));
    TEC_TRY(header_write(log, err));
    TEC_TRY(tec_log_sync(log, err));
    return tec_log_sync_folder(log->path, err);
}

static bool torn_creation(struct tec_log *log, int64_t size)
{
    unsigned char page[TEC_LOG_HEADER];
    if (size >= TEC_LOG_HEADER)
        return false;
    if (tec_log_pread(log, page, (size_t)size, 0, NULL) != TEC_OK)
        return false;
    size_t n = (size_t)size < sizeof magic ? (size_t)size : sizeof magic;
    return memcmp(page, magic, n) == 0;
}

/* `there`: it was before it was opened, so that one without a record was cut, or is that of a
 * program that ended before it had written any. */
static enum tec_status take(struct tec_log *log, int64_t size, bool there,
                            const struct tec_log_visitor *visitor, struct tec_error *err)
{
    struct tec_log_header h;
    bool torn = torn_creation(log, size);
    if (there && (torn || size == TEC_LOG_HEADER) && visitor->empty)
        visitor->empty(visitor->user, size);
    if (torn)
        return begin(log, err);
    if (size < TEC_LOG_HEADER)
        return no_store(log->path, err);
    TEC_TRY(tec_log_pread(log, &h, sizeof h, 0, err));
    TEC_TRY(header_read(log->path, &h, err));
    TEC_TRY(header_check(log->path, &h, &log->key, visitor, err));
    log->salt = h.salt;
    log->other_weights = h.key.model[1] != log->key.model[1] || other_dtype(&h.key, &log->key);
    log->other_rules = h.key.tokenizer[1] != log->key.tokenizer[1];
    log->wrote = h.key.encoder;
    log->dim = h.key.dim;
    TEC_TRY(tec_log_scan(log, size, visitor, err));
    if (log->end < size && ftruncate(log->file, log->end) != 0)
        return tec_fail(err, TEC_IO, "%s: %s", log->path, strerror(errno));
    return tec_log_sync(log, err); /* what is taken over from now on is acknowledged */
}

enum tec_status tec_log_look(const char *path, struct tec_log_key *key, uint32_t *format,
                             struct tec_error *err)
{
    struct tec_log_header h = {0};
    uint64_t bytes = 0;
    int file = -1;
    TEC_TRY(tec_path_open(path, &file, &bytes, err));
    size_t n = bytes < sizeof h ? (size_t)bytes : sizeof h;
    enum tec_status status = tec_path_read(file, path, 0, &h, n, err);
    close(file);
    TEC_TRY(status);
    bool begun = memcmp(h.magic, magic, n < sizeof magic ? n : sizeof magic) == 0;
    if (bytes >= TEC_LOG_HEADER)
        TEC_TRY(header_read(path, &h, err));
    else if (!begun)
        return no_store(path, err);
    *format = bytes < TEC_LOG_HEADER ? 0 : h.format;
    *key = h.key;
    return TEC_OK;
}

enum tec_status tec_log_make(struct tec_log **out, const char *path, const struct tec_log_key *key,
                             struct tec_heap *heap, struct tec_error *err)
{
    const struct tec_log like = {.heap = heap, .key = *key};
    TEC_TRY(key_check(key, err));
    return tec_log_create(out, path, &like, err);
}

/* Another model's rows may have other sizes: its KV is scanned as what it is. */
static enum tec_status read_all(struct tec_log *log, const struct tec_log_visitor *visitor,
                                struct tec_error *err)
{
    struct tec_log_header h;
    uint64_t bytes = 0;
    TEC_TRY(tec_path_open(log->path, &log->file, &bytes, err));
    if (bytes < TEC_LOG_HEADER || bytes > INT64_MAX)
        return no_store(log->path, err);
    TEC_TRY(tec_log_pread(log, &h, sizeof h, 0, err));
    TEC_TRY(header_read(log->path, &h, err));
    uint32_t dim = log->key.dim;
    TEC_TRY(key_check(&h.key, err));
    log->key = h.key;
    log->key.dim = dim; /* whose embeddings are handed on */
    log->salt = h.salt;
    log->wrote = h.key.encoder;
    log->dim = h.key.dim;
    return tec_log_scan(log, (int64_t)bytes, visitor, err);
}

enum tec_status tec_log_read(const char *path, const struct tec_log_key *key,
                             struct tec_log_encoder *encoder, uint32_t *dim,
                             const struct tec_log_visitor *visitor, struct tec_heap *heap,
                             struct tec_error *err)
{
    struct tec_error why = {TEC_NO_MEMORY, ""};
    const struct tec_log_options none = {0};
    TEC_TRY(key_check(key, err));
    struct tec_log *log = wrap(path, key, &none, heap, &why);
    if (!log)
        return tec_fail(err, why.status, "%s", why.message);
    enum tec_status status = read_all(log, visitor, err);
    *encoder = log->wrote;
    *dim = log->dim;
    tec_log_close(log);
    return status;
}

enum tec_status tec_log_open(struct tec_log **out, const char *path, const struct tec_log_key *key,
                             const struct tec_log_options *options,
                             const struct tec_log_visitor *visitor, struct tec_heap *heap,
                             struct tec_error *err)
{
    char leftover[PATH_MAX + 8];
    struct tec_error why = {TEC_NO_MEMORY, ""};
    int64_t size = 0;
    TEC_TRY(key_check(key, err));
    struct tec_log *log = wrap(path, key, options, heap, &why);
    if (!log)
        return tec_fail(err, why.status, "%s", why.message);
    enum tec_status status = make_folders(log->path, visitor, err);
    bool there = access(log->path, F_OK) == 0;
    if (status == TEC_OK)
        status = open_locked(log, O_CREAT, &size, err);
    if (status == TEC_OK)
        status = take(log, size, there, visitor, err);
    if (status != TEC_OK) {
        tec_log_close(log);
        return status;
    }
    snprintf(leftover, sizeof leftover, "%s.new", path); /* of a compaction that did not end */
    unlink(leftover);
    *out = log;
    return TEC_OK;
}
