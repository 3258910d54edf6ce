/* robots.c - the robots of a pipeline: their descriptions, whose an input is, whose actions a chain
 * makes, whose inputs it reads.
 *
 * Runs at load. `robot` declares the only one, and all inputs are its; of `robots` each has a name,
 * and NAME/... are its inputs. A chain that makes actions belongs to the robot whose inputs its
 * prefill reads; another may read those of several. */
#include "graph/load/loader.h"
#include "graph/transform/robot.h"

#include <string.h>

/* --- descriptions ---------------------------------------------------------------------------- */

/* A mistake stands in the robot's own file where that is known, else at the pipeline's `robot`. */
static void tell(struct tec_loader *ld, const struct tec_decl_robot *robot,
                 const struct tec_decl_entry *e, const char *message, const char *variant)
{
    size_t n = robot->path ? strlen(robot->path) : 0;
    bool own = n > 0 && strncmp(message, robot->path, n) == 0 && strncmp(message + n, ": ", 2) == 0;
    const char *chosen = json_string_value(json_object_get(robot->description, "variant"));
    struct tec_where where;
    if (!own ||
        !tec_loader_robot_place(ld, robot, message + n + 2, variant ? variant : chosen, &where)) {
        tec_diagnostics_add(ld->d, TEC_E011, tec_where_value(ld, e), "%s", message);
        return;
    }
    struct tec_diagnostic *d = tec_diagnostics_add(ld->d, TEC_E011, where, "%s", message + n + 2);
    tec_diagnostics_also(ld->d, d, tec_where_value(ld, e), "the robot of this pipeline");
}

/* The description's own checks say what is wrong with it. */
static void check_description(struct tec_loader *ld, const struct tec_decl_robot *robot,
                              const struct tec_decl_entry *e)
{
    const struct tec_decl_entry *variant = tec_decl_value_find(ld->root, "variant");
    const char *name =
        variant && variant->value->kind == TEC_VALUE_STRING ? variant->value->string : NULL;
    const char *where = robot->path ? robot->path : "robot";
    struct tec_error why = {TEC_OK, ""};
    struct tec_robot *read;
    enum tec_status status =
        tec_robot_parse(&read, robot->description, name, where, ld->scratch, &why);
    ld->out_of_memory |= status == TEC_NO_MEMORY;
    if (status == TEC_NOT_FOUND && name)
        tec_diagnostics_add(ld->d, TEC_E021, tec_where_value(ld, variant), "%s", why.message);
    else if (status != TEC_OK)
        tell(ld, robot, e, why.message, name);
}

/* A path or a table; false: it is neither. */
static bool describe(struct tec_loader *ld, const struct tec_decl_entry *e,
                     struct tec_decl_robot *robot)
{
    const struct tec_decl_value *v = e->value;
    struct tec_error why = {TEC_OK, ""};
    bool empty = v->kind == TEC_VALUE_LIST && v->n == 0;
    robot->where = tec_where_value(ld, e);
    if (v->kind == TEC_VALUE_TABLE || empty) {
        robot->description = empty ? json_object() : tec_decl_value_to_json(v);
        ld->out_of_memory |= robot->description == NULL;
    } else if (v->kind != TEC_VALUE_STRING) {
        return false;
    } else if (tec_loader_robot(ld, robot, v->string, &why) != TEC_OK) {
        ld->out_of_memory |= why.status == TEC_NO_MEMORY;
        tec_diagnostics_add(ld->d, why.status == TEC_NOT_FOUND ? TEC_E021 : TEC_E001, robot->where,
                            "%s", why.message);
    }
    if (robot->description)
        check_description(ld, robot, e);
    return true;
}

static struct tec_decl_robot *make_room(struct tec_loader *ld, int n)
{
    struct tec_decl_robot *robots = TEC_NEW(ld->arena, (size_t)n, struct tec_decl_robot);
    ld->out_of_memory |= robots == NULL;
    ld->pipeline->robots = robots;
    return robots;
}

void tec_set_robot(struct tec_loader *ld, const struct tec_field *f, const struct tec_decl_entry *e,
                   void *out)
{
    struct tec_decl_robot *robot = make_room(ld, 1);
    (void)out;
    if (!robot)
        return;
    if (describe(ld, e, robot))
        ld->pipeline->n_robots = 1;
    else
        tec_set_wrong(ld, f, e);
}

/* The name begins the names of its inputs. */
static bool names_inputs(const char *name)
{
    size_t n = strlen(name);
    return n > 0 && n <= 40 &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == n;
}

void tec_set_robots(struct tec_loader *ld, const struct tec_field *f,
                    const struct tec_decl_entry *e, void *out)
{
    const struct tec_decl_value *v = e->value;
    struct tec_pipeline *p = ld->pipeline;
    (void)out;
    if (v->kind != TEC_VALUE_TABLE || v->tag != TEC_CON_NONE || v->n == 0) {
        tec_set_wrong(ld, f, e);
        return;
    }
    if (p->n_robots || v->n > TEC_MAX_ROBOTS) {
        tec_diagnostics_add(ld->d, TEC_E011, tec_where_key(ld, e),
                            p->n_robots
                                ? "both 'robot' and 'robots' are given: list all in 'robots'"
                                : "%d robots, the most is %d",
                            v->n, TEC_MAX_ROBOTS);
        return;
    }
    struct tec_decl_robot *robots = make_room(ld, v->n);
    for (int i = 0; robots && i < v->n; i++) {
        const struct tec_decl_entry *one = &v->entries[i];
        struct tec_decl_robot *robot = &robots[p->n_robots];
        robot->name = one->key;
        if (!names_inputs(one->key))
            tec_diagnostics_add(ld->d, TEC_E011, tec_where_key(ld, one),
                                "a robot's name is of letters, digits, _ and -, at most 40");
        else if (describe(ld, one, robot))
            p->n_robots++;
        else
            tec_diagnostics_add(ld->d, TEC_E011, tec_where_value(ld, one),
                                "robot '%s' must be the path of a robot description, or a table, "
                                "is %s",
                                one->key, tec_decl_value_describe(ld, one->value));
    }
}

