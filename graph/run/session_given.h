/* session_given.h - first actions that an observation brings along: what the robot has begun
 * already while the observation was under way (trained real-time chunking, arXiv 2512.05964). */
#ifndef TEC_GRAPH_RUN_SESSION_GIVEN_H
#define TEC_GRAPH_RUN_SESSION_GIVEN_H

#include "graph/load/pipeline.h"
#include "graph/transform/observer.h"

/* The input that an action node names as its prefix. */
struct tec_given {
    const struct tec_decl_input *input; /* NULL: it names none */
    int rows, columns;                  /* most rows; the robot's columns */
    double *actions;                    /* [rows, columns] of the observation in work */
};

/* Find that of a node (NULL: there is none) and check that it fits the robot (`plain`: the model's
 * own actions): TEC_MALFORMED, located, for other columns, a name that the robot uses for something
 * else, steps without an inverse. The buffer comes from the arena. */
enum tec_status tec_given_init(struct tec_given *given, const struct tec_pipeline *pipeline,
                               const struct tec_decl_node *action, const struct tec_robot *robot,
                               bool plain, struct tec_arena *arena, struct tec_error *err);

/* Read the value, when there is one: f32 or f64 [d, columns] in the robot's units, 0 <= d <= rows;
 * an empty list is none, too. *n becomes d, 0 without a value. TEC_SHAPE or TEC_INVALID name the
 * input, and row and column of what is not finite. */
enum tec_status tec_given_read(struct tec_given *given, const struct tec_value *values,
                               size_t n_values, int *n, struct tec_error *err);

#endif
