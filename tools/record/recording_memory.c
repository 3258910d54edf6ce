/* recording_memory.c - what a robot's memories remember when its recording begins, so that a replay
 * begins with the same.
 *
 * Texts, vectors and groups are attached as a store's file, as long as all of them together are
 * small; keys and values never are: they are computed again. Beyond that the message has the hash,
 * by which a file that somebody has kept is known. */
#include "base/byte_text.h"
#include "base/json_text.h"
#include "graph/run/engine/engine.h"
#include "tools/record/recording_own.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The file of a memory, in memory: for munmap; NULL: it could not be made, as *err says. */
static void *file_of(struct tec_memory *memory, size_t *n, struct tec_error *err)
{
    char path[32];
    struct stat st = {.st_size = 0};
    void *data = MAP_FAILED;
    int file = memfd_create("tectum memory", MFD_CLOEXEC);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    enum tec_status status = file < 0 ? TEC_IO : tec_memory_save(memory, path, err);
    if (status == TEC_OK && fstat(file, &st) == 0 && st.st_size > 0)
        data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    if (data == MAP_FAILED && (file < 0 || status == TEC_OK))
        status = tec_fail(err, TEC_IO, "a file in memory: %s", strerror(errno));
    if (file >= 0)
        close(file);
    *n = (size_t)st.st_size;
    return status == TEC_OK ? data : NULL;
}

/* Whoever is to replay it has to keep the file now. */
static void tell(const struct tec_invocation *call, struct tec_memory *memory, int session,
                 const struct tec_store_state *s, const char *why)
{
    const char *file = tec_memory_file(memory);
    char bytes[24];
    tec_say(call,
            "the recording does not hold what memory '%.64s' of session %d began with, %u texts, "
            "%s (%.160s): a replay needs a copy of %s as it is now",
            tec_memory_name(memory), session, s->segments, tec_byte_text(bytes, s->bytes), why,
            file ? file : "it");
}

/* One that holds something, as the message says it; its file is attached where `left` has room. */
static json_t *one(struct tec_mcap_writer *file, const struct tec_invocation *call,
                   struct tec_memory *memory, int session, int64_t *left, uint64_t now)
{
    const struct tec_store_state s = tec_memory_state(memory);
    char hash[33], name[160];
    struct tec_error err = {TEC_OK, "all of them have 16 MiB at most"};
    size_t n = 0;
    if (s.segments == 0)
        return NULL;
    snprintf(hash, sizeof hash, "%016llx%016llx", (unsigned long long)s.hash[0],
             (unsigned long long)s.hash[1]);
    snprintf(name, sizeof name, "memory/%.120s.%d", tec_memory_name(memory), session);
    void *data = s.bytes <= *left ? file_of(memory, &n, &err) : NULL;
    if (data) {
        tec_mcap_attach(file, name, "application/octet-stream", data, n, now);
        *left -= s.bytes;
    } else {
        tell(call, memory, session, &s, err.message);
    }
    json_t *json = json_pack("{s:s, s:i, s:I, s:I, s:I, s:s, s:s?}", "memory",
                             tec_memory_name(memory), "session", session, "segments",
                             (json_int_t)s.segments, "step", (json_int_t)s.step, "bytes",
                             (json_int_t)s.bytes, "state", hash, "attachment", data ? name : NULL);
    if (data)
        munmap(data, n);
    return json;
}

void tec_recording_memories(struct tec_mcap_writer *file, const struct tec_opened *opened,
                            uint64_t now)
{
    const struct tec_engine *e = opened->engine;
    int64_t left = TEC_RECORDED_MEMORY;
    json_t *all = json_array();
    for (int i = 0; i < e->n_memories; i++)
        for (int s = 0; s < e->n_sessions; s++) {
            json_t *json = one(file, opened->call, tec_memory_of(e->memories[i], s), s, &left, now);
            if (json)
                json_array_append_new(all, json);
        }
    if (json_array_size(all) > 0) {
        int channel = tec_recording_channel(file, "/tectum/memories");
        tec_recording_json(file, channel, 0, now, json_pack("{s:O}", "memories", all));
    }
    json_decref(all);
}
