/* suite.h - what the experiments of every paper need: an engine for a pipeline with words set over
 * it, a frame of its loop, tables and charts of a report. A suite's own files are in a folder by
 * its name. */
#ifndef TEC_TESTS_EXPERIMENTS_SUITE_H
#define TEC_TESTS_EXPERIMENTS_SUITE_H

#include "tools/measure/bench.h"
#include "tools/picture/plot.h"

/* What `experiments NAME` was asked for. */
struct tec_suite_options {
    bool quick;
    int frames, rounds; /* 0: the size's */
    const char *dir, *command;
};

/* The body of a suite: runs it and writes into the folder, which is there. */
typedef enum tec_status tec_suite_main_fn(struct tec_invocation *call,
                                          const struct tec_suite_options *options,
                                          struct tec_error *err);
tec_suite_main_fn tec_oxygen_main, tec_actionflow_main, tec_keep_main;

/* --- engines --------------------------------------------------------------------------------- */

/* An engine on random weights. Zeroed is closed; must not move while it is open. */
struct tec_suite_engine {
    struct tec_invocation call; /* the caller's, with what is set over it */
    struct tec_opened opened;
    struct tec_arena arena; /* for as long as it is open */
    bool open;
    bool interpret; /* set before it is opened: each node is a launch of its own */
};

/* Begin with weights of `seed` and `threads` lanes (0: as the call says). Close ends it. */
void tec_suite_begin(struct tec_suite_engine *e, const struct tec_invocation *call, uint64_t seed,
                     int threads);

/* Set `n` words like those of --set, then those of the call. The texts are borrowed until close; a
 * NULL among them is TEC_NO_MEMORY. */
enum tec_status tec_suite_set(struct tec_suite_engine *e, const char *const *words, int n,
                              struct tec_error *err);

/* Path of a shipped file, in the arena. Sets the call's root and arena. */
enum tec_status tec_suite_path(struct tec_suite_engine *e, const char *file, const char **path,
                               struct tec_error *err);

/* Open it: frames follow each other, and no token ends a text. */
enum tec_status tec_suite_open(struct tec_suite_engine *e, const char *file, struct tec_error *err);
void tec_suite_close(struct tec_suite_engine *e);

/* One frame of a loop, now: an observation (NULL: none) and what is asked for (NULL: nothing). The
 * record is the loop's. */
const struct tec_frame_record *tec_suite_ask(struct tec_loop *loop, struct tec_frame_input *input,
                                             struct tec_ask *ask);

/* --- reports --------------------------------------------------------------------------------- */

/* JSON has no NAN: what was not measured is null. */
json_t *tec_suite_number(double x);

/* " 1.23x |", or " - |" for what was not measured. */
void tec_suite_cell(FILE *out, double value, int decimals, const char *unit);

/* Where and how: the title's lines of a report. */
struct tec_suite_head {
    const json_t *machine; /* tec_machine_json */
    const char *title, *command;
    double load_before, load_after, seconds;
    int points;
    bool quick;
};
void tec_suite_print_head(const struct tec_suite_head *head, FILE *out);

/* {machine with loads, commit, command, suite}; free with json_decref. */
json_t *tec_suite_head_json(const struct tec_suite_head *head, const char *suite);

/* DIR/suite.json, and the same to the call's output when it is asked for as JSON and `ended`. Takes
 * the JSON over; NULL is TEC_NO_MEMORY. */
enum tec_status tec_suite_write_json(const struct tec_invocation *call, const char *dir,
                                     json_t *json, bool ended, struct tec_error *err);

/* One more panel; one more series of it, all values missing. */
struct tec_plot_panel *tec_suite_panel(struct tec_plot *plot, enum tec_plot_kind kind,
                                       const char *title, const char *x_label, const char *y_label);
struct tec_plot_series *tec_suite_series(struct tec_plot_panel *panel, const char *name,
                                         enum tec_plot_color color, bool dashed);

/* DIR/NAME.svg. Panels without points are left out, a chart without panels is not written. */
enum tec_status tec_suite_write_plot(struct tec_plot *plot, const char *dir, const char *name,
                                     struct tec_heap *heap, struct tec_error *err);

#endif
