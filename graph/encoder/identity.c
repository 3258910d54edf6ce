/* identity.c - a hash of what an encoder is, for whoever keeps its vectors: those of two encoders
 * do not compare. */
#include "base/json_text.h"
#include "base/store/adapter.h"
#include "base/store/file.h"
#include "graph/encoder/encoder_own.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

enum { CHUNK = 1 << 14 };

static void add(uint64_t id[2], const void *data, size_t n)
{
    XXH128_hash_t of = XXH3_128bits(data, n);
    const uint64_t chain[4] = {id[0], id[1], of.low64, of.high64};
    XXH128_hash_t next = XXH3_128bits(chain, sizeof chain);
    id[0] = next.low64;
    id[1] = next.high64;
}

static void add_text(uint64_t id[2], const char *text)
{
    add(id, text ? text : "", text ? strlen(text) + 1 : 0); /* NULL is not "" */
}

/* Bytes of a file; of none that is not there. */
static enum tec_status add_file(uint64_t id[2], const char *path, struct tec_error *err)
{
    unsigned char chunk[CHUNK];
    uint64_t bytes = 0;
    int file = -1;
    if (!path || access(path, F_OK) != 0) {
        add_text(id, NULL);
        return TEC_OK;
    }
    TEC_TRY(tec_path_open(path, &file, &bytes, err));
    enum tec_status status = TEC_OK;
    for (uint64_t at = 0; status == TEC_OK && at < bytes;) {
        size_t n = bytes - at < CHUNK ? (size_t)(bytes - at) : CHUNK;
        status = tec_path_read(file, path, at, chunk, n, err);
        add(id, chunk, status == TEC_OK ? n : 0);
        at += n;
    }
    close(file);
    return status;
}

/* What says how a text becomes tokens: the tokenizer's own file, or the files of one that has none
 * of that name, and the settings beside it. */
static enum tec_status add_tokenizer(const struct tec_encoder *e, uint64_t id[2],
                                     struct tec_error *err)
{
    static const char *const names[] = {"vocab.txt", "vocab.json", "merges.txt"};
    const struct tec_checkpoint *c = e->checkpoint;
    TEC_TRY(add_file(id, c->tokenizer, err));
    for (size_t i = 0; !c->tokenizer && i < sizeof names / sizeof names[0]; i++) {
        char path[4096];
        int n = snprintf(path, sizeof path, "%s/%s", c->root, names[i]);
        if (n < 0 || (size_t)n >= sizeof path)
            return tec_fail(err, TEC_INVALID,
                            "%.200s...: the path of its %s has more than %d bytes", c->root,
                            names[i], (int)sizeof path - 1);
        TEC_TRY(add_file(id, path, err));
    }
    char *settings =
        c->tokenization ? tec_json_whole(c->tokenization, JSON_SORT_KEYS | JSON_COMPACT) : NULL;
    if (c->tokenization && !settings)
        return tec_fail(err, TEC_NO_MEMORY, "no memory to name an encoder");
    add_text(id, settings);
    free(settings);
    return TEC_OK;
}

enum tec_status tec_encoder_identity(const struct tec_encoder *e, uint64_t id[2],
                                     struct tec_error *err)
{
    const struct tec_checkpoint *c = e->checkpoint;
    const struct tec_encoder_directory *d = &e->directory;
    uint64_t tensors[2] = {0, 0}, adapter[2] = {0, 0};
    id[0] = id[1] = 0;
    TEC_TRY(tec_tensors_content(c->tensors, UINT64_MAX, tensors, e->heap, err));
    add_text(id, "vectors of a sentence encoder");
    add(id, tensors, sizeof tensors);
    if (c->adapter)
        TEC_TRY(tec_adapter_content(c->adapter, UINT64_MAX, adapter, err));
    const uint64_t of[] = {e->model->identity, adapter[0] ^ adapter[1], (uint64_t)e->tokens,
                           e->options.bf16};
    add(id, of, sizeof of);
    TEC_TRY(add_tokenizer(e, id, err));
    add_text(id, tec_encoder_pool_name(d->pool));
    add_text(id, d->unit ? "length 1" : NULL);
    add_text(id, d->prompt);
    return TEC_OK;
}

const char *tec_encoder_pooling(const struct tec_encoder *e)
{
    return tec_encoder_pool_name(e->directory.pool);
}

const char *tec_encoder_prompt(const struct tec_encoder *e)
{
    return e->directory.prompt;
}
