/* choices.h - the lists of texts of one model's nodes as trees of tokens: candidates that score
 * nodes rank, choices that decode nodes answer with. Made at load, immutable. */
#ifndef TEC_GRAPH_RUN_LAUNCH_CHOICES_H
#define TEC_GRAPH_RUN_LAUNCH_CHOICES_H

#include "base/text/tokenizer.h"
#include "graph/compile/plan.h"
#include "graph/load/pipeline.h"
#include "graph/nodes/tree.h"

/* The list of one node. */
struct tec_choice {
    const struct tec_decl_node *node;
    struct tec_token_tree tree;
    int root; /* decode: where its requests begin in the plan's trie */
};

struct tec_choices {
    int n;
    struct tec_choice *items; /* in the order of the pipeline's nodes */
};

/* Whether any node of this chain of the pipeline has a list: then a tokenizer is needed before
 * sizes are known. */
bool tec_choices_any(const struct tec_pipeline *pipeline, int chain);

/* Read every list of the nodes of a chain of the pipeline, whose model is `model`; texts are
 * encoded as they are, without special tokens around them. Without a tokenizer (random weights) a
 * byte is a token, and answers may be cut off. An answer that another one begins with is ended by
 * the model's end token. TEC_MALFORMED, with the place, for a text that has no tokens, is longer
 * than its node's max_tokens, or cannot be told from another; */
enum tec_status tec_choices_create(struct tec_choices *out, const struct tec_pipeline *pipeline,
                                   int chain, const struct tec_model *model,
                                   const struct tec_tokenizer *tokenizer, struct tec_arena *arena,
                                   struct tec_error *err);

/* Sets the sizes that the plan must have room for. */
void tec_choices_fill(const struct tec_choices *choices, struct tec_plan_spec *spec);

/* Put the lists that answers are chosen from where the plan's captures read them. */
enum tec_status tec_choices_upload(struct tec_choices *choices, struct tec_plan *plan,
                                   struct tec_arena *scratch, struct tec_error *err);

/* The list of a node; NULL = it has none. */
const struct tec_choice *tec_choices_of(const struct tec_choices *choices,
                                        const struct tec_decl_node *node);

#endif
