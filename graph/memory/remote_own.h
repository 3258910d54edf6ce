/* remote_own.h - the server as a store sees it: strings that are sent, looked for, read.
 *
 * tec_remote_send never waits. look and read wait within bounds, each on a connection of its own,
 * and not at all while the server is away; a forward's read waits for no lock that is held longer.
 * Thread-safe. */
#ifndef TEC_GRAPH_MEMORY_REMOTE_OWN_H
#define TEC_GRAPH_MEMORY_REMOTE_OWN_H

#include "graph/memory/log.h"
#include "graph/memory/remote.h"

/* A segment in a form, for all stores. */
struct tec_remote_name {
    uint64_t low, high;
};

/* Whose KV was sent, for who sent it. */
struct tec_remote_ticket {
    uint64_t segment, version, epoch;
};

struct tec_remote;

/* Starts the thread, which connects: TEC_OK also where the server is away. `sent` hears, from the
 * thread and under no lock, what the server has taken. Strings as remote.h says. */
enum tec_status tec_remote_open(struct tec_remote **out, const struct tec_log_key *key,
                                const struct tec_remote_options *options, struct tec_heap *heap,
                                void *user,
                                void (*sent)(void *user, const struct tec_remote_ticket *ticket),
                                struct tec_error *err);
/* Sends what is in the queue for up to timeout_ns. What is being connected then, or where nothing
 * is queued, is given up after the connection under way. NULL is allowed. */
void tec_remote_close(struct tec_remote *remote);

/* Queue the string of a segment: pieces [layers], `body` bytes of each, padded to stride and sealed
 * on the way. False: dropped, there is no room. */
bool tec_remote_send(struct tec_remote *remote, const struct tec_remote_ticket *ticket,
                     struct tec_remote_name name, const void *const *pieces, size_t body,
                     size_t stride);

enum { TEC_REMOTE_LOOK = 64 };

/* found[i]: whether string i is there with sizes[i] bytes; up to TEC_REMOTE_LOOK of them. How many
 * are. */
uint32_t tec_remote_look(struct tec_remote *remote, const struct tec_remote_name *names,
                         const size_t *sizes, uint32_t n, bool *found);

/* Bytes from .. from + size of a string. TEC_NOT_FOUND, TEC_MALFORMED, TEC_IO (it is away).
 * `until_ns` of the monotonic clock: nothing is waited for beyond that, and with it the server is
 * late; INT64_MAX: no forward waits. Those that do have a connection of their own. */
enum tec_status tec_remote_read(struct tec_remote *remote, struct tec_remote_name name, size_t from,
                                size_t size, unsigned char *into, int64_t until_ns,
                                struct tec_error *err);

/* A piece that was read had another checksum. */
void tec_remote_bad(struct tec_remote *remote);

bool tec_remote_here(const struct tec_remote *remote);
struct tec_remote_counts tec_remote_counts(struct tec_remote *remote);

#endif
