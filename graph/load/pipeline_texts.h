/* pipeline_texts.h - what a checked pipeline says of texts: which of them prompts are made of, and
 * who waits for one. */
#ifndef TEC_GRAPH_LOAD_PIPELINE_TEXTS_H
#define TEC_GRAPH_LOAD_PIPELINE_TEXTS_H

#include "graph/load/pipeline.h"

/* The texts that the prefill of a chain reads, inputs and streams, in the order of its `reads`: how
 * many. Is its prompt made of them, not of its robot's text: are there none, several, a stream? */
int tec_pipeline_texts(const struct tec_pipeline *p, int chain, int at[TEC_MAX_TEXTS]);
bool tec_pipeline_composes(const struct tec_pipeline *p, int chain);

/* Is a memory in the prompt of a chain? spawns.c: is a prefill that requests wait for held until
 * its trigger begins the next, for all that are born meanwhile? Some of its texts have another
 * trigger then, or those that it proposes to. */
bool tec_pipeline_remembers(const struct tec_pipeline *p, int chain);
bool tec_pipeline_holds(const struct tec_pipeline *p, int chain);

/* spawns.c: a trigger beside a prefill (NULL: none) whose values it may name: a picture and the
 * state are new with each observation, so one that names them is every(1). */
struct tec_decl_spawn tec_pipeline_begins(const struct tec_pipeline *p,
                                          const struct tec_decl_node *writer,
                                          struct tec_decl_spawn spawn);

/* check_memory.c: what belongs to the memory of a memory_load node and goes by `name`: its store's
 * file, rows of costs. Of the nodes that load from one kv.segments it is that of the first chain;
 * of others it is "NAME.NODE". NULL: the arena has no memory. */
const char *tec_pipeline_memory_of(const struct tec_pipeline *p, const struct tec_decl_node *load,
                                   const char *name, struct tec_arena *arena);

/* text_keys.c: action nodes on keys that language has extended, those of a kv.requests. Is one? The
 * node whose text of the same frame an action node waits for, or a prefill that reads its stream
 * (`after`); NULL = none. Are the keys of a decode node's newest text an action node's? And of a
 * node that makes texts: does a frame wait for them; do their keys stay when they are finished? */
bool tec_pipeline_on_text(const struct tec_pipeline *p, const struct tec_decl_node *action);
const struct tec_decl_node *tec_pipeline_waits_for(const struct tec_pipeline *p,
                                                   const struct tec_decl_node *node);
/* Of a chain in frames: the text that its prefill waits for; NULL = none. Milliseconds of the
 * earliest deadline of its actions and of chains that wait for its texts; infinite without. How
 * many prefills wait for each other up to its own: of equal deadlines that is their order. */
const struct tec_decl_node *tec_pipeline_prompt_waits(const struct tec_pipeline *p, int chain);
/* Which of the chain's texts that is (tec_pipeline_texts); -1 = none. */
int tec_pipeline_heard(const struct tec_pipeline *p, int chain);

/* Does a memory load before a prefill though its `after` names a text, which it waits for? */
bool tec_pipeline_loads_first(const struct tec_pipeline *p, const struct tec_decl_node *prefill,
                              const struct tec_decl_node *load);
double tec_pipeline_due(const struct tec_pipeline *p, int chain);
int tec_pipeline_depth(const struct tec_pipeline *p, int chain);
/* Is the stream of node `text` one that a node reads? */
bool tec_pipeline_reads_text(const struct tec_pipeline *p, const struct tec_decl_node *node,
                             const struct tec_decl_node *text);
bool tec_pipeline_acts_on(const struct tec_pipeline *p, const struct tec_decl_node *action,
                          const struct tec_decl_node *text);
/* drafts.c: the chain in which a decode node's draft reads; -1 = it has none. Of a chain that reads
 * for a draft, the one whose prompt it reads as it is, segments of a memory among it; -1: it makes
 * its own. Does it read for a text that a frame waits for? */
int tec_pipeline_draft(const struct tec_pipeline *p, const struct tec_decl_node *node);
int tec_pipeline_follows(const struct tec_pipeline *p, int chain);
bool tec_pipeline_proposes_first(const struct tec_pipeline *p, int chain);
bool tec_pipeline_awaited(const struct tec_pipeline *p, const struct tec_decl_node *text);
bool tec_pipeline_keeps_keys(const struct tec_pipeline *p, const struct tec_decl_node *text);
/* Has it a hard deadline, and no hard node waits for it? Then it is made behind its chain's actions
 * and behind the chains that are due until then. The earliest such deadline of a chain,
 * milliseconds; infinite without. */
bool tec_pipeline_behind(const struct tec_pipeline *p, const struct tec_decl_node *text);
double tec_pipeline_behind_due(const struct tec_pipeline *p, int chain);

/* slots.c: request slots of each session, of all of a chain's. Those that a node's texts take;
 * NULL: all of them. */
struct tec_decl_slots {
    int first, n;
};
struct tec_decl_slots tec_pipeline_slots(const struct tec_pipeline *p, int chain,
                                         const struct tec_decl_node *node);

/* check_policy.c: the frames after which the next text of a node ends the one before, where its
 * trigger counts them; 0: nothing ends it so, or it is made within its frame, or a draft proposes
 * its tokens. */
int tec_pipeline_superseded(const struct tec_pipeline *p, const struct tec_decl_node *n);
/* Tokens that such a text has by then, of its max_tokens: a frame makes no more of them than the
 * largest captured k, where one is declared. */
int64_t tec_pipeline_superseded_tokens(const struct tec_pipeline *p, const struct tec_decl_node *n);

/* check_policy.c: adds W114 to `d` where text without a hard deadline stands beside a hard one and
 * `policy` (NULL: the pipeline's own) is the default plan, which never runs such text. */
struct tec_diagnostics;
void tec_pipeline_check_policy(const struct tec_pipeline *p, const char *policy,
                               struct tec_diagnostics *d);
/* sizes.c: what "bf16" or "f32" in place of every model's dtype (NULL: nothing is) makes of W110
 * for `round`, which is for bf16 weights. */
void tec_pipeline_check_dtype(const struct tec_pipeline *p, const char *dtype,
                              struct tec_diagnostics *d);

#endif
