#include "tools/costs_file.h"

#include "tools/expect.h"

#include <math.h>
#include <string.h>

/* Names, each once, joined for a sentence; at most what fits. */
struct names {
    int n;
    char text[160];
};

static void add_name(struct names *names, const char *name)
{
    size_t used = strlen(names->text);
    if (names->n++ < 6 && used + 48 < sizeof names->text)
        snprintf(names->text + used, sizeof names->text - used, "%s'%.40s'", used ? ", " : "",
                 name);
    else if (used + 5 < sizeof names->text && names->text[used - 1] != '.')
        memcpy(names->text + used, ", ...", 6);
}

static bool is_timed(const struct tec_decl_node *n)
{
    return !n->culled && (n->kind == TEC_DECL_PREFILL || n->kind == TEC_DECL_ACTION ||
                          n->kind == TEC_DECL_DECODE);
}

static int find_node(const struct tec_pipeline *p, const char *name)
{
    for (int i = 0; i < p->n_nodes; i++)
        if (is_timed(&p->nodes[i]) && strcmp(p->nodes[i].name, name) == 0)
            return i;
    return -1;
}

static enum tec_status compare(struct tec_invocation *call, const struct tec_cost_table *t,
                               const struct tec_pipeline *p, struct tec_error *err)
{
    struct names unknown = {.n = 0}, without = {.n = 0};
    const char *path = call->shared.costs;
    int known = 0;
    for (int i = 0; i < t->n_rows; i++) {
        bool first = i == 0 || strcmp(t->rows[i].node, t->rows[i - 1].node) != 0;
        bool found = find_node(p, t->rows[i].node) >= 0;
        known += found && first;
        if (first && !found)
            add_name(&unknown, t->rows[i].node);
    }
    for (int i = 0; i < p->n_nodes; i++)
        if (is_timed(&p->nodes[i]) && !tec_cost_table_row(t, p->nodes[i].name, 0))
            add_name(&without, p->nodes[i].name);
    if (!known)
        return tec_fail(err, TEC_MALFORMED,
                        "%.120s: its nodes are %s, none is in pipeline '%.40s'; measure it with "
                        "tectum profile -o FILE",
                        path, unknown.text, p->name);
    if (t->pipeline && strcmp(t->pipeline, p->name) != 0)
        tec_say(call, "%s: measured on pipeline '%.80s', used for '%s'", path, t->pipeline,
                p->name);
    if (unknown.n)
        tec_say(call, "%s: no node of '%s' is called %s; these rows are not used", path, p->name,
                unknown.text);
    if (without.n)
        tec_say(call, "%s: no row of %s; the warm-up says what these cost", path, without.text);
    return TEC_OK;
}

enum tec_status tec_costs_open(const struct tec_cost_table **out, struct tec_invocation *call,
                               const struct tec_pipeline *pipeline, struct tec_error *err)
{
    *out = NULL;
    if (!call->shared.costs)
        return TEC_OK;
    struct tec_cost_table *table = TEC_NEW(call->arena, 1, struct tec_cost_table);
    if (!table)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for costs");
    enum tec_path_kind kind = tec_path_kind(call->shared.costs);
    if (kind != TEC_PATH_UNKNOWN)
        return tec_expect(call->shared.costs, "a file of costs", err);
    TEC_TRY(tec_cost_table_read(table, call->shared.costs, call->arena, err));
    TEC_TRY(compare(call, table, pipeline, err));
    *out = table;
    return TEC_OK;
}

static double p99_ms(const struct tec_cost_table *t, const char *node)
{
    const struct tec_cost_row *row = tec_cost_table_row(t, node, 0);
    return row ? tec_cost_row_us(row, 0.99) / 1000.0 : 0.0;
}

/* What a frame runs before anything hard is done: its prefills. */
static double before_ms(const struct tec_cost_table *t, const struct tec_pipeline *p, char *text,
                        size_t room)
{
    double sum = 0.0;
    text[0] = '\0';
    for (int i = 0; i < p->n_nodes; i++) {
        if (!is_timed(&p->nodes[i]) || p->nodes[i].kind != TEC_DECL_PREFILL)
            continue;
        double ms = p99_ms(t, p->nodes[i].name);
        size_t used = strlen(text);
        if (used + 64 < room)
            snprintf(text + used, room - used, "%s%.40s %.3g", used ? " + " : "", p->nodes[i].name,
                     ms);
        sum += ms;
    }
    return sum;
}

void tec_costs_check(struct tec_diagnostics *d, const struct tec_cost_table *table,
                     const struct tec_pipeline *pipeline, const char *path)
{
    char before[200];
    double prefill = before_ms(table, pipeline, before, sizeof before);
    for (int i = 0; i < pipeline->n_nodes; i++) {
        const struct tec_decl_node *n = &pipeline->nodes[i];
        if (!is_timed(n) || n->deadline.kind != TEC_DEADLINE_HARD || n->kind != TEC_DECL_ACTION)
            continue;
        double own = p99_ms(table, n->name);
        if (prefill + own <= n->deadline.ms)
            continue;
        struct tec_diagnostic *entry = tec_diagnostics_add(
            d, TEC_E031, n->deadline.where_ms,
            "hard deadline %g ms is shorter than the measured critical path %.4g ms (p99: %s + "
            "%.40s %.3g)",
            n->deadline.ms, prefill + own, before, n->name, own);
        tec_diagnostics_help(d, entry,
                             "a deadline of at least %g ms, fewer steps or cameras, or a faster "
                             "device; measured in %.200s",
                             ceil(prefill + own), path);
    }
}
