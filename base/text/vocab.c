/* vocab.c - the pieces of a tokenizer: a hash table from text to piece and an array from id to
 * piece.
 *
 * The table has at least twice as many slots as pieces and is probed linearly. It is hashed with a
 * seed that depends on the file. */
#include "base/text/vocab.h"

#include "base/text/tokenizer.h"

#include <string.h>
#include <xxhash.h>

enum tec_status tec_vocab_init(struct tec_vocab *v, size_t entries, int64_t largest, uint64_t seed,
                               struct tec_arena *arena, struct tec_error *err)
{
    const int64_t reach = 4 * (int64_t)entries + 65536;
    if (entries == 0)
        return tec_fail(err, TEC_MALFORMED, "the vocabulary is empty");
    if (entries > INT32_MAX / 8)
        return tec_fail(err, TEC_UNSUPPORTED, "the vocabulary has %zu pieces", entries);
    if (largest < 0 || largest >= reach)
        return tec_fail(err, TEC_MALFORMED, "id %lld is out of reach of a vocabulary of %zu pieces",
                        (long long)largest, entries);
    size_t slots = 64;
    while (slots < 2 * entries)
        slots *= 2;
    *v = (struct tec_vocab){.capacity = (int)entries, .size = (int)largest + 1, .mask = slots - 1};
    v->seed = seed;
    v->entries = TEC_NEW(arena, entries, struct tec_vocab_entry);
    v->shown = TEC_NEW(arena, (size_t)v->size, int);
    v->special = TEC_NEW(arena, (size_t)v->size, bool);
    v->slots = TEC_NEW(arena, slots, int);
    if (!v->entries || !v->shown || !v->special || !v->slots)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a vocabulary of %zu pieces", entries);
    memset(v->shown, -1, (size_t)v->size * sizeof *v->shown);
    memset(v->slots, -1, slots * sizeof *v->slots);
    return TEC_OK;
}

/* The slot of a text: the one that holds it, or else the empty one where it belongs. */
static size_t slot_of(const struct tec_vocab *v, const char *text, size_t n)
{
    size_t at = (size_t)XXH3_64bits_withSeed(text, n, v->seed) & v->mask;
    for (;; at = (at + 1) & v->mask) {
        if (v->slots[at] < 0)
            return at;
        const struct tec_vocab_entry *e = &v->entries[v->slots[at]];
        if (e->text.n == n && memcmp(e->text.at, text, n) == 0)
            return at;
    }
}

const struct tec_vocab_entry *tec_vocab_find(const struct tec_vocab *v, const char *text, size_t n)
{
    int found = n && n <= TEC_PIECE_BYTES ? v->slots[slot_of(v, text, n)] : -1;
    return found < 0 ? NULL : &v->entries[found];
}

int tec_vocab_model_id(const struct tec_vocab *v, const char *text, size_t n)
{
    const struct tec_vocab_entry *e = tec_vocab_find(v, text, n);
    return e && !e->added ? e->id : -1;
}

const struct tec_vocab_entry *tec_vocab_entry(const struct tec_vocab *v, int id)
{
    return id >= 0 && id < v->size && v->shown[id] >= 0 ? &v->entries[v->shown[id]] : NULL;
}

enum tec_status tec_vocab_add(struct tec_vocab *v, struct tec_vocab_entry entry,
                              struct tec_error *err)
{
    const char *text = entry.text.at;
    int shown = entry.text.n > 40 ? 40 : (int)entry.text.n;
    if (entry.text.n == 0)
        return tec_fail(err, TEC_MALFORMED, "the piece of id %d is empty", entry.id);
    if (entry.text.n > TEC_PIECE_BYTES)
        return tec_fail(err, TEC_UNSUPPORTED, "the piece of id %d has %zu bytes, at most %d",
                        entry.id, entry.text.n, TEC_PIECE_BYTES);
    if (entry.id < 0 || entry.id >= v->size || v->n == v->capacity)
        return tec_fail(err, TEC_MALFORMED, "piece '%.*s' has id %d, ids are below %d", shown, text,
                        entry.id, v->size);
    size_t slot = slot_of(v, text, entry.text.n);
    if (v->slots[slot] >= 0) {
        int id = v->entries[v->slots[slot]].id;
        if (entry.added && id == entry.id)
            return TEC_OK;
        return tec_fail(err, TEC_MALFORMED, "piece '%.*s' has two ids, %d and %d", shown, text, id,
                        entry.id);
    }
    const struct tec_vocab_entry *other = tec_vocab_entry(v, entry.id);
    if (other && (!entry.added || other->added))
        return tec_fail(err, TEC_MALFORMED, "id %d has two pieces, '%.*s' and '%.*s'", entry.id,
                        (int)(other->text.n > 40 ? 40 : other->text.n), other->text.at, shown,
                        text);
    v->entries[v->n] = entry;
    v->slots[slot] = v->n;
    v->shown[entry.id] = v->n++;
    return TEC_OK;
}

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int tec_vocab_byte(const char *text, size_t n)
{
    if (n != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>')
        return -1;
    int high = hex(text[3]), low = hex(text[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}
