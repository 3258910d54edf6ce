/* tree.c - builds a tree of token strings and the chains and spans in which attention reads it.
 *
 * Runs at load. The tree is numbered depth-first with the heaviest child first, so a row and its
 * heavy child are neighbours and form a chain; a row has at most 1 + log2(rows) chains above it
 * (heavy-path decomposition). A chain is one KV sequence and the rows that lead to it are a few
 * spans, so the ordinary attention kernel scores the tree. The walk follows parent links, without
 * recursion. */
#include "graph/nodes/tree.h"

#include <string.h>

/* The tree while it grows: node 0 is the root, a node comes after its parent. Siblings are
 * ascending. */
struct node {
    int id, parent, child, sibling, rows, depth;
    int place; /* its number in the end; -1 = none yet */
    int heavy; /* the child with most rows below; -1 = no child has any */
};

struct grower {
    struct node *nodes;
    int n;
    int *order; /* rows, as nodes */
};

/* The child with that id, made where there is none. */
static int step(struct grower *g, int at, int id)
{
    int *link = &g->nodes[at].child;
    while (*link >= 0 && g->nodes[*link].id < id)
        link = &g->nodes[*link].sibling;
    if (*link >= 0 && g->nodes[*link].id == id)
        return *link;
    g->nodes[g->n] = (struct node){.id = id,
                                   .parent = at,
                                   .child = -1,
                                   .sibling = *link,
                                   .depth = g->nodes[at].depth + 1,
                                   .place = -1,
                                   .heavy = -1};
    *link = g->n;
    return g->n++;
}

static enum tec_status check(const struct tec_token_text *texts, int n, struct tec_tree_end end,
                             size_t *tokens, struct tec_error *err)
{
    if (n < 1 || n > TEC_TREE_TEXTS)
        return tec_fail(err, TEC_INVALID, "%d texts; a tree takes 1 .. %d", n, TEC_TREE_TEXTS);
    *tokens = 0;
    for (int i = 0; i < n; i++) {
        int length = texts[i].n + (end.token >= 0);
        if (texts[i].n < 1 || length > TEC_TREE_DEPTH)
            return tec_fail(err, TEC_INVALID, "text %d has %d tokens; a tree takes 1 .. %d", i + 1,
                            length, TEC_TREE_DEPTH);
        *tokens += (size_t)length;
    }
    if (*tokens > TEC_TREE_TOKENS)
        return tec_fail(err, TEC_INVALID, "%zu tokens in %d texts; a tree takes %d", *tokens, n,
                        TEC_TREE_TOKENS);
    return TEC_OK;
}

/* How many rows each node has below and with it, and through which child most of them. */
static void weigh(struct grower *g)
{
    for (int i = g->n - 1; i >= 0; i--) {
        struct node *node = &g->nodes[i];
        for (int c = node->child; c >= 0; c = g->nodes[c].sibling) {
            node->rows += g->nodes[c].rows;
            if (g->nodes[c].rows > (node->heavy < 0 ? 0 : g->nodes[node->heavy].rows))
                node->heavy = c;
        }
        node->rows += node->child >= 0;
    }
}

/* Rows in depth-first order, then what nothing follows in the order of the rows before. A node's
 * own `parent` links are the way back: the next of its light children, or up. */
static void number(struct grower *g, struct tec_token_tree *t)
{
    int at = 0, places;
    while (at >= 0) {
        g->order[t->n_rows] = at;
        g->nodes[at].place = t->n_rows++;
        int next = g->nodes[at].heavy;
        while (at >= 0 && next < 0) {
            next = g->nodes[at].child;
            while (next >= 0 && (g->nodes[next].place >= 0 || g->nodes[next].child < 0))
                next = g->nodes[next].sibling;
            at = next < 0 ? g->nodes[at].parent : at;
        }
        at = next;
    }
    places = t->n_rows;
    for (int r = 0; r < t->n_rows; r++)
        for (int c = g->nodes[g->order[r]].child; c >= 0; c = g->nodes[c].sibling)
            if (g->nodes[c].child < 0)
                g->nodes[c].place = places++;
    t->n_nodes = places;
    t->n_entries = places - 1;
}

static bool begins_chain(const struct grower *g, int node)
{
    int parent = g->nodes[node].parent;
    return parent < 0 || g->nodes[parent].heavy != node;
}

static enum tec_status take(struct tec_token_tree *t, int n_texts, struct tec_arena *arena,
                            struct tec_error *err)
{
    size_t places = (size_t)t->n_nodes, rows = (size_t)t->n_rows;
    t->first = TEC_NEW(arena, places + 1, int);
    t->id = TEC_NEW(arena, places, int);
    t->next = TEC_NEW(arena, places, int);
    t->token = TEC_NEW(arena, rows, int);
    t->depth = TEC_NEW(arena, rows, int);
    t->chain = TEC_NEW(arena, rows, int);
    t->place = TEC_NEW(arena, (size_t)n_texts, int);
    if (!t->first || !t->id || !t->next || !t->token || !t->depth || !t->chain || !t->place)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a tree of %d nodes", t->n_nodes);
    return TEC_OK;
}

