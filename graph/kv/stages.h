/* stages.h - the arithmetic of a ring of sequences: K sequences in flight, each one token further a
 * forward; what a frame of a given depth runs, and what the variants that copy would copy.
 *
 * A sequence enters with `prefix` tokens at stage 0; a forward gives each its next token, so one at
 * stage s sees prefix + s keys. With K tokens it leaves. A frame of depth n runs ceil(K / n)
 * forwards, the first of which takes the new sequence in: n = K is one forward a frame, n = 1 all
 * K. Pure functions; K >= 1, 1 <= n <= K. */
#ifndef TEC_GRAPH_KV_STAGES_H
#define TEC_GRAPH_KV_STAGES_H

#include <stdint.h>

enum { TEC_MAX_STAGES = 64 };

/* Forwards of a frame. */
int tec_stages_forwards(int stages, int depth);

/* Frames that a sequence lives, its first one included. */
int tec_stages_frames(int stages, int depth);

/* Rows that forward j of a steady frame advances besides the new sequence: those at stages j, j +
 * forwards, j + 2 forwards, ... below K; in forward 0 the new one, at stage 0, is not counted. */
int tec_stages_rows(int stages, int depth, int forward);

/* Tokens that a shift moves behind forward j of a steady frame: those of every sequence that has
 * not its last token yet. */
int64_t tec_stages_moved(int stages, int depth, int forward, int prefix);

/* Keys that a steady, full ring sees in its forward: what a gather copies, in tokens. */
int64_t tec_stages_visible(int stages, int prefix);

/* Tokens that a shift moves after it: those of every sequence but the oldest, which leaves. */
int64_t tec_stages_shifted(int stages, int prefix);

#endif
