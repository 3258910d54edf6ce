/* observer.h - one session's way from named values to model inputs, and back to robot actions.
 *
 *     values -> pictures (u8, the model's size), masks
 *            -> state parts, joined -> float64 steps -> raw state -> normalised -> padded f32, bins
 *            -> instruction
 *     model actions f32 -> un-normalised -> float64 steps with the raw state -> robot actions
 */
#ifndef TEC_GRAPH_TRANSFORM_OBSERVER_H
#define TEC_GRAPH_TRANSFORM_OBSERVER_H

#include "base/alloc.h"
#include "base/error.h"
#include "base/store/norm.h"
#include "graph/transform/robot.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tec_value_kind {
    TEC_VALUE_TEXT,
    TEC_VALUE_U8,
    TEC_VALUE_F32,
    TEC_VALUE_F64,
    TEC_VALUE_I32 /* token ids */
};

/* A named input as a client sent it; everything is borrowed for the call. A nested map is given
 * flat: key "images", field "cam_high" is "images/cam_high". */
struct tec_value {
    const char *name;
    enum tec_value_kind kind;
    int rank;         /* arrays; 0 .. 4 */
    int64_t shape[4]; /* outermost first */
    const void *data; /* row-major, native order, any alignment; text needs no NUL */
    size_t bytes;     /* of data: checked against kind and shape */
};

/* The ids of a model whose actions are tokens: the highest of the vocabulary are its bins. */
struct tec_observer_tokens {
    int vocabulary; /* without rows that only pad a matrix; 0: the actions are no tokens */
    int bins;
    int end; /* the id that ends a text, -1 = none */
};

struct tec_observer_size {
    int h, w; /* pixels */
};

/* The model's needs and the checkpoint's statistics. Everything is borrowed until destroy. */
struct tec_observer_needs {
    const char *const *slots; /* [n_slots] the model's camera slots in order; NULL: the robot's */
    int n_slots;
    int image_h, image_w; /* pixels */
    const struct tec_observer_size
        *sizes;       /* [n_slots] where slots differ, copied by create; else NULL */
    int state_width;  /* of the padded state, >= the robot's n_state */
    int action_width; /* columns of the model's actions */
    struct tec_observer_tokens tokens; /* for the step bins of the robot's decode */
    int text_max;                      /* most bytes of an instruction */
    bool text_optional;                /* a request without one has the text "" */
    bool text_unread;                  /* no text is looked at: it is "" */
    struct tec_norm state_norm, action_norm;
};

/* Filled by tec_robot_observe. The caller gives every buffer, once per session. Slot i of pictures
 * and valid is the model's slot i. */
struct tec_observation {
    uint8_t **pictures;   /* [n_slots] of [image_h, image_w, 3]; black where not valid */
    float **pictures_f32; /* [n_slots] of [image_h, image_w, 3] in 0 .. 1; only for a robot of
                             tec_robot_floats, else NULL; pictures is then not written */
    bool *valid;          /* [n_slots] */
    float *state;         /* [state_width] normalised, zeros behind n_state */
    double *state_f64;    /* [state_width] the same before rounding to f32 */
    double *state_raw;    /* [n_state] transformed, not normalised (openpi: normalised and
                             back): keep it for tec_robot_act */
    int *bins;            /* [state_width] -1 .. 255, of the first n_bins of state_f64 */
    int n_bins;           /* 0 unless the robot's state is in the prompt */
    char *text;           /* [text_max + 1] the instruction or the default prompt, NUL-terminated */
    size_t text_bytes;
    char warning[200]; /* "" or a sentence: something looks wrong, nothing is refused */
};

/* Scratch and resize plans of one session. Not thread-safe, but that one thread may be in
 * tec_robot_act while another is in any other function: actions never wait for a picture. */
struct tec_observer;

/* TEC_MALFORMED when robot, statistics and model do not fit together (a slot the model lacks, state
 * wider than state_width, statistics of another mode or length). Free with tec_observer_destroy. */
enum tec_status tec_observer_create(struct tec_observer **out, const struct tec_robot *robot,
                                    const struct tec_observer_needs *needs, struct tec_heap *heap,
                                    struct tec_error *err);
