/* groups.h - static and dynamic groups of memory segments: which segments share one joint KV, and
 * when.
 *
 * A segment is one piece of text with an embedding and a number of tokens. A new one joins the
 * group whose centroid (the sum of its members' unit vectors) is most similar, if that cosine
 * reaches the threshold; else it opens a group. It is compared with the TEC_NEAR_GROUPS newest
 * groups, so that what a segment costs does not grow with the memory. Any change of a group makes
 * it dynamic at once: each member has KV of its own. A group unchanged for `stable_steps` steps
 * becomes static: one KV computed jointly, retrieved as a whole. A group of one has the same KV in
 * both forms.
 *
 * Only the bookkeeping is here, no KV: every call says how many stored tokens became useless and
 * how many must be computed to make the store whole again.
 *
 * Sizes are fixed at create; nothing is allocated later. Results depend on nothing but the calls:
 * centroids are sums of fixed-point numbers (2^-40), so the order of additions and removals leaves
 * no trace and a store read from a file goes on exactly as the one that wrote it. Not thread-safe.
 */
#ifndef TEC_GRAPH_MEMORY_GROUPS_H
#define TEC_GRAPH_MEMORY_GROUPS_H

#include "base/alloc.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

#define TEC_NO_SEGMENT UINT32_MAX
#define TEC_NO_GROUP UINT64_MAX

enum { TEC_MAX_EMBEDDING = 4096, TEC_NEAR_GROUPS = 512 };

struct tec_groups_options {
    int dim;               /* numbers in an embedding, 1 .. TEC_MAX_EMBEDDING */
    uint32_t max_segments; /* 1 .. 2^22; handles are 0 .. max_segments - 1 */
    double threshold;      /* least cosine to join a group, -1 .. 1; above 1: groups of one only */
    int64_t stable_steps;  /* steps without a change that make a group static, >= 1 */
};

/* 128 bits of a text; equal means that the text is the same. */
struct tec_text_hash {
    uint64_t low, high;
};

/* The properties of a segment. */
struct tec_segment_input {
    const float *embedding; /* [dim], any length but finite; copied */
    uint32_t tokens;
    struct tec_text_hash text;
};

/* The effects of a call. Always written as a whole on success. */
struct tec_groups_change {
    int64_t invalidated; /* stored tokens that are useless now */
    int64_t computed;    /* tokens to compute */
    uint64_t group;      /* the group of the segment given; TEC_NO_GROUP: none was */
    uint64_t demoted;    /* a static group that became dynamic; TEC_NO_GROUP: none */
    uint32_t n_promoted;
    const uint64_t *promoted; /* ids, ascending; borrowed until the next call */
};

/* Everything that happened since create. */
struct tec_groups_totals {
    int64_t invalidated, computed, promotions, demotions;
    int64_t compared; /* centroids that new embeddings were compared with */
};

/* An item of retrieval: a static group as a whole, or one segment of a dynamic group. */
struct tec_candidate {
    double score;      /* cosine to the query; 0 where either vector is zero */
    uint64_t group;    /* its id */
    uint32_t segment;  /* the segment, or the first member of a whole group */
    uint32_t segments; /* how many it brings */
    uint32_t place;    /* of the segment in its group, 0 the oldest */
};

struct tec_group_view {
    uint64_t id;
    uint64_t epoch;   /* differs whenever the joint KV of the group would; never 0 */
    int64_t changed;  /* step of its last change */
    int64_t tokens;   /* of all members */
    uint32_t members; /* at least 1 */
    uint32_t first;   /* first member; the others by tec_groups_next */
    bool is_static;
};

struct tec_groups;

/* Memory: about max_segments * (12 * dim + 200) bytes from `heap`, which must outlive it. */
enum tec_status tec_groups_create(struct tec_groups **out, const struct tec_groups_options *options,
                                  struct tec_heap *heap, struct tec_error *err);
void tec_groups_destroy(struct tec_groups *groups);

/* Time goes on to `step`. First thing of every new step: groups unchanged for stable_steps become
 * static. The same step again does nothing; an earlier one is TEC_INVALID. The other calls below
 * happen in the step last given (0 at first). */
enum tec_status tec_groups_step(struct tec_groups *groups, int64_t step,
                                struct tec_groups_change *change, struct tec_error *err);

/* A new segment under a free handle. TEC_INVALID: handle out of range or taken, or a number of the
 * embedding that is not finite. */
