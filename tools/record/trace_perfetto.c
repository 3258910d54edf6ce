/* trace_perfetto.c - a trace as Perfetto's protobuf (perfetto.dev, "Synthetic track events"): field
 * numbers are those of trace_packet.proto, track_event.proto and track_descriptor.proto. */
#include "tools/record/trace_formats.h"

#include <string.h>

enum { TRACE_PACKET = 1 };
enum { PACKET_TIMESTAMP = 8, PACKET_SEQUENCE = 10, PACKET_EVENT = 11, PACKET_DESCRIPTOR = 60 };
enum { PACKET_SEQUENCE_FLAGS = 13, SEQUENCE_CLEARED = 1, SEQUENCE = 1 };
enum {
    DESCRIPTOR_UUID = 1,
    DESCRIPTOR_NAME = 2,
    DESCRIPTOR_PROCESS = 3,
    DESCRIPTOR_PARENT = 5,
    DESCRIPTOR_COUNTER = 8,
    DESCRIPTOR_ORDERING = 11,
    DESCRIPTOR_RANK = 12,
    EXPLICIT_ORDER = 3
};
enum { PROCESS_PID = 1, PROCESS_NAME = 6, COUNTER_UNIT_NAME = 6 };
enum {
    EVENT_ANNOTATION = 4,
    EVENT_TYPE = 9,
    EVENT_TRACK = 11,
    EVENT_NAME = 23,
    EVENT_DOUBLE = 44,
    EVENT_FLOW = 47,
    EVENT_LAST_FLOW = 48
};
enum { SLICE_BEGINS = 1, SLICE_ENDS = 2, MOMENT = 3, COUNTER = 4 };
enum {
    ANNOTATION_BOOL = 2,
    ANNOTATION_INT = 4,
    ANNOTATION_DOUBLE = 5,
    ANNOTATION_STRING = 6,
    ANNOTATION_NAME = 10
};
enum { ROOT = 1 /* uuid of the process's track; those of others are behind it */ };

static void put_packet(struct tec_tracing_sink *s)
{
    tec_buffer_field(&s->packet, PACKET_SEQUENCE, SEQUENCE);
    tec_buffer_field_bytes(&s->text, TRACE_PACKET, s->packet.data, s->packet.n);
    s->packet.n = s->event.n = 0;
}

static uint64_t uuid(int track)
{
    return (uint64_t)track + ROOT;
}

static void begin(struct tec_tracing_sink *s)
{
    tec_buffer_field(&s->inner, PROCESS_PID, 1);
    tec_buffer_field_text(&s->inner, PROCESS_NAME, "tectum");
    tec_buffer_field(&s->event, DESCRIPTOR_UUID, ROOT);
    tec_buffer_field_bytes(&s->event, DESCRIPTOR_PROCESS, s->inner.data, s->inner.n);
    tec_buffer_field(&s->event, DESCRIPTOR_ORDERING, EXPLICIT_ORDER);
    tec_buffer_field(&s->packet, PACKET_SEQUENCE_FLAGS, SEQUENCE_CLEARED);
    tec_buffer_field_bytes(&s->packet, PACKET_DESCRIPTOR, s->event.data, s->event.n);
    put_packet(s);
}

static void finish(struct tec_tracing_sink *s)
{
    (void)s;
}

static void track(struct tec_tracing_sink *s, int number, const char *name, const char *unit)
{
    tec_buffer_field(&s->event, DESCRIPTOR_UUID, uuid(number));
    tec_buffer_field(&s->event, DESCRIPTOR_PARENT, ROOT);
    tec_buffer_field_text(&s->event, DESCRIPTOR_NAME, name);
    tec_buffer_field(&s->event, DESCRIPTOR_RANK, (uint64_t)number);
    if (unit) {
        s->inner.n = 0;
        tec_buffer_field_text(&s->inner, COUNTER_UNIT_NAME, unit);
        tec_buffer_field_bytes(&s->event, DESCRIPTOR_COUNTER, s->inner.data, s->inner.n);
    }
    tec_buffer_field_bytes(&s->packet, PACKET_DESCRIPTOR, s->event.data, s->event.n);
    put_packet(s);
}

static void put_event(struct tec_tracing_sink *s, int64_t t_ns)
{
    tec_buffer_field(&s->packet, PACKET_TIMESTAMP, (uint64_t)t_ns);
    tec_buffer_field_bytes(&s->packet, PACKET_EVENT, s->event.data, s->event.n);
    put_packet(s);
}

static void annotate(struct tec_tracing_sink *s, const char *name, const json_t *value)
{
    s->inner.n = 0;
    tec_buffer_field_text(&s->inner, ANNOTATION_NAME, name);
    if (json_is_boolean(value))
        tec_buffer_field(&s->inner, ANNOTATION_BOOL, json_is_true(value));
    else if (json_is_integer(value))
        tec_buffer_field(&s->inner, ANNOTATION_INT, (uint64_t)json_integer_value(value));
    else if (json_is_string(value))
        tec_buffer_field_text(&s->inner, ANNOTATION_STRING, json_string_value(value));
    else
        tec_buffer_field_double(&s->inner, ANNOTATION_DOUBLE, json_number_value(value));
    tec_buffer_field_bytes(&s->event, EVENT_ANNOTATION, s->inner.data, s->inner.n);
}

static void put_fixed64(struct tec_buffer *b, int field, uint64_t value)
{
    double bits;
    memcpy(&bits, &value, sizeof bits);
    tec_buffer_field_double(b, field, bits);
}

static void event(struct tec_tracing_sink *s, const struct tec_tracing_event *e)
{
    bool moment = e->end_ns <= e->start_ns;
    const char *name;
    json_t *value;
    tec_buffer_field(&s->event, EVENT_TYPE, moment ? MOMENT : SLICE_BEGINS);
    tec_buffer_field(&s->event, EVENT_TRACK, uuid(e->track));
    tec_buffer_field_text(&s->event, EVENT_NAME, e->name);
    json_object_foreach((json_t *)(uintptr_t)e->args, name, value)
    {
        annotate(s, name, value);
    }
    if (e->step != TEC_FLOW_NONE)
        put_fixed64(&s->event, e->step == TEC_FLOW_ENDS ? EVENT_LAST_FLOW : EVENT_FLOW, e->flow);
    put_event(s, e->start_ns);
    if (moment)
        return;
    tec_buffer_field(&s->event, EVENT_TYPE, SLICE_ENDS);
    tec_buffer_field(&s->event, EVENT_TRACK, uuid(e->track));
    put_event(s, e->end_ns);
}

static void count(struct tec_tracing_sink *s, int number, const char *name, int64_t t_ns,
                  double value)
{
    (void)name;
    tec_buffer_field(&s->event, EVENT_TYPE, COUNTER);
    tec_buffer_field(&s->event, EVENT_TRACK, uuid(number));
    tec_buffer_field_double(&s->event, EVENT_DOUBLE, value);
    put_event(s, t_ns);
}

const struct tec_tracing_writer tec_tracing_perfetto = {begin, finish, track, event, count};
