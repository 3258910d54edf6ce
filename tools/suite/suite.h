/* suite.h - the experiments of OxyGen (arXiv 2603.14371) as rows that take turns in one process:
 * which points there are (grid), how they are run (run), what is written of them (report_*).
 *
 * The paper's terms: S steps of denoising, N tokens of a request at most, k decoding steps a frame,
 * H = 10 actions in a chunk. Random weights, random pixels, no end token. */
#ifndef TEC_TOOLS_SUITE_SUITE_H
#define TEC_TOOLS_SUITE_SUITE_H

#include "tools/arrivals.h"
#include "tools/bench.h"
#include "tools/energy.h"

enum {
    TEC_SUITE_ROBOTS = 3,
    TEC_SUITE_STEPS = 4, /* values of S */
    TEC_SUITE_HORIZON = 10,
    TEC_SUITE_SEATS = 32,
    TEC_SUITE_TOKENS = 30, /* the largest N */
    TEC_SUITE_POINTS = 512,
    TEC_SUITE_PADDED_PROMPT = 100, /* OxyGen's max_token_len: 3 x 256 + 100 = 868 rows */
    TEC_SUITE_PROMPT = 20
};

/* OxyGen's settings, by its names. */
enum tec_suite_setting {
    TEC_SUITE_BASELINE, /* each task its own prefill, N tokens in the frame */
    TEC_SUITE_SHARED,   /* one prefill, N tokens in the frame */
    TEC_SUITE_BATCHING, /* one prefill, k tokens of every live request */
    TEC_SUITE_PARALLEL, /* two engines at once, the frame is the longer one */
    TEC_SUITE_SETTINGS
};
extern const char *const tec_suite_settings[TEC_SUITE_SETTINGS]; /* OxyGen's words */
extern const char *const tec_suite_policies[TEC_SUITE_SETTINGS]; /* ours */

/* The robots of its configurations, in order: LIBERO, DROID, ALOHA. */
struct tec_suite_robot {
    const char *name, *file, *config, *label; /* "libero", a path, "pi05_o2_libero", "LIBERO" */
};
extern const struct tec_suite_robot tec_suite_robots[TEC_SUITE_ROBOTS];

/* COMPACT: the robot's cameras and a short prompt. PADDED: what a padded implementation computes
 * for any of the robots: three pictures, the third black where there is no camera, and a prompt of
 * TEC_SUITE_PADDED_PROMPT tokens. It runs on ALOHA's plan, which has all three. */
enum tec_suite_input { TEC_SUITE_COMPACT, TEC_SUITE_PADDED, TEC_SUITE_INPUTS };
extern const char *const tec_suite_inputs[TEC_SUITE_INPUTS];

/* Arrivals of Fig 7; NULL category: one each frame. */
struct tec_suite_load {
    const char *category, *label, *spec; /* "uniform", "1/4", "uniform:4" */
    const char *pattern, *slug;          /* as OxyGen writes it, and in file names */
    double value;
};

/* What one frame did; OxyGen's record. A frame with several arrivals is several frames of the
 * loop, of which only the last decodes; their times are added. */
struct tec_suite_frame {
    bool warmup;
    int n_new, n_resumed, tokens, rows, launches;
    int64_t ns, action_ns; /* of the frame; until the last action left, -1 = none */
    int64_t prefill_ns, private_ns, act_ns, decode_ns, host_ns;
};

struct tec_suite_request {
    int64_t id;
    int arrival, finish; /* frames */
    int64_t born_ns, finished_ns;
};

struct tec_suite_point {
    int robot, S, N, k; /* k 0 where the setting has none */
    enum tec_suite_setting setting;
    enum tec_suite_input input;
    const struct tec_suite_load *load; /* NULL: one each frame */
    int warmup, frames;                /* in each round */
    bool ran;
    /* measured */
    struct tec_suite_frame *frame; /* [n], rounds after each other */
    int n, room;
    struct tec_suite_request *request; /* finished ones */
    int n_requests, request_room;
    struct tec_samples sorted; /* of measured frames */
    int64_t refused, shed, policy_failures;
    double joules; /* of measured frames; NAN = not counted */
    int64_t plan_bytes;
};

struct tec_suite {
    struct tec_invocation *call;
    bool quick, full;
    int rounds, frames; /* 0: as the size says */
    const char *dir;
    const char *command;
    int n_points;
    struct tec_suite_point points[TEC_SUITE_POINTS];
    struct tec_energy energy;
    json_t *machine; /* after the first engine was opened */
    double load_before, load_after;
    int64_t elapsed_ns;
    int64_t memory[TEC_SUITE_SETTINGS + 1]; /* Table 2, bytes; the last: batch of 2 */
    uint64_t seed;
};

/* Every point of the suite's size, in the order they take turns. */
enum tec_status tec_suite_grid(struct tec_suite *suite, struct tec_error *err);

/* All points. */
enum tec_status tec_suite_run(struct tec_suite *suite, struct tec_error *err);

/* Sort and count what was measured; before any report. */
enum tec_status tec_suite_sum(struct tec_suite *suite, struct tec_error *err);

/* The point that ran with these, or NULL. k -1: any. */
const struct tec_suite_point *tec_suite_find(const struct tec_suite *suite, int robot,
                                             enum tec_suite_setting setting,
                                             enum tec_suite_input input, int S, int N, int k,
                                             const struct tec_suite_load *load);

/* Figures of a point as OxyGen's analysis defines them: milliseconds of a frame (mean), H / that,
 * tokens a second (mean over frames), live requests a frame (mean). NAN when it did not run. */
double tec_suite_frame_ms(const struct tec_suite_point *p);
double tec_suite_action_hz(const struct tec_suite_point *p);
double tec_suite_tokens_s(const struct tec_suite_point *p);
double tec_suite_batch(const struct tec_suite_point *p);
/* Chunks of all arrivals: actions a second. */
double tec_suite_actions_s(const struct tec_suite_point *p);
/* Median frames: of a over b. NAN when one is missing. */
double tec_suite_ratio(const struct tec_suite_point *a, const struct tec_suite_point *b);
double tec_suite_ms_at(const struct tec_suite_point *p, double q);

/* DIR/suite.json; DIR/oxygen_<input>/ in OxyGen's layout; DIR/fig*.svg; DIR/oxygen.md. */
enum tec_status tec_suite_write_json(const struct tec_suite *suite, struct tec_error *err);
enum tec_status tec_suite_write_layout(const struct tec_suite *suite, struct tec_error *err);
enum tec_status tec_suite_write_figures(const struct tec_suite *suite, struct tec_error *err);
enum tec_status tec_suite_write_table(const struct tec_suite *suite, struct tec_error *err);

/* The body of `tectum bench --suite oxygen`. */
struct tec_suite_options {
    bool quick;
    int frames, rounds; /* 0: the size's */
    const char *dir, *command;
};
enum tec_status tec_suite_main(struct tec_invocation *call, const struct tec_suite_options *options,
                               struct tec_error *err);

/* Values of the sweeps; 0 ends them. */
extern const int tec_suite_s[], tec_suite_n[], tec_suite_k[];
extern const struct tec_suite_load tec_suite_loads[]; /* category NULL ends them */

#endif
