/* run.h - what `run` and `record` share: their options, and the frames that are run. */
#ifndef TEC_TOOLS_CLI_RUN_H
#define TEC_TOOLS_CLI_RUN_H

#include "tools/cli/command.h"
#include "tools/cli/realtime.h"
#include "tools/control/control.h"
#include "tools/record/asked.h"

struct tec_run_options {
    struct tec_words input;
    struct tec_control_options control;
    struct tec_realtime realtime;
    struct tec_recording_asked seen;
    const char *inputs, *out, *dump, *noise, *timeline;
    struct tec_seed random;
    int frames, dtype, clock, actions;
    bool drain, interpret;
};

enum { TEC_RUN_SATURATED, TEC_RUN_PACED }; /* values of `clock` */
enum { TEC_RUN_MOST = 1000000000 };        /* frames */

#define TEC_RUN_AT(member) offsetof(struct tec_run_options, member)

/* clang-format off */
/* Rows of the table of options whose struct that is. */
#define TEC_RUN_ROWS                                                                               \
    {"input", 'i', TEC_OPTION_LIST, "NAME=VALUE", "an input of every frame, see above",            \
     TEC_RUN_AT(input), 0, 0},                                                                     \
    {"inputs", 0, TEC_OPTION_TEXT, "FILE.jsonl", "one object of such values a frame",              \
     TEC_RUN_AT(inputs), 0, 0},                                                                    \
    {"random-inputs", 0, TEC_OPTION_SEED, "SEED", "draw every input that is not given",            \
     TEC_RUN_AT(random), 0, 0},                                                                    \
    {"frames", 'n', TEC_OPTION_INT, "N", "at most N; without --inputs 1", TEC_RUN_AT(frames), 1,   \
     TEC_RUN_MOST},                                                                                \
    {"clock", 0, TEC_OPTION_WORD, "saturated|paced",                                               \
     "a frame after the other; one each period, actions handed out by their deadline",             \
     TEC_RUN_AT(clock), 0, 0},                                                                     \
    {"actions", 0, TEC_OPTION_INT, "N",                                                            \
     "paced: rows that the robot carries out a tick; its execute, else all", TEC_RUN_AT(actions),  \
     1, 1 << 20},                                                                                  \
    {"out", 'o', TEC_OPTION_TEXT, "FILE.jsonl",                                                    \
     "the JSON lines into a file, whole or not at all", TEC_RUN_AT(out), 0, 0},                    \
    {"dump", 0, TEC_OPTION_TEXT, "FILE.safetensors",                                               \
     "what the model got and gave: prompts, states, noise, chunks, tokens", TEC_RUN_AT(dump), 0,   \
     0},                                                                                           \
    {"noise", 0, TEC_OPTION_TEXT, "@FILE#TENSOR",                                                  \
     "what actions start from, [frames, horizon, dim]; drawn from --seed", TEC_RUN_AT(noise), 0,   \
     0},                                                                                           \
    {"timeline", 0, TEC_OPTION_TEXT, "FILE.svg",                                                   \
     "a picture of what ran when in the last frame", TEC_RUN_AT(timeline), 0, 0},                  \
    TEC_REALTIME_ROWS(TEC_RUN_AT(realtime)),                                                       \
    TEC_RECORDING_ROWS(TEC_RUN_AT(seen)),                                                          \
    {"drain", 0, TEC_OPTION_FLAG, NULL,                                                            \
     "go on without observations until every text has ended, every action of a ring has left",     \
     TEC_RUN_AT(drain), 0, 0},                                                                     \
    {"interpret", 0, TEC_OPTION_FLAG, NULL,                                                        \
     "one node, one request, one step a launch: nothing is merged, batched or overlaid",           \
     TEC_RUN_AT(interpret), 0, 0},                                                                 \
    {"dtype", 0, TEC_OPTION_WORD, "pipeline|bf16|f32",                                             \
     "what weights and caches are rounded to; as the pipeline says", TEC_RUN_AT(dtype), 0, 0},     \
    {"control", 0, TEC_OPTION_TEXT, "PATH", "a socket for `tectum policy load` and the like",      \
     TEC_RUN_AT(control.path), 0, 0},                                                              \
    {"dump-dir", 0, TEC_OPTION_TEXT, "DIR",                                                        \
     "for the flight recorder after a miss, and a quarantined policy's frames",                    \
     TEC_RUN_AT(control.dump_dir), 0, 0}
/* clang-format on */

/* The groups of shared options that both take. */
#define TEC_RUN_TAKES                                                                           \
    (TEC_TAKES_FORMAT | TEC_TAKES_DEVICE | TEC_TAKES_MODEL | TEC_TAKES_SET | TEC_TAKES_POLICY | \
     TEC_TAKES_COSTS | TEC_TAKES_CACHE | TEC_TAKES_SEED)

/* Run the frames that the call's struct tec_run_options ask for, and print them. */
enum tec_status tec_cli_run(struct tec_invocation *call, struct tec_error *err);

#endif
