/* weight_cache.c - where the file of packed weights lies, whose it is, and its check and writing.
 *
 * Runs at load. Nothing here can fail a start: whatever is wrong with a file, the checkpoint is
 * there to be read. */
#include "graph/model/weight_cache.h"

#include "base/clock.h"
#include "base/store/adapter.h"
#include "kernels/team.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

enum { PATH_ROOM = 4096 };

static void __attribute__((format(printf, 2, 3)))
say(const struct tec_weight_cache *c, const char *format, ...)
{
    char line[PATH_ROOM + 512];
    va_list args;
    if (!c->say)
        return;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    c->say(c->self, line);
}

static void count(const struct tec_weight_cache *c)
{
    if (c->fits)
        ++*c->fits;
}

/* --- whose ------------------------------------------------------------------------------------ */

static void add(struct tec_blocks_key *key, const void *data, size_t n)
{
    XXH128_hash_t of = XXH3_128bits(data, n);
    const uint64_t chain[4] = {key->low, key->high, of.low64, of.high64};
    XXH128_hash_t next = XXH3_128bits(chain, sizeof chain);
    *key = (struct tec_blocks_key){next.low64, next.high64};
}

static void add_text(struct tec_blocks_key *key, const char *text)
{
    add(key, text ? text : "", text ? strlen(text) + 1 : 0); /* NULL is not "" */
}

/* What is alike for every checkpoint: the file's name has it, so that files for other settings lie
 * side by side. */
static struct tec_blocks_key settings_of(const struct tec_weights_options *o)
{
    const double numbers[] = {o->bf16, o->source.bf16, o->language, o->prompts > 1 ? o->prompts : 1,
                              tec_device_layout(o->device)};
    struct tec_blocks_key key = {0, 0};
    add_text(&key, "packed weights");
    add(&key, numbers, sizeof numbers);
    add(&key, &o->model->identity, sizeof o->model->identity);
    if (o->quantize) /* files that were made before there was this stay whole */
        add_text(&key, o->quantize == TEC_QUANTIZE_INT8 ? "int8" : "int4");
    if (o->quantize_head)
        add_text(&key, "head in int8");
    return key;
}

static struct tec_blocks_key key_of(const struct tec_weights_options *o,
                                    struct tec_blocks_key settings)
{
    const struct tec_checkpoint *c = o->source.checkpoint;
    const uint64_t of[] = {TEC_WEIGHT_PACKING, tec_tensors_identity(c->tensors),
                           c->adapter ? tec_adapter_identity(c->adapter) : 0};
    add(&settings, of, sizeof of);
    add_text(&settings, o->cache->program);
    add_text(&settings, c->prefix);
    return settings;
}

/* --- where ------------------------------------------------------------------------------------ */

