/* top_views.c - prints requests, operations on keys and values, captured variants and the policy of
 * a robot, from its flight recorder and its answer about itself. */
#include "tools/record/top_views.h"

#include "base/escape.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_REQUESTS = 16, MOST_OPERATIONS = 48, MOST_HAPPENED = 5 };

static const struct {
    const char *name;
    char key;
} views[] = {
#define VIEW(name, key, text) {#name, key},
#include "tools/record/top_views.def"
#undef VIEW
};

enum tec_top_view tec_top_view_of(char key)
{
    int i = 0;
    while (i < TEC_TOP_VIEWS && views[i].key != key)
        i++;
    return (enum tec_top_view)i;
}

void tec_top_print_keys(FILE *out)
{
    for (int i = 0; i < TEC_TOP_VIEWS; i++)
        fprintf(out, "%s%c %s", i ? "  " : "", views[i].key, views[i].name);
}

/* --- requests --------------------------------------------------------------------------------- */

struct request {
    int64_t number;
    int session, node, tokens;
    int32_t frame; /* of its newest event */
    const char *state, *reason;
};

/* What a request has come to by an event; NULL: it changes no request. */
static const char *state_of(const struct tec_flight_event *e)
{
    static const char *const states[TEC_EVENTS] = {
        [TEC_EVENT_ARRIVE] = "asked",    [TEC_EVENT_ADMIT] = "has a slot",
        [TEC_EVENT_REFUSE] = "refused",  [TEC_EVENT_TOKENS] = "speaks",
        [TEC_EVENT_FINISH] = "finished", [TEC_EVENT_CANCEL] = "cancelled",
        [TEC_EVENT_SHED] = "shed",
    };
    if (e->kind == TEC_EVENT_CANCEL && !e->flag) /* it had ended */
        return NULL;
    return e->kind < TEC_EVENTS ? states[e->kind] : NULL;
}

/* The newest requests, the newest first. */
static int find_requests(struct request list[MOST_REQUESTS], const struct tec_flight *f)
{
    int n = 0;
    for (size_t i = f->n_events; i-- > 0;) {
        const struct tec_flight_event *e = &f->events[i];
        const char *state = state_of(e);
        int at = 0;
        while (at < n && (list[at].number != e->value || list[at].session != e->session))
            at++;
        if (!state || at == MOST_REQUESTS || e->value < 0) /* a ring's tokens are of none */
            continue;
        if (at == n)
            list[n++] = (struct request){.number = e->value,
                                         .session = e->session,
                                         .node = -1,
                                         .frame = e->frame,
                                         .state = state,
                                         .reason = f->words[e->what]};
        if (list[at].node < 0)
            list[at].node = e->node; /* of some kinds none is kept */
        bool made = e->kind == TEC_EVENT_TOKENS || e->kind == TEC_EVENT_FINISH;
        if (made && e->more > list[at].tokens)
            list[at].tokens = e->more;
    }
    return n;
}

static void print_requests(FILE *out, const struct tec_flight *f)
{
    struct request list[MOST_REQUESTS];
    int n = find_requests(list, f);
    fprintf(out, "%-9s %-14s %7s %9s %7s  %s\n", "REQUEST", "NODE", "SESSION", "FRAME", "TOKENS",
            "STATE");
    for (int i = n; i-- > 0;)
        fprintf(out, "%-9lld %-14.14s %7d %9d %7d  %s%s%s\n", (long long)list[i].number,
                tec_flight_node(f, list[i].node), list[i].session, (int)list[i].frame,
                list[i].tokens, list[i].state, list[i].reason[0] ? ": " : "", list[i].reason);
}

/* --- keys, values and memories ---------------------------------------------------------------- */

struct operation {
    uint8_t kv, what; /* words */
    size_t n;
    int64_t tokens;
    int32_t frame; /* of the newest */
};

