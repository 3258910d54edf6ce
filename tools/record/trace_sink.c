/* trace_sink.c - dispatches a trace to its format. */
#include "tools/record/trace_formats.h"

static const struct tec_tracing_writer *const writers[] = {
    [TEC_TRACING_PERFETTO] = &tec_tracing_perfetto, [TEC_TRACING_CHROME] = &tec_tracing_chrome};

void tec_tracing_begin(struct tec_tracing_sink *s)
{
    s->packet.heap = s->event.heap = s->inner.heap = s->text.heap;
    writers[s->format]->begin(s);
}

void tec_tracing_finish(struct tec_tracing_sink *s)
{
    writers[s->format]->finish(s);
    s->text.failed |= s->packet.failed || s->event.failed || s->inner.failed;
    tec_buffer_finish(&s->packet);
    tec_buffer_finish(&s->event);
    tec_buffer_finish(&s->inner);
}

int tec_tracing_track(struct tec_tracing_sink *s, const char *name, const char *unit)
{
    writers[s->format]->track(s, ++s->n_tracks, name, unit);
    return s->n_tracks;
}

void tec_tracing_event(struct tec_tracing_sink *s, const struct tec_tracing_event *event)
{
    writers[s->format]->event(s, event);
}

void tec_tracing_count(struct tec_tracing_sink *s, int track, const char *name, int64_t t_ns,
                       double value)
{
    writers[s->format]->count(s, track, name, t_ns, value);
}
