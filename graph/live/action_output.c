/* action_output.c - decides what the robot executes: a fresh chunk, or a substitute when it is late
 * or refused.
 *
 * It belongs to whoever hands actions out and not to the frame loop, so a stuck device or script
 * cannot stop it. Chunks are cut at their first row that is not finite and held to the robot's
 * limits here, at the last step before the robot: whatever produced a number, it passes these
 * checks. After create nothing is allocated. */
#include "graph/live/action_output.h"

#include "graph/live/ensemble.h"

#include <math.h>
#include <string.h>

/* The observation that numbers were made from. */
struct origin {
    int64_t frame, captured_ns, seen;
};
static const struct origin nowhere = {-1, 0, -1};

struct tec_action_output {
    struct tec_action_output_options o;
    double *newest;        /* [newest_rows, width] finite rows of a chunk */
    double *last, *stable; /* [width] last command; last fresh one */
    double *before;        /* [width] the command that the robot carries out before the next one */
    double *out;           /* [actions, width] */
    int newest_rows;       /* 0 = none */
    int planned;           /* of these, by the model: the others repeat the last one */
    struct origin of_newest, of_last, of_stable;
    int64_t substitutes; /* actions given since the last fresh command */
    int misses;          /* in a row */
    bool given, stopped;
    struct tec_ensemble ensemble;
};

static const char *const words[] = {
#define SOURCE(name, word, meaning) word,
#include "graph/live/sources.def"
#undef SOURCE
};

const char *tec_action_source_word(enum tec_action_source source)
{
    return source < TEC_SOURCES ? words[source] : "?";
}

enum tec_status tec_action_output_create(struct tec_action_output **out,
                                         const struct tec_action_output_options *options,
                                         struct tec_arena *arena, struct tec_error *err)
{
    const struct tec_action_output_options *o = options;
    if (o->rows < 1 || o->width < 1 || o->actions < 1 || o->actions > o->rows)
        return tec_fail(err, TEC_INVALID, "%d actions a frame of chunks [%d, %d]: 1 to %d",
                        o->actions, o->rows, o->width, o->rows);
    if (o->on_miss == TEC_MISS_DECAY && o->decay_actions < 1)
        return tec_fail(err, TEC_INVALID, "on_miss = \"decay\" needs decay_actions of at least 1");
    if (o->ensembles && o->actions != 1)
        return tec_fail(err, TEC_INVALID,
                        "%d actions a frame: ensembling makes a chunk for each action that the "
                        "robot carries out",
                        o->actions);
    struct tec_action_output *h = TEC_NEW(arena, 1, struct tec_action_output);
    size_t width = (size_t)o->width, rows = (size_t)o->rows;
    double *numbers = TEC_NEW(arena, width * (2 * rows + 3), double);
    if (!h || !numbers)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for the last actions");
    *h = (struct tec_action_output){.o = *o,
                                    .newest = numbers,
                                    .out = numbers + rows * width,
                                    .last = numbers + 2 * rows * width,
                                    .stable = numbers + (2 * rows + 1) * width,
                                    .before = numbers + (2 * rows + 2) * width,
                                    .of_newest = nowhere,
                                    .of_last = nowhere,
                                    .of_stable = nowhere};
    *out = h;
    return o->ensembles
               ? tec_ensemble_init(&h->ensemble, o->ensemble, o->rows, o->width, arena, err)
               : TEC_OK;
}

static void put(const struct tec_action_output *h, int i, const double *command, double factor)
{
    for (int c = 0; c < h->o.width; c++)
        h->out[i * h->o.width + c] = command[c] * factor;
}

static struct tec_handed nothing(enum tec_action_source source)
{
    return (struct tec_handed){.source = source, .frame = -1, .seen = -1};
}

/* Clamp rows to the limits, each relative to the one before it. True if any value changed. */
static bool keep_limits(const struct tec_action_output *h, double *rows, int n,
                        struct tec_beyond *beyond)
{
    const double *before = h->given ? h->before : NULL;
    bool moved = false;
    for (int i = 0; h->o.limits && i < n; i++) {
        double *row = rows + (ptrdiff_t)i * h->o.width;
        moved |= tec_limits_keep(h->o.limits, i, before, row, beyond);
        before = row;
    }
    return moved;
}

