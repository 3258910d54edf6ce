/* args.h - the argument of each kernel: what is recorded, printed and replayed.
 *
 * Activations are float32 everywhere. A kernel with `round` set rounds its output to bf16, for
 * plans whose GEMMs read bf16: doc/numerics.md.
 *
 * All pointers are device memory. Buffers are row-major; `ld...` is the row stride in elements, at
 * least the number of columns rounded up to 16; columns beyond the real ones hold anything. Counts
 * that change from frame to frame are read through `const int *` when the kernel runs; `max_rows`
 * is the capacity that was planned for, and a count beyond it is clamped.
 *
 * Where the first rows of a batch are fixed (the actions that a robot has already taken over), rows
 * r < *fixed take the second set of vectors. `fixed` NULL: there is no second set; a count beyond
 * the live rows means all of them, one below 0 none.
 *
 * A row's result never depends on other rows, on the number of rows or on the number of lanes. */
#ifndef TEC_KERNELS_ARGS_H
#define TEC_KERNELS_ARGS_H

#include <stdint.h>

/* The most columns of a window that a product reads in its place. */
enum { TEC_WINDOWS_K = 256 };

/* Windows of a picture: row r is what unfold makes of window r (below), `cols` columns a pixel. */
struct tec_windows {
    int in_h, in_w, out_w, cols;
    int side, stride, pad, dilation;
};

/* y[r][c] (+)= gate[c] * (sum_k x[r][k] * W[c][k] + bias[c]), r < *rows, c < n.
 * The sum runs over k = 0, 1, ... in one order for every row (on CUDA in one of its own,
 * doc/numerics.md): gemm_bf16 in float32; gemm_f32 in float64, rounded once, and on the vector
 * tiers and CUDA in float32 chains of 32 k whose sums are added; gemm_int4 by groups of k, each sum
 * of x * (nibble - zero) and the sum of groups times their scales one chain of fused multiply-adds
 * in float32; gemm_int8 likewise by groups of x, the chain's end times the column's scale
 * (kernels/int8.h): both give the same bits on every tier of the CPU and on CUDA, where gemm_bf16
 * has an order of its own. */
struct tec_gemm_args {
    const float *x; /* [max_rows, ldx], k columns used; not rounded here */
    const void *w;  /* a matrix packed by tec_matrix_pack for this tier, or as int4.h, int8.h say */
    const float *bias; /* [n] or NULL = 0 */
    const float *gate; /* [n] or NULL = 1 */
    float *y;          /* [max_rows, ldy], all n columns written */
    const int *rows;
    int max_rows, ldx, ldy;
    int n;            /* stored columns of W: a multiple of 16; the padding rows of W are zero */
    int k;            /* real inner length; x beyond it is never used */
    int add;          /* 1: added to y; 0: y is overwritten */
    const int *fixed; /* rows below it take fixed_gate; NULL = none */
    const float *fixed_gate; /* [n] or NULL = 1 */
    /* gemm_int4 alone: */
    int group;        /* k that share a scale and a zero; a multiple of 8, as k is */
    int digits;       /* of x: 2, or 3, as 0 says, too; of gemm_int8 1, or 2, as 0 says */
    const int *order; /* [orders, k] packed column j is column order[j] of x; NULL = as they are */
    const int *order_of; /* [n / 16] which order a panel has; NULL = the first */
    /* gemm_bf16 alone: */
    int rounded; /* 1: x holds bf16 values, and finite ones: y in less time, the same bits but for
                    another order of sums by AMX or ARM's `bf16`, and for what AVX512-BF16 flushes
                  */
    int terms; /* 2: x is finite, and a kernel may read it as two bf16 terms (tec_bf16_two), as the
                  reference does; 0: as it is (on CUDA as two terms either way) */
    /* gemm_f32 alone, and not on CUDA: x is a picture, [in_h * in_w, ldx], and its windows are what
     * is multiplied; k = side * side * cols <= TEC_WINDOWS_K. They are never written. NULL: x is
     * what it says above. A pointer, as CUDA's kernels take these arguments by value. */
    const struct tec_windows *windows;
};

