/* profile.h - what every variant of a pipeline costs: what cmd_profile asks for, what profile_run
 * measures, what profile_report says. */
#ifndef TEC_TOOLS_MEASURE_PROFILE_H
#define TEC_TOOLS_MEASURE_PROFILE_H

#include "tools/cli/open_engine.h"
#include "tools/measure/bench.h"

/* Besides the launches of rings. */
enum {
    TEC_PROFILE_VARIANTS = 3 + TEC_MAX_BATCHES + TEC_MAX_DECODERS + TEC_MAX_ACTIONS +
                           2 * TEC_MAX_SESSIONS + (TEC_MAX_CHAINS - 1) * (2 + TEC_MAX_BATCHES) +
                           TEC_MAX_MEMORIES * (1 + TEC_MAX_AXIS) + 2 * TEC_MAX_NODES
};

/* A launch that can be measured by itself. */
struct tec_profile_variant {
    enum tec_cost_kind kind; /* TEC_COST_KINDS: segments to be kept */
    const char *node; /* of decode: the first node, because all decode nodes share captures. Of a
                         ring: its launch's name */
    bool ring;        /* a launch of the rings that share the model's plan */
    int enter;        /* PACKED: new sequences */
    bool lone;        /* a private prefill */
    bool memory;      /* of a chain's memories: a prompt recalled, or segments to be kept */
    int percent;      /* a prompt: of its segments in every layer; 0 = as declared */
    int tokens, each; /* to be kept, in segments of so many; 0 = a prompt */
    int model;        /* index of the engine's model; a prefill may be a secondary model's */
    int observations; /* of several sessions in one launch; 0 = of one */
    int slices;       /* a prefill in this many slices, of which a sample is one; else 0 */
    int batch; /* DECODE: the captured batch; it runs as many rows if there are request slots for
                  them. Of a ring: rows besides new sequences */
    struct tec_samples samples;
    int64_t busy_ns; /* sum of its launches */
};

/* A prompt of a chain's memories: profile_memory.c. */
struct tec_profile_memory;

struct tec_profile {
    struct tec_invocation *call;
    struct tec_opened opened;
    int frames, rounds, prompt_tokens; /* prompt_tokens 0: as many as fit */
    struct tec_chain_input input;
    int region;                   /* prefix */
    int others[TEC_MAX_SESSIONS]; /* those of other sessions' observations, from the second on */
    int regions[TEC_MAX_CHAINS];
    float *starts[TEC_MAX_CHAINS]; /* of actions of further chains with hard nodes */
    struct tec_prefix_input prompts[TEC_MAX_CHAINS];     /* prefixes of secondary models */
    struct tec_profile_memory *memories[TEC_MAX_CHAINS]; /* NULL: the chain has none */
    bool counting;                                       /* launches are measured */
    struct tec_row_state rows[TEC_MAX_ROWS], *list[TEC_MAX_ROWS];
    int *tokens, *made;
    float *likely; /* of a tree's entries */
    int n_variants;
    struct tec_profile_variant *variants; /* [TEC_PROFILE_VARIANTS, and the launches of rings] */
    int64_t wall_ns, inside_ns, busy_ns;  /* of measured turns; in the engine; on the device */
    double spread; /* largest difference of a p50 between rounds, as a part */
    const struct tec_profile_variant *spread_of;
    double load_before, load_after;
    struct tec_energy energy; /* opened when rounds are run, closed with the card by who asked */
    struct tec_energy_card card;
    struct tec_energy_sum energy_sum; /* of measured turns */
};

/* List the variants, make an observation with all cameras and the longest prompt, and allocate the
 * samples. */
enum tec_status tec_profile_prepare(struct tec_profile *p, uint64_t seed, struct tec_error *err);

/* Run all rounds. A turn launches every variant once, and starts its decodes from another batch
 * each time. Decodes cycle through the captured k; a decode's sample is the time of one step.
 * Samples are sorted on return. */
void tec_profile_run(struct tec_profile *p);

/* Take what launches write: the regions of prefixes; and give it back. */
void tec_profile_take_regions(struct tec_profile *p);
void tec_profile_drop_regions(struct tec_profile *p);

/* profile_hard.c: whether a chain is a further one with hard nodes, its variants but decodes, a
 * turn of them; the name of a chain's action node. */
bool tec_profile_hard(const struct tec_profile *p, int model);
bool tec_profile_list_hard(struct tec_profile *p, int model, const char *prefill);
void tec_profile_run_hard(struct tec_profile *p, struct tec_profile_variant *v);
const char *tec_profile_action(const struct tec_profile *p, int model, int at);

/* profile_memory.c: list the launches of chains with memories, and keep what their prompts are made
 * of; run a turn of them. Finish before the engine is closed. */
enum tec_status tec_profile_list_memories(struct tec_profile *p, struct tec_error *err);
void tec_profile_run_memories(struct tec_profile *p);
void tec_profile_finish_memories(struct tec_profile *p);

/* The part of profile_run for rings: how many variants those of all plans have; list those of one
 * plan, which chains share; run one; run a turn of the first chain's, starting from another one
 * each time. */
int tec_profile_ring_variants(const struct tec_profile *p);
bool tec_profile_list_ring(struct tec_profile *p, int model);
void tec_profile_run_ring(struct tec_profile *p, struct tec_profile_variant *v);
void tec_profile_run_rings(struct tec_profile *p, int turn);

/* profile_variant.c: add a variant; add a sample to it. */
bool tec_profile_add(struct tec_profile *p, enum tec_cost_kind kind, const char *node, bool lone,
                     int batch);
void tec_profile_keep(const struct tec_profile *p, struct tec_profile_variant *v, int64_t ns,
                      int steps);

/* profile_ring.c: one launch of a ring's variant. */
void tec_profile_launch_ring(struct tec_profile *p, const struct tec_executor *x,
                             const struct tec_profile_variant *v, struct tec_replay *replay);

/* Bytes that a ring copies one way in a microsecond. It copies inside its launches, so the rate is
 * so high that copies take no time beside them; 0 for a ring without copies. */
double tec_profile_copy_rate(const struct tec_profile *p);

/* The `.costs` form; free with json_decref, NULL without memory. */
json_t *tec_profile_costs(const struct tec_profile *p);

/* The costs with the conditions of the measurement, as JSON and as text. */
json_t *tec_profile_json(const struct tec_profile *p);
void tec_profile_print(const struct tec_profile *p, FILE *out);

#endif
