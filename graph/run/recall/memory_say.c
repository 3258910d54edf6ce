/* memory_say.c - what goes wrong without hurting an answer is said: the first few at once, later
 * ones at a bounded rate. The frame's side leaves it for the worker: it neither waits nor prints.
 */
#include "graph/run/recall/memory_own.h"

#include "base/clock.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define EACH_NS INT64_C(10000000000)
#define AT_ONCE 4
enum { MANY = 1000 /* segments whose keys take a while to compute */ };

static const struct tec_clock real = {NULL};

/* Say the newest, and how many were not said since the last. */
static void pass_on(const struct tec_memory *m, const char *text, int64_t others)
{
    char line[TEC_MEMORY_TEXT + 64];
    if (!m->options.trouble)
        return;
    snprintf(line, sizeof line, others > 0 ? "%s (and %lld others before it)" : "%s", text,
             (long long)others);
    m->options.trouble(m->options.user, line);
}

__attribute__((format(printf, 2, 0))) static void say(struct tec_memory *m, const char *format,
                                                      va_list args)
{
    const struct tec_where *where = &m->node->where;
    char text[TEC_MEMORY_TEXT], what[TEC_MEMORY_TEXT - 180];
    vsnprintf(what, sizeof what, format, args);
    snprintf(text, sizeof text, "%.80s:%d: '%.32s', memory '%.32s': %s",
             where->file ? where->file : "?", where->line, m->node->name, m->resource->name, what);
    int64_t now = tec_clock_now(&real), others;
    pthread_mutex_lock(&m->words);
    memcpy(m->trouble, text, sizeof text);
    bool due = m->calm_ns - now <= (AT_ONCE - 1) * EACH_NS;
    others = m->unsaid;
    if (due)
        m->calm_ns = (m->calm_ns > now ? m->calm_ns : now) + EACH_NS;
    m->unsaid = due ? 0 : others + 1;
    pthread_mutex_unlock(&m->words);
    if (due)
        pass_on(m, text, others);
}

void tec_memory_say(struct tec_memory *m, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(m, format, args);
    va_end(args);
}

void tec_memory_say_failure(struct tec_memory *m, enum tec_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (status == TEC_IO)
        atomic_store(&m->failing, true);
    say(m, format, args);
    va_end(args);
}

void tec_memory_well(struct tec_memory *m)
{
    pthread_mutex_lock(&m->words);
    m->trouble[0] = '\0';
    pthread_mutex_unlock(&m->words);
}

void tec_memory_written(struct tec_memory *m)
{
    if (!atomic_load(&m->failing) || tec_store_fails(m->store))
        return;
    atomic_store(&m->failing, false);
    tec_memory_say(m, "%s is written again", m->path);
    tec_memory_well(m);
}

static void say_damage(struct tec_memory *m, const struct tec_memory_damage *d)
{
    char whose[100] = "";
    if (d->segment[0])
        snprintf(whose, sizeof whose, "segment '%s', ", d->segment);
    else if (d->serial)
        snprintf(whose, sizeof whose, "segment number %llu, ", (unsigned long long)d->serial);
    tec_memory_say(m, "%.200s is damaged at byte %lld: %s%s (%lld bytes)", tec_memory_shown(m),
                   (long long)d->offset, whose, d->what, (long long)d->bytes);
}

void tec_memory_damaged(void *memory, const struct tec_log_damage *damage)
{
    struct tec_memory *m = memory;
    struct tec_memory_damage d = {
        .offset = damage->offset, .bytes = damage->bytes, .serial = damage->segment};
    snprintf(d.what, sizeof d.what, "%s", damage->what);
    snprintf(d.segment, sizeof d.segment, "%s", damage->id ? damage->id : "");
    pthread_mutex_lock(&m->words);
    int64_t n = m->damages.n++;
    m->damages.first[n < TEC_MEMORY_DAMAGES ? n : TEC_MEMORY_DAMAGES - 1] = d;
    bool opening = !m->store;
    if (opening || damage->reading) /* a prompt's failure is said, with its cause */
        m->told++;
    pthread_mutex_unlock(&m->words);
    if (opening)
        say_damage(m, &d);
}

