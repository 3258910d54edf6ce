/* summary.c - summarises the events of a simulated run as quantiles, rates and counts. */
#include "tools/simulate/summary.h"

#include <stdlib.h>
#include <string.h>

static void add(struct tec_summary *s, struct tec_series *to, int64_t us)
{
    if (to->n == to->room) {
        int64_t room = to->room ? 2 * to->room : 1024;
        int64_t *more = TEC_NEW(s->arena, (size_t)room, int64_t);
        if (!more) {
            s->out_of_memory = true;
            return;
        }
        if (to->n)
            memcpy(more, to->us, (size_t)to->n * sizeof *more);
        to->us = more;
        to->room = room;
    }
    to->us[to->n++] = us;
}

void tec_summary_init(struct tec_summary *s, int horizon, const struct tec_loop_options *loop,
                      struct tec_arena *arena)
{
    *s = (struct tec_summary){.arena = arena, .horizon = horizon, .loop = loop, .from_ns = -1};
}

static void release(struct tec_summary *s, const struct tec_event *e)
{
    int at = s->loop->n_actions - 1;
    while (at > 0 && s->loop->actions[at].node != e->node)
        at--;
    if (at < 0)
        return;
    struct tec_summary_action *a = &s->actions[at];
    a->releases++;
    a->late += e->flag;
    add(s, &a->age, (e->t_ns - e->since_ns) / 1000);
}

static void end_frame(struct tec_summary *s, const struct tec_event *e)
{
    const struct tec_frame_record *r = e->record;
    s->frames++;
    s->to_ns = e->t_ns;
    s->missed += r->missed;
    s->filling += r->filling;
    s->causes[r->cause]++;
    s->tokens += r->place == 0 ? r->tokens : 0; /* of all sessions that ran together */
    s->rows += r->place == 0 ? r->rows : 0;
    add(s, &s->frame, (e->t_ns - e->since_ns) / 1000);
}