void tec_observer_destroy(struct tec_observer *o); /* NULL is allowed */

/* The slot that a picture of this name, or for this slot of the model (NULL = none), is put into;
 * -1: the robot has no such camera. */
int tec_observer_slot(const struct tec_observer *o, const char *input, const char *slot);

/* How the camera of a slot is brought to a size, with the robot's way of doing it: for a second
 * model. `picture` takes from the observer's heap when it runs; its arena is the caller's. */
struct tec_picture;
void tec_observer_picture(const struct tec_observer *o, int slot, struct tec_observer_size size,
                          struct tec_picture *picture);

/* Values of one request to model inputs. Memory is taken only when a camera is seen for the first
 * time or changes its size; otherwise nothing is allocated. On failure *out may be half
 * written.
 *
 * Refused with the key and the numbers (TEC_SHAPE, TEC_INVALID; TEC_NOT_FOUND for what is
 * absent): a missing camera, state part or prompt; no camera at all of a robot that has some, also
 * where each of them may be missing; a picture under an unknown key; a wrong shape,
 * dtype or byte count; NaN or infinity; an entry of the state beyond +-1e6, or normalised beyond
 * +-1e4 and more than 10 from the middle of its statistics; float pictures outside [0, 1] by more
 * than 1/255; an instruction longer than text_max. Float pictures become u8 as openpi does it: 255
 * * x in the picture's precision, truncated. Warned about: more than half of the normalised state
 * beyond +-5; two cameras that exchanged their sizes. */
enum tec_status tec_robot_observe(struct tec_observer *o, const struct tec_value *values,
                                  size_t n_values, struct tec_observation *out,
                                  struct tec_error *err);

/* The text of the observations to come, in place of the value of the prompt's name; NULL: that.
 * Borrowed. */
void tec_observer_say(struct tec_observer *o, const char *text, size_t bytes);

/* Classifies a row of token ids, for a robot that decodes them with the step bins. */
enum tec_action_ids {
    TEC_IDS_GOOD,    /* an action; any row of a robot without bins */
    TEC_IDS_OUTSIDE, /* *at has no bin of its own: it decodes to the outermost, as in the published
                      * code. The last id may be the end of the text: it is one of these */
    TEC_IDS_ENDED    /* the text ended at *at, before the last id: what follows is no action */
};

/* Judge one row of the model's actions. `at` (may be NULL) gets the column, counted from 0, of the
 * first id that is not good. Takes no memory; may be called beside the other functions. */
enum tec_action_ids tec_robot_judge_ids(const struct tec_observer *o, const float *row, int *at);

/* Model actions [rows, action_width] f32 to robot actions [rows', n_actions] f64, rows' = rows or
 * the robot's max_rows if that is less; returns rows'. A row that is not finite ends the chunk, as
 * does one of token ids that is TEC_IDS_ENDED: only the rows before it are returned. state_raw is
 * that of the observation that the actions were computed from. Values beyond a limit are told in
 * *beyond (NULL is allowed) and clipped; where the robot says on = "hold" or "stop" instead, no row
 * is returned. The change to the first row from a command before it is not looked at. Takes no
 * memory. */
int tec_robot_act(struct tec_observer *o, const float *actions, int rows, const double *state_raw,
                  double *out, struct tec_beyond *beyond);

/* Can robot actions be turned back into the model's? TEC_MALFORMED, naming the step, when one of
 * the robot's action steps has no inverse. */
enum tec_status tec_robot_check_undo(const struct tec_robot *robot, struct tec_error *err);

/* The inverse of tec_robot_act, for a robot that passes tec_robot_check_undo: robot actions
 * [rows, n_actions] f64, finite, to model actions [rows, action_width] f32, normalised by the
 * formulas of base/store/norm.h, zeros behind n_model_actions. TEC_INVALID with row and column when
 * a result is not finite. Takes no memory. */
enum tec_status tec_robot_undo(struct tec_observer *o, const double *actions, int rows,
                               const double *state_raw, float *out, struct tec_error *err);

#endif
