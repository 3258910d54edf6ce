/* world.h - sequences, spans and key-value memory for the checks of attention and of its mass. */
#ifndef TEC_TESTS_KERNELS_WORLD_H
#define TEC_TESTS_KERNELS_WORLD_H

#include "tests/kernels/conform.h"

/* How far each row sees. WORLD_SOME: every other sequence, nothing. WORLD_FORKED: any, and some
 * sequences begin with the span that the first one begins with. */
enum world_view { WORLD_ALL, WORLD_CAUSAL, WORLD_ANY, WORLD_SOME, WORLD_FORKED };

struct world_shape {
    int seqs, rows, keys; /* a sequence has up to `rows` rows and `keys` keys */
    int heads, kv_heads, dim;
    enum world_view view;
    bool round;
    bool full; /* every sequence has all its keys */
};

enum { WORLD_LANES = 9 }; /* there is scratch for so many */

/* The sequences of a shape and the memory under them. */
struct world {
    struct tec_attention_args a;
    bool bf16;
    float *q, *k, *v;    /* as float32 */
    char *keys, *values; /* as the kernel reads them */
    int slots, *length;
    struct tec_span *spans;
};

bool world_on_cuda(const struct conform *c);

/* A world of this shape; windows now and then, but not on CUDA, whose attention has none. */
struct world world_build(struct conform *c, struct world_shape s, bool bf16,
                         enum conform_family family);

int world_slot(const struct world *w, int seq, int key);

/* The same rows in another order: row r is row from[r]; from [max_rows] is filled. */
struct tec_attention_args world_shuffled(struct conform *c, const struct world *w, int *from);

/* The same slots in shorter spans, with empty ones between. */
struct tec_attention_args world_recut(struct conform *c, const struct world *w, int seqs);

/* Keys and values from logical key `from` of the first sequence on become NaN and infinite. */
void world_spoil(struct world *w, struct world_shape s, int from);

#endif