/* y[*first + r] = scale * row ids[r] of the matrix, r < *rows. */
struct tec_embed_args {
    const void *w;  /* packed matrix, n x k: row = token id */
    const int *ids; /* [max_rows], 0 <= id < n; others read row 0 */
    float *y;       /* [.., ldy], k columns written */
    const int *rows, *first;
    int max_rows, ldy, n, k;
    float scale;
};

/* layernorm: y = (x - mean) / sqrt(var + eps) * (offset + weight) + bias.
 * rmsnorm:   y = x / sqrt(mean(x^2) + eps) * (offset + weight) + bias.
 * An adaptive norm is rmsnorm with weight = scale, offset = 1, bias = shift. */
struct tec_norm_args {
    const float *x;      /* [max_rows, ldx] */
    const float *weight; /* [cols] or NULL = 0 */
    const float *bias;   /* [cols] or NULL = 0 */
    float *y;            /* [max_rows, ldy]; may be x itself */
    const int *rows;
    int max_rows, ldx, ldy, cols;
    float offset, eps;
    int round;                              /* 1: y is rounded to bf16 */
    const int *fixed;                       /* rows below it take these; NULL = none */
    const float *fixed_weight, *fixed_bias; /* as weight and bias */
};

/* Each head of columns at .. at + heads * head_dim - 1 of a row becomes, in place,
 * x / sqrt(mean(x^2) + eps) * (offset + weight), the mean over the head. */
struct tec_head_norm_args {
    float *x;            /* [max_rows, ld] */
    const float *weight; /* [head_dim] or NULL = 0; the same for every head */
    const int *rows;
    int max_rows, ld, at, heads, head_dim;
    float offset, eps;
    int round; /* 1: rounded to bf16 */
};

/* Split a row of q | k | v, rotate q and k by position (pairs i, i + head_dim/2), store k and v in
 * their slot. Suffix: dtype of k and v memory; rope_bf16 also rounds q and k after the rotation,
 * and before it where the flags say so. rope_f32 rounds nothing. */
struct tec_rope_args {
    const float *qkv;     /* [max_rows, ld] */
    float *q;             /* [max_rows, ldq] = [heads, head_dim] a row; unused when q_at < 0 */
    void *k, *v;          /* one layer: [slots, kv_heads, head_dim] */
    const int *slot;      /* [max_rows] where row r's k and v go */
    const int *pos;       /* [max_rows], 0 <= pos < positions of the table; unused without one */
    const float *cos_sin; /* [positions, head_dim / 2, 2] = cos, sin; NULL: no rotation */
    const int *rows;
    int max_rows, ld, ldq;
    int q_at, k_at, v_at;          /* first column of each in qkv; q_at = -1: there is no q */
    int heads, kv_heads, head_dim; /* head_dim even when rotated */
    int round_q, round_k;          /* rope_bf16: 1 = also rounded before the rotation */
};

/* A run of consecutive slots; a sequence is a list of them in logical key order. */
struct tec_span {
    int slot, length;
};
struct tec_seq {
    int first, spans; /* its spans in the launch's span table */
};

/* out[r][h] = softmax(scale * q[r][h] . K) V over the first visible[r] keys of row r's sequence.
 * Query head h reads kv head h / (heads / kv_heads). Keys are taken in blocks of 64 by logical key
 * index with an online softmax in float32; a row with no visible key gives 0. With a window > 0 a
 * row sees the last `window` of those keys alone. A cap bends scaled scores, before a bias is
 * added. With a bias the score of key j of a row at
 * position p, both counted in its sequence, is scale * q . K + bias[h][d + reach], d = j - p cut to
 * -reach .. reach. Rows of one sequence should be neighbours (they then share work), but need not
 * be. */
