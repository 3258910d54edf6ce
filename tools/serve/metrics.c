/* metrics.c - writes a server's figures in Prometheus's text format. */
#include "tools/serve/metrics.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void __attribute__((format(printf, 2, 3)))
put(struct tec_buffer *out, const char *format, ...)
{
    char line[512];
    va_list list;
    va_start(list, format);
    int n = vsnprintf(line, sizeof line, format, list);
    va_end(list);
    if (n > 0)
        tec_buffer_bytes(out, line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
}

static int64_t of(const _Atomic int64_t *number)
{
    return atomic_load_explicit(number, memory_order_relaxed);
}

/* HELP and TYPE of a metric, before its samples. */
static void head(struct tec_buffer *out, const char *name, const char *type, const char *help)
{
    put(out, "# HELP tectum_%s %s\n# TYPE tectum_%s %s\n", name, help, name, type);
}

/* A label's value: names of nodes come from the pipeline's file. */
static const char *label(char text[128], const char *from)
{
    size_t n = 0;
    for (; *from && n + 3 < 128; from++) {
        if (*from == '"' || *from == '\\')
            text[n++] = '\\';
        text[n++] = (char)((unsigned char)*from < 32 ? ' ' : *from);
    }
    text[n] = '\0';
    return text;
}

/* The samples of a histogram; `labels`: "" or `node="see",`. */
static void times(struct tec_buffer *out, const char *name, const char *labels,
                  const struct tec_figure_times *t)
{
    int64_t sum = 0;
    size_t n = strlen(labels);
    for (int i = 0; i < TEC_FIGURE_BUCKET_COUNT; i++) {
        sum += of(&t->counts[i]);
        put(out, "tectum_%s_bucket{%sle=\"%g\"} %" PRId64 "\n", name, labels, tec_figure_buckets[i],
            sum);
    }
    sum += of(&t->counts[TEC_FIGURE_BUCKET_COUNT]);
    put(out, "tectum_%s_bucket{%sle=\"+Inf\"} %" PRId64 "\n", name, labels, sum);
    const char *open = n ? "{" : "", *close = n ? "}" : "";
    int shown = n ? (int)n - 1 : 0; /* without the comma at its end */
    put(out, "tectum_%s_sum%s%.*s%s %.9f\n", name, open, shown, labels, close,
        (double)of(&t->sum_ns) / 1e9);
    put(out, "tectum_%s_count%s%.*s%s %" PRId64 "\n", name, open, shown, labels, close, sum);
}

static void put_times(struct tec_buffer *out, const struct tec_figures *f)
{
    const struct {
        const char *name, *help;
        const struct tec_figure_times *times;
    } all[] = {
        {"frame_seconds", "Time of a frame, from its opening to its end.", &f->frame},
        {"obs_to_action_seconds", "Age of the observation when its actions left.", &f->age},
        {"queue_wait_seconds", "Time from a request until its frame had the inputs.", &f->wait},
        {"policy_seconds", "Time of admission and the policy's decision in a frame.", &f->policy},
        {"host_seconds", "Time of a frame that was no launch.", &f->host}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        head(out, all[i].name, "histogram", all[i].help);
        times(out, all[i].name, "", all[i].times);
    }
}

static void put_nodes(struct tec_buffer *out, const struct tec_metrics_source *s)
{
    const struct tec_topology *t = &s->engine->topology;
    head(out, "stage_seconds", "histogram", "Time of a launch, by node.");
    for (int i = 0; i < t->n_nodes; i++) {
        char name[128], labels[160];
        snprintf(labels, sizeof labels, "node=\"%s\",", label(name, t->nodes[i].name));
        times(out, "stage_seconds", labels, &s->figures->nodes[i]);
    }
}

static void put_counter(struct tec_buffer *out, const char *name, const char *help, int64_t value)
{
    head(out, name, "counter", help);
    put(out, "tectum_%s %" PRId64 "\n", name, value);
}

static void put_gauge(struct tec_buffer *out, const char *name, const char *help, int64_t value)
{
    head(out, name, "gauge", help);
    put(out, "tectum_%s %" PRId64 "\n", name, value);
}

/* Requests of clients, and requests of language within frames. */
static void put_requests(struct tec_buffer *out, const struct tec_metrics_source *s)
{
    const struct tec_figures *f = s->figures;
    head(out, "requests_total", "counter", "Requests of clients, by how they were answered.");
    put(out, "tectum_requests_total{status=\"answered\"} %" PRId64 "\n", s->stats->requests);
    put(out, "tectum_requests_total{status=\"refused\"} %" PRId64 "\n", s->stats->errors);
    head(out, "texts_total", "counter", "Requests for language, by what became of them.");
    const struct {
        const char *state;
        const _Atomic int64_t *n;
    } states[] = {{"arrived", &f->arrived}, {"admitted", &f->admitted},
                  {"refused", &f->refused}, {"finished", &f->finished},
                  {"shed", &f->shed},       {"cancelled", &f->cancelled}};
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++)
        put(out, "tectum_texts_total{state=\"%s\"} %" PRId64 "\n", states[i].state,
            of(states[i].n));
}

