/* usual.c - finds what launches and frames of a recording usually take, once for all that asks. */
#include "tools/measure/bench.h"
#include "tools/record/flight.h"

#include <stdlib.h>
#include <string.h>

static bool alike(const struct tec_flight_launch *a, const struct tec_flight_launch *b)
{
    return a->node == b->node && a->rows == b->rows && a->k == b->k &&
           strcmp(a->what, b->what) == 0;
}

/* Number the kinds of launches; what is more than the table holds counts with its last one. */
static void number_kinds(struct tec_flight *f, const struct tec_flight_launch *first[])
{
    f->n_usual = 0;
    for (size_t i = 0; i < f->n_launches; i++) {
        int kind = 0;
        while (kind < f->n_usual && !alike(first[kind], &f->launches[i]))
            kind++;
        if (kind == TEC_FLIGHT_KINDS_OF_LAUNCH)
            kind--;
        if (kind == f->n_usual)
            first[f->n_usual++] = &f->launches[i];
        f->launches[i].usual = kind;
    }
}

static void find_median(int64_t *median, const struct tec_flight *f, struct tec_samples *all,
                        size_t offset)
{
    all->n = 0;
    for (size_t i = 0; i < f->n_frames; i++)
        if (f->frames[i].end_ns >= 0)
            memcpy(&all->ns[all->n++], (const char *)&f->frames[i] + offset, sizeof *all->ns);
    tec_samples_sort(all);
    *median = tec_samples_at(all, 0.5);
}

enum tec_status tec_flight_find_usual(struct tec_flight *f, struct tec_error *err)
{
    const struct tec_flight_launch *first[TEC_FLIGHT_KINDS_OF_LAUNCH];
    size_t most = f->n_launches > f->n_frames ? f->n_launches : f->n_frames;
    struct tec_samples all = {.ns = malloc((most + 1) * sizeof *all.ns)};
    if (!all.ns)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for what launches usually take");
    number_kinds(f, first);
    for (int kind = 0; kind < f->n_usual; kind++) {
        all.n = 0;
        for (size_t i = 0; i < f->n_launches; i++)
            if (f->launches[i].usual == kind)
                all.ns[all.n++] = (f->launches[i].end_ns - f->launches[i].start_ns) / 1000;
        tec_samples_sort(&all);
        f->usual[kind] = (struct tec_usual){(size_t)all.n, tec_samples_at(&all, 0.5),
                                            tec_samples_at(&all, 0.99)};
    }
    find_median(&f->usual_planner_us, f, &all, offsetof(struct tec_flight_frame, planner_us));
    find_median(&f->usual_host_us, f, &all, offsetof(struct tec_flight_frame, host_us));
    free(all.ns);
    return TEC_OK;
}

const struct tec_usual *tec_flight_usual(const struct tec_flight *f,
                                         const struct tec_flight_launch *launch)
{
    return &f->usual[launch->usual];
}

/* Sessions whose frames run at once share their launches, which the events tell of one of them. */
static bool is_of(const struct tec_flight *f, const struct tec_flight_launch *l,
                  const struct tec_flight_frame *frame)
{
    const struct tec_flight_frame *of = l->frame < f->n_frames ? &f->frames[l->frame] : NULL;
    return of && (of == frame || (of->frame == frame->frame && l->start_ns >= frame->start_ns &&
                                  (frame->end_ns < 0 || l->end_ns <= frame->end_ns)));
}

size_t tec_flight_next(const struct tec_flight *f, const struct tec_flight_frame *frame, size_t at)
{
    const struct tec_flight_launch *l = f->launches;
    while (at < f->n_launches && !is_of(f, &l[at], frame) &&
           (frame->end_ns < 0 || l[at].start_ns < frame->end_ns))
        at++;
    return at < f->n_launches && is_of(f, &l[at], frame) ? at : SIZE_MAX;
}

size_t tec_flight_since(const struct tec_flight *f, const struct tec_flight_frame *frame)
{
    size_t at = frame->launch;
    while (at > 0 && f->launches[at - 1].end_ns > frame->tick_ns)
        at--;
    return at;
}
