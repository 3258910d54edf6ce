/* launch_score.c - launches the scoring of a tree of texts behind a prefix, and uploads lists of
 * choices.
 *
 * Scores run on the frame thread or on the lanes beside it, uploads at load. All texts are scored
 * in one forward: beginnings that they share are rows that exist once, and a row sees the prefix
 * and the rows that lead to it. */
#include "graph/run/launch/launch_score.h"

#include "graph/run/launch/launch_rows.h"

#include <string.h>

/* The prompt is the first span of every chain. */
static void fill_chains(const struct tec_token_tree *tree, struct tec_rows *rows,
                        struct tec_span prompt, int slot)
{
    for (int i = 0; i < tree->n_spans; i++) {
        rows->spans[i] = tree->spans[i];
        rows->spans[i].slot += slot;
    }
    for (int c = 0; c < tree->n_chains; c++) {
        rows->seqs[c] = tree->chains[c];
        rows->spans[tree->chains[c].first] = prompt;
    }
}

static void fill_score(const struct tec_plan *plan, struct tec_plan_part *part,
                       const struct tec_score_launch *launch)
{
    const struct tec_token_tree *tree = launch->tree;
    const struct tec_row_state *row = launch->row;
    struct tec_score_table *t = &part->score;
    int slot = plan->tree_slot[part->stream], n = tree->n_rows;
    *t->rows.count = n;
    for (int r = 0; r < n; r++) {
        t->token[r] = r ? tree->token[r] : row->token;
        t->rows.pos[r] = row->prefix - 1 + tree->depth[r];
        t->rows.slot[r] = slot + r;
        t->rows.seq[r] = tree->chain[r];
        t->rows.visible[r] = row->prefix + tree->depth[r];
    }
    fill_chains(tree, &t->rows, (struct tec_span){plan->prefixes.first[row->region], row->prefix},
                slot);
    for (int i = 0; i < t->n_chunks; i++) {
        int rest = n - i * TEC_SCORE_ROWS;
        t->chunk[i] = rest < 0 ? 0 : rest < TEC_SCORE_ROWS ? rest : TEC_SCORE_ROWS;
    }
    memcpy(t->first, tree->first, ((size_t)n + 1) * sizeof *t->first);
    memcpy(t->id, tree->id, (size_t)tree->n_entries * sizeof *t->id);
}

void tec_launch_score(struct tec_plan *plan, struct tec_plan_part *part,
                      const struct tec_score_launch *launch, struct tec_replay *replay)
{
    struct tec_score_table *t = &part->score;
    size_t bytes = (size_t)launch->tree->n_entries * sizeof *t->likely;
    fill_score(plan, part, launch);
    tec_launch_upload(plan, part, &part->block);
    tec_device_replay(plan->device, part->capture, replay);
    tec_device_download(plan->device, part->stream, t->likely, part->score_device.likely, bytes);
    if (replay->status == TEC_OK)
        replay->status = tec_device_failure(plan->device, NULL);
    memcpy(launch->likely, t->likely, bytes);
}

enum tec_status tec_planner_choose(struct tec_plan *plan, const struct tec_token_tree *const *trees,
                                   int n, int *root, struct tec_arena *scratch,
                                   struct tec_error *err)
{
    size_t places = (size_t)plan->trie.n;
    struct tec_arena *kept = plan->spec.draft_tokens ? &plan->arena : scratch;
    int *all = TEC_NEW(kept, 3 * places + 1, int), at = 0, entry = 0;
    if (!all)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for %zu trie nodes", places);
    int *first = all, *id = all + places + 1, *next = all + 2 * places + 1;
    for (int i = 0; i < n; i++) {
        const struct tec_token_tree *t = trees[i];
        if ((size_t)at + (size_t)t->n_nodes > places)
            return tec_fail(err, TEC_INVALID, "the lists have more than %zu trie nodes", places);
        root[i] = at;
        for (int p = 0; p < t->n_nodes; p++)
            first[at + p] = entry + t->first[p];
        for (int e = 0; e < t->n_entries; e++) {
            id[entry + e] = t->id[e];
            next[entry + e] = at + t->next[e];
        }
        at += t->n_nodes;
        entry += t->n_entries;
    }
    for (; (size_t)at <= places; at++)
        first[at] = entry;
    if (plan->spec.draft_tokens)
        plan->host_trie =
            (struct tec_trie){.n = plan->trie.n, .first = first, .id = id, .next = next};
    void *block;
    memcpy(&block, &plan->trie.first, sizeof block);
    tec_device_upload(plan->device, TEC_STREAM_MAIN, block, all, (3 * places + 1) * sizeof(int));
    return TEC_OK;
}