void tec_memory_tell_damage(struct tec_memory *m)
{
    struct tec_memory_damage d = {.offset = 0};
    pthread_mutex_lock(&m->words);
    int64_t n = m->damages.n, more = n - m->told;
    if (more > 0) /* the newest that is remembered */
        d = m->damages.first[n <= TEC_MEMORY_DAMAGES ? n - 1 : TEC_MEMORY_DAMAGES - 1];
    m->unsaid += more > 1 ? more - 1 : 0;
    m->told = n;
    pthread_mutex_unlock(&m->words);
    if (more > 0)
        say_damage(m, &d);
}

void tec_memory_damages(struct tec_memory *m, struct tec_memory_damages *out)
{
    pthread_mutex_lock(&m->words);
    *out = m->damages;
    pthread_mutex_unlock(&m->words);
}

void tec_memory_tell_missing(struct tec_memory *m, const char *what)
{
    struct tec_store_cursor at = {.inside = false};
    uint32_t some[256], n, all = tec_store_counts(m->store).segments, missing = 0;
    char line[TEC_MEMORY_TEXT];
    if (all < MANY)
        return;
    while ((n = tec_store_missing_from(m->store, &at, some, sizeof some / sizeof *some)) > 0) {
        missing += n;
        tec_store_pass(m->store, &at, some[n - 1]);
    }
    if (missing < MANY)
        return;
    snprintf(line, sizeof line,
             "memory '%.64s': keys and values of %u of %u segments are to be computed%s", m->name,
             missing, all, what);
    if (m->options.trouble)
        m->options.trouble(m->options.user, line);
}

void tec_memory_hear(struct tec_memory *m, const struct tec_memory_prompt *p,
                     const struct tec_error *why, int segment)
{
    struct tec_memory_heard *h = &m->heard;
    if (atomic_load_explicit(&h->full, memory_order_acquire)) {
        atomic_fetch_add_explicit(&h->others, 1, memory_order_relaxed);
        return;
    }
    h->why = *why;
    h->handle = segment >= 0 ? p->handles[segment] : TEC_NO_SEGMENT;
    h->segment = segment >= 0 ? p->views[segment].id : 0;
    atomic_store_explicit(&h->full, true, memory_order_release);
}

void tec_memory_tell(struct tec_memory *m)
{
    struct tec_memory_heard *h = &m->heard;
    struct tec_store_segment_view view;
    char whose[64] = "";
    tec_memory_tell_damage(m);
    if (!atomic_load_explicit(&h->full, memory_order_acquire))
        return;
    pthread_mutex_lock(&m->lock); /* names are borrowed */
    if (h->handle != TEC_NO_SEGMENT && tec_store_view(m->store, h->handle, &view) &&
        (int64_t)view.segment == h->segment)
        snprintf(whose, sizeof whose, "segment '%.48s': ", view.id);
    pthread_mutex_unlock(&m->lock);
    pthread_mutex_lock(&m->words);
    m->unsaid += atomic_exchange_explicit(&h->others, 0, memory_order_relaxed);
    pthread_mutex_unlock(&m->words);
    tec_memory_say(m, "a prompt %s: %s%s",
                   h->why.status == TEC_NOT_FOUND ? "was computed whole" : "failed", whose,
                   h->why.message);
    atomic_store_explicit(&h->full, false, memory_order_release);
}

void tec_memory_tell_rest(struct tec_memory *m)
{
    if (m->unsaid > 0)
        pass_on(m, m->trouble[0] ? m->trouble : "memory", m->unsaid - 1);
    m->unsaid = 0;
}

void tec_memory_trouble(struct tec_memory *m, char out[TEC_MEMORY_TEXT])
{
    pthread_mutex_lock(&m->words);
    memcpy(out, m->trouble, sizeof m->trouble);
    pthread_mutex_unlock(&m->words);
}
