/* launch_verify.h - one forward of a request's next token and of the tokens that a draft proposes
 * behind it, and the rule that keeps the longest beginning that the model would have made itself.
 * Nothing here allocates or blocks. */
#ifndef TEC_GRAPH_RUN_LAUNCH_LAUNCH_VERIFY_H
#define TEC_GRAPH_RUN_LAUNCH_LAUNCH_VERIFY_H

#include "graph/run/launch/launch.h"

/* A request and what is proposed behind its next token. */
struct tec_verify_row {
    const struct tec_row_state *row;
    int n; /* 0 .. the plan's spec.draft_tokens, fewer than the request may still make */
    const int *drafts;           /* [n] */
    int said[TEC_MAX_DRAFT + 1]; /* out: [n + 1] what the model makes of each row */
};

/* Runs the rows in one launch of the smallest captured batch that holds them; n <= the part's
 * batch. Of a request with a list of texts, proposals that leave it are dropped: n becomes smaller.
 */
void tec_launch_verify(struct tec_plan *plan, struct tec_plan_part *part,
                       struct tec_verify_row *rows, int n, struct tec_replay *replay);

/* Advances a request by what a forward made of its rows, as steps of one token would have: up to
 * the first token that was not proposed so, and that one. A prompt of its own is read instead while
 * there is any. tokens gets what was made, [n + 1]; returns how many. */
int tec_verify_keep(const struct tec_plan *plan, struct tec_row_state *row,
                    const struct tec_verify_row *verified, int *tokens);

#endif
