/* robot.h - a robot as data: its cameras, its state, its actions, and what a model is given. */
#ifndef TEC_GRAPH_TRANSFORM_ROBOT_H
#define TEC_GRAPH_TRANSFORM_ROBOT_H

#include "base/arena.h"
#include "base/error.h"
#include "base/image/reshape.h"
#include "base/store/checkpoint.h"
#include "base/store/norm.h"
#include "graph/transform/limits.h"
#include "graph/transform/transform.h"

#include <jansson.h>
#include <stdbool.h>

enum {
    TEC_ROBOT_MAX_CAMERAS = 16,
    TEC_ROBOT_MAX_VALUES = 1024 /* entries of a state, columns of an action */
};

enum tec_robot_pixels { TEC_PIXELS_AUTO, TEC_PIXELS_HWC, TEC_PIXELS_CHW };

/* How a picture of another size than the model's becomes one of the model's size. NONE: it is
 * refused. PIL: u8, antialiased, black bars. TORCH: float, not antialiased, black bars; CORNER: the
 * same with all of them at the top and the left. RESHAPE:
 * u8, antialiased bicubic, stretched, boxed or cropped (base/image/reshape.h). CHECKPOINT: what the
 * checkpoint says of its pictures; tec_robot_take puts it into the description. */
enum tec_robot_resize {
    TEC_RESIZE_NONE,
    TEC_RESIZE_OPENPI_PIL,
    TEC_RESIZE_LEROBOT_TORCH,
    TEC_RESIZE_LEROBOT_CORNER,
    TEC_RESIZE_RESHAPE,
    TEC_RESIZE_CHECKPOINT
};

/* One camera slot of the model. */
struct tec_robot_camera {
    const char *slot;  /* the model's name, "base_0_rgb" */
    const char *input; /* key in a request, "observation/image"; NULL: the slot is always masked */
    bool optional;     /* missing = "mask": absent from a request means black and masked; not all */
    bool rotate180;    /* turn the picture before anything else */
    enum tec_robot_pixels layout; /* AUTO: CHW when the first dimension is 3, as openpi does */
};

/* A part of the state vector. */
struct tec_robot_part {
    const char *input; /* key in a request */
    int size;          /* entries; a scalar is accepted for 1 */
};

/* Columns of an action that have a name, for clients that take actions by part. */
struct tec_robot_output {
    const char *name; /* "left_arm" */
    int size;
};

/* Immutable, in the arena given to tec_robot_parse. */
struct tec_robot {
    const char *name;   /* "libero" */
    const char *where;  /* the file of the description */
    const char *called; /* in messages: "robot libero", or "the pipeline" where that has none */
    bool blind; /* may see nothing: it is made of a pipeline's optional inputs, not described */
    const char *prefix;  /* of the names of its inputs, "left/", see tec_robot_name; "": none */
    const char *variant; /* the one chosen, NULL = the file has none */

    struct tec_robot_camera *cameras; /* in the model's slot order */
    int n_cameras;
    enum tec_robot_resize resize;
    enum tec_reshape_kind reshape; /* RESHAPE */
    unsigned char fill[3];         /* RESHAPE, box: colour of the padding */
    int edge;                      /* RESHAPE, edged: of the square that is cut, and */
    double middle;                 /* how much of it stays */
    int picture_h, picture_w;      /* what the checkpoint says; 0 = nothing */
    const char **ignored;          /* request keys accepted and not looked at, "images/cam_low" */
    int n_ignored;
    bool unknown_cameras; /* pictures under other keys are ignored; false: an error */

    struct tec_robot_part *parts; /* the state is these, one after the other */
    int n_parts;
    int n_raw;                   /* sum of their sizes */
    struct tec_transforms state; /* n_raw -> n_state entries, before normalisation */
    int n_state;
    struct tec_transforms normalised; /* after it: n_state in and out */

    int n_model_actions;           /* first columns of the model's actions that are used */
    struct tec_transforms decode;  /* before un-normalisation: n_model_actions in and out */
    struct tec_transforms actions; /* after un-normalisation: n_model_actions -> n_actions */
    int n_actions;
    struct tec_robot_output *outputs; /* the action is these, one after the other */
    int n_outputs;                    /* 0: its columns have no names */
    int max_rows;                     /* most rows handed to the robot, 0 = all */
    struct tec_limits limits;         /* of its actions, in its own units */
    bool relative;  /* commands are changes or speeds: repeated, the robot goes on moving */
    bool unlimited; /* limits = false: those of the statistics do not hold either */

    enum tec_norm_mode norm; /* what the statistics must be */
    bool norm_any;           /* any: the checkpoint says (LeRobot's files do) */
    bool norm_wide;          /* its formulas are computed in float64 */
    bool norm_pass;          /* what it has no statistics of stays as it is; false: an error */
    double norm_eps;         /* of statistics by dataset, base/store/norm.h; 0 = none */
    const char *asset; /* default asset id, or key of statistics by dataset; NULL = the only one */

    const char *prompt_template; /* name of a prompt template, see prompt.h; NULL = the model's */
    const char *prompt_input;    /* key in a request, "prompt" */
    const char *default_prompt;  /* NULL: a request without one is refused */
    bool state_in_prompt;        /* state bins are made and given to the template */
    int state_pad_to; /* bins of a state padded with zeros to this many; 0 = not padded */
    int max_tokens;   /* of a prompt; 0 = the model's */
    bool truncate;    /* longer prompts are cut; false: they are refused */
    bool keep_last;   /* cut on the left: the last tokens stay; false: the first ones */

