/* tick_print.c - prints a tick of paced frames as a JSON object and as a line of text. */
#include "tools/frames/tick_print.h"

#include "tools/frames/frame_print.h"
#include "tools/frames/ranking.h"
#include "tools/frames/sentence.h"

static json_t *since(const struct tec_frames *f, int64_t at_ns)
{
    return json_integer((at_ns - f->began_ns) / 1000);
}

static json_t *rows_of(const struct tec_paced_given *given)
{
    int columns = given->columns;
    json_t *rows = json_array();
    for (int r = 0; r < given->rows; r++) {
        json_t *row = json_array();
        for (int c = 0; c < columns; c++)
            json_array_append_new(row, json_real(given->actions[r * columns + c]));
        json_array_append_new(rows, row);
    }
    return rows;
}

static json_t *actions_of(const struct tec_frames *f, const struct tec_paced_tick *tick)
{
    json_t *all = json_object();
    for (int i = 0; i < tick->n; i++)
        json_object_set_new(all, f->actions[i], rows_of(&tick->given[i]));
    return all;
}

/* Of several action nodes each one's part in the tick. */
static json_t *each_of(const struct tec_frames *f, const struct tec_paced_tick *tick)
{
    json_t *all = json_object();
    for (int i = 0; i < tick->n; i++) {
        const struct tec_paced_given *g = &tick->given[i];
        json_object_set_new(
            all, f->actions[i],
            json_pack("{s:s,s:o,s:b,s:o,s:o}", "source", tec_action_source_word(g->source),
                      "age_us", g->age_ns < 0 ? json_null() : json_integer(g->age_ns / 1000),
                      "missed", (int)(g->source != TEC_SOURCE_FRESH && !g->left_out), "deadline_us",
                      since(f, g->deadline_ns), "handed_us", since(f, g->handed_ns)));
    }
    return all;
}

static json_t *no_texts(const struct tec_frames *f)
{
    json_t *all = json_object();
    for (int d = 0; d < f->n_decoders; d++)
        json_object_set_new(all, f->decoders[d], json_array());
    return all;
}

enum tec_status tec_tick_json(json_t **out, const struct tec_frames *f,
                              const struct tec_paced_tick *tick, struct tec_error *err)
{
    const char *cause = tec_frame_cause_word(tick->cause);
    const struct tec_paced_given *first = &tick->given[0];
    if (tick->out)
        TEC_TRY(tec_frame_json(out, f, tick->out, err));
    else
        *out = json_pack("{s:I,s:n,s:n,s:o,s:n}", "frame", (json_int_t)tick->frame, "start_us",
                         "end_us", "text", no_texts(f), "plan");
    json_t *more =
        json_pack("{s:o,s:b,s:o,s:s,s:o,s:b,s:o,s:o,s:o}", "age_us",
                  first->age_ns < 0 ? json_null() : json_integer(first->age_ns / 1000), "missed",
                  (int)tick->missed, "cause", cause ? json_string(cause) : json_null(), "source",
                  tec_action_source_word(first->source), "actions", actions_of(f, tick), "skipped",
                  !tick->out, "tick_us", since(f, tick->tick_ns), "deadline_us",
                  since(f, first->deadline_ns), "handed_us", since(f, first->handed_ns));
    bool good = *out && more && json_object_update(*out, more) == 0;
    if (good && f->n_sessions > 1)
        good = json_object_set_new(*out, "session", json_integer(tick->session)) == 0;
    if (good && tick->n > 1)
        good = json_object_set_new(*out, "released", each_of(f, tick)) == 0;
    char trouble[160];
    tec_beyond_text(trouble, sizeof trouble, &first->beyond);
    if (good && trouble[0])
        good = json_object_set_new(*out, "trouble", json_string(trouble)) == 0;
    json_decref(more);
    return good ? TEC_OK : tec_fail(err, TEC_NO_MEMORY, "no memory for a frame's line");
}

static void print_given(FILE *out, const struct tec_paced_given *g)
{
    enum { SHOWN = 8 };
    int columns = g->columns;
    for (int c = 0; g->rows > 0 && c < columns && c < SHOWN; c++)
        fprintf(out, "%s%7.3f", c ? " " : "[", g->actions[c]);
    fputs(g->rows == 0 ? "no actions" : columns > SHOWN ? " ...]" : "]", out);
    fprintf(out, "  %s", tec_action_source_word(g->source));
    if (g->beyond.n)
        fprintf(out, " (%d limited)", g->beyond.n);
    if (g->left_out)
        fputs(" (left out)", out);
    if (g->age_ns >= 0)
        fprintf(out, "  age %6.2f ms", (double)g->age_ns / 1e6);
}

void tec_tick_text_line(FILE *out, const struct tec_frames *f, const struct tec_paced_tick *tick)
{
    fprintf(out, "%4lld  ", (long long)tick->frame);
    if (f->n_sessions > 1)
        fprintf(out, "session %d  ", tick->session);
    print_given(out, &tick->given[0]);
    for (int i = 1; i < tick->n; i++) {
        fprintf(out, "  %s ", f->actions[i]);
        print_given(out, &tick->given[i]);
    }
    if (tick->out && f->stages)
        tec_frame_print_ring(out, f, tick->out);
    else if (tick->out && f->n_decoders)
        fprintf(out, "  batch %d", tec_frame_batch(f, tick->out->record, NULL));
    if (tick->missed)
        fputs(tick->out ? "  missed" : "  skipped", out);
    if (tick->missed && tec_frame_cause_word(tick->cause))
        fprintf(out, " (%s)", tec_frame_cause_word(tick->cause));
    for (int i = 0; tick->out && i < tick->out->n_texts; i++)
        if (tick->out->texts[i].n_ranked)
            tec_ranking_print(out, &tick->out->texts[i]);
        else if (tick->out->texts[i].done)
            tec_frame_print_sentence(out, tick->out->texts[i].whole);
    fputc('\n', out);
    fflush(out);
}

void tec_paced_counts_print(FILE *out, const struct tec_paced_counts *counts)
{
    const char *between = " (";
    fprintf(out, "%lld ticks, %lld skipped, %lld missed", (long long)counts->ticks,
            (long long)counts->skipped, (long long)counts->missed);
    for (int c = TEC_CAUSE_POLICY; c < TEC_CAUSES; c++) {
        if (counts->causes[c] == 0)
            continue;
        fprintf(out, "%s%s %lld", between, tec_frame_cause_word((enum tec_cause)c),
                (long long)counts->causes[c]);
        between = ", ";
    }
    fputs(between[0] == ',' ? ")" : "", out);
    if (counts->beyond)
        fprintf(out, ", %lld beyond limits", (long long)counts->beyond);
    if (counts->left_out)
        fprintf(out, ", %lld left out", (long long)counts->left_out);
    if (counts->stopped)
        fprintf(out, ", %lld stopped", (long long)counts->stopped);
    fputc('\n', out);
}
