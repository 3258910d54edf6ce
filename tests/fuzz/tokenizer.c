/* tokenizer.c - libFuzzer: any bytes as a tokenizer.model and as a tokenizer.json, then used. */
#include "base/text/tokenizer.h"
#include "base/text/utf8.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
    if (!good)
        abort();
}

/* Encode a text, decode the ids, and stream them: the same, and UTF-8. */
static void use(const struct tec_tokenizer *t, struct tec_heap *heap, const char *text, size_t n,
                bool flag)
{
    struct tec_arena arena;
    struct tec_error err;
    struct tec_detokenizer d;
    struct tec_encode how = {.special = flag, .literal = !flag};
    int ids[512];
    size_t count, bytes, total = 0;
    char *whole, piece[TEC_DETOKENIZER_BYTES];
    tec_arena_init(&arena, heap);
    if (tec_tokenizer_encode(t, text, n, how, ids, 512, &count, &arena, &err) != TEC_OK)
        count = 0;
    count = count < 512 ? count : 512;
    for (size_t i = 0; i < count; i++)
        check(ids[i] >= 0 && ids[i] < tec_tokenizer_size(t));
    ids[count < 512 ? count++ : 0] = (int)n;
    if (tec_tokenizer_decode(t, ids, count, flag, &arena, &whole, &bytes, &err) == TEC_OK) {
        check(tec_utf8_check(whole, bytes) == bytes);
        tec_detokenizer_init(&d, t, flag);
        for (size_t i = 0; i <= count; i++) {
            size_t got = i < count ? tec_detokenizer_push(&d, ids[i], piece, sizeof piece)
                                   : tec_detokenizer_flush(&d, piece, sizeof piece);
            check(got <= sizeof piece && got <= bytes - total);
            check(memcmp(piece, whole + total, got) == 0);
            total += got;
        }
        check(total == bytes);
    }
    tec_arena_finish(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char text[] =
        "the robot's 12 cups\n\n <s> </s>\xC3\xA9\xE6\x9C\xBA  _\xE2\x96\x81";
    struct tec_error err;
    for (int format = 0; format < 2; format++) {
        struct tec_heap heap = {.limit = (size_t)256 << 20};
        struct tec_tokenizer *t;
        if (tec_tokenizer_open_bytes(&t, data, size, (enum tec_text_format)format, &heap, &err) ==
            TEC_OK) {
            size_t tail = size < 300 ? size : 300;
            use(t, &heap, text, sizeof text - 1, true);
            use(t, &heap, text, sizeof text - 1, false);
            use(t, &heap, (const char *)data + size - tail, tail, true);
            tec_tokenizer_close(t);
        }
        check(heap.live == 0);
    }
    return 0;
}
