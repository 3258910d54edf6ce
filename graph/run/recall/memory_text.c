/* memory_text.c - turns texts of a memory into vectors and tokens.
 *
 * Runs on the consumer's thread under the memory's lock. Without a sentence encoder a vector is a
 * signed hash of the text's words: it needs no model, and texts with words in common are similar.
 */
#include "base/thread.h"
#include "graph/run/recall/memory_own.h"

#include <ctype.h>
#include <string.h>
#include <xxhash.h>

/* A word of a text: letters and digits, or any other run of bytes above space. */
static size_t word_at(const char *text, size_t n, size_t *at)
{
    size_t begin;
    while (*at < n && !isalnum((unsigned char)text[*at]) && (unsigned char)text[*at] < 128)
        ++*at;
    begin = *at;
    while (*at < n && (isalnum((unsigned char)text[*at]) || (unsigned char)text[*at] >= 128))
        ++*at;
    return begin;
}

/* Hash a word into the vector: it adds 1 at one place and subtracts 1 at another. */
static void count_word(struct tec_memory *m, const char *text, size_t n)
{
    char word[32];
    size_t length = n < sizeof word ? n : sizeof word;
    for (size_t i = 0; i < length; i++)
        word[i] = (char)tolower((unsigned char)text[i]);
    uint64_t h = XXH3_64bits(word, length);
    m->embedding[h % TEC_WORDS_DIM] += 1.0F;
    m->embedding[(h >> 32) % TEC_WORDS_DIM] -= 1.0F;
}

static void embed_words(struct tec_memory *m, const char *text, size_t n)
{
    memset(m->embedding, 0, (size_t)m->dim * sizeof *m->embedding);
    for (size_t at = 0; at < n;) {
        size_t begin = word_at(text, n, &at);
        if (at > begin)
            count_word(m, text + begin, at - begin);
    }
}

struct embedding {
    struct tec_memory *memory;
    struct tec_encoder_text text;
    struct tec_error *err;
    enum tec_status status;
};

static void *embed(void *user)
{
    struct embedding *e = user;
    struct tec_encoder *encoder = e->memory->shared->encoder;
    e->status = tec_encoder_embed(encoder, &e->text, 1, e->memory->embedding, e->err);
    return NULL;
}

enum tec_status tec_memory_embed(struct tec_memory *m, const char *text, size_t bytes,
                                 struct tec_error *err)
{
    struct embedding e = {.memory = m, .text = {text, bytes}, .err = err};
    struct tec_memory_shared *s = m->shared;
    if (!s->encoder) {
        embed_words(m, text, bytes);
        return TEC_OK;
    }
    pthread_mutex_lock(&s->encodes);
    bool ran = tec_thread_run(embed, &e); /* it may be a program's own thread, with little stack */
    pthread_mutex_unlock(&s->encodes);
    return ran ? e.status : tec_fail(err, TEC_NO_MEMORY, "no memory for a thread to embed a text");
}

enum tec_status tec_memory_encode(struct tec_memory *m, const char *text, size_t bytes, int *ids,
                                  size_t room, size_t *n, struct tec_error *err)
{
    const struct tec_encode how = {.literal = true};
    int vocab = m->options.model->text.vocab;
    *n = 0;
    if (m->options.tokenizer) {
        struct tec_arena_mark mark = tec_arena_mark(&m->scratch);
        enum tec_status status = tec_tokenizer_encode(m->options.tokenizer, text, bytes, how, ids,
                                                      room, n, &m->scratch, err);
        tec_arena_rewind(&m->scratch, mark);
        return status;
    }
    for (size_t at = 0; at < bytes;) {
        size_t begin = word_at(text, bytes, &at);
        if (at > begin && (*n)++ < room)
            ids[*n - 1] = (int)(XXH3_64bits(text + begin, at - begin) % (uint64_t)vocab);
    }
    if (*n == 0 && room > 0) /* a segment has at least one token */
        ids[(*n)++] = 0;
    return TEC_OK;
}