void tec_summary_event(struct tec_summary *s, const struct tec_event *e)
{
    switch (e->kind) {
    case TEC_EVENT_FRAME:
        s->from_ns = s->from_ns < 0 ? e->t_ns : s->from_ns;
        break;
    case TEC_EVENT_FRAME_END:
        end_frame(s, e);
        break;
    case TEC_EVENT_RELEASE:
        s->lives = e->frames > s->lives ? e->frames : s->lives;
        release(s, e);
        break;
    case TEC_EVENT_LEFT_OUT:
        s->left_out++;
        break;
    case TEC_EVENT_START:
        s->launches += e->requests || (e->ring && e->ring->segments);
        break;
    case TEC_EVENT_FINISH:
        s->finished++;
        add(s, &s->language, (e->t_ns - e->since_ns) / 1000);
        break;
    case TEC_EVENT_REFUSE:
        s->refused++;
        break;
    case TEC_EVENT_SHED:
        s->shed++;
        break;
    case TEC_EVENT_CANCEL:
        s->cancelled += e->flag;
        break;
    default:
        break;
    }
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static int64_t at(const struct tec_series *s, double q)
{
    int64_t rank = (int64_t)(q * (double)s->n + 0.9999999) - 1;
    return s->n ? s->us[rank < 0 ? 0 : rank >= s->n ? s->n - 1 : rank] : 0;
}

static json_t *quantiles(struct tec_series *s)
{
    if (!s->n)
        return json_null();
    qsort(s->us, (size_t)s->n, sizeof s->us[0], by_value);
    return json_pack("{s:I,s:I,s:I,s:I,s:I}", "min", (json_int_t)s->us[0], "p50",
                     (json_int_t)at(s, 0.5), "p99", (json_int_t)at(s, 0.99), "p999",
                     (json_int_t)at(s, 0.999), "max", (json_int_t)s->us[s->n - 1]);
}

static double span_s(const struct tec_summary *s)
{
    return s->to_ns > s->from_ns ? (double)(s->to_ns - s->from_ns) / 1e9 : 1.0;
}

int64_t tec_summary_late(const struct tec_summary *s)
{
    int64_t late = 0;
    for (int i = 0; i < s->loop->n_actions; i++)
        late += s->actions[i].late;
    return late;
}

/* Action rows of all nodes a second. */
static double action_hz(const struct tec_summary *s)
{
    int64_t releases = 0;
    for (int i = 0; i < s->loop->n_actions; i++)
        releases += s->actions[i].releases;
    return (double)s->horizon * (double)releases / span_s(s);
}

/* Of several action nodes each one's. */
static json_t *released_json(struct tec_summary *s)
{
    json_t *all = json_object();
    for (int i = 0; i < s->loop->n_actions; i++)
        json_object_set_new(
            all, s->loop->actions[i].name,
            json_pack("{s:I,s:I,s:o}", "releases", (json_int_t)s->actions[i].releases, "late",
                      (json_int_t)s->actions[i].late, "age_us", quantiles(&s->actions[i].age)));
    return all;
}

json_t *tec_summary_json(struct tec_summary *s)
{
    json_t *causes = json_object();
    for (int i = 1; i < TEC_CAUSES; i++)
        json_object_set_new(causes, tec_cause_name((enum tec_cause)i), json_integer(s->causes[i]));
    json_t *row =
        json_pack("{s:I,s:I,s:I,s:o,s:I,s:I,s:o,s:o,s:o}", "frames", (json_int_t)s->frames,
                  "skipped", (json_int_t)s->skipped, "missed", (json_int_t)s->missed, "causes",
                  causes, "late", (json_int_t)s->actions[0].late, "span_us",
                  (json_int_t)((s->to_ns - s->from_ns) / 1000), "frame_us", quantiles(&s->frame),
                  "age_us", quantiles(&s->actions[0].age), "language_us", quantiles(&s->language));
    json_t *more =
        json_pack("{s:f,s:I,s:f,s:f,s:f,s:I,s:I,s:I,s:I}", "action_hz", action_hz(s), "tokens",
                  (json_int_t)s->tokens, "tokens_s", (double)s->tokens / span_s(s), "mean_batch",
                  s->frames ? (double)s->rows / (double)s->frames : 0.0, "launch_rows",
                  s->launches ? (double)s->rows / (double)s->launches : 0.0, "finished",
                  (json_int_t)s->finished, "refused", (json_int_t)s->refused, "shed",
                  (json_int_t)s->shed, "cancelled", (json_int_t)s->cancelled);
    json_object_update(row, more);
    if (s->left_out)
        json_object_set_new(row, "left_out", json_integer((json_int_t)s->left_out));
    if (s->loop->n_actions > 1)
        json_object_set_new(row, "released", released_json(s));
    if (s->ring) {
        json_object_set_new(row, "filling", json_integer((json_int_t)s->filling));
        json_object_set_new(row, "age_frames", json_integer((json_int_t)s->lives));
    }
    json_decref(more);
    return row;
}

void tec_summary_print(struct tec_summary *s, const char *policy, FILE *out)
{
    json_t *row = tec_summary_json(s);
    const char *parts[] = {"frame_us", "age_us", "language_us"};
    fprintf(out, "%s: %lld frames, %lld skipped, %lld missed", policy, (long long)s->frames,
            (long long)s->skipped, (long long)s->missed);
    for (int i = 1; i < TEC_CAUSES; i++)
        if (s->causes[i])
            fprintf(out, ", %s %lld", tec_cause_name((enum tec_cause)i), (long long)s->causes[i]);
    if (s->left_out)
        fprintf(out, ", %lld left out", (long long)s->left_out);
    fprintf(out, "\n  %.2f action rows/s, %.1f tokens/s, %.2f rows a frame\n", action_hz(s),
            (double)s->tokens / span_s(s), s->frames ? (double)s->rows / (double)s->frames : 0.0);
    if (s->ring)
        fprintf(out, "  %lld frames of filling; actions are up to %lld frames old\n",
                (long long)s->filling, (long long)s->lives);
    for (int i = 0; i < 3; i++) {
        const json_t *q = json_object_get(row, parts[i]);
        if (json_is_object(q))
            fprintf(out, "  %-12s p50 %lld  p99 %lld  max %lld\n", parts[i],
                    (long long)json_integer_value(json_object_get(q, "p50")),
                    (long long)json_integer_value(json_object_get(q, "p99")),
                    (long long)json_integer_value(json_object_get(q, "max")));
    }
    fprintf(out, "  requests: %lld finished, %lld refused, %lld shed, %lld cancelled\n",
            (long long)s->finished, (long long)s->refused, (long long)s->shed,
            (long long)s->cancelled);
    json_decref(row);
}
