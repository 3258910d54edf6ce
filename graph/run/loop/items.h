/* items.h - work items: all that a frame runs, in one table.
 *
 * Owned by the frame thread. The table is made with the loop. Hard chains put their items in one
 * after the other, the earliest deadline first, then language does, in the order of the decision;
 * the next item that is ready runs. What lives longer than a frame (a request, a prefill in slices,
 * a sequence of a ring) has its own record, and an item in each frame that runs a part of it. */
#ifndef TEC_GRAPH_RUN_LOOP_ITEMS_H
#define TEC_GRAPH_RUN_LOOP_ITEMS_H

#include "graph/run/launch/executor.h"

struct tec_loop;
struct tec_chain;
struct tec_scheduled;

/* What the loop must know of a kind of items. Each function finds the turn at its session's. */
struct tec_scheduled_kind {
    /* Fill the item's next launch; false: it has none, or none any more. */
    bool (*next)(struct tec_loop *l, struct tec_scheduled *it);
    /* Run it otherwise than in one launch of its chain's executor; NULL: in one. */
    void (*launch)(struct tec_loop *l, struct tec_scheduled *it);
    /* Keep, tell and measure what the launch has made; NULL: there is no launch. */
    void (*settle)(struct tec_loop *l, struct tec_scheduled *it);
    /* The launch has failed: give back what it was to fill; NULL: nothing. */
    void (*fail)(struct tec_loop *l, struct tec_scheduled *it);
    bool once;   /* it has one launch at most */
    bool always; /* it runs in a frame whose launches have failed, too */
};

#define ITEM(name) extern const struct tec_scheduled_kind tec_scheduled_##name;
#include "graph/run/loop/items.def"
#undef ITEM

/* Ready to run; running beside the hard nodes until it is joined; complete or given up. */
enum tec_scheduled_state { TEC_ITEM_READY, TEC_ITEM_BESIDE, TEC_ITEM_OVER };

struct tec_scheduled {
    const struct tec_scheduled_kind *kind;
    enum tec_scheduled_state state;
    struct tec_chain *chain;   /* whose executor launches */
    struct tec_launch *launch; /* the loop's, or its place beside */
    int who;                   /* the session, by its place in the frame */
    int of;                    /* what of: an action, a ring, a decoder, a row, as its kind says */
    int at;                    /* launches so far */
    int first, n;              /* how far it is: rows, sessions, requests or slices of its kind */
    int64_t start_ns, end_ns;  /* of what is told as one: the slices of a prefill */
    struct tec_observed observed; /* of a prefill */
};

/* Room for all items of a frame. */
enum tec_status tec_schedule_create(struct tec_loop *l, struct tec_error *err);

/* The last item of the table, ready. Of a full one, which is a mistake of its size: a place that is
 * never run, and the frame has failed. No memory of others is written; what ran beside is not
 * joined. */
struct tec_scheduled *tec_schedule_add(struct tec_loop *l, const struct tec_scheduled_kind *kind,
                                       struct tec_chain *c, int who, int of);
/* Its launch has ended. */
void tec_schedule_settle(struct tec_loop *l, struct tec_scheduled *it);

/* Launch now, and count the time; false: it failed, and the record says so. */
bool tec_loop_launch(struct tec_loop *l, const struct tec_chain *c, struct tec_launch *launch);

#endif