static struct tec_handed give(struct tec_action_output *h, enum tec_action_source source,
                              struct origin from)
{
    struct tec_beyond unused = {0};
    size_t width = (size_t)h->o.width, n = (size_t)h->o.actions;
    if (source != TEC_SOURCE_FRESH)
        keep_limits(h, h->out, h->o.actions, &unused);
    memcpy(h->last, h->out + (n - 1) * width, width * sizeof *h->last);
    memcpy(h->before, h->last, width * sizeof *h->last);
    h->of_last = from;
    h->given = true;
    return (struct tec_handed){.source = source,
                               .n = h->o.actions,
                               .actions = h->out,
                               .frame = from.frame,
                               .captured_ns = from.captured_ns,
                               .seen = from.seen};
}

/* Leading rows whose numbers are all finite. */
static int finite_rows(const struct tec_action_output *h, const double *actions)
{
    for (int i = 0; i < h->o.rows; i++)
        for (int c = 0; c < h->o.width; c++)
            if (!isfinite(actions[(ptrdiff_t)i * h->o.width + c]))
                return i;
    return h->o.rows;
}

static void keep(struct tec_action_output *h, const struct tec_action_output_chunk *chunk, int rows)
{
    if (rows == 0)
        return;
    const double *actions = chunk->actions;
    if (h->o.ensembles) {
        tec_ensemble_add(&h->ensemble, chunk->frame, actions, rows);
        actions = h->ensemble.mean;
    }
    memcpy(h->newest, actions, (size_t)rows * (size_t)h->o.width * sizeof *h->newest);
    int planned = h->o.rows - chunk->over;
    h->newest_rows = rows;
    h->planned = planned < 1 ? 1 : planned < rows ? planned : rows;
    h->of_newest = (struct origin){chunk->frame, chunk->captured_ns, chunk->seen};
}

static struct tec_handed hold(struct tec_action_output *h, const double *command,
                              struct origin from)
{
    for (int i = 0; i < h->o.actions; i++)
        put(h, i, command, 1.0);
    return give(h, TEC_SOURCE_HELD, from);
}

/* Count one more miss in a row; true if it stops the robot. */
static bool count_miss(struct tec_action_output *h, bool stops)
{
    h->misses += h->misses < INT32_MAX;
    if (stops || (h->o.limit > 0 && h->misses > h->o.limit))
        h->stopped = true;
    return h->stopped;
}

/* Refuse a chunk beyond the limits, whatever on_miss says: hold the last command, or stop. */
static struct tec_handed refuse(struct tec_action_output *h, const struct tec_beyond *beyond)
{
    struct tec_handed handed = count_miss(h, beyond->on == TEC_LIMIT_STOP)
                                   ? nothing(TEC_SOURCE_STOPPED)
                               : !h->given ? nothing(TEC_SOURCE_NONE)
                                           : hold(h, h->before, h->of_last);
    handed.beyond = *beyond;
    return handed;
}

static struct tec_handed leave(struct tec_action_output *h, int rows)
{
    int executed = h->o.executed > 0 && h->o.executed < rows ? h->o.executed : h->o.actions;
    size_t bytes = (size_t)h->o.width * sizeof *h->newest;
    for (int i = 0; i < h->o.actions; i++)
        put(h, i, h->newest + (ptrdiff_t)i * h->o.width, 1.0);
    h->misses = 0;
    h->substitutes = 0;
    struct tec_handed handed = give(h, TEC_SOURCE_FRESH, h->of_newest);
    memcpy(h->before, h->newest + (ptrdiff_t)(executed - 1) * h->o.width, bytes);
    memcpy(h->stable, h->last, bytes);
    h->of_stable = h->of_last;
    handed.chunk = h->newest;
    return handed;
}

