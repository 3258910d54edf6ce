#include "graph/run/handout.h"

#include <string.h>

struct tec_handout {
    struct tec_handout_options o;
    double *newest;        /* [rows, width] chunk of frame `newest_frame` */
    double *last, *stable; /* [width] last command; last fresh one */
    double *out;           /* [actions, width] */
    int64_t newest_frame;  /* -1 = none */
    int64_t substitutes;   /* actions given since the last fresh command */
    int misses;            /* in a row */
    bool given, stopped;
};

static const char *const words[] = {
#define SOURCE(name, word, meaning) word,
#include "graph/run/sources.def"
#undef SOURCE
};

const char *tec_source_word(enum tec_source source)
{
    return source < TEC_SOURCES ? words[source] : "?";
}

enum tec_status tec_handout_create(struct tec_handout **out,
                                   const struct tec_handout_options *options,
                                   struct tec_arena *arena, struct tec_error *err)
{
    const struct tec_handout_options *o = options;
    if (o->rows < 1 || o->width < 1 || o->actions < 1 || o->actions > o->rows)
        return tec_fail(err, TEC_INVALID, "%d actions a frame of chunks [%d, %d]: 1 to %d",
                        o->actions, o->rows, o->width, o->rows);
    if (o->on_miss == TEC_MISS_DECAY && o->decay_actions < 1)
        return tec_fail(err, TEC_INVALID, "on_miss = \"decay\" needs decay_actions of at least 1");
    struct tec_handout *h = TEC_NEW(arena, 1, struct tec_handout);
    size_t width = (size_t)o->width, rows = (size_t)o->rows;
    double *numbers = TEC_NEW(arena, width * (2 * rows + 2), double);
    if (!h || !numbers)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for the last actions");
    *h = (struct tec_handout){.o = *o,
                              .newest = numbers,
                              .out = numbers + rows * width,
                              .last = numbers + 2 * rows * width,
                              .stable = numbers + (2 * rows + 1) * width,
                              .newest_frame = -1};
    *out = h;
    return TEC_OK;
}

static void put(const struct tec_handout *h, int i, const double *command, double factor)
{
    for (int c = 0; c < h->o.width; c++)
        h->out[i * h->o.width + c] = command[c] * factor;
}

static struct tec_handed give(struct tec_handout *h, enum tec_source source)
{
    size_t width = (size_t)h->o.width, n = (size_t)h->o.actions;
    memcpy(h->last, h->out + (n - 1) * width, width * sizeof *h->last);
    h->given = true;
    return (struct tec_handed){source, h->o.actions, h->out};
}

static void keep(struct tec_handout *h, int64_t frame, const double *chunk)
{
    memcpy(h->newest, chunk, (size_t)h->o.rows * (size_t)h->o.width * sizeof *chunk);
    h->newest_frame = frame;
}

struct tec_handed tec_handout_fresh(struct tec_handout *h, int64_t frame, const double *chunk)
{
    keep(h, frame, chunk);
    if (h->stopped)
        return (struct tec_handed){TEC_SOURCE_STOPPED, 0, NULL};
    for (int i = 0; i < h->o.actions; i++)
        put(h, i, chunk + (ptrdiff_t)i * h->o.width, 1.0);
    h->misses = 0;
    h->substitutes = 0;
    struct tec_handed handed = give(h, TEC_SOURCE_FRESH);
    memcpy(h->stable, h->last, (size_t)h->o.width * sizeof *h->last);
    return handed;
}

void tec_handout_late(struct tec_handout *h, int64_t frame, const double *chunk)
{
    if (frame > h->newest_frame)
        keep(h, frame, chunk);
}

void tec_handout_reset(struct tec_handout *h)
{
    h->stopped = false;
    h->misses = 0;
}

static struct tec_handed hold(struct tec_handout *h, const double *command)
{
    for (int i = 0; i < h->o.actions; i++)
        put(h, i, command, 1.0);
    return give(h, TEC_SOURCE_HELD);
}

/* Substitute j of the last fresh command is it times 1 - j / decay_actions. */
static struct tec_handed decay(struct tec_handout *h)
{
    for (int i = 0; i < h->o.actions; i++) {
        double left = 1.0 - (double)++h->substitutes / (double)h->o.decay_actions;
        put(h, i, h->stable, left > 0.0 ? left : 0.0);
    }
    return give(h, TEC_SOURCE_DECAYED);
}

/* What the newest chunk has for this moment: `actions` a frame have passed since; none when it is
 * of a later frame. Its last action stands for those beyond its end. */
static struct tec_handed align(struct tec_handout *h, int64_t frame)
{
    const double *end = h->newest + (ptrdiff_t)(h->o.rows - 1) * h->o.width;
    int64_t passed = frame > h->newest_frame ? frame - h->newest_frame : 0;
    if (passed >= h->o.rows || passed * h->o.actions >= h->o.rows)
        return hold(h, end);
    for (int i = 0; i < h->o.actions; i++) {
        int64_t at = passed * h->o.actions + i;
        put(h, i, at < h->o.rows ? h->newest + at * h->o.width : end, 1.0);
    }
    return give(h, TEC_SOURCE_STALE);
}

struct tec_handed tec_handout_missed(struct tec_handout *h, int64_t frame)
{
    h->misses += h->misses < INT32_MAX;
    if (h->o.on_miss == TEC_MISS_STOP || (h->o.limit > 0 && h->misses > h->o.limit))
        h->stopped = true;
    if (h->stopped)
        return (struct tec_handed){TEC_SOURCE_STOPPED, 0, NULL};
    if (h->o.on_miss == TEC_MISS_LAST_CHUNK && h->newest_frame >= 0)
        return align(h, frame);
    if (!h->given)
        return (struct tec_handed){TEC_SOURCE_NONE, 0, NULL};
    if (h->o.on_miss == TEC_MISS_DECAY)
        return decay(h);
    if (h->o.on_miss != TEC_MISS_ZEROS)
        return hold(h, h->last);
    memset(h->out, 0, (size_t)h->o.actions * (size_t)h->o.width * sizeof *h->out);
    return give(h, TEC_SOURCE_ZEROS);
}
