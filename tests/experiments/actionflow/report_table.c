/* report_table.c - DIR/actionflow.md: the paper's ratios beside ours, every cell, what a frame is
 * made of, and calls beside the machine's ceilings. */
#include "tests/experiments/actionflow/actionflow.h"

#include "base/out_file.h"

#include <math.h>
#include <string.h>

enum { TYPICAL = 34 };

struct table {
    const struct tec_actionflow *s;
    FILE *out;
};

struct tec_suite_head tec_actionflow_head(const struct tec_actionflow *s)
{
    return (struct tec_suite_head){.machine = s->machine,
                                   .title = "ActionFlow's experiments",
                                   .command = s->command,
                                   .load_before = s->load_before,
                                   .load_after = s->load_after,
                                   .seconds = (double)s->elapsed_ns / 1e9,
                                   .points = s->n_cells * TEC_ACTIONFLOW_VARIANTS,
                                   .quick = s->quick};
}

static void head(const struct table *t)
{
    const struct tec_suite_head h = tec_actionflow_head(t->s);
    tec_suite_print_head(&h, t->out);
    fprintf(t->out,
            "%s size, random weights (seed %llu), random pixels, end token off; variants of a cell "
            "take turns, %d round%s%s.\nSequential is the rotating ring at depth 1: the same "
            "kernels, one observation after the other. Ratios are of median\nframes. Age is from "
            "the observation to its action. P is a forward of an observation alone, d one of a "
            "single row,\nboth of the sequential frames; the bound of the speed-up is (P + (K - 1) "
            "d) / P.\n\n",
            tec_shared_size(&t->s->call->shared), (unsigned long long)t->s->seed, t->s->rounds,
            t->s->rounds == 1 ? "" : "s",
            t->s->full ? ", the copying ones in engines of their own, one after the other" : "");
}

/* --- beside the paper ------------------------------------------------------------------------ */

/* The cell of K that comes nearest to the paper's: its prompt's length is not given. */
static const struct tec_actionflow_cell *at(const struct table *t, int stages)
{
    const struct tec_actionflow_cell *c = tec_actionflow_find(t->s, stages, TYPICAL);
    for (int i = 0; !c && i < TEC_ACTIONFLOW_TEXTS; i++)
        c = tec_actionflow_find(t->s, stages, tec_actionflow_texts[i]);
    return c && c->rows[TEC_ACTIONFLOW_SEQUENTIAL].ran ? c : NULL;
}

static void paper_row(const struct table *t, const char *what, const char *orin, const char *gpu,
                      double ours)
{
    if (isnan(ours))
        return; /* no such cell in this size */
    fprintf(t->out, "| %s | %s | %s |", what, orin, gpu);
    tec_suite_cell(t->out, ours, 2, "");
    fputc('\n', t->out);
}

static double ratio(const struct tec_actionflow_cell *c, enum tec_actionflow_variant a,
                    enum tec_actionflow_variant b)
{
    return c ? tec_actionflow_ratio(c, a, b) : (double)NAN;
}

static double frame(const struct tec_actionflow_cell *c, enum tec_actionflow_variant v)
{
    return c ? tec_actionflow_frame_ms(&c->rows[v], 0.5) : (double)NAN;
}

