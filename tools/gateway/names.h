/* names.h - what clients of other protocols call a robot's inputs. */
#ifndef TEC_TOOLS_GATEWAY_NAMES_H
#define TEC_TOOLS_GATEWAY_NAMES_H

#include "graph/transform/robot.h"

/* The inputs of a robot by what they are. Everything is borrowed from it. */
struct tec_gateway_names {
    const struct tec_robot *robot;
    const char *dataset; /* key of the statistics that actions are un-normalised with; NULL: they
                          * are none of several datasets */
};

/* An input that a client means by a name, and whether it is a picture. */
struct tec_gateway_input {
    const char *name; /* NULL: the robot has none for it */
    enum tec_gateway_kind { TEC_GATEWAY_OTHER, TEC_GATEWAY_PICTURE, TEC_GATEWAY_PROMPT } kind;
};

/* The robot's input for a name in a request: the input of that name, else the camera of that slot,
 * else what OpenVLA's clients mean by it:
 *
 *     image full_image                  the first camera
 *     wrist_image left_wrist_image      the second
 *     right_wrist_image                 the third
 *     state proprio                     the state, where it is one input
 *     instruction                       the prompt
 *
 * Any other name is that of an input that the robot does not have. */
struct tec_gateway_input tec_gateway_input(const struct tec_gateway_names *names, const char *name);

#endif
