/* keeping.h - the experiments of KEEP on a trace of a robot's memory: which there are (grid), how a
 * step is run by each method (step), what is written of them (report_*).
 *
 * A cell is a number of retrieved segments and a set of rows; a row is a method with its settings.
 * All rows of a cell take turns, step by step of the trace, in one process on one model; the first
 * one always computes everything, and the others' next tokens are compared with its. */
#ifndef TEC_TESTS_EXPERIMENTS_KEEP_KEEPING_H
#define TEC_TESTS_EXPERIMENTS_KEEP_KEEPING_H

#include "graph/memory/prefetch.h"
#include "graph/run/recall/recall.h"
#include "tests/experiments/keep/trace.h"
#include "tests/experiments/suite.h"

enum {
    TEC_KEEPING_CELLS = 24,
    TEC_KEEPING_ROWS = 20,
    TEC_KEEPING_SEGMENTS = 48, /* most segments of a prompt */
    TEC_KEEPING_LAYERS = 128,
    TEC_KEEPING_STABLE = 10,  /* steps; the paper's t */
    TEC_KEEPING_EXAMPLES = 6, /* the paper's */
    TEC_KEEPING_OBJECTS = 48, /* of the house */
    TEC_KEEPING_TYPICAL = 16, /* segments of the paper's trace */
    TEC_KEEPING_WARM = 12,    /* steps of the trace before the first measured one */
    TEC_KEEPING_BLOCK = 128,  /* tokens of a block where none is said */
    TEC_KEEPING_MOST_BLOCK = 256
};

/* Where a row's kept keys and values are. */
enum tec_keeping_kept {
    TEC_KEEPING_NONE,
    TEC_KEEPING_STORE,  /* groups: alone, or joined where static */
    TEC_KEEPING_BLOCKS, /* blocks of so many tokens of the prompt; 0: each segment alone; below 0:
                           blocks of the memory in its own order */
    TEC_KEEPING_FEED    /* the store's, through a link */
};

struct tec_keeping_method {
    const char *name;
    enum tec_selection selection;
    enum tec_keeping_kept kept;
    int block;                /* BLOCKS */
    enum tec_scoring scoring; /* keep */
    double share;             /* keep: mean over layers; cacheblend: of the tokens */
    int first;                /* epic */
    bool local, code_mask;
    bool bare;                /* the rows of the row before it, and nothing else */
    enum tec_overlap overlap; /* FEED */
};

/* A link of a tier, slower than it is. */
struct tec_keeping_link {
    const char *name; /* NULL: kept pieces are read where they lie */
    enum tec_kept_in tier;
    int64_t bytes_per_sec; /* 0: as it is */
};

/* What a row's measured steps came to. */
struct tec_keeping_row {
    struct tec_keeping_method method;
    int64_t steps;
    struct tec_samples ttft;    /* retrieve + refresh + prefill + score */
    struct tec_samples refresh; /* computing what changed, to be kept */
    struct tec_samples served;  /* ttft where all that is kept was computed between steps */
    struct tec_samples charged; /* ttft with all of it in it: refresh, and groups that are joined */
    double kept_cpu, least_cpu; /* processor time of what is kept up, sums; least as below */
    double least_ns;            /* sum of charged as if a changed block were computed from its first
                                   changed token on */
    struct tec_samples prefill; /* waits and choosing among it */
    struct tec_samples cpu;     /* processor time of prefill, where one lane is all there is */
    struct tec_samples waited, choose, score;
    int64_t rows, all_rows;    /* of all layers but the last, which makes keys alone */
    int64_t refreshed, behind; /* tokens computed to be kept: in a step; between steps */
    int64_t needed;            /* of `refreshed`: those from a block's first changed token on */
    int64_t behind_ns;
    int64_t loaded; /* bytes of kept pieces that were placed */
    int64_t agree;  /* steps whose likeliest token is the full one's */
    int64_t skill;  /* steps whose best skill is the full one's */
    int64_t right;  /* questions: answers that are right */
    double kl;      /* sum of KL(full || this) of the next token, nats */
    bool same;      /* bare: every byte of logits was its neighbour's */
    double layer_rows[TEC_KEEPING_LAYERS], layer_bytes[TEC_KEEPING_LAYERS];
    double layer_ns[TEC_KEEPING_LAYERS], layer_wait[TEC_KEEPING_LAYERS];
};