static void print_operations(FILE *out, const struct tec_flight *f)
{
    struct operation list[MOST_OPERATIONS];
    int n = 0;
    for (size_t i = 0; i < f->n_events; i++) {
        const struct tec_flight_event *e = &f->events[i];
        int at = 0;
        while (at < n && (list[at].kv != e->count || list[at].what != e->what))
            at++;
        if (e->kind != TEC_EVENT_KV || at == MOST_OPERATIONS)
            continue;
        if (at == n)
            list[n++] = (struct operation){.kv = e->count, .what = e->what};
        list[at].n++;
        list[at].tokens += e->more;
        list[at].frame = e->frame;
    }
    fprintf(out, "%-14s %-10s %9s %9s %9s\n", "KV", "OPERATION", "TIMES", "TOKENS", "LAST");
    for (int i = 0; i < n; i++)
        fprintf(out, "%-14.14s %-10.10s %9zu %9lld %9d\n", f->words[list[i].kv],
                f->words[list[i].what], list[i].n, (long long)list[i].tokens, (int)list[i].frame);
}

/* One memory's state, or an object of such by name. */
static void print_memories(FILE *out, const char *name, const json_t *state)
{
    const json_t *stored = json_object_get(state, "stored"), *value;
    const char *key, *trouble = json_string_value(json_object_get(state, "trouble"));
    if (!json_is_number(stored)) {
        json_object_foreach((json_t *)(uintptr_t)state, key,
                            value) if (json_object_get(value, "stored"))
            print_memories(out, key, value);
        return;
    }
    const json_t *damaged = json_object_get(state, "damaged");
    fprintf(out, "memory %s%s%lld stored, %lld damaged records%s%s%s\n", name, name[0] ? ": " : "",
            (long long)json_integer_value(stored),
            (long long)json_integer_value(json_object_get(damaged, "records")),
            json_is_false(json_object_get(state, "writable")) ? ", cannot be written" : "",
            trouble ? ": " : "", trouble ? trouble : "");
}

/* The same, or of several sessions a list of it. */
static void print_sessions(FILE *out, const json_t *state)
{
    if (!json_is_array(state))
        print_memories(out, "", state);
    for (size_t i = 0; i < json_array_size(state); i++) {
        fprintf(out, "session %zu: ", i);
        print_memories(out, "", json_array_get(state, i));
    }
}

/* --- captured variants ------------------------------------------------------------------------ */

static void print_graphs(FILE *out, const struct tec_flight *f)
{
    size_t last[TEC_FLIGHT_KINDS_OF_LAUNCH];
    memset(last, 0xff, sizeof last);
    for (size_t i = 0; i < f->n_launches; i++)
        if (f->launches[i].usual >= 0 && f->launches[i].usual < f->n_usual)
            last[f->launches[i].usual] = i;
    fprintf(out, "%-14s %-10s %6s %6s %4s %9s %9s %9s %9s\n", "NODE", "", "ROWS", "OF", "K",
            "TIMES", "p50 ms", "p99 ms", "LAST");
    for (int i = 0; i < f->n_usual; i++) {
        if (last[i] == SIZE_MAX)
            continue;
        const struct tec_flight_launch *l = &f->launches[last[i]];
        const struct tec_usual *usual = tec_flight_usual(f, l);
        long long frame = l->frame < f->n_frames ? (long long)f->frames[l->frame].frame : -1;
        const char *node = tec_flight_node(f, l->node);
        char of[16] = "-", steps[16] = "-"; /* a hard node has neither */
        if (l->padded)
            snprintf(of, sizeof of, "%d", l->padded);
        if (l->k)
            snprintf(steps, sizeof steps, "%d", l->k);
        fprintf(out, "%-14.14s %-10.10s %6d %6s %4s %9zu %9.2f %9.2f %9lld\n", node,
                strcmp(l->what, node) == 0 ? "" : l->what, l->rows, of, steps, usual->n,
                (double)usual->p50_us / 1e3, (double)usual->p99_us / 1e3, frame);
    }
}

