/* memory_log.c - fuzz target: any bytes as the file of a memory store. Checksums would turn most of
 * them away, so they are made right first, where something looks like a header or a head: what a
 * file says is then all that can be wrong: of its format and encoder, too. The store that opens
 * must answer, change, compact and open again. */
#include "graph/memory/log_own.h"
#include "graph/memory/store.h"
#include "tests/store_inside.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

enum { LAYERS = 2, ROW = 16, DIM = 3, SEGMENTS = 64, MOST = 1 << 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
    if (!good)
        abort();
}

static const struct tec_log_key key = {
    .layers = LAYERS, .row_bytes = ROW, .dim = DIM, .encoder = {.id = {7}, .name = "ours"}};
static bool unable;

static enum tec_status embed(void *user, const char *text, size_t bytes, float *out,
                             struct tec_error *err)
{
    (void)user;
    if (unable && bytes > 4)
        return tec_fail(err, TEC_MALFORMED, "no vector");
    for (int i = 0; i < DIM; i++)
        out[i] = (float)(bytes > (size_t)i ? (unsigned char)text[i] : i);
    return TEC_OK;
}

/* What the first byte of an input says of the file. */
enum {
    METAS = 1,   /* sums of metas are made right, too */
    SPOILT = 2,  /* a byte of the header is another one */
    OTHER = 4,   /* the vectors are another encoder's */
    NARROW = 8,  /* and of another width */
    FIRST = 16,  /* format 1 */
    UNABLE = 32, /* the encoder has no vector for some texts */
};

/* A header of ours. */
static void head_make(unsigned char *file, int how)
{
    struct tec_log_header h = {
        .magic = "TECMEM1", .format = 2, .endian = 0x01020304u, .key = key, .salt = 5};
    h.key.dim -= how & NARROW ? 1 : 0;
    h.key.encoder.id[0] += how & OTHER ? 1 : 0;
    h.sum = XXH3_64bits(&h, offsetof(struct tec_log_header, sum));
    memset(file, 0, TEC_LOG_HEADER);
    memcpy(file, &h, sizeof h);
    if (!(how & FIRST))
        return;
    size_t kv = offsetof(struct tec_log_header, key) + offsetof(struct tec_log_key, encoder);
    memset(file + kv, 0, sizeof h - kv);
    file[8] = 1;
    memcpy(file + kv, &h.salt, sizeof h.salt);
    uint64_t sum = XXH3_64bits(file, kv + sizeof h.salt);
    memcpy(file + kv + sizeof h.salt, &sum, sizeof sum);
}

/* The bytes of a file: a header of ours, then heads whose sums are right. */
static void mend(unsigned char *file, size_t size, int how)
{
    struct tec_log like = {.key = key, .salt = 5};
    bool metas = how & METAS;
    head_make(file, how);
    for (size_t at = TEC_LOG_HEADER; at + sizeof(struct tec_log_head) <= size; at += 64) {
        struct tec_log_head head;
        memcpy(&head, file + at, sizeof head);
        if ((head.magic & 0xff) != (TEC_LOG_RECORD_MAGIC & 0xff))
            continue;
        head.magic = TEC_LOG_RECORD_MAGIC;
        if (metas && head.meta_bytes <= size - at - sizeof head)
            head.meta_sum = XXH3_64bits(file + at + sizeof head, head.meta_bytes);
        head.sum = tec_log_head_sum(&like, &head);
        memcpy(file + at, &head, sizeof head);
    }
}

static void use(struct tec_store *s)
{
    static const float v[DIM] = {1.0f, 0.5f, 0.25f};
    struct tec_groups_change change;
    struct tec_store_segment_view view;
    unsigned char rows[2 * ROW * 4] = {1};
    const void *pieces[LAYERS] = {rows, rows};
    uint32_t segments[SEGMENTS], n = 0, segment = 0;
    check(tec_store_query(s, v, SEGMENTS, segments, &n, NULL) == TEC_OK && n <= SEGMENTS);
    for (uint32_t i = 0; i < n; i++) {
        struct tec_kv *kv = NULL;
        check(tec_store_view(s, segments[i], &view));
        if (tec_store_pin(s, segments[i], &kv, NULL) != TEC_OK)
            continue;
        unsigned char *piece = malloc(tec_store_kv_piece_bytes(kv));
        check(piece != NULL);
        (void)tec_store_read(s, kv, LAYERS - 1, piece, NULL);
        free(piece);
        tec_store_drop(s, kv);
    }
    (void)tec_store_step(s, 1000, &change, NULL);
    if (tec_store_put(s, "new", "text", 4, 4, v, &segment, &change, NULL) == TEC_OK &&
        tec_store_view(s, segment, &view))
        (void)tec_store_put_kv(s, segment, view.version, view.epoch, pieces, NULL);
    check(store_compact(s, NULL) == TEC_OK);
    check(tec_store_missing(s, segments, SEGMENTS) <= SEGMENTS);
}

/* A store without a file begins with it, and it stays as it is. */
static void begin_with(const char *path)
{
    struct tec_heap heap = {.limit = (size_t)1 << 26};
    struct tec_store *s = NULL;
    const struct tec_store_options options = {.begins = path,
                                              .key = key,
                                              .max_segments = SEGMENTS,
                                              .threshold = 0.9,
                                              .stable_steps = 2,
                                              .ram_bytes = 4096,
                                              .embed = embed};
    if (tec_store_open(&s, &options, &heap, NULL) == TEC_OK) {
        check(tec_store_state(s).segments <= SEGMENTS);
        use(s);
    }
    tec_store_close(s);
    check(heap.live == 0);
}

static bool open_and_use(const char *path)
{
    struct tec_heap heap = {.limit = (size_t)1 << 26};
    struct tec_store *s = NULL;
    struct tec_error err = {TEC_OK, ""};
    const struct tec_store_options options = {.path = path,
                                              .key = key,
                                              .max_segments = SEGMENTS,
                                              .threshold = 0.9,
                                              .stable_steps = 2,
                                              .ram_bytes = 4096,
                                              .embed = embed};
    enum tec_status status = tec_store_open(&s, &options, &heap, &err);
    check(status == TEC_OK || err.message[0] != '\0');
    if (status == TEC_OK)
        use(s);
    tec_store_close(s);
    check(heap.live == 0);
    check(heap.peak <= 4 << 20);
    return status == TEC_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static unsigned char file[TEC_LOG_HEADER + MOST];
    static char path[64];
    if (size < 1 || size > MOST)
        return 0;
    if (!path[0])
        snprintf(path, sizeof path, "/dev/shm/tectum_fuzz_%d", (int)getpid());
    memcpy(file + TEC_LOG_HEADER, data + 1, size - 1);
    size_t bytes = TEC_LOG_HEADER + size - 1;
    unable = data[0] & UNABLE;
    mend(file, bytes, data[0]);
    if (data[0] & SPOILT)
        file[data[0]] ^= data[0];
    int out = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    check(out >= 0 && write(out, file, bytes) == (ssize_t)bytes);
    close(out);
    begin_with(path);
    if (open_and_use(path))
        check(open_and_use(path)); /* what a store wrote, it reads */
    unlink(path);
    return 0;
}
