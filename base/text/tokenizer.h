/* tokenizer.h - text to token ids and back: BPE, Unigram and WordPiece, from published files. */
#ifndef TEC_BASE_TEXT_TOKENIZER_H
#define TEC_BASE_TEXT_TOKENIZER_H

#include "base/arena.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

/* Immutable after open: any number of threads may encode and decode with one tokenizer. */
struct tec_tokenizer;

/* Open `path`: a tokenizer.model (SentencePiece), a tokenizer.json, a vocab.json with merges.txt
 * beside it, a vocab.txt, or a directory, in which the first of these that is there is taken:
 * tokenizer.json, tokenizer.model, vocab.json, vocab.txt. special_tokens_map.json and
 * tokenizer_config.json beside a file, when there, name the bos, eos, pad and unknown tokens.
 *
 * Files are hostile until read: a file that is not exactly understood is refused (TEC_MALFORMED
 * for broken ones, TEC_UNSUPPORTED for a step, pattern or setting this engine does not have), with
 * the place named. No piece may be longer than TEC_PIECE_BYTES. Memory comes from `heap` and is
 * bounded by the size of the file; JSON is read through jansson, which uses malloc while it does.
 *
 * Where files and libraries are lax: taken are ids with gaps (up to four times the number of pieces
 * and 65536), a merge listed twice (the last rank counts), an added token without text (matches
 * nowhere), an added token on the id of a piece (the id then shows the added text), byte_fallback
 * without byte pieces in JSON (falls back to unknown), a .model without unknown piece but with
 * byte_fallback. Refused are a byte order mark, duplicate keys, two pieces with one id, patterns
 * that are not in patterns.def, prefixes and suffixes of BPE pieces, dropout, obsolete protobuf
 * groups, unknown piece types, NUL or invalid UTF-8 in pieces of a .model, word and char models,
 * cased WordPiece. "truncation" and "padding" of a tokenizer.json are left to the caller.
 *
 * On success *out is owned by the caller and goes back with tec_tokenizer_close. */
enum tec_status tec_tokenizer_open(struct tec_tokenizer **out, const char *path,
                                   struct tec_heap *heap, struct tec_error *err);

enum tec_text_format { TEC_TEXT_MODEL, TEC_TEXT_JSON };

/* Open a tokenizer from n bytes in memory (not kept): the contents of a tokenizer.model or
 * tokenizer.json. `heap` must outlive the tokenizer. */
enum tec_status tec_tokenizer_open_bytes(struct tec_tokenizer **out, const void *bytes, size_t n,
                                         enum tec_text_format format, struct tec_heap *heap,
                                         struct tec_error *err);

void tec_tokenizer_close(struct tec_tokenizer *t); /* NULL is allowed */

#define TEC_PIECE_BYTES 1024 /* longest piece, added token or template name in a file */

/* Ids are 0 .. size - 1. Some of them may have no piece: published files have gaps. */
int tec_tokenizer_size(const struct tec_tokenizer *t);

/* "bpe (sentencepiece)", "unigram (sentencepiece)", "bpe", "byte-level bpe", "unigram" or
 * "wordpiece". */
const char *tec_tokenizer_kind(const struct tec_tokenizer *t);

/* A hash of all that it was read from: pieces, merges, steps before and behind them. The same
 * file, or files beside each other, have the same one everywhere; what only is laid out otherwise
 * may have another. */
uint64_t tec_tokenizer_identity(const struct tec_tokenizer *t);

/* Id of the piece spelt as in the file (byte-level pieces in their printable form); -1 when there
 * is none. */
int tec_tokenizer_id(const struct tec_tokenizer *t, const char *piece, size_t n);

/* Spelling of a piece as in the file, *n bytes, borrowed from the tokenizer and followed by a NUL;
 * NULL when the id has no piece. */
const char *tec_tokenizer_piece(const struct tec_tokenizer *t, int id, size_t *n);

/* Whether the id is a special (control, unknown, or "special" added) token. */
bool tec_tokenizer_special(const struct tec_tokenizer *t, int id);

/* -1 when the file names none. */
int tec_tokenizer_bos(const struct tec_tokenizer *t);
int tec_tokenizer_eos(const struct tec_tokenizer *t);
int tec_tokenizer_pad(const struct tec_tokenizer *t);
int tec_tokenizer_unk(const struct tec_tokenizer *t);

/* The ids that the template puts before a text, or after it, at *ids; how many. Borrowed. */
int tec_tokenizer_around(const struct tec_tokenizer *t, bool after, const int **ids);

struct tec_encode {
    bool special; /* add the ids of the template (post_processor); a .model file has none */
    bool literal; /* special tokens spelt in the text are read as plain characters */
};

/* Encode n bytes of UTF-8 (NUL is a character like others). At most `capacity` ids are written;
 * *count is the number needed, which may be larger than capacity: then the first `capacity` are
 * there and the status is still TEC_OK. ids may be NULL when capacity is 0. Scratch memory comes
 * from `scratch` and is rewound before return. Text that is not UTF-8 is TEC_MALFORMED and the
 * message gives the byte. Time is O(n log n). */
enum tec_status tec_tokenizer_encode(const struct tec_tokenizer *t, const char *text, size_t n,
                                     struct tec_encode how, int *ids, size_t capacity,
                                     size_t *count, struct tec_arena *scratch,
                                     struct tec_error *err);

/* Decode n ids to UTF-8 owned by `arena`; a NUL follows that *bytes does not count. skip_special
 * leaves special tokens out (a .model never shows its control pieces). Ids without a piece decode
 * to nothing. Bytes that are not UTF-8 become U+FFFD, one for each maximal invalid part; the result
 * is what a tec_detokenizer would emit. */
enum tec_status tec_tokenizer_decode(const struct tec_tokenizer *t, const int *ids, size_t n,
                                     bool skip_special, struct tec_arena *arena, char **text,
                                     size_t *bytes, struct tec_error *err);

/* Streaming detokenisation: tokens in, whole characters out. Fixed size, takes no memory, may be
 * copied. A character whose last byte has not come is held back. */
struct tec_detokenizer {
    const struct tec_tokenizer *t; /* borrowed */
    bool skip_special;
    bool first;            /* no token has been decoded yet */
    bool bare;             /* nothing has been emitted yet: leading spaces may still be dropped */
    unsigned char held[4]; /* bytes of a character that is not complete */
    unsigned char n_held;
};

void tec_detokenizer_init(struct tec_detokenizer *d, const struct tec_tokenizer *t,
                          bool skip_special);

/* Add one token. Returns the bytes it makes final and writes them to out; no NUL is added. When
 * that is more than `capacity`, nothing is written, the state is as before, and the caller tries
 * again with that much room. TEC_DETOKENIZER_BYTES is always enough. */
size_t tec_detokenizer_push(struct tec_detokenizer *d, int id, char *out, size_t capacity);

/* End of the text: what is held back becomes one U+FFFD. Same rule for capacity. */
size_t tec_detokenizer_flush(struct tec_detokenizer *d, char *out, size_t capacity);

#define TEC_DETOKENIZER_BYTES (3 * TEC_PIECE_BYTES + 16)

#endif