enum tec_status tec_groups_add(struct tec_groups *groups, uint32_t segment,
                               const struct tec_segment_input *given,
                               struct tec_groups_change *change, struct tec_error *err);

/* The same in two halves, for whoever writes down what will happen before it does: the group that
 * an embedding would join (tec_groups_next_group where it would open one), and the segment put
 * there.
 */
enum tec_status tec_groups_choose(struct tec_groups *groups, const float *embedding,
                                  uint64_t *group, struct tec_error *err);
enum tec_status tec_groups_add_to(struct tec_groups *groups, uint32_t segment,
                                  const struct tec_segment_input *given, uint64_t group,
                                  struct tec_groups_change *change, struct tec_error *err);

/* Other text for a segment, which keeps its group and its place there. The same text is no change
 * at all. TEC_NOT_FOUND: no such segment. */
enum tec_status tec_groups_update(struct tec_groups *groups, uint32_t segment,
                                  const struct tec_segment_input *given,
                                  struct tec_groups_change *change, struct tec_error *err);

/* Another vector for a segment, of the same text: no change of its group, but where that lies.
 * TEC_NOT_FOUND: no such segment; the vector is checked as in add. */
enum tec_status tec_groups_embed(struct tec_groups *groups, uint32_t segment,
                                 const float *embedding, struct tec_error *err);

/* Another number of tokens for the same text, which a tokenizer of other rules makes of it: no
 * change of its group, but how many it has. TEC_NOT_FOUND: no such segment. */
enum tec_status tec_groups_count(struct tec_groups *groups, uint32_t segment, uint32_t tokens,
                                 struct tec_error *err);

/* The segment goes; a group without members goes with it. TEC_NOT_FOUND: no such segment. */
enum tec_status tec_groups_remove(struct tec_groups *groups, uint32_t segment,
                                  struct tec_groups_change *change, struct tec_error *err);

/* A segment of a saved state: it is placed at the end of group `group`, which is opened where it is
 * missing, with no question asked of embeddings; or, where the segment is there, it is replaced.
 * The group is dynamic and changed at `changed`, until tec_groups_restore_group says otherwise. */
enum tec_status tec_groups_restore(struct tec_groups *groups, uint32_t segment,
                                   const struct tec_segment_input *given, uint64_t group,
                                   int64_t changed, struct tec_error *err);
/* The rest of a saved state. TEC_NOT_FOUND: no such group. */
enum tec_status tec_groups_restore_group(struct tec_groups *groups, uint64_t group, bool is_static,
                                         int64_t changed, uint64_t epoch, struct tec_error *err);
/* Counters of a saved state; neither goes back. */
void tec_groups_restore_clock(struct tec_groups *groups, int64_t step, uint64_t next_group,
                              uint64_t next_epoch);

/* Everything that can be retrieved, best first; ties: lower group, then earlier member. `out` has
 * room for max_segments. The embedding is checked as in add. */
enum tec_status tec_groups_rank(struct tec_groups *groups, const float *embedding,
                                struct tec_candidate *out, uint32_t *n, struct tec_error *err);

/* Segments for a prompt: candidates best first until there are `most`; a group that does not fit is
 * skipped. Members of a group come in their order. `out` has room for `most`. */
enum tec_status tec_groups_query(struct tec_groups *groups, const float *embedding, uint32_t most,
                                 uint32_t *out, uint32_t *n, struct tec_error *err);

/* Groups in order of their ids: NULL for `after` starts; false at the end. */
bool tec_groups_each(const struct tec_groups *groups, const struct tec_group_view *after,
                     struct tec_group_view *out);
/* The group with this id, or else the next one; false: there is none. */
bool tec_groups_from(const struct tec_groups *groups, uint64_t id, struct tec_group_view *out);
/* The group of a segment; false: no such segment. */
bool tec_groups_of(const struct tec_groups *groups, uint32_t segment, struct tec_group_view *out);
/* The next member of its group, or TEC_NO_SEGMENT. */
uint32_t tec_groups_next(const struct tec_groups *groups, uint32_t segment);
/* The embedding of a segment, borrowed until it changes; NULL: no such segment. */
const float *tec_groups_embedding(const struct tec_groups *groups, uint32_t segment);

struct tec_groups_totals tec_groups_totals(const struct tec_groups *groups);
int64_t tec_groups_now(const struct tec_groups *groups);
uint64_t tec_groups_next_group(const struct tec_groups *groups);
uint64_t tec_groups_next_epoch(const struct tec_groups *groups);

#endif
