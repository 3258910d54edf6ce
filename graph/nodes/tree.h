/* tree.h - token strings as a tree: what they begin with in common is there once. What skill
 * scoring runs through a model at once, and what decoding along a list of texts may choose from.
 *
 * Place 0 is before the first token; an entry of a place is a token that may follow, and where it
 * leads. Places that something follows are `rows` and have the lowest numbers: a row is what a
 * model must see to say how likely its entries are. Rows are in depth-first order, the child with
 * most rows below it first, so a row and that child are neighbours: a chain. A row has above it the
 * beginnings of at most 1 + log2(rows) chains.
 *
 * Immutable after create; in the arena that is given. */
#ifndef TEC_GRAPH_NODES_TREE_H
#define TEC_GRAPH_NODES_TREE_H

#include "base/arena.h"
#include "base/error.h"
#include "kernels/args.h"

#include <stdbool.h>

enum { TEC_TREE_TEXTS = 4096, TEC_TREE_TOKENS = 65536, TEC_TREE_DEPTH = 1024 };

/* A string of tokens. */
struct tec_token_text {
    const int *ids;
    int n;
};

struct tec_token_tree {
    int n_texts, n_rows, n_nodes, n_chains, n_spans;
    int n_entries;           /* n_nodes - 1 */
    int longest;             /* tokens of the longest text, its end token included */
    int64_t depths, reached; /* sums of depth: over the rows; over the last rows of chains */
    /* [n_nodes + 1] entries of each place; [n_entries] ascending ids of a place, and where each
     * leads. */
    int *first, *id, *next;
    int *token, *depth, *chain; /* [n_rows] the token that led there (-1: none), tokens before
                                 * and with it, its chain */
    int *place;                 /* [n_texts] where a text ends */
    const struct tec_token_text *texts; /* borrowed, [n_texts] without end tokens */
    /* [n_chains] into spans: of each the first is left to the prompt, then runs of rows from the
     * root's child to the chain's own end, slots counted from row 0. */
    struct tec_seq *chains;
    struct tec_span *spans;
};

/* The token behind texts, -1 = none: behind each, or where another text goes on alone. */
struct tec_tree_end {
    int token;
    bool always;
};

/* The tree of n texts; `texts` is kept. TEC_INVALID, with the index, for a text without tokens,
 * with too many, or for too many in all. */
enum tec_status tec_token_tree_create(struct tec_token_tree *tree,
                                      const struct tec_token_text *texts, int n,
                                      struct tec_tree_end end, struct tec_arena *arena,
                                      struct tec_error *err);

/* Sums of the log-probabilities of the tokens that lead to each text; likely [n_entries], out
 * [n_texts], scratch [n_nodes]. Terms are added in float64 from the first token on. */
void tec_token_tree_sum(const struct tec_token_tree *tree, const float *likely, double *out,
                        double *scratch);

#endif
