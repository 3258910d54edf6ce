/* choices.c - tokenizes the lists of texts that nodes rank or answer with, and builds their trees.
 *
 * Runs at load; the trees then do not change. The largest tree determines the sizes of the part
 * that scores, so the lists are read before the plan is made. An answer is chosen by walking the
 * tree on the device, so the trees of decode nodes are uploaded as one table of trie nodes. */
#include "graph/run/launch/choices.h"

#include "graph/run/launch/launch_score.h"

#include <string.h>

enum { MAX_LISTS = 32 }; /* nodes of a pipeline */

static bool has_list(const struct tec_decl_node *n, int chain)
{
    return !n->culled && n->choices.n > 0 && n->chain == chain;
}

bool tec_choices_any(const struct tec_pipeline *p, int chain)
{
    for (int i = 0; i < p->n_nodes; i++)
        if (has_list(&p->nodes[i], chain))
            return true;
    return false;
}

static enum tec_status refuse(const struct tec_decl_node *n, const struct tec_error *why,
                              struct tec_error *err)
{
    if (why->status == TEC_NO_MEMORY)
        return tec_fail(err, TEC_NO_MEMORY, "%.300s", why->message);
    return tec_where_fail(err, TEC_MALFORMED, &n->where, "%s of '%s': %.300s",
                          n->kind == TEC_DECL_SCORE ? "candidates" : "choices", n->name,
                          why->message);
}

/* Without a tokenizer, treat each byte as one token (for measurements). */
static enum tec_status spell(const char *text, int vocab, struct tec_token_text *out,
                             struct tec_arena *arena, struct tec_error *err)
{
    int n = (int)strlen(text), *ids = TEC_NEW(arena, (size_t)n + 1, int);
    if (!ids)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for %d tokens", n);
    for (int i = 0; i < n; i++)
        ids[i] = vocab > 8 ? 3 + (unsigned char)text[i] % (vocab - 3) : 0;
    *out = (struct tec_token_text){ids, n};
    return TEC_OK;
}

static enum tec_status encode(const struct tec_tokenizer *tokenizer, const char *text, int vocab,
                              struct tec_token_text *out, struct tec_arena *arena,
                              struct tec_error *err)
{
    const struct tec_encode how = {0};
    size_t bytes = strlen(text), count = 0;
    TEC_TRY(tec_tokenizer_encode(tokenizer, text, bytes, how, NULL, 0, &count, arena, err));
    int *ids = TEC_NEW(arena, count + 1, int);
    if (!ids)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for %zu tokens", count);
    TEC_TRY(tec_tokenizer_encode(tokenizer, text, bytes, how, ids, count, &count, arena, err));
    for (size_t i = 0; i < count; i++)
        if (ids[i] < 0 || ids[i] >= vocab)
            return tec_fail(err, TEC_MALFORMED,
                            "'%.80s': token %zu is %d, the model's vocabulary has %d; the "
                            "tokenizer is another model's",
                            text, i + 1, ids[i], vocab);
    *out = (struct tec_token_text){ids, count > TEC_TREE_TOKENS ? TEC_TREE_TOKENS : (int)count};
    return TEC_OK;
}

/* Check that each answer fits into max_tokens and that none is the beginning of another, which
 * could not be told apart without an end token. */
static enum tec_status check_answers(const struct tec_decl_node *n, const struct tec_token_tree *t,
                                     bool spelt, struct tec_error *err)
{
    if (t->longest > n->max_tokens && !spelt) /* bytes are more than tokens */
        return tec_fail(err, TEC_MALFORMED, "the longest has %d tokens, max_tokens is %d",
                        t->longest, n->max_tokens);
    for (int i = 0; i < t->n_texts; i++)
        if (t->place[i] < t->n_rows)
            return tec_fail(err, TEC_MALFORMED,
                            "another one begins with '%.80s', and the model has no end token",
                            n->choices.item[i]);
    return TEC_OK;
}

/* The token behind a text: the model's, else the tokenizer's. */
static int end_token(const struct tec_model *model, const struct tec_tokenizer *tokenizer)
{
    if (model->text.eos >= 0)
        return model->text.eos;
    return tokenizer ? tec_tokenizer_eos(tokenizer) : model->text.vocab > 8 ? 2 : -1;
}