/* The folder of the checkpoint's tensors. */
static void folder_of(const struct tec_checkpoint *c, char folder[PATH_ROOM])
{
    struct stat st;
    const char *path = c->base ? c->base : c->path, *slash = strrchr(path, '/');
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        snprintf(folder, PATH_ROOM, "%s", path);
    else
        snprintf(folder, PATH_ROOM, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
}

/* A folder for caches of all checkpoints has a name for each, made of its path. */
static bool name_in(const struct tec_weights_options *o, const char *folder, bool shared,
                    struct tec_blocks_key settings, char path[PATH_ROOM])
{
    const struct tec_checkpoint *c = o->source.checkpoint;
    char full[PATH_ROOM];
    const char *last = strrchr(c->path, '/');
    if (shared && realpath(c->path, full))
        add_text(&settings, full);
    else
        add_text(&settings, c->layout == TEC_LAYOUT_FILE ? (last ? last + 1 : c->path) : "");
    add_text(&settings, c->adapter ? tec_adapter_facts(c->adapter).path : NULL);
    int n = snprintf(path, PATH_ROOM, "%s/tectum-%016llx.weights", folder,
                     (unsigned long long)(settings.low ^ settings.high));
    return n > 0 && n < PATH_ROOM;
}

/* Where file `at` may be, in the order of looking; false: there are no more places. */
static bool place_of(const struct tec_weights_options *o, int at, struct tec_blocks_key settings,
                     char path[PATH_ROOM])
{
    const struct tec_weight_cache *c = o->cache;
    char beside[PATH_ROOM];
    if (c->folder)
        return at == 0 && name_in(o, c->folder, true, settings, path);
    folder_of(o->source.checkpoint, beside);
    if (at == 0)
        return name_in(o, beside, false, settings, path);
    return at == 1 && c->user && name_in(o, c->user, true, settings, path);
}

/* --- reading ---------------------------------------------------------------------------------- */

struct check {
    const struct tec_blocks *blocks;
    int lanes;
    _Atomic int bad; /* 1 + a chunk that is not what was written */
};

static void check_lane(void *user, int lane)
{
    struct check *c = user;
    int n = tec_blocks_chunks(c->blocks);
    for (int i = lane; i < n && !atomic_load(&c->bad); i += c->lanes)
        if (!tec_blocks_check(c->blocks, i))
            atomic_store(&c->bad, 1 + i);
}

/* Reads every byte, which also brings it into memory before the first frame. */
static bool check(const struct tec_blocks *blocks, struct tec_team *team)
{
    struct check c = {.blocks = blocks, .lanes = team ? tec_team_lanes(team) : 1};
    if (team)
        tec_team_run(team, check_lane, &c);
    else
        check_lane(&c, 0);
    return !atomic_load(&c.bad);
}

struct tec_blocks *tec_weight_cache_open(const struct tec_weights_options *o, struct tec_team *team,
                                         struct tec_heap *heap)
{
    const struct tec_clock clock = {NULL};
    const struct tec_blocks_key settings = settings_of(o), key = key_of(o, settings);
    char path[PATH_ROOM];
    for (int at = 0; place_of(o, at, settings, path); at++) {
        struct tec_blocks *blocks;
        struct tec_error why;
        int64_t from = tec_clock_now(&clock);
        enum tec_status status = tec_blocks_open(&blocks, path, key, heap, &why);
        if (status == TEC_OK && !check(blocks, team)) {
            tec_blocks_close(blocks);
            status = tec_fail(&why, TEC_MALFORMED, "is damaged");
        }
        if (status == TEC_OK) {
            say(o->cache, "weights: %s, %.2f GiB, checked in %.2f s", path,
                (double)tec_blocks_bytes(blocks) / 0x1p30,
                (double)(tec_clock_now(&clock) - from) / 1e9);
            count(o->cache);
            return blocks;
        }
        if (status != TEC_NOT_FOUND)
            say(o->cache, "weights: %s %s; the checkpoint is read instead", path, why.message);
    }
    return NULL;
}

/* --- writing ---------------------------------------------------------------------------------- */

static void copy_block(void *user, int at, size_t offset, void *to, size_t n)
{
    const struct tec_weights *w = user;
    tec_device_download(w->device, TEC_STREAM_MAIN, to, (const char *)w->blocks[at] + offset, n);
}

/* The user's cache folder may be new; the one above it is the user's own. */
static void make_folder(const char *path)
{
    char folder[PATH_ROOM];
    for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
        (void)mkdir(folder, 0777);
    }
}

/* Where to write: the first place that may be written to. */
static bool choose(const struct tec_weights_options *o, struct tec_blocks_key settings,
                   char path[PATH_ROOM])
{
    char folder[PATH_ROOM];
    for (int at = 0; place_of(o, at, settings, path); at++) {
        if (o->cache->folder || at > 0)
            make_folder(path);
        snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
        if (access(folder, W_OK | X_OK) == 0)
            return true;
    }
    return false;
}

void tec_weight_cache_write(const struct tec_weights_options *o, const struct tec_weights *w,
                            struct tec_heap *heap)
{
    const struct tec_clock clock = {NULL};
    const struct tec_blocks_key settings = settings_of(o);
    struct tec_error why;
    char path[PATH_ROOM];
    if (!choose(o, settings, path)) {
        say(o->cache, "weights: not kept: no folder for them can be written to");
        return;
    }
    const struct tec_blocks_source source = {.key = key_of(o, settings),
                                             .sizes = w->sizes,
                                             .n = w->n_blocks,
                                             .note = w->tied,
                                             .copy = copy_block,
                                             .user = (void *)(uintptr_t)w};
    int64_t from = tec_clock_now(&clock);
    if (tec_blocks_write(path, &source, heap, &why) != TEC_OK) {
        say(o->cache, "weights: not kept as %s: %s", path, why.message);
        return;
    }
    count(o->cache);
    say(o->cache, "weights: kept as %s, %.2f GiB, in %.1f s", path, (double)w->bytes / 0x1p30,
        (double)(tec_clock_now(&clock) - from) / 1e9);
}
