/* input_value.h - one named value as people write it: a picture file, a tensor, an array, a text.
 */
#ifndef TEC_TOOLS_FRAMES_INPUT_VALUE_H
#define TEC_TOOLS_FRAMES_INPUT_VALUE_H

#include "base/alloc.h"
#include "base/arena.h"
#include "base/store/safetensors.h"
#include "graph/transform/observer.h"

#include <jansson.h>

enum { TEC_MAX_INPUT_FILES = 64 };

/* The kind of value that an input name takes. */
enum tec_input_want { TEC_WANT_PICTURE, TEC_WANT_NUMBERS, TEC_WANT_TEXT, TEC_WANT_IDS };

/* Open tensor files, kept until finish. Zero-initialise and set heap. */
struct tec_input_files {
    struct tec_heap *heap;
    int n;
    struct {
        char *path;
        struct tec_tensors *tensors;
    } item[TEC_MAX_INPUT_FILES];
};
void tec_input_files_finish(struct tec_input_files *files);

/* A value in words:
 *     @x.jpg @x.png              a picture [height, width, 3], u8
 *     @x.safetensors#tensor      a tensor; u8, f32 and f64 as they are, others as f32
 *     @x.safetensors#tensor[3]   one entry of its first axis; [*]: that of the frame's number
 *     [0.5, 1], [[...]], 0.5     an array; of whole numbers 0 to 255 where a picture is wanted
 *     anything else              a text, where one is wanted; "@@x" is the text "@x"
 * `folder` (may be NULL; ends in a slash) is what relative paths are relative to. Data belongs to
 * the arena. *ended (may be NULL) is set when [*] is past the last entry; nothing is read then.
 * Failures say what was expected: TEC_MALFORMED, TEC_NOT_FOUND, TEC_IO, TEC_UNSUPPORTED. */
struct tec_input_where {
    struct tec_input_files *files;
    const char *folder;
    int64_t frame;
    struct tec_arena *arena;
};
enum tec_status tec_input_words(struct tec_value *out, enum tec_input_want want, const char *text,
                                size_t n, const struct tec_input_where *where, bool *ended,
                                struct tec_error *err);

/* A number or a nested array of rank 1 to 4 as float64, or u8 for a picture of whole numbers, or
 * i32 for ids. TEC_MALFORMED names the entry that does not fit. */
enum tec_status tec_input_array(struct tec_value *out, enum tec_input_want want, const json_t *json,
                                struct tec_arena *arena, struct tec_error *err);

/* Parse JSON; failures give line and column on one printable line. */
enum tec_status tec_input_json(json_t **out, const char *text, size_t n, struct tec_error *err);

/* Whether the words end in "[*]", which gives another value in every frame. */
bool tec_input_moves(const char *text);

#endif