/* --- whose an input is ----------------------------------------------------------------------- */

static bool named(const struct tec_pipeline *p)
{
    return p->n_robots > 0 && p->robots[0].name;
}

/* The robot whose name an input's begins with; -1 = none. */
static int robot_of(const struct tec_pipeline *p, const char *input)
{
    for (int i = 0; input && named(p) && i < p->n_robots; i++) {
        size_t n = strlen(p->robots[i].name);
        if (strncmp(input, p->robots[i].name, n) == 0 && input[n] == '/')
            return i;
    }
    return named(p) ? -1 : 0;
}

int tec_pipeline_robot_of(const struct tec_pipeline *p, int input)
{
    return robot_of(p, p->inputs[input].name);
}

void tec_check_robots(struct tec_loader *ld)
{
    const struct tec_pipeline *p = ld->pipeline;
    for (int i = 0; i < p->n_inputs; i++) {
        const struct tec_decl_input *in = &p->inputs[i];
        bool sensor = in->kind == TEC_INPUT_IMAGE || in->kind == TEC_INPUT_TENSOR;
        if (!in->name || !sensor || robot_of(p, in->name) >= 0)
            continue;
        struct tec_diagnostic *d = tec_diagnostics_add(
            ld->d, TEC_E060, in->where, "input '%s' is of no robot of `robots`", in->name);
        tec_diagnostics_help(ld->d, d, "its name begins with that of a robot: '%s/%s'",
                             p->robots[0].name, in->name);
    }
}

/* --- whose actions a chain makes ------------------------------------------------------------- */

/* Set the robots of a chain: one that makes actions has one. */
static void bind_chain(struct tec_loader *ld, struct tec_decl_chain *c)
{
    const struct tec_pipeline *p = ld->pipeline;
    const struct tec_decl_node *n = c->prefill < 0 ? NULL : &p->nodes[c->prefill];
    const struct tec_decl_entry *list =
        n ? tec_decl_value_find(ld->nodes[c->prefill].value, "reads") : NULL;
    c->robot = named(p) ? -1 : 0;
    for (int k = 0; n && named(p) && k < n->reads.n; k++) {
        int robot = tec_pipeline_robot_of(p, n->reads.item[k].index);
        c->robots |= robot < 0 ? 0 : 1U << robot;
        if (c->in_frames && c->robot >= 0 && robot >= 0 && robot != c->robot) {
            struct tec_diagnostic *d = tec_diagnostics_add(
                ld->d, TEC_E060, tec_where_value(ld, &list->value->entries[k]),
                "'%s' reads '%s' beside inputs of robot '%s': its actions are for one robot",
                n->name, n->reads.item[k].name, p->robots[c->robot].name);
            tec_diagnostics_help(ld->d, d,
                                 "a prefill for each robot; arms that one model moves together "
                                 "are one robot, whose description has the inputs of both");
            return;
        }
        c->robot = c->robot < 0 ? robot : c->robot;
    }
    if (c->robot < 0 && p->n_robots == 1)
        c->robot = 0;
    c->robots |= c->robot < 0 ? 0 : 1U << c->robot;
    if (c->robot < 0 && n && c->in_frames)
        tec_diagnostics_add(ld->d, TEC_E060, tec_where_field(ld, &ld->nodes[c->prefill], "reads"),
                            "'%s' reads no input of a robot: nothing says whose its actions are",
                            n->name);
}

/* An input of a node itself is that of a robot of its chain. */
static void check_own(struct tec_loader *ld, int node, const struct tec_ref *ref, const char *field)
{
    const struct tec_pipeline *p = ld->pipeline;
    const struct tec_decl_node *n = &p->nodes[node];
    int robot = ref->index < 0 || n->chain < 0 ? -1 : tec_pipeline_robot_of(p, ref->index);
    const struct tec_decl_chain *c = robot < 0 ? NULL : &p->chains[n->chain];
    if (!c || !c->robots || (c->robots >> robot & 1U))
        return;
    tec_diagnostics_add(ld->d, TEC_E060, tec_where_field(ld, &ld->nodes[node], field),
                        "'%s' reads '%s', but its prefill is of robot '%s'", n->name, ref->name,
                        p->robots[c->robot].name);
}

void tec_bind_robots(struct tec_loader *ld, struct tec_decl_chain *chains)
{
    const struct tec_pipeline *p = ld->pipeline;
    for (int i = 0; i < p->n_chains; i++)
        bind_chain(ld, &chains[i]);
    for (int i = 0; i < p->n_nodes; i++) {
        check_own(ld, i, &p->nodes[i].prompt, "prompt");
        check_own(ld, i, &p->nodes[i].prefix, "prefix");
    }
    for (int r = 0; named(p) && r < p->n_robots; r++) {
        bool used = false;
        for (int i = 0; i < p->n_chains; i++)
            used |= chains[i].in_frames && (chains[i].robots >> r & 1U);
        if (!used)
            tec_diagnostics_add(
                ld->d, TEC_E060, p->robots[r].where,
                "robot '%s' has no actions: no prefill of the frames reads its inputs",
                p->robots[r].name);
    }
}