    double rate_hz; /* control rate, 0 = not said */
    int execute;    /* rows executed before the next observation, 0 = all */
    bool ensembles; /* each action is a mean of what all chunks say of it, see `ensemble` */
    double ensemble;

    const char *metadata; /* what a server tells whoever connects: a JSON object; NULL = {} */
};

/* Description (see pipelines/robots/) to robot: an object with the fields of robot_fields.def.
 * Steps of actions.decode run before un-normalisation, on the model's columns, and keep their
 * number; those of actions.ops after it. Without limits.min and limits.max, and unless limits is
 * false, those of the statistics hold (tec_limits_parse).
 *
 * `variant` NULL takes the default. Strict: an unknown field, op, variant or word is TEC_MALFORMED
 * (TEC_NOT_FOUND for the variant) with the nearest name; so are sizes that do not fit together. The
 * message begins with `where`, usually the path. Strings are copied: `json` may be freed. */
enum tec_status tec_robot_parse(struct tec_robot **out, const json_t *json, const char *variant,
                                const char *where, struct tec_arena *arena, struct tec_error *err);

/* The same from a file. `root` is the folder that the file may include from, `shipped` (NULL =
 * none) one where it is looked after that. The file sees `given` = {config, preprocessor,
 * postprocessor, tokenizer, slots, relative}, where tokenizer is tokenizer_config.json, slots are
 * the image features in the order of config.json, relative the columns of tec_robot_relative,
 * counted from 1; fields the checkpoint lacks are nil, as are all of them when `checkpoint` is
 * NULL. */
enum tec_status tec_robot_load(struct tec_robot **out, const char *path, const char *root,
                               const char *shipped, const char *variant,
                               const struct tec_checkpoint *checkpoint, struct tec_arena *arena,
                               struct tec_error *err);

/* Whether its pictures are made as float32, not as bytes. */
bool tec_robot_floats(const struct tec_robot *robot);

/* One of several robots: its inputs are NAME/..., all request keys of the description become so,
 * and others are none of its. To be called once, before anything else uses the robot. */
enum tec_status tec_robot_name(struct tec_robot *robot, const char *name, struct tec_arena *arena,
                               struct tec_error *err);

/* What the description leaves to the checkpoint (resize = "checkpoint") is put into it. Without a
 * checkpoint (NULL) pictures are stretched. TEC_NOT_FOUND, TEC_MALFORMED as
 * tec_checkpoint_processor; TEC_MALFORMED too for a checkpoint of a layout that says nothing. To be
 * called once, before anything else uses the robot; tec_robot_load has done it. */
enum tec_status tec_robot_take(struct tec_robot *robot, const struct tec_checkpoint *checkpoint,
                               struct tec_error *err);

/* The checkpoint's statistics of this robot: openpi's under `asset`, Hugging Face's under the key
 * `asset` (NULL: the robot's own, or the only one there is), LeRobot's by feature. A robot without
 * a state gets none for it. Failures as of base/store/checkpoint.h, and TEC_NOT_FOUND when a
 * LeRobot checkpoint wants to normalise but holds no statistics. Fit is checked by
 * tec_observer_create. */
enum tec_status tec_robot_norms(const struct tec_robot *robot,
                                const struct tec_checkpoint *checkpoint, const char *asset,
                                struct tec_norm *state, struct tec_norm *actions,
                                struct tec_arena *arena, struct tec_error *err);

/* The input feature of a LeRobot checkpoint that part `i` of the state is by its name; NULL: it is
 * none. */
const char *tec_robot_feature(const struct tec_robot *robot,
                              const struct tec_checkpoint *checkpoint, int i);

/* Do a robot and the LeRobot checkpoint that drives it say the same: how many numbers a state and
 * an action have, and that a model whose actions are changes of the state is one that the robot
 * adds the state to, in the same columns? TEC_MALFORMED names both files. Other layouts do not say.
 */
enum tec_status tec_robot_agree(const struct tec_robot *robot,
                                const struct tec_checkpoint *checkpoint, struct tec_arena *arena,
                                struct tec_error *err);

/* LeRobot: which columns of the actions are changes of the state. *out is in the arena, *n their
 * number; 0: the preprocessor has no relative_actions_processor that is enabled. TEC_MALFORMED
 * begins with the file and the field. */
enum tec_status tec_robot_relative(bool **out, int *n, const struct tec_checkpoint *checkpoint,
                                   struct tec_arena *arena, struct tec_error *err);

/* LeRobot: the length of a vector of config.json, -1: it does not say. */
int tec_robot_length(const struct tec_checkpoint *checkpoint, const char *features,
                     const char *name);

/* What a description sees as `given`, see tec_robot_load. The caller owns *out. */
enum tec_status tec_robot_given(json_t **out, const struct tec_checkpoint *checkpoint,
                                struct tec_arena *arena, struct tec_error *err);

/* Do these statistics fit this robot? `what` is "state" or "actions". TEC_MALFORMED when the mode
 * is not the robot's, arrays are missing or shorter than the vector, and those of a dataset when
 * they are longer, as LeRobot's. openpi pads short z-score
 * statistics with mean 0, std 1, which in practice hides a wrong asset; it is refused here. */
enum tec_status tec_robot_check_norm(const struct tec_robot *robot, const struct tec_norm *norm,
                                     const char *what, struct tec_error *err);

#endif
