/* actionflow.h - the experiments of ActionFlow as rings that take turns in one
 * process: which there are (grid), how they are run (run), what is written of them (report_*).
 *
 * The paper's terms: K tokens of an action, so K stages; L_P tokens of a prefix. A cell is one K
 * with one length of the prompt; its four variants see the same observations and must say the same
 * tokens. Random weights, random pixels, no end token. */
#ifndef TEC_TESTS_EXPERIMENTS_ACTIONFLOW_ACTIONFLOW_H
#define TEC_TESTS_EXPERIMENTS_ACTIONFLOW_ACTIONFLOW_H

#include "graph/kv/stages.h"
#include "tests/experiments/suite.h"
#include "tools/measure/op_times.h"

enum {
    TEC_ACTIONFLOW_CELLS = 32,
    TEC_ACTIONFLOW_STAGES = 6, /* values of K */
    TEC_ACTIONFLOW_TEXTS = 3,
};

/* SEQUENTIAL is the ring of ROTATE at depth 1: all forwards of an action in its own frame. NAIVE is
 * the ring of GATHER. */
enum tec_actionflow_variant {
    TEC_ACTIONFLOW_SEQUENTIAL,
    TEC_ACTIONFLOW_UNPACKED, /* a prefill and each row by itself: the host waits for each */
    TEC_ACTIONFLOW_NAIVE,    /* the paper's naive pipe: gathered, and a launch for every command */
    TEC_ACTIONFLOW_GATHER,   /* attention reads a copy of all keys, in one launch */
    TEC_ACTIONFLOW_COPY,     /* the paper's: keys move from stage to stage in each layer */
    TEC_ACTIONFLOW_ROTATE,   /* nothing moves, the ring turns by counting */
    TEC_ACTIONFLOW_VARIANTS
};
extern const char *const tec_actionflow_variants[TEC_ACTIONFLOW_VARIANTS];

/* One variant of a cell, and what was measured of its steady frames. */
struct tec_actionflow_row {
    bool ran, equal;               /* every token was that of the other variants */
    struct tec_samples frame, age; /* a measured frame each: its time; of the action it released */
    struct tec_samples cpu;        /* processor time of the program in a measured frame */
    struct tec_samples prefill;    /* SEQUENTIAL: a packed forward of nobody else */
    struct tec_samples decode;     /* SEQUENTIAL: a forward of one row */
    int64_t frames, actions, compared; /* measured frames, actions in them, actions compared */
    int64_t copied;                    /* bytes, one way, in all measured frames */
    int64_t launches;                  /* in all of them; the host waits for each */
    int64_t moved;                     /* what graph/kv/stages.h says of a steady frame, bytes */
    int64_t plan_bytes;
};

struct tec_actionflow_cell {
    int stages, text, prefix; /* K; tokens of the prompt; of pictures and prompt */
    int64_t token_bytes;      /* of a token's keys and values in all layers */
    bool known[TEC_BENCH_INPUTS];
    float said[TEC_BENCH_INPUTS][TEC_MAX_STAGES]; /* tokens of the action of each observation */
    struct tec_actionflow_row rows[TEC_ACTIONFLOW_VARIANTS];
};

/* Launches that are taken apart: P and d of a sequential frame, a full ring's forward, the same
 * with gathered keys, and with moved ones. */
enum {
    TEC_ACTIONFLOW_ALONE,
    TEC_ACTIONFLOW_ONE,
    TEC_ACTIONFLOW_FULL,
    TEC_ACTIONFLOW_GATHERED,
    TEC_ACTIONFLOW_MOVED,
    TEC_ACTIONFLOW_FORWARDS
};
struct tec_actionflow_forward {
    const char *name;
    int rows; /* that it advances besides an observation */
    bool known;
    struct tec_op_times times;
};

struct tec_actionflow {
    struct tec_invocation *call;
    bool quick, full;
    int rounds, frames; /* 0: as the size says */
    const char *dir, *command;
    int vision; /* tokens of the pictures */
    int n_cells;
    struct tec_actionflow_cell cells[TEC_ACTIONFLOW_CELLS];
    int by_call; /* cell whose forwards are taken apart */
    struct tec_actionflow_forward forwards[TEC_ACTIONFLOW_FORWARDS];
    double read_s, flop_s; /* ceilings of this machine: bytes and FLOP a second; NAN = unknown */
    json_t *machine;       /* after the first engine was opened */
    double load_before, load_after;
    int64_t elapsed_ns;
    uint64_t seed;
};

