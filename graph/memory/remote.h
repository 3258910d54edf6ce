/* remote.h - a server (Redis, Valkey) that keeps KV for many stores: what it is asked, what is
 * believed of it.
 *
 * One string a segment and form: the pieces of all layers one after the other, the same K and V as
 * in the file; only the checksums are made with the name of the string in place of a store's own
 * numbers. Its key is
 *
 *   tectum:kv1:<form>:<segment>
 *
 * form: 32 hexadecimal digits, a hash of model, tokenizer, dtype, layers and bytes of a row;
 * segment: a hash of the text and its number of tokens; of a member of a static group: of all texts
 * of the group in order and its place among them. Stores that share a server thus find one
 * another's KV, whatever ids and versions the segments have there.
 *
 * Nothing that the server says is trusted: a string of another length, a piece with another
 * checksum, an answer of another kind or longer than what was asked is a miss. Whoever may write to
 * the server can give it KV of its own making with a right checksum, as in a file: let nobody.
 *
 * Time: connecting, an answer and a part of one are bounded (timeout_ns for each question). What is
 * sent lies in a queue of at most queue_bytes; what does not fit is not sent, and counted. After a
 * failure the server is away: nobody waits for it, a thread tries again after retry_ns, then after
 * twice that, up to retry_most_ns, for as long as the store lives. `event` hears once that it is
 * away, and once that it is back. (A host's name is looked up by that thread alone.) A server that
 * answers each question in time, but keeps a forward waiting for longer than it may in all
 * (prefetch.h), is late: away too, and left alone for rest_ns.
 *
 * Of several places the one is asked that says it is the master, and when that is lost, or becomes
 * a replica, the one that has become it; the server is away until there is one. Nodes of a cluster,
 * which have each string elsewhere, count as away, and the message says so.
 *
 * A server that is full (OOM) is not away: what it refuses is counted and not tried again. Nor is
 * a master that has lost its replicas and therefore takes nothing, where it is the only place. */
#ifndef TEC_GRAPH_MEMORY_REMOTE_H
#define TEC_GRAPH_MEMORY_REMOTE_H

#include "base/alloc.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tec_remote_event {
    bool here;           /* it answers; false: it is away */
    const char *message; /* one sentence with the address */
};

struct tec_remote_options {
    const char *address;   /* redis://host[:port][,host[:port]...], host a name, number or [v6], at
                            * most 8: a master and its replicas; unix:/path */
    int64_t timeout_ns;    /* for one question, 0: 200 ms */
    int64_t retry_ns;      /* 0: 100 ms */
    int64_t retry_most_ns; /* 0: 5 s */
    int64_t rest_ns;       /* 0: 5 s */
    int64_t queue_bytes;   /* of KV waiting to be sent, 0: 64 MiB */
    int64_t keep_seconds;  /* the server forgets a string after so long; 0: when it likes */
    void *user;
    /* From a thread of the store's, under no lock; must not close the store. May be NULL. */
    void (*event)(void *user, const struct tec_remote_event *event);
};

struct tec_remote_counts {
    bool here;
    int64_t away;          /* times that it went away, also at open */
    int64_t late;          /* of those, because a forward could wait no longer */
    int64_t tries;         /* connections tried */
    int64_t sent, refused; /* segments: taken by the server; not (full, or it says no) */
    int64_t dropped;       /* segments not sent: queue full, or away */
    int64_t sent_bytes;
    int64_t found, missed; /* segments looked for */
    int64_t bad;           /* answers that were not what was asked: length, checksum, kind */
};

/* TEC_INVALID: no address that is understood, or a number out of range. */
enum tec_status tec_remote_check(const struct tec_remote_options *options, struct tec_error *err);

#endif
