/* loader_uring.h - several reads of a store's file at once, where liburing and the kernel are so.
 */
#ifndef TEC_GRAPH_MEMORY_LOADER_URING_H
#define TEC_GRAPH_MEMORY_LOADER_URING_H

#include "graph/memory/loader.h"

enum { TEC_LOADER_DEPTH = 64 };

struct tec_loader_uring;

/* NULL: not built in, not allowed here, or no memory. */
struct tec_loader_uring *tec_loader_uring_open(uint32_t depth, struct tec_heap *heap);
void tec_loader_uring_close(struct tec_loader_uring *uring);

/* Read n pieces (at most `depth`), writing their status. False: the ring does not work; nothing is
 * under way any more, and the pieces are to be read by other means. */
bool tec_loader_uring_read(struct tec_loader_uring *uring, struct tec_store *store,
                           struct tec_loader_job *jobs, uint32_t n);

#endif
