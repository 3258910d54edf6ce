/* plan.h - the actions that a robot is to carry out, each row for an instant; chunks are merged
 * into it. Times are monotonic nanoseconds; nothing here reads a clock. */
#ifndef TEC_TOOLS_CLIENT_PLAN_H
#define TEC_TOOLS_CLIENT_PLAN_H

#include "tectum_client.h"

#include <stdbool.h>

/* What of the options decides about rows. */
struct tec_client_rules {
    double period_ns; /* between rows, above 0 */
    int horizon;      /* rows of a chunk that may be carried out, at least 1 */
    enum tectum_client_merge merge;
    int blend_rows;
    bool held; /* behind its end a plan's last row goes on */
    bool by_motion, interpolate;
    const bool *discrete; /* [most_columns] which are never mixed; NULL: all may be */
};

/* A chunk as it came. */
struct tec_client_chunk {
    const double *values; /* [rows, columns], finite; borrowed */
    int rows, columns;
    int64_t number, observation, captured_ns;
    bool substitute;
};

/* Where a row of a plan comes from. */
struct tec_client_origin {
    int64_t chunk, observation, captured_ns;
    int row;   /* of that chunk */
    int votes; /* chunks that are in it */
    bool substitute;
};

/* Memory is the owner's; zero-initialised but for that it is an empty plan. */
struct tec_client_plan {
    double *values;                   /* [most_rows, most_columns], rows one behind the other */
    struct tec_client_origin *origin; /* [most_rows] */
    int most_rows, most_columns;
    int rows, columns;
    int usable;      /* leading rows that may be carried out, at most `rows` */
    int64_t base_ns; /* when row 0 begins */
    int64_t chunk;   /* the newest in it */
    int64_t gap[2];  /* the last time without an action before it: from, to */
    double seam;     /* largest change of a value where the newest chunk took over */
    int64_t episode; /* whose it is */
    bool stopped;    /* by the server */
};

/* The row of instant `now` as a number with a fraction; negative before row 0. */
double tec_client_plan_place(const struct tec_client_plan *p, const struct tec_client_rules *rules,
                             int64_t now);

/* Whether no row that may be carried out is left at `now`. */
bool tec_client_plan_dry(const struct tec_client_plan *p, const struct tec_client_rules *rules,
                         int64_t now);

/* When row `row` begins. */
int64_t tec_client_plan_begin(const struct tec_client_plan *p, const struct tec_client_rules *rules,
                              double row);

/* The plan `old` and a chunk that came at `now`, as `out`, which shares no memory with `old`. Rows
 * of the chunk whose time is over are passed over. False, and `out` is `old` again: none was left,
 * or a newer observation's chunk is there. A substitute's rows come behind those of `old`. The
 * chunk has no more rows and columns than `out` has room for. */
bool tec_client_plan_merge(struct tec_client_plan *out, const struct tec_client_plan *old,
                           const struct tec_client_rules *rules,
                           const struct tec_client_chunk *chunk, int64_t now);

/* Copy a plan into another one's memory. */
void tec_client_plan_copy(struct tec_client_plan *out, const struct tec_client_plan *plan);

/* What is left of a plan for an observation. */
struct tec_client_left {
    const double *values; /* [rows, columns], the plan's; row 0 is that of the observation */
    int rows, columns;
    int usable;   /* leading rows that may be carried out */
    double phase; /* of row 0 that was over at the observation, 0 .. 1 */
};

/* No rows where nothing is carried out when the observation is taken: it is never padded. */
struct tec_client_left tec_client_plan_left(const struct tec_client_plan *p,
                                            const struct tec_client_rules *rules,
                                            int64_t captured_ns);

#endif
