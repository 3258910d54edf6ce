/* spec.h - the passes over nodes: from a pipeline's declaration to what the compiler must make. */
#ifndef TEC_GRAPH_COMPILE_SPEC_H
#define TEC_GRAPH_COMPILE_SPEC_H

#include "graph/compile/plan.h"
#include "graph/load/pipeline.h"

/* The nodes that are left to compile, while the passes work on them. */
struct tec_node_set {
    const struct tec_pipeline *pipeline;
    const struct tec_model *model;
    int index;                          /* of the model in the pipeline */
    bool secondary;                     /* the hard nodes are another chain's */
    const struct tec_decl_node **nodes; /* [n] of the chain, in order of declaration */
    int n;
    const struct tec_decl_node *prefill, *ring;           /* NULL = none; ring: decodes one */
    const struct tec_decl_node *actions[TEC_MAX_ACTIONS]; /* [n_actions] in order of declaration */
    int n_actions;
    const struct tec_decl_node *memories[TEC_MAX_MEMORIES]; /* [n_memories] memory_load nodes */
    int n_memories;
    struct tec_plan_spec *spec;
};

#define NODE_PASS(name, text) \
    enum tec_status tec_node_pass_##name(struct tec_node_set *set, struct tec_error *err);
#define PASS(name, text)
#include "graph/compile/passes.def"
#undef PASS
#undef NODE_PASS

/* Sizes that a pipeline asks of the compiler for its chain `chain`, whose model is `model`:
 * runs the node passes. TEC_UNSUPPORTED, located, for what is not built for such a model. */
enum tec_status tec_spec_from_pipeline(struct tec_plan_spec *spec,
                                       const struct tec_pipeline *pipeline, int chain,
                                       const struct tec_model *model, struct tec_heap *heap,
                                       struct tec_error *err);

#endif