struct tec_attention_args {
    const float *q; /* [max_rows, ldq] = [heads, head_dim] a row */
    const void *k,
        *v;         /* one layer: [slots, kv_heads, head_dim], f32 or bf16 by the kernel's name */
    float *out;     /* [max_rows, ldo] = [heads, head_dim] a row */
    float *scratch; /* tec_attention_scratch(head_dim) floats for each lane */
    const int *row_seq; /* [max_rows] index into seqs */
    const int *visible; /* [max_rows] */
    const struct tec_seq *seqs;
    const struct tec_span *spans;
    const int *rows;
    int max_rows, ldq, ldo;
    int heads, kv_heads, head_dim;
    int window; /* 0 = all visible keys */
    float scale;
    float cap;         /* 0 = none; else a score s counts as cap * tanh(s / cap) */
    int round;         /* 1: out is rounded to bf16 */
    const float *bias; /* [heads, 2 * reach + 1]; NULL = 0 */
    const int *pos;    /* [max_rows] positions; read with a bias alone */
    int reach;
    int whole; /* 1: a kernel may multiply whole numbers of 13 bits; rows that see what is not
                * finite are then NaN */
    int terms; /* attention_f32 alone: 2: CUDA may read q, k, v, and probabilities, as two bf16
                * terms each (about 16 bits), infinite ones as NaN; 0: as they are */
};

/* out[r][s] = the sum over heads of the weights that attention above gives to row r's keys of range
 * s: logical key indices ends[s - 1] .. ends[s] - 1, from 0 where s = 0. Keys from the last end on
 * only share in the softmax; what a row does not see has weight 0. Columns s < *n_ranges are
 * written. */
struct tec_mass_args {
    const float *q; /* [max_rows, ldq] = [heads, head_dim] a row */
    const void *k;  /* one layer: [slots, kv_heads, head_dim], f32 or bf16 by the kernel's name */
    float *out;     /* [max_rows, ldo] */
    float *scratch; /* tec_attention_scratch(head_dim) floats for each lane */
    const int *row_seq; /* [max_rows] index into seqs */
    const int *visible; /* [max_rows] */
    const struct tec_seq *seqs;
    const struct tec_span *spans;
    const int *rows;
    const int *ends; /* [max_ranges] ascending */
    const int *n_ranges;
    int max_rows, max_ranges, ldq, ldo; /* max_ranges: at most tec_mass_ranges(head_dim) */
    int heads, kv_heads, head_dim;
    int window; /* 0 = all visible keys */
    float scale;
    float cap; /* as that of attention */
};

/* y[r][c] = f(x[r][c]); gelu is the tanh form 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))),
 * gelu_erf the exact 0.5 x (1 + erf(x / sqrt 2)), silu is x / (1 + exp(-x)), relu is 0 where x < 0
 * and x elsewhere (a NaN stays one), copy_rows is x. */
struct tec_map_args {
    const float *x;
    float *y; /* may be x */
    const int *rows;
    int max_rows, ldx, ldy, cols;
    int round;
};

/* y[r][c] = cap * tanh(x[r][c] / cap): near x where that is small, and never beyond the cap. */
struct tec_soft_cap_args {
    const float *x;
    float *y; /* may be x */
    const int *rows;
    int max_rows, ldx, ldy, cols;
    float cap; /* above 0 */
};

/* y[r][c] += x[r][c]. */
struct tec_add_args {
    const float *x;
    float *y;
    const int *rows;
    int max_rows, ldx, ldy, cols;
};

/* y[r][c] = f(x[r][gate_at + c]) * x[r][up_at + c]; f is gelu in gelu_mul, silu in silu_mul. */
struct tec_gated_args {
    const float *x;
    float *y;
    const int *rows;
    int max_rows, ldx, ldy, cols, gate_at, up_at;
    int round;
};

/* y[r / group][(r % group) * cols + c] = x[row[r]][c], r < *rows, c < cols: chosen rows, `group` of
 * them side by side in one wide row. An index outside 0 .. x_rows - 1 reads row 0. */
