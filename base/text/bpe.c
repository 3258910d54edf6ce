/* bpe.c - byte-pair encoding of one word, by listed merges or by the scores of pieces.
 *
 * Pairs that may merge wait in a heap ordered by rank, then position, so a word of n symbols takes
 * O(n log n) instead of one scan for each merge. A merge leaves outdated pairs in the heap; when
 * such a pair is taken, its length no longer fits its symbols and it is skipped. The table of
 * merges is hashed with a seed that depends on the file. */
#include "base/text/bpe.h"

#include "base/text/parts.h"
#include "base/text/utf8.h"

#include <string.h>
#include <xxhash.h>

enum tec_status tec_bpe_merges(struct tec_bpe *bpe, size_t n, uint64_t seed,
                               struct tec_arena *arena, struct tec_error *err)
{
    size_t slots = 16;
    while (slots < 2 * n)
        slots *= 2;
    bpe->merges = TEC_NEW(arena, slots, struct tec_merge);
    if (!bpe->merges)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for %zu merges", n);
    for (size_t i = 0; i < slots; i++)
        bpe->merges[i].result = -1;
    bpe->mask = slots - 1;
    bpe->seed = seed;
    return TEC_OK;
}

static struct tec_merge *pair_slot(const struct tec_bpe *bpe, int left, int right)
{
    int pair[2] = {left, right};
    size_t at = (size_t)XXH3_64bits_withSeed(pair, sizeof pair, bpe->seed) & bpe->mask;
    for (;; at = (at + 1) & bpe->mask) {
        struct tec_merge *m = &bpe->merges[at];
        if (m->result < 0 || (m->left == left && m->right == right))
            return m;
    }
}

void tec_bpe_add(struct tec_bpe *bpe, struct tec_merge merge)
{
    *pair_slot(bpe, merge.left, merge.right) = merge;
}

static void sort_by_score(const struct tec_vocab *v, int *order, int *copy, size_t n)
{
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t at = 0; at < n; at += 2 * width) {
            size_t middle = at + width < n ? at + width : n;
            size_t end = at + 2 * width < n ? at + 2 * width : n, a = at, b = middle;
            for (size_t i = at; i < end; i++) {
                bool second = a == middle ||
                              (b < end && v->entries[order[b]].score > v->entries[order[a]].score);
                copy[i] = second ? order[b++] : order[a++];
            }
        }
        memcpy(order, copy, n * sizeof *order);
    }
}

uint32_t *tec_bpe_ranks(const struct tec_vocab *vocab, struct tec_arena *arena)
{
    size_t n = (size_t)vocab->n;
    uint32_t *ranks = TEC_NEW(arena, n, uint32_t);
    struct tec_arena_mark mark = tec_arena_mark(arena);
    int *order = TEC_NEW(arena, n, int), *copy = TEC_NEW(arena, n, int);
    if (!ranks || !order || !copy)
        return NULL;
    for (size_t i = 0; i < n; i++)
        order[i] = (int)i;
    sort_by_score(vocab, order, copy, n);
    uint32_t rank = 0;
    for (size_t i = 0; i < n; i++) {
        rank += i > 0 && vocab->entries[order[i]].score < vocab->entries[order[i - 1]].score;
        ranks[order[i]] = rank;
    }
    tec_arena_rewind(arena, mark);
    return ranks;
}

struct symbol {
    int before, after; /* -1 at the ends */
    int id;            /* by pairs: its id; by score: entry, or -1 */
    uint32_t at, n;    /* bytes of the word; n 0 = merged away */
    bool frozen;
};

/* A pair that may merge; the key is its rank, then its position. It is outdated when either symbol
 * has changed. */
struct candidate {
    uint64_t key;
    int right, result;
    uint32_t n;
};

struct merging {
    const struct tec_bpe *bpe;
    struct tec_text_span word;
    struct symbol *symbols;
    int n;
    struct candidate *heap;
    size_t n_heap;
    int *split; /* by score with unused pieces: hash of entry -> bytes of its left half */
    size_t split_mask;
};

