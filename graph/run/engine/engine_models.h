/* engine_models.h - between the files of the engine: the models of a pipeline, each with its
 * checkpoint, tokenizer, sizes, weights and plan. */
#ifndef TEC_GRAPH_RUN_ENGINE_ENGINE_MODELS_H
#define TEC_GRAPH_RUN_ENGINE_ENGINE_MODELS_H

#include "graph/run/engine/engine.h"

/* The chains of the pipeline and the models that they run, those of the frames first: e->chains,
 * e->models. */
enum tec_status tec_engine_list_models(struct tec_engine *e, struct tec_error *err);

/* Checkpoint (none with random weights) and description. */
enum tec_status tec_engine_describe_model(struct tec_engine *e, struct tec_engine_model *m,
                                          struct tec_error *err);

/* What the pipeline asks of a chain, its model described; the tokenizer is opened, too, where its
 * nodes have lists of texts. */
enum tec_status tec_engine_describe_chain(struct tec_engine *e, int chain, struct tec_error *err);

/* What a chain that proposes tokens is asked for by the chain whose tokens they are, all chains
 * described. */
enum tec_status tec_engine_describe_drafts(struct tec_engine *e, struct tec_error *err);

/* Rings of one model that turn alike share a plan, that of the first of them: their forwards are
 * one. All chains described. */
void tec_engine_join_rings(struct tec_engine *e);

/* Chains of one model that read the same pictures share the rows that its towers make of them. All
 * chains described. */
void tec_engine_share_pictures(struct tec_engine *e);

/* Its tokenizer, if it is not open yet; with random weights there may be none. */
enum tec_status tec_engine_open_tokenizer(const struct tec_engine *e, struct tec_engine_model *m,
                                          struct tec_error *err);

/* Plan on the engine's device, and the weights of its model where no earlier chain has loaded them.
 * `dry`: the device only measures, nothing is read. `total`: bytes of all models' weights, and
 * `before`, those of earlier models, for progress. */
enum tec_status tec_engine_plan_chain(struct tec_engine *e, struct tec_engine_chain *c, bool dry,
                                      int64_t before, int64_t total, struct tec_error *err);

/* Plans and weights, and then everything. */
void tec_engine_drop_plans(struct tec_engine *e);
void tec_engine_close_model(struct tec_engine_model *m);

/* Where the engine's first chain and its model are seen besides. */
void tec_engine_show_first(struct tec_engine *e);

/* Whether the model's weights and caches are bf16. */
bool tec_engine_bf16(const struct tec_engine *e, const struct tec_engine_model *m);

/* What its layers' matrices are rounded to. */
enum tec_quantize tec_engine_quantize(const struct tec_engine *e, const struct tec_engine_model *m);

/* What its products may read of activations. */
enum tec_decl_round tec_engine_round(const struct tec_engine *e, const struct tec_engine_model *m);

#endif
