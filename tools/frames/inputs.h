/* inputs.h - the named inputs of frames: --input NAME=VALUE, and a file with an object a frame. */
#ifndef TEC_TOOLS_FRAMES_INPUTS_H
#define TEC_TOOLS_FRAMES_INPUTS_H

#include "graph/run/session/session.h"
#include "tools/cli/options.h"
#include "tools/frames/input_asks.h"
#include "tools/frames/input_value.h"

enum { TEC_MAX_INPUTS = 64 };

/* The inputs of one frame; valid until the next one. */
struct tec_inputs_frame {
    bool ended; /* there is no such frame */
    bool none;  /* a frame without an observation: a line "null" */
    size_t n;
    struct tec_value values[TEC_MAX_INPUTS];
    struct tec_input_asks asks;
};

struct tec_inputs;

/* `words` are "NAME=VALUE"; they hold in every frame. `file` (may be NULL) gives one JSON object a
 * line, whose members go before the words: strings as the words' values, arrays, numbers, null for
 * an input that is not there, objects for names with a slash; "#ask" and "#cancel" as input_asks.h
 * has them. Relative paths in it are relative to
 * it. Names are the robot's, those of the pipeline where there is none; every failure says where it
 * is: "--input NAME" or "FILE:LINE: NAME". All but `words` and `file` are borrowed until close. */
enum tec_status tec_inputs_open(struct tec_inputs **out, const struct tec_session *session,
                                const struct tec_pipeline *pipeline, const struct tec_words *words,
                                const char *file, struct tec_heap *heap, struct tec_error *err);
void tec_inputs_close(struct tec_inputs *in); /* NULL is allowed */

/* From the next frame on draw every input that is not given: pictures of random pixels, numbers
 * from -1 to 1, texts of 12 random token ids and changes of a memory that stay for 10 frames. Equal
 * seeds and frame numbers give equal values. */
void tec_inputs_draw(struct tec_inputs *in, uint64_t seed);

/* From the next frame on a line of the file may be a list of `n` such objects or nulls, of which
 * this is the one at `at`: a session each. */
void tec_inputs_pick(struct tec_inputs *in, int at, int n);

/* The next frame's values; the first call is frame 0. Missing names are refused here, with a list
 * of what is wanted. Ends with the file, or where "[*]" passes the last entry of its tensor; words
 * alone never end. */
enum tec_status tec_inputs_next(struct tec_inputs *in, struct tec_inputs_frame *frame,
                                struct tec_error *err);

/* "in.jsonl:3" or "--input": where the newest frame came from, for messages. */
const char *tec_inputs_place(const struct tec_inputs *in);

/* Whether words alone would go on for ever with equal values. */
bool tec_inputs_endless(const struct tec_inputs *in);

#endif
