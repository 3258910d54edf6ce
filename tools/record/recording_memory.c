/* recording_memory.c - what a robot's memories remember when its recording begins, so that a replay
 * begins with the same.
 *
 * Texts, vectors and groups are attached as a store's file, as long as all of them together are
 * small; keys and values never are: they are computed again. Beyond that the message has the hash,
 * by which a file that somebody has kept is known. */
#include "base/json_text.h"
#include "graph/run/engine/engine.h"
#include "tools/record/recording_own.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The file of a memory, in memory; NULL: it could not be made. */
static void *file_of(struct tec_memory *memory, size_t *n)
{
    char path[32];
    struct stat st = {.st_size = 0};
    int file = memfd_create("tectum memory", MFD_CLOEXEC);
    if (file < 0)
        return NULL;
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    bool good = tec_memory_save(memory, path, NULL) == TEC_OK && fstat(file, &st) == 0;
    *n = (size_t)st.st_size;
    unsigned char *data = good && *n > 0 ? malloc(*n) : NULL;
    for (size_t at = 0; data && at < *n;) {
        ssize_t got = pread(file, data + at, *n - at, (off_t)at);
        if (got <= 0) {
            free(data);
            data = NULL;
        }
        at += got > 0 ? (size_t)got : 0;
    }
    close(file);
    return data;
}

/* One that holds something, as the message says it; its file is attached where `left` has room. */
static json_t *one(struct tec_mcap_writer *file, struct tec_memory *memory, int session,
                   int64_t *left, uint64_t now)
{
    const struct tec_store_state s = tec_memory_state(memory);
    char hash[33], name[160];
    size_t n = 0;
    if (s.segments == 0)
        return NULL;
    snprintf(hash, sizeof hash, "%016llx%016llx", (unsigned long long)s.hash[0],
             (unsigned long long)s.hash[1]);
    snprintf(name, sizeof name, "memory/%.120s.%d", tec_memory_name(memory), session);
    void *data = s.bytes <= *left ? file_of(memory, &n) : NULL;
    if (data) {
        tec_mcap_attach(file, name, "application/octet-stream", data, n, now);
        *left -= s.bytes;
    }
    json_t *json = json_pack("{s:s, s:i, s:I, s:I, s:I, s:s, s:s?}", "memory",
                             tec_memory_name(memory), "session", session, "segments",
                             (json_int_t)s.segments, "step", (json_int_t)s.step, "bytes",
                             (json_int_t)s.bytes, "state", hash, "attachment", data ? name : NULL);
    free(data);
    return json;
}

void tec_recording_memories(struct tec_mcap_writer *file, const struct tec_engine *e, uint64_t now)
{
    int64_t left = TEC_RECORDED_MEMORY;
    json_t *all = json_array();
    for (int i = 0; i < e->n_memories; i++)
        for (int s = 0; s < e->n_sessions; s++) {
            json_t *json = one(file, tec_memory_of(e->memories[i], s), s, &left, now);
            if (json)
                json_array_append_new(all, json);
        }
    if (json_array_size(all) > 0) {
        int channel = tec_recording_channel(file, "/tectum/memories");
        tec_recording_json(file, channel, 0, now, json_pack("{s:O}", "memories", all));
    }
    json_decref(all);
}
