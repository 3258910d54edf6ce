/* report_table.c - DIR/keep.md: the paper's ratios beside ours, every cell, layers of a link, how
 * often classes changed. */
#include "tests/experiments/keep/keeping.h"

#include "base/out_file.h"

#include <math.h>
#include <string.h>

struct table {
    const struct tec_keeping *s;
    FILE *out;
};

struct tec_suite_head tec_keeping_head(const struct tec_keeping *s)
{
    int points = 0;
    for (int i = 0; i < s->n_cells; i++)
        points += s->cells[i].ran ? s->cells[i].n_rows : 0;
    return (struct tec_suite_head){.machine = s->machine,
                                   .title = "KEEP's experiments",
                                   .command = s->command,
                                   .load_before = s->load_before,
                                   .load_after = s->load_after,
                                   .seconds = (double)s->elapsed_ns / 1e9,
                                   .points = points,
                                   .quick = s->quick};
}

static void head(const struct table *t)
{
    const struct tec_keeping *s = t->s;
    const struct tec_suite_head h = tec_keeping_head(s);
    tec_suite_print_head(&h, t->out);
    fprintf(t->out, "%d layers, bf16; %.1f MB of weights, %lld bytes of keys and values a token. ",
            s->layers, (double)s->weight_bytes / 1e6, (long long)s->token_bytes);
    if (s->weights) {
        fprintf(t->out, "%s, %d questions.\n\n", s->weights, s->steps);
        return;
    }
    fprintf(
        t->out,
        "%s, %s size, random weights (seed %llu).\nA trace of our own; each cell has %d measured "
        "steps, and all rows of a cell take turns at each step.\nTimes are milliseconds, "
        "medians where nothing else is said; with few steps p99 is the largest. Weights are "
        "random: agreement\nand KL say how far numbers move, not how good a plan is.\n\n",
        s->arch, tec_shared_size(&s->call->shared), (unsigned long long)s->seed, s->steps);
}

/* --- beside the paper ------------------------------------------------------------------------ */

static double ratio(const struct tec_keeping_cell *c, const char *slow, const char *fast)
{
    const struct tec_keeping_row *a = c ? tec_keeping_find(c, slow) : NULL;
    const struct tec_keeping_row *b = c ? tec_keeping_find(c, fast) : NULL;
    return a && b ? tec_keeping_mean(&a->charged) / tec_keeping_mean(&b->charged) : (double)NAN;
}

static double served(const struct tec_keeping_cell *c, const char *slow, const char *fast)
{
    const struct tec_keeping_row *a = c ? tec_keeping_find(c, slow) : NULL;
    const struct tec_keeping_row *b = c ? tec_keeping_find(c, fast) : NULL;
    return a && b ? tec_keeping_ms(&a->served, 0.5) / tec_keeping_ms(&b->served, 0.5) : (double)NAN;
}

static void paper_row(const struct table *t, const char *what, const char *bf16, const char *int4,
                      double ours)
{
    fprintf(t->out, "| %s | %s | %s |", what, bf16, int4);
    tec_suite_cell(t->out, ours, 2, "");
    fputc('\n', t->out);
}

static const struct tec_keeping_cell *link_of(const struct table *t, const char *name)
{
    for (int i = 0; i < t->s->n_cells; i++)
        if (t->s->cells[i].ran && t->s->cells[i].link.name &&
            strcmp(t->s->cells[i].link.name, name) == 0)
            return &t->s->cells[i];
    return NULL;
}

