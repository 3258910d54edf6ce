/* pages.c - what a server tells of itself over HTTP beside its figures: the pipeline's graph, and
 * the newest frames as a trace. */
#include "tools/serve/pages.h"

#include "base/json_text.h"
#include "graph/run/engine/engine.h"
#include "tools/picture/drawing.h"
#include "tools/record/flight.h"
#include "tools/record/trace.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* What a writer of pictures prints, as text to be freed; NULL: there is no memory. */
static char *printed(const struct tec_drawing *d, bool dot, struct tec_error *err)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    if (!out)
        return NULL;
    enum tec_status status = TEC_OK;
    if (dot)
        tec_graph_dot(d, out);
    else
        status = tec_graph_json(d, out, err);
    if (fclose(out) == 0 && status == TEC_OK)
        return text;
    free(text);
    return NULL;
}

enum tec_status tec_page_graph(struct tec_buffer *out, const struct tec_metrics_source *source,
                               struct tec_heap *heap, struct tec_error *err)
{
    struct tec_arena arena;
    struct tec_drawing d;
    tec_arena_init(&arena, heap);
    enum tec_status status = tec_drawing_make(&d, source->engine->options.pipeline, &arena, err);
    char *text = status == TEC_OK ? printed(&d, false, err) : NULL;
    char *dot = text ? printed(&d, true, err) : NULL;
    json_t *graph = dot ? json_loads(text, 0, NULL) : NULL;
    char *whole = NULL;
    if (graph && json_object_set_new(graph, "dot", json_string(dot)) == 0)
        whole = tec_json_whole(graph, JSON_INDENT(1));
    if (whole)
        tec_buffer_bytes(out, whole, strlen(whole));
    else if (status == TEC_OK)
        status = tec_fail(err, TEC_NO_MEMORY, "no memory for the graph");
    json_decref(graph);
    free(whole);
    free(dot);
    free(text);
    tec_arena_finish(&arena);
    return status;
}

/* What a flight says of itself: the pipeline and the names of its nodes. */
static json_t *about(const struct tec_metrics_source *source)
{
    const struct tec_topology *t = &source->engine->topology;
    json_t *nodes = json_array();
    for (int i = 0; i < t->n_nodes; i++)
        json_array_append_new(nodes, json_pack("{s:s}", "name", t->nodes[i].name));
    return json_pack("{s:s?, s:s, s:I, s:o}", "pipeline", source->pipeline, "mode", "served",
                     "period_us", (json_int_t)t->period_us, "nodes", nodes);
}

/* From the start of the first of the last n frames to the last event. */
static int64_t span_of(const struct tec_flight *f, int n)
{
    size_t first = f->n_frames > (size_t)n ? f->n_frames - (size_t)n : 0;
    int64_t end = f->n_events ? f->events[f->n_events - 1].t_ns : 0;
    return f->n_frames && end > f->frames[first].start_ns ? end - f->frames[first].start_ns : 1;
}

enum tec_status tec_page_trace(struct tec_buffer *out, const struct tec_metrics_source *source,
                               int frames, struct tec_heap *heap, struct tec_error *err)
{
    struct tec_flight f;
    json_t *words = about(source);
    enum tec_status status =
        words ? tec_flight_newest(&f, source->recorder, words, TEC_TRACE_EVENTS, heap, err)
              : tec_fail(err, TEC_NO_MEMORY, "no memory for a trace");
    json_decref(words);
    TEC_TRY(status);
    struct tec_tracing_sink sink = {.format = TEC_TRACING_CHROME, .text = {.heap = heap}};
    status = tec_tracing_of_flight(&sink, &f, span_of(&f, frames), err);
    if (status == TEC_OK)
        tec_buffer_bytes(out, sink.text.data, sink.text.n);
    tec_buffer_finish(&sink.text);
    tec_flight_close(&f);
    return status;
}
