/* bench_rows.c - what is measured: a row for each policy, parameter's value and way of running. */
#include "tools/measure/bench.h"

#include "base/nearest.h"
#include "tools/api/topology.h"

#include <stdlib.h>
#include <string.h>

static bool has_param(const struct tec_policy *policy, const char *word, size_t n)
{
    const struct tec_param *p;
    for (int i = 0; (p = tec_policy_param(policy, i)); i++)
        if (strlen(p->name) == n && strncmp(p->name, word, n) == 0)
            return true;
    return false;
}

static enum tec_status set_param(struct tec_policy *policy, const char *word, size_t n,
                                 const char *value, struct tec_error *err)
{
    char name[64], *end;
    double number = strtod(value, &end);
    if (end == value || *end != '\0' || n >= sizeof name)
        return tec_fail(err, TEC_INVALID, "'%s': '%s' is not a number", word, value);
    memcpy(name, word, n);
    name[n] = '\0';
    return tec_policy_set_param(policy, name, number, err);
}

/* No row's policy has the parameter of "NAME=...": say which of theirs was probably meant. */
static enum tec_status fail_unused(const struct tec_bench *b, const char *option, const char *word,
                                   const char *advice, struct tec_error *err)
{
    const char *names[4 * TEC_MAX_PARAMS];
    char wrong[64];
    const struct tec_param *p;
    int n = 0;
    for (int r = 0; r < b->n_rows; r++)
        for (int i = 0; n < 4 * TEC_MAX_PARAMS && (p = tec_policy_param(b->rows[r].owner, i)); i++)
            names[n++] = p->name;
    snprintf(wrong, sizeof wrong, "%.*s", (int)strcspn(word, "="), word);
    const char *near = tec_nearest(wrong, names, n);
    return tec_fail(err, TEC_INVALID, "--%s %.100s: no policy here has it%s%s", option, word,
                    tec_meant(';', near).text, near ? "" : advice);
}

int tec_bench_actions(const struct tec_bench *b)
{
    int n = tec_loop_settings(b->opened.engine->loop)->n_actions;
    return n > 1 ? n : 0;
}

/* Samples for every frame of a row; launches may be several a frame, then the rest is left out. */
static bool give_samples(struct tec_bench *b, struct tec_bench_row *r)
{
    size_t room = (size_t)b->frames * (size_t)b->n_sessions;
    struct tec_samples *all[] = {&r->frame, &r->action, &r->host, &r->age,  &r->prefill,
                                 &r->act,   &r->step1,  &r->step, &r->lives};
    bool ok = true;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        all[i]->room = (int)room;
        all[i]->ns = TEC_NEW(b->call->arena, room, int64_t);
        ok = ok && all[i]->ns;
    }
    for (int i = 0; ok && i < tec_bench_actions(b); i++) {
        r->released[i].room = (int)room;
        r->released[i].ns = TEC_NEW(b->call->arena, room, int64_t);
        ok = r->released[i].ns != NULL;
    }
    r->nodes = TEC_NEW(b->call->arena, (size_t)b->n_nodes + 1, struct tec_histogram);
    return ok && r->nodes;
}

static enum tec_status add_row(struct tec_bench *b, const char *name, const char *sweep,
                               const char *value, bool apart, bool *used, struct tec_error *err)
{
    struct tec_bench_row *r = &b->rows[b->n_rows];
    const struct tec_words *words = &b->call->shared.param;
    if (b->n_rows == TEC_BENCH_ROWS)
        return tec_fail(err, TEC_INVALID, "more than %d rows: fewer policies or values",
                        TEC_BENCH_ROWS);
    TEC_TRY(tec_opened_status(tec_open_policy(&r->owner, b->opened.pipeline, name, b->call->root,
                                              &b->opened.engine->topology, NULL, 0, b->call->heap,
                                              err)));
    b->n_rows++; /* closed with the others from here on */
    r->planner = tec_policy_planner(r->owner);
    r->policy = tec_policy_name(r->owner);
    r->apart = apart;
    for (int i = 0; i < words->n; i++) {
        const char *equals = strchr(words->item[i], '=');
        size_t n = equals ? (size_t)(equals - words->item[i]) : 0;
        if (!equals || !has_param(r->owner, words->item[i], n))
            continue;
        used[i] = true;
        TEC_TRY(set_param(r->owner, words->item[i], n, equals + 1, err));
    }
    if (value)
        TEC_TRY(set_param(r->owner, sweep, strcspn(sweep, "="), value, err));
    r->params = tec_used_params(b->call->arena, r->owner,
                                !b->apart ? ""
                                : apart   ? "apart"
                                          : "together");
    return r->params && give_samples(b, r) ? TEC_OK
                                           : tec_fail(err, TEC_NO_MEMORY, "no memory for samples");
}

