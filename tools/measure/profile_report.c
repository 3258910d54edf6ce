/* profile_report.c - the `.costs` form of a measurement, and what it says of itself. */
#include "tools/measure/profile.h"

#include "tools/measure/costs_settings.h"
#include "tools/measure/machine.h"

#include <string.h>

enum { NEEDED_P999 = 1000 };

static double us_at(const struct tec_profile_variant *v, double q)
{
    return (double)tec_samples_at(&v->samples, q) / 1000.0;
}

/* Of slices the mean says what they come to; their quantiles are of different layers. */
static double mean_us(const struct tec_profile_variant *v)
{
    double sum = 0.0;
    for (int i = 0; i < v->samples.n; i++)
        sum += (double)v->samples.ns[i] / 1000.0;
    return v->samples.n ? sum / v->samples.n : 0.0;
}

static double busy_of(const struct tec_profile *p, int64_t ns)
{
    return p->wall_ns > 0 ? (double)ns / (double)p->wall_ns : 0.0;
}

/* Report the profile's own work in a turn: clocks, samples, the progress line. */
static double overhead_us(const struct tec_profile *p)
{
    return (double)(p->wall_ns - p->inside_ns) / 1000.0 / p->frames;
}

/* Which point of the costs a forward with prefills is. */
static int point_of(const struct tec_profile *p, const struct tec_profile_variant *v)
{
    return tec_launch_ring_point(&p->opened.engine->chains[v->model].plan->spec, v->enter,
                                 v->batch);
}

/* Steps of the action node of that name; 0: there is none, or its head has no steps. */
static int steps_of(const struct tec_profile *p, const struct tec_profile_variant *v,
                    const char *node)
{
    const struct tec_pipeline *of = p->opened.pipeline;
    for (int i = 0; i < of->n_nodes; i++)
        if (of->nodes[i].kind == TEC_DECL_ACTION && strcmp(of->nodes[i].name, node) == 0)
            return of->nodes[i].steps ? of->nodes[i].steps
                                      : p->opened.engine->chains[v->model].plan->model->flow.steps;
    return 0;
}

static json_t *row_json(const struct tec_profile *p, const struct tec_profile_variant *v,
                        const char *node)
{
    json_t *point = json_object();
    if (v->slices)
        json_object_set_new(point, "slices", json_integer(v->slices));
    if (v->kind == TEC_COST_DECODE || v->observations)
        json_object_set_new(point, "batch",
                            json_integer(v->observations ? v->observations : v->batch));
    if (v->kind == TEC_COST_PACKED)
        json_object_set_new(point, "decode", json_integer(point_of(p, v)));
    if (v->percent)
        json_object_set_new(point, "percent", json_integer(v->percent));
    if (v->tokens)
        json_object_set_new(point, "tokens", json_integer(v->tokens));
    json_t *row =
        json_pack("{s:s,s:o,s:i,s:f,s:f,s:f,s:f,s:f,s:f}", "node", node, "point", point, "n",
                  v->samples.n, "min", us_at(v, 0.0), "p50", us_at(v, 0.5), "mean", mean_us(v),
                  "p99", us_at(v, 0.99), "p999", us_at(v, 0.999), "max", us_at(v, 1.0));
    if (steps_of(p, v, node))
        json_object_set_new(row, "steps", json_integer(steps_of(p, v, node)));
    return row;
}

/* Nodes of which kind a launch is of, all at once; NULL: of its own alone. */
static const char *kind_of_all(const struct tec_profile_variant *v)
{
    if (v->memory && !v->tokens)
        return "memory_load";
    return v->kind == TEC_COST_DECODE && !v->ring ? "decode" : NULL;
}

/* Every decode node gets a row of its own; the nodes share captures, so the rows have equal times.
 * So do the memories of a prompt, which are recalled together. */
static json_t *rows_json(const struct tec_profile *p, bool lone)
{
    const struct tec_topology *t = &p->opened.engine->topology;
    json_t *rows = json_array();
    for (int i = 0; i < p->n_variants; i++) {
        const struct tec_profile_variant *v = &p->variants[i];
        if (v->lone != lone)
            continue;
        const char *each = kind_of_all(v);
        if (!each)
            json_array_append_new(rows, row_json(p, v, v->node));
        for (int n = 0; each && n < t->n_nodes; n++)
            if (strcmp(t->nodes[n].kind, each) == 0 && t->nodes[n].model == v->model &&
                !t->nodes[n].ring)
                json_array_append_new(rows, row_json(p, v, t->nodes[n].name));
    }
    return rows;
}

static const char *weights_of(const struct tec_profile *p)
{
    const struct tec_shared *s = &p->call->shared;
    if (s->random_weights.given)
        return "random";
    if (s->weights)
        return s->weights;
    const char *weights = p->opened.pipeline->models[tec_pipeline_main(p->opened.pipeline)].weights;
    return weights ? weights : "";
}

