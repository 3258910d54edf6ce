/* bench.h - runs of policies and settings that take turns on one engine: what cmd_bench asks for,
 * what bench_rows lists, bench_turns measures and bench_report says. */
#ifndef TEC_TOOLS_MEASURE_BENCH_H
#define TEC_TOOLS_MEASURE_BENCH_H

#include "tools/cli/open_engine.h"
#include "tools/frames/inputs.h"
#include "tools/measure/energy_card.h"

#include <jansson.h>

enum { TEC_BENCH_ROWS = 32, TEC_BENCH_INPUTS = 3 };

/* Durations of one kind, in nanoseconds; sorted by the report. */
struct tec_samples {
    int n, room;
    int64_t *ns;
};

/* One policy with its parameters, and all that was measured of it. */
struct tec_bench_row {
    const char *policy, *params; /* "k=5", or "" */
    bool apart;                  /* the sessions' frames follow each other; else they are one */
    struct tec_policy *owner;
    struct tec_planner planner;
    struct tec_samples frame, host;               /* a measured frame of all sessions each */
    struct tec_samples action, age;               /* an action each */
    struct tec_samples prefill, act;              /* a launch each */
    struct tec_samples step1;                     /* a decode step at batch 1 */
    struct tec_samples released[TEC_MAX_ACTIONS]; /* of several action nodes: from the tick until
                                                   * the chunk of each left */
    struct tec_samples lives;                     /* of a ring: frames, as if nanoseconds, from an
                                                   * observation to its actions */
    struct tec_samples step;                      /* a decode step of the largest batch seen */
    int steady_rows, k;                           /* of that batch */
    struct tec_histogram *nodes;                  /* by `nodes` of the bench */
    int64_t filling;                              /* measured frames in which a ring fills; they are
                                                   * in no figure */
    int64_t depths;                               /* sum of the ring's depth over frames */
    int64_t frames, actions, tokens, launches, launched_rows, missed, refused, shed, busy_ns;
    int64_t warm_tokens;             /* of the warm-up, which are in no figure */
    int64_t text_frames;             /* in which a text was live: without any there is no rate */
    int64_t captures, most_captures; /* launches of all frames, of the fullest one */
    struct tec_energy_sum energy;    /* of measured frames, those of filling, too */
    int64_t allocations;             /* of the heap, inside measured frames */
    uint64_t actions_hash;           /* of the chunks of a turn's first measured frames */
    int hashed;                      /* frames in it: those that every turn has */
    bool repeated;                   /* every turn gave the same actions */
    int64_t worst_at;                /* measured frame */
    struct tec_frame_record worst;
};

struct tec_bench_left {
    int64_t age_us, lives; /* lives: in frames */
};

struct tec_bench {
    struct tec_invocation *call;
    struct tec_opened opened;
    int n_sessions;                              /* of the pipeline's frame */
    struct tec_inputs *inputs[TEC_MAX_SESSIONS]; /* NULL: random ones */
    struct tec_frame_input random[TEC_BENCH_INPUTS];
    int frames, warmup, rounds, prompt_tokens;
    bool paced, apart; /* apart: a second row of each, whose frames follow each other */
    int n_rows;
    struct tec_bench_row rows[TEC_BENCH_ROWS];
    int64_t start_ns, opened_ns, first_ns;    /* open began, ended; the first frame ended */
    int64_t weights_ns, captures_ns, warm_ns; /* when these parts of opening began; 0 = not */
    int64_t peak;  /* bytes of the heap, before the machine's memory is measured */
    double read_s; /* bytes a second this machine reads */
    double load_before, load_after;
    struct tec_energy energy; /* opened when rows are run */
    struct tec_energy_card card;
    int pictures, text;                         /* of the last input */
    uint64_t chunk_hashes[TEC_MAX_ACTIONS];     /* of the frame's chunks, as they were released */
    struct tec_bench_left left[TEC_MAX_STAGES]; /* chunks of the first action node that left in the
                                                 * frame */
    int n_left;
    struct tec_bench_turn *turn; /* of bench_turns.c */
    int n_nodes;                 /* of the topology, or a ring's launches */
    const char *nodes[TEC_MAX_NODES];
};

/* Rows from "A,B" (NULL: the pipeline's policy) and "NAME=v1,v2" (NULL: no sweep). A policy without
 * that parameter has one row. `words` of --param go to the policies that have them; one that nobody
 * has is TEC_INVALID. */
enum tec_status tec_bench_make_rows(struct tec_bench *b, const char *policies, const char *sweep,
                                    struct tec_error *err);
void tec_bench_close_rows(struct tec_bench *b);

/* Random pictures and numbers, a prompt of `prompt_tokens` random ids: three observations. */
enum tec_status tec_bench_random(struct tec_bench *b, uint64_t seed, struct tec_error *err);

/* What the engine calls with the actions of a frame; `user` is the bench. */
void tec_bench_released(void *user, int action, const float *chunk,
                        const struct tec_frame_record *record);

/* How many action nodes there are, when there are several; else 0. */
int tec_bench_actions(const struct tec_bench *b);

/* Run all rounds of all rows. */
enum tec_status tec_bench_run(struct tec_bench *b, struct tec_error *err);

/* The report as the JSON of the command line's contract, and as text. Sorts the samples. */
json_t *tec_bench_json(struct tec_bench *b, const char *command);
void tec_bench_print(struct tec_bench *b, const char *node, FILE *out);

/* Write bench.json, and for each row its frames in order and a histogram of 1 us, into a folder. */
enum tec_status tec_bench_write(const struct tec_bench *b, const json_t *report, const char *dir,
                                struct tec_error *err);

/* Quantile of sorted samples (nearest rank); 0 when there are none. */
int64_t tec_samples_at(const struct tec_samples *s, double q);
void tec_samples_sort(struct tec_samples *s);

/* The gain of a frame that shares its prefill and batches its decodes over one that does neither,
 * from the node times of this run: `bound` = (2P + A + N d1) / (P + A + k dB); `ratio` is that of
 * the measured median frames. False if the rows do not hold both, or a time is missing. */
struct tec_bench_bound {
    double prefill_us, action_us, step1_us, step_us, bound, ratio;
    double tokens; /* N: tokens made in a frame of the isolated row until the end token */
    int k, rows;
};
bool tec_bench_bound(const struct tec_bench *b, struct tec_bench_bound *out);

#endif