static enum tec_status read_list(struct tec_choice *c, const struct tec_model *model,
                                 const struct tec_tokenizer *tokenizer, struct tec_arena *arena,
                                 struct tec_error *err)
{
    const struct tec_decl_node *n = c->node;
    int vocab = model->text.vocab, count = n->choices.n;
    int eos = end_token(model, tokenizer);
    struct tec_token_text *texts = TEC_NEW(arena, (size_t)count, struct tec_token_text);
    if (!texts)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for %d texts", count);
    for (int i = 0; i < count; i++)
        TEC_TRY(tokenizer ? encode(tokenizer, n->choices.item[i], vocab, &texts[i], arena, err)
                          : spell(n->choices.item[i], vocab, &texts[i], arena, err));
    if (n->kind == TEC_DECL_SCORE && n->ends && eos < 0)
        return tec_fail(err, TEC_MALFORMED, "ends counts, but the model has no end token");
    const struct tec_tree_end end = {.token = n->kind == TEC_DECL_SCORE && !n->ends ? -1 : eos,
                                     .always = n->kind == TEC_DECL_SCORE};
    TEC_TRY(tec_token_tree_create(&c->tree, texts, count, end, arena, err));
    return n->kind == TEC_DECL_SCORE ? TEC_OK : check_answers(n, &c->tree, !tokenizer, err);
}

enum tec_status tec_choices_create(struct tec_choices *out, const struct tec_pipeline *p, int chain,
                                   const struct tec_model *model,
                                   const struct tec_tokenizer *tokenizer, struct tec_arena *arena,
                                   struct tec_error *err)
{
    *out = (struct tec_choices){.items = TEC_NEW(arena, (size_t)p->n_nodes + 1, struct tec_choice)};
    if (!out->items)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for lists of texts");
    for (int i = 0; i < p->n_nodes; i++) {
        struct tec_error why = {TEC_OK, ""};
        if (!has_list(&p->nodes[i], chain))
            continue;
        struct tec_choice *c = &out->items[out->n++];
        c->node = &p->nodes[i];
        if (read_list(c, model, tokenizer, arena, &why) != TEC_OK)
            return refuse(c->node, &why, err);
    }
    return TEC_OK;
}

static void grow(int *most, int n)
{
    *most = n > *most ? n : *most;
}

/* Sizes for the plan: the largest tree of nodes that rank, the sum of trie nodes of nodes that
 * choose. */
void tec_choices_fill(const struct tec_choices *choices, struct tec_plan_spec *s)
{
    for (int i = 0; i < choices->n; i++) {
        const struct tec_token_tree *t = &choices->items[i].tree;
        if (choices->items[i].node->kind != TEC_DECL_SCORE) {
            s->trie_nodes += t->n_nodes;
            continue;
        }
        grow(&s->trees.rows, t->n_rows);
        grow(&s->trees.entries, t->n_entries);
        grow(&s->trees.chains, t->n_chains);
        grow(&s->trees.spans, t->n_spans);
        grow(&s->new_tokens, t->longest);
        s->trees.depths = t->depths > s->trees.depths ? t->depths : s->trees.depths;
        s->trees.reached = t->reached > s->trees.reached ? t->reached : s->trees.reached;
    }
}

enum tec_status tec_choices_upload(struct tec_choices *choices, struct tec_plan *plan,
                                   struct tec_arena *scratch, struct tec_error *err)
{
    const struct tec_token_tree *trees[MAX_LISTS];
    int roots[MAX_LISTS], n = 0;
    for (int i = 0; i < choices->n; i++)
        if (choices->items[i].node->kind != TEC_DECL_SCORE && n < MAX_LISTS)
            trees[n++] = &choices->items[i].tree;
    if (n == 0)
        return TEC_OK;
    TEC_TRY(tec_planner_choose(plan, trees, n, roots, scratch, err));
    for (int i = choices->n; i-- > 0;)
        if (choices->items[i].node->kind != TEC_DECL_SCORE)
            choices->items[i].root = roots[--n];
    return TEC_OK;
}

const struct tec_choice *tec_choices_of(const struct tec_choices *choices,
                                        const struct tec_decl_node *node)
{
    for (int i = 0; i < choices->n; i++)
        if (choices->items[i].node == node)
            return &choices->items[i];
    return NULL;
}
