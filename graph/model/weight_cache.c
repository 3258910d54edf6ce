/* weight_cache.c - where the file of packed weights lies, whose it is, and its check and writing.
 *
 * Runs at load. Nothing here can fail a start: whatever is wrong with a file, the checkpoint is
 * there to be read. */
#include "graph/model/weight_cache.h"

#include "base/clock.h"
#include "base/store/adapter.h"
#include "graph/model/program.h"
#include "kernels/team.h"

#include <errno.h>
#include <jansson.h>
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

static void add_number(struct tec_blocks_key *key, double number)
{
    add(key, &number, sizeof number);
}

static void add_texts(struct tec_blocks_key *key, const char *const *texts, int n)
{
    for (int i = 0; i < n; i++)
        add_text(key, texts[i]);
}

/* A stack whose table a function of the description has made. */
static void add_stack(struct tec_blocks_key *key, const struct tec_stack *s)
{
    const double numbers[] = {s->layers,   s->width,    s->heads,
                              s->kv_heads, s->head_dim, s->mlp,
                              s->norm,     s->f32,      (double)s->norm_offset,
                              s->gated,    s->crosses};
    add(key, numbers, sizeof numbers);
    add(key, s->crossed, sizeof s->crossed);
    add_texts(key, s->names, TEC_ROLE_COUNT);
}

/* What of a call decides which weights it has and what they are. */
static void add_call(struct tec_blocks_key *key, const struct tec_model_call *c)
{
    const double numbers[] = {(double)c->word,
                              (double)c->part,
                              c->n_in,
                              c->rows,
                              c->cols,
                              c->h,
                              c->w,
                              c->constant,
                              c->timed,
                              c->same,
                              c->first,
                              c->rank,
                              c->side,
                              c->stride,
                              c->pad,
                              c->dilation,
                              c->period,
                              c->eps,
                              c->norm.eps,
                              c->closed,
                              c->cosines,
                              c->by,
                              c->bf16,
                              c->categories,
                              c->category,
                              c->scale,
                              c->shift,
                              c->gate,
                              c->rms,
                              c->offset,
                              c->position,
                              c->over,
                              c->over_position};
    const char *const texts[] = {c->weight,    c->bias,      c->norm.weight,
                                 c->norm.bias, c->norm.mean, c->norm.var};
    add(key, numbers, sizeof numbers);
    add_texts(key, texts, (int)(sizeof texts / sizeof texts[0]));
    add_texts(key, c->joined, 3);
    add_texts(key, c->joined_bias, 3);
    add_texts(key, c->norms, 2);
    for (int i = 0; i < c->n_in; i++)
        add_number(key, c->in[i]);
    if (c->stack)
        add_stack(key, c->stack);
}

/* The description as it was evaluated. false: no memory. */
static bool add_model(struct tec_blocks_key *key, const struct tec_model *m)
{
    char *text = json_dumps(m->json, JSON_SORT_KEYS | JSON_COMPACT | JSON_ENCODE_ANY);
    if (!text)
        return false;
    add_text(key, text);
    free(text);
    for (int i = 0; m->program && i < m->program->n; i++)
        add_call(key, &m->program->calls[i]);
    return true;
}

/* What is alike for every checkpoint: the file's name has it, so that files for other settings lie
 * side by side. */
static bool settings_of(const struct tec_weights_options *o, struct tec_blocks_key *key)
{
    const double numbers[] = {o->bf16, o->source.bf16, o->language, o->prompts > 1 ? o->prompts : 1,
                              tec_device_layout(o->device)};
    *key = (struct tec_blocks_key){0, 0};
    add_text(key, "packed weights");
    add(key, numbers, sizeof numbers);
    return add_model(key, o->model);
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
    struct tec_blocks_key settings;
    char path[PATH_ROOM];
    if (!settings_of(o, &settings))
        return NULL;
    struct tec_blocks_key key = key_of(o, settings);
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
    struct tec_blocks_key settings;
    struct tec_error why;
    char path[PATH_ROOM];
    if (!settings_of(o, &settings))
        return;
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
