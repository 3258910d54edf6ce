/* json.h - reading tokenizer.json; for the files of this folder only. */
#ifndef TEC_BASE_TEXT_JSON_H
#define TEC_BASE_TEXT_JSON_H

#include "base/text/parts.h"

#include <jansson.h>

/* One file being read. jansson keeps no NUL in keys, so U+0000 is read as a noncharacter that the
 * file does not use. */
struct tec_json {
    struct tec_tokenizer *t;
    json_t *root;
    uint64_t seed;
    uint32_t nul; /* code point that stands for U+0000; 0 = none does */
};

/* json_values.c: a string of the file in the tokenizer's arena, followed by a NUL. */
enum tec_status tec_tokenizer_json_text(const struct tec_json *j, const char *text, size_t n,
                                        struct tec_text_span *out, struct tec_error *err);

/* Member `key` of an object: its string, borrowed from jansson, NULL when absent or null; its
 * truth, `other` when absent or null. `where` names the object. Any other type fails. */
enum tec_status tec_tokenizer_json_string(const json_t *object, const char *key, const char *where,
                                          const char **out, struct tec_error *err);
enum tec_status tec_tokenizer_json_bool(const json_t *object, const char *key, const char *where,
                                        bool other, bool *out, struct tec_error *err);

typedef enum tec_status tec_json_step(struct tec_json *j, const json_t *step,
                                      struct tec_error *err);

/* A section that is absent, one step, or a Sequence whose member `list` holds steps: read each. */
enum tec_status tec_tokenizer_json_steps(struct tec_json *j, const char *section, const char *list,
                                         tec_json_step *read, struct tec_error *err);

/* json_*.c: the sections of the file, each into its part of the tokenizer. */
enum tec_status tec_tokenizer_json_vocab(struct tec_json *j, struct tec_error *err);
enum tec_status tec_tokenizer_json_model(struct tec_json *j, struct tec_error *err);
enum tec_status tec_tokenizer_json_normalizer(struct tec_json *j, struct tec_error *err);
enum tec_status tec_tokenizer_json_pre_tokenizer(struct tec_json *j, struct tec_error *err);
enum tec_status tec_tokenizer_json_template(struct tec_json *j, struct tec_error *err);
enum tec_status tec_tokenizer_json_decoder(struct tec_json *j, struct tec_error *err);

/* Index the added tokens by how they are matched; needs the normalizer. */
enum tec_status tec_tokenizer_index_added(struct tec_tokenizer *t, struct tec_error *err);

#endif