struct tec_take_args {
    const float *x;
    const int *row; /* [max_rows] */
    float *y;       /* [max_rows / group rounded up, ldy]; apart from x */
    const int *rows;
    int max_rows, x_rows, ldx, ldy, cols, group; /* rows taken; group >= 1 */
    int round;
};

/* Pictures to rows of patches: picture i, patch p (row-major) is row i * patches + p; its columns
 * are [3][patch][patch] (channel, y, x), each value lut[channel][byte], or where pictures are
 * float32 (value - mean[channel]) / std[channel]. Pixels that fill no patch are left out. */
struct tec_patchify_args {
    const uint8_t *const *pictures; /* [max_pictures] u8 or f32 [height, width, 3] */
    const float *lut;               /* [3, 256]; of bytes alone */
    float mean[3], std[3];          /* of floats alone */
    int floats;                     /* 1: pictures are float32 */
    float *y;                       /* [max_pictures * (height / patch) * (width / patch), ldy] */
    const int *count;               /* live pictures */
    int max_pictures, height, width, patch, ldy;
};

/* Windows over one picture whose pixels are rows, line by line. Row r of y is window (r / out_w,
 * r % out_w): its pixel (i, j), i, j < side, is pixel (r / out_w * stride - pad + i * dilation,
 * r % out_w * stride - pad + j * dilation) of x, and may lie outside the picture.
 * unfold: y[r][(i * side + j) * cols + c] = that pixel's column c, 0 outside the picture: a
 * convolution is the product of these rows and its weights.
 * max_pool: y[r][c] = the largest of those inside; a NaN is passed over. */
struct tec_window_args {
    const float *x; /* [in_h * in_w, ldx] */
    float *y;       /* [max_rows, ldy]; apart from x */
    const int *rows;
    int max_rows, ldx, ldy, cols;
    int in_h, in_w, out_w;
    int side, stride, pad, dilation;
    int round; /* unfold: 1 = rounded to bf16 */
};

/* A convolution of windows of 3 x 3 pixels, each a pixel from the next: y[r][c] (+)= bias[c] + the
 * sum over i, j < 3 and channels of weights and pixel (r / out_w - pad + i, r % out_w - pad + j) of
 * x, which is 0 outside the picture. Four windows that form a square are computed together out of
 * their 4 x 4 pixels: each channel is transformed to 16 points, each point is multiplied by a
 * matrix of its own, and the 16 products are transformed back (kernels/conv.h has the arithmetic).
 */
struct tec_conv_args {
    const float *x;    /* [in_h * in_w, ldx], k columns used */
    const void *w;     /* 16 matrices of n x k, packed by tec_conv_pack for this tier */
    const float *bias; /* [n] or NULL = 0 */
    float *y;          /* [max_rows, ldy], all n columns written; apart from x */
    const int *rows;
    int max_rows, ldx, ldy;
    int in_h, in_w, out_w, pad;
    int n, k; /* stored channels of y, a multiple of 16; channels of x */
    int add;  /* 1: added to y; 0: y is overwritten */
};

/* y[r] += table[r % period] or, with a list, table[row[r]] (position embeddings). An index outside
 * 0 .. period - 1 adds row 0. */
struct tec_add_table_args {
    float *y;
    const float *table; /* [period, ldt] */
    const int *rows;
    int max_rows, ldy, ldt, cols, period;
    const int *row; /* [max_rows] or NULL */
};

/* y[r] = the mean of rows span[r].slot .. + length - 1 of x, r < *rows; 0 where there are none.
 * Sums are float64 in the order of rows: the same bits on every tier. Spans are cut to the x_rows
 * rows that there are. */
struct tec_mean_args {
    const float *x;              /* [x_rows, ldx] */
    const struct tec_span *span; /* [max_rows] */
    float *y;                    /* [max_rows, ldy]; apart from x */
    const int *rows;
    int max_rows, x_rows, ldx, ldy, cols;
};