/* --- the policy ------------------------------------------------------------------------------- */

static void print_number(FILE *out, const json_t *from, const char *key, const char *unit)
{
    const json_t *value = json_object_get(from, key);
    if (json_is_number(value))
        fprintf(out, "  %s %.6g%s", key, json_number_value(value), unit);
}

static void print_named(FILE *out, const json_t *status, const char *key)
{
    const json_t *of = json_object_get(status, key);
    const char *name = json_string_value(json_object_get(of, "policy"));
    if (name)
        fprintf(out, "%s: %s@%d\n", key, name,
                (int)json_integer_value(json_object_get(of, "version")));
}

static void print_happened(FILE *out, const json_t *events)
{
    size_t n = json_array_size(events);
    for (size_t i = n > MOST_HAPPENED ? n - MOST_HAPPENED : 0; i < n; i++) {
        const json_t *e = json_array_get(events, i);
        const char *what = json_string_value(json_object_get(e, "event"));
        const char *said = json_string_value(json_object_get(e, "message"));
        fprintf(out, "frame %lld: %s  %s\n",
                (long long)json_integer_value(json_object_get(e, "frame")), what ? what : "?",
                said ? said : "");
    }
}

static void print_policy(FILE *out, const struct tec_cadence *c, const json_t *status)
{
    const json_t *report = json_object_get(status, "report"), *value;
    json_t *params = json_object_get(status, "params");
    const char *name = json_string_value(json_object_get(status, "policy")), *key;
    const char *decides = json_string_value(json_object_get(status, "decides"));
    fprintf(out, "policy %s  plan p50 %lld us max %lld us", name ? name : c->policy,
            (long long)c->policy_p50_us, (long long)c->policy_max_us);
    if (decides && name && strcmp(decides, name) != 0)
        fprintf(out, "  decides: %s", decides);
    print_number(out, report, "calls", "");
    print_number(out, report, "failures", "");
    print_number(out, report, "slow", "");
    print_number(out, report, "strikes", "");
    fprintf(out, "%s%s\n",
            json_is_true(json_object_get(status, "quarantined")) ? "  quarantined" : "",
            json_is_true(json_object_get(status, "standby")) ? "  standby" : "");
    json_object_foreach(params, key, value)
        fprintf(out, "  %s = %.6g\n", key, json_number_value(value));
    print_named(out, status, "candidate");
    print_named(out, status, "previous");
    print_happened(out, json_object_get(status, "events"));
}

static void print_view(FILE *out, enum tec_top_view view, const struct tec_flight *f,
                       const struct tec_cadence *c, const json_t *status)
{
    if (view == TEC_TOP_nodes) {
        tec_cadence_print(out, f, c);
        return;
    }
    const char *name = json_string_value(json_object_get(f->about, "pipeline"));
    fprintf(out, "%s  frame %lld\n", name ? name : "", (long long)c->newest);
    if (view == TEC_TOP_requests)
        print_requests(out, f);
    if (view == TEC_TOP_graphs)
        print_graphs(out, f);
    if (view == TEC_TOP_policy)
        print_policy(out, c, status);
    if (view != TEC_TOP_memory)
        return;
    print_operations(out, f);
    print_sessions(out, json_object_get(status, "memory"));
}

/* Names and texts of a recording may hold what a terminal obeys: each line is printed escaped. */
void tec_top_print(FILE *out, enum tec_top_view view, const struct tec_flight *f,
                   const struct tec_cadence *c, const json_t *status)
{
    char *text = NULL;
    size_t n = 0;
    FILE *lines = open_memstream(&text, &n);
    if (!lines)
        return;
    print_view(lines, view, f, c, status);
    if (fclose(lines) == 0)
        for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
            *end = '\0';
            tec_escape_print(out, line);
            fputc('\n', out);
        }
    free(text);
}