/* Every cell of the suite's size. */
extern const int tec_actionflow_stages[TEC_ACTIONFLOW_STAGES];
extern const int tec_actionflow_texts[TEC_ACTIONFLOW_TEXTS];
void tec_actionflow_grid(struct tec_actionflow *suite);

/* All cells; then the ceilings. */
enum tec_status tec_actionflow_run(struct tec_actionflow *suite, struct tec_error *err);

/* Sort what was measured; before any report, and again after more of it. */
void tec_actionflow_sum(struct tec_actionflow *suite);

/* The cell of K and a prompt, or NULL. */
const struct tec_actionflow_cell *tec_actionflow_find(const struct tec_actionflow *suite,
                                                      int stages, int text);

/* Figures of a cell; NAN when something it takes was not measured. */
double tec_actionflow_frame_ms(const struct tec_actionflow_row *row, double q);
double tec_actionflow_cpu_ms(const struct tec_actionflow_row *row, double q);
double tec_actionflow_age_ms(const struct tec_actionflow_row *row, double q);
double tec_actionflow_actions_s(const struct tec_actionflow_row *row);
double tec_actionflow_copied(const struct tec_actionflow_row *row);       /* bytes a frame */
double tec_actionflow_launches(const struct tec_actionflow_row *row);     /* of a frame */
double tec_actionflow_prefill_ms(const struct tec_actionflow_cell *cell); /* P */
double tec_actionflow_decode_ms(const struct tec_actionflow_cell *cell);  /* d */
/* Median frames: of variant a over variant b. */
double tec_actionflow_ratio(const struct tec_actionflow_cell *cell, enum tec_actionflow_variant a,
                            enum tec_actionflow_variant b);
/* (P + (K - 1) d) / P: the speed-up of a ring whose other rows are free. */
double tec_actionflow_bound(const struct tec_actionflow_cell *cell);
/* Bytes one way that a variant copies in a steady frame, by graph/kv/stages.h. */
int64_t tec_actionflow_moved(const struct tec_actionflow_cell *cell,
                             enum tec_actionflow_variant variant);

/* What a call of a forward is part of, whatever forward it is in. */
enum tec_actionflow_piece {
    TEC_ACTIONFLOW_PICTURES,
    TEC_ACTIONFLOW_PREFIX, /* of a packed forward, its other rows too */
    TEC_ACTIONFLOW_DECODE,
    TEC_ACTIONFLOW_HEAD,
    TEC_ACTIONFLOW_MOVES,
    TEC_ACTIONFLOW_PIECES
};
extern const char *const tec_actionflow_pieces[TEC_ACTIONFLOW_PIECES];

/* Whether a variant's forwards are taken apart: not where its launches are. */
bool tec_actionflow_has_pieces(enum tec_actionflow_variant variant);

/* Milliseconds of a piece of one frame of a variant, in the cell that was taken apart; NAN when its
 * forwards were not timed. */
double tec_actionflow_piece_ms(const struct tec_actionflow *suite,
                               enum tec_actionflow_variant variant,
                               enum tec_actionflow_piece piece);

/* Nanoseconds that a call's work takes at the ceilings of this machine, weights read from memory.
 * NAN without ceilings. */
double tec_actionflow_roof_ns(const struct tec_actionflow *suite, const struct tec_cost *cost);

/* DIR/suite.json; DIR/fig*.svg; DIR/actionflow.md. */
enum tec_status tec_actionflow_write_json(const struct tec_actionflow *suite,
                                          struct tec_error *err);
enum tec_status tec_actionflow_write_figures(const struct tec_actionflow *suite,
                                             struct tec_error *err);
enum tec_status tec_actionflow_write_table(const struct tec_actionflow *suite,
                                           struct tec_error *err);
struct tec_suite_head tec_actionflow_head(const struct tec_actionflow *suite);

#endif