/* The next word of a list with commas; NULL past the last one. */
static const char *next_word(struct tec_arena *arena, const char **list)
{
    if (!*list || !**list)
        return NULL;
    size_t n = strcspn(*list, ",");
    const char *word = tec_arena_strndup(arena, *list, n);
    *list += n + ((*list)[n] == ',');
    return word;
}

/* A row, and behind it that of the sessions' frames apart. */
static enum tec_status add_both(struct tec_bench *b, const char *name, const char *sweep,
                                const char *value, bool *used, struct tec_error *err)
{
    TEC_TRY(add_row(b, name, sweep, value, false, used, err));
    return b->apart ? add_row(b, name, sweep, value, true, used, err) : TEC_OK;
}

static enum tec_status add_rows(struct tec_bench *b, const char *name, const char *sweep,
                                bool *used, bool *swept, struct tec_error *err)
{
    int first = b->n_rows;
    TEC_TRY(add_both(b, name, NULL, NULL, used, err));
    size_t n = sweep ? strcspn(sweep, "=") : 0;
    if (!sweep || !has_param(b->rows[first].owner, sweep, n))
        return TEC_OK;
    *swept = true;
    while (b->n_rows > first) {
        struct tec_bench_row *last = &b->rows[--b->n_rows];
        tec_policy_close(last->owner);
        memset(last, 0, sizeof *last);
    }
    const char *values = sweep + n + 1, *value;
    while ((value = next_word(b->call->arena, &values)))
        TEC_TRY(add_both(b, name, sweep, value, used, err));
    return TEC_OK;
}

/* List the names under which times are kept. A ring's launch runs two nodes at once, so it has a
 * name of its own. */
static void name_nodes(struct tec_bench *b)
{
    const struct tec_topology *t = &b->opened.engine->topology;
    for (int i = 0; i < t->n_nodes; i++)
        b->nodes[i] = t->nodes[i].name;
    b->n_nodes = t->n_nodes;
    if (!t->n_rings)
        return;
    b->nodes[0] = "packed";
    b->nodes[1] = "decode";
    b->n_nodes = 2;
    for (int i = 0; i < t->n_nodes; i++)
        if (!t->nodes[i].ring)
            b->nodes[b->n_nodes++] = t->nodes[i].name;
}

enum tec_status tec_bench_make_rows(struct tec_bench *b, const char *policies, const char *sweep,
                                    struct tec_error *err)
{
    name_nodes(b);
    const struct tec_words *words = &b->call->shared.param;
    bool *used = TEC_NEW(b->call->arena, (size_t)words->n + 1, bool), swept = false;
    const char *name;
    if (!used)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for rows");
    if (sweep && (!strchr(sweep, '=') || !strchr(sweep, '=')[1]))
        return tec_fail(err, TEC_INVALID, "--sweep is NAME=v1,v2, is '%s'", sweep);
    if (!policies)
        TEC_TRY(add_rows(b, NULL, sweep, used, &swept, err));
    while ((name = next_word(b->call->arena, &policies)))
        TEC_TRY(add_rows(b, name, sweep, used, &swept, err));
    for (int i = 0; i < words->n; i++)
        if (!used[i])
            return fail_unused(b, "param", words->item[i], "", err);
    return sweep && !swept
               ? fail_unused(b, "sweep", sweep,
                             "; a field of the pipeline is set with --set, one run each", err)
               : TEC_OK;
}

void tec_bench_close_rows(struct tec_bench *b)
{
    for (int i = 0; i < b->n_rows; i++)
        tec_policy_close(b->rows[i].owner);
    b->n_rows = 0;
}