/* Substitute j of the last fresh command is it times 1 - j / decay_actions. */
static struct tec_handed decay(struct tec_action_output *h)
{
    for (int i = 0; i < h->o.actions; i++) {
        double left = 1.0 - (double)++h->substitutes / (double)h->o.decay_actions;
        put(h, i, h->stable, left > 0.0 ? left : 0.0);
    }
    return give(h, TEC_SOURCE_DECAYED, h->of_stable);
}

/* The actions that the newest chunk planned for this frame: `actions` of them have passed in each
 * frame since its own (none if it is of a later frame). Beyond its end its last action is
 * repeated. */
static struct tec_handed align(struct tec_action_output *h, int64_t frame)
{
    const double *end = h->newest + (ptrdiff_t)(h->planned - 1) * h->o.width;
    int64_t passed = frame > h->of_newest.frame ? frame - h->of_newest.frame : 0;
    if (passed >= h->planned || passed * h->o.actions >= h->planned)
        return hold(h, end, h->of_newest);
    for (int i = 0; i < h->o.actions; i++) {
        int64_t at = passed * h->o.actions + i;
        put(h, i, at < h->planned ? h->newest + at * h->o.width : end, 1.0);
    }
    return give(h, TEC_SOURCE_STALE, h->of_newest);
}

/* What on_miss says, where it does not stop the robot. */
static struct tec_handed substitute(struct tec_action_output *h, int64_t frame)
{
    if (h->o.on_miss == TEC_MISS_LAST_CHUNK && h->newest_rows > 0)
        return align(h, frame);
    if (!h->given)
        return nothing(TEC_SOURCE_NONE);
    if (h->o.on_miss == TEC_MISS_DECAY)
        return decay(h);
    if (h->o.on_miss != TEC_MISS_ZEROS)
        return hold(h, h->last, h->of_last);
    memset(h->out, 0, (size_t)h->o.actions * (size_t)h->o.width * sizeof *h->out);
    return give(h, TEC_SOURCE_ZEROS, nowhere);
}

struct tec_handed tec_action_output_missed(struct tec_action_output *h, int64_t frame)
{
    return count_miss(h, h->o.on_miss == TEC_MISS_STOP) ? nothing(TEC_SOURCE_STOPPED)
                                                        : substitute(h, frame);
}

static struct tec_handed left_out(struct tec_action_output *h, int64_t frame)
{
    struct tec_handed handed = tec_action_output_missed(h, frame);
    handed.left_out = true;
    return handed;
}

struct tec_handed tec_action_output_fresh(struct tec_action_output *h,
                                          const struct tec_action_output_chunk *chunk)
{
    struct tec_beyond beyond = chunk->beyond;
    if (chunk->left_out)
        return left_out(h, chunk->frame);
    if (tec_beyond_refused(&beyond))
        return refuse(h, &beyond);
    int rows = finite_rows(h, chunk->actions);
    if (rows < h->o.actions)
        return tec_action_output_missed(h, chunk->frame);
    keep(h, chunk, rows);
    if (h->stopped)
        return nothing(TEC_SOURCE_STOPPED);
    bool moved = keep_limits(h, h->newest, rows, &beyond) || h->o.ensembles;
    if (tec_beyond_refused(&beyond)) {
        h->newest_rows = 0;
        return refuse(h, &beyond);
    }
    struct tec_handed handed = leave(h, rows);
    handed.moved = moved;
    handed.beyond = beyond;
    return handed;
}

void tec_action_output_late(struct tec_action_output *h,
                            const struct tec_action_output_chunk *chunk)
{
    if (!chunk->left_out && chunk->frame > h->of_newest.frame &&
        !tec_beyond_refused(&chunk->beyond))
        keep(h, chunk, finite_rows(h, chunk->actions));
}

void tec_action_output_forget(struct tec_action_output *h)
{
    h->of_newest = h->of_last = h->of_stable = nowhere;
    h->newest_rows = h->misses = 0;
    h->substitutes = 0;
    h->given = h->stopped = false;
    tec_ensemble_forget(&h->ensemble);
}

void tec_action_output_stop(struct tec_action_output *h)
{
    h->stopped = true;
}

void tec_action_output_reset(struct tec_action_output *h)
{
    h->stopped = false;
    h->misses = 0;
    tec_ensemble_forget(&h->ensemble);
}
