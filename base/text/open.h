/* open.h - from a path to a tokenizer; for the files of this folder only. */
#ifndef TEC_BASE_TEXT_OPEN_H
#define TEC_BASE_TEXT_OPEN_H

#include "base/text/parts.h"

/* An empty tokenizer; tec_tokenizer_close releases it. */
enum tec_status tec_tokenizer_create(struct tec_tokenizer **out, struct tec_heap *heap,
                                     struct tec_error *err);

/* A whole file, followed by a NUL, from `heap`: the caller gives it back with tec_heap_put. */
enum tec_status tec_tokenizer_read_file(const char *path, struct tec_heap *heap, char **bytes,
                                        size_t *n, struct tec_error *err);

/* Byte-level BPE from DIR/vocab.json and DIR/merges.txt. These do not say how text is cut: only a
 * vocabulary in which no piece has two digits is taken (the published pattern with single digits,
 * after NFC); others are refused. Added tokens are those of DIR/tokenizer_config.json, if any. */
enum tec_status tec_tokenizer_open_merges(struct tec_tokenizer **out, const char *dir,
                                          struct tec_arena *scratch, struct tec_error *err);

/* Uncased WordPiece from DIR/vocab.txt, one piece a line. Special tokens are those of
 * DIR/tokenizer_config.json, else the usual ones ([CLS] text [SEP], or <s> text </s>; [UNK]). */
enum tec_status tec_tokenizer_open_words(struct tec_tokenizer **out, const char *dir,
                                         struct tec_arena *scratch, struct tec_error *err);

/* bos, eos, pad and unknown token as special_tokens_map.json or tokenizer_config.json in `dir` name
 * them. Files that are not there or name nothing change nothing. */
enum tec_status tec_tokenizer_read_names(struct tec_tokenizer *t, const char *dir,
                                         struct tec_arena *scratch, struct tec_error *err);

#endif