struct tec_keeping_cell {
    const char *experiment; /* "methods", "segments", "ratio", "blocks", "links"; of questions: a
                             * scoring, or "baselines" */
    int segments;
    struct tec_keeping_link link;
    int n_rows;
    struct tec_keeping_row rows[TEC_KEEPING_ROWS];
    bool ran;
    int64_t tokens, query, retrieved,
        joined; /* sums over steps; joined: segments of static groups */
    int64_t promotions, demotions, changes;
    struct tec_samples retrieve;
};

struct tec_keeping {
    struct tec_invocation *call;
    bool quick, full; /* full: what is not counted computes only what the next step needs */
    int steps;        /* measured, of each cell */
    int depth;        /* layers of a random model; 0: as many as its size has */
    const char *dir, *command, *arch, *only, *remote; /* only: one experiment; NULL: all */
    const char *weights; /* a checkpoint with questions; NULL: random weights and the trace */
    int n_cells;
    struct tec_keeping_cell cells[TEC_KEEPING_CELLS];
    struct tec_trace trace; /* of the last cell: its changes by class */
    int layers, vocab;
    int64_t token_bytes, weight_bytes, plan_bytes;
    json_t *machine;
    double load_before, load_after;
    int64_t elapsed_ns;
    uint64_t seed;
};

void tec_keeping_grid(struct tec_keeping *suite);
enum tec_status tec_keeping_run(struct tec_keeping *suite, struct tec_error *err);
void tec_keeping_sum(struct tec_keeping *suite);

/* Every sample of a row, into all[TEC_KEEPING_SAMPLES]. */
enum { TEC_KEEPING_SAMPLES = 9 };
void tec_keeping_samples(struct tec_keeping_row *row, struct tec_samples *all[TEC_KEEPING_SAMPLES]);
double tec_keeping_mean(const struct tec_samples *samples); /* ms */

/* Shares of the layers with that mean, 1 in the first, falling by a factor; 0 and 1: all equal. */
void tec_keeping_curve(double mean, int layers, double *ratios);

/* A row by its method's name, or NULL. */
const struct tec_keeping_row *tec_keeping_find(const struct tec_keeping_cell *cell,
                                               const char *name);
/* The cell of an experiment with so many segments (0: any), or NULL. */
const struct tec_keeping_cell *tec_keeping_cell_of(const struct tec_keeping *suite,
                                                   const char *experiment, int segments);

/* Figures of a row; NAN where something is missing. */
double tec_keeping_ms(const struct tec_samples *samples, double q);
double tec_keeping_share(const struct tec_keeping_row *row); /* of rows of a full prefill */
/* Full prefill over this one's; of what its rows alone would gain; prefill over that of its bare
 * neighbour. `cpu`: by processor time, which other processes hardly change. */
double tec_keeping_speedup(const struct tec_keeping_cell *cell, const struct tec_keeping_row *row,
                           bool cpu);
double tec_keeping_of_bound(const struct tec_keeping_cell *cell, const struct tec_keeping_row *row,
                            bool cpu);
double tec_keeping_over_bare(const struct tec_keeping_cell *cell, const struct tec_keeping_row *row,
                             bool cpu);
double tec_keeping_right(const struct tec_keeping_row *row);
double tec_keeping_agree(const struct tec_keeping_row *row);
double tec_keeping_skill(const struct tec_keeping_row *row);
double tec_keeping_kl(const struct tec_keeping_row *row);

/* DIR/suite.json; DIR/fig*.svg; DIR/keep.md. */
enum tec_status tec_keeping_write_json(const struct tec_keeping *suite, struct tec_error *err);
enum tec_status tec_keeping_write_figures(const struct tec_keeping *suite, struct tec_error *err);
enum tec_status tec_keeping_write_table(const struct tec_keeping *suite, struct tec_error *err);
struct tec_suite_head tec_keeping_head(const struct tec_keeping *suite);

#endif
