/* check_memory.c - where a memory is: a store is a path as it stands, a server has an address that
 * is understood; and that a segment has room in a prompt. */
#include "graph/load/loader.h"
#include "graph/load/pipeline_texts.h"
#include "graph/memory/remote.h"

#include <stdlib.h>
#include <string.h>

const char *tec_pipeline_memory_of(const struct tec_pipeline *p, const struct tec_decl_node *load,
                                   const char *name, struct tec_arena *arena)
{
    const struct tec_decl_node *first = load;
    for (int i = 0; i < p->n_nodes; i++) {
        const struct tec_decl_node *n = &p->nodes[i];
        bool loads = n->kind == TEC_DECL_MEMORY_LOAD && !n->culled;
        if (loads && n->from.index == load->from.index &&
            (n->chain < first->chain || (n->chain == first->chain && n < first)))
            first = n;
    }
    return first == load ? name : tec_arena_printf(arena, "%s.%s", name, load->name);
}

/* What is wrong with the path of a store: it would be taken as it stands and name a folder "~" or
 * "redis:". NULL: nothing. */
static const char *wrong_store(const char *path)
{
    if (!path[0])
        return "is a path, and this one is empty: leave it out for a memory that is not kept";
    if (strncmp(path, "file:", 5) == 0)
        return "is a path and no URL: leave out what stands before it";
    if (strstr(path, "://") || strncmp(path, "unix:", 5) == 0)
        return "is a file, and this is an address; 'remote' names a server that shares the memory";
    if (path[0] == '~' || path[0] == '$')
        return "is a path as it stands: '~' and '$' are not expanded";
    return NULL;
}

/* Is this the file that one of the sessions has: the path, of a later session with ".N"? */
static bool is_of_session(const char *file, const char *path, int sessions)
{
    size_t n = strlen(path);
    char *end = NULL;
    if (strcmp(file, path) == 0)
        return true;
    if (strncmp(file, path, n) != 0 || file[n] != '.' || file[n + 1] < '1' || file[n + 1] > '9')
        return false;
    long session = strtol(file + n + 1, &end, 10);
    return *end == '\0' && session < sessions;
}

/* The file of a node's memory, of its first session; NULL: it has none. */
static const char *file_of(struct tec_loader *ld, const struct tec_decl_node *n, int resource)
{
    const struct tec_pipeline *p = ld->pipeline;
    bool loads = n->kind == TEC_DECL_MEMORY_LOAD && !n->culled && n->from.index == resource;
    const char *store = loads ? p->resources[resource].store : NULL;
    return store ? tec_pipeline_memory_of(p, n, store, ld->scratch) : NULL;
}

/* A file that the memories of two kv.segments have in common, of any node and session; NULL: none.
 */
static const char *common_file(struct tec_loader *ld, int i, int j)
{
    const struct tec_pipeline *p = ld->pipeline;
    int sessions = p->frame.sessions;
    for (int a = 0; a < p->n_nodes; a++) {
        const char *mine = file_of(ld, &p->nodes[a], i);
        for (int b = 0; mine && b < p->n_nodes; b++) {
            const char *other = file_of(ld, &p->nodes[b], j);
            if (other && is_of_session(mine, other, sessions))
                return mine;
            if (other && is_of_session(other, mine, sessions))
                return other;
        }
    }
    return NULL;
}

static void report(struct tec_loader *ld, int i, const char *field, const char *given,
                   const char *what)
{
    struct tec_diagnostic *d = tec_diagnostics_add(
        ld->d, TEC_E011, tec_where_field(ld, &ld->resources[i], field), "%s", what);
    if (d)
        d->secret = strchr(given, '@') != NULL;
}

/* No file of a memory may be one of an earlier kv.segments. */
static void check_file(struct tec_loader *ld, int i)
{
    const struct tec_pipeline *p = ld->pipeline;
    const char *store = p->resources[i].store, *file = NULL;
    struct tec_error why;
    for (int j = 0; store && j < i && !file; j++) {
        file = common_file(ld, i, j);
        if (!file)
            continue;
        (void)tec_fail(&why, TEC_INVALID,
                       "'%s' would write a file of '%s', '%s': each has its own%s",
                       p->resources[i].name, p->resources[j].name, file,
                       p->frame.sessions > 1 ? ", a later session's ends in its number" : "");
        report(ld, i, "store", store, why.message);
    }
}

