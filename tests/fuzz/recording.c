/* recording.c - fuzz target: a recording's bytes, through everything that reads one: explain,
 * trace, top, the page, the frames that replay would run with what was decided in them, what its
 * memories began with, and the bag of ROS 2. */
#include "graph/memory/store.h"
#include "tools/record/cadence.h"
#include "tools/record/explain.h"
#include "tools/record/recorded.h"
#include "tools/record/recorded_decided.h"
#include "tools/record/replay_options.h"
#include "tools/record/ros2.h"
#include "tools/record/trace.h"
#include "tools/record/view_page.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void trace(struct tec_flight *f, struct tec_heap *heap, enum tec_tracing_format format)
{
    struct tec_tracing_sink sink = {.format = format, .text = {.heap = heap}};
    struct tec_error err;
    enum tec_status status = tec_tracing_of_flight(&sink, f, 0, &err);
    (void)status; /* no memory is allowed to be */
    tec_buffer_finish(&sink.text);
}

/* What a flight recorder's events are made into. */
static void read_flight(const char *path, struct tec_heap *heap)
{
    static FILE *nowhere;
    struct tec_flight f;
    struct tec_cadence c;
    struct tec_error err;
    json_t *json = NULL;
    if (!nowhere)
        nowhere = fopen("/dev/null", "we");
    if (!nowhere || tec_flight_open(&f, path, heap, &err) != TEC_OK)
        return;
    if (tec_explain_all_json(&json, &f, &err) == TEC_OK)
        json_decref(json);
    if (f.n_frames &&
        tec_explain_frame_text(nowhere, &f, &f.frames[f.n_frames - 1], &err) != TEC_OK)
        abort();
    if (tec_cadence_of(&c, &f, 0.0, &err) == TEC_OK)
        tec_cadence_print(nowhere, &f, &c);
    trace(&f, heap, TEC_TRACING_PERFETTO);
    trace(&f, heap, TEC_TRACING_CHROME);
    struct tec_buffer page = {.heap = heap};
    enum tec_status status = tec_view_data(&page, &f, INT64_MIN, 100, &err);
    (void)status;
    tec_buffer_finish(&page);
    tec_flight_close(&f);
}

/* What has been read is decided again, where its requests live: all of it, and nothing else. */
static void follow(const struct tec_decided *decided, const struct tec_topology *topology)
{
    static struct tec_following f;
    static struct tec_decision now;
    static struct tec_request_view rows[TEC_MAX_ROWS];
    const struct tec_decision *d = &decided->decision;
    struct tec_frame_view view = {.n_req = d->n_rows, .req = rows};
    struct tec_error err;
    char reason[TEC_DECIDED_REASON];
    f = (struct tec_following){
        .decided = decided, .otherwise = tec_default_planner, .n_nodes = topology->n_nodes};
    for (int i = 0; i < d->n_rows; i++)
        rows[i].id = decided->requests[i];
    const struct tec_planner p = tec_following_planner(&f);
    for (int i = 0; i < decided->n_refused; i++)
        if (p.admit(p.self, &view, &(struct tec_request_view){.id = decided->refused[i].request},
                    reason) ||
            !memchr(reason, '\0', sizeof reason))
            abort();
    for (int i = 0; i < decided->n_late; i++)
        if (!p.late(p.self, decided->late[i].session, decided->late[i].request, false))
            abort();
    for (int i = 0; i < decided->n_evicted; i++) {
        view.next_id = decided->evicted[i].arrival;
        if (p.evict(p.self, &view, 1) >= view.n_req)
            abort();
    }
    tec_planner_default(topology, &view, &now);
    if (p.plan(p.self, &view, &now, &err) != TEC_OK || !f.followed ||
        !tec_decision_same(&now, d, topology->n_nodes))
        abort();
}

/* What was decided, of a pipeline with a bit of everything; json NULL: in the file from there on.
 */
static void read_decided(struct tec_mcap_reader *file, const json_t *json)
{
    static const char *const partitions[] = {"rt", "bg"};
    static const struct tec_topology topology = {
        .n_nodes = 5,
        .nodes = {{.name = "see", .kind = "prefill", .slices = 4},
                  {.name = "act", .kind = "action", .hard = true},
                  {.name = "talk", .kind = "decode"},
                  {.name = "recall", .kind = "memory_load"},
                  {.name = "turn", .kind = "decode", .ring = 1}},
        .n_k = 2,
        .k = {1, 4},
        .n_depth = 2,
        .depth = {1, 2},
        .n_rings = 1,
        .rings = {{.name = "ring", .stages = 2}},
        .n_partitions = 2,
        .partitions = partitions};
    static struct tec_decided decided;
    struct tec_error err;
    bool found = true;
    enum tec_status status =
        json ? tec_recorded_decided(&decided, json, &topology, &err)
             : tec_recorded_decided_ahead(&decided, &found, file, &topology, &err);
    if (status == TEC_OK && found && decided.whole)
        follow(&decided, &topology);
}