json_t *tec_profile_costs(const struct tec_profile *p)
{
    const struct tec_device *device = p->opened.engine->device;
    const struct tec_shared *s = &p->call->shared;
    json_t *private = rows_json(p, true);
    json_t *costs = json_pack("{s:i,s:s,s:s,s:s,s:i,s:s,s:s}", "schema", 1, "unit", "us", "device",
                              tec_device_kind(device), "tier", tec_device_computes(device),
                              "threads", tec_device_lanes(device), "version", TECTUM_VERSION,
                              "commit", tec_machine_commit());
    json_t *more = json_pack("{s:s,s:s,s:s,s:i,s:i,s:o}", "pipeline", p->opened.pipeline->name,
                             "weights", weights_of(p), "size",
                             s->random_weights.given ? tec_shared_size(s) : "checkpoint",
                             "pictures", p->input.prefix.n_pictures, "prompt_tokens",
                             p->prompt_tokens, "machine", tec_machine_json(device));
    json_t *settings = tec_profile_costs_settings(p->opened.pipeline, p->opened.more.dtype);
    bool ok = costs && more && json_object_update(costs, more) == 0 &&
              json_object_set_new(costs, "settings", settings) == 0 &&
              json_object_set_new(costs, "variants", rows_json(p, false)) == 0;
    if (ok && json_array_size(private) > 0)
        ok = json_object_set(costs, "private", private) == 0;
    if (ok && tec_profile_copy_rate(p) > 0.0)
        ok = json_object_set_new(costs, "copy_bytes_per_us", json_real(tec_profile_copy_rate(p))) ==
             0;
    json_decref(private);
    json_decref(more);
    if (ok)
        return costs;
    json_decref(costs);
    return NULL;
}

json_t *tec_profile_json(const struct tec_profile *p)
{
    json_t *json = tec_profile_costs(p), *busy = json_array();
    for (int i = 0; i < p->n_variants; i++)
        json_array_append_new(busy, json_real(busy_of(p, p->variants[i].busy_ns)));
    json_t *more =
        json_pack("{s:i,s:i,s:f,s:f,s:f,s:f,s:o,s:f,s:f,s:f}", "frames", p->frames, "rounds",
                  p->rounds, "wall_s", (double)p->wall_ns / 1e9, "overhead_us", overhead_us(p),
                  "host_us", (double)(p->inside_ns - p->busy_ns) / 1000.0 / p->frames, "busy",
                  busy_of(p, p->busy_ns), "busy_of", busy, "spread", p->spread, "load_before",
                  p->load_before, "load_after", p->load_after);
    bool ok = json && more && json_object_update(json, more) == 0;
    json_decref(more);
    if (ok) /* absent where nothing was counted */
        json_object_set_new(
            json, "energy",
            tec_energy_json(&p->energy, &p->energy_sum, "turn_j", p->frames, NULL, 0));
    if (ok)
        return json;
    json_decref(json);
    return NULL;
}

static const char *name_of(const struct tec_profile_variant *v, char text[32])
{
    if (v->kind == TEC_COST_DECODE)
        snprintf(text, 32, "step, batch %d", v->batch);
    else if (v->observations)
        snprintf(text, 32, "%d sessions", v->observations);
    else if (v->tokens)
        snprintf(text, 32, "%d tokens", v->tokens);
    else if (v->percent && v->slices)
        snprintf(text, 32, "%d %%, 1 of %d", v->percent, v->slices);
    else if (v->percent)
        snprintf(text, 32, "%d %%", v->percent);
    else if (v->slices)
        snprintf(text, 32, "slice of %d", v->slices);
    else if (v->kind == TEC_COST_PACKED)
        snprintf(text, 32, "and %d row%s", v->batch, v->batch == 1 ? "" : "s");
    else
        snprintf(text, 32, "%s", v->lone ? "private" : "");
    return text;
}

void tec_profile_print(const struct tec_profile *p, FILE *out)
{
    char text[32];
    tec_machine_print(p->opened.engine->device, out);
    fprintf(out, "%s, commit %s, %d picture%s, a prompt of %d tokens; ms\nsettings: %s\n\n",
            p->opened.pipeline->name, tec_machine_commit(), p->input.prefix.n_pictures,
            p->input.prefix.n_pictures == 1 ? "" : "s", p->prompt_tokens,
            tec_profile_settings_text(p->opened.pipeline, p->opened.more.dtype, p->call->arena));
    fprintf(out, "%-12s %-16s %7s %9s %9s %9s %9s %9s %6s\n", "node", "variant", "n", "min", "p50",
            "p99", "p99.9", "max", "busy%");
    for (int i = 0; i < p->n_variants; i++) {
        const struct tec_profile_variant *v = &p->variants[i];
        fprintf(out, "%-12s %-16s %7d %9.3f %9.3f %9.3f %9.3f %9.3f %6.1f\n", v->node,
                name_of(v, text), v->samples.n, us_at(v, 0.0) / 1e3, us_at(v, 0.5) / 1e3,
                us_at(v, 0.99) / 1e3, us_at(v, 0.999) / 1e3, us_at(v, 1.0) / 1e3,
                100.0 * busy_of(p, v->busy_ns));
    }
    double host = (double)(p->inside_ns - p->busy_ns) / 1000.0 / p->frames;
    fprintf(out,
            "\ndevice busy %.1f %% of %.2f s; host between launches %.1f us a turn; profile's own "
            "overhead %.2f us a turn (%.3f %%)\n",
            100.0 * busy_of(p, p->busy_ns), (double)p->wall_ns / 1e9, host, overhead_us(p),
            100.0 * busy_of(p, p->wall_ns - p->inside_ns));
    tec_energy_print(&p->energy, &p->energy_sum, "a turn of all variants", p->frames, NULL, 0, out);
    if (p->spread_of && p->rounds > 1)
        fprintf(out, "the p50 of %d rounds differ by at most %.1f %% (%s%s%s)%s\n", p->rounds,
                100.0 * p->spread, p->spread_of->node, *name_of(p->spread_of, text) ? " " : "",
                name_of(p->spread_of, text), p->spread > 0.1 ? ": the machine was not quiet" : "");
    if (p->frames < NEEDED_P999)
        fprintf(out, "p99.9 of fewer than %d samples is the longest one\n", NEEDED_P999);
}
