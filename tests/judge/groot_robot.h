/* groot_robot.h - a robot from metadata by tag, as the judges of GR00T run it. */
#ifndef TEC_TESTS_JUDGE_GROOT_ROBOT_H
#define TEC_TESTS_JUDGE_GROOT_ROBOT_H

#include "graph/transform/robot.h"
#include "tests/judge/verify.h"

/* The robot `tag` of `robots`, with a data configuration: the name of one, or a table. The caller
 * owns `data`. */
enum tec_status tec_groot_robot(struct tec_robot **out, struct tec_verify *v, const json_t *robots,
                                const char *tag, const json_t *data, struct tec_error *err);

/* "state.left_arm" without what stands before the dot. */
const char *tec_groot_key(const char *name);

/* A data configuration of a case of kind "actions", with `cameras` of the model. */
json_t *tec_groot_data(const json_t *config, int cameras);

/* First column and number of columns of the part `key` among `keys`; false: there is none. */
bool tec_groot_columns(const json_t *robots, const char *tag, const json_t *keys, const char *key,
                       int *first, int *n);

/* n raw entries as the model reads them: [width], zeros behind. And `rows` rows of a chunk [..,
 * dim] as the robot is sent them: [rows, robot's actions]. In the judge's arena, NULL without
 * memory. */
float *tec_groot_state(const struct tec_robot *robot, struct tec_verify *v, const double *raw,
                       int width);
float *tec_groot_sent(const struct tec_robot *robot, struct tec_verify *v, const float *chunk,
                      int rows, int dim);

#endif