static void paper(const struct table *t)
{
    const struct tec_keeping_cell *m = tec_keeping_cell_of(t->s, "methods", 0);
    const struct tec_keeping_cell *s = tec_keeping_cell_of(t->s, "segments", 40);
    const struct tec_keeping_cell *slow = link_of(t, "file, 0.5 GB/s");
    fputs("What is kept up (refresh, groups that are joined) is in the time of every method, as "
          "means, but where `served` is said.\n\n"
          "| time to the first token | paper, 14B | paper, 32B INT4 | here |\n"
          "|---|---|---|---|\n",
          t->out);
    paper_row(t, "Table 1: full over KEEP", "1.74", "1.91", ratio(m, "full", "keep"));
    paper_row(t, "Table 1: full over full reuse", "1.95", "2.01",
              ratio(m, "full", "reuse, blocks"));
    paper_row(t, "Table 1: full over CacheBlend", "1.13", "1.00",
              ratio(m, "full", "cacheblend, blocks"));
    paper_row(t, "Table 1: CacheBlend over KEEP", "1.54", "1.90",
              ratio(m, "cacheblend, blocks", "keep"));
    paper_row(t, "the same, CacheBlend with a block for each segment", "-", "-",
              ratio(m, "cacheblend", "keep"));
    paper_row(t, "the same, blocks of the memory in its own order", "-", "-",
              ratio(m, "cacheblend, stored blocks", "keep"));
    paper_row(t, "CacheBlend over KEEP, served: all was kept up between steps", "-", "-",
              served(m, "cacheblend, blocks", "keep"));
    paper_row(t, "full over KEEP, served", "-", "-", served(m, "full", "keep"));
    paper_row(t, "Fig 9: full over KEEP, 40 segments", "2.19", "2.68", ratio(s, "full", "keep"));
    paper_row(t, "Fig 9: CacheBlend over KEEP, 40 segments", "1.56", "2.17",
              ratio(s, "cacheblend, blocks", "keep"));
    paper_row(t, "Table 3: without static-dynamic groups (blocks) over KEEP", "1.54", "-",
              ratio(m, "keep, blocks", "keep"));
    paper_row(t, "Table 3: without multi-hop over KEEP", "0.99", "-",
              ratio(m, "keep, no hops", "keep"));
    paper_row(t, "Table 3: next-layer loading over balanced; a link of 0.5 GB/s", "1.19", "-",
              ratio(slow, "next", "balanced"));
    paper_row(t, "the same over bounded, our default", "-", "-", ratio(slow, "next", "bounded"));
}

/* --- goals ----------------------------------------------------------------------------------- */

static void ends(const struct table *t, double of, double over)
{
    tec_suite_cell(t->out, of, 2, "");
    tec_suite_cell(t->out, over, 3, "");
    fprintf(t->out, " %s |",
            isnan(of)                    ? "-"
            : of >= 0.85 && over <= 1.15 ? "both"
            : of >= 0.85                 ? "bound"
                                         : "NO");
}

static void goals(const struct table *t)
{
    fputs("\nGoals. Bound: the full prefill times the share of rows computed; of bound: the bound "
          "over this row's prefill (goal:\nat least 0.85). Over bare: over the same rows with "
          "nothing placed and no importance (goal: at most 1.15). CPU: by\nprocessor time, which "
          "other processes hardly change; known where one lane is all there is.\n\n"
          "| experiment | segments | method | rows | prefill speed-up | of bound | over bare | met "
          "| CPU: of bound | over bare | met |\n|---|---|---|---|---|---|---|---|---|---|---|\n",
          t->out);
    for (int i = 0; i < t->s->n_cells; i++) {
        const struct tec_keeping_cell *c = &t->s->cells[i];
        for (int k = 1; c->ran && k + 1 < c->n_rows; k++) {
            const struct tec_keeping_row *r = &c->rows[k];
            if (!r[1].method.bare)
                continue;
            fprintf(t->out, "| %s%s%s | %d | %s |", c->experiment, c->link.name ? ", " : "",
                    c->link.name ? c->link.name : "", c->segments, r->method.name);
            tec_suite_cell(t->out, tec_keeping_share(r), 3, "");
            tec_suite_cell(t->out, tec_keeping_speedup(c, r, false), 2, "");
            ends(t, tec_keeping_of_bound(c, r, false), tec_keeping_over_bare(c, r, false));
            ends(t, tec_keeping_of_bound(c, r, true), tec_keeping_over_bare(c, r, true));
            fputc('\n', t->out);
        }
    }
}

/* --- charged alike --------------------------------------------------------------------------- */

static void charge(const struct table *t, const struct tec_keeping_cell *c,
                   const struct tec_keeping_row *r)
{
    const struct tec_keeping_row *full = &c->rows[0];
    double n = (double)r->steps, least = r->least_ns / n / 1e6;
    fprintf(t->out, "| %s |", r->method.name);
    tec_suite_cell(t->out, tec_keeping_share(r), 3, "");
    tec_suite_cell(t->out, tec_keeping_ms(&r->served, 0.5), 2, "");
    tec_suite_cell(t->out, tec_keeping_ms(&r->served, 0.99), 2, "");
    tec_suite_cell(t->out, tec_keeping_ms(&r->served, 1.0), 2, "");
    tec_suite_cell(t->out, tec_keeping_ms(&full->served, 0.5) / tec_keeping_ms(&r->served, 0.5), 2,
                   "");
    tec_suite_cell(t->out, (double)r->refreshed / n, 1, "");
    tec_suite_cell(t->out, (double)r->needed / n, 1, "");
    tec_suite_cell(t->out, (double)r->behind / n, 1, "");
    tec_suite_cell(t->out, tec_keeping_mean(&r->charged), 2, "");
    tec_suite_cell(t->out, tec_keeping_ms(&r->charged, 0.99), 2, "");
    tec_suite_cell(t->out, tec_keeping_mean(&full->charged) / tec_keeping_mean(&r->charged), 2, "");
    tec_suite_cell(t->out, least, 2, "");
    tec_suite_cell(t->out, tec_keeping_mean(&full->charged) / least, 2, "");
    double cpu = tec_keeping_mean(&r->cpu), whole = tec_keeping_mean(&full->cpu);
    tec_suite_cell(t->out, cpu, 2, "");
    tec_suite_cell(t->out, whole / cpu, 2, "");
    tec_suite_cell(t->out, cpu + r->kept_cpu / n / 1e6, 2, "");
    tec_suite_cell(t->out, whole / (cpu + r->kept_cpu / n / 1e6), 2, "");
    tec_suite_cell(t->out, whole / (cpu + r->least_cpu / n / 1e6), 2, "");
    fputc('\n', t->out);
}