/* y[r] = the key (or value) row in slot[r] as float32, kv_heads * head_dim columns (= cols). */
struct tec_read_kv_args {
    const void *kv; /* one layer: [slots, cols], f32 or bf16 by the kernel's name */
    const int *slot;
    float *y;
    const int *rows;
    int max_rows, ldy, cols;
};

/* `tokens` slots from slot `from` on go to `to` on. */
struct tec_move {
    int from, to, tokens;
};

/* to[moves[i].to + t] = from[moves[i].from + t] for i < *count, t < moves[i].tokens; a slot is
 * `row` bytes, bits are kept. `to` may be `from`. Every slot offset t sees the moves in the order
 * of i, so one may read or overwrite what an earlier one wrote at the same t: (5 -> 6), (4 -> 5)
 * shifts two regions. What moves touch at different t must be apart, unless neither writes it:
 * lanes and blocks share t, never moves. Counts and tokens are clamped; slots are not checked. */
struct tec_move_args {
    const void *from;
    void *to;
    const struct tec_move *moves; /* [max_moves] */
    const int *count;
    int max_moves, max_tokens; /* of one move */
    int row;                   /* a multiple of 2 */
};

/* Keys and values of `tokens` positions that were kept, in rows of kv_heads * head_dim, of the
 * memory's dtype; keys as they are before the rotation. They go to the slots from `slot` on, the
 * first of them at position `pos`. NULL: the slots keep what they hold. */
struct tec_place {
    const void *k, *v; /* device memory */
    int tokens, slot, pos;
};

/* k[slot + t] = place k[t], rotated by position pos + t; v[slot + t] = place v[t]; for the first
 * *count places, t < tokens. K has the bytes that rope stores for the same K: the rounding before
 * the rotation (round_k) was done when it was kept, that after it is done here. V keeps its bits,
 * and so does K without a rotation. Counts and tokens are clamped; slots and positions are not
 * checked. Places must be apart in their slots. */
struct tec_place_args {
    const struct tec_place *places; /* [max_places] */
    const int *count;
    int max_places, max_tokens; /* of one place */
    void *k, *v;                /* one layer: [slots, kv_heads, head_dim], f32 or bf16 by name */
    const float *cos_sin;       /* [positions, head_dim / 2, 2] = cos, sin; NULL: no rotation */
    int kv_heads, head_dim;     /* head_dim even when rotated */
};

/* x[r][c] += dt * v[r][c]; rows below *fixed stay as they are. */
struct tec_euler_args {
    float *x;
    const float *v;
    const int *rows;
    int max_rows, ldx, ldv, cols;
    float dt;
    const int *fixed; /* NULL = none */
};

/* Velocities are pulled towards a chunk that was computed before: v[r] -= gain * weight[r] *
 * (previous[r] - (x[r] - time * v[r])), each product and difference rounded once. A row of weight 0
 * stays as it is. */
struct tec_guide_args {
    float *v;
    const float *x, *previous;
    const float *weight; /* [max_rows] */
    const int *rows;
    int max_rows, ldv, ldx, ldp, cols;
    float time, gain;
};

/* Tokens that were there before are less likely: for each row, first token[r] joins the set
 * used[r] (bit id of a row of `words` words), then x[r][id] of every id in it is multiplied by
 * `penalty` where it is below 0, divided by it elsewhere. An id outside 0 .. cols - 1 is ignored.
 */
struct tec_repetition_penalty_args {
    float *x;         /* [max_rows, ld] logits */
    uint32_t *used;   /* [max_rows, words] */
    const int *token; /* [max_rows] newest input */
    const int *rows;
    int max_rows, ld, cols;
    int words; /* at least cols / 32, rounded up */
    float penalty;
};

/* Nodes of tries of tokens: from node p on, entries e = first[p] .. first[p + 1] - 1 say which
 * tokens may follow: id[e], ascending, and where that leads, next[e]. A node without entries is an
 * end. */
struct tec_trie {
    int n;            /* nodes; 0 = there are none */
    const int *first; /* [n + 1] */
    const int *id, *next;
};