/* Of clients' requests where a deadline was given them, and of frames. */
static void put_misses(struct tec_buffer *out, const struct tec_metrics_source *s)
{
    head(out, "deadline_misses_total", "counter",
         "Requests whose own actions did not leave by their deadline, by cause.");
    for (int i = 1; i < TEC_CAUSES; i++)
        put(out, "tectum_deadline_misses_total{cause=\"%s\"} %" PRId64 "\n",
            tec_cause_name((enum tec_cause)i), of(&s->safety->misses[i]));
    head(out, "frame_misses_total", "counter",
         "Frames with a late action, or behind the next tick, by cause.");
    for (int i = 1; i < TEC_CAUSES; i++)
        put(out, "tectum_frame_misses_total{cause=\"%s\"} %" PRId64 "\n",
            tec_cause_name((enum tec_cause)i), of(&s->figures->missed[i]));
}

static int64_t kv_bytes(const struct tec_engine *e)
{
    int64_t sum = 0;
    for (int i = 0; i < e->n_chains; i++)
        sum += e->chains[i].joins ? 0 : e->chains[i].plan->bytes.kv;
    return sum;
}

void tec_metrics_text(struct tec_buffer *out, const struct tec_metrics_source *s)
{
    const struct tec_figures *f = s->figures;
    char name[128];
    head(out, "info", "gauge", "What is served.");
    put(out, "tectum_info{pipeline=\"%s\",device=\"%s\"} 1\n", label(name, s->pipeline),
        tec_device_computes(s->engine->device));
    put_requests(out, s);
    put_misses(out, s);
    put_counter(out, "frames_total", "Frames that have run.", of(&f->frames));
    put_counter(out, "held_actions_total",
                "Requests that were answered at their deadline with what on_miss says.",
                s->stats->substitutes);
    put_counter(out, "left_out_actions_total", "Actions that policies left out of frames.",
                of(&f->left_out));
    put_counter(out, "unread_texts_total",
                "Texts that no prompt could be made of: their readers kept the one before.",
                of(&f->unread));
    put_counter(out, "limited_requests_total",
                "Requests whose actions exceeded the robot's limits.", of(&s->safety->limited));
    put_counter(out, "tokens_generated_total", "Tokens of language.", of(&f->tokens));
    put_counter(out, "snapped_decisions_total", "Decisions that were moved to a captured point.",
                of(&f->snapped));
    put_gauge(out, "in_flight_requests", "Requests for language that are alive.",
              of(&f->in_flight));
    put_gauge(out, "batch_size", "Rows of the newest decode launch.", of(&f->batch));
    put_gauge(out, "kv_bytes", "Bytes that keys and values have on the device.",
              kv_bytes(s->engine));
    put_gauge(out, "slots", "Requests for language that fit at a time.", s->engine->topology.slots);
    put_gauge(out, "stopped", "1 after a stop that nobody has reset.",
              atomic_load(&s->safety->stopped));
    put_times(out, f);
    put_nodes(out, s);
}