/* Refresh and promotion by the same rule for all methods: in no time, or in all of them. */
static void charges(const struct table *t)
{
    const struct tec_keeping_cell *c = tec_keeping_cell_of(t->s, "methods", 0);
    if (!c)
        return;
    fputs("\nCharged alike. Served: everything kept was computed between steps, for every method. "
          "Charged: all of it is in the step\nthat needs it, what changed and groups that became "
          "static alike; means, because groups are joined in few steps. Least:\nas if a changed "
          "block were computed from its first changed token on, its time by the share of tokens. "
          "CPU: processor time of the\nprefill and of what is kept up, with one lane.\n\n"
          "| method | rows | served p50 | p99 | max | full over it | refreshed tokens | of them "
          "needed | joined tokens | charged, mean | p99 | full over it | least | full over it | "
          "CPU: served | full over it | charged | full over it | least: full over it |\n"
          "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
          t->out);
    for (int i = 0; i < c->n_rows; i++)
        if (!c->rows[i].method.bare)
            charge(t, c, &c->rows[i]);
}

/* --- every cell ------------------------------------------------------------------------------ */

static void row(const struct table *t, const struct tec_keeping_cell *c,
                const struct tec_keeping_row *r)
{
    double n = (double)r->steps;
    fprintf(t->out, "| %s |", r->method.name);
    tec_suite_cell(t->out, tec_keeping_ms(&r->ttft, 0.5), 2, "");
    tec_suite_cell(t->out, tec_keeping_ms(&r->ttft, 0.99), 2, "");
    tec_suite_cell(t->out, tec_keeping_ms(&r->ttft, 1.0), 2, "");
    tec_suite_cell(t->out, tec_keeping_ms(&r->refresh, 0.5), 2, "");
    tec_suite_cell(t->out, tec_keeping_ms(&r->prefill, 0.5), 2, "");
    tec_suite_cell(t->out, tec_keeping_ms(&r->cpu, 0.5), 2, "");
    tec_suite_cell(t->out, tec_keeping_ms(&r->waited, 0.5), 2, "");
    tec_suite_cell(t->out, tec_keeping_ms(&r->choose, 0.5), 2, "");
    tec_suite_cell(t->out, tec_keeping_ms(&r->score, 0.5), 2, "");
    tec_suite_cell(t->out, tec_keeping_share(r), 3, "");
    tec_suite_cell(t->out, tec_keeping_ms(&c->rows[0].ttft, 0.5) / tec_keeping_ms(&r->ttft, 0.5), 2,
                   "");
    tec_suite_cell(t->out, (double)r->refreshed / n, 1, "");
    tec_suite_cell(t->out, (double)r->loaded / n / 1e6, 2, "");
    tec_suite_cell(t->out, tec_keeping_agree(r), 2, "");
    tec_suite_cell(t->out, tec_keeping_skill(r), 2, "");
    fprintf(t->out, " %.2g |\n", tec_keeping_kl(r));
}

static void cell(const struct table *t, const struct tec_keeping_cell *c)
{
    double n = (double)c->rows[0].steps;
    fprintf(t->out,
            "\n**%s, %d segments%s%s**: %.0f tokens, %.0f of them the query's; %.1f segments "
            "retrieved, %.1f of them in static groups;\nretrieval %.3f ms; in the trace %lld "
            "changes, %lld groups became static, %lld dynamic.\n\n"
            "| method | TTFT p50 | p99 | max | refresh | prefill | its CPU | wait | choose | score "
            "| rows | "
            "full over it | refreshed tokens | placed MB | agree | skill | KL |\n"
            "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
            c->experiment, c->segments, c->link.name ? ", " : "", c->link.name ? c->link.name : "",
            (double)c->tokens / n, (double)c->query / n, (double)c->retrieved / n,
            (double)c->joined / n, tec_keeping_ms(&c->retrieve, 0.5), (long long)c->changes,
            (long long)c->promotions, (long long)c->demotions);
    for (int i = 0; i < c->n_rows; i++)
        row(t, c, &c->rows[i]);
}

