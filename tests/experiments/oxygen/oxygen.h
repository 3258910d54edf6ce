/* oxygen.h - the experiments of OxyGen (arXiv 2603.14371) as rows that take turns in one process:
 * which points there are (grid), how they are run (run), what is written of them (report_*).
 *
 * The paper's terms: S steps of denoising, N tokens of a request at most, k decoding steps a frame,
 * H = 10 actions in a chunk. Random weights, random pixels, no end token. */
#ifndef TEC_TESTS_EXPERIMENTS_OXYGEN_OXYGEN_H
#define TEC_TESTS_EXPERIMENTS_OXYGEN_OXYGEN_H

#include "tests/experiments/suite.h"
#include "tools/measure/arrivals.h"
#include "tools/measure/energy.h"

enum {
    TEC_OXYGEN_ROBOTS = 3,
    TEC_OXYGEN_STEPS = 4, /* values of S */
    TEC_OXYGEN_HORIZON = 10,
    TEC_OXYGEN_REQUEST_SLOTS = 32,
    TEC_OXYGEN_TOKENS = 30, /* the largest N */
    TEC_OXYGEN_POINTS = 512,
    TEC_OXYGEN_PADDED_PROMPT = 100, /* OxyGen's max_token_len: 3 x 256 + 100 = 868 rows */
    TEC_OXYGEN_PROMPT = 20,
    TEC_OXYGEN_SESSIONS = 8 /* whose observations are in one launch, at most; each has slots of
                               its own */
};

/* OxyGen's settings, by its names. */
enum tec_oxygen_setting {
    TEC_OXYGEN_BASELINE, /* each task its own prefill, N tokens in the frame */
    TEC_OXYGEN_SHARED,   /* one prefill, N tokens in the frame */
    TEC_OXYGEN_BATCHING, /* one prefill, k tokens of every live request */
    TEC_OXYGEN_PARALLEL, /* two engines at once, the frame is the longer one */
    TEC_OXYGEN_SETTINGS
};
extern const char *const tec_oxygen_settings[TEC_OXYGEN_SETTINGS]; /* OxyGen's words */
extern const char *const tec_oxygen_policies[TEC_OXYGEN_SETTINGS]; /* ours */

/* The robots of its configurations, in order: LIBERO, DROID, ALOHA. */
struct tec_oxygen_robot {
    const char *name, *file, *config, *label; /* "libero", a path, "pi05_o2_libero", "LIBERO" */
};
extern const struct tec_oxygen_robot tec_oxygen_robots[TEC_OXYGEN_ROBOTS];

/* COMPACT: the robot's cameras and a short prompt. PADDED: what a padded implementation computes
 * for any of the robots: three pictures, the third black where there is no camera, and a prompt of
 * TEC_OXYGEN_PADDED_PROMPT tokens. It runs on ALOHA's plan, which has all three. */
enum tec_oxygen_input { TEC_OXYGEN_COMPACT, TEC_OXYGEN_PADDED, TEC_OXYGEN_INPUTS };
extern const char *const tec_oxygen_inputs[TEC_OXYGEN_INPUTS];

/* Arrivals of Fig 7; NULL category: one each frame. */
struct tec_oxygen_load {
    const char *category, *label, *spec; /* "uniform", "1/4", "uniform:4" */
    const char *pattern, *slug;          /* as OxyGen writes it, and in file names */
    double value;
};

/* What one frame did; OxyGen's record. Where arrivals go one after the other a frame with several
 * of them is several frames of the loop, of which only the last decodes; their times are added. */
struct tec_oxygen_frame {
    bool warmup;
    int n_new, n_resumed, tokens, rows, launches;
    int64_t ns, action_ns; /* of the frame; until the last action left, -1 = none */
    int64_t prefill_ns, private_ns, act_ns, decode_ns, host_ns;
};

struct tec_oxygen_request {
    int64_t id;
    int arrival, finish; /* frames */
    int64_t born_ns, finished_ns;
};

