/* attention_case.h - sequences, spans and key-value memory for the checks of attention and of its
 * mass. */
#ifndef TEC_TESTS_KERNELS_ATTENTION_CASE_H
#define TEC_TESTS_KERNELS_ATTENTION_CASE_H

#include "tests/kernels/conform.h"

/* How far each row sees. CASE_SOME: every other sequence, nothing. CASE_FORKED: any, and some
 * sequences begin with the span that the first one begins with. */
enum case_view { CASE_ALL, CASE_CAUSAL, CASE_ANY, CASE_SOME, CASE_FORKED };

struct case_shape {
    int seqs, rows, keys; /* a sequence has up to `rows` rows and `keys` keys */
    int heads, kv_heads, dim;
    enum case_view view;
    bool round;
    bool full; /* every sequence has all its keys */
};

enum { CASE_LANES = 9 }; /* there is scratch for so many */

/* The sequences of a shape and the memory under them. */
struct attention_case {
    struct tec_attention_args a;
    bool bf16;
    float *q, *k, *v;    /* as float32 */
    char *keys, *values; /* as the kernel reads them */
    int slots, *length;
    struct tec_span *spans;
};

bool case_on_cuda(const struct conform *c);

/* An attention case of this shape; windows and caps now and then. */
struct attention_case case_build(struct conform *c, struct case_shape s, bool bf16,
                                 enum conform_family family);

int case_slot(const struct attention_case *w, int seq, int key);

/* All elements of that key become `value`, which bf16 can hold. */
void case_put_key(struct attention_case *w, int seq, int key, float value);

/* The same rows in another order: row r is row from[r]; from [max_rows] is filled. */
struct tec_attention_args case_shuffled(struct conform *c, const struct attention_case *w,
                                        int *from);

/* The same slots in shorter spans, with empty ones between. */
struct tec_attention_args case_recut(struct conform *c, const struct attention_case *w, int seqs);

/* Keys and values from logical key `from` of the first sequence on become NaN and infinite. */
void case_spoil(struct attention_case *w, struct case_shape s, int from);

#endif
