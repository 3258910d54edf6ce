/* recall_pieces.h - kept pieces on their way to the layers of a recall.
 *
 * A device that reads the host's memory places them from where they lie. Any other has rooms for
 * the pieces of a few layers, and copies that run beside its streams: what a source has is sent for
 * the layer that begins and for those behind it, as far as there are rooms, and the main stream
 * waits for the copies of a layer in front of it. A room is free when the layer that had it has
 * ended, which a replay waits for. What came too late to be sent ahead is sent in front of its
 * layer. All of it is the frame thread's, which waits for no copy. */
#ifndef TEC_GRAPH_RUN_RECALL_RECALL_PIECES_H
#define TEC_GRAPH_RUN_RECALL_RECALL_PIECES_H

#include "graph/run/recall/recall.h"

enum tec_status tec_recall_pieces_take(struct tec_recall *r, struct tec_arena *arena,
                                       struct tec_error *err);
void tec_recall_pieces_finish(struct tec_recall *r);

/* A run begins: nothing was sent. */
void tec_recall_pieces_start(struct tec_recall *r);
/* A layer begins: what the source has of it by now is sent. */
void tec_recall_pieces_begin(struct tec_recall *r, int layer);
/* The source has all of it: the rest is sent, and the layer's table lists what is placed. */
enum tec_status tec_recall_pieces_place(struct tec_recall *r, int layer, struct tec_error *err);
/* While the layer runs, or in front of it: what the source has of those behind it is sent. */
void tec_recall_pieces_ahead(struct tec_recall *r, int layer);
/* It has ended. */
void tec_recall_pieces_end(struct tec_recall *r, int layer);

#endif
