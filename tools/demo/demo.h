/* demo.h - between the files of `tectum demo`: recorded episodes, two policies side by side. */
#ifndef TEC_TOOLS_DEMO_DEMO_H
#define TEC_TOOLS_DEMO_DEMO_H

#include "tools/frames/frames.h"

#include <jansson.h>

enum { TEC_DEMO_FRAMES = 256, TEC_DEMO_EPISODES = 8 };

/* A recorded session: the robot's inputs and the model's outputs, in a folder like
 * tests/golden/demo/episodes. */
struct tec_demo_case {
    const char *dir, *inputs; /* the folder; its inputs.safetensors */
    json_t *json;
    struct tec_tensors *expected;
    int n_episodes;
    struct tec_heap *heap;
    struct tec_arena *arena; /* borrowed */
};

/* One episode of it; owned by the case and its arena. */
struct tec_demo_episode {
    const char *key, *instruction;
    int n;                    /* inferences */
    int rows, columns;        /* of a chunk */
    int most;                 /* tokens of a text */
    const float *actions;     /* [n, rows, columns] model space */
    const int *texts;         /* [n, most] padded with 0 */
    const json_t *inferences; /* [n] {text, ...} */
    double bound_bf16, bound_f32;
};

enum tec_status tec_demo_open(struct tec_demo_case *c, const char *dir, struct tec_heap *heap,
                              struct tec_arena *arena, struct tec_error *err);
void tec_demo_close(struct tec_demo_case *c); /* zeroed is allowed */
enum tec_status tec_demo_episode(struct tec_demo_episode *out, const struct tec_demo_case *c, int i,
                                 struct tec_error *err);

/* One policy's run and its results. */
struct tec_demo_side {
    const char *policy;
    struct tec_frames f;
    const struct tec_frame_out *frame; /* newest */
    double frame_us[TEC_DEMO_FRAMES * TEC_DEMO_EPISODES];
    double action_us[TEC_DEMO_FRAMES * TEC_DEMO_EPISODES];
    int n; /* observed frames */
    int64_t tokens, rows, launches, busy_ns;
    int *texts;  /* [TEC_DEMO_FRAMES, most] of this episode, by request, padded with 0 */
    int *counts; /* [TEC_DEMO_FRAMES] */
    char **said; /* [TEC_DEMO_FRAMES] sentences of this episode */
    int most;
};

/* The results of an episode over all rounds. */
struct tec_demo_result {
    const char *key;
    int frames, equal_actions, equal_texts; /* frames in which both policies gave the same bytes */
    int recorded_texts;                     /* texts equal to the recorded ones */
    double difference, bound; /* largest difference from the recorded actions, and its bound */
};

struct tec_demo {
    struct tec_invocation *call;
    struct tec_demo_case recorded;
    struct tec_demo_side sides[2];
    struct tec_demo_result results[TEC_DEMO_EPISODES];
    int n_results, frames; /* frames: at most so many are left */
    bool f32, quiet;
    struct tec_frame_record shown; /* the second side's frame with the most rows in a launch */
    int shown_batch;
};

/* Run an episode on both sides, frame by frame; the first round prints a line a frame. Adds its
 * counts to `result`. */
enum tec_status tec_demo_run(struct tec_demo *demo, const struct tec_demo_episode *e,
                             struct tec_demo_result *result, struct tec_error *err);

/* Tables at the end; false when something is not as recorded or not equal. */
bool tec_demo_print(const struct tec_demo *demo, FILE *out);
json_t *tec_demo_json(const struct tec_demo *demo);
bool tec_demo_fine(const struct tec_demo *demo);

#endif