/* Segments stand in a prompt: its prefill waits for them, so they cannot wait for it. */
static void check_after(struct tec_loader *ld, int i)
{
    const struct tec_pipeline *p = ld->pipeline;
    const struct tec_decl_node *n = &p->nodes[i];
    int at = n->kind == TEC_DECL_MEMORY_LOAD ? n->after.index : -1, into = n->into.index;
    const struct tec_decl_node *early = at >= 0 && into >= 0 ? &p->nodes[at] : NULL;
    if (!early || early->kind != TEC_DECL_PREFILL || early->writes.index != into)
        return;
    struct tec_where where = tec_where_field(ld, &ld->nodes[i], "after");
    tec_diagnostics_take_back(ld->d, TEC_E026, where); /* that it is on a circle */
    struct tec_diagnostic *d = tec_diagnostics_add(
        ld->d, TEC_E026, where,
        "'%s' waits for '%s', which waits for it: its segments stand in that prompt",
        n->name ? n->name : "?", early->name ? early->name : "?");
    tec_diagnostics_help(ld->d, d,
                         "leave it out, or name another memory_load, which then stands before it");
}

/* How near to who asks a field was written: 2 by --set, 1 in the file itself, 0 in one that it
 * extends. Of two that contradict each other it is the nearer one that was changed. */
static int changed_by(const struct tec_loader *ld, const struct tec_where *where)
{
    return !where->file                               ? 0
           : strcmp(where->file, "--set") == 0        ? 2
           : strcmp(where->file, ld->sources[0].file) ? 0
                                                      : 1;
}

/* A segment that no prompt has room for would never be in one. */
static void check_length(struct tec_loader *ld, const struct tec_decl_node *n)
{
    const struct tec_pipeline *p = ld->pipeline;
    int input = n->kind == TEC_DECL_MEMORY_LOAD && n->reads.n ? n->reads.item[0].index : -1;
    int from = input >= 0 ? n->from.index : -1;
    if (from < 0 || p->resources[from].kind != TEC_RESOURCE_SEGMENTS ||
        p->inputs[input].tokens_each <= p->resources[from].tokens)
        return;
    struct tec_where each = tec_where_field(ld, &ld->inputs[input], "tokens_each"),
                     all = tec_where_field(ld, &ld->resources[from], "tokens");
    bool changed = changed_by(ld, &all) > changed_by(ld, &each);
    struct tec_diagnostic *d = tec_diagnostics_add(
        ld->d, TEC_E011, changed ? all : each,
        "a segment of '%s' has up to %d tokens, all of '%s' in a prompt together %d",
        p->inputs[input].name ? p->inputs[input].name : "?", p->inputs[input].tokens_each,
        p->resources[from].name ? p->resources[from].name : "?", p->resources[from].tokens);
    tec_diagnostics_also(ld->d, d, changed ? each : all,
                         changed ? "tokens of one segment"
                                 : "tokens of all segments in use together");
}

void tec_check_memory(struct tec_loader *ld)
{
    const struct tec_pipeline *p = ld->pipeline;
    for (int i = 0; i < p->n_nodes; i++) {
        check_after(ld, i);
        check_length(ld, &p->nodes[i]);
    }
    for (int i = 0; i < p->n_resources; i++) {
        const struct tec_remote_options options = {.address = p->resources[i].remote};
        const char *store = p->resources[i].store, *wrong = store ? wrong_store(store) : NULL;
        struct tec_error why = {TEC_OK, ""};
        if (wrong) {
            (void)tec_fail(&why, TEC_INVALID, "a memory's store %s", wrong);
            report(ld, i, "store", store, why.message);
        } else {
            check_file(ld, i);
        }
        if (tec_remote_check(&options, &why) != TEC_OK)
            report(ld, i, "remote", options.address, why.message);
    }
}
