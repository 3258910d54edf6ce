/* roles.c - what the nodes of a resolved pipeline do: what they read, which make texts, which make
 * actions and in which order, for whom the frames are made. */
#include "graph/load/pipeline_texts.h"

/* --- what they read -------------------------------------------------------------------------- */

bool tec_decl_reads(const struct tec_decl_node *n, int input)
{
    for (int i = 0; i < n->reads.n; i++)
        if (n->reads.item[i].index == input)
            return true;
    return false;
}

int tec_pipeline_reads(const struct tec_pipeline *p, const struct tec_decl_node *n,
                       enum tec_input_kind kind)
{
    int count = 0;
    for (int i = 0; i < n->reads.n; i++)
        count += p->inputs[n->reads.item[i].index].kind == kind;
    return count;
}

/* The input that is a decode node's own prompt; -1 = none. */
static int prompt_input(const struct tec_decl_node *n)
{
    return n->kind == TEC_DECL_DECODE && !n->culled ? n->prompt.index : -1;
}

bool tec_pipeline_is_prompt(const struct tec_pipeline *p, int input)
{
    bool is = false;
    for (int i = 0; i < p->n_nodes; i++)
        is |= input >= 0 && prompt_input(&p->nodes[i]) == input;
    return is;
}

static bool same_prompt(const struct tec_decl_node *a, const struct tec_decl_node *b)
{
    return prompt_input(a) == prompt_input(b) && a->chain == b->chain;
}

int tec_pipeline_prompt_of(const struct tec_pipeline *p, const struct tec_decl_node *node)
{
    int n = 0, own = prompt_input(node);
    for (int i = 0; i < p->n_nodes; i++) {
        const struct tec_decl_node *o = &p->nodes[i];
        int other = prompt_input(o);
        bool first = other >= 0 && (other < own || (other == own && o->chain < node->chain));
        for (int k = 0; k < i; k++)
            first &= !same_prompt(&p->nodes[k], o);
        n += first;
    }
    return own < 0 ? -1 : n;
}

bool tec_pipeline_reads_text(const struct tec_pipeline *p, const struct tec_decl_node *node,
                             const struct tec_decl_node *text)
{
    bool reads = false;
    for (int k = 0; k < node->reads.n; k++) {
        int at = node->reads.item[k].index;
        reads |= at >= p->n_inputs && p->inputs[at].writer == 1 + (int)(text - p->nodes);
    }
    return reads;
}

int tec_pipeline_texts(const struct tec_pipeline *p, int chain, int at[TEC_MAX_TEXTS])
{
    int prefill = chain >= 0 && chain < p->n_chains ? p->chains[chain].prefill : -1, n = 0;
    for (int k = 0; prefill >= 0 && k < p->nodes[prefill].reads.n && n < TEC_MAX_TEXTS; k++) {
        int input = p->nodes[prefill].reads.item[k].index;
        if (p->inputs[input].kind == TEC_INPUT_TEXT)
            at[n++] = input;
    }
    return n;
}

bool tec_pipeline_composes(const struct tec_pipeline *p, int chain)
{
    int at[TEC_MAX_TEXTS], n = tec_pipeline_texts(p, chain, at);
    return n != 1 || p->inputs[at[0]].writer > 0;
}

bool tec_pipeline_remembers(const struct tec_pipeline *p, int chain)
{
    bool loads = false;
    for (int i = 0; i < p->n_nodes; i++)
        loads |= p->nodes[i].kind == TEC_DECL_MEMORY_LOAD && !p->nodes[i].culled &&
                 p->nodes[i].chain == chain;
    return loads;
}

/* --- what they make -------------------------------------------------------------------------- */

bool tec_decl_makes_text(const struct tec_decl_node *n)
{
    return n->kind == TEC_DECL_DECODE || n->kind == TEC_DECL_SCORE;
}

bool tec_pipeline_rings(const struct tec_pipeline *p, const struct tec_decl_node *n)
{
    return !n->culled && n->kind == TEC_DECL_DECODE && n->kv.index >= 0 &&
           p->resources[n->kv.index].kind == TEC_RESOURCE_RING;
}

const struct tec_decl_node *tec_pipeline_ring(const struct tec_pipeline *p, int i)
{
    for (int n = 0; n < p->n_nodes; n++)
        if (tec_pipeline_rings(p, &p->nodes[n]) && i-- == 0)
            return &p->nodes[n];
    return NULL;
}

const struct tec_decl_node *tec_pipeline_ring_of(const struct tec_pipeline *p, int chain)
{
    for (int n = 0; n < p->n_nodes; n++)
        if (p->nodes[n].chain == chain && tec_pipeline_rings(p, &p->nodes[n]))
            return &p->nodes[n];
    return NULL;
}

const struct tec_decl_node *tec_pipeline_action(const struct tec_pipeline *p, int i)
{
    for (int n = 0; n < p->n_nodes; n++) {
        const struct tec_decl_node *node = &p->nodes[n];
        bool acts = !node->culled && node->kind == TEC_DECL_ACTION;
        if ((acts || tec_pipeline_rings(p, node)) && i-- == 0)
            return node;
    }
    return NULL;
}

bool tec_pipeline_acts_before(const struct tec_decl_node *a, const struct tec_decl_node *b)
{
    bool x = a->deadline.kind == TEC_DEADLINE_HARD, y = b->deadline.kind == TEC_DEADLINE_HARD;
    if (x != y)
        return x;
    return x && a->deadline.ms != b->deadline.ms ? a->deadline.ms < b->deadline.ms : a < b;
}

const struct tec_decl_node *tec_pipeline_actor(const struct tec_pipeline *p)
{
    return tec_pipeline_action(p, 0);
}

/* --- for whom the frames are made ------------------------------------------------------------ */

/* The first hard node, else the first prefill. */
static const struct tec_decl_node *first_hard(const struct tec_pipeline *p)
{
    for (int hard = 1; hard >= 0; hard--)
        for (int i = 0; i < p->n_nodes; i++) {
            const struct tec_decl_node *n = &p->nodes[i];
            if (!n->culled &&
                (hard ? n->deadline.kind == TEC_DEADLINE_HARD : n->kind == TEC_DECL_PREFILL))
                return n;
        }
    return NULL;
}

const struct tec_decl_node *tec_pipeline_first(const struct tec_pipeline *p)
{
    const struct tec_decl_node *actor = tec_pipeline_actor(p);
    return actor ? actor : first_hard(p);
}

int tec_pipeline_main(const struct tec_pipeline *p)
{
    const struct tec_decl_node *first = tec_pipeline_actor(p);
    first = first && first->model.index >= 0 ? first : first_hard(p);
    return first && first->model.index >= 0 ? first->model.index : 0;
}

bool tec_pipeline_runs(const struct tec_pipeline *p, int i)
{
    for (int n = 0; n < p->n_nodes; n++)
        if (!p->nodes[n].culled && p->nodes[n].model.index == i)
            return true;
    return false;
}

/* Chains are known where nothing is wrong with the graph. */
bool tec_pipeline_in_frames(const struct tec_pipeline *p, const struct tec_decl_node *n)
{
    if (p->n_chains > 0)
        return n->chain >= 0 && p->chains[n->chain].in_frames;
    return n->model.index == tec_pipeline_main(p);
}
