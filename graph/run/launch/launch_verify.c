/* launch_verify.c - looks at proposed tokens: each is a row of its request behind the next token's.
 *
 * Runs on the thread of the launch. A row's keys and values stand where a step of one token would
 * put them, and it sees what that step would see, so its choice is that step's, byte for byte, as
 * long as all tokens before it were right. Keys behind the first wrong token are overwritten by the
 * rows of the next launch, which begin there. */
#include "graph/run/launch/launch_verify.h"

#include "graph/run/launch/launch_rows.h"
#include "kernels/next_token.h"

#include <stddef.h>
#include <string.h>

/* The bookkeeping of next_token for one request on the host, over the fields of its row. */
static struct tec_next_token_args step_of(const struct tec_plan *plan, struct tec_row_state *row,
                                          int *produced, int *tokens, int max_tokens)
{
    const struct tec_text *text = &plan->model->text;
    return (struct tec_next_token_args){.token = &row->token,
                                        .pos = &row->pos,
                                        .slot = &row->slot,
                                        .visible = &row->visible,
                                        .tail = &row->tail,
                                        .prefix = &row->prefix,
                                        .left = &row->left,
                                        .done = &row->done,
                                        .produced = produced,
                                        .tokens = tokens,
                                        .eos = &row->eos,
                                        .ends = text->ends,
                                        .n_ends = text->n_ends,
                                        .max_tokens = max_tokens,
                                        .place = &row->place,
                                        .trie = plan->host_trie};
}

static void see(unsigned *used, int words, int token)
{
    if (token >= 0 && token / 32 < words)
        used[token / 32] |= 1U << (token % 32);
}

/* Write row `at` of the table: the request's next input, and what its steps before have changed. */
static void fill(const struct tec_plan *plan, struct tec_decode_table *t, int at, int first,
                 const struct tec_row_state *row)
{
    tec_fill_row(plan, t, at, row);
    t->rows.seq[at] = first;
    t->left[at] = 2; /* the row is one choice and no more: what follows is the host's to say */
    t->eos[at] = -1;
}

/* Write the rows of a request from `at` on; returns how many. */
static int fill_request(const struct tec_plan *plan, struct tec_decode_table *t, int at,
                        struct tec_verify_row *v)
{
    struct tec_row_state row = *v->row;
    int ignored[1], produced = 0, first = at;
    fill(plan, t, at, first, &row);
    for (int i = 0; i < v->n; i++) {
        struct tec_next_token_args step = step_of(plan, &row, &produced, ignored, 1);
        bool leaves = tec_next_token_leaves(&step, 0, v->drafts[i]);
        if (leaves) {
            v->n = i;
            break;
        }
        int seen = row.token;
        tec_next_token_input(&step, 0, v->drafts[i]);
        fill(plan, t, ++at, first, &row);
        if (t->used) {
            size_t words = (size_t)t->words;
            unsigned *used = t->used + (size_t)at * words;
            memcpy(used, used - words, words * sizeof *used);
            see(used, t->words, seen);
        }
    }
    return at + 1 - first;
}

void tec_launch_verify(struct tec_plan *plan, struct tec_plan_part *part,
                       struct tec_verify_row *rows, int n, struct tec_replay *replay)
{
    struct tec_decode_table *t = &part->decode;
    int at = 0;
    *t->k = 1;
    *t->stop = 0;
    for (int i = 0; i < n; i++)
        at += fill_request(plan, t, at, &rows[i]);
    *t->rows.count = at;
    tec_launch_rows(plan, part, &part->block, replay);
    at = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= rows[i].n; j++)
            rows[i].said[j] = t->tokens[at++];
}

int tec_verify_keep(const struct tec_plan *plan, struct tec_row_state *row,
                    const struct tec_verify_row *v, int *tokens)
{
    int made = 0;
    struct tec_next_token_args step = step_of(plan, row, &made, tokens, v->n + 1);
    if (row->used)
        see(row->used, plan->used_words, row->token);
    if (row->waiting > 0) {
        tec_next_token_input(&step, 0, *row->prompt++);
        row->waiting--;
        return 0;
    }
    for (int i = 0; i <= v->n; i++) {
        tec_next_token_step(&step, 0, v->said[i]);
        if (row->done || i == v->n || v->said[i] != v->drafts[i])
            break;
        if (row->used)
            see(row->used, plan->used_words, row->token);
    }
    return made;
}