struct tec_oxygen_point {
    int robot, S, N, k; /* k 0 where the setting has none */
    enum tec_oxygen_setting setting;
    enum tec_oxygen_input input;
    const struct tec_oxygen_load *load; /* NULL: one each frame */
    bool together; /* a frame's arrivals go through prefill and action in one launch; else one after
                      the other */
    int warmup, frames; /* in each round */
    bool ran;
    /* measured */
    struct tec_oxygen_frame *frame; /* [n], rounds after each other */
    int n, room;
    struct tec_oxygen_request *request; /* finished ones */
    int n_requests, request_room;
    struct tec_samples sorted; /* of measured frames */
    int64_t refused, shed, policy_failures;
    double joules; /* of measured frames; NAN = not counted */
    int64_t plan_bytes;
};

struct tec_oxygen {
    struct tec_invocation *call;
    bool quick, full;
    int rounds, frames; /* 0: as the size says */
    const char *only;   /* one of sweeps, headline, table, loads; NULL: all */
    const char *dir;
    const char *command;
    int n_points;
    struct tec_oxygen_point points[TEC_OXYGEN_POINTS];
    struct tec_energy energy;
    json_t *machine; /* after the first engine was opened */
    double load_before, load_after;
    int64_t elapsed_ns;
    int64_t memory[TEC_OXYGEN_SETTINGS + 1]; /* Table 2, bytes; the last: batch of 2 */
    uint64_t seed;
};

/* Every point of the suite's size, in the order they take turns. */
enum tec_status tec_oxygen_grid(struct tec_oxygen *suite, struct tec_error *err);

/* All points. */
enum tec_status tec_oxygen_run(struct tec_oxygen *suite, struct tec_error *err);

/* Sort and count what was measured; before any report. */
enum tec_status tec_oxygen_sum(struct tec_oxygen *suite, struct tec_error *err);

/* The point with these and one arrival each frame, or NULL. k -1: any. */
const struct tec_oxygen_point *tec_oxygen_find(const struct tec_oxygen *suite, int robot,
                                               enum tec_oxygen_setting setting,
                                               enum tec_oxygen_input input, int S, int N, int k);

/* The same at the arrivals of Fig 7. */
const struct tec_oxygen_point *tec_oxygen_load_point(const struct tec_oxygen *suite,
                                                     const struct tec_oxygen_load *load,
                                                     bool together);

/* Figures of a point as OxyGen's analysis defines them: milliseconds of a frame (mean), H / that,
 * tokens a second (mean over frames), live requests a frame (mean). NAN when it did not run. */
double tec_oxygen_frame_ms(const struct tec_oxygen_point *p);
double tec_oxygen_action_hz(const struct tec_oxygen_point *p);
double tec_oxygen_tokens_s(const struct tec_oxygen_point *p);
double tec_oxygen_batch(const struct tec_oxygen_point *p);
/* Chunks of all arrivals: actions a second. */
double tec_oxygen_actions_s(const struct tec_oxygen_point *p);
/* Median frames: of a over b. NAN when one is missing. */
double tec_oxygen_ratio(const struct tec_oxygen_point *a, const struct tec_oxygen_point *b);
double tec_oxygen_ms_at(const struct tec_oxygen_point *p, double q);

/* DIR/suite.json; DIR/oxygen_<input>/ in OxyGen's layout; DIR/fig*.svg; DIR/oxygen.md. */
enum tec_status tec_oxygen_write_json(const struct tec_oxygen *suite, struct tec_error *err);
enum tec_status tec_oxygen_write_layout(const struct tec_oxygen *suite, struct tec_error *err);
enum tec_status tec_oxygen_write_figures(const struct tec_oxygen *suite, struct tec_error *err);
enum tec_status tec_oxygen_write_table(const struct tec_oxygen *suite, struct tec_error *err);

/* What a report says of the run. */
struct tec_suite_head tec_oxygen_head(const struct tec_oxygen *suite);

/* Values of the sweeps; 0 ends them. */
extern const int tec_oxygen_s[], tec_oxygen_n[], tec_oxygen_k[];
extern const struct tec_oxygen_load tec_oxygen_loads[]; /* category NULL ends them */

#endif
