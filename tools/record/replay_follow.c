/* replay_follow.c - gives the loop the recorded decisions of each frame, and counts those that are
 * missing or do not fit. */
#include "tools/record/replay_follow.h"

#include <string.h>

/* Is it `front` itself, or a field of it? */
static bool within(const char *path, const char *front)
{
    size_t n = strlen(front);
    return strncmp(path, front, n) == 0 && (path[n] == '.' || path[n] == '=');
}

/* nodes.NAME.deadline: the clock gives up a text by it, and the policy may look at it. */
static bool sets_deadline(const char *path)
{
    const char *name = within(path, "nodes") && path[5] == '.' ? path + 6 : NULL;
    const char *field = name ? strchr(name, '.') : NULL;
    return field && within(field + 1, "deadline");
}

bool tec_replay_decides_afresh(const struct tec_shared *given)
{
    bool afresh = given->policy || given->param.n > 0 || given->costs;
    for (int i = 0; i < given->set.n; i++) {
        const char *path = given->set.item[i];
        afresh |= within(path, "policy") || sets_deadline(path);
    }
    return afresh;
}

enum tec_status tec_replay_follow_open(struct tec_replay_follow *f, const struct tec_engine *engine,
                                       struct tec_heap *heap, struct tec_error *err)
{
    const struct tec_loop_options *o = tec_loop_settings(engine->loop);
    *f = (struct tec_replay_follow){
        .heap = heap,
        .topology = &engine->topology,
        .following = {.otherwise = o->planner, .n_nodes = engine->topology.n_nodes},
        .next = tec_heap_get(heap, sizeof *f->next)};
    if (!f->next)
        return tec_fail(err, TEC_NO_MEMORY, "no memory for recorded decisions");
    const struct tec_planner planner = tec_following_planner(&f->following);
    tec_loop_set_planner(engine->loop, &planner);
    return TEC_OK;
}

void tec_replay_follow_close(struct tec_replay_follow *f)
{
    if (f->heap)
        tec_heap_put(f->heap, f->next);
    f->next = NULL;
}

enum tec_status tec_replay_follow_take(struct tec_replay_follow *f, const json_t *json,
                                       struct tec_error *err)
{
    if (!f->next)
        return TEC_OK;
    f->known = f->any = true;
    return tec_recorded_decided(f->next, json, f->topology, err);
}

enum tec_status tec_replay_follow_begin(struct tec_replay_follow *f, struct tec_mcap_reader *file,
                                        const struct tec_frame_again *first, struct tec_error *err)
{
    if (!f->next)
        return TEC_OK;
    if (!f->known)
        TEC_TRY(tec_recorded_decided_ahead(f->next, &f->known, file, f->topology, err));
    f->any |= f->known;
    f->own = f->known && f->next->frame == first->frame && f->next->session == first->session;
    f->following.decided = f->own && f->next->whole ? f->next : NULL;
    f->frame = first->frame;
    f->known = false;
    return TEC_OK;
}

static void add(struct tec_replay_frames *frames, int64_t frame)
{
    const int64_t most = sizeof frames->first / sizeof frames->first[0];
    if (frames->n < most)
        frames->first[frames->n] = frame;
    frames->n++;
}

void tec_replay_follow_end(struct tec_replay_follow *f)
{
    if (!f->next)
        return;
    f->followed += f->following.followed;
    if (!f->own)
        add(&f->missing, f->frame);
    else if (!f->following.decided)
        add(&f->strange, f->frame);
    else if (!f->following.followed)
        add(&f->others, f->frame);
}

static void tell(const struct tec_replay_frames *frames, const struct tec_invocation *call,
                 const char *path, const char *what)
{
    const int64_t most = sizeof frames->first / sizeof frames->first[0];
    char list[128] = "";
    size_t n = 0;
    for (int64_t i = 0; i < frames->n && i < most; i++)
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%lld", i ? ", " : "",
                              (long long)frames->first[i]);
    if (frames->n)
        tec_say(call, "%s: %s %lld frame%s (%s%s): the policy has decided there", path, what,
                (long long)frames->n, frames->n == 1 ? "" : "s", list,
                frames->n > most ? ", ..." : "");
}

void tec_replay_follow_tell(const struct tec_replay_follow *f, const struct tec_invocation *call,
                            const char *path)
{
    if (!f->next)
        return;
    if (!f->any && f->missing.n)
        tec_say(call,
                "%s: it does not say what was decided: the policy has decided, by what "
                "launches take today",
                path);
    else
        tell(&f->missing, call, path, "what was decided is missing of");
    tell(&f->strange, call, path, "nodes or partitions of another pipeline were decided about in");
    tell(&f->others, call, path, "other requests than recorded lived in");
}
