/* encoders.h - what the judge of sentence encoders keeps of a case. */
#ifndef TEC_TESTS_JUDGE_ENCODERS_H
#define TEC_TESTS_JUDGE_ENCODERS_H

#include "base/store/safetensors.h"
#include "graph/encoder/encoder.h"
#include "tests/judge/verify.h"

struct tec_encoders {
    struct tec_verify *v;
    struct tec_tensors *inputs, *expected, *similarity;
    struct tec_encoder *encoder; /* all texts together */
    struct tec_encoder *tapped;  /* one text a forward, tensors kept */
    json_t *bounds;              /* error bounds by tensor, as verify.h wants them */
    int n, width;                /* texts of the case */
    struct tec_encoder_text *texts;
    int *ids, *starts;         /* those that the encoder makes of them: [starts[n]], [n + 1] */
    float *embedding, *pooled; /* [n, width] */
};

/* The case's path joined with `name`, in its arena. */
const char *tec_encoders_path(const struct tec_encoders *j, const char *name);

/* A tensor as float32 or as whole numbers, in the arena, *n of them; NULL, with the reason: it is
 * not there, or of another kind. */
float *tec_encoders_floats(struct tec_encoders *j, const struct tec_tensors *file, const char *name,
                           size_t *n, struct tec_error *err);
const int *tec_encoders_ints(struct tec_encoders *j, const struct tec_tensors *file,
                             const char *name, size_t *n, struct tec_error *err);

/* Compare got [n] with the expected tensor of that name, by its bounds. */
void tec_encoders_compare(struct tec_encoders *j, const char *name, const float *got, size_t n,
                          const char *tap);

/* Whether two have the same bytes: a check of its own. */
void tec_encoders_same(struct tec_encoders *j, const char *check, const void *a, const void *b,
                       size_t bytes);

/* Every expected tensor of single texts; j->pooled, and that each text alone has the bytes of the
 * batch. */
enum tec_status tec_encoders_taps(struct tec_encoders *j, struct tec_error *err);

/* The padded batch, similarities and their order, buckets of distances. */
enum tec_status tec_encoders_batch(struct tec_encoders *j, struct tec_error *err);
enum tec_status tec_encoders_similarity(struct tec_encoders *j, struct tec_error *err);
enum tec_status tec_encoders_buckets(struct tec_encoders *j, struct tec_error *err);

#endif
