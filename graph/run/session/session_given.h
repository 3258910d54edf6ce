/* session_given.h - first actions that an observation brings along: what the robot has begun
 * already while the observation was under way (trained real-time chunking, arXiv 2512.05964). */
#ifndef TEC_GRAPH_RUN_SESSION_SESSION_GIVEN_H
#define TEC_GRAPH_RUN_SESSION_SESSION_GIVEN_H

#include "graph/load/pipeline.h"
#include "graph/model/model.h"
#include "graph/transform/observer.h"

/* An input of actions, which an action node names as its prefix or as an earlier chunk. */
struct tec_given {
    const struct tec_decl_input *input; /* NULL: it names none */
    int rows, columns;                  /* most rows; the robot's columns */
    double *actions;                    /* [rows, columns] of the observation in work */
};

/* Find the input (index -1: there is none) and check that it fits the robot (`plain`: the model's
 * own actions): TEC_MALFORMED, located, for other columns, a name that the robot uses for something
 * else, steps without an inverse. The buffer comes from the arena. */
enum tec_status tec_given_init(struct tec_given *given, const struct tec_pipeline *pipeline,
                               int input, const struct tec_robot *robot, bool plain,
                               struct tec_arena *arena, struct tec_error *err);

/* Read the value, when there is one: f32 or f64 [d, columns] in the robot's units, 0 <= d <= rows;
 * an empty list is none, too. *n becomes d, 0 without a value. TEC_SHAPE or TEC_INVALID name the
 * input, and row and column of what is not finite. */
enum tec_status tec_given_read(struct tec_given *given, const struct tec_value *values,
                               size_t n_values, int *n, struct tec_error *err);

/* What is left of an earlier chunk, and how it pulls. */
struct tec_guiding {
    const struct tec_decl_guide *guide;  /* NULL: the node has none */
    const struct tec_decl_input *delays; /* NULL: no observation says its delay */
    struct tec_given left;
    int n, delay; /* of the observation in work: rows; rows that are executed meanwhile */
};

/* Of an action node, as tec_given_init. */
enum tec_status tec_guiding_init(struct tec_guiding *g, const struct tec_pipeline *pipeline,
                                 const struct tec_decl_node *action, const struct tec_robot *robot,
                                 bool plain, struct tec_arena *arena, struct tec_error *err);

/* Read rows and delay, as tec_given_read; a delay is a whole number from 0 to 4096. */
enum tec_status tec_guiding_read(struct tec_guiding *g, const struct tec_value *values,
                                 size_t n_values, struct tec_error *err);

/* What was read as the model has it: previous [horizon, dim], beyond the rows 0, and pulls
 * [horizon]. Nothing without rows. `state_raw` is the new observation's. */
enum tec_status tec_guiding_start(const struct tec_guiding *g, struct tec_observer *observer,
                                  const double *state_raw, const struct tec_flow *flow,
                                  float *previous, float *pulls, struct tec_error *err);

#endif
