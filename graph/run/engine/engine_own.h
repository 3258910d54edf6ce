/* engine_own.h - between the files of the engine: what each of them does of an opening, in its
 * order. */
#ifndef TEC_GRAPH_RUN_ENGINE_ENGINE_OWN_H
#define TEC_GRAPH_RUN_ENGINE_ENGINE_OWN_H

#include "graph/run/engine/engine.h"

/* --- engine_models.c, engine_shares.c --------------------------------------------------------- */

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

/* What the pipeline says of a model. */
static inline const struct tec_decl_model *tec_engine_declared(const struct tec_engine *e,
                                                               const struct tec_engine_model *m)
{
    return &e->options.pipeline->models[m->index];
}

/* --- engine_rounding.c ------------------------------------------------------------------------ */

/* Whether the model's weights and caches are bf16. */
bool tec_engine_bf16(const struct tec_engine *e, const struct tec_engine_model *m);

/* What its layers' matrices are rounded to, and its head. */
enum tec_quantize tec_engine_quantize(const struct tec_engine *e, const struct tec_engine_model *m);
enum tec_quantize tec_engine_quantize_head(const struct tec_engine *e,
                                           const struct tec_engine_model *m);

/* What its products may read of activations. */
enum tec_round tec_engine_round(const struct tec_engine *e, const struct tec_engine_model *m);

/* --- engine_devices.c ------------------------------------------------------------------------- */

/* Open the run's device and what the models' `where` names besides, each once; `measure`: to count
 * memory alone. A device of `where` that is not here is passed over, which is reported in
 * options.found (W109) where that is given. TEC_DEVICE, located: none of those is here.
 * TEC_UNSUPPORTED, located: the frames' model is elsewhere and has partitions. */
enum tec_status tec_engine_open_devices(struct tec_engine *engine, bool measure,
                                        struct tec_error *err);
void tec_engine_close_devices(struct tec_engine *engine);

/* Returns the place of a model's device among those of the engine: 0 is the run's. */
int tec_engine_device_of(const struct tec_engine *engine, const struct tec_engine_model *model);

/* --- engine_budget.c -------------------------------------------------------------------------- */

/* Before anything large is taken: the pipeline's budgets of device and host, and what is free where
 * it will lie. TEC_NO_MEMORY says how much is needed, for what, and how much there is. The engine's
 * device is open. */
enum tec_status tec_engine_check_budget(const struct tec_engine *engine,
                                        const struct tec_measured *measured, struct tec_error *err);

/* --- engine_memories.c ------------------------------------------------------------------------ */

/* Host memory that those of all chains take, with plans that may only measure. */
void tec_engine_measure_memories(const struct tec_engine *e, struct tec_measured *out);
/* That a text fits in each memory's file; TEC_NO_MEMORY, at the field. */
enum tec_status tec_engine_check_tiers(const struct tec_engine *e, const struct tec_measured *m,
                                       struct tec_error *err);

/* The memories of a chain, and rooms for prompts that requests wait with; it may have none. */
enum tec_status tec_engine_open_memories(struct tec_engine *e, int chain, struct tec_error *err);
/* What waiting prompts hold of the memories: before the sessions are destroyed, whose prompts these
 * were. */
void tec_engine_drop_prompts(struct tec_engine *e);
void tec_engine_close_memories(struct tec_engine *e);

/* The executor of a chain, with its plan: real or interpreted, behind what recalls its prompts. */
enum tec_status tec_engine_make_executor(const struct tec_engine *e,
                                         const struct tec_engine_chain *c, struct tec_executor *out,
                                         struct tec_error *err);

/* --- engine_sessions.c ------------------------------------------------------------------------ */

/* Opens e->session; models are described and their tokenizers open. */
enum tec_status tec_engine_open_sessions(struct tec_engine *e, struct tec_error *err);

/* --- engine_loop.c ---------------------------------------------------------------------------- */

/* Topology and loop over an executor for each model; the engine has models and plans.
 * TEC_NO_MEMORY; TEC_UNSUPPORTED, located, for more decode nodes than a loop runs. */
enum tec_status tec_engine_make_loop(struct tec_engine *engine,
                                     const struct tec_executor *executors, struct tec_error *err);

/* Edges of text for so many sessions, where a prefill reads a stream: e->edges. */
enum tec_status tec_engine_make_edges(struct tec_engine *e, int sessions, struct tec_error *err);

/* --- engine_warm.c ---------------------------------------------------------------------------- */

/* Run every part before the first frame, so that its cost is known and its memory is mapped; of
 * large ones on a CPU samples (tec_loop_warm). The loop is made. */
enum tec_status tec_engine_warm(struct tec_engine *engine, struct tec_error *err);

#endif