static void paper(const struct table *t)
{
    const struct tec_actionflow_cell *k7 = at(t, 7), *k32 = at(t, 32);
    fputs("| what | paper, Orin | paper, 5090 | here |\n|---|---|---|---|\n", t->out);
    paper_row(t, "Table 1: naive pipe over sequential, K = 7", "2.16", "2.04",
              ratio(k7, TEC_ACTIONFLOW_SEQUENTIAL, TEC_ACTIONFLOW_NAIVE));
    paper_row(t, "Table 1: ActionFlow over sequential, K = 7; keys moved", "2.56", "2.55",
              ratio(k7, TEC_ACTIONFLOW_SEQUENTIAL, TEC_ACTIONFLOW_COPY));
    paper_row(t, "the same, keys not moved", "-", "-",
              ratio(k7, TEC_ACTIONFLOW_SEQUENTIAL, TEC_ACTIONFLOW_ROTATE));
    paper_row(t, "Table 1: ActionFlow over naive pipe, K = 7; keys moved", "1.19", "1.25",
              ratio(k7, TEC_ACTIONFLOW_NAIVE, TEC_ACTIONFLOW_COPY));
    paper_row(t, "the same, copies alone: gathered in one launch", "-", "-",
              ratio(k7, TEC_ACTIONFLOW_GATHER, TEC_ACTIONFLOW_COPY));
    paper_row(t, "the same, nothing packed: a launch for each of the K frames' steps", "-", "-",
              ratio(k7, TEC_ACTIONFLOW_UNPACKED, TEC_ACTIONFLOW_COPY));
    paper_row(t, "Fig 5: ActionFlow over sequential, K = 32; keys moved", "4.36", "4.06",
              ratio(k32, TEC_ACTIONFLOW_SEQUENTIAL, TEC_ACTIONFLOW_COPY));
    paper_row(t, "the same, keys not moved", "-", "-",
              ratio(k32, TEC_ACTIONFLOW_SEQUENTIAL, TEC_ACTIONFLOW_ROTATE));
    paper_row(t, "Fig 5: sequential, actions/s of K = 32 over K = 7", "-", "0.28",
              frame(k7, TEC_ACTIONFLOW_SEQUENTIAL) / frame(k32, TEC_ACTIONFLOW_SEQUENTIAL));
    paper_row(t, "Fig 5: ActionFlow, actions/s of K = 32 over K = 7; keys moved", "-", "0.75",
              frame(k7, TEC_ACTIONFLOW_COPY) / frame(k32, TEC_ACTIONFLOW_COPY));
    paper_row(t, "age of ActionFlow's action over sequential's, K = 7 (the paper's: derived)",
              "2.7", "2.7",
              k7 ? tec_actionflow_age_ms(&k7->rows[TEC_ACTIONFLOW_COPY], 0.5) /
                       tec_actionflow_age_ms(&k7->rows[TEC_ACTIONFLOW_SEQUENTIAL], 0.5)
                 : (double)NAN);
}

/* --- every cell ------------------------------------------------------------------------------ */

static void row(const struct table *t, const struct tec_actionflow_cell *c,
                enum tec_actionflow_variant v)
{
    const struct tec_actionflow_row *r = &c->rows[v];
    double speedup = tec_actionflow_ratio(c, TEC_ACTIONFLOW_SEQUENTIAL, v);
    if (!r->ran)
        return;
    fprintf(t->out, "| %d | %d | %s | %lld |", c->stages, c->prefix, tec_actionflow_variants[v],
            (long long)r->frames);
    tec_suite_cell(t->out, tec_actionflow_frame_ms(r, 0.5), 2, "");
    tec_suite_cell(t->out, tec_actionflow_frame_ms(r, 0.99), 2, "");
    tec_suite_cell(t->out, tec_actionflow_frame_ms(r, 1.0), 2, "");
    tec_suite_cell(t->out, tec_actionflow_cpu_ms(r, 0.5), 2, "");
    tec_suite_cell(t->out, tec_actionflow_actions_s(r), 2, "");
    tec_suite_cell(t->out, tec_actionflow_age_ms(r, 0.5), 1, "");
    tec_suite_cell(t->out, tec_actionflow_age_ms(r, 1.0), 1, "");
    tec_suite_cell(t->out, tec_actionflow_copied(r) / 1e6, 2, "");
    tec_suite_cell(t->out, tec_actionflow_launches(r), 0, "");
    tec_suite_cell(t->out, speedup, 2, "");
    tec_suite_cell(t->out, speedup / tec_actionflow_bound(c), 2, "");
    fprintf(t->out, " %s |\n", r->equal ? "yes" : "NO");
}

static void rows(const struct table *t)
{
    fputs("\nFrames and ages in milliseconds. Cpu: processor time of the program. Copied: keys and "
          "values of a frame, one\nway. The host waits for the end of each launch.\n\n"
          "| K | prefix | variant | frames | p50 | p99 | max | cpu p50 | actions/s | age p50 | "
          "age max | copied MB | launches | speed-up | of bound | equal |\n"
          "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
          t->out);
    for (int i = 0; i < t->s->n_cells; i++)
        for (int v = 0; v < TEC_ACTIONFLOW_VARIANTS; v++)
            row(t, &t->s->cells[i], (enum tec_actionflow_variant)v);
    fputs("\n| K | prefix | P ms | d ms | bound | rotate, of bound | device_copy / rotate | "
          "gather / packed | naive / packed | unpacked / packed |\n"
          "|---|---|---|---|---|---|---|---|---|---|\n",
          t->out);
    for (int i = 0; i < t->s->n_cells; i++) {
        const struct tec_actionflow_cell *c = &t->s->cells[i];
        fprintf(t->out, "| %d | %d |", c->stages, c->prefix);
        tec_suite_cell(t->out, tec_actionflow_prefill_ms(c), 2, "");
        tec_suite_cell(t->out, tec_actionflow_decode_ms(c), 3, "");
        tec_suite_cell(t->out, tec_actionflow_bound(c), 2, "");
        tec_suite_cell(t->out,
                       tec_actionflow_ratio(c, TEC_ACTIONFLOW_SEQUENTIAL, TEC_ACTIONFLOW_ROTATE) /
                           tec_actionflow_bound(c),
                       2, "");
        tec_suite_cell(t->out, tec_actionflow_ratio(c, TEC_ACTIONFLOW_COPY, TEC_ACTIONFLOW_ROTATE),
                       3, "");
        for (int v = TEC_ACTIONFLOW_GATHER; v >= TEC_ACTIONFLOW_UNPACKED; v--)
            tec_suite_cell(
                t->out,
                tec_actionflow_ratio(c, (enum tec_actionflow_variant)v, TEC_ACTIONFLOW_ROTATE), 3,
                "");
        fputc('\n', t->out);
    }
}