/* Mask the logits of tokens that may not follow a row's trie node place[r]: x[r][c] = -infinity
 * where c is no entry of the node. The logit of an entry that is a NaN or -infinity becomes the
 * lowest finite number, so that an entry is always the largest. A row at a node outside 0 .. n - 1,
 * or at a leaf, stays as it is. */
struct tec_logits_mask_args {
    float *x;         /* [max_rows, ld] logits */
    const int *place; /* [max_rows] */
    struct tec_trie trie;
    const int *rows;
    int max_rows, ld, cols;
};

/* A row with temperature > 0 draws: y = x / temperature; out (-infinity) is what is smaller than
 * the top_k-th largest, then what is not among the largest whose probabilities come to top_p of
 * those that are left (equals share a fate); to the others the noise of (seed, position, id) is
 * added, so that the largest is a draw from their softmax (kernels/sample.h). Other rows stay as
 * they are. */
struct tec_sample_args {
    float *x;                         /* [max_rows, ld] logits */
    const float *temperature, *top_p; /* [max_rows]; top_p >= 1: all */
    const int *top_k;                 /* [max_rows]; 0: all */
    const uint32_t *seed;             /* [max_rows, 2] */
    const int *pos;                   /* [max_rows] */
    const int *rows;
    int max_rows, ld, cols;
    int round; /* 1: logits of every row are rounded to bf16 first */
};

/* Greedy choice and the bookkeeping of one decode step, for rows r < *rows:
 * id = argmax over cols of logits[r] (a tie goes to the lowest id). A row with done[r] = 0 appends
 * id to tokens[r], then is done when id is an end token (eos[r], or for a row that has one any of
 * `ends`) or left[r] reaches 0; else id becomes its
 * next input: token = id, position and visible grow by one, the slot is tail[r] + (visible -
 * 1 - prefix[r]): positions may have gaps. A row with waiting[r] > 0 has its next input given
 * instead: the token at [r, max_forced - waiting[r]] of `forced` becomes it, waiting[r] falls by
 * one, nothing is appended. A row at a node of a trie that appends id goes where that leads, and
 * is done at an end or when id leads nowhere. A done row changes nothing. When every row is done,
 * *stop becomes 1. Run by lane 0 alone but for the argmax. */
struct tec_next_token_args {
    const float *logits;               /* [max_rows, ld] */
    int *token, *pos, *slot, *visible; /* [max_rows] inputs of the next step */
    const int *tail, *prefix;          /* [max_rows] first private slot; tokens before it */
    int *left, *done, *produced;       /* [max_rows] */
    int *tokens;                       /* [max_rows, max_tokens] */
    const int *eos;                    /* [max_rows] end token, -1 = none */
    const int *ends;                   /* [n_ends] others */
    int n_ends;
    int *stop;
    int *best; /* [max_rows] scratch */
    const int *rows;
    int max_rows, ld, cols, max_tokens;
    int round;         /* 1: logits are rounded to bf16 before they are compared */
    const int *forced; /* [max_rows, max_forced]; NULL where max_forced is 0 */
    int *waiting;      /* [max_rows] */
    int max_forced;
    int *place; /* [max_rows] outside 0 .. trie.n - 1: in no trie; unused where there are none */
    struct tec_trie trie;
};

/* y[e] = x[r][id[e]] - log(sum_c exp(x[r][c])) for e = first[r] .. first[r + 1] - 1: how likely
 * chosen tokens are to follow row r. An id outside 0 .. cols - 1 gives -infinity; entries outside
 * 0 .. max_entries - 1 are left out. The sum is in float64. */
struct tec_log_prob_args {
    const float *x;   /* [max_rows, ld] logits */
    const int *first; /* [max_rows + 1] */
    const int *id;    /* [max_entries] */
    float *y;         /* [max_entries] */
    const int *rows;
    int max_rows, ld, cols, max_entries;
    int round; /* 1: logits are rounded to bf16 first */
};

#endif
