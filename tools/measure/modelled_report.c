/* modelled_report.c - modelled kernels as tables and as JSON. */
#include "tools/measure/modelled.h"

#include <jansson.h>

static bool counts(const struct tec_roofline *r, int part)
{
    return !r->plan->parts[part].beside;
}

static const char *stage_name(int stage)
{
    return stage < TEC_STAGE_COUNT ? tec_stage_names[stage] : "all";
}

/* One stage alone is the whole. */
static bool has(const struct tec_modelled_part *m, int stage)
{
    int stages = 0;
    for (int i = 0; i < TEC_STAGE_COUNT; i++)
        stages += m->sums[i].starts > 0;
    return m->sums[stage].starts > 0 && (stage < TEC_STAGE_COUNT || stages > 1);
}

static void print_part(const struct tec_modelled_part *m, FILE *out)
{
    for (int i = 0; i <= TEC_STAGE_COUNT; i++)
        if (has(m, i))
            fprintf(out, "%-14s %-9s %8lld %10.3f %10.3f  modelled\n", m->part->name, stage_name(i),
                    (long long)m->sums[i].starts, m->sums[i].us / 1e3, m->sums[i].changed_us / 1e3);
}

static void print_kernel(const struct tec_modelled_kernel *k, FILE *out)
{
    const struct tec_grid *g = &k->grid;
    char grid[40];
    snprintf(grid, sizeof grid, "%ux%ux%u", g->blocks[0], g->blocks[1], g->blocks[2]);
    fprintf(out, "  %-9s %-18s %-15s %-24s %6lld %14s %4d %5d %9.2f %9.3f  %-8s modelled\n",
            tec_stage_names[k->stage], k->label, tec_kernel_infos[g->kernel].name,
            g->what ? g->what : "", (long long)k->calls, grid, k->time.resident, k->time.waves,
            k->us / (double)k->calls, k->us / 1e3, k->time.bound);
}

enum tec_status tec_modelled_print(const struct tec_roofline *r, bool kernels,
                                   struct tec_arena *arena, FILE *out, struct tec_error *err)
{
    for (int p = 0; p < r->n_peaks; p++) {
        if (!tec_chip_of(r->peaks[p])) {
            fprintf(out,
                    "\n%s: kernels are not modelled: its file says nothing of a chip "
                    "(doc/roofline.md)\n",
                    r->peaks[p]->title);
            continue;
        }
        fprintf(out,
                "\n%s: modelled from grids and waves of the kernels that would run there; ms, and "
                "with changes that are planned\n"
                "%-14s %-9s %8s %10s %10s\n",
                r->peaks[p]->title, "", "", "kernels", "today", "changed");
        for (int i = 0; i < r->plan->n_parts; i++) {
            struct tec_modelled_part m;
            if (!counts(r, i))
                continue;
            TEC_TRY(tec_modelled_make(&m, r, &r->plan->parts[i], r->peaks[p], arena, err));
            print_part(&m, out);
            if (kernels && m.n)
                fprintf(out, "  %-9s %-18s %-15s %-24s %6s %14s %4s %5s %9s %9s  %s\n", "stage",
                        "label", "kernel", "tile", "calls", "grid", "held", "waves", "us each",
                        "ms", "bound by");
            for (int k = 0; kernels && k < m.n; k++)
                print_kernel(&m.kernels[k], out);
        }
    }
    return TEC_OK;
}

static json_t *kernel_json(const struct tec_modelled_kernel *k)
{
    const struct tec_grid *g = &k->grid;
    return json_pack("{s:s, s:s, s:s, s:s, s:I, s:[i, i, i], s:i, s:I, s:i, s:i, s:f, s:f, s:s}",
                     "stage", tec_stage_names[k->stage], "label", k->label, "kernel",
                     tec_kernel_infos[g->kernel].name, "tile", g->what ? g->what : "", "calls",
                     (json_int_t)k->calls, "grid", (int)g->blocks[0], (int)g->blocks[1],
                     (int)g->blocks[2], "threads", g->threads, "busy", (json_int_t)k->time.busy,
                     "resident", k->time.resident, "waves", k->time.waves, "us", k->us,
                     "changed_us", k->changed_us, "bound", k->time.bound);
}

static json_t *part_json(const struct tec_modelled_part *m)
{
    json_t *stages = json_array(), *kernels = json_array();
    for (int i = 0; i <= TEC_STAGE_COUNT; i++)
        if (has(m, i))
            json_array_append_new(stages,
                                  json_pack("{s:s, s:I, s:f, s:f}", "stage", stage_name(i),
                                            "kernels", (json_int_t)m->sums[i].starts, "us",
                                            m->sums[i].us, "changed_us", m->sums[i].changed_us));
    for (int k = 0; k < m->n; k++)
        json_array_append_new(kernels, kernel_json(&m->kernels[k]));
    return json_pack("{s:s, s:s, s:b, s:o, s:o}", "machine", m->peak->name, "part", m->part->name,
                     "predicted", 1, "stages", stages, "kernels", kernels);
}

enum tec_status tec_modelled_json(struct json_t **out, const struct tec_roofline *r,
                                  struct tec_arena *arena, struct tec_error *err)
{
    json_t *all = json_array();
    enum tec_status status = TEC_OK;
    for (int p = 0; p < r->n_peaks && status == TEC_OK; p++)
        for (int i = 0; i < r->plan->n_parts && status == TEC_OK; i++) {
            struct tec_modelled_part m;
            if (!counts(r, i))
                continue;
            status = tec_modelled_make(&m, r, &r->plan->parts[i], r->peaks[p], arena, err);
            if (status == TEC_OK)
                json_array_append_new(all, part_json(&m));
        }
    *out = all;
    return status;
}