/* --- apart ----------------------------------------------------------------------------------- */

static void pieces(const struct table *t)
{
    const struct tec_actionflow_cell *c = &t->s->cells[t->s->by_call];
    fprintf(
        t->out,
        "\nFig 2: a frame of K = %d with a prefix of %d, in milliseconds, by calls timed one by "
        "one.\n\n| variant |",
        c->stages, c->prefix);
    for (int p = 0; p < TEC_ACTIONFLOW_PIECES; p++)
        fprintf(t->out, " %s |", tec_actionflow_pieces[p]);
    fputs("\n|---|---|---|---|---|---|\n", t->out);
    for (int v = 0; v < TEC_ACTIONFLOW_VARIANTS; v++) {
        if (!tec_actionflow_has_pieces((enum tec_actionflow_variant)v))
            continue;
        fprintf(t->out, "| %s |", tec_actionflow_variants[v]);
        for (int p = 0; p < TEC_ACTIONFLOW_PIECES; p++)
            tec_suite_cell(t->out,
                           tec_actionflow_piece_ms(t->s, (enum tec_actionflow_variant)v,
                                                   (enum tec_actionflow_piece)p),
                           2, "");
        fputc('\n', t->out);
    }
}

static void op(const struct table *t, const struct tec_op_time *o, double all)
{
    double flop = (double)tec_cost_flops(&o->cost), bytes = (double)tec_cost_bytes(&o->cost);
    fprintf(t->out, "| %s | %s | %lld |", tec_stage_names[o->stage], o->label, (long long)o->calls);
    tec_suite_cell(t->out, o->ns / 1e6, 3, "");
    tec_suite_cell(t->out, 100.0 * o->ns / all, 1, "");
    tec_suite_cell(t->out, flop / 1e9, 3, "");
    tec_suite_cell(t->out, bytes / 1e6, 2, "");
    tec_suite_cell(t->out, bytes > 0 ? flop / bytes : (double)NAN, 2, "");
    tec_suite_cell(t->out, flop / o->ns, 1, "");
    tec_suite_cell(t->out, bytes / o->ns, 1, "");
    tec_suite_cell(t->out, tec_actionflow_roof_ns(t->s, &o->cost) / o->ns, 2, "");
    fputc('\n', t->out);
}

static void forwards(const struct table *t)
{
    fprintf(
        t->out,
        "\nCeilings measured here: %.1f GB/s read, %.1f GFLOP/s of a large bf16 product. Of "
        "roof: the time that FLOP or\nbytes take at these, over the time taken; above 1 where a "
        "cache held what is counted as read from memory.\n",
        t->s->read_s / 1e9, t->s->flop_s / 1e9);
    for (int i = 0; i < TEC_ACTIONFLOW_FORWARDS; i++) {
        const struct tec_actionflow_forward *f = &t->s->forwards[i];
        if (!f->known)
            continue;
        fprintf(t->out,
                "\n%s (%d besides): a launch takes %.3f ms, its calls one by one %.3f.\n\n"
                "| stage | op | calls | ms | %% | GFLOP | MB | FLOP/B | GFLOP/s | GB/s | of roof "
                "|\n|---|---|---|---|---|---|---|---|---|---|---|\n",
                f->name, f->rows, f->times.launch_ns / 1e6, f->times.sum_ns / 1e6);
        for (int o = 0; o < f->times.n; o++)
            op(t, &f->times.items[o], f->times.sum_ns);
    }
}

enum tec_status tec_actionflow_write_table(const struct tec_actionflow *s, struct tec_error *err)
{
    struct tec_out_file out = {0};
    char path[1024];
    snprintf(path, sizeof path, "%s/actionflow.md", s->dir);
    TEC_TRY(tec_outfile_file_open(&out, path, err));
    const struct table t = {s, out.file};
    head(&t);
    paper(&t);
    rows(&t);
    pieces(&t);
    forwards(&t);
    return tec_outfile_file_keep(&out, err);
}