static void heap_add(struct merging *m, struct candidate c)
{
    size_t at = m->n_heap++;
    for (; at > 0 && m->heap[(at - 1) / 2].key > c.key; at = (at - 1) / 2)
        m->heap[at] = m->heap[(at - 1) / 2];
    m->heap[at] = c;
}

static struct candidate heap_take(struct merging *m)
{
    struct candidate top = m->heap[0], last = m->heap[--m->n_heap];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= m->n_heap)
            break;
        child += child + 1 < m->n_heap && m->heap[child + 1].key < m->heap[child].key;
        if (m->heap[child].key >= last.key)
            break;
        m->heap[at] = m->heap[child];
        at = child;
    }
    m->heap[at] = last;
    return top;
}

static int *split_slot(struct merging *m, int entry)
{
    size_t at = (size_t)entry & m->split_mask;
    while (m->split[2 * at] >= 0 && m->split[2 * at] != entry)
        at = (at + 1) & m->split_mask;
    return m->split + 2 * at;
}

/* True if the pair may merge; gives the rank and the result of the merge. */
static bool look_up(struct merging *m, const struct symbol *a, const struct symbol *b,
                    uint32_t *rank, int *result)
{
    const struct tec_bpe *bpe = m->bpe;
    if (!bpe->ranks) {
        const struct tec_merge *merge = pair_slot(bpe, a->id, b->id);
        *rank = merge->rank;
        *result = merge->result;
        return merge->result >= 0;
    }
    const struct tec_vocab_entry *e = tec_vocab_find(bpe->vocab, m->word.at + a->at, a->n + b->n);
    if (!e ||
        (e->type != TEC_PIECE_NORMAL && e->type != TEC_PIECE_USER && e->type != TEC_PIECE_UNUSED))
        return false;
    *result = (int)(e - bpe->vocab->entries);
    *rank = bpe->ranks[*result];
    if (m->split && e->type == TEC_PIECE_UNUSED) {
        int *slot = split_slot(m, *result);
        slot[0] = *result;
        slot[1] = (int)a->n;
    }
    return true;
}

static void consider(struct merging *m, int left, int right)
{
    uint32_t rank;
    int result;
    if (left < 0 || right < 0 || m->symbols[left].frozen || m->symbols[right].frozen)
        return;
    const struct symbol *a = &m->symbols[left], *b = &m->symbols[right];
    if (look_up(m, a, b, &rank, &result))
        heap_add(m, (struct candidate){(uint64_t)rank << 32 | (uint32_t)left, right, result,
                                       a->n + b->n});
}

static void merge_all(struct merging *m)
{
    for (int i = 0; i + 1 < m->n; i++)
        consider(m, i, i + 1);
    while (m->n_heap) {
        struct candidate c = heap_take(m);
        int left = (int)(uint32_t)c.key;
        struct symbol *a = &m->symbols[left], *b = &m->symbols[c.right];
        if (a->n == 0 || b->n == 0 || a->n + b->n != c.n)
            continue;
        a->n = c.n;
        a->id = c.result;
        a->after = b->after;
        if (b->after >= 0)
            m->symbols[b->after].before = left;
        b->n = 0;
        consider(m, a->before, left);
        consider(m, left, a->after);
    }
}

static void add_symbol(struct merging *m, int id, uint32_t at, uint32_t n, bool frozen)
{
    m->symbols[m->n] = (struct symbol){m->n - 1, m->n + 1, id, at, n, frozen};
    m->n++;
}

/* Initial symbols by score: user-defined pieces as a whole, else one symbol for each character. */
static void start_by_score(struct merging *m)
{
    const struct tec_prefix *user = m->bpe->user;
    const char *s = m->word.at;
    for (size_t at = 0, n; at < m->word.n; at += n) {
        const struct tec_prefix_key *key =
            user ? tec_trie_longest(user, tec_trie_start(user), s + at, m->word.n - at) : NULL;
        n = key ? key->text.n : tec_utf8_length(s[at]);
        add_symbol(m, -1, (uint32_t)at, (uint32_t)n, key != NULL);
    }
}

