/* encoder.h - a sentence encoder: texts to vectors whose dot products say how alike they are.
 *
 * It is a model like others: a description in pipelines/models/, the packed forward of graph/nodes,
 * a capture. An encoder has a device of its own, so it may run beside a frame: on the thread that
 * keeps memory, with one lane of a CPU. Texts of a call are sequences of one forward; a text's
 * vector has the same bytes alone and in any company.
 *
 *     struct tec_encoder_options o = {.path = "my-encoder", .models = "pipelines/models",
 *                                     .device = {.kind = "cpu", .threads = 1, .tier = best}};
 *     tec_encoder_open(&e, &o, heap, err);
 *     float *v = room for n * tec_encoder_width(e);
 *     tec_encoder_embed(e, texts, n, v, err);
 *
 * Not thread-safe: one owner. After open a call takes no memory, unless a text is so long (some
 * thousand characters) that its tokens need more room than is kept; that is given back at once. */
#ifndef TEC_GRAPH_ENCODER_ENCODER_H
#define TEC_GRAPH_ENCODER_ENCODER_H

#include "base/text/tokenizer.h"
#include "graph/compile/plan.h"

struct tec_encoder_options {
    const char *path;   /* a directory with modules.json */
    const char *models; /* folder of descriptions, "…/pipelines/models" */
    struct tec_device_options device;
    bool bf16;     /* matrices are bf16; else float32, as published encoders are judged */
    int max_texts; /* of one forward; 0 = 32 */
    int max_rows;  /* tokens of one forward; at least those of the longest text are. More texts or
                    * tokens are several forwards */
    bool taps;     /* keep tensors, for judges; what each key weighs counts slots from the first
                    * text of a forward */
};

struct tec_encoder;

/* Read, check, load and capture. Everything in the directory is hostile: TEC_MALFORMED,
 * TEC_UNSUPPORTED, TEC_NOT_FOUND, TEC_SHAPE with the file and what is wrong there. `heap` must
 * outlive it. */
enum tec_status tec_encoder_open(struct tec_encoder **out,
                                 const struct tec_encoder_options *options, struct tec_heap *heap,
                                 struct tec_error *err);
void tec_encoder_close(struct tec_encoder *e); /* NULL is allowed */

int tec_encoder_width(const struct tec_encoder *e);  /* numbers in a vector */
int tec_encoder_tokens(const struct tec_encoder *e); /* of the longest text, those around it too */
const struct tec_model *tec_encoder_model(const struct tec_encoder *e);

/* A hash of all that makes its vectors what they are: every byte of its tensors and of an
 * adapter's, its configuration and description, the tokenizer, pooling, length, prompt and limit.
 * Equal on every machine; reads the files again. */
enum tec_status tec_encoder_identity(const struct tec_encoder *e, uint64_t id[2],
                                     struct tec_error *err);
/* The pooling and the prompt, which is NULL where nothing stands before a text. */
const char *tec_encoder_pooling(const struct tec_encoder *e);
const char *tec_encoder_prompt(const struct tec_encoder *e);

/* n bytes of UTF-8. */
struct tec_encoder_text {
    const char *at;
    size_t n;
};

/* The ids of a text, those around it included, cut to tec_encoder_tokens; `ids` has room for so
 * many. TEC_MALFORMED: not UTF-8. */
enum tec_status tec_encoder_ids(struct tec_encoder *e, struct tec_encoder_text text, int *ids,
                                int *n, struct tec_error *err);

/* Vectors of n texts: out [n, width]. The empty text and one of unknown characters have vectors,
 * too. After a failure `out` holds those of some texts. */
enum tec_status tec_encoder_embed(struct tec_encoder *e, const struct tec_encoder_text *texts,
                                  int n, float *out, struct tec_error *err);

/* As above, from token ids: text i has the ids from starts[i] to starts[i + 1]. TEC_INVALID: an id
 * that is not in the vocabulary, a text without ids or with too many. */
enum tec_status tec_encoder_embed_ids(struct tec_encoder *e, const int *ids, const int *starts,
                                      int n, float *out, struct tec_error *err);

/* Returns the tap of that name after the last forward, dense, in `arena`, with its rows and
 * columns; NULL: there is none. */
float *tec_encoder_tap(struct tec_encoder *e, const char *name, int *rows, int *cols,
                       struct tec_arena *arena);

#endif