/* What replay would run. */
static void read_frames(const char *path, struct tec_heap *heap)
{
    struct tec_mcap_reader file;
    struct tec_recorded recorded;
    struct tec_recorded_frame frame;
    struct tec_mcap_name name;
    enum tec_recorded_message what;
    struct tec_error err;
    char node[120];
    bool more = true;
    if (tec_mcap_read(&file, path, &err) != TEC_OK)
        return;
    tec_recorded_init(&recorded, &file, heap);
    while (more) {
        json_t *json = NULL;
        if (tec_recorded_next(&recorded, &what, &frame, &json, node, &more, &err) != TEC_OK)
            more = false;
        if (json && what == TEC_RECORDED_DECISIONS)
            read_decided(&file, json);
        if (more && what == TEC_RECORDED_TICK)
            read_decided(&file, NULL);
        json_decref(json);
    }
    bool any = tec_mcap_attachment(&file, "pipeline.json", &name, NULL) == TEC_OK && name.text;
    (void)any;
    tec_recorded_finish(&recorded);
    tec_mcap_read_close(&file);
}

static enum tec_status count(void *user, const char *text, size_t bytes, uint32_t *tokens,
                             struct tec_error *err)
{
    (void)user;
    (void)text;
    (void)err;
    *tokens = (uint32_t)(bytes / 3 + 1);
    return TEC_OK;
}

/* A store that begins with what is attached: counts are its own, whatever the file says. */
static void begin(const char *path, struct tec_heap *heap)
{
    const struct tec_store_options o = {.begins = path,
                                        .key = {.layers = 2, .row_bytes = 64, .dim = 256},
                                        .max_segments = 64,
                                        .threshold = 0.9,
                                        .stable_steps = 2,
                                        .count = count};
    struct tec_store *store = NULL;
    struct tec_store_segment_view v;
    if (tec_store_open(&store, &o, heap, NULL) != TEC_OK)
        return;
    if (tec_store_began(store).segments != tec_store_state(store).segments)
        abort();
    for (uint32_t i = 0; i < o.max_segments; i++)
        if (tec_store_view(store, i, &v) && (v.tokens != v.text_bytes / 3 + 1 || v.has_kv))
            abort();
    tec_store_close(store);
}

/* What memories began with. */
static void read_memories(const char *path, struct tec_heap *heap)
{
    struct tec_mcap_reader file;
    struct tec_replay_source source = {.folder = "/dev/shm/tectum-fuzz-XXXXXX"};
    struct tec_error err;
    struct tec_arena arena;
    struct tec_invocation call = {.verb = "replay", .heap = heap, .arena = &arena};
    if (tec_mcap_read(&file, path, &err) != TEC_OK)
        return;
    tec_arena_init(&arena, heap);
    if (mkdtemp(source.folder)) {
        enum tec_status status = tec_replay_memories(&source, &call, &file, &err);
        for (int i = 0; status == TEC_OK && i < source.n_starts; i++)
            if (source.starts[i].path)
                begin(source.starts[i].path, heap);
        tec_replay_memories_close(&source);
        if (rmdir(source.folder) != 0)
            abort();
    }
    tec_arena_finish(&arena);
    tec_mcap_read_close(&file);
}

/* In memory, because the description of a bag is synced to the disk. */
static void write_bag(const char *path, struct tec_heap *heap)
{
    static const char *const files[] = {"recording.mcap", "metadata.yaml"};
    char parent[] = "/dev/shm/tectum-fuzz-XXXXXX", folder[64], file[96];
    struct tec_ros2_counts counts;
    struct tec_error err;
    if (!mkdtemp(parent))
        return;
    snprintf(folder, sizeof folder, "%s/bag", parent);
    const struct tec_ros2_options options = {path, folder, NULL};
    enum tec_status status = tec_ros2_write(&counts, &options, heap, &err);
    (void)status;
    for (int i = 0; i < 2; i++) {
        snprintf(file, sizeof file, "%s/%s", folder, files[i]);
        unlink(file);
    }
    rmdir(folder);
    rmdir(parent);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tec_heap heap = {.limit = (size_t)1 << 30};
    char path[64];
    int fd = memfd_create("recording", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    read_flight(path, &heap);
    read_frames(path, &heap);
    read_memories(path, &heap);
    write_bag(path, &heap);
    close(fd);
    if (heap.live != 0)
        abort();
    return 0;
}