static void fill(const struct grower *g, struct tec_token_tree *t)
{
    int entries = 0;
    for (int r = 0; r < t->n_rows; r++) {
        const struct node *node = &g->nodes[g->order[r]];
        t->token[r] = node->id;
        t->depth[r] = node->depth;
        t->depths += node->depth;
        t->n_chains += begins_chain(g, g->order[r]);
        t->chain[r] = t->n_chains - 1;
        t->reached += node->heavy < 0 ? node->depth : 0;
        t->first[r] = entries;
        for (int c = node->child; c >= 0; c = g->nodes[c].sibling) {
            t->id[entries] = g->nodes[c].id;
            t->next[entries++] = g->nodes[c].place;
            t->longest = node->depth + 1 > t->longest ? node->depth + 1 : t->longest;
        }
    }
    for (int p = t->n_rows; p <= t->n_nodes; p++)
        t->first[p] = entries;
}

/* Runs of rows from the root to the end of the chain that begins at row `begin`, last one first;
 * the root has no key of its own: its token is the prompt's last. NULL: only counted. */
static int runs_of(const struct grower *g, const struct tec_token_tree *t, int begin,
                   struct tec_span *out)
{
    int last = begin, n = 0;
    while (last + 1 < t->n_rows && t->chain[last + 1] == t->chain[begin])
        last++;
    for (int at = begin; at >= 0;) {
        int from = at > 0 ? at : 1;
        if (last >= from) {
            if (out)
                out[n] = (struct tec_span){from, last - from + 1};
            n++;
        }
        int parent = g->nodes[g->order[at]].parent;
        last = parent < 0 ? -1 : g->nodes[parent].place;
        for (at = last; at > 0 && t->chain[at - 1] == t->chain[at]; at--)
            ;
    }
    return n;
}

static enum tec_status link_chains(const struct grower *g, struct tec_token_tree *t,
                                   struct tec_arena *arena, struct tec_error *err)
{
    int spans = 0;
    for (int r = 0; r < t->n_rows; r++)
        if (r == 0 || t->chain[r] != t->chain[r - 1])
            t->n_spans += 1 + runs_of(g, t, r, NULL);
    t->chains = TEC_NEW(arena, (size_t)t->n_chains, struct tec_seq);
    t->spans = TEC_NEW(arena, (size_t)t->n_spans, struct tec_span);
    if (!t->chains || !t->spans)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for the chains of a tree");
    for (int r = 0; r < t->n_rows; r++) {
        if (r > 0 && t->chain[r] == t->chain[r - 1])
            continue;
        int n = runs_of(g, t, r, t->spans + spans + 1);
        for (int i = 0; i < n / 2; i++) {
            struct tec_span *a = &t->spans[spans + 1 + i], *b = &t->spans[spans + n - i];
            struct tec_span other = *a;
            *a = *b;
            *b = other;
        }
        t->chains[t->chain[r]] = (struct tec_seq){spans, 1 + n};
        spans += 1 + n;
    }
    return TEC_OK;
}

static enum tec_status grow(struct tec_token_tree *t, size_t tokens, struct tec_tree_end end,
                            struct tec_arena *arena, struct tec_error *err)
{
    struct grower g = {.nodes = TEC_NEW(arena, tokens + 1, struct node),
                       .n = 1,
                       .order = TEC_NEW(arena, tokens + 1, int)};
    int *ends = TEC_NEW(arena, (size_t)t->n_texts, int);
    if (!g.nodes || !g.order || !ends)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for a tree of %zu tokens", tokens);
    g.nodes[0] =
        (struct node){.id = -1, .parent = -1, .child = -1, .sibling = -1, .place = -1, .heavy = -1};
    for (int i = 0; i < t->n_texts; i++) {
        int at = 0;
        for (int k = 0; k < t->texts[i].n; k++)
            at = step(&g, at, t->texts[i].ids[k]);
        ends[i] = at;
    }
    for (int i = 0; i < t->n_texts && end.token >= 0; i++)
        if (end.always || g.nodes[ends[i]].child >= 0)
            ends[i] = step(&g, ends[i], end.token);
    weigh(&g);
    number(&g, t);
    TEC_TRY(take(t, t->n_texts, arena, err));
    fill(&g, t);
    for (int i = 0; i < t->n_texts; i++)
        t->place[i] = g.nodes[ends[i]].place;
    return link_chains(&g, t, arena, err);
}

enum tec_status tec_token_tree_create(struct tec_token_tree *tree,
                                      const struct tec_token_text *texts, int n,
                                      struct tec_tree_end end, struct tec_arena *arena,
                                      struct tec_error *err)
{
    size_t tokens = 0;
    memset(tree, 0, sizeof *tree);
    TEC_TRY(check(texts, n, end, &tokens, err));
    tree->texts = texts;
    tree->n_texts = n;
    return grow(tree, tokens, end, arena, err);
}

void tec_token_tree_sum(const struct tec_token_tree *t, const float *likely, double *out,
                        double *scratch)
{
    scratch[0] = 0.0;
    for (int r = 0; r < t->n_rows; r++)
        for (int e = t->first[r]; e < t->first[r + 1]; e++)
            scratch[t->next[e]] = scratch[r] + (double)likely[e];
    for (int i = 0; i < t->n_texts; i++)
        out[i] = scratch[t->place[i]];
}
