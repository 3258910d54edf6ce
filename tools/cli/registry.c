/* registry.c - prints the .def lists that the engine is made of (ops, kernels and others), as text
 * or JSON. */
#include "tools/cli/registry.h"

#include "base/json_text.h"
#include "base/nearest.h"

#include <jansson.h>
#include <string.h>

enum { COLUMNS = 4 };

struct row {
    const char *cells[COLUMNS];
};

struct registry {
    const char *name;
    const char *columns[COLUMNS]; /* ended by NULL */
    const struct row *rows;
    int n;
};

static const struct row ops[] = {
#define OP(name, inputs, outputs, text) {{#name, inputs, outputs, text}},
#include "ops/ops.def"
#undef OP
};
static const struct row kernels[] = {
#define KERNEL(name, args) {{#name, #args}},
#include "kernels/kernels.def"
#undef KERNEL
};
static const struct row nodes[] = {
#define NODE(name, text) {{#name, text}},
#include "graph/nodes/nodes.def"
#undef NODE
};
static const struct row hooks[] = {
#define HOOK(name, args, meaning, without) {{#name, args, meaning, without}},
#include "policies/hooks.def"
};
static const struct row status[] = {
#define STATUS(name, text) {{#name, text}},
#include "base/status.def"
#undef STATUS
};
static const struct row passes[] = {
#define NODE_PASS(name, text) {{#name, text}},
#define PASS(name, text) {{#name, text}},
#include "graph/compile/passes.def"
#undef NODE_PASS
#undef PASS
};
static const struct row tiers[] = {
#define TIER(name) {{#name}},
#include "kernels/tiers.def"
#undef TIER
};
static const struct row verbs[] = {
#define COMMAND(name, text) {{#name, text}},
#include "tools/cli/commands.def"
#undef COMMAND
};

static const struct row machines[] = {
#define PEAK(name, title, bf16, f32, memory, ...) \
    {{#name, title, #bf16 " TFLOP/s", #memory " GB/s"}},
#include "tools/measure/peaks.def"
};

#define LIST(list, ...)                                                    \
    {                                                                      \
#list, {__VA_ARGS__ }, list, (int)(sizeof(list) / sizeof(list)[0]) \
    }
static const struct registry registries[] = {
    LIST(ops, "name", "inputs", "outputs", "text"),
    LIST(kernels, "name", "args"),
    LIST(nodes, "name", "text"),
    LIST(hooks, "name", "args", "meaning", "without"),
    LIST(status, "name", "text"),
    LIST(passes, "name", "text"),
    LIST(tiers, "name"),
    LIST(verbs, "name", "text"),
    LIST(machines, "name", "title", "bf16", "memory"),
};
enum { N_REGISTRIES = sizeof registries / sizeof registries[0] };

static int count_columns(const struct registry *r)
{
    int n = 0;
    while (n < COLUMNS && r->columns[n])
        n++;
    return n;
}

static void print_text(const struct registry *r, FILE *out)
{
    int width[COLUMNS] = {0}, columns = count_columns(r);
    for (int i = 0; i < r->n; i++)
        for (int c = 0; c < columns; c++)
            if ((int)strlen(r->rows[i].cells[c]) > width[c])
                width[c] = (int)strlen(r->rows[i].cells[c]);
    for (int i = 0; i < r->n; i++)
        for (int c = 0; c < columns; c++)
            fprintf(out, "%-*s%s", c + 1 < columns ? width[c] : 0, r->rows[i].cells[c],
                    c + 1 < columns ? "  " : "\n");
}

static enum tec_status print_json(const struct registry *r, FILE *out, struct tec_error *err)
{
    json_t *list = json_array();
    for (int i = 0; i < r->n; i++) {
        json_t *entry = json_object();
        for (int c = 0; c < count_columns(r); c++)
            json_object_set_new(entry, r->columns[c], json_string(r->rows[i].cells[c]));
        json_array_append_new(list, entry);
    }
    enum tec_status printed = tec_json_print(out, list, JSON_INDENT(1), "a list", err);
    json_decref(list);
    return printed;
}

enum tec_status tec_registry_print(const char *name, bool json, FILE *out, struct tec_error *err)
{
    const char *names[N_REGISTRIES];
    for (int i = 0; i < N_REGISTRIES; i++) {
        names[i] = registries[i].name;
        if (strcmp(names[i], name) != 0)
            continue;
        if (json)
            return print_json(&registries[i], out, err);
        print_text(&registries[i], out);
        return TEC_OK;
    }
    const char *near = tec_nearest(name, names, N_REGISTRIES);
    return tec_fail(err, TEC_INVALID,
                    "--list: no list '%s'%s%s%s: ops, kernels, nodes, hooks, "
                    "status, passes, tiers, verbs, machines",
                    name, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}
