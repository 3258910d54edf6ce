/* profile.h - what every variant of a pipeline costs: what cmd_profile asks for, what profile_run
 * measures, what profile_report says. */
#ifndef TEC_TOOLS_MEASURE_PROFILE_H
#define TEC_TOOLS_MEASURE_PROFILE_H

#include "tools/cli/open_engine.h"
#include "tools/measure/bench.h"

enum {
    TEC_PROFILE_VARIANTS = 3 + TEC_MAX_BATCHES + 2 * TEC_MAX_STAGES + TEC_MAX_DECODERS +
                           (TEC_MAX_CHAINS - 1) * (1 + TEC_MAX_BATCHES)
};

/* A launch that can be measured by itself. */
struct tec_profile_variant {
    enum tec_cost_kind kind; /* TEC_COST_KINDS: a ring's shift */
    const char *node; /* of decode: the first one; all decode nodes share captures. Of a ring:
                       * "packed", "decode", "shift" */
    bool lone;        /* a private prefill */
    int model;        /* chain of the engine; of a further one a prefill is */
    int slices;       /* in so many, and a sample is one of them; else 0 */
    int batch; /* DECODE: captured; its rows are as many, but for fewer request slots. Of a ring,
                * and PACKED: rows besides a new sequence */
    struct tec_samples samples;
    int64_t busy_ns; /* sum of its launches */
};

struct tec_profile {
    struct tec_invocation *call;
    struct tec_opened opened;
    int frames, rounds, prompt_tokens; /* prompt_tokens 0: as many as fit */
    struct tec_chain_input input;
    int region; /* prefix */
    int regions[TEC_MAX_CHAINS];
    struct tec_prefix_input prompts[TEC_MAX_CHAINS]; /* the same of further chains */
    bool counting;                                   /* launches are measured */
    struct tec_row_state rows[TEC_MAX_ROWS], *list[TEC_MAX_ROWS];
    int *tokens, *made;
    float *likely; /* of a tree's entries */
    int n_variants;
    struct tec_profile_variant variants[TEC_PROFILE_VARIANTS];
    int64_t wall_ns, inside_ns, busy_ns; /* of measured turns; in the engine; of it on the device */
    double spread;                       /* largest difference of a p50 between rounds, as a part */
    const struct tec_profile_variant *spread_of;
    double load_before, load_after;
};

/* Variants, an observation with all cameras and the longest prompt, room for samples. */
enum tec_status tec_profile_prepare(struct tec_profile *p, uint64_t seed, struct tec_error *err);

/* All rounds. A turn launches every variant once, decodes from another batch on each time; a decode
 * goes by the captured k in turn, its sample is a step. Samples are sorted when it returns. */
void tec_profile_run(struct tec_profile *p);

/* Of a ring, for profile_run: its variants; a turn of them, from another one on each time. */
bool tec_profile_list_ring(struct tec_profile *p);
void tec_profile_run_ring(struct tec_profile *p, const struct tec_executor *x, int turn);

/* Between the two files: a variant more; a sample of it. */
bool tec_profile_add(struct tec_profile *p, enum tec_cost_kind kind, const char *node, bool lone,
                     int batch);
void tec_profile_keep(const struct tec_profile *p, struct tec_profile_variant *v, int64_t ns,
                      int steps);

/* Bytes that a ring copies one way in a microsecond, from the shifts that were measured; where it
 * only gathers, so many that it takes no time, since launches hold it already; 0 where it does not
 * copy. */
double tec_profile_copy_rate(const struct tec_profile *p);

/* The `.costs` form; free with json_decref, NULL without memory. */
json_t *tec_profile_costs(const struct tec_profile *p);

/* The same with what the measurement says of itself; and as text. */
json_t *tec_profile_json(const struct tec_profile *p);
void tec_profile_print(const struct tec_profile *p, FILE *out);

#endif
