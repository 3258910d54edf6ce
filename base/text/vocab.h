/* vocab.h - the pieces of a tokenizer: text to id, id to text. */
#ifndef TEC_BASE_TEXT_VOCAB_H
#define TEC_BASE_TEXT_VOCAB_H

#include "base/arena.h"
#include "base/error.h"
#include "base/text/bytes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Numbers of the SentencePiece format; tokenizer.json knows only normal, and byte by spelling. */
enum tec_piece_type {
    TEC_PIECE_NORMAL = 1,
    TEC_PIECE_UNKNOWN = 2,
    TEC_PIECE_CONTROL = 3,
    TEC_PIECE_USER = 4,
    TEC_PIECE_UNUSED = 5,
    TEC_PIECE_BYTE = 6,
};

struct tec_vocab_entry {
    struct tec_text_span text; /* followed by a NUL */
    int id;
    unsigned char type; /* enum tec_piece_type */
    bool added;         /* not part of the model's own vocabulary */
    double score;
};

/* Entries are added while loading, then only read. Texts are unique, and ids are, except that an
 * added entry may take the id of another one: it is then what the id shows. */
struct tec_vocab {
    struct tec_vocab_entry *entries;
    int n, capacity;
    int *shown; /* id -> entry, -1 for an id without a piece */
    int size;   /* ids are 0 .. size - 1 */
    bool *special;
    int *slots; /* hash table of entries, -1 = empty */
    size_t mask;
    uint64_t seed;
};

/* Room for `entries` pieces and ids up to `largest`, which must lie within reach of the count:
 * memory is bounded by the file, not by a number in it. `seed` is a hash of the file, so that no
 * file can be made to collide with itself. */
enum tec_status tec_vocab_init(struct tec_vocab *v, size_t entries, int64_t largest, uint64_t seed,
                               struct tec_arena *arena, struct tec_error *err);

/* Add one entry (text borrowed for the life of v). Fails when the text is empty, too long, or
 * there, or when the id is out of range or taken. An added entry may repeat a text with its own id
 * (nothing is added) and take an id that is in use. */
enum tec_status tec_vocab_add(struct tec_vocab *v, struct tec_vocab_entry entry,
                              struct tec_error *err);

/* The entry with this text; NULL when there is none. */
const struct tec_vocab_entry *tec_vocab_find(const struct tec_vocab *v, const char *text, size_t n);

/* Find a piece among the model's own, without the added tokens; the id, or -1. */
int tec_vocab_model_id(const struct tec_vocab *v, const char *text, size_t n);

/* Returns the text of an id; NULL for ids without a piece or out of range. */
const struct tec_vocab_entry *tec_vocab_entry(const struct tec_vocab *v, int id);

/* "<0x41>" is byte 0x41 (hexadecimal in either case); -1 when the text is no such name. */
int tec_vocab_byte(const char *text, size_t n);

#endif