static bool all_bytes(const struct tec_bpe *bpe, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (bpe->byte_id[(unsigned char)s[i]] < 0)
            return false;
    return true;
}

/* Initial symbols of byte-level pieces. A byte without a piece is the unknown piece, a run of them
 * one where they are fused; without an unknown piece it is dropped. */
static void start_bytes(struct merging *m)
{
    const struct tec_bpe *bpe = m->bpe;
    for (size_t at = 0, n; at < m->word.n; at += n) {
        int id = bpe->byte_id[(unsigned char)m->word.at[at]];
        n = 1;
        if (id >= 0) {
            add_symbol(m, id, (uint32_t)at, 1, false);
            continue;
        }
        while (bpe->fuse_unk && at + n < m->word.n &&
               bpe->byte_id[(unsigned char)m->word.at[at + n]] < 0)
            n++;
        if (bpe->unk >= 0)
            add_symbol(m, bpe->unk, (uint32_t)at, (uint32_t)n, false);
    }
}

/* Initial symbols by pairs: one for each character. Unknown characters become bytes, or are held
 * back to be fused into one unknown symbol. A held-back symbol is added before the next known
 * character, but after bytes, as in the reference. */
static void start_by_pairs(struct merging *m)
{
    const struct tec_bpe *bpe = m->bpe;
    const char *s = m->word.at;
    size_t wait_at = 0, wait_n = 0;
    for (size_t at = 0, n; at < m->word.n; at += n) {
        n = tec_utf8_length(s[at]);
        int id = tec_vocab_model_id(bpe->vocab, s + at, n);
        if (id < 0 && bpe->byte_fallback && all_bytes(bpe, s + at, n)) {
            for (size_t i = 0; i < n; i++)
                add_symbol(m, bpe->byte_id[(unsigned char)s[at + i]], (uint32_t)(at + i), 1, false);
            continue;
        }
        if (wait_n && (id >= 0 || !bpe->fuse_unk)) {
            add_symbol(m, bpe->unk, (uint32_t)wait_at, (uint32_t)wait_n, false);
            wait_n = 0;
        }
        if (id >= 0) {
            add_symbol(m, id, (uint32_t)at, (uint32_t)n, false);
        } else if (bpe->unk >= 0) {
            wait_at = wait_n ? wait_at : at;
            wait_n += n;
        }
    }
    if (wait_n)
        add_symbol(m, bpe->unk, (uint32_t)wait_at, (uint32_t)wait_n, false);
}

/* By score: add the id of one final symbol. A run of unknown symbols gives one unknown id. */
static void emit_text(const struct merging *m, struct tec_text_span s, struct tec_ids *ids,
                      bool *unknown)
{
    const struct tec_bpe *bpe = m->bpe;
    int id = tec_vocab_model_id(bpe->vocab, s.at, s.n);
    bool was = *unknown;
    *unknown = id < 0 || id == bpe->unk;
    if (!*unknown) {
        tec_ids_add(ids, id);
        return;
    }
    for (size_t i = 0; bpe->byte_fallback && i < s.n; i++)
        tec_ids_add(ids, bpe->byte_id[(unsigned char)s.at[i]]);
    if (!bpe->byte_fallback && !was)
        tec_ids_add(ids, bpe->unk);
}

/* An unused piece only serves as a step towards other merges: in the output it is split into the
 * parts it was merged from, depth first. Each split gives shorter pieces, of which a symbol of n
 * bytes has at most n. */
