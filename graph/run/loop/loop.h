/* loop.h - the frame loop: one observation in, actions out the moment they are ready, language in
 * what is left. The order of a frame is that of Algorithm 1 of OxyGen: prefill and action, then
 * store, batch, advance, unbatch, update or remove.
 *
 * Owned by the frame thread. After create nothing allocates, locks or blocks. */
#ifndef TEC_GRAPH_RUN_LOOP_LOOP_H
#define TEC_GRAPH_RUN_LOOP_LOOP_H

#include "graph/run/loop/cost_table.h"
#include "graph/run/loop/costs.h"
#include "graph/run/loop/options.h"
#include "graph/run/loop/record.h"
#include "graph/run/loop/tick.h"

struct tec_loop;

enum tec_status tec_loop_create(struct tec_loop **out, const struct tec_loop_options *options,
                                struct tec_heap *heap, struct tec_error *err);
/* NULL is allowed. Regions of requests that have not ended stay taken: a plan that another loop is
 * to run on wants tec_loop_restart first. */
void tec_loop_destroy(struct tec_loop *loop);

/* Take over another planner from the next frame on. */
void tec_loop_set_planner(struct tec_loop *loop, const struct tec_planner *planner);

/* Take costs from a table from the next frame on; NULL: from what is measured. Borrowed. */
void tec_loop_set_table(struct tec_loop *loop, const struct tec_cost_table *table);

/* Run the frame of a tick. `input` NULL: no observation; live language goes on. What is given fits
 * the plan: a session's input does, any other has passed tec_prefix_check. The record is the
 * loop's, valid until the next frame. */
const struct tec_frame_record *
tec_loop_run(struct tec_loop *loop, const struct tec_frame_input *input, struct tec_tick *tick);

/* Run one frame of n sessions, at most as many as the plan's spec.sessions: their observations go
 * through each launch of hard nodes together, the rest is each session's own. The first of them is
 * whose deadline is the earliest. The records are those of tec_loop_record, by the order here. */
void tec_loop_run_sessions(struct tec_loop *loop, const struct tec_frame_input *const *inputs,
                           struct tec_tick *ticks, int n);
const struct tec_frame_record *tec_loop_record(const struct tec_loop *loop, int i);

/* The next frame of the only session, due at `tick_ns`: numbered from 0 since the last reset,
 * deadline and period as the options say; decoders start a request every so many frames, and those
 * of the bit set `spawn` besides. */
struct tec_tick tec_loop_tick(const struct tec_loop *loop, int64_t tick_ns, unsigned spawn);

/* Bit set of the decoders that start a request at an observation of this number. */
unsigned tec_loop_spawns(const struct tec_loop *loop, int64_t number);

/* Count a session's next observation, and give its number, and what starts at it, to its tick:
 * every(n) begins anew with an episode, at its first observation. NULL: the tick has none, or one
 * that has been counted, at which nothing starts again. */
void tec_loop_count(const struct tec_loop *loop, struct tec_counted *counted,
                    const struct tec_frame_input *input, struct tec_tick *tick);

/* Returns the options that the loop was made with. */
const struct tec_loop_options *tec_loop_settings(const struct tec_loop *loop);

/* Requests that still have tokens to make. Then: those, and sequences in flight in a ring. */
int tec_loop_requests(const struct tec_loop *loop);
int tec_loop_live(const struct tec_loop *loop);
/* Sequences in flight in the rings of a session. */
int tec_loop_in_flight(const struct tec_loop *loop, int session);

/* Between frames: drop what is in flight in the rings of a session, which fill anew. Observations
 * of another episode do so, too. */
void tec_loop_empty_rings(struct tec_loop *loop, int session);

/* Between runs, none of which reads what another left: as after create, frames and requests are
 * numbered from 0. What ran ends with the reason "reset"; costs stay. A robot's reset is another
 * thing: its session begins an episode (tec_session_reset), and its next frame drops what was kept
 * of the one before. */
void tec_loop_restart(struct tec_loop *loop);

/* Between frames: may a later frame's actions be of the observation that this frame took in? At
 * most one frame's a chain and session, one an action and session, and one a request slot, are
 * such. */
bool tec_loop_acts_on(const struct tec_loop *loop, int64_t frame);

/* Texts: two records a request slot and two more; the one that ended first is used again first, so
 * a text that ended is there for at least one more frame. Its count and done may be read from any
 * thread, the rest of a record by a reader that is done with it before the next frame begins. */
int tec_loop_utterances(const struct tec_loop *loop);
const struct tec_utterance *tec_loop_utterance(const struct tec_loop *loop, int i);

/* Between frames: why no frame has been run for a tick by its deadline: the time that frames have
 * lost since the tick, and time in which none ran. TEC_CAUSE_PLAN: they did what they usually do.
 */
enum tec_cause tec_loop_blame(const struct tec_loop *loop, int64_t tick_ns, int64_t deadline_ns,
                              int64_t now_ns);

/* Measured costs; the loop adds to them. */
struct tec_costs *tec_loop_costs(struct tec_loop *loop);

/* Start the costs of all models from a table: before the first frame. */
void tec_loop_prior(struct tec_loop *loop, const struct tec_cost_table *table);

/* Replay every part at its largest counts a few times, so that costs are known before frame 0. With
 * samples (NULL: none) large ones are sampled, and not run at all where a table says what they
 * take. */
void tec_loop_warm(struct tec_loop *loop, const struct tec_frame_input *input, int times,
                   struct tec_replay_samples *samples);

#endif