/* --- questions ------------------------------------------------------------------------------- */

static void answer(const struct table *t, const struct tec_keeping_cell *c,
                   const struct tec_keeping_row *r)
{
    double right = tec_keeping_right(r);
    fprintf(t->out, "| %s | %s | %.1f ± %.1f |", c->experiment, r->method.name, 100.0 * right,
            100.0 * sqrt(right * (1.0 - right) / (double)r->steps));
    tec_suite_cell(t->out, 100.0 * tec_keeping_agree(r), 1, "");
    fprintf(t->out, " %.2g |", tec_keeping_kl(r));
    tec_suite_cell(t->out, tec_keeping_share(r), 3, "");
    tec_suite_cell(t->out, tec_keeping_ms(&r->prefill, 0.5), 3, "");
    tec_suite_cell(t->out, tec_keeping_ms(&r->prefill, 0.99), 3, "");
    tec_suite_cell(t->out, tec_keeping_ms(&r->prefill, 1.0), 3, "");
    tec_suite_cell(t->out, tec_keeping_speedup(c, r, false), 2, "");
    tec_suite_cell(t->out, tec_keeping_of_bound(c, r, false), 2, "");
    fputc('\n', t->out);
}

static void answers(const struct table *t)
{
    fputs("Right: the greedy answer, its end included; ± is one standard error. Every segment was "
          "read "
          "alone. Rows: those computed over those\nof a full prefill, all layers but the last, the "
          "query among them.\n\n"
          "| | method | right % | agree % | KL | rows | prefill p50 ms | p99 | max | speed-up | of "
          "bound |\n|---|---|---|---|---|---|---|---|---|---|---|\n",
          t->out);
    for (int i = 0; i < t->s->n_cells; i++) {
        const struct tec_keeping_cell *c = &t->s->cells[i];
        for (int k = i ? 1 : 0; c->ran && k < c->n_rows; k++)
            answer(t, c, &c->rows[k]);
    }
}

/* --- layers and classes ---------------------------------------------------------------------- */

static void layers(const struct table *t)
{
    const struct tec_keeping_cell *m = tec_keeping_cell_of(t->s, "methods", 0);
    const struct tec_keeping_row *r = m ? tec_keeping_find(m, "keep") : NULL;
    if (!r)
        return;
    double n = (double)r->steps;
    fputs("\nWhat each layer computes and what it needs loaded (Fig 7), `keep` of methods. At "
          "0.5 and 5 GB/s: what its load would take.\n\n| layer | rows | compute ms | MB | ms at "
          "0.5 GB/s | ms at 5 GB/s |\n|---|---|---|---|---|---|\n",
          t->out);
    for (int l = 0; l < t->s->layers; l++)
        fprintf(t->out, "| %d | %.0f | %.3f | %.3f | %.3f | %.3f |\n", l, r->layer_rows[l] / n,
                r->layer_ns[l] / n / 1e6, r->layer_bytes[l] / n / 1e6,
                r->layer_bytes[l] / n / 5e8 * 1e3, r->layer_bytes[l] / n / 5e9 * 1e3);
}

static void classes(const struct table *t)
{
    const struct tec_trace *trace = &t->s->trace;
    fprintf(t->out,
            "\nChanges by class in %lld steps of the trace (Fig 5).\n\n| class | segments | "
            "changes | changes of a segment in 100 steps |\n|---|---|---|---|\n",
            (long long)trace->step);
    for (int k = 0; k < TEC_TRACE_CLASSES; k++)
        fprintf(t->out, "| %s | %d | %lld | %.2f |\n", tec_trace_classes[k], trace->members[k],
                (long long)trace->changed[k],
                100.0 * (double)trace->changed[k] /
                    ((double)trace->members[k] * (double)trace->step));
}

enum tec_status tec_keeping_write_table(const struct tec_keeping *s, struct tec_error *err)
{
    struct tec_out_file out = {0};
    char path[1024];
    snprintf(path, sizeof path, "%s/keep.md", s->dir);
    TEC_TRY(tec_outfile_file_open(&out, path, err));
    const struct table t = {s, out.file};
    head(&t);
    if (s->weights) {
        answers(&t);
        return tec_outfile_file_keep(&out, err);
    }
    paper(&t);
    goals(&t);
    charges(&t);
    for (int i = 0; i < s->n_cells; i++)
        if (s->cells[i].ran)
            cell(&t, &s->cells[i]);
    layers(&t);
    classes(&t);
    return tec_outfile_file_keep(&out, err);
}