static void emit_split(struct merging *m, struct tec_text_span s, struct tec_ids *ids,
                       bool *unknown, struct tec_text_span *stack)
{
    int depth = 0;
    stack[depth++] = s;
    while (depth) {
        s = stack[--depth];
        const struct tec_vocab_entry *e = tec_vocab_find(m->bpe->vocab, s.at, s.n);
        const int *slot = e && e->type == TEC_PIECE_UNUSED
                              ? split_slot(m, (int)(e - m->bpe->vocab->entries))
                              : NULL;
        if (!slot || slot[0] < 0) {
            emit_text(m, s, ids, unknown);
            continue;
        }
        size_t left = (size_t)slot[1];
        stack[depth++] = (struct tec_text_span){s.at + left, s.n - left};
        stack[depth++] = (struct tec_text_span){s.at, left};
    }
}

static enum tec_status emit(struct merging *m, struct tec_ids *ids, struct tec_arena *scratch,
                            struct tec_error *err)
{
    bool unknown = false;
    struct tec_text_span *stack =
        m->split ? TEC_NEW(scratch, TEC_PIECE_BYTES + 1, struct tec_text_span) : NULL;
    if (m->split && !stack)
        return tec_fail(err, TEC_NO_MEMORY, "no memory to encode %zu bytes", m->word.n);
    for (int i = m->n ? 0 : -1; i >= 0; i = m->symbols[i].after) {
        const struct symbol *s = &m->symbols[i];
        struct tec_text_span text = {m->word.at + s->at, s->n};
        if (!m->bpe->ranks)
            tec_ids_add(ids, s->id);
        else if (stack)
            emit_split(m, text, ids, &unknown, stack);
        else
            emit_text(m, text, ids, &unknown);
    }
    return TEC_OK;
}

static bool make_room(struct merging *m, struct tec_arena *scratch)
{
    size_t n = m->word.n, slots = 16;
    m->symbols = TEC_NEW(scratch, n, struct symbol);
    m->heap = TEC_NEW(scratch, 3 * n, struct candidate);
    if (m->bpe->ranks && m->bpe->unused) {
        while (slots < 6 * n)
            slots *= 2;
        m->split = TEC_NEW(scratch, 2 * slots, int);
        if (!m->split)
            return false;
        memset(m->split, -1, 2 * slots * sizeof *m->split);
        m->split_mask = slots - 1;
    }
    return m->symbols && m->heap;
}

/* The piece that the whole word is; -1: none. Pieces of bytes are written in printable characters.
 */
static int find_whole(const struct tec_bpe *bpe, struct tec_text_span word)
{
    char text[TEC_PIECE_BYTES + 4];
    size_t n = 0;
    if (!bpe->bytes)
        return tec_vocab_model_id(bpe->vocab, word.at, word.n);
    for (size_t at = 0; at < word.n; at++) {
        if (n >= TEC_PIECE_BYTES)
            return -1; /* longer than any piece */
        n += tec_utf8_put(text + n, tec_tokenizer_printable((unsigned char)word.at[at]));
    }
    return tec_vocab_model_id(bpe->vocab, text, n);
}

enum tec_status tec_bpe_encode(const struct tec_bpe *bpe, struct tec_text_span word,
                               struct tec_ids *ids, struct tec_arena *scratch,
                               struct tec_error *err)
{
    int whole = bpe->ignore_merges ? find_whole(bpe, word) : -1;
    if (whole >= 0) {
        tec_ids_add(ids, whole);
        return TEC_OK;
    }
    struct tec_arena_mark mark = tec_arena_mark(scratch);
    struct merging m = {.bpe = bpe, .word = word};
    enum tec_status status = TEC_OK;
    if (make_room(&m, scratch)) {
        (bpe->ranks ? start_by_score : bpe->bytes ? start_bytes : start_by_pairs)(&m);
        if (m.n)
            m.symbols[m.n - 1].after = -1;
        merge_all(&m);
        status = emit(&m, ids, scratch, err);
    } else {
        status = tec_fail(err, TEC_NO_MEMORY, "no memory to encode %zu bytes", word.n);
    }
    tec_arena_rewind(scratch, mark);
    return status;
}
